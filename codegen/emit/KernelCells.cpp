// Cells of a tile: what is added up of each and stored beside it, and results
// that have some elements of each.
#include "codegen/emit/KernelBuilder.h"
#include "codegen/emit/rules/Rules.h"
#include "graph/ir/FormedOps.h"

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

const graph::CellSide *KernelBuilder::cellsAlong(unsigned axis) const {
  const Schedule::Group &g = schedule.groups[axes[axis]];
  const auto *side = llvm::find_if(
      cells, [&](const graph::CellSide &s) { return s.dims == g.dims; });
  return side == cells.end() ? nullptr : side;
}

Value KernelBuilder::sumCells(Value sum) {
  // Along the last dimensions neighbours are a thread's or a warp's.
  for (unsigned axis = axes.size(); axis-- > 0;)
    if (const graph::CellSide *side = cellsAlong(axis))
      sum = tile::shapeOf(sum)[axis] > side->cell
                ? sumEachCell(e, sum, axis, side->cell)
                : reduceAxis(e, sum, axis, graph::ReduceKind::sum);
  return sum;
}

Value KernelBuilder::spreadOverCells(Value sums, Value like) {
  SmallVector<int64_t> apart, kept;
  SmallVector<unsigned> cut;
  for (auto [axis, extent] : llvm::enumerate(tile::shapeOf(like))) {
    const graph::CellSide *side = cellsAlong(axis);
    bool isCut = side && extent > side->cell;
    if (isCut)
      cut.push_back(axis);
    if (isCut || !side) {
      kept.push_back(apart.size());
      apart.push_back(isCut ? extent / side->cell : extent);
    }
    if (side)
      apart.push_back(side->cell);
  }
  Type element = getElementTypeOrSelf(sums);
  Value spread = tile::BroadcastOp::create(
      b, e.loc(), e.tileType(apart, element), sums, kept);
  for (unsigned axis : cut) {
    apart[axis] *= apart[axis + 1];
    apart.erase(apart.begin() + axis + 1);
    spread = tile::JoinAxesOp::create(b, e.loc(), e.tileType(apart, element),
                                      spread, axis);
  }
  return spread;
}

Value KernelBuilder::sumSquaredDistances(const CellSums &cells, int64_t count) {
  Value mean = arith::MulFOp::create(
      b, e.loc(), cells.sums, e.splatLike(1.0 / double(count), cells.sums));
  Value distance = arith::SubFOp::create(b, e.loc(), cells.terms,
                                         spreadOverCells(mean, cells.terms));
  return sumCells(arith::MulFOp::create(b, e.loc(), distance, distance));
}

Demand KernelBuilder::placesOfCells(Demand demand) {
  SmallVector<AffineExpr> dims;
  SmallVector<int64_t> cellAlong, keptAlong;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    const graph::CellSide *side = cellsAlong(axis);
    int64_t cell = side ? side->cell : 1, kept = side ? side->kept : 1;
    cellAlong.push_back(cell);
    keptAlong.push_back(kept);
    demand.tile[axis] = demand.tile[axis] / cell * kept;
    AffineExpr at = e.axis(axis);
    dims.push_back(cell == kept ? at : at.floorDiv(kept) * cell + at % kept);
  }
  for (AffineExpr &c : demand.coordinates)
    c = c.replaceDims(dims);
  for (Guard &g : demand.guards) {
    // What of a tile is its own has whole cells (checkCells).
    auto own = dyn_cast<AffineDimExpr>(g.coordinate);
    if (g.own && own) {
      unsigned axis = own.getPosition();
      g.extent =
          e.simplify(g.extent.floorDiv(cellAlong[axis]) * keptAlong[axis], {});
    } else {
      g.coordinate = g.coordinate.replaceDims(dims);
    }
  }
  return demand;
}

bool KernelBuilder::takeShare(Demand &demand) {
  if (!sharedAxis)
    return true;
  int64_t share = demand.tile[*sharedAxis] / schedule.splits;
  demand.guards.push_back(
      {e.axis(*sharedAxis) - e.getSplit().part * share, e.constant(share)});
  return share * schedule.splits == demand.tile[*sharedAxis];
}

std::optional<LogicalResult> KernelBuilder::storeOfCells(unsigned result,
                                                         const Demand &tile) {
  auto place = space ? space->lookup(yield->getOperand(result)) : std::nullopt;
  if (!place)
    return std::nullopt;
  if (place->extent == graph::IterationSpace::Extent::Cell)
    return storeCells(result, tile);
  if (place->extent == graph::IterationSpace::Extent::Part)
    return storeParts(result, tile);
  return std::nullopt;
}

LogicalResult KernelBuilder::storeParts(unsigned result, const Demand &tile) {
  Value value = yield->getOperand(result);
  Demand demand = throughMap(placesOfCells(tile), resultMaps[result], value);
  FailureOr<Value> parts = e.emit(demand);
  if (failed(parts) || !takeShare(demand))
    return failure();
  store(result, *parts, demand);
  return success();
}

LogicalResult KernelBuilder::storeCells(unsigned result, const Demand &tile) {
  Value value = yield->getOperand(result),
        operand = value.getDefiningOp()->getOperand(0);
  AffineMap map = space->mapBetween(first, operand);
  Demand inside = throughMap(tile, map, operand);
  FailureOr<Value> terms = e.emit(inside);
  Demand walked = tile;
  walked.coordinates = unbounded;
  if (walksProduct || !map.isProjectedPermutation(/*allowZeroInResults=*/true))
    addEnds(walked);
  // Elements behind the last of a dimension are nobody's.
  SmallVector<Guard> bounds = walked.guards;
  for (auto [c, extent] :
       llvm::zip_equal(inside.coordinates, graph::getShape(operand)))
    bounds.push_back({c, extent});
  Demand places = placesOfCells(walked);
  if (failed(terms) || !takeShare(places))
    return failure();
  // What two results ask of one tile is added up once: nobody looks for equal
  // reductions later.
  CellSums &sums = cellSums[*terms];
  if (!sums.terms || sums.sums.getParentBlock() != b.getInsertionBlock()) {
    sums.terms = e.maskWith(e.emitInBounds(bounds, inside.tile), *terms, 0);
    sums.sums = sumCells(sums.terms);
  }
  Value sum = sums.sums;
  // Runs lie inside as a whole, or are nobody's.
  if (auto runs = value.getDefiningOp<graph::SumRunsOp>();
      runs && runs.getSquaredDistances())
    sum = sumSquaredDistances(sums, runs.getRun());
  Demand cell =
      withoutUnusedAxes(throughMap(places, resultMaps[result], value));
  if (cell.tile != ArrayRef(tile::shapeOf(sum)))
    return kernel.emitOpError("has cells that are spread over tiles");
  store(result, sum, cell);
  return success();
}
