// Transposed convolution.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_CONVTRANSPOSE_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_CONVTRANSPOSE_H

#include "frontends/common/builders/Window.h"

namespace charonia::frontend {

/// One entry a spatial dimension.
struct TransposedWindow {
  llvm::SmallVector<int64_t> kernel, strides, dilations;
  /// Lows of all dimensions, then highs, which are taken off the result.
  llvm::SmallVector<int64_t> pads;
  llvm::SmallVector<int64_t> outputPadding;
  int64_t groups = 1;
};

/// The transposed convolution of x, [N, C, S...], with `filter`,
/// [C, O / groups, K...]: convolutions of the input whose results are laid side
/// by side.
mlir::Value buildConvTranspose(mlir::Value x, mlir::Value filter,
                               const TransposedWindow &window, Emitter &e);

/// The convolution of `x` with `filter`, [O, C / groups, K...], as one product
/// of all taps whose rows, runs of the image, are added up: a convolution to
/// few channels without steps is a transposed one. Null where a convolution is
/// the better way.
mlir::Value convolveByProduct(mlir::Value x, mlir::Value filter,
                              const Window &window, int64_t groups, Emitter &e);

} // namespace charonia::frontend

#endif
