// Cutting tensors along one dimension.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_SLICE_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_SLICE_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// Where a slice begins and how many elements it takes.
struct SliceRange {
  mlir::AffineExpr start, count;
  int64_t step = 1;
};

/// NumPy's slice start:end:step of `size` elements: negative bounds count from
/// the end, and bounds are clamped. Null sizes and a failure where it cannot be
/// told for all sizes which bound is larger, nor be assumed. Stepping back from
/// before the first element takes nothing; with `startsInside`, as ONNX has it,
/// it begins with the first.
SliceRange cutSlice(mlir::AffineExpr start, mlir::AffineExpr end, int64_t step,
                    mlir::AffineExpr size, Emitter &e,
                    bool startsInside = false);

/// The elements of `range` along `axis`.
mlir::Value sliceAlong(mlir::Value value, int64_t axis, const SliceRange &range,
                       Emitter &e);

/// `value` with elements moved by `shift` along `axis`: what leaves at one end
/// comes in at the other.
mlir::Value buildRoll(mlir::Value value, mlir::AffineExpr shift, int64_t axis,
                      Emitter &e);

} // namespace charonia::frontend

#endif
