// Views, constants and shape values: no data of their own.
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

Demand emit::throughMap(const Demand &demand, AffineMap map, Value operand) {
  return {operand, demand.tile, graph::applyMap(map, demand.coordinates),
          demand.guards};
}

Exprs emit::delinearize(AffineExpr index, ArrayRef<AffineExpr> extents) {
  // The first extent of more than one element is not taken: an index past the
  // end stays past the end.
  unsigned first = 0;
  while (first + 1 < extents.size() && graph::constantOf(extents[first]) == 1)
    ++first;
  Exprs coordinates(extents.size(),
                    getAffineConstantExpr(0, index.getContext()));
  for (unsigned i = extents.size(); i-- > first;) {
    coordinates[i] = i == first ? index : index % extents[i];
    if (i != first)
      index = index.floorDiv(extents[i]);
  }
  return coordinates;
}

namespace {

template <typename Op>
FailureOr<Value> view(Op op, TileEmitter &e, const Demand &demand) {
  return e.emit(throughMap(demand, op.getOperandMap(0), op.getInput()));
}

FailureOr<Value> constantRule(graph::ConstantOp op, TileEmitter &e,
                              const Demand &demand) {
  auto value = dyn_cast<DenseElementsAttr>(op.getValue());
  Type element = op.getType().getElementType();
  if (!value || !value.isSplat())
    return e.error(demand, "a constant inside a kernel must be a splat"),
           failure();
  // Wide integers do not survive a double, so the attribute is kept as it is.
  auto type = e.tileType(demand.tile, e.computeType(element));
  Attribute splat = value.getSplatValue<Attribute>();
  if (auto f = dyn_cast<FloatAttr>(splat))
    return e.splat(f.getValueAsDouble(), type.getElementType(), demand.tile);
  auto integer = IntegerAttr::get(type.getElementType(),
                                  cast<IntegerAttr>(splat).getValue());
  return Value(arith::ConstantOp::create(
      e.b(), e.loc(), type, DenseElementsAttr::get(type, Attribute(integer))));
}

FailureOr<Value> dims(graph::DimsOp op, TileEmitter &e, const Demand &demand) {
  AffineMap values = op.getValues();
  Type element =
      e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
  auto type = e.tileType(demand.tile, element);
  auto tileOf = [&](AffineExpr value) -> Value {
    // Not as a double, which wide integers do not survive.
    if (auto c = dyn_cast<AffineConstantExpr>(value))
      return e.splat(
          IntegerAttr::get(
              element,
              APInt(64, c.getValue()).trunc(element.getIntOrFloatBitWidth())),
          demand.tile);
    Value scalar = arith::IndexCastOp::create(e.b(), e.loc(), element,
                                              e.materialize(value));
    return tile::SplatOp::create(e.b(), e.loc(), type, scalar);
  };
  if (values.getNumResults() == 0)
    return e.splat(0, element, demand.tile);
  AffineExpr linear = e.constant(0);
  for (auto [c, extent] : llvm::zip(
           demand.coordinates, cast<RankedTensorType>(op.getType()).getShape()))
    linear = linear * extent + c;
  Value result = tileOf(values.getResult(0));
  for (unsigned i = 1; i < values.getNumResults(); ++i) {
    AffineExpr below = e.simplify(linear - i, demand.tile);
    Value mask = e.emitInBounds({{below, e.constant(values.getNumResults())}},
                                demand.tile);
    Value chosen = tileOf(values.getResult(i));
    result = mask ? Value(arith::SelectOp::create(e.b(), e.loc(), mask, chosen,
                                                  result))
                  : chosen;
  }
  return result;
}

} // namespace

void emit::registerViewRules(MLIRContext *c) {
  graph::ReshapeOp::attachInterface<
      Rule<graph::ReshapeOp, view<graph::ReshapeOp>>>(*c);
  graph::TransposeOp::attachInterface<
      Rule<graph::TransposeOp, view<graph::TransposeOp>>>(*c);
  graph::SliceOp::attachInterface<Rule<graph::SliceOp, view<graph::SliceOp>>>(
      *c);
  graph::BroadcastOp::attachInterface<
      Rule<graph::BroadcastOp, view<graph::BroadcastOp>>>(*c);
  graph::ConstantOp::attachInterface<Rule<graph::ConstantOp, constantRule>>(*c);
  graph::DimsOp::attachInterface<Rule<graph::DimsOp, dims>>(*c);
}
