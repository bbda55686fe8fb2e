// Where views put what they take.
#ifndef CHARONIA_GRAPH_ANALYSIS_VIEWMAPS_H
#define CHARONIA_GRAPH_ANALYSIS_VIEWMAPS_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// The map from coordinates of operand `operand` to coordinates of result 0,
/// where the two are one-to-one; null otherwise.
mlir::AffineMap getForwardMap(GraphOpInterface op, unsigned operand);

/// On from the coordinates that `map` gives, of the first view's operand,
/// through all of them in turn, simplified for dims within `extents`; null
/// where that is not one-to-one, or the way back is not seen to lead to the
/// same coordinates. With `mayRoll` a view that is not one-to-one by itself is
/// looked at together with the next ones: a roll repeats its operand and takes
/// a part of that.
mlir::AffineMap composeForward(llvm::ArrayRef<GraphOpInterface> views,
                               mlir::AffineMap map,
                               llvm::ArrayRef<mlir::AffineExpr> extents,
                               bool mayRoll);

/// Whether `op` is a view that leaves every element at its byte: a reshape, or
/// a transpose that moves unit dimensions only. Its result is an alias.
bool isSameBytes(mlir::Operation *op);

/// Terms of all coordinates of a map, up to `most`; null has none.
unsigned countTerms(mlir::AffineMap map, unsigned most = 1 << 16);

/// Whether neighbours along the innermost dimension of `shape` are neighbours
/// along that of `memory`, in runs of some length at least. `map` goes from
/// coordinates of `shape` to coordinates of `memory`.
bool keepsInnermost(mlir::AffineMap map, llvm::ArrayRef<mlir::AffineExpr> shape,
                    llvm::ArrayRef<mlir::AffineExpr> memory);

} // namespace charonia::graph

#endif
