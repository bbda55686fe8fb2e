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
  /// [N, S..., C] instead of [N, C, S...], and filters [O, K..., C / groups].
  bool channelsLast = false;
  /// The operand, padded where its padding depends on a symbolic size.
  mlir::Value input;
  /// Of such an operand how much is in front of it and how large it was, by
  /// spatial dimension; else empty.
  struct Padded {
    mlir::AffineExpr low, size;
  };
  llvm::SmallVector<Padded> padded;
  /// The operand's first spatial dimension.
  unsigned firstSpatial() const { return channelsLast ? 1 : 2; }
};

/// Sizes in windows beyond this are taken for garbage.
constexpr int64_t maxWindow = int64_t(1) << 31;

/// Padding so that the result has ceil(size / stride) elements; the larger half
/// is behind the input with `upper`. Where a size is open the input is padded
/// with `fill`; of an average that is 0, whether it counts padding or not.
llvm::LogicalResult padSame(Window &window, bool upper, double fill,
                            Emitter &e);

/// Fails unless at least one window fits into the padded input, which is
/// assumed of sizes that are open.
llvm::LogicalResult fitWindow(const Window &window, Emitter &e);

mlir::Value buildPool(graph::PoolKind kind, const Window &window,
                      bool countPadding, Emitter &e);
/// The least number of an element type.
double lowestOf(mlir::Type element);
enum class PlaceOrder { rowMajor, columnMajor };
/// Where the first largest element of each window of a pooling lies among the
/// elements of its channel, int64; `result` is the pooling's shape. With
/// `nanWins` the last NaN is the largest element, else no element is larger.
mlir::Value buildArgMaxPool(const Window &window, Exprs result,
                            PlaceOrder order, bool nanWins, Emitter &e);
/// The convolution of `input`, which has the window's shape, with `filter`,
/// [O, C / groups, K...] unless channels are last.
mlir::Value buildConv(const Window &window, mlir::Value input,
                      mlir::Value filter, int64_t groups, Emitter &e);
/// The extents of a filter's spatial dimensions.
llvm::FailureOr<llvm::SmallVector<int64_t>> kernelOf(mlir::Value filter,
                                                     Emitter &e);

} // namespace charonia::frontend

#endif
