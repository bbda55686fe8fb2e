// Chains of views as one map, and maps as short chains of views.
#ifndef CHARONIA_GRAPH_PASSES_VIEWS_H
#define CHARONIA_GRAPH_PASSES_VIEWS_H

#include "graph/ir/Dialect.h"
#include "mlir/IR/Builders.h"

namespace charonia::graph {

/// How a map is made of views: slice, reshape (splits dimensions, drops those
/// of one element), transpose, reshape, broadcast; those that change nothing
/// left out.
struct ViewPlan {
  mlir::AffineMap starts;
  llvm::SmallVector<int64_t> steps;
  Exprs sliced, split;
  llvm::SmallVector<int64_t> permutation;
  Exprs unsplit, result;
  /// Views that this takes, given the input's shape.
  unsigned countViews(llvm::ArrayRef<mlir::AffineExpr> input) const;
};

/// The plan of `map` from coordinates of `result` to those of `input`; nothing
/// where such views do not make it.
std::optional<ViewPlan> planViews(mlir::AffineMap map,
                                  llvm::ArrayRef<mlir::AffineExpr> input,
                                  llvm::ArrayRef<mlir::AffineExpr> result);

/// The views of a plan.
mlir::Value buildViews(mlir::OpBuilder &builder, mlir::Location location,
                       mlir::Value input, const ViewPlan &plan);

/// The view that makes a value and is composed with its readers; null where
/// none does, or that is stored.
GraphOpInterface composedView(mlir::Value value);

/// The permutation of a view that does nothing but permute dimensions:
/// dimension i of the value is dimension permutation[i] of the view's operand.
/// Nothing for other values.
std::optional<llvm::SmallVector<int64_t>> permutationOf(mlir::Value value);

/// The transpose of a value by a permutation of its last dimensions, or of more
/// after dimensions of one element are added in front; transposes that cancel
/// are left out.
mlir::Value transposedBy(mlir::OpBuilder &builder, mlir::Value value,
                         llvm::ArrayRef<int64_t> permutation);

/// Replaces the longest chain of views that ends in `last` and that fewer views
/// make; false: there is none. The old views are left for dead-code removal.
bool shortenViews(GraphOpInterface last, mlir::OpBuilder &builder);

} // namespace charonia::graph

#endif
