// Cells: parts of a kernel's result that its program instances have as tiles,
// so that each may store the sum of its own beside it.
#ifndef CHARONIA_GRAPH_ANALYSIS_CELLS_H
#define CHARONIA_GRAPH_ANALYSIS_CELLS_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// Whether tiles of a kernel around `op` may be any cells of its result along
/// the dimensions that a window slides over, on a GPU: a contraction of each
/// channel by itself, channels last.
bool hasTilesOfCells(GraphOpInterface op);

/// What forbids that a kernel of `ops` around `anchor` adds up cells of its
/// result by `sums`, too; null: nothing does.
const char *whyNoCells(GraphOpInterface anchor,
                       llvm::ArrayRef<mlir::Operation *> ops,
                       GraphOpInterface sums);

/// The most elements that a cell has, all of its dimensions together: a thread
/// has a vector of channels of some of them.
inline constexpr int64_t mostInCell = 128;

/// Channels that a tile of cells has at least.
inline constexpr int64_t leastChannels = 8;

} // namespace charonia::graph

#endif
