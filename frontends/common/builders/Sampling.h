// Sampling at coordinates that are data.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_SAMPLING_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_SAMPLING_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// What lies outside of an image.
enum class SamplePadding { zeros, border, reflection };

/// Of x, [N, C, S...], the elements at `grid`, [N, D..., spatial dimensions];
/// its coordinates, the innermost axis first, go from -1 to 1: between the
/// centers of the outermost elements where `align` is set, else between their
/// edges. 1 to 3 spatial dimensions.
mlir::Value buildGridSample(mlir::Value x, mlir::Value grid,
                            graph::ResizeMode mode, SamplePadding padding,
                            bool align, Emitter &e);

/// A grid for buildGridSample: of each sample's `theta`, [N, d, d + 1], what
/// the affine map gives at the places of an image of d spatial dimensions
/// `sizes`, [N, sizes..., d]. An axis of one element lies at 0.
mlir::Value buildAffineGrid(mlir::Value theta,
                            llvm::ArrayRef<mlir::AffineExpr> sizes, bool align,
                            Emitter &e);

/// A window whose elements lie where data says.
struct DeformedWindow {
  llvm::SmallVector<int64_t> strides, dilations;
  /// Lows of both dimensions, then highs.
  llvm::SmallVector<int64_t> pads;
  int64_t groups = 1, offsetGroups = 1;
};

/// The convolution of x, [N, C, H, W], with `filter`, [O, C / groups, K, L],
/// whose elements are read from x beside their places by `offsets`, [N, offset
/// groups * K * L * 2, windows...] (down, then right), between elements
/// linearly, and 0 outside. `mask`, [N, offset groups * K * L, windows...],
/// multiplies what is read; it may be null.
mlir::Value buildDeformConv(mlir::Value x, mlir::Value filter,
                            mlir::Value offsets, mlir::Value mask,
                            const DeformedWindow &window, Emitter &e);

/// How regions of images are read: as bins of samples by samples; 0: of each
/// region as many as a bin has rows and columns, rounded up.
struct RegionGrid {
  int64_t bins[2], samples;
  /// Regions are multiplied, then moved.
  double scale, offset;
  /// Regions have an extent of at least one element.
  bool atLeastOne;
  /// The largest weighted element of a bin's samples, whose number has to be
  /// known, else their mean.
  bool largest;
};

/// Of x, [N, C, H, W], the bins of `rois`, [R, 4], (left, upper, right, lower),
/// in the images that `batches`, [R], name: [R, C, bins...].
mlir::Value buildRoiAlign(mlir::Value x, mlir::Value rois, mlir::Value batches,
                          const RegionGrid &grid, Emitter &e);

} // namespace charonia::frontend

#endif
