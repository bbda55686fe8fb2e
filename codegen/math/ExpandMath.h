// Elementary functions as arithmetic, for targets without a mathematics
// library.
//
// Largest errors in units of the last place against the exact value, over the
// whole range unless stated; the tests measure them (tests/codegen/math):
//
//               f32    f64
//   exp, exp2   1.5    1.5    results below the smallest normal number are 0
//   expm1       2      2
//   log         1.5    1.5    log2, log10, log1p: 2.5
//   tanh        2.5    3
//   erf         1.5    3      erfc: 3.5 and 4
//   sin, cos    1.5    2      tan: 3.5 and 4; f64: |x| <= 2^45
//   asin        2.5    3      acos: 2 and 3, atan: 1.5 and 2
//   sinh, cosh  3      3
//   asinh       3.5    4      acosh: 3 and 4, atanh: 3 and 4
//   pow         1      3
//   rsqrt       1.5    1.5
//   x / c       0.5    0.5    constants of 1 to 2^24; |x| >= 2^-100, 2^-900
//   fmod        exact  exact  quotients up to 2^250 (f32), 2^200 (f64)
#ifndef CHARONIA_CODEGEN_MATH_EXPANDMATH_H
#define CHARONIA_CODEGEN_MATH_EXPANDMATH_H

#include "mlir/IR/Operation.h"

namespace charonia {

/// What the target has in hardware for f32 and what therefore stays a math
/// operator.
struct ExpandMathOptions {
  bool exp = false;  ///< exp stays.
  bool exp2 = false; ///< exp becomes exp2 of a product.
  bool log2 = false; ///< log becomes a product of log2.
  bool rsqrt = false;
  bool tanh = false;
  bool div = false; ///< Quotients by constants stay.
};

/// Rewrites math operators, arith.remf and quotients by constants on f32 and
/// f64, scalars and tiles, below `root` to arith operators and to those of math
/// that every target has: absf, ceil, copysign, floor, fma, roundeven, sqrt,
/// trunc.
void expandMath(mlir::Operation *root, const ExpandMathOptions &options = {});

} // namespace charonia

#endif
