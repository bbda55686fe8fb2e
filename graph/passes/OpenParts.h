// Dimensions of a result that what it is computed from takes apart.
#ifndef CHARONIA_GRAPH_PASSES_OPENPARTS_H
#define CHARONIA_GRAPH_PASSES_OPENPARTS_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// The shape of a value that views and pointwise operators make, with open
/// dimensions in parts of their own that these find by divisions: what is
/// repeated along a dimension begins anew there, so that each element of a tile
/// would divide by a size to find its place. The value's own shape where there
/// are no such parts.
Exprs shapeInOpenParts(mlir::Value value, const Facts &facts);

} // namespace charonia::graph

#endif
