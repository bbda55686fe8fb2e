// The place of a row's best element as a maximum of integers.
#ifndef CHARONIA_GRAPH_PASSES_PLACEKEYS_H
#define CHARONIA_GRAPH_PASSES_PLACEKEYS_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// What `op` gives, by a maximum of integers of 64 bits that hold an element's
/// place behind its value: maxima are combined in steps, places are not. Null
/// where values have no room beside their places.
mlir::Value writePlaceByKeys(mlir::OpBuilder &builder, ArgReduceOp op);

} // namespace charonia::graph

#endif
