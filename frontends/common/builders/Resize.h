// Resizing by interpolation.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_RESIZE_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_RESIZE_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// What is to be resized and how.
struct Resizing {
  // One entry an axis.
  llvm::SmallVector<int64_t> axes;
  /// By which coordinates are computed; 0 for the ratio of the extents.
  llvm::SmallVector<double> scales;
  Exprs sizes;
  /// Of axes whose scale follows from sizes: it, without dimensions, null for
  /// others; empty where there are none.
  llvm::SmallVector<mlir::Value> computedScales;

  graph::ResizeMode mode = graph::ResizeMode::nearest;
  graph::CoordinateMode coordinates = graph::CoordinateMode::asymmetric;
  graph::NearestMode nearest = graph::NearestMode::floor;
  double cubicCoefficient = -0.75;
  bool excludeOutside = false;
  /// Coordinates times the ratio of the extents, input's over result's, rounded
  /// to float, as PyTorch and TensorFlow have it; ONNX divides by the inverse.
  bool byRatio = false;
  /// Filters as wide as what an element of the result stands for.
  bool antialias = false;
  /// Part of the input that is resized: a start an axis, then an end an axis,
  /// in units of its extent; empty for all of it. What lies outside of the
  /// input is `outside`.
  llvm::SmallVector<double> region;
  double outside = 0;
};

/// x, whose axis has `from` elements, with as many along it as the matrix, of
/// [1, to, from], has rows: each a weighted sum.
mlir::Value weighAlong(mlir::Value x, int64_t axis, mlir::Value matrix,
                       Emitter &e);
/// The result's extent, rounded down in single precision as ONNX has it, where
/// an axis of `size` elements has this scale; null where it cannot be told.
mlir::AffineExpr scaledSize(mlir::AffineExpr size, const SizeElement &scale,
                            Emitter &e);

/// The resized input. Filters and regions need extents that are known.
mlir::Value buildResize(mlir::Value input, const Resizing &how, Emitter &e);

/// The same of bytes between elements, as PyTorch has it on CPUs: along one
/// axis after the other, the last one first, with weights in fixed point, each
/// time rounded to bytes. Extents have to be known.
mlir::Value buildByteResize(mlir::Value input, const Resizing &how, Emitter &e);

} // namespace charonia::frontend

#endif
