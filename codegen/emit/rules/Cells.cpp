// Elements of which each is another one of the same cell: within a tile that
// has whole cells, or read where they are.
#include "codegen/emit/rules/Rules.h"
#include "graph/ir/FormedOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// Whole cells, and the axis of the tile along which they lie.
struct WholeCells {
  Demand demand;
  unsigned axis;
};

/// Whether a product of the kernel is among what a value is computed from: to
/// compute it twice costs more than to move elements.
bool isFromProduct(Value value) {
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    auto op = values[i].getDefiningOp<graph::GraphOpInterface>();
    if (op && op.getRole() == graph::OpRole::Contraction)
      return true;
    if (op)
      values.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// The axis of which `expr` is an element, from a multiple of `step` on that is
/// the same for all of the tile; nothing where it is none.
std::optional<unsigned> axisOf(TileEmitter &e, AffineExpr expr, int64_t step,
                               const Demand &demand) {
  expr = e.simplify(expr, demand.tile);
  for (unsigned axis = 0; axis < demand.rank(); ++axis) {
    AffineExpr start = e.simplify(expr - e.axis(axis), demand.tile);
    if (e.isScalar(start) &&
        graph::constantOf(e.simplify(start % step, demand.tile)) == 0)
      return axis;
  }
  return std::nullopt;
}

/// The axis along which cells of `cell` elements of the last dimensions of
/// `operand` lie in a tile, whole ones; nothing where there is none. `joined`:
/// the place along it, of so many dimensions.
std::optional<unsigned> axisOfCells(TileEmitter &e, const Demand &demand,
                                    Value operand, int64_t cell,
                                    unsigned &joined) {
  Exprs shape = graph::getShape(operand);
  AffineExpr place = e.constant(0), behind = e.constant(1);
  std::optional<unsigned> axis;
  for (joined = 0; joined < shape.size() && !axis; ++joined) {
    unsigned d = shape.size() - 1 - joined;
    place = place + demand.coordinates[d] * behind;
    behind = behind * shape[d];
    if (graph::constantOf(e.simplify(behind % cell, {})) != 0)
      return std::nullopt;
    axis = axisOf(e, place, cell, demand);
  }
  if (!axis || demand.tile[*axis] % cell != 0)
    return std::nullopt;
  for (AffineExpr c : ArrayRef(demand.coordinates).drop_back(joined))
    if (e.dependsOnAxis(e.simplify(c, demand.tile), *axis))
      return std::nullopt;
  return axis;
}

/// The demand on the cells of `cell` elements of which `demand` wants `kept`
/// each, all in one tile; nothing where tiles begin or end inside of cells.
std::optional<WholeCells> wholeCells(TileEmitter &e, const Demand &demand,
                                     Value operand, int64_t cell,
                                     int64_t kept) {
  if (e.getTarget().kind != EmitTarget::Kind::Gpu || !isFromProduct(operand))
    return std::nullopt;
  unsigned joined;
  std::optional<unsigned> axis = axisOfCells(e, demand, operand, kept, joined);
  bool isAsItIs = cell == kept;
  if (!axis || (!isAsItIs && joined != 1))
    return std::nullopt;
  auto widened = [&](AffineExpr place) {
    return (place - e.axis(*axis)).floorDiv(kept) * cell + e.axis(*axis);
  };
  WholeCells whole{demand, *axis};
  whole.demand.value = operand;
  whole.demand.tile[*axis] = demand.tile[*axis] / kept * cell;
  if (!isAsItIs)
    whole.demand.coordinates.back() = widened(demand.coordinates.back());
  for (Guard &g : whole.demand.guards) {
    if (!e.dependsOnAxis(e.simplify(g.coordinate, demand.tile), *axis))
      continue;
    if (axisOf(e, g.coordinate, kept, demand) != axis ||
        graph::constantOf(e.simplify(g.extent % kept, {})) != 0)
      return std::nullopt;
    if (isAsItIs)
      continue;
    g.coordinate = widened(g.coordinate);
    g.extent = g.extent.floorDiv(kept) * cell;
  }
  return whole;
}

/// What `take` makes of the whole cells that an operator reads, and the axis
/// along which they lie; or its elements, read where they are.
template <typename Op>
FailureOr<Value> takeOfCells(Op op, TileEmitter &e, const Demand &demand,
                             int64_t cell, int64_t kept,
                             function_ref<Value(Value, unsigned)> take) {
  std::optional<WholeCells> whole =
      wholeCells(e, demand, op.getInput(), cell, kept);
  if (!whole)
    return e.emit(throughMap(demand, op.getOperandMap(0), op.getInput()));
  FailureOr<Value> cells = e.emit(whole->demand);
  return failed(cells) ? cells : FailureOr<Value>(take(*cells, whole->axis));
}

FailureOr<Value> cellPart(graph::CellPartOp op, TileEmitter &e,
                          const Demand &demand) {
  int64_t run = op.getRun();
  return takeOfCells(op, e, demand, run * op.getParts(), run,
                     [&](Value cells, unsigned axis) -> Value {
                       return tile::CellPartOp::create(
                           e.b(), e.loc(),
                           e.tileType(demand.tile, getElementTypeOrSelf(cells)),
                           cells, axis, run, op.getParts(), op.getPart());
                     });
}

FailureOr<Value> swapHalves(graph::SwapHalvesOp op, TileEmitter &e,
                            const Demand &demand) {
  int64_t cell = 2 * op.getRun();
  return takeOfCells(
      op, e, demand, cell, cell, [&](Value cells, unsigned axis) -> Value {
        return tile::SwapHalvesOp::create(e.b(), e.loc(), cells.getType(),
                                          cells, axis, op.getRun());
      });
}

/// The sum of each cell's elements, for all of them: of a tile [.., N, ..] of
/// whole cells.
Value sumOfCells(TileEmitter &e, Value tile, unsigned axis, int64_t cell) {
  Value sum = sumEachCell(e, tile, axis, cell);
  SmallVector<int64_t> apart(tile::shapeOf(sum)), axes;
  apart.insert(apart.begin() + axis + 1, cell);
  for (unsigned i = 0; i < apart.size(); ++i)
    if (i != axis + 1)
      axes.push_back(i);
  Type spread = e.tileType(apart, getElementTypeOrSelf(tile));
  sum = tile::BroadcastOp::create(e.b(), e.loc(), spread, sum, axes);
  return tile::JoinAxesOp::create(e.b(), e.loc(), tile.getType(), sum, axis);
}

/// The same of elements that are read where they are.
FailureOr<Value> sumOfRead(TileEmitter &e, const Demand &demand, Value operand,
                           int64_t cell, function_ref<Value(Value)> function) {
  return sumOver(e, demand, e.constant(cell),
                 e.computeType(getElementTypeOrSelf(operand)),
                 [&](const Demand &d, AffineExpr k) -> FailureOr<Value> {
                   Demand inside = d;
                   inside.value = operand;
                   AffineExpr &last = inside.coordinates.back();
                   last = last.floorDiv(cell) * cell + k;
                   FailureOr<Value> x = e.emit(inside);
                   return failed(x) ? x : FailureOr<Value>(function(*x));
                 });
}

FailureOr<Value> normalizeCells(graph::NormalizeCellsOp op, TileEmitter &e,
                                const Demand &demand) {
  OpBuilder &b = e.b();
  Location loc = e.loc();
  int64_t cell = op.getRun();
  std::optional<WholeCells> whole =
      wholeCells(e, demand, op.getInput(), cell, cell);
  Demand inside = demand;
  inside.value = op.getInput();
  FailureOr<Value> x = e.emit(whole ? whole->demand : inside);
  if (failed(x))
    return failure();
  auto meanOf = [&](Value tile,
                    function_ref<Value(Value)> function) -> FailureOr<Value> {
    FailureOr<Value> sum =
        whole
            ? FailureOr<Value>(sumOfCells(e, function(tile), whole->axis, cell))
            : sumOfRead(e, demand, op.getInput(), cell, function);
    if (failed(sum))
      return failure();
    return Value(arith::MulFOp::create(b, loc, *sum,
                                       e.splatLike(1.0 / double(cell), *sum)));
  };
  Value distance = *x;
  FailureOr<Value> mean = Value();
  auto fromMean = [&](Value value) -> Value {
    return *mean ? distanceFrom(e, *mean, value) : value;
  };
  if (!op.getRms()) {
    mean = meanOf(*x, [](Value value) { return value; });
    if (failed(mean))
      return failure();
    distance = fromMean(*x);
  }
  FailureOr<Value> variance = meanOf(*x, [&](Value value) -> Value {
    Value d = whole ? distance : fromMean(value);
    return arith::MulFOp::create(b, loc, d, d);
  });
  if (failed(variance))
    return failure();
  Value shifted = arith::AddFOp::create(
      b, loc, *variance,
      e.splatLike(op.getEpsilon().convertToDouble(), *variance));
  return Value(arith::MulFOp::create(b, loc, distance,
                                     math::RsqrtOp::create(b, loc, shifted)));
}

} // namespace

void emit::registerCellRules(MLIRContext *c) {
  graph::CellPartOp::attachInterface<Rule<graph::CellPartOp, cellPart>>(*c);
  graph::NormalizeCellsOp::attachInterface<
      Rule<graph::NormalizeCellsOp, normalizeCells>>(*c);
  graph::SwapHalvesOp::attachInterface<Rule<graph::SwapHalvesOp, swapHalves>>(
      *c);
}
