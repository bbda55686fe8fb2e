// Overlapping windows: their sum, and transforms of each.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_FOLD_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_FOLD_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// Windows of an image: one entry a spatial dimension.
struct Windows {
  llvm::SmallVector<int64_t> kernel, strides, dilations;
  /// Lows of all dimensions, then highs.
  llvm::SmallVector<int64_t> pads;
};

/// The sum of windows where they lie in an image of the spatial extents
/// `image`: of x, [N, C * elements of a window, number of windows], the result
/// [N, C, image...].
mlir::Value buildFold(mlir::Value x, llvm::ArrayRef<mlir::AffineExpr> image,
                      const Windows &windows, Emitter &e);

/// The same of windows that are known to fit: of x, [N, C, elements of a window
/// along each dimension..., windows along each...]. An image may end up to
/// stride - 1 elements behind the last window; there it is zero.
mlir::Value addWindows(mlir::Value x, llvm::ArrayRef<mlir::AffineExpr> image,
                       const Windows &windows, Emitter &e);

/// The discrete Fourier transforms of windows of `length` elements, `step`
/// apart, each multiplied by `window`, [length], unless that is null. Of a
/// signal [N, parts, elements], with real or with real and imaginary parts, the
/// result [N, windows, frequencies, 2]; of a `onesided` one the first length /
/// 2 + 1 frequencies. `window` may also be a number. Computed in float, of
/// float64 in it.
mlir::Value buildStft(mlir::Value signal, mlir::Value window, int64_t step,
                      int64_t length, bool onesided, Emitter &e);

/// Windows [N, windows, length] added where they lie, `step` apart: [N,
/// elements].
mlir::Value buildOverlapAdd(mlir::Value frames, int64_t step, Emitter &e);

} // namespace charonia::frontend

#endif
