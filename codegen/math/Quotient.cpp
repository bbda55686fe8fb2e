#include "codegen/math/Functions.h"
#include <cmath>

using namespace mlir;
using namespace charonia;
using llvm::APFloat;

/// By a product with the reciprocal, whose remainder fma has exactly (P. W.
/// Markstein, IBM J. Res. Dev. 34, 1990; Muller et al., Handbook of
/// Floating-Point Arithmetic, "Division"): if q is within a unit of x / c and r
/// is 1 / c rounded, q + (x - c q) r rounds to x / c rounded. The first product
/// is that near where r errs by less than half of what it may; elsewhere the
/// first correction makes it so.
std::optional<Num> functions::quotientBy(const Num &x, const APFloat &c) {
  constexpr auto nearest = APFloat::rmNearestTiesToEven;
  const llvm::fltSemantics &semantics = c.getSemantics();
  APFloat one = APFloat::getOne(semantics), size = llvm::abs(c);
  // Nothing overflows, nor does what a small x leaves vanish.
  constexpr double mostSize = 1 << 24;
  if (!(size >= one) || !(size.convertToDouble() <= mostSize))
    return std::nullopt;
  APFloat inverse = one;
  inverse.divide(c, nearest);
  APFloat error = inverse;
  error.fusedMultiplyAdd(c, llvm::neg(one), nearest);
  auto constant = [&](const APFloat &value) {
    return x.constant(value.convertToDouble());
  };
  Num r = constant(inverse), minus = constant(llvm::neg(c));
  Num q = x * r;
  if (error.isZero())
    return q;
  // The remainder of what is infinite, or no number, is none, and that of zero
  // would take its sign.
  Num rest = fma(minus, q, x), near = fma(rest, r, q);
  const double half =
      std::ldexp(1.0, -int(APFloat::semanticsPrecision(semantics)) - 1);
  if (llvm::abs(error).convertToDouble() > half)
    near = fma(fma(minus, near, x), r, near);
  return select(rest.compare(arith::CmpFPredicate::ONE, x.constant(0)), near,
                q);
}
