// What the program instances of a kernel walk.
#ifndef CHARONIA_GRAPH_ANALYSIS_WALKED_H
#define CHARONIA_GRAPH_ANALYSIS_WALKED_H

#include "graph/analysis/IterationSpace.h"

namespace charonia::graph {

/// On kernels that walk the product that they have, not their first result:
/// rows that they store lie in another order, and what they multiply in the
/// product's, so that it is copied ahead as it lies. Rows past the product's
/// last are nobody's, though views may lead them anywhere.
inline constexpr llvm::StringLiteral kWalksProductAttr = "graph.walks_product";

/// Whether an operator is a product that gives rows of columns, in whatever
/// dimensions: of these, views move some as a whole.
bool givesRows(GraphOpInterface op);

/// Whether what a kernel stores, all of which has a place in its space, may be
/// stored by one that walks its product.
bool followFromProduct(const IterationSpace &space, GraphOpInterface product,
                       mlir::ValueRange results);
bool mayWalkProduct(KernelOp kernel);

/// Whether a kernel should: rows that it stores lie in another order than the
/// product's, and what it multiplies in that, or not all in one order, or no
/// other value leads to all of them.
bool shouldWalkProduct(KernelOp kernel);

/// The value that coordinates of a kernel's results follow from: the first of
/// them, the product that it walks, or what is cut into cells of which others
/// have elements.
mlir::Value getFirst(KernelOp kernel);

/// The value inside of the kernel whose elements are dealt out to program
/// instances: that one, or the operand that its operator walks.
mlir::Value getWalked(KernelOp kernel);

} // namespace charonia::graph

#endif
