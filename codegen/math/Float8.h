// Conversions of floats of 8 bits as arithmetic, for targets that have none.
#ifndef CHARONIA_CODEGEN_MATH_FLOAT8_H
#define CHARONIA_CODEGEN_MATH_FLOAT8_H

#include "mlir/IR/Operation.h"

namespace charonia {

/// Rewrites arith.truncf to floats of 8 bits (e4m3fn, e5m2 and their fnuz
/// kinds) and arith.extf from them, on scalars and tiles below `root`. All are
/// exact: to nearest, halves to even; what is too large becomes infinite, or
/// NaN where there is no infinity; NaN stays. `hardware`: those of e4m3fn and
/// e5m2 to and from f32, f16 and bf16 stay as they are.
void expandFloat8(mlir::Operation *root, bool hardware = false);

} // namespace charonia

#endif
