#include "codegen/gpu/lower/IndexBuilder.h"
#include "graph/ir/Materialize.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

Value IndexBuilder::constant(int64_t value) {
  Value &known = constants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    known = arith::ConstantIndexOp::create(b, loc, value);
  }
  return known;
}

Value IndexBuilder::cached(const Key &key, llvm::function_ref<Value()> build) {
  for (const auto &scope : llvm::reverse(scopes))
    if (Value known = scope.lookup(key))
      return known;
  Value value = build();
  scopes.back()[key] = value;
  return value;
}

Value IndexBuilder::binary(llvm::StringLiteral op, Value a, Value c) {
  return cached({op, {a, c}, {}}, [&] {
    OperationState state(loc, op);
    state.addOperands({a, c});
    state.addTypes(a.getType());
    return b.create(state)->getResult(0);
  });
}

Value IndexBuilder::materialize(IndexSum sum) {
  if (!sum.value)
    return constant(sum.constant);
  if (sum.constant == 0)
    return sum.value;
  return binary("arith.addi", sum.value, constant(sum.constant));
}

/// As the machine adds and multiplies: what moves out of a sum may leave 64
/// bits where the sum itself does not.
static int64_t wrappingAdd(int64_t a, int64_t c) {
  return int64_t(uint64_t(a) + uint64_t(c));
}
static int64_t wrappingMultiply(int64_t a, int64_t c) {
  return int64_t(uint64_t(a) * uint64_t(c));
}

IndexSum IndexBuilder::add(IndexSum a, IndexSum c) {
  int64_t constant = wrappingAdd(a.constant, c.constant);
  if (!a.value)
    return {c.value, constant};
  if (!c.value)
    return {a.value, constant};
  return {binary("arith.addi", a.value, c.value), constant};
}

IndexSum IndexBuilder::multiply(IndexSum a, IndexSum c) {
  if (!a.value)
    std::swap(a, c);
  if (!c.value) { // by a constant
    if (c.constant == 0 || !a.value)
      return {{}, wrappingMultiply(a.constant, c.constant)};
    if (c.constant == 1)
      return a;
    Value product;
    if (c.constant > 0 && llvm::isPowerOf2_64(c.constant))
      product =
          binary("arith.shli", a.value, constant(llvm::Log2_64(c.constant)));
    else
      product = binary("arith.muli", a.value, constant(c.constant));
    return {product, wrappingMultiply(a.constant, c.constant)};
  }
  // (a + k)(c + l): the constants stay with the values, rows of a symbolic
  // length differ by its multiples.
  IndexSum product{binary("arith.muli", a.value, c.value), 0};
  if (a.constant)
    product = add(product, multiply({c.value, 0}, {{}, a.constant}));
  if (c.constant)
    product = add(product, multiply({a.value, 0}, {{}, c.constant}));
  product.constant =
      wrappingAdd(product.constant, wrappingMultiply(a.constant, c.constant));
  return product;
}

IndexSum IndexBuilder::atLeastOne(IndexSum a) {
  if (a.isConstant())
    return {{}, std::max<int64_t>(a.constant, 1)};
  return {binary("arith.maxsi", materialize(a), constant(1)), 0};
}

/// A power of two that divides what lanes and warps add to a coordinate.
static int64_t powerThatDivides(Value value, unsigned depth = 0) {
  constexpr unsigned deepest = 8;
  constexpr int64_t most = int64_t(1) << 30;
  Operation *op = value.getDefiningOp();
  if (!op || depth > deepest)
    return 1;
  auto of = [&](unsigned i) {
    return powerThatDivides(op->getOperand(i), depth + 1);
  };
  IntegerAttr number;
  if (matchPattern(value, m_Constant(&number))) {
    uint64_t n = number.getValue().getSExtValue();
    return n == 0 ? most : std::min<uint64_t>(n & -n, most);
  }
  if (isa<arith::AddIOp>(op))
    return std::min(of(0), of(1));
  if (isa<arith::MulIOp>(op))
    return std::min(of(0) * of(1), most);
  if (isa<arith::AndIOp>(op))
    return std::max(of(0), of(1));
  if (isa<arith::ShLIOp>(op) &&
      matchPattern(op->getOperand(1), m_Constant(&number)) &&
      number.getValue().ult(30))
    return std::min(of(0) << number.getInt(), most);
  return 1;
}

IndexSum IndexBuilder::floorDivide(IndexSum a, IndexSum c, bool positive) {
  if (c.isConstant()) {
    int64_t by = c.constant;
    if (by == 1)
      return a;
    if (!a.value && by > 0)
      return {{}, llvm::divideFloorSigned(a.constant, by)};
    if (by > 0 && llvm::isPowerOf2_64(by)) {
      // Registers of a thread then differ by constants, or not at all. Without
      // its constant the value may be negative.
      bool apart = powerThatDivides(a.value) % by == 0;
      Value value = apart ? a.value : materialize(a);
      positive &= !apart;
      return {binary(positive ? llvm::StringLiteral("arith.shrui")
                              : llvm::StringLiteral("arith.shrsi"),
                     value, constant(llvm::Log2_64(by))),
              apart ? llvm::divideFloorSigned(a.constant, by) : 0};
    }
  }
  Value numerator = materialize(a), divisor = materialize(c);
  if (positive)
    return {binary("arith.divui", numerator, divisor), 0};
  // Divisors are positive: rounding towards zero is one too many below zero.
  Value quotient = binary("arith.divsi", numerator, divisor);
  Value rest = binary("arith.remsi", numerator, divisor);
  Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, rest,
                                      constant(0));
  Value less = binary("arith.subi", quotient, constant(1));
  return {arith::SelectOp::create(b, loc, below, less, quotient), 0};
}

IndexSum IndexBuilder::modulo(IndexSum a, IndexSum c, bool positive) {
  if (c.isConstant()) {
    int64_t by = c.constant;
    if (by == 1)
      return {};
    if (!a.value && by > 0) {
      int64_t rest = a.constant % by;
      return {{}, rest < 0 ? rest + by : rest};
    }
    if (by > 0 && llvm::isPowerOf2_64(by) &&
        powerThatDivides(a.value) % by == 0)
      return {{}, a.constant & (by - 1)};
    if (by > 0 && llvm::isPowerOf2_64(by))
      return {binary("arith.andi", materialize(a), constant(by - 1)), 0};
  }
  if (positive)
    return {binary("arith.remui", materialize(a), materialize(c)), 0};
  IndexSum quotient = floorDivide(a, c, false);
  Value product = materialize(multiply(quotient, c));
  return {binary("arith.subi", materialize(a), product), 0};
}

Value IndexBuilder::exclusiveOr(Value a, Value c) {
  return binary("arith.xori", a, c);
}

Value IndexBuilder::lessUnsigned(IndexSum a, IndexSum c) {
  if (a.isConstant() && c.isConstant() && a.constant >= 0)
    return arith::ConstantIntOp::create(b, loc, a.constant < c.constant, 1);
  Value left = materialize(a), right = materialize(c);
  return cached({"<u", {left, right}, {}}, [&]() -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, left,
                                 right);
  });
}

Value IndexBuilder::both(Value a, Value c) {
  if (!a || a == c)
    return c;
  if (!c)
    return a;
  return binary("arith.andi", a, c);
}

namespace {
/// Sums of an IndexBuilder, for graph::Materializer.
struct IndexCode {
  using Value = IndexSum;
  IndexBuilder &builder;
  ArrayRef<IndexSum> dims, symbols;

  IndexSum constant(int64_t value) { return {{}, value}; }
  IndexSum variable(AffineExpr e) {
    if (auto dim = dyn_cast<AffineDimExpr>(e))
      return dims[dim.getPosition()];
    return symbols[cast<AffineSymbolExpr>(e).getPosition()];
  }
  IndexSum add(IndexSum a, IndexSum c) { return builder.add(a, c); }
  IndexSum multiply(IndexSum a, IndexSum c) { return builder.multiply(a, c); }
  IndexSum atLeastOne(IndexSum c) { return builder.atLeastOne(c); }
  IndexSum floorDivide(IndexSum a, IndexSum c, bool notNegative) {
    return builder.floorDivide(a, c, notNegative);
  }
  IndexSum modulo(IndexSum a, IndexSum c, bool notNegative) {
    return builder.modulo(a, c, notNegative);
  }
};
} // namespace

IndexSum IndexBuilder::evaluate(AffineExpr expr, ArrayRef<IndexSum> dims,
                                ArrayRef<IndexSum> symbols,
                                const graph::Facts &facts) {
  IndexCode code{*this, dims, symbols};
  return graph::Materializer(code, facts)(expr);
}

Value IndexBuilder::linear(
    ArrayRef<std::pair<Value, SmallVector<uint64_t>>> inputs) {
  // Bits that move by the same distance move together.
  Value sum;
  uint64_t taken = 0;
  for (const auto &[value, images] : inputs) {
    std::map<int, uint64_t> masks; // distance -> bits of the value
    for (auto [bit, image] : llvm::enumerate(images))
      for (unsigned to = 0; to < 64; ++to)
        if (image >> to & 1)
          masks[int(to) - int(bit)] |= uint64_t(1) << bit;
    uint64_t all = (uint64_t(1) << images.size()) - 1;
    for (auto [distance, mask] : masks) {
      Value part = value;
      // Bits that the shift drops need no mask, nor those above the value.
      uint64_t kept =
          distance < 0 ? all & ~((uint64_t(1) << -distance) - 1) : all;
      if ((mask & kept) != kept)
        part = binary("arith.andi", part, constant(mask));
      if (distance > 0)
        part = binary("arith.shli", part, constant(distance));
      else if (distance < 0)
        part = binary("arith.shrui", part, constant(-distance));
      uint64_t moved = distance > 0 ? mask << distance : mask >> -distance;
      if (!sum)
        sum = part;
      else
        sum = taken & moved ? exclusiveOr(sum, part)
                            : binary("arith.addi", sum, part);
      taken |= moved;
    }
  }
  return sum ? sum : constant(0);
}
