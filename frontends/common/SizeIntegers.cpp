// Integers among what follows from sizes: quotients, choices and bits.
#include "frontends/common/SizeCases.h"
#include "frontends/common/SizeEvaluator.h"

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Operation;
using StepOp = graph::SizeStep::Op;

static AffineExpr numberLike(AffineExpr expr, int64_t value) {
  return mlir::getAffineConstantExpr(value, expr.getContext());
}

AffineExpr SizeEvaluator::define(AffineExpr a, AffineExpr b, StepOp op) {
  return symbols.define(
      {{StepOp::Size, a, 0}, {StepOp::Size, b, 0}, {op, {}, 0}});
}

/// Rounded toward zero.
AffineExpr SizeEvaluator::quotient(AffineExpr a, AffineExpr b) {
  AffineExpr zero = numberLike(a, 0);
  if (auto by = graph::constantOf(b); by && *by > 0) {
    if (symbols.isAtLeast(a, zero))
      return graph::simplify(a.floorDiv(b));
    if (symbols.isAtLeast(zero, a))
      return graph::simplify(-(-a).floorDiv(b));
  }
  return define(a, b, StepOp::TruncDiv);
}

/// Rounded down, of b >= 1.
AffineExpr SizeEvaluator::modulo(AffineExpr a, AffineExpr b) {
  if (!symbols.isAtLeast(b, numberLike(b, 1)))
    return {};
  return graph::constantOf(b) ? graph::simplify(a % b)
                              : define(a, b, StepOp::Mod);
}

/// With the sign of `a`.
AffineExpr SizeEvaluator::remainder(AffineExpr a, AffineExpr b) {
  AffineExpr zero = numberLike(a, 0);
  if (symbols.isAtLeast(b, numberLike(b, 1))) {
    if (symbols.isAtLeast(a, zero))
      return modulo(a, b);
    if (symbols.isAtLeast(zero, a)) {
      AffineExpr rest = modulo(graph::simplify(-a), b);
      return rest ? graph::simplify(-rest) : rest;
    }
  }
  AffineExpr whole = define(a, b, StepOp::TruncDiv);
  return whole ? graph::simplify(a - b * whole) : AffineExpr();
}

/// The bits of `a` that are set in `mask` >= 0; `a` may be negative, since
/// divisions round down.
static AffineExpr maskedBits(AffineExpr a, int64_t mask) {
  AffineExpr sum = numberLike(a, 0);
  for (unsigned low = 0; mask >> low;) {
    unsigned end = low;
    while ((mask >> end) & 1)
      ++end;
    if (end > low)
      sum =
          sum + (a.floorDiv(int64_t(1) << low) % (int64_t(1) << (end - low))) *
                    (int64_t(1) << low);
    low = std::max(end, low + 1);
  }
  return graph::simplify(sum);
}

/// Bits of a size and a constant, on i1 the logical operator; null for others.
AffineExpr SizeEvaluator::bitwise(Operation *op, AffineExpr a, AffineExpr b) {
  AffineExpr both;
  if (mlir::getElementTypeOrSelf(op->getResult(0).getType()).isInteger(1)) {
    both = largerOf(symbols, a, b, false);
  } else {
    // Bits beyond those of sizes are all set or none is.
    constexpr int64_t most = maxDimension;
    if (graph::constantOf(a))
      std::swap(a, b);
    auto mask = graph::constantOf(b);
    if (!mask || *mask > most || *mask < -most)
      return {};
    both = *mask >= 0 ? maskedBits(a, *mask) : a - maskedBits(a, ~*mask);
  }
  if (!both || llvm::isa<graph::AndOp>(op))
    return both ? graph::simplify(both) : both;
  return graph::simplify(a + b -
                         (llvm::isa<graph::XorOp>(op) ? both * 2 : both));
}

bool SizeEvaluator::fits(AffineExpr size, mlir::Type type) const {
  if (type.isIndex())
    return true;
  unsigned bits = type.getIntOrFloatBitWidth();
  bool hasSign = !type.isUnsignedInteger();
  if (bits == 1 || (bits >= 32 && hasSign))
    return true;
  graph::Interval range = symbols.bounds(size);
  if (bits >= 32)
    return range.low >= 0;
  int64_t half = int64_t(1) << (bits - 1);
  return hasSign ? range.low >= -half && range.high < half
                 : range.low >= 0 && range.high < 2 * half;
}

SizeElement SizeEvaluator::integers(Operation *op,
                                    llvm::ArrayRef<SizeElement> x) {
  SmallVector<AffineExpr> sizes;
  for (const SizeElement &element : x)
    sizes.push_back(symbols.resolve(element.size));
  AffineExpr a = sizes[0], b = sizes.size() > 1 ? sizes[1] : AffineExpr();
  mlir::Type type = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  // What does not fit wraps, and is no size of ours.
  auto of = [&](AffineExpr size) {
    return size && fits(size, type) ? SizeElement::ofSize(size) : SizeElement();
  };
  if (llvm::isa<graph::MaxOp, graph::MinOp>(op))
    return of(largerOf(symbols, a, b, llvm::isa<graph::MaxOp>(op)));
  if (llvm::isa<graph::AbsOp>(op)) {
    AffineExpr size = largerOf(symbols, a, graph::simplify(-a), true);
    symbols.learnAtLeast(size, numberLike(a, 0));
    return of(size);
  }
  if (llvm::isa<graph::SignOp>(op)) {
    AffineExpr above = truthOf(symbols, Predicate::gt, a, numberLike(a, 0)),
               below = truthOf(symbols, Predicate::lt, a, numberLike(a, 0));
    return of(above && below ? graph::simplify(above - below) : AffineExpr());
  }
  if (llvm::isa<graph::DivOp>(op))
    return of(quotient(a, b));
  if (llvm::isa<graph::FmodOp>(op))
    return of(remainder(a, b));
  if (llvm::isa<graph::ModOp>(op))
    return of(modulo(a, b));
  if (llvm::isa<graph::AndOp, graph::OrOp, graph::XorOp>(op))
    return of(bitwise(op, a, b));
  if (llvm::isa<graph::ShlOp, graph::ShrOp>(op)) {
    constexpr int64_t mostShift = 32;
    auto by = graph::constantOf(b);
    if (!by || *by < 0 || *by > mostShift)
      return {};
    return of(graph::simplify(llvm::isa<graph::ShlOp>(op)
                                  ? a * (int64_t(1) << *by)
                                  : a.floorDiv(int64_t(1) << *by)));
  }
  // Sums and products, by the operator's own rule.
  AffineExpr result = llvm::cast<graph::GraphOpInterface>(op).evaluateElement(
      sizes, graph::Exprs());
  return of(result ? graph::simplify(result) : result);
}
