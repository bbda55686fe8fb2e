#include "graph/analysis/Cells.h"

using namespace mlir;

namespace charonia::graph {

static bool hasKind(ArrayRef<DimKind> kinds, DimKind kind) {
  return llvm::is_contained(kinds, kind);
}

bool hasTilesOfCells(GraphOpInterface op) {
  if (!op || op.getRole() != OpRole::Contraction)
    return false;
  SmallVector<DimKind> kinds = op.getResultDimKinds();
  if (kinds.size() < 2 || kinds.back() != DimKind::Parallel ||
      !hasKind(kinds, DimKind::Window) || hasKind(kinds, DimKind::Column) ||
      hasKind(kinds, DimKind::Whole) || hasKind(kinds, DimKind::Row))
    return false;
  std::optional<int64_t> channels =
      constantOf(getShape(op->getResult(0)).back());
  return channels && channelsOfCells(*channels) > 0;
}

bool hasTilesOfRows(GraphOpInterface op) {
  if (!op || op.getRole() != OpRole::Contraction)
    return false;
  SmallVector<DimKind> kinds = op.getResultDimKinds();
  Exprs shape = getShape(op->getResult(0));
  constexpr unsigned leastRank = 3;
  if (kinds.size() < leastRank || kinds.back() != DimKind::Column ||
      constantOf(shape.front()) != 1 || !constantOf(shape.back()))
    return false;
  for (auto [kind, extent] :
       llvm::zip_equal(ArrayRef(kinds).drop_front().drop_back(),
                       ArrayRef(shape).drop_front().drop_back()))
    if (kind != DimKind::Row || !constantOf(extent))
      return false;
  return true;
}

/// Whether cells are those of the image that a contraction of each channel by
/// itself gives.
static bool areOfImage(GraphOpInterface anchor, ArrayRef<int64_t> cells) {
  SmallVector<DimKind> kinds = anchor.getResultDimKinds();
  if (!hasTilesOfCells(anchor) || kinds.size() != cells.size())
    return false;
  int64_t elements = 1;
  for (auto [kind, cell] : llvm::zip_equal(kinds, cells)) {
    if (cell > 1 && (kind != DimKind::Window || !llvm::isPowerOf2_64(cell) ||
                     cell > mostInCell))
      return false;
    elements *= cell;
  }
  return elements <= mostInCell;
}

/// Whether cells are runs of the rows of a product.
static bool areOfRows(GraphOpInterface anchor, ArrayRef<int64_t> cells,
                      ArrayRef<AffineExpr> shape) {
  constexpr unsigned rank = 3;
  if (!hasTilesOfRows(anchor) || cells.size() != rank)
    return false;
  Exprs result = getShape(anchor->getResult(0));
  return cells[0] == 1 && cells[2] == 1 && llvm::isPowerOf2_64(cells[1]) &&
         cells[1] <= mostRowsOfCell && constantOf(shape[0]) == 1 &&
         shape[2] == result.back();
}

const char *whyNoCells(GraphOpInterface anchor, ArrayRef<Operation *> ops,
                       GraphOpInterface sums) {
  SmallVector<int64_t> cells = sums.getCells();
  if (!areOfImage(anchor, cells) &&
      !areOfRows(anchor, cells, getShape(sums->getOperand(0))))
    return "its tiles are no cells";
  bool hasOthers = llvm::any_of(ops, [](Operation *op) {
    return !cast<GraphOpInterface>(op).getCells().empty();
  });
  return hasOthers ? "a kernel has cells of one kind" : nullptr;
}

} // namespace charonia::graph
