#include "graph/analysis/Cells.h"
#include "graph/analysis/Walked.h"
#include "llvm/ADT/SetVector.h"

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

SmallVector<int64_t> keptOfCells(GraphOpInterface op) {
  SmallVector<int64_t> kept;
  for (auto [cell, from, to] :
       llvm::zip_equal(op.getCells(), getShape(op->getOperand(0)),
                       getShape(op->getResult(0)))) {
    std::optional<int64_t> all = constantOf(from), given = constantOf(to);
    bool isKnown = cell > 1 && all && given && *all > 0;
    kept.push_back(isKnown ? *given / int64_t(llvm::divideCeil(*all, cell))
                           : 1);
  }
  return kept;
}

/// Whether cells are runs of a product's columns.
static bool areColumns(ArrayRef<int64_t> cells) {
  return !cells.empty() && llvm::isPowerOf2_64(cells.back()) &&
         cells.back() <= mostColumnsOfCell &&
         llvm::all_of(cells.drop_back(), [](int64_t c) { return c == 1; });
}

const char *whyNoCells(GraphOpInterface anchor, ArrayRef<Operation *> ops,
                       GraphOpInterface sums) {
  SmallVector<int64_t> cells = sums.getCells();
  // Of the same cells several values may be added up.
  if (columnOfCells(anchor) && areColumns(cells) &&
      llvm::all_of(ops, [&](Operation *op) {
        auto other = cast<GraphOpInterface>(op);
        SmallVector<int64_t> others = other.getCells();
        return others.empty() || others == cells ||
               (areColumns(others) && keptOfCells(other) == others &&
                keptOfCells(sums) == cells);
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

/// Whether an operator that has a place in a kernel reads cells of what has one
/// there, too.
static bool readsCells(GraphOpInterface op, const IterationSpace &space) {
  if (op.getCells().empty())
    return false;
  return space.lookup(op->getResult(0))->extent !=
             IterationSpace::Extent::Full ||
         (op.getRole() == OpRole::Pointwise &&
          space.contains(op->getOperand(0)));
}

/// Operators among those that `results` are computed by that do.
static llvm::SetVector<Operation *> readersOfCells(const IterationSpace &space,
                                                   ValueRange results) {
  llvm::SetVector<Value> placed(results.begin(), results.end());
  llvm::SetVector<Operation *> found;
  for (size_t i = 0; i < placed.size(); ++i) {
    auto op = placed[i].getDefiningOp<GraphOpInterface>();
    if (!op || !space.contains(placed[i]))
      continue;
    if (readsCells(op, space))
      found.insert(op);
    placed.insert(op->operand_begin(), op->operand_end());
  }
  return found;
}

Value getCut(const IterationSpace &space, ValueRange results) {
  for (Operation *op : readersOfCells(space, results))
    if (space.contains(op->getOperand(0)) &&
        space.lookup(op->getResult(0))->extent != IterationSpace::Extent::Cell)
      return op->getOperand(0);
  return {};
}

/// Whether cells of two kinds lie along the same dimensions, which keep all of
/// them: cells of the larger kind are some of the other.
static bool haveSameDims(ArrayRef<CellSide> a, ArrayRef<CellSide> b) {
  return a.size() == 1 && b.size() == 1 && a[0].dims == b[0].dims &&
         a[0].cell == a[0].kept && b[0].cell == b[0].kept;
}

std::optional<SmallVector<CellSide>>
getCellSides(const IterationSpace &space, Value first, ValueRange results) {
  std::optional<SmallVector<CellSide>> all;
  for (Operation *reader : readersOfCells(space, results)) {
    auto op = cast<GraphOpInterface>(reader);
    AffineMap map = space.mapBetween(first, op->getOperand(0));
    if (!map)
      return std::nullopt;
    SmallVector<CellSide> sides;
    for (auto [e, cell, kept] :
         llvm::zip_equal(map.getResults(), op.getCells(), keptOfCells(op))) {
      if (cell == 1)
        continue;
      auto run = runOf(e, getShape(first));
      if (!run)
        return std::nullopt;
      if (!run->empty())
        sides.push_back({*run, cell, kept});
    }
    if (all && *all != sides && !haveSameDims(*all, sides))
      return std::nullopt;
    // The larger ones are whole cells of the others.
    if (!all || all->empty() || sides.front().cell > all->front().cell)
      all = sides;
  }
  return all ? all : SmallVector<CellSide>();
}

bool readsCells(KernelOp kernel) {
  return llvm::any_of(
      kernel.getBody().front().getOps<GraphOpInterface>(),
      [](GraphOpInterface op) { return !op.getCells().empty(); });
}

SmallVector<CellSide> getCellSides(KernelOp kernel) {
  if (!readsCells(kernel))
    return {};
  std::optional<IterationSpace> space = getIterationSpace(kernel);
  if (!space)
    return {};
  return getCellSides(*space, getFirst(kernel),
                      kernel.getBody().front().getTerminator()->getOperands())
      .value_or(SmallVector<CellSide>());
}

} // namespace charonia::graph
