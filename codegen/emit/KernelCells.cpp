// Sums of cells: what a tile has of a result, added up and stored beside it.
#include "codegen/emit/KernelBuilder.h"
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

LogicalResult KernelBuilder::checkCells() {
  bool areWhole = cells.empty() || schedule.rowParts == 1;
  for (const graph::CellSide &side : cells)
    areWhole &= llvm::any_of(schedule.groups, [&](const Schedule::Group &g) {
      return g.dims == side.dims && g.tile % side.cell == 0 && !g.sequential &&
             !g.own && !g.within && !g.rest;
    });
  if (areWhole)
    return success();
  return kernel.emitOpError()
         << "has a schedule whose tiles have parts of the cells that a result "
            "adds up: "
         << schedule.text();
}

int64_t KernelBuilder::cellOf(unsigned axis) {
  const Schedule::Group &g = schedule.groups[axes[axis]];
  for (const graph::CellSide &side : cells)
    if (side.dims == g.dims)
      return side.cell;
  return 0;
}

LogicalResult KernelBuilder::storeCells(unsigned result, const Demand &first) {
  // Of instances that share a tile each has a part of its columns alone.
  if (sharedAxis)
    return failure();
  Value operand = yield->getOperand(result).getDefiningOp()->getOperand(0);
  std::optional<graph::IterationSpace> space = graph::getIterationSpace(kernel);
  Demand inside = throughMap(
      first, space->mapBetween(yield->getOperand(0), operand), operand);
  FailureOr<Value> terms = e.emit(inside);
  if (failed(terms))
    return failure();
  // Elements behind the last of a dimension are nobody's.
  SmallVector<Guard> bounds = inside.guards;
  for (auto [c, extent] :
       llvm::zip_equal(inside.coordinates, graph::getShape(operand)))
    bounds.push_back({c, extent});
  SmallVector<int64_t> begin(axes.size(), 0);
  while (true) {
    if (failed(storeCell(result, first, *terms, bounds, begin)))
      return failure();
    unsigned axis = 0;
    for (; axis < axes.size(); ++axis) {
      int64_t cell = cellOf(axis);
      begin[axis] += cell;
      if (cell && begin[axis] < inside.tile[axis])
        break;
      begin[axis] = 0;
    }
    if (axis == axes.size())
      return success();
  }
}

LogicalResult KernelBuilder::storeCell(unsigned result, const Demand &first,
                                       Value terms, SmallVector<Guard> bounds,
                                       ArrayRef<int64_t> begin) {
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    if (int64_t cell = cellOf(axis); cell && cell < first.tile[axis])
      bounds.push_back({e.axis(axis) - begin[axis], e.constant(cell)});
  Value sum = e.maskWith(e.emitInBounds(bounds, first.tile), terms, 0);
  Value value = yield->getOperand(result);
  Demand cell = throughMap(first, resultMaps[result], value);
  Type element = getElementTypeOrSelf(sum);
  // Along the last dimensions neighbours are a thread's or a warp's.
  for (unsigned axis = axes.size(); axis-- > 0;) {
    if (!cellOf(axis))
      continue;
    for (AffineExpr &c : cell.coordinates)
      c = c.replace(e.axis(axis), e.constant(begin[axis]));
    SmallVector<int64_t> left(cast<RankedTensorType>(sum.getType()).getShape());
    left.erase(left.begin() + axis);
    auto reduce = tile::ReduceOp::create(
        b, e.loc(), {e.tileType(left, element)}, ValueRange{sum}, axis);
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&reduce.getCombiner());
    Value x = block->addArgument(element, e.loc()),
          y = block->addArgument(element, e.loc());
    tile::YieldOp::create(
        b, e.loc(), ReductionOf{graph::ReduceKind::sum}(b, e.loc(), x, y));
    sum = reduce.getResults()[0];
  }
  cell = withoutUnusedAxes(cell);
  if (cell.tile != ArrayRef(cast<RankedTensorType>(sum.getType()).getShape()))
    return kernel.emitOpError("has cells that are spread over tiles");
  e.storeResult(sum, function.getArgument(kernel.getInputs().size() + result),
                value.getType(), cell);
  return success();
}
