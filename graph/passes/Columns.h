// Columns of products in another order: what meets element by element is then
// in one tile, and in one thread of it.
#ifndef CHARONIA_GRAPH_PASSES_COLUMNS_H
#define CHARONIA_GRAPH_PASSES_COLUMNS_H

#include "graph/analysis/Weights.h"
#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// Columns in turn of one and of the other: what a thread has side by side of
/// the sums of a product, in its rows or across them, or a multiple of it.
inline constexpr int64_t kColumnRun = 8;

/// Whether the columns of a product are those of weights, which may lie in
/// another order, and its rows are not. Narrow weights stay as they are.
bool hasOwnColumns(GraphOpInterface product, WeightsOnly &weightsOnly);
/// Rows at the sizes to optimize for.
int64_t rowsOf(GraphOpInterface product);
/// A product's result, or its sum with weights that have a number for each
/// column.
mlir::Value behindBias(GraphOpInterface product, WeightsOnly &weightsOnly);

/// Whether what operators compute, of each of a product's columns, has room
/// behind it in its kernel, with what is there already.
bool fitBehindProduct(llvm::ArrayRef<mlir::Operation *> ops);

/// `groups` groups along dimension `dim`, each of two halves, with runs of both
/// in turn; the dimension is a multiple of 2 * groups * kColumnRun. `stored`:
/// what reads it finds neighbours side by side in memory.
mlir::Value halvesInTurn(mlir::OpBuilder &builder, mlir::Location location,
                         mlir::Value value, unsigned dim, int64_t groups,
                         bool stored = true);
/// The same order back.
mlir::Value halvesApart(mlir::OpBuilder &builder, mlir::Location location,
                        mlir::Value value, unsigned dim, int64_t groups);
/// The same of what behindBias gives, by its weights.
void putHalvesInTurn(GraphOpInterface product, int64_t groups,
                     WeightsOnly &weightsOnly);

} // namespace charonia::graph

#endif
