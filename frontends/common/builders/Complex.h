// Complex numbers, carried as two tensors of floats.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_COMPLEX_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_COMPLEX_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// Real and imaginary parts, of one element type; `imaginary` is null of real
/// numbers, which all functions take too. Results have both parts.
struct Complex {
  mlir::Value real, imaginary;
};

/// The parts side by side in a new last dimension, of 1 where `imaginary` is
/// null; null without a real part.
mlir::Value joinComplex(Complex z, Emitter &e);
/// The two along the last dimension; null ones of null, or of a scalar.
Complex splitComplex(mlir::Value pairs, Emitter &e);
/// Parts of `shape`, zeros where the imaginary one is missing.
Complex spreadComplex(Complex z, llvm::ArrayRef<mlir::AffineExpr> shape,
                      Emitter &e);
Complex addComplex(Complex a, Complex b, bool subtract, Emitter &e);
Complex mulComplex(Complex a, Complex b, Emitter &e);
/// Without squares that are too large or too small.
Complex divComplex(Complex a, Complex b, Emitter &e);
Complex expComplex(Complex z, Emitter &e);
/// Its imaginary part is the angle, from -pi to pi.
Complex logComplex(Complex z, Emitter &e);
/// The root whose real part is not negative.
Complex sqrtComplex(Complex z, Emitter &e);
/// base ^ exponent = exp(exponent log(base)); of 0 it is 0, for
/// exponents of 0 it is 1, and for negative ones infinite.
Complex powComplex(Complex base, Complex exponent, Emitter &e);
/// base ^ exponent by products.
Complex powComplex(Complex base, int64_t exponent, Emitter &e);
Complex sinhComplex(Complex z, Emitter &e);
Complex coshComplex(Complex z, Emitter &e);
Complex tanhComplex(Complex z, Emitter &e);
/// i z, or -i z: sin z = -i sinh(i z), cos z = cosh(i z).
Complex turnComplex(Complex z, bool back, Emitter &e);
/// |z|, as buildHypot has it.
mlir::Value absComplex(Complex z, Emitter &e);
/// z / |z|; 0 of 0.
Complex signComplex(Complex z, Emitter &e);

} // namespace charonia::frontend

#endif
