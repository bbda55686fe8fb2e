// Where accesses to buffers are, and whether they are inside.
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

KernelLowering::AddressPlan
KernelLowering::planAddresses(const tile::AccessOp &access) {
  AddressPlan plan{access,
                   tile::factsOf(access),
                   {},
                   {},
                   {},
                   {},
                   simt::elementBits(access.tile.getElementType()) / 8};
  if (access.buffer) {
    plan.offset = tile::linearOffset(access, plan.facts);
    // Its summands, so that what loops do not change is added first.
    graph::Sum sum(plan.offset);
    for (const graph::Sum::Term &term : sum.terms)
      plan.terms.push_back(term.toExpr());
    plan.terms.push_back(getAffineConstantExpr(sum.constant, b.getContext()));
  }
  for (int64_t check : access.checks) {
    plan.checks.push_back(
        graph::simplify(access.map.getResult(check), plan.facts));
    plan.extents.push_back(
        graph::simplify(access.shape.getResult(check), plan.facts));
  }
  return plan;
}

SmallVector<IndexSum> KernelLowering::symbolsOf(const tile::AccessOp &access,
                                                const LinearLayout &layout,
                                                unsigned reg) {
  SmallVector<IndexSum> result;
  for (Value symbol : access.symbols) {
    auto type = dyn_cast<RankedTensorType>(symbol.getType());
    if (!type) {
      result.push_back(sumOf(symbol));
      continue;
    }
    // The symbol's own layout is this one with its unit axes dropped: the
    // register that has the same coordinates there.
    const LinearLayout &own = simt::layoutOf(symbol);
    f2::Vector image = layout.apply(Dim::Register, reg), wanted = 0;
    unsigned shift = 0;
    for (const LinearLayout::Space &out : own.outs()) {
      wanted |=
          f2::Vector(layout.coordinate(image, out.dim) & ((1u << out.bits) - 1))
          << shift;
      shift += out.bits;
    }
    std::optional<f2::Vector> source =
        f2::Span(own.columnsOf(Dim::Register)).solve(wanted);
    assert(source && "layouts of a symbol and its access do not agree");
    result.push_back({tiles[symbol].values[*source], 0});
  }
  return result;
}

/// How many loops are around the innermost operand.
unsigned KernelLowering::depthOf(AffineExpr expr, ValueRange symbols) const {
  unsigned depth = 0;
  expr.walk([&](AffineExpr e) {
    auto symbol = dyn_cast<AffineSymbolExpr>(e);
    if (!symbol)
      return;
    Value value = symbols[symbol.getPosition()];
    unsigned own = 0;
    for (Operation *op = value.getParentRegion()->getParentOp();
         op && !isa<func::FuncOp>(op); op = op->getParentOp())
      ++own;
    depth = std::max(depth, own);
  });
  return depth;
}

KernelLowering::Address KernelLowering::addressOf(const AddressPlan &plan,
                                                  ArrayRef<IndexSum> dims,
                                                  ArrayRef<IndexSum> symbols) {
  std::map<unsigned, IndexSum> byDepth;
  // As the machine adds and multiplies: a part of an address may leave 64 bits
  // where the whole does not.
  uint64_t constant = 0;
  for (AffineExpr term : plan.terms) {
    IndexSum value = index->evaluate(term, dims, symbols, plan.facts);
    constant += value.constant;
    value.constant = 0;
    if (value.value) {
      IndexSum &sum = byDepth[depthOf(term, plan.access.symbols)];
      sum = index->add(sum, value);
    }
  }
  Value pointer = scalars.lookup(plan.access.buffer);
  Type bytes = b.getI8Type();
  Type pointerType = pointer.getType();
  for (auto &[depth, sum] : byDepth) {
    if (!sum.value)
      continue;
    IndexBuilder::Key key{"address", {pointer, sum.value}, {plan.elementBytes}};
    pointer = index->cached(key, [&]() -> Value {
      Value offset = toInteger(sum.value, indexInteger());
      Type element = plan.elementBytes == 1
                         ? bytes
                         : Type(b.getIntegerType(plan.elementBytes * 8));
      return LLVM::GEPOp::create(b, loc, pointerType, element, pointer,
                                 ArrayRef<LLVM::GEPArg>{offset});
    });
  }
  // What an instruction's immediate offset does not hold goes to the pointer.
  int64_t offset = constant * plan.elementBytes;
  // A GEP keeps constants in 29 bits, and vectors add some bytes.
  static_assert(LLVM::kGEPConstantBitWidth >= 29);
  if (llvm::isInt<28>(offset))
    return {pointer, offset};
  uint64_t near = uint64_t(offset) % (1 << 20), far = uint64_t(offset) - near;
  pointer = index->cached({"far", {pointer}, {far}}, [&]() -> Value {
    Value distance = LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                              b.getI64IntegerAttr(far));
    return LLVM::GEPOp::create(b, loc, pointerType, bytes, pointer,
                               ArrayRef<LLVM::GEPArg>{distance});
  });
  return {pointer, int64_t(near)};
}

std::optional<bool> charonia::gpu::decide(AffineExpr check, AffineExpr extent,
                                          const LinearLayout &layout,
                                          unsigned reg) {
  auto axis = dyn_cast<AffineDimExpr>(check);
  auto end = dyn_cast<AffineConstantExpr>(extent);
  if (!axis || !end)
    return std::nullopt;
  Dim out = axisDim(axis.getPosition());
  int64_t own = layout.coordinate(layout.apply(Dim::Register, reg), out),
          moved = 0;
  for (Dim dim : {Dim::Lane, Dim::Warp})
    for (unsigned bit = 0; bit < layout.inBits(dim); ++bit)
      moved |= layout.basis(dim, bit, out);
  if ((own | moved) < end.getValue())
    return true;
  if ((own & ~moved) >= end.getValue())
    return false;
  return std::nullopt;
}

bool KernelLowering::isNever(Value predicate) const {
  return predicate && matchPattern(predicate, m_Zero());
}

Value KernelLowering::predicateOf(const AddressPlan &plan,
                                  const LinearLayout &layout, unsigned reg,
                                  ArrayRef<IndexSum> dims,
                                  ArrayRef<IndexSum> symbols) {
  Value result;
  for (auto [check, extent] : llvm::zip(plan.checks, plan.extents)) {
    std::optional<bool> known = decide(check, extent, layout, reg);
    if (known == false)
      return index->cached({"never", {}, {}}, [&]() -> Value {
        return arith::ConstantIntOp::create(b, loc, false, 1);
      });
    if (known == true)
      continue;
    IndexSum coordinate = index->evaluate(check, dims, symbols, plan.facts);
    IndexSum end = index->evaluate(extent, {}, symbols, plan.facts);
    if (coordinate.isConstant() && end.isConstant() &&
        coordinate.constant >= 0 && coordinate.constant < end.constant)
      continue;
    result = index->both(result, index->lessUnsigned(coordinate, end));
  }
  return result;
}

Value KernelLowering::pointerOf(const Address &address) {
  if (!address.bytes)
    return address.pointer;
  return LLVM::GEPOp::create(b, loc, address.pointer.getType(), b.getI8Type(),
                             address.pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(address.bytes)});
}
