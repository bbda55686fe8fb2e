// Affine expressions evaluated for the lanes of a piece. What all lanes share
// stays scalar; offsets between lanes are small 32-bit integers wherever the
// ranges of the tile's axes show it; only tile-valued symbols bring vectors of
// 64-bit integers.
#include "codegen/cpu/KernelEmitter.h"
#include "graph/ir/Materialize.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::cpu;
using llvm::ConstantInt;
using mlir::AffineExpr;

static bool isZero(llvm::Value *value) {
  auto constant = llvm::dyn_cast<ConstantInt>(value);
  return constant && constant->isZero();
}

static int64_t widthOf(llvm::Value *vector) {
  auto type = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
  return type ? type->getNumElements() : 1;
}

/// Loops around the definition of a value, below the function.
static unsigned loopDepth(mlir::Value value) {
  unsigned depth = 0;
  mlir::Operation *op = value.getParentBlock()->getParentOp();
  // A scalar that depends on the program instance is not invariant in its loop;
  // shape symbols and constants are.
  if (!llvm::isa<mlir::func::FuncOp>(op) || value.getDefiningOp())
    depth = 1;
  llvm::APInt constant;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&constant)))
    return 0;
  for (; op && !llvm::isa<mlir::func::FuncOp>(op); op = op->getParentOp())
    ++depth;
  return depth;
}

LaneInt KernelEmitter::constantInt(int64_t value) { return {i64(value)}; }

LaneInt KernelEmitter::stepInt(int64_t start, int64_t width) {
  LaneInt value{i64(start)};
  if (width > 1) {
    value.small = stepVector(b.getInt32Ty(), width);
    value.high = width - 1;
    value.fromZero = true;
  }
  return value;
}

Value *KernelEmitter::widen(LaneInt value, int64_t width) {
  llvm::Type *type = llvm::FixedVectorType::get(b.getInt64Ty(), width);
  if (width == 1)
    return value.wide ? b.CreateAdd(value.scalar, value.wide) : value.scalar;
  Value *sum = value.wide;
  if (value.small) {
    Value *small = b.CreateSExt(value.small, type);
    sum = sum ? b.CreateAdd(sum, small) : small;
  }
  if (!sum)
    return splat(value.scalar, width);
  return isZero(value.scalar) ? sum
                              : b.CreateAdd(sum, splat(value.scalar, width));
}

LaneInt KernelEmitter::add(LaneInt a, LaneInt c) {
  LaneInt sum{b.CreateAdd(a.scalar, c.scalar)};
  if (a.small && c.small &&
      (!llvm::isInt<32>(a.low + c.low) || !llvm::isInt<32>(a.high + c.high))) {
    int64_t width = widthOf(a.small);
    sum.scalar = i64(0);
    sum.wide = b.CreateAdd(widen(a, width), widen(c, width));
    return sum;
  }
  if (a.small && c.small)
    sum.small = b.CreateAdd(a.small, c.small);
  else
    sum.small = a.small ? a.small : c.small;
  sum.low = a.low + c.low;
  sum.high = a.high + c.high;
  sum.fromZero = (!a.small || a.fromZero) && (!c.small || c.fromZero);
  if (a.wide && c.wide)
    sum.wide = b.CreateAdd(a.wide, c.wide);
  else
    sum.wide = a.wide ? a.wide : c.wide;
  return sum;
}

LaneInt KernelEmitter::multiply(LaneInt a, LaneInt c) {
  if (a.isScalar())
    std::swap(a, c);
  if (a.isScalar())
    return {b.CreateMul(a.scalar, c.scalar)};
  int64_t width = widthOf(a.small ? a.small : a.wide);
  if (auto factor = llvm::dyn_cast<ConstantInt>(c.scalar);
      c.isScalar() && factor && !a.wide) {
    int64_t f = factor->getSExtValue();
    if (f == 0)
      return constantInt(0);
    int64_t low, high;
    if (!__builtin_mul_overflow(a.low, f, &low) &&
        !__builtin_mul_overflow(a.high, f, &high) && llvm::isInt<32>(low) &&
        llvm::isInt<32>(high)) {
      LaneInt product{b.CreateMul(a.scalar, c.scalar)};
      product.small = b.CreateMul(a.small, splat(b.getInt32(f), width));
      product.low = std::min(low, high);
      product.high = std::max(low, high);
      product.fromZero = a.fromZero;
      return product;
    }
  }
  if (!c.isScalar())
    width = std::max(width, widthOf(c.small ? c.small : c.wide));
  LaneInt product{i64(0)};
  product.wide = b.CreateMul(widen(a, width), widen(c, width));
  return product;
}

LaneInt KernelEmitter::atLeastOne(LaneInt a) {
  auto one = [&](Value *x, Value *least) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, least);
  };
  if (a.isScalar())
    return {one(a.scalar, i64(1))};
  int64_t width = widthOf(a.small ? a.small : a.wide);
  LaneInt result{i64(0)};
  result.wide = one(widen(a, width), splat(i64(1), width));
  return result;
}

LaneInt KernelEmitter::divideFloor(LaneInt a, LaneInt c, bool nonNegative,
                                   bool remainder) {
  auto constant =
      c.isScalar() ? llvm::dyn_cast<ConstantInt>(c.scalar) : nullptr;
  auto divide = [&](Value *x, Value *y) -> Value * {
    if (constant && constant->getSExtValue() > 0) {
      if (constant->getValue().isPowerOf2()) {
        uint64_t shift = constant->getValue().logBase2();
        return remainder ? b.CreateAnd(
                               x, llvm::ConstantInt::get(
                                      x->getType(), (uint64_t(1) << shift) - 1))
                         : b.CreateAShr(x, shift);
      }
    }
    if (nonNegative)
      return remainder ? b.CreateURem(x, y) : b.CreateUDiv(x, y);
    Value *r = b.CreateSRem(x, y);
    Value *negative =
        b.CreateICmpSLT(r, llvm::Constant::getNullValue(x->getType()));
    if (remainder) // divisors are positive
      return b.CreateAdd(
          r, b.CreateSelect(negative, y,
                            llvm::Constant::getNullValue(x->getType())));
    return b.CreateAdd(b.CreateSDiv(x, y),
                       b.CreateSExt(negative, x->getType()));
  };
  if (a.isScalar() && c.isScalar())
    return {divide(a.scalar, c.scalar)};

  int64_t by = constant ? constant->getSExtValue() : 0;
  if (!a.wide && by > 0 && by < (1 << 29) && a.high - a.low < (1 << 29)) {
    // a = by * q + r + lanes with 0 <= r < by: the lanes divide as small
    // numbers.
    int64_t shift = -llvm::divideFloorSigned(a.low, by) *
                    by; // makes the lanes non-negative
    Value *start = b.CreateSub(a.scalar, i64(shift));
    // That no lane is negative says so of the scalar where it is a lane.
    auto known = llvm::dyn_cast<ConstantInt>(start);
    bool startNonNegative =
        known ? !known->isNegative() : nonNegative && shift == 0 && a.fromZero;
    LaneInt quotient = divideFloor({start}, c, startNonNegative, false);
    Value *r = b.CreateSub(start, b.CreateMul(quotient.scalar, c.scalar));
    int64_t width = widthOf(a.small);
    Value *lanesValue = b.CreateAdd(a.small, splat(b.getInt32(shift), width));
    lanesValue =
        b.CreateAdd(lanesValue, splat(b.CreateTrunc(r, b.getInt32Ty()), width));
    int64_t top = a.high + shift + by - 1;
    Value *divisor = splat(b.getInt32(by), width);
    LaneInt result{remainder ? i64(0) : quotient.scalar};
    result.small = remainder ? b.CreateURem(lanesValue, divisor)
                             : b.CreateUDiv(lanesValue, divisor);
    result.low = 0;
    result.high = remainder ? std::min(by - 1, top) : top / by;
    result.fromZero = !remainder && shift == 0 && a.fromZero;
    return result;
  }
  int64_t width = 1;
  for (Value *vector : {a.small, a.wide, c.small, c.wide})
    if (vector)
      width = std::max(width, widthOf(vector));
  LaneInt result{i64(0)};
  result.wide = divide(widen(a, width), widen(c, width));
  return result;
}

graph::Facts KernelEmitter::laneFacts(llvm::ArrayRef<LaneInt> dims,
                                      const SymbolValues &symbols) {
  graph::Facts facts;
  for (const LaneInt &value : dims) {
    auto start = llvm::dyn_cast<ConstantInt>(value.scalar);
    graph::Interval range{0, graph::Interval::noHigh};
    if (start && !value.wide)
      range = graph::Interval{start->getSExtValue(), start->getSExtValue()} +
              graph::Interval{value.low, value.high};
    facts.dims.push_back(range);
  }
  facts.symbols = symbols.ranges;
  return facts;
}

unsigned KernelEmitter::SymbolValues::depthOf(AffineExpr expr) const {
  unsigned deepest = 0;
  expr.walk([&](AffineExpr e) {
    if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e))
      deepest = std::max(deepest, depth[symbol.getPosition()]);
  });
  return deepest;
}

/// Sizes that LLVM may see one by one in a sum. Its analyses of loops write
/// every address and bound as a sum of all that it is made of: with a hundred
/// sizes, as a Concat of that many inputs has, they take minutes.
static constexpr size_t kMostSizes = 8;

bool KernelEmitter::SymbolValues::isOfManySizes(AffineExpr expr) const {
  size_t count = 0;
  auto result = expr.walk([&](AffineExpr e) {
    auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e);
    bool varies = symbol ? depth[symbol.getPosition()] > 0
                         : llvm::isa<mlir::AffineDimExpr>(e);
    if (varies)
      return mlir::WalkResult::interrupt();
    count += !!symbol;
    return mlir::WalkResult::advance();
  });
  return !result.wasInterrupted() && count > kMostSizes;
}

/// Integers for each lane, for graph::Materializer.
struct KernelEmitter::LaneCode {
  using Value = LaneInt;
  KernelEmitter &e;
  llvm::ArrayRef<LaneInt> dims;
  const SymbolValues &symbols;

  /// Sums of many sizes are numbers that LLVM does not look into.
  template <typename F> LaneInt place(AffineExpr expr, F write) {
    LaneInt value = write();
    if (value.isScalar() && expr.getKind() == mlir::AffineExprKind::Add &&
        symbols.isOfManySizes(expr))
      value.scalar = e.b.CreateFreeze(value.scalar);
    return value;
  }
  LaneInt constant(int64_t value) { return e.constantInt(value); }
  LaneInt variable(AffineExpr expr) {
    if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(expr))
      return dims[dim.getPosition()];
    return symbols
        .values[llvm::cast<mlir::AffineSymbolExpr>(expr).getPosition()];
  }
  LaneInt add(LaneInt a, LaneInt c) { return e.add(a, c); }
  LaneInt multiply(LaneInt a, LaneInt c) { return e.multiply(a, c); }
  LaneInt atLeastOne(LaneInt c) { return e.atLeastOne(c); }
  LaneInt floorDivide(LaneInt a, LaneInt c, bool nonNegative) {
    return e.divideFloor(a, c, nonNegative, false);
  }
  LaneInt modulo(LaneInt a, LaneInt c, bool nonNegative) {
    return e.divideFloor(a, c, nonNegative, true);
  }
};

AffineExpr KernelEmitter::simplified(mlir::Operation *op, AffineExpr expr,
                                     llvm::ArrayRef<int64_t> tile,
                                     mlir::ValueRange symbols) {
  AffineExpr &form = simpleForms[{op, expr}];
  if (!form)
    form = graph::simplify(expr, tile::factsOf(tile, symbols));
  return form;
}

LaneInt KernelEmitter::evaluate(AffineExpr expr, llvm::ArrayRef<LaneInt> dims,
                                const SymbolValues &symbols,
                                const graph::Facts &facts) {
  LaneCode code{*this, dims, symbols};
  graph::Materializer write(code, facts);
  // The sizes of a sum by themselves, so that they are one number.
  graph::Sum all(expr), sizes, rest;
  rest.constant = all.constant;
  for (graph::Sum::Term &term : all.terms) {
    AffineExpr e = term.toExpr();
    bool isSize = e.isSymbolicOrConstant() && symbols.depthOf(e) == 0;
    (isSize ? sizes : rest).terms.push_back(std::move(term));
  }
  if (sizes.terms.size() <= kMostSizes || rest.isConstant())
    return write(expr);
  return add(write(rest.toExpr(expr.getContext())),
             write(sizes.toExpr(expr.getContext())));
}

KernelEmitter::SymbolValues
KernelEmitter::symbolValues(mlir::ValueRange symbols,
                            llvm::ArrayRef<int64_t> row, int64_t chunk,
                            const Geometry &geometry) {
  SymbolValues result;
  for (mlir::Value symbol : symbols) {
    if (!llvm::isa<mlir::RankedTensorType>(symbol.getType())) {
      result.values.push_back({scalar(symbol)});
      result.depth.push_back(loopDepth(symbol));
      result.ranges.push_back(tile::rangeOf(symbol));
      continue;
    }
    Geometry own = this->geometry(symbol);
    llvm::SmallVector<int64_t> at(row);
    for (auto [i, coordinate] : llvm::enumerate(at))
      if (own.shape[i] == 1)
        coordinate = 0;
    LaneInt value{i64(0)};
    if (own.inner == geometry.inner && own.inner != 1)
      value.wide = piece(symbol, own.row(at), chunk);
    else
      value.scalar = piece(symbol, own.row(at), 0);
    if (value.wide &&
        !value.wide->getType()->isVectorTy()) // a chunk of one element
      value = {value.wide};
    result.values.push_back(value);
    result.depth.push_back(~0u);
    result.ranges.push_back(tile::rangeOf(symbol));
  }
  return result;
}
