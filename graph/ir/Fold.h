// Folding of operators on constants, element by element.
//
// Pointwise operators have a scalar rule in their definition; operators that
// only move elements (views and indexing) need none: their symbolic evaluation
// tells where each element comes from. Sums and products over many elements are
// not folded here: what depends on weights alone is computed by `prepare`.
#ifndef CHARONIA_GRAPH_IR_FOLD_H
#define CHARONIA_GRAPH_IR_FOLD_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace charonia::graph {

/// The value of an operator's result, given those of its operands (null where
/// not constant); null where it is not folded. Results of more than 1024
/// elements are folded only where all elements are equal.
mlir::Attribute foldConstants(mlir::Operation *op,
                              llvm::ArrayRef<mlir::Attribute> operands);

} // namespace charonia::graph

#endif
