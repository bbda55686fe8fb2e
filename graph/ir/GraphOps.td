// All operators of the graph dialect, by family.
#ifndef CHARONIA_GRAPH_OPS
#define CHARONIA_GRAPH_OPS

include "graph/ops/Structure.td"
include "graph/ops/Elementwise.td"
include "graph/ops/Contraction.td"
include "graph/ops/Reduction.td"
include "graph/ops/View.td"
include "graph/ops/Index.td"
include "graph/ops/Ordered.td"

#endif
