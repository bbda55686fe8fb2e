// Cells: parts of a kernel's result that its program instances have as tiles,
// so that each may store the sum of its own beside it.
#ifndef CHARONIA_GRAPH_ANALYSIS_CELLS_H
#define CHARONIA_GRAPH_ANALYSIS_CELLS_H

#include "graph/analysis/IterationSpace.h"

namespace charonia::graph {

/// Whether tiles of a kernel around `op` may be any cells of its result along
/// the dimensions that a window slides over, on a GPU: a contraction of each
/// channel by itself, channels last.
bool hasTilesOfCells(GraphOpInterface op);

/// Whether those of a kernel around `op` have runs of the rows of one image, or
/// the like: a product, batch 1, of a known size.
bool hasTilesOfRows(GraphOpInterface op);

/// The dimension of a product's columns, if the columns of a tile of it may be
/// runs of `columnsInCell`.
std::optional<unsigned> columnOfCells(GraphOpInterface op);
/// Columns of which products add up rows in runs.
inline constexpr int64_t columnsInCell = 32;
/// Columns that a cell has at most: tiles of products have a multiple of them.
inline constexpr int64_t mostColumnsOfCell = 128;

/// How many elements along each dimension an operator gives for one of its
/// cells: one where it adds them up.
llvm::SmallVector<int64_t> keptOfCells(GraphOpInterface op);

/// What forbids that a kernel of `ops` around `anchor` adds up cells of its
/// result by `sums`, too; null: nothing does.
const char *whyNoCells(GraphOpInterface anchor,
                       llvm::ArrayRef<mlir::Operation *> ops,
                       GraphOpInterface sums);

/// Dimensions of what a kernel walks, taken as one, along which tiles have
/// whole cells of so many elements: `kept` of each are stored.
struct CellSide {
  llvm::SmallVector<unsigned> dims; ///< Of more than one element.
  int64_t cell, kept;
  bool operator==(const CellSide &) const = default;
};
/// What is cut into cells of which others have elements, and is dealt out to
/// tiles therefore; null: nothing is.
mlir::Value getCut(const IterationSpace &space, mlir::ValueRange results);
/// Empty where nothing reads cells; nothing where tiles of what is walked have
/// none of them.
std::optional<llvm::SmallVector<CellSide>>
getCellSides(const IterationSpace &space, mlir::Value first,
             mlir::ValueRange results);
/// Whether a kernel has an operator that reads cells of its operand.
bool readsCells(KernelOp kernel);
/// The same of a kernel; empty where nothing is known.
llvm::SmallVector<CellSide> getCellSides(KernelOp kernel);

/// The most elements that a cell has, all of its dimensions together.
inline constexpr int64_t mostInCell = 128;

/// The most rows of a product that are a cell: tiles have a multiple of them.
inline constexpr int64_t mostRowsOfCell = 64;

/// The most elements of a tile: a cell of some channels. Threads should load
/// all rows of a window at once, of a large one for few elements.
inline int64_t mostInTileOfCells(int64_t terms) {
  constexpr int64_t largeWindow = 16;
  return terms > largeWindow ? 1024 : 2048;
}

/// Channels of such a tile where there are `all`: runs of memory of 64 bytes as
/// halves, since fewer take a cache line's time, too, and more leave a tile few
/// places. 0: they are no vectors.
inline int64_t channelsOfCells(int64_t all) {
  constexpr int64_t least = 8, most = 32;
  int64_t width = std::min(all & -all, most);
  return width < least ? 0 : width;
}

} // namespace charonia::graph

#endif
