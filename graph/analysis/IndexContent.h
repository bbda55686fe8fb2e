// Integer tensors whose elements are functions of their coordinates.
//
// Exporters build positions and masks from ranges: iota, views of it, sums and
// comparisons. Their elements are expressions over coordinates, e.g. of
// compare le (iota 1) (iota 0): 1 where d1 <= d0.
#ifndef CHARONIA_GRAPH_ANALYSIS_INDEXCONTENT_H
#define CHARONIA_GRAPH_ANALYSIS_INDEXCONTENT_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// Whether integers of `type` do not hold all that `content` may be.
bool mayWrap(mlir::AffineExpr content, mlir::IntegerType type,
             const Facts &facts);

/// The element of an integer or i1 tensor at `coordinates`, which are
/// expressions over dims bounded by `extents`, as an expression over these dims
/// and the module's shape symbols; null where it is none.
mlir::AffineExpr contentAt(mlir::Value value,
                           llvm::ArrayRef<mlir::AffineExpr> coordinates,
                           llvm::ArrayRef<mlir::AffineExpr> extents);

/// Expressions of which all are non-negative just where an i1 tensor holds true
/// at `coordinates`; nothing where the tensor is no such conjunction of
/// comparisons.
std::optional<Exprs> conditionsAt(mlir::Value value,
                                  llvm::ArrayRef<mlir::AffineExpr> coordinates,
                                  llvm::ArrayRef<mlir::AffineExpr> extents);

} // namespace charonia::graph

#endif
