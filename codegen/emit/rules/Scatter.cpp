// Scatters. Few updates are looked through by each element that is demanded.
// Many are written into the result one after another, as their order says, or,
// in place, by as many program instances as they fill, in any order.
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

graph::ReduceKind kindOf(graph::ScatterReduction reduction) {
  switch (reduction) {
  case graph::ScatterReduction::mul:
    return graph::ReduceKind::prod;
  case graph::ScatterReduction::max:
    return graph::ReduceKind::max;
  case graph::ScatterReduction::min:
    return graph::ReduceKind::min;
  default:
    return graph::ReduceKind::sum;
  }
}

/// What an element becomes that meets an update.
template <typename Op>
Value meet(Op op, TileEmitter &e, Value element, Value update) {
  if (op.getReduction() == graph::ScatterReduction::none)
    return update;
  return ReductionOf{kindOf(op.getReduction()),
                     isUnsignedElement(op.getType())}(e.b(), e.loc(), element,
                                                      update);
}

/// The indices as a tile of positions.
FailureOr<Value> places(TileEmitter &e, Demand indices, AffineExpr size) {
  bool isUnsigned = isUnsignedElement(indices.value.getType());
  FailureOr<Value> loaded = e.emit(std::move(indices));
  if (failed(loaded))
    return failure();
  return positions(e, *loaded, isUnsigned, size);
}

/// Whether places are those of the demanded elements.
Value isAt(TileEmitter &e, Value places, AffineExpr coordinate,
           ArrayRef<int64_t> tile) {
  return arith::CmpIOp::create(e.b(), e.loc(), arith::CmpIPredicate::eq, places,
                               e.emitIndex(coordinate, tile));
}

Value both(TileEmitter &e, Value x, Value y) {
  return x && y ? Value(arith::AndIOp::create(e.b(), e.loc(), x, y))
                : (x ? x : y);
}

/// The demanded elements after all of `count` updates: `update` gives the one
/// for each element, and whether it is meant.
template <typename Op>
FailureOr<Value> lookThrough(
    Op op, TileEmitter &e, const Demand &demand, AffineExpr count,
    function_ref<FailureOr<std::pair<Value, Value>>(AffineExpr)> update) {
  FailureOr<Value> start =
      e.emit({op.getInput(), demand.tile, demand.coordinates, {}});
  if (failed(start))
    return failure();
  auto body = [&](AffineExpr i,
                  ArrayRef<Value> carried) -> FailureOr<SmallVector<Value>> {
    auto found = update(i);
    if (failed(found))
      return failure();
    Value next = meet(op, e, carried[0], found->first);
    if (found->second)
      next = arith::SelectOp::create(e.b(), e.loc(), found->second, next,
                                     carried[0]);
    return SmallVector<Value>{next};
  };
  auto result = e.loop(count, {*start}, body);
  return failed(result) ? FailureOr<Value>()
                        : FailureOr<Value>(result->front());
}

/// Copies what a program instance has of the input. Whole dimensions are walked
/// as one; in blocks where the innermost is one of them.
template <typename Op>
LogicalResult copyInput(Op op, TileEmitter &e, const Demand &demand,
                        Value buffer) {
  Exprs shape = graph::getShape(op.getResult()), extents;
  SmallVector<int64_t> whole;
  for (auto [d, kind] : llvm::enumerate(op.getResultDimKinds()))
    if (kind == graph::DimKind::Whole) {
      whole.push_back(d);
      extents.push_back(shape[d]);
    }
  int64_t block =
      endsWithLast(whole, shape) ? 4 * e.getTarget().vectorElements : 1;
  AffineExpr count = extentOf(e, shape, whole);
  Demand at = block > 1 ? e.addAxis(demand, block) : demand;
  auto body = [&](AffineExpr i,
                  ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
    Demand d = at;
    AffineExpr index = i * block;
    if (block > 1) {
      index = index + e.axis(demand.rank());
      d.guards.push_back({index, count});
    }
    for (auto [axis, c] : llvm::zip(whole, delinearize(index, extents)))
      d.coordinates[axis] = c;
    Demand input = d;
    input.value = op.getInput();
    FailureOr<Value> tile = e.emit(input);
    if (failed(tile))
      return failure();
    e.storeResult(*tile, buffer, d);
    return SmallVector<Value>{};
  };
  return success(
      succeeded(e.loop((count + (block - 1)).floorDiv(block), {}, body)));
}

/// Writes `count` updates over the input in their order. `target` gives where
/// one goes, and its value. For one thread: on a GPU updates come in place.
template <typename Op>
LogicalResult writeInOrder(
    Op op, TileEmitter &e, const Demand &demand, Value buffer, AffineExpr count,
    function_ref<FailureOr<std::pair<Demand, Value>>(AffineExpr)> target) {
  if (e.getTarget().kind == EmitTarget::Kind::Gpu) {
    e.error({op.getResult(), {}, {}, {}},
            "is not written in steps for a GPU (stage-ordered)");
    return failure();
  }
  if (failed(copyInput(op, e, demand, buffer)))
    return failure();
  auto body = [&](AffineExpr i,
                  ArrayRef<Value>) -> FailureOr<SmallVector<Value>> {
    auto found = target(i);
    if (failed(found))
      return failure();
    auto &[at, update] = *found;
    for (AffineExpr &c : at.coordinates)
      c = e.simplify(c, at.tile);
    if (op.getReduction() != graph::ScatterReduction::none) {
      FailureOr<Value> old = e.emitLoad(at, buffer);
      if (failed(old))
        return failure();
      update = meet(op, e, *old, update);
    }
    e.storeResult(update, buffer, at);
    return SmallVector<Value>{};
  };
  return success(succeeded(e.loop(count, {}, body)));
}

tile::Update updateOf(graph::ScatterReduction reduction, bool isUnsigned) {
  switch (reduction) {
  case graph::ScatterReduction::none:
    return tile::Update::replace;
  case graph::ScatterReduction::add:
    return tile::Update::add;
  case graph::ScatterReduction::mul:
    return tile::Update::mul;
  case graph::ScatterReduction::max:
    return isUnsigned ? tile::Update::umax : tile::Update::max;
  case graph::ScatterReduction::min:
    return isUnsigned ? tile::Update::umin : tile::Update::min;
  }
  llvm_unreachable("a reduction that is not known");
}

/// The demanded updates, each to its place in the input's memory, which is the
/// result's. `target` has the places as coordinates.
template <typename Op>
LogicalResult updateInPlace(Op op, TileEmitter &e, const Demand &demand,
                            Value buffer, Demand target) {
  Exprs extents = graph::getShape(op.getUpdates());
  FailureOr<Value> update =
      e.emit({op.getUpdates(), demand.tile, demand.coordinates, {}});
  if (failed(update))
    return failure();
  target.value = op.getResult();
  for (auto [c, extent] : llvm::zip(demand.coordinates, extents))
    target.guards.push_back({e.simplify(c, demand.tile), extent});
  e.storeResult(*update, buffer, std::move(target),
                tile::UpdateAttr::get(
                    e.context(), updateOf(op.getReduction(),
                                          isUnsignedElement(op.getType()))));
  return success();
}

//===----------------------------------------------------------------------===//
// scatter_nd
//===----------------------------------------------------------------------===//

/// The parts of a scatter by index tuples.
struct Tuples {
  graph::ScatterNDOp op;
  Exprs outer, shape;
  int64_t depth = 0;

  explicit Tuples(graph::ScatterNDOp op)
      : op(op), outer(graph::getShape(op.getIndices())),
        shape(graph::getShape(op.getInput())) {
    depth = graph::constantOf(outer.pop_back_val()).value_or(0);
  }
  AffineExpr count(TileEmitter &e) {
    return graph::numElements(outer, e.context());
  }
  Demand indices(TileEmitter &e, const Demand &demand, AffineExpr i,
                 int64_t j) {
    Exprs at = delinearize(i, outer);
    at.push_back(e.constant(j));
    return {op.getIndices(), demand.tile, at, {}};
  }
  Demand updates(const Demand &demand, AffineExpr i) {
    Exprs at = delinearize(i, outer);
    llvm::append_range(
        at, ArrayRef<AffineExpr>(demand.coordinates).drop_front(depth));
    return {op.getUpdates(), demand.tile, at, {}};
  }
};

FailureOr<Value> scatterND(graph::ScatterNDOp op, TileEmitter &e,
                           const Demand &demand) {
  Tuples tuples(op);
  return lookThrough(
      op, e, demand, tuples.count(e),
      [&](AffineExpr i) -> FailureOr<std::pair<Value, Value>> {
        Value match;
        for (int64_t j = 0; j < tuples.depth; ++j) {
          FailureOr<Value> place =
              places(e, tuples.indices(e, demand, i, j), tuples.shape[j]);
          if (failed(place))
            return failure();
          match = both(e, match,
                       isAt(e, *place, demand.coordinates[j], demand.tile));
        }
        FailureOr<Value> update = e.emit(tuples.updates(demand, i));
        if (failed(update))
          return failure();
        return std::pair(*update, match);
      });
}

/// The demand is one of updates.
LogicalResult scatterNDInPlace(graph::ScatterNDOp op, TileEmitter &e,
                               const Demand &demand, Value buffer) {
  Tuples tuples(op);
  ArrayRef<AffineExpr> at(demand.coordinates);
  size_t outer = tuples.outer.size();
  Demand target{{}, demand.tile, {}, demand.guards};
  for (int64_t j = 0; j < tuples.depth; ++j) {
    Demand indices{
        op.getIndices(), demand.tile, Exprs(at.take_front(outer)), {}};
    indices.coordinates.push_back(e.constant(j));
    FailureOr<AffineExpr> place =
        indexSymbol(e, std::move(indices), tuples.shape[j]);
    if (failed(place))
      return failure();
    target.coordinates.push_back(*place);
  }
  llvm::append_range(target.coordinates, at.drop_front(outer));
  return updateInPlace(op, e, demand, buffer, std::move(target));
}

LogicalResult scatterNDOrdered(graph::ScatterNDOp op, TileEmitter &e,
                               const Demand &demand, Value buffer) {
  if (op.getInPlace())
    return scatterNDInPlace(op, e, demand, buffer);
  Tuples tuples(op);
  return writeInOrder(
      op, e, demand, buffer, tuples.count(e),
      [&](AffineExpr i) -> FailureOr<std::pair<Demand, Value>> {
        Demand target = demand;
        for (int64_t j = 0; j < tuples.depth; ++j) {
          FailureOr<AffineExpr> place =
              indexSymbol(e, tuples.indices(e, demand, i, j), tuples.shape[j]);
          if (failed(place))
            return failure();
          target.coordinates[j] = *place;
        }
        FailureOr<Value> update = e.emit(tuples.updates(demand, i));
        if (failed(update))
          return failure();
        return std::pair(target, *update);
      });
}

//===----------------------------------------------------------------------===//
// scatter_elements
//===----------------------------------------------------------------------===//

/// Update `i` of the line that each demanded element lies in, of what `value`
/// holds: indices or updates, of which there may be fewer lines.
Demand inLine(const Demand &demand, Value value, int64_t axis, AffineExpr i) {
  Demand d = demand;
  d.value = value;
  d.coordinates[axis] = i;
  return d;
}

SmallVector<Guard> lines(graph::ScatterElementsOp op, const Demand &demand) {
  SmallVector<Guard> guards;
  for (auto [d, extent] : llvm::enumerate(graph::getShape(op.getIndices())))
    if (d != op.getAxis())
      guards.push_back({demand.coordinates[d], extent});
  return guards;
}

/// The demand is one of updates.
LogicalResult scatterElementsInPlace(graph::ScatterElementsOp op,
                                     TileEmitter &e, const Demand &demand,
                                     Value buffer) {
  int64_t axis = op.getAxis();
  FailureOr<AffineExpr> place =
      indexSymbol(e, {op.getIndices(), demand.tile, demand.coordinates, {}},
                  graph::getShape(op.getInput())[axis]);
  if (failed(place))
    return failure();
  Demand target = demand;
  target.coordinates[axis] = *place;
  return updateInPlace(op, e, demand, buffer, std::move(target));
}

LogicalResult scatterElementsOrdered(graph::ScatterElementsOp op,
                                     TileEmitter &e, const Demand &demand,
                                     Value buffer) {
  if (op.getInPlace())
    return scatterElementsInPlace(op, e, demand, buffer);
  int64_t axis = op.getAxis();
  return writeInOrder(
      op, e, demand, buffer, graph::getShape(op.getIndices())[axis],
      [&](AffineExpr i) -> FailureOr<std::pair<Demand, Value>> {
        FailureOr<AffineExpr> place =
            indexSymbol(e, inLine(demand, op.getIndices(), axis, i),
                        graph::getShape(op.getInput())[axis]);
        FailureOr<Value> update =
            e.emit(inLine(demand, op.getUpdates(), axis, i));
        if (failed(place) || failed(update))
          return failure();
        Demand target = demand;
        target.guards = lines(op, demand);
        target.coordinates[axis] = *place;
        return std::pair(target, *update);
      });
}

/// Few updates are looked through tile by tile.
struct ScatterNDRule
    : EmitOpInterface::ExternalModel<ScatterNDRule, graph::ScatterNDOp> {
  FailureOr<Value> emitTile(Operation *op, TileEmitter &e,
                            const Demand &demand) const {
    return scatterND(cast<graph::ScatterNDOp>(op), e, demand);
  }
  LogicalResult emitOrdered(Operation *op, TileEmitter &e, const Demand &demand,
                            Value buffer) const {
    return scatterNDOrdered(cast<graph::ScatterNDOp>(op), e, demand, buffer);
  }
};

} // namespace

void emit::registerScatterRules(MLIRContext *c) {
  graph::ScatterNDOp::attachInterface<ScatterNDRule>(*c);
  graph::ScatterElementsOp::attachInterface<
      OrderedRule<graph::ScatterElementsOp, scatterElementsOrdered>>(*c);
}
