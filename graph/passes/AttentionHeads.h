// Keys and values that several heads of an attention share.
#ifndef CHARONIA_GRAPH_PASSES_ATTENTIONHEADS_H
#define CHARONIA_GRAPH_PASSES_ATTENTIONHEADS_H

#include "graph/passes/Expression.h"

namespace charonia::graph {

/// Where views repeat keys and values for neighbouring heads, as exporters
/// write grouped queries, the attention takes each once.
void shareHeads(AttentionOp op);

} // namespace charonia::graph

#endif
