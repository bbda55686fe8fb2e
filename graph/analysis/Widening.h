// Weights that are widened where they are multiplied.
#ifndef CHARONIA_GRAPH_ANALYSIS_WIDENING_H
#define CHARONIA_GRAPH_ANALYSIS_WIDENING_H

#include "graph/analysis/Weights.h"
#include "llvm/ADT/SetVector.h"

namespace charonia::graph {

/// The cheap operators element by element that make the stationary operand of a
/// contraction of integers that take a good part less memory; none where `use`
/// is of no such operand.
llvm::SetVector<mlir::Operation *> wideningOf(mlir::OpOperand &use,
                                              WeightsOnly &weightsOnly);

} // namespace charonia::graph

#endif
