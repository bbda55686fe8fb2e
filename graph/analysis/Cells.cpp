#include "graph/analysis/Cells.h"
#include "graph/analysis/Walked.h"

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
  if (!hasTilesOfCells(anchor))
    return false;
  SmallVector<DimKind> kinds = anchor.getResultDimKinds();
  if (kinds.size() != cells.size())
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

std::optional<unsigned> columnOfCells(GraphOpInterface op) {
  if (!op || op.getRole() != OpRole::Contraction)
    return std::nullopt;
  SmallVector<DimKind> kinds = op.getResultDimKinds();
  std::optional<Columns> columns = op.getColumns();
  if (!columns || kinds.empty() || columns->resultDim + 1 != kinds.size() ||
      hasKind(kinds, DimKind::Whole))
    return std::nullopt;
  return columns->resultDim;
}

/// Whether cells are runs of a product's columns.
static bool areColumns(ArrayRef<int64_t> cells) {
  return !cells.empty() && cells.back() == columnsInCell &&
         llvm::all_of(cells.drop_back(), [](int64_t c) { return c == 1; });
}

const char *whyNoCells(GraphOpInterface anchor, ArrayRef<Operation *> ops,
                       GraphOpInterface sums) {
  SmallVector<int64_t> cells = sums.getCells();
  // Of the same cells several values may be added up.
  if (columnOfCells(anchor) && areColumns(cells) &&
      llvm::all_of(ops, [](Operation *op) {
        SmallVector<int64_t> others = cast<GraphOpInterface>(op).getCells();
        return others.empty() || areColumns(others);
      }))
    return nullptr;
  if (!areOfImage(anchor, cells) &&
      !areOfRows(anchor, cells, getShape(sums->getOperand(0))))
    return "its tiles are no cells";
  bool hasOthers = llvm::any_of(ops, [](Operation *op) {
    return !cast<GraphOpInterface>(op).getCells().empty();
  });
  return hasOthers ? "a kernel has cells of one kind" : nullptr;
}

/// The dimensions of more than one element of which a coordinate is the place
/// in row-major order; nothing where it is something else.
static std::optional<SmallVector<unsigned>> runOf(AffineExpr coordinate,
                                                  ArrayRef<AffineExpr> shape) {
  SmallVector<unsigned> dims;
  AffineExpr place = getAffineConstantExpr(0, coordinate.getContext());
  for (auto [d, extent] : llvm::enumerate(shape)) {
    if (!coordinate.isFunctionOfDim(d) || constantOf(extent) == 1)
      continue;
    dims.push_back(d);
    place = place * extent + getAffineDimExpr(d, coordinate.getContext());
  }
  AffineMap apart = simplify(
      mapOf(shape.size(), {coordinate - place}, place.getContext()), shape);
  return constantOf(apart.getResult(0)) == 0 ? std::optional(dims)
                                             : std::nullopt;
}

std::optional<SmallVector<CellSide>>
getCellSides(const IterationSpace &space, Value first, ValueRange results) {
  std::optional<SmallVector<CellSide>> all;
  for (Value result : results) {
    auto place = space.lookup(result);
    if (!place || place->extent != IterationSpace::Extent::Cell)
      continue;
    auto op = result.getDefiningOp<GraphOpInterface>();
    AffineMap map = space.mapBetween(first, op->getOperand(0));
    if (!map)
      return std::nullopt;
    SmallVector<CellSide> sides;
    for (auto [e, cell] : llvm::zip_equal(map.getResults(), op.getCells())) {
      if (cell == 1)
        continue;
      auto run = runOf(e, getShape(first));
      if (!run)
        return std::nullopt;
      if (!run->empty())
        sides.push_back({*run, cell});
    }
    if (all && *all != sides)
      return std::nullopt;
    all = sides;
  }
  return all ? all : SmallVector<CellSide>();
}

SmallVector<CellSide> getCellSides(KernelOp kernel) {
  std::optional<IterationSpace> space = getIterationSpace(kernel);
  if (!space)
    return {};
  return getCellSides(*space, getFirst(kernel),
                      kernel.getBody().front().getTerminator()->getOperands())
      .value_or(SmallVector<CellSide>());
}

} // namespace charonia::graph
