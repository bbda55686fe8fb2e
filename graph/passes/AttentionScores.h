// From the softmax of an attention to the product of queries and keys.
#ifndef CHARONIA_GRAPH_PASSES_ATTENTIONSCORES_H
#define CHARONIA_GRAPH_PASSES_ATTENTIONSCORES_H

#include "graph/passes/AttentionMatch.h"

namespace charonia::graph {

/// Finds the product, the scales and the masks that make `x`, what the softmax
/// is of, which `canonical` turns to canonical scores. Gives the way of the
/// product's result to these, or nothing where the form is another.
std::optional<Route> peelScores(Attention &found, Term x,
                                const std::optional<ScoreView> &canonical);

} // namespace charonia::graph

#endif
