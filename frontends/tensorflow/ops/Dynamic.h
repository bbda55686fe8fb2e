// Indices that are data.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_OPS_DYNAMIC_H
#define CHARONIA_FRONTENDS_TENSORFLOW_OPS_DYNAMIC_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend::tensorflow {

/// `count` elements of `x` along `axis` from `start` on, an int64 of one
/// element; what lies outside of `x` reads 0.
mlir::Value takeAt(mlir::Value x, int64_t axis, mlir::Value start,
                   mlir::AffineExpr count, Emitter &emitter);
/// Indices that do not count from the end, as those of graph operators do: one
/// below 0 lies outside of what it indexes. Constants may not be such.
mlir::Value indicesFromStart(mlir::Value indices, Emitter &emitter);
/// Element i of a vector of integers, int64[1].
mlir::Value startAt(mlir::Value starts, int64_t i, Emitter &emitter);

} // namespace charonia::frontend::tensorflow

#endif
