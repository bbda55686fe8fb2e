// Sums of cells: what a tile has of a result, added up and stored beside it.
#include "codegen/emit/KernelBuilder.h"
#include "codegen/emit/rules/Rules.h"
#include "graph/analysis/Walked.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

LogicalResult KernelBuilder::checkCells() {
  bool areWhole = cells.empty() || schedule.rowParts == 1;
  for (const graph::CellSide &side : cells)
    areWhole &= llvm::any_of(schedule.groups, [&](const Schedule::Group &g) {
      return g.dims == side.dims && g.tile % side.cell == 0 && !g.sequential &&
             g.own % side.cell == 0 && !g.within && !g.rest;
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

Value KernelBuilder::sumCells(Value sum) {
  Type element = getElementTypeOrSelf(sum);
  // Along the last dimensions neighbours are a thread's or a warp's.
  for (unsigned axis = axes.size(); axis-- > 0;) {
    int64_t cell = cellOf(axis);
    if (cell == 0)
      continue;
    SmallVector<int64_t> left(tile::shapeOf(sum));
    unsigned along = axis;
    if (left[axis] > cell) {
      left[axis] /= cell;
      left.insert(left.begin() + ++along, cell);
      sum = tile::SplitAxisOp::create(b, e.loc(), e.tileType(left, element),
                                      sum, axis, cell);
    }
    sum = reduceAxis(e, sum, along, graph::ReduceKind::sum);
  }
  return sum;
}

FailureOr<Demand> KernelBuilder::placesOfCells(Demand demand) {
  SmallVector<AffineExpr> dims;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    AffineExpr step = e.axis(axis);
    if (int64_t cell = cellOf(axis)) {
      demand.tile[axis] /= cell;
      step = step * cell;
    }
    dims.push_back(step);
  }
  for (AffineExpr &c : demand.coordinates)
    c = c.replaceDims(dims);
  for (Guard &g : demand.guards)
    g.coordinate = g.coordinate.replaceDims(dims);
  if (!sharedAxis)
    return demand;
  // Each instance of a cluster has its share of the tile's cells.
  int64_t share = demand.tile[*sharedAxis] / schedule.splits;
  if (share * schedule.splits != demand.tile[*sharedAxis])
    return failure();
  demand.guards.push_back(
      {e.axis(*sharedAxis) - e.getSplit().part * share, e.constant(share)});
  return demand;
}

LogicalResult KernelBuilder::storeCells(unsigned result, const Demand &first) {
  Value value = yield->getOperand(result),
        operand = value.getDefiningOp()->getOperand(0);
  std::optional<graph::IterationSpace> space = graph::getIterationSpace(kernel);
  AffineMap map = space->mapBetween(graph::getFirst(kernel), operand);
  Demand inside = throughMap(first, map, operand);
  FailureOr<Value> terms = e.emit(inside);
  Demand walked = first;
  walked.coordinates = unbounded;
  if (walksProduct || !map.isProjectedPermutation(/*allowZeroInResults=*/true))
    addEnds(walked);
  // Elements behind the last of a dimension are nobody's.
  SmallVector<Guard> bounds = walked.guards;
  for (auto [c, extent] :
       llvm::zip_equal(inside.coordinates, graph::getShape(operand)))
    bounds.push_back({c, extent});
  FailureOr<Demand> places = placesOfCells(walked);
  if (failed(terms) || failed(places))
    return failure();
  Value sum =
      sumCells(e.maskWith(e.emitInBounds(bounds, inside.tile), *terms, 0));
  Demand cell =
      withoutUnusedAxes(throughMap(*places, resultMaps[result], value));
  if (cell.tile != ArrayRef(tile::shapeOf(sum)))
    return kernel.emitOpError("has cells that are spread over tiles");
  e.storeResult(sum, function.getArgument(kernel.getInputs().size() + result),
                value.getType(), cell);
  return success();
}
