// Discrete Fourier transforms.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_FOURIER_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_FOURIER_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// A transform along one axis.
struct Fourier {
  int64_t axis = 0;
  /// Elements that are transformed: what the signal lacks is zero, what it has
  /// more is cut.
  mlir::AffineExpr length;
  bool inverse = false;
  /// Of the spectrum only the first length / 2 + 1 frequencies are there: the
  /// others mirror them, and the signal is real.
  bool onesided = false;
  /// All is divided by the length to this power: 0, 0.5 or 1.
  double norm = 0;
};

/// The transform of x, whose last dimension holds real, or real and imaginary
/// parts; that of the result holds both, but one of an inverse one that is one
/// sided. Computed in float, of float64 in it. Where the length is open, by
/// products with tables that are computed at run time (FourierOpen.cpp); it is
/// then assumed to be 1 or more.
mlir::Value buildFourier(mlir::Value x, const Fourier &how, Emitter &e);

} // namespace charonia::frontend

#endif
