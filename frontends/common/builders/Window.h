// Convolution and pooling over sliding windows.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_WINDOW_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_WINDOW_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// A sliding window: one entry a spatial dimension.
struct Window {
  llvm::SmallVector<int64_t> kernel, strides, dilations;
  /// Lows of all dimensions, then highs.
  llvm::SmallVector<int64_t> pads;
  bool ceilMode = false;
  /// The operand, [N, C, S...], padded where its padding depends on a symbolic
  /// size.
  mlir::Value input;
};

/// Sizes in windows beyond this are taken for garbage.
constexpr int64_t maxWindow = int64_t(1) << 31;

/// Fails unless at least one window fits into the padded input, which is
/// assumed of sizes that are open.
llvm::LogicalResult fitWindow(const Window &window, Emitter &e);

mlir::Value buildPool(graph::PoolKind kind, const Window &window,
                      bool countPadding, Emitter &e);
/// The convolution of `input`, which has the window's shape, with `filter`,
/// [O, C / groups, K...].
mlir::Value buildConv(const Window &window, mlir::Value input,
                      mlir::Value filter, int64_t groups, Emitter &e);
/// The extents of a filter's spatial dimensions.
llvm::FailureOr<llvm::SmallVector<int64_t>> kernelOf(mlir::Value filter,
                                                     Emitter &e);

} // namespace charonia::frontend

#endif
