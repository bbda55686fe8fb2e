// Integers among what follows from sizes: quotients, choices and bits.
#include "frontends/common/SizeAlgebra.h"
#include "frontends/common/SizeCases.h"
#include "graph/ir/Dialect.h"

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using mlir::AffineExpr;
using StepOp = graph::SizeStep::Op;

static AffineExpr numberLike(AffineExpr expr, int64_t value) {
  return mlir::getAffineConstantExpr(value, expr.getContext());
}

AffineExpr SizeAlgebra::define(AffineExpr a, AffineExpr b, StepOp op) {
  return symbols.define(
      {{StepOp::Size, a, 0}, {StepOp::Size, b, 0}, {op, {}, 0}});
}

AffineExpr SizeAlgebra::named(AffineExpr size) {
  return define(size, numberLike(size, 0), StepOp::Sub);
}

AffineExpr SizeAlgebra::quotient(AffineExpr a, AffineExpr b) {
  AffineExpr zero = numberLike(a, 0);
  if (auto by = graph::constantOf(b); by && *by > 0) {
    if (symbols.isAtLeast(a, zero))
      return graph::simplify(a.floorDiv(b));
    if (symbols.isAtLeast(zero, a))
      return graph::simplify(-(-a).floorDiv(b));
  }
  return define(a, b, StepOp::TruncDiv);
}

AffineExpr SizeAlgebra::modulo(AffineExpr a, AffineExpr b) {
  if (!symbols.isAtLeast(b, numberLike(b, 1)))
    return {};
  if (graph::constantOf(b))
    return graph::simplify(a % b);
  AffineExpr rest = define(a, b, StepOp::Mod);
  symbols.learnAtLeast(graph::simplify(b - 1), rest);
  if (rest && symbols.isAtLeast(a, numberLike(a, 0)))
    symbols.learnAtLeast(a, rest);
  return rest;
}

AffineExpr SizeAlgebra::remainder(AffineExpr a, AffineExpr b) {
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

AffineExpr SizeAlgebra::bitAnd(AffineExpr a, AffineExpr b, mlir::Type type) {
  if (mlir::getElementTypeOrSelf(type).isInteger(1))
    return largerOf(symbols, a, b, false);
  // Bits beyond those of sizes are all set or none is.
  constexpr int64_t most = maxDimension;
  if (graph::constantOf(a))
    std::swap(a, b);
  auto mask = graph::constantOf(b);
  if (!mask || *mask > most || *mask < -most)
    return {};
  return graph::simplify(*mask >= 0 ? maskedBits(a, *mask)
                                    : a - maskedBits(a, ~*mask));
}

AffineExpr SizeAlgebra::bitOr(AffineExpr a, AffineExpr b, mlir::Type type) {
  AffineExpr both = bitAnd(a, b, type);
  return both ? graph::simplify(a + b - both) : both;
}

AffineExpr SizeAlgebra::bitXor(AffineExpr a, AffineExpr b, mlir::Type type) {
  AffineExpr both = bitAnd(a, b, type);
  return both ? graph::simplify(a + b - both * 2) : both;
}

/// 2 to the `by`; nothing where that is not known, or no factor of a size.
static std::optional<int64_t> powerOfTwo(AffineExpr by) {
  constexpr int64_t mostShift = 32;
  auto bits = graph::constantOf(by);
  if (!bits || *bits < 0 || *bits > mostShift)
    return std::nullopt;
  return int64_t(1) << *bits;
}

AffineExpr SizeAlgebra::shiftLeft(AffineExpr a, AffineExpr by) {
  auto factor = powerOfTwo(by);
  return factor ? graph::simplify(a * *factor) : AffineExpr();
}

AffineExpr SizeAlgebra::shiftRight(AffineExpr a, AffineExpr by) {
  auto divisor = powerOfTwo(by);
  return divisor ? graph::simplify(a.floorDiv(*divisor)) : AffineExpr();
}

AffineExpr SizeAlgebra::larger(AffineExpr a, AffineExpr b) {
  return largerOf(symbols, a, b, true);
}

AffineExpr SizeAlgebra::smaller(AffineExpr a, AffineExpr b) {
  return largerOf(symbols, a, b, false);
}

AffineExpr SizeAlgebra::magnitude(AffineExpr a) {
  AffineExpr size = largerOf(symbols, a, graph::simplify(-a), true);
  if (size)
    symbols.learnAtLeast(size, numberLike(a, 0));
  return size;
}

AffineExpr SizeAlgebra::sign(AffineExpr a) {
  AffineExpr above = truthOf(symbols, Predicate::gt, a, numberLike(a, 0)),
             below = truthOf(symbols, Predicate::lt, a, numberLike(a, 0));
  return above && below ? graph::simplify(above - below) : AffineExpr();
}
