// Products of bytes of which two fit 16 bits.
#ifndef CHARONIA_GRAPH_ANALYSIS_PAIRS_H
#define CHARONIA_GRAPH_ANALYSIS_PAIRS_H

#include "mlir/IR/Operation.h"

namespace charonia::graph {

/// Whether `notePairsFit` was said of a contraction of bytes: any two of its
/// products add up to what 16 bits with a sign hold. A CPU's `vpmaddubsw`, which
/// saturates, is exact then.
bool pairsFit(mlir::Operation *op);

/// Notes it. It is true of the operands the contraction has now.
void notePairsFit(mlir::Operation *op);

} // namespace charonia::graph

#endif
