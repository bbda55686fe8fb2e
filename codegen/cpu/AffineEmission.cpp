// Affine expressions evaluated for the lanes of a piece. What all lanes share
// stays scalar; offsets between lanes are small 32-bit integers wherever the
// ranges of the tile's axes show it; only tile-valued symbols bring vectors of
// 64-bit integers.
#include "codegen/cpu/KernelEmitter.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
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

/// Whether a scalar integer is never negative.
static bool knownNonNegative(mlir::Value value, unsigned depth = 0) {
  if (!value.getType().isIntOrIndex() || depth > 8)
    return false;
  llvm::APInt constant;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&constant)))
    return !constant.isNegative();
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
    mlir::Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = llvm::dyn_cast<mlir::scf::ForOp>(parent))
      return argument == loop.getInductionVar() &&
             knownNonNegative(loop.getLowerBound(), depth + 1);
    return llvm::isa<mlir::func::FuncOp>(parent); // shape symbols
  }
  mlir::Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned i) {
    return knownNonNegative(op->getOperand(i), depth + 1);
  };
  using namespace mlir::arith;
  return llvm::TypeSwitch<mlir::Operation *, bool>(op)
      .Case<tile::ProgramIdOp>([](auto) { return true; })
      .Case<AddIOp, MulIOp, DivSIOp, DivUIOp, RemUIOp, MinSIOp, MinUIOp,
            CeilDivUIOp, CeilDivSIOp, FloorDivSIOp, MaxUIOp>(
          [&](auto) { return operand(0) && operand(1); })
      .Case<RemSIOp>([&](auto) { return operand(0); })
      .Case<MaxSIOp>([&](auto) { return operand(0) || operand(1); })
      .Case<SelectOp>([&](auto) { return operand(1) && operand(2); })
      .Default([](auto) { return false; });
}

/// Largest value of a scalar integer that is never negative, where constants
/// bound it: counters of loops, and the parts of the program's index.
static std::optional<int64_t> largestOf(mlir::Value value, unsigned depth = 0) {
  llvm::APInt lower, upper, step;
  if (depth > 8)
    return std::nullopt;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&lower)))
    return lower.isNegative() ? std::nullopt
                              : std::optional(lower.getSExtValue());
  auto constantOperand = [&](mlir::Operation *op) -> std::optional<int64_t> {
    if (!mlir::matchPattern(op->getOperand(1), mlir::m_ConstantInt(&upper)) ||
        !upper.isStrictlyPositive())
      return std::nullopt;
    return upper.getSExtValue();
  };
  if (mlir::Operation *op = value.getDefiningOp()) {
    if (llvm::isa<tile::ProgramIdOp>(op)) {
      auto grid = op->getParentOfType<mlir::func::FuncOp>()
                      ->getAttrOfType<mlir::AffineMapAttr>(tile::kGridAttr);
      if (!grid || !grid.getValue().isSingleConstant() ||
          grid.getValue().getSingleConstantResult() < 1)
        return std::nullopt;
      return grid.getValue().getSingleConstantResult() - 1;
    }
    if (llvm::isa<mlir::arith::RemUIOp>(op)) {
      std::optional<int64_t> by = constantOperand(op);
      return by ? std::optional(*by - 1) : std::nullopt;
    }
    if (llvm::isa<mlir::arith::DivUIOp>(op)) {
      std::optional<int64_t> by = constantOperand(op),
                             most = largestOf(op->getOperand(0), depth + 1);
      return by && most ? std::optional(*most / *by) : std::nullopt;
    }
    return std::nullopt;
  }
  auto argument = llvm::cast<mlir::BlockArgument>(value);
  auto loop =
      llvm::dyn_cast<mlir::scf::ForOp>(argument.getOwner()->getParentOp());
  if (!loop || argument != loop.getInductionVar() ||
      !mlir::matchPattern(loop.getLowerBound(), mlir::m_ConstantInt(&lower)) ||
      !mlir::matchPattern(loop.getUpperBound(), mlir::m_ConstantInt(&upper)) ||
      !mlir::matchPattern(loop.getStep(), mlir::m_ConstantInt(&step)))
    return std::nullopt;
  int64_t from = lower.getSExtValue(), to = upper.getSExtValue(),
          by = step.getSExtValue();
  if (from < 0 || to <= from || by <= 0)
    return std::nullopt;
  return from + (to - 1 - from) / by * by;
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

using Bounds = std::optional<std::pair<int64_t, int64_t>>;

static Bounds sumOf(Bounds a, Bounds c) {
  int64_t low, high;
  if (!a || !c || __builtin_add_overflow(a->first, c->first, &low) ||
      __builtin_add_overflow(a->second, c->second, &high))
    return std::nullopt;
  return std::pair(low, high);
}

static Bounds timesOf(Bounds a, int64_t factor) {
  int64_t low, high;
  if (!a || __builtin_mul_overflow(a->first, factor, &low) ||
      __builtin_mul_overflow(a->second, factor, &high))
    return std::nullopt;
  return std::pair(std::min(low, high), std::max(low, high));
}

LaneInt KernelEmitter::constantInt(int64_t value) { return {i64(value)}; }

LaneInt KernelEmitter::stepInt(int64_t start, int64_t width) {
  LaneInt value{i64(start)};
  if (width > 1) {
    value.small = stepVector(b.getInt32Ty(), width);
    value.high = width - 1;
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
      return product;
    }
  }
  if (!c.isScalar())
    width = std::max(width, widthOf(c.small ? c.small : c.wide));
  LaneInt product{i64(0)};
  product.wide = b.CreateMul(widen(a, width), widen(c, width));
  return product;
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
    bool startNonNegative = nonNegative && shift == 0;
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

bool KernelEmitter::isNonNegative(AffineExpr expr,
                                  const SymbolValues &symbols) {
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constant.getValue() >= 0;
  if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(expr))
    return symbols.nonNegative[symbol.getPosition()];
  if (llvm::isa<mlir::AffineDimExpr>(expr))
    return true;
  auto binary = llvm::cast<mlir::AffineBinaryOpExpr>(expr);
  return isNonNegative(binary.getLHS(), symbols) &&
         isNonNegative(binary.getRHS(), symbols);
}

KernelEmitter::Bounds KernelEmitter::boundsOf(AffineExpr expr,
                                              llvm::ArrayRef<LaneInt> dims,
                                              const SymbolValues &symbols) {
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(expr))
    return std::pair(constant.getValue(), constant.getValue());
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(expr)) {
    const LaneInt &value = dims[dim.getPosition()];
    auto scalar = llvm::dyn_cast<ConstantInt>(value.scalar);
    if (!scalar || value.wide)
      return std::nullopt;
    return std::pair(scalar->getSExtValue() + value.low,
                     scalar->getSExtValue() + value.high);
  }
  if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(expr)) {
    std::optional<int64_t> largest = symbols.largest[symbol.getPosition()];
    return largest ? Bounds(std::pair<int64_t, int64_t>(0, *largest))
                   : std::nullopt;
  }
  auto binary = llvm::cast<mlir::AffineBinaryOpExpr>(expr);
  auto by = llvm::dyn_cast<mlir::AffineConstantExpr>(binary.getRHS());
  Bounds left = boundsOf(binary.getLHS(), dims, symbols);
  switch (expr.getKind()) {
  case mlir::AffineExprKind::Add: {
    Bounds right = boundsOf(binary.getRHS(), dims, symbols);
    return sumOf(left, right);
  }
  case mlir::AffineExprKind::Mul:
    return by ? timesOf(left, by.getValue()) : std::nullopt;
  case mlir::AffineExprKind::FloorDiv:
    if (!by || by.getValue() < 1 || !left)
      return std::nullopt;
    return std::pair(llvm::divideFloorSigned(left->first, by.getValue()),
                     llvm::divideFloorSigned(left->second, by.getValue()));
  case mlir::AffineExprKind::Mod:
    if (!by || by.getValue() < 1)
      return std::nullopt;
    if (left && left->first >= 0 && left->second < by.getValue())
      return left;
    return std::pair<int64_t, int64_t>(0, by.getValue() - 1);
  default:
    return std::nullopt;
  }
}

KernelEmitter::Bounds KernelEmitter::boundsOf(const tile::AffineForm &form,
                                              llvm::ArrayRef<LaneInt> dims,
                                              const SymbolValues &symbols) {
  Bounds sum = std::pair(form.getConstant(), form.getConstant());
  for (const tile::AffineForm::Term &term : form.getTerms()) {
    if (term.atoms.size() != 1)
      return std::nullopt;
    sum = sumOf(
        sum, timesOf(boundsOf(term.atoms[0], dims, symbols), term.coefficient));
  }
  return sum;
}

LaneInt KernelEmitter::evaluate(AffineExpr expr, llvm::ArrayRef<LaneInt> dims,
                                const SymbolValues &symbols) {
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constantInt(constant.getValue());
  if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(expr))
    return symbols.values[symbol.getPosition()];
  auto binary = llvm::cast<mlir::AffineBinaryOpExpr>(expr);
  LaneInt lhs = evaluate(binary.getLHS(), dims, symbols);
  LaneInt rhs = evaluate(binary.getRHS(), dims, symbols);
  bool nonNegative = isNonNegative(binary.getLHS(), symbols);
  switch (expr.getKind()) {
  case mlir::AffineExprKind::Add:
    return add(lhs, rhs);
  case mlir::AffineExprKind::Mul:
    return multiply(lhs, rhs);
  case mlir::AffineExprKind::FloorDiv:
    return divideFloor(lhs, rhs, nonNegative, false);
  case mlir::AffineExprKind::Mod:
    return divideFloor(lhs, rhs, nonNegative, true);
  default: // ceil(a / c) = -floor(-a / c)
    lhs = divideFloor(multiply(lhs, constantInt(-1)), rhs, false, false);
    return multiply(lhs, constantInt(-1));
  }
}

LaneInt KernelEmitter::evaluate(const tile::AffineForm &form,
                                llvm::ArrayRef<LaneInt> dims,
                                const SymbolValues &symbols) {
  LaneInt sum = constantInt(0);
  for (const tile::AffineForm::Term &term : form.getTerms()) {
    LaneInt product = constantInt(term.coefficient);
    for (AffineExpr atom : term.atoms)
      product = multiply(product, evaluate(atom, dims, symbols));
    sum = add(sum, product);
  }
  return add(sum, constantInt(form.getConstant()));
}

KernelEmitter::SymbolValues
KernelEmitter::symbolValues(mlir::ValueRange symbols,
                            llvm::ArrayRef<int64_t> row, int64_t chunk,
                            const Geometry &geometry) {
  SymbolValues result;
  for (mlir::Value symbol : symbols) {
    if (!llvm::isa<mlir::RankedTensorType>(symbol.getType())) {
      result.values.push_back({scalar(symbol)});
      result.nonNegative.push_back(knownNonNegative(symbol));
      result.depth.push_back(loopDepth(symbol));
      result.largest.push_back(largestOf(symbol));
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
    result.nonNegative.push_back(false);
    result.depth.push_back(~0u);
    result.largest.push_back(std::nullopt);
  }
  return result;
}
