#include "graph/analysis/Cells.h"

using namespace mlir;

namespace charonia::graph {

bool hasTilesOfCells(GraphOpInterface op) {
  if (!op || op.getRole() != OpRole::Contraction)
    return false;
  SmallVector<DimKind> kinds = op.getResultDimKinds();
  if (kinds.size() < 2 || kinds.back() != DimKind::Parallel ||
      !llvm::is_contained(kinds, DimKind::Window) ||
      llvm::any_of(kinds, [](DimKind kind) {
        return kind == DimKind::Column || kind == DimKind::Whole ||
               kind == DimKind::Row;
      }))
    return false;
  std::optional<int64_t> channels =
      constantOf(getShape(op->getResult(0)).back());
  return channels && channelsOfCells(*channels) > 0;
}

const char *whyNoCells(GraphOpInterface anchor, ArrayRef<Operation *> ops,
                       GraphOpInterface sums) {
  constexpr const char *none = "its tiles are no cells";
  if (!hasTilesOfCells(anchor))
    return none;
  SmallVector<DimKind> kinds = anchor.getResultDimKinds();
  SmallVector<int64_t> cells = sums.getCells();
  // Those are the dimensions of the result, as it is or without a place where
  // there is one element.
  if (kinds.size() != cells.size())
    return none;
  int64_t elements = 1;
  for (auto [kind, cell] : llvm::zip_equal(kinds, cells)) {
    if (cell > 1 && (kind != DimKind::Window || !llvm::isPowerOf2_64(cell) ||
                     cell > mostInCell))
      return none;
    elements *= cell;
  }
  if (elements > mostInCell)
    return none;
  bool hasOthers = llvm::any_of(ops, [](Operation *op) {
    return !cast<GraphOpInterface>(op).getCells().empty();
  });
  return hasOthers ? "a kernel has cells of one kind" : nullptr;
}

} // namespace charonia::graph
