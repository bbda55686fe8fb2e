// Functions of one or two numbers, as compositions of elementwise operators.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_SPECIAL_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_SPECIAL_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// sqrt(a^2 + b^2) of floats of one type, without squares that are too large or
/// too small; in float of half types. Infinite where either is.
mlir::Value buildHypot(mlir::Value a, mlir::Value b, Emitter &e);
/// x * log(y), or x * log(1 + y): 0 where x is, but NaN where y is.
mlir::Value buildXLogY(mlir::Value x, mlir::Value y, bool plusOne, Emitter &e);
/// The angle of (x, y), from -pi to pi.
mlir::Value buildAtan2(mlir::Value y, mlir::Value x, Emitter &e);
/// Whether floats have a negative sign, as -0.0 has.
mlir::Value buildSignBit(mlir::Value x, Emitter &e);
/// log(exp(a) + exp(b)) of floats of one type; of powers of another base than e
/// with its logarithm, `scale`.
mlir::Value buildLogAddExp(mlir::Value a, mlir::Value b, Emitter &e,
                           double scale = 1);
/// The modified Bessel function of the first kind of float64, of order 0 or 1;
/// times exp(-|x|) with `scaled`.
mlir::Value buildBesselI(mlir::Value x, int order, bool scaled, Emitter &e);

} // namespace charonia::frontend

#endif
