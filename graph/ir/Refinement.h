// Two shapes of the same elements in row-major order, by the dimensions that
// both are made of.
#ifndef CHARONIA_GRAPH_IR_REFINEMENT_H
#define CHARONIA_GRAPH_IR_REFINEMENT_H

#include "graph/ir/Shape.h"

namespace charonia::graph {

/// Dimensions of which both of two shapes of as many elements are made by
/// merging neighbours; `first` and `second` name the dimension of either shape
/// that each is part of.
struct Refinement {
  Exprs dims;
  llvm::SmallVector<unsigned> first, second;
};
/// Nothing where the boundaries of the shapes do not nest, or cannot be seen
/// to.
std::optional<Refinement> commonRefinement(llvm::ArrayRef<mlir::AffineExpr> a,
                                           llvm::ArrayRef<mlir::AffineExpr> b);

/// An extent as parts, the outermost first, such that runs of these lengths are
/// made of whole ones; nothing where one is no multiple of all shorter ones.
std::optional<Exprs> cutIntoRuns(mlir::AffineExpr extent, Exprs runs);

/// The reshape to `result` of a transpose by `permutation`, as a reshape with a
/// transpose behind it: both work on dimensions that are neighbours on either
/// side. Nothing where they are not.
struct SunkTranspose {
  Exprs reshaped;
  llvm::SmallVector<int64_t> permutation;
};
std::optional<SunkTranspose>
sinkTranspose(llvm::ArrayRef<mlir::AffineExpr> input,
              llvm::ArrayRef<int64_t> permutation,
              llvm::ArrayRef<mlir::AffineExpr> result);

} // namespace charonia::graph

#endif
