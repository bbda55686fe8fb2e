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

/// Whether the contraction is one of at most `mostRows` rows, at these values
/// of the symbols: tiles of other rows widen again what they read. Where there
/// is a limit it is of plain products; windows have their filters in an order
/// of their own.
bool widensInside(mlir::OpOperand &use, llvm::ArrayRef<int64_t> optimum,
                  int64_t mostRows);

} // namespace charonia::graph

#endif
