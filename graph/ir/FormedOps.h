// Operators that passes form (graph/ops/Formed.td).
#ifndef CHARONIA_GRAPH_IR_FORMEDOPS_H
#define CHARONIA_GRAPH_IR_FORMEDOPS_H

#include "graph/ir/Dialect.h"

#define GET_OP_CLASSES
#include "graph/ir/GraphFormedOps.h.inc"

namespace charonia::graph {

/// On a cast from a small float type: its operand is taken as it is stored,
/// rounded, although a kernel that computes it has it in f32.
inline constexpr llvm::StringLiteral kAsStoredAttr = "graph.as_stored";

} // namespace charonia::graph

#endif
