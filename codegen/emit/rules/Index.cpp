// Operators that choose elements: coordinates become data.
#include "codegen/emit/KernelShape.h"
#include "codegen/emit/rules/Rules.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

Value emit::indexConstant(TileEmitter &e, int64_t value, Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  return e.splat(value, type.getElementType(), type.getShape());
}

Value emit::sizeTile(TileEmitter &e, AffineExpr size, Value like) {
  if (auto c = graph::constantOf(size))
    return indexConstant(e, *c, like);
  Value scalar = e.materialize(size);
  Type element = getElementTypeOrSelf(like.getType());
  if (!element.isIndex())
    scalar = arith::IndexCastOp::create(e.b(), e.loc(), element, scalar);
  return tile::SplatOp::create(e.b(), e.loc(), like.getType(), scalar);
}

Value emit::positions(TileEmitter &e, Value indices, bool isUnsigned,
                      AffineExpr extent) {
  OpBuilder &b = e.b();
  Value x = indices;
  auto compare = [&](arith::CmpIPredicate how, Value y) -> Value {
    return arith::CmpIOp::create(b, e.loc(), how, x, y);
  };
  auto type = cast<RankedTensorType>(x.getType());
  // An index of a GPU may have half the bits of an element.
  bool narrows = e.getTarget().kind == EmitTarget::Kind::Gpu &&
                 type.getElementType().isInteger(64);
  auto index = e.tileType(type.getShape(), b.getIndexType());
  auto toIndex = [&]() -> Value {
    if (isUnsigned && !narrows)
      return arith::IndexCastUIOp::create(b, e.loc(), index, x);
    return arith::IndexCastOp::create(b, e.loc(), index, x);
  };
  if (!narrows)
    x = toIndex();
  if (!isUnsigned) {
    Value negative = compare(arith::CmpIPredicate::slt, indexConstant(e, 0, x));
    Value wrapped =
        arith::AddIOp::create(b, e.loc(), x, sizeTile(e, extent, x));
    x = arith::SelectOp::create(b, e.loc(), negative, wrapped, x);
  }
  if (!narrows)
    return x;
  Value inside = compare(arith::CmpIPredicate::ult, sizeTile(e, extent, x));
  x = arith::SelectOp::create(b, e.loc(), inside, x, indexConstant(e, -1, x));
  return toIndex();
}

FailureOr<AffineExpr> emit::indexSymbol(TileEmitter &e, Demand indices,
                                        AffineExpr extent) {
  bool isUnsigned = isUnsignedElement(indices.value.getType());
  indices.guards.clear();
  FailureOr<Value> tile = e.emit(std::move(indices));
  if (failed(tile))
    return failure();
  auto [x, axes] = TileEmitter::withoutBroadcast(*tile);
  return e.addTileSymbol(positions(e, x, isUnsigned, extent), axes, {});
}

bool emit::hasContraction(TileEmitter &e) {
  return llvm::any_of(
      e.getKernel().getBody().front().getOps<graph::GraphOpInterface>(),
      [](graph::GraphOpInterface op) {
        return op.getRole() == graph::OpRole::Contraction;
      });
}

namespace {

FailureOr<Value> iota(graph::IotaOp op, TileEmitter &e, const Demand &demand) {
  Type element =
      e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
  Value index = e.emitIndex(demand.coordinates[op.getAxis()], demand.tile);
  auto integer = e.tileType(demand.tile, e.b().getI64Type());
  Value x = arith::IndexCastOp::create(e.b(), e.loc(), integer, index);
  auto type = e.tileType(demand.tile, element);
  if (isa<FloatType>(element))
    return Value(arith::SIToFPOp::create(e.b(), e.loc(), type, x));
  if (element.getIntOrFloatBitWidth() < 64)
    return Value(arith::TruncIOp::create(e.b(), e.loc(), type, x));
  return x;
}

/// Where along the joined dimension a tile lies that is from one operand of
/// many as a whole; null where it may be from several.
AffineExpr placeOfTile(graph::ConcatOp op, TileEmitter &e,
                       const Demand &demand) {
  if (e.getTarget().kind != EmitTarget::Kind::Cpu ||
      op.getInputs().size() < manyParts)
    return {};
  graph::Facts known = e.facts(demand.tile);
  int64_t step = 0;
  for (Value input : op.getInputs())
    step = std::gcd(
        step, graph::divisorOf(graph::getShape(input)[op.getAxis()], known));
  return e.placeOfTile(demand.coordinates[op.getAxis()], step, demand.tile);
}

/// Every element from the operand in which it lies.
FailureOr<Value> concatByElements(graph::ConcatOp op, TileEmitter &e,
                                  const Demand &demand) {
  unsigned axis = op.getAxis();
  AffineExpr offset = e.constant(0), place = placeOfTile(op, e, demand);
  Value result;
  for (Value input : op.getInputs()) {
    Demand d{input, demand.tile, demand.coordinates, demand.guards};
    AffineExpr extent = graph::getShape(input)[axis];
    d.coordinates[axis] = d.coordinates[axis] - offset;
    Guard inside{d.coordinates[axis], extent};
    d.guards.push_back(inside);
    AffineExpr first = offset;
    offset = offset + extent;
    if (graph::constantOf(extent) == 0)
      continue;
    FailureOr<Value> tile = e.emit(std::move(d));
    if (failed(tile))
      return failure();
    if (place && result) { // a branch, by branchParts
      Value from = arith::CmpIOp::create(
          e.b(), e.loc(), arith::CmpIPredicate::sge, e.materialize(place),
          e.materialize(e.simplify(first, {})));
      result = arith::SelectOp::create(e.b(), e.loc(), from, *tile, result);
      continue;
    }
    Value mask = result ? e.emitInBounds({inside}, demand.tile) : Value();
    result = mask ? Value(arith::SelectOp::create(e.b(), e.loc(), mask, *tile,
                                                  result))
                  : *tile;
  }
  if (!result)
    result = e.splat(
        0, e.computeType(cast<RankedTensorType>(op.getType()).getElementType()),
        demand.tile);
  return result;
}

/// Whether most tiles lie in one part as a whole, of an extent that is known,
/// and are not cut so that all do.
bool isMostlyWhole(graph::ConcatOp op, TileEmitter &e, const Demand &demand,
                   int64_t extent) {
  constexpr int64_t most = 4;
  AffineExpr c = demand.coordinates[op.getAxis()];
  int64_t step = 0;
  for (Value input : op.getInputs())
    step = std::gcd(step,
                    *graph::constantOf(graph::getShape(input)[op.getAxis()]));
  std::optional<int64_t> span = e.spanOf(c, demand.tile);
  return span && !e.placeOfTile(c, step, demand.tile) &&
         extent / *span / (int64_t)op.getInputs().size() >= most;
}

/// Whether a tile of few parts may be told apart from others by a branch:
/// nothing is known before they are bound, or they are long. Chains of concats
/// would be emitted twice in each: those far inside, and all in what looks at
/// each element's place, are not told apart.
bool branchesToParts(graph::ConcatOp op, TileEmitter &e, const Demand &demand) {
  if (e.getTarget().kind != EmitTarget::Kind::Cpu || demand.rank() == 0 ||
      op.getInputs().size() >= manyParts || e.sides() >= mostSides)
    return false;
  std::optional<int64_t> extent =
      graph::constantOf(graph::getShape(op.getResult())[op.getAxis()]);
  if (extent && !isMostlyWhole(op, e, demand, *extent))
    return false;
  return !hasContraction(e);
}

/// Tiles that lie in operand `i` as a whole, which begins at `offset`, or in
/// one behind it, look at no element's place.
FailureOr<Value> concatByParts(graph::ConcatOp op, TileEmitter &e,
                               const Demand &demand, unsigned i,
                               AffineExpr offset) {
  unsigned axis = op.getAxis();
  if (i == op.getInputs().size()) {
    llvm::SaveAndRestore nested(e.sides(), mostSides);
    return e.staying(
        [&]() -> FailureOr<Value> { return concatByElements(op, e, demand); });
  }
  Value input = op.getInputs()[i];
  AffineExpr extent = graph::getShape(input)[axis];
  Guard inside{e.simplify(demand.coordinates[axis] - offset, demand.tile),
               extent};
  auto others = [&] {
    return concatByParts(op, e, demand, i + 1, offset + extent);
  };
  Value whole = e.isInsideAsWhole(inside, demand.tile);
  if (!whole)
    return others();
  Type element = e.computeType(getElementTypeOrSelf(op.getType()));
  return e.branch(
      whole, e.tileType(demand.tile, element),
      [&] {
        Demand d{input, demand.tile, demand.coordinates, demand.guards};
        d.coordinates[axis] = e.insideAsWhole(inside, demand.tile);
        llvm::SaveAndRestore nested(e.sides(), e.sides() + 1);
        return e.emit(std::move(d));
      },
      others);
}

FailureOr<Value> concat(graph::ConcatOp op, TileEmitter &e,
                        const Demand &demand) {
  return branchesToParts(op, e, demand)
             ? concatByParts(op, e, demand, 0, e.constant(0))
             : concatByElements(op, e, demand);
}

FailureOr<Value> gather(graph::GatherOp op, TileEmitter &e,
                        const Demand &demand) {
  unsigned axis = op.getAxis(),
           indexRank = graph::getShape(op.getIndices()).size();
  ArrayRef<AffineExpr> c(demand.coordinates);
  Demand indices{
      op.getIndices(), demand.tile, Exprs(c.slice(axis, indexRank)), {}};
  FailureOr<AffineExpr> index =
      indexSymbol(e, std::move(indices), graph::getShape(op.getInput())[axis]);
  if (failed(index))
    return failure();
  Demand d{op.getInput(), demand.tile, Exprs(c.take_front(axis)),
           demand.guards};
  d.coordinates.push_back(*index);
  llvm::append_range(d.coordinates, c.drop_front(axis + indexRank));
  return e.emit(std::move(d));
}

FailureOr<Value> gatherElements(graph::GatherElementsOp op, TileEmitter &e,
                                const Demand &demand) {
  Demand indices{op.getIndices(), demand.tile, demand.coordinates, {}};
  FailureOr<AffineExpr> index = indexSymbol(
      e, std::move(indices), graph::getShape(op.getInput())[op.getAxis()]);
  if (failed(index))
    return failure();
  Demand d{op.getInput(), demand.tile, demand.coordinates, demand.guards};
  d.coordinates[op.getAxis()] = *index;
  return e.emit(std::move(d));
}

FailureOr<Value> gatherND(graph::GatherNDOp op, TileEmitter &e,
                          const Demand &demand) {
  Exprs indexShape = graph::getShape(op.getIndices()),
        shape = graph::getShape(op.getInput());
  unsigned outer = indexShape.size() - 1, batch = op.getBatchDims();
  std::optional<int64_t> depth = graph::constantOf(indexShape.back());
  if (!depth)
    return e.error(demand, "the last dimension of the indices must be static"),
           failure();
  ArrayRef<AffineExpr> c(demand.coordinates);
  Demand d{op.getInput(), demand.tile, Exprs(c.take_front(batch)),
           demand.guards};
  for (int64_t j = 0; j < *depth; ++j) {
    Demand indices{
        op.getIndices(), demand.tile, Exprs(c.take_front(outer)), {}};
    indices.coordinates.push_back(e.constant(j));
    FailureOr<AffineExpr> index =
        indexSymbol(e, std::move(indices), shape[batch + j]);
    if (failed(index))
      return failure();
    d.coordinates.push_back(*index);
  }
  llvm::append_range(d.coordinates, c.drop_front(outer));
  return e.emit(std::move(d));
}

unsigned behindAxis(Value value, unsigned axis) {
  return graph::getShape(value).size() - 1 - axis;
}
unsigned passedByConcat(graph::ConcatOp op, unsigned) {
  return behindAxis(op.getResult(), op.getAxis());
}
unsigned passedByGather(graph::GatherOp op, unsigned operand) {
  return operand == 0 ? behindAxis(op.getInput(), op.getAxis()) : 0;
}
unsigned passedByGatherND(graph::GatherNDOp op, unsigned operand) {
  std::optional<int64_t> depth =
      graph::constantOf(graph::getShape(op.getIndices()).back());
  return operand == 0 && depth
             ? behindAxis(op.getInput(), op.getBatchDims() + *depth - 1)
             : 0;
}
} // namespace

void emit::registerIndexRules(MLIRContext *c) {
  graph::IotaOp::attachInterface<Rule<graph::IotaOp, iota>>(*c);
  graph::ConcatOp::attachInterface<
      PassingRule<graph::ConcatOp, concat, passedByConcat>>(*c);
  graph::GatherOp::attachInterface<
      PassingRule<graph::GatherOp, gather, passedByGather>>(*c);
  graph::GatherElementsOp::attachInterface<
      Rule<graph::GatherElementsOp, gatherElements>>(*c);
  graph::GatherNDOp::attachInterface<
      PassingRule<graph::GatherNDOp, gatherND, passedByGatherND>>(*c);
  registerPadRule(c);
  registerResizeRule(c);
}
