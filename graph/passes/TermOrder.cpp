#include "graph/passes/TermOrder.h"
#include "graph/analysis/FusionPlan.h"
#include "graph/ir/Refinement.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Views.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace charonia::graph {

/// Coordinates of more terms are none that a few views give, and longer ways
/// none that exporters write.
static constexpr unsigned mostTerms = 256, longestWay = 16;

namespace {
/// From a value to what is stored, with the coordinates there of its own.
struct Way {
  SmallVector<Operation *> ops;
  AffineMap map;
  Value memory;
  size_t moving = 0; ///< Operators up to the last view that moves elements.
};

/// Dimensions of which those of a value are made by merging neighbours, so that
/// a map's coordinates are sums of whole ones.
struct Parts {
  Exprs extents;
  SmallVector<unsigned> owner; ///< The value's dimension.
};
} // namespace

static bool isSingle(Value value) {
  return constantOf(numElements(getShape(value), value.getContext())) == 1;
}

/// The operand whose elements `op` passes on, by their places or each to its
/// own: of a view, or of a pointwise operator that takes nothing else but
/// weights and single elements, which go into any order.
static OpOperand *passedOn(GraphOpInterface op, WeightsOnly &weightsOnly) {
  if (composedView(op->getResult(0)))
    return &op->getOpOperand(0);
  if (op.getRole() != OpRole::Pointwise)
    return nullptr;
  OpOperand *passed = nullptr;
  for (OpOperand &operand : op->getOpOperands()) {
    if (weightsOnly(operand.get()) || isSingle(operand.get()))
      continue;
    bool isOther = passed && passed->get() != operand.get();
    if (isOther || getShape(operand.get()) != getShape(op->getResult(0)))
      return nullptr;
    passed = &operand;
  }
  return passed;
}

/// Up to the last view that moves elements: what is in front of that gives them
/// as they lie.
static Way wayToMemory(Value value, WeightsOnly &weightsOnly) {
  Exprs extents = getShape(value);
  AffineMap map =
      AffineMap::getMultiDimIdentityMap(extents.size(), value.getContext());
  Way way;
  SmallVector<Operation *> ops;
  while (ops.size() < longestWay) {
    auto op = value.getDefiningOp<GraphOpInterface>();
    OpOperand *from = op ? passedOn(op, weightsOnly) : nullptr;
    bool isShared = !ops.empty() && !value.hasOneUse();
    if (!from || (isShared && op.getRole() == OpRole::Pointwise))
      break;
    map = composeMaps(op.getOperandMap(from->getOperandNumber()), map, extents);
    if (countTerms(map, mostTerms + 1) > mostTerms)
      break;
    bool endsHere = way.ops.size() == ops.size();
    ops.push_back(op);
    value = from->get();
    bool isView = op.getRole() == OpRole::View,
         moves = isView && !isSameBytes(op);
    if (moves || (isView && endsHere && way.memory))
      way = {ops, map, value, moves ? ops.size() : way.moving};
  }
  return way;
}

/// Notes each number of neighbours along a dimension that an expression takes
/// as one, and returns how many it does itself; null for what is no part of a
/// dimension.
static AffineExpr noteRuns(AffineExpr e, MutableArrayRef<Exprs> runs,
                           int64_t &dim) {
  if (auto self = dyn_cast<AffineDimExpr>(e)) {
    dim = self.getPosition();
    return getAffineConstantExpr(1, e.getContext());
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(e);
  if (!binary)
    return {};
  AffineExpr run = noteRuns(binary.getLHS(), runs, dim);
  if (e.getKind() != AffineExprKind::FloorDiv &&
      e.getKind() != AffineExprKind::Mod) {
    int64_t other;
    noteRuns(binary.getRHS(), runs, other);
    return {};
  }
  if (!run || !binary.getRHS().isSymbolicOrConstant())
    return {};
  AffineExpr all = simplify(run * binary.getRHS());
  if (!llvm::is_contained(runs[dim], all))
    runs[dim].push_back(all);
  return e.getKind() == AffineExprKind::Mod ? run : all;
}

static std::optional<Parts> partsOf(AffineMap map,
                                    ArrayRef<AffineExpr> extents) {
  SmallVector<Exprs> runs(extents.size());
  int64_t dim;
  for (AffineExpr e : map.getResults())
    noteRuns(e, runs, dim);
  Parts parts;
  for (auto [d, extent] : llvm::enumerate(extents)) {
    std::optional<Exprs> cut = cutIntoRuns(extent, runs[d]);
    if (!cut)
      return std::nullopt;
    parts.extents.append(*cut);
    parts.owner.append(cut->size(), d);
  }
  return parts;
}

/// The parts of dimension `dim` from the outermost in memory to the innermost.
static std::optional<SmallVector<int64_t>>
orderInMemory(const Parts &parts, unsigned dim, AffineMap map, Value memory) {
  std::optional<ViewPlan> plan =
      planViews(map, getShape(memory), parts.extents);
  if (!plan)
    return std::nullopt;
  // Parts that one element is read along have no place.
  SmallVector<int64_t> places(parts.extents.size(), -1);
  unsigned used = 0;
  for (unsigned i = 0; i < places.size(); ++i)
    if (map.isFunctionOfDim(i) && used < plan->permutation.size())
      places[i] = plan->permutation[used++];
  SmallVector<int64_t> order;
  for (unsigned i = 0; i < places.size(); ++i) {
    if (parts.owner[i] != dim)
      continue;
    if (places[i] < 0)
      return std::nullopt;
    order.push_back(i);
  }
  llvm::stable_sort(
      order, [&](int64_t a, int64_t b) { return places[a] < places[b]; });
  return order;
}

std::optional<OrderedTerms> OrderedTerms::find(Value value, unsigned dim,
                                               WeightsOnly &weightsOnly) {
  Way way = wayToMemory(value, weightsOnly);
  Exprs extents = getShape(value);
  if (!way.memory || !constantOf(extents[dim]))
    return std::nullopt;
  MLIRContext *context = value.getContext();
  std::optional<Parts> parts = partsOf(way.map, extents);
  if (!parts)
    return std::nullopt;
  AffineMap whole = reshapeMap(extents, parts->extents, context);
  AffineMap map = composeMaps(way.map, whole, parts->extents);
  auto places = orderInMemory(*parts, dim, map, way.memory);
  if (!places || llvm::is_sorted(*places))
    return std::nullopt;
  OrderedTerms found;
  found.value = value;
  found.way = std::move(way.ops);
  found.moving = way.moving;
  unsigned first = llvm::find(parts->owner, dim) - parts->owner.begin();
  // Coordinates of the parts as they are, by those of the parts in order.
  Exprs coordinates;
  for (unsigned i = 0; i < parts->extents.size(); ++i)
    coordinates.push_back(getAffineDimExpr(i, context));
  found.parts = parts->extents;
  for (auto [i, part] : llvm::enumerate(*places)) {
    found.order.extents.push_back(*constantOf(parts->extents[first + i]));
    found.order.order.push_back(part - first);
    found.parts[first + i] = parts->extents[part];
    coordinates[part] = getAffineDimExpr(first + i, context);
  }
  found.whole = composeMaps(
      whole, mapOf(coordinates.size(), coordinates, context), found.parts);
  return found;
}

/// The shape that `map` reads of: of one element along dims that it is no
/// function of.
static Exprs readShape(AffineMap map, ArrayRef<AffineExpr> shape) {
  Exprs read(shape);
  for (auto [d, extent] : llvm::enumerate(read))
    if (!map.isFunctionOfDim(d))
      extent = getAffineConstantExpr(1, map.getContext());
  return read;
}

/// Views of what `from` is a view of, or of itself, by coordinates of `shape`.
static Value readThrough(OpBuilder &builder, Value from, AffineMap map,
                         ArrayRef<AffineExpr> shape) {
  std::optional<ViewPlan> best;
  Value memory;
  for (unsigned i = 0; i < longestWay; ++i) {
    if (auto plan = planViews(map, getShape(from), readShape(map, shape))) {
      best = std::move(plan);
      memory = from;
    }
    GraphOpInterface view = composedView(from);
    if (!view || countTerms(map, mostTerms + 1) > mostTerms)
      break;
    map = composeMaps(view.getOperandMap(0), map, shape);
    from = view->getOperand(0);
  }
  return best ? buildViews(builder, memory.getLoc(), memory, *best) : Value();
}

Value OrderedTerms::read(OpBuilder &builder, Value from, AffineMap map) const {
  auto op = from.getDefiningOp<GraphOpInterface>();
  if (!op || !llvm::is_contained(way, op.getOperation()))
    return isSingle(from) ? from : readThrough(builder, from, map, parts);
  if (op.getRole() == OpRole::View)
    return read(builder, op->getOperand(0),
                composeMaps(op.getOperandMap(0), map, parts));
  IRMapping operands;
  Exprs shape(parts.size(), builder.getAffineConstantExpr(1));
  for (OpOperand &operand : op->getOpOperands()) {
    if (operands.contains(operand.get()))
      continue;
    AffineMap step = op.getOperandMap(operand.getOperandNumber());
    Value made =
        step ? read(builder, operand.get(), composeMaps(step, map, parts))
             : Value();
    if (!made)
      return {};
    operands.map(operand.get(), made);
    Exprs own = getShape(made);
    if (own.size() == shape.size())
      for (auto [d, extent] : llvm::enumerate(own))
        shape[d] = constantOf(extent) == 1 ? shape[d] : extent;
  }
  Operation *copy = builder.clone(*op, operands);
  Value result = copy->getResult(0);
  result.setType(makeType(shape, getElementTypeOrSelf(result)));
  return result;
}

Value OrderedTerms::build() const {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Value ordered = read(builder, value, whole);
  if (!ordered)
    return {};
  Location loc = value.getLoc();
  Type element = getElementTypeOrSelf(value);
  if (getShape(ordered) != parts)
    ordered =
        BroadcastOp::create(builder, loc, makeType(parts, element), ordered);
  // Folds with a reshape in front of it, and is none where nothing moves.
  return builder.createOrFold<ReshapeOp>(loc, value.getType(), ordered);
}

Value storedInOrder(OpBuilder &builder, Value value, unsigned dim,
                    const TermOrder &order) {
  Location loc = value.getLoc();
  Exprs shape = getShape(value), apart(ArrayRef(shape).take_front(dim));
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, dim));
  for (auto [extent, part] : llvm::zip_equal(order.extents, order.order)) {
    apart.push_back(builder.getAffineConstantExpr(extent));
    permutation.push_back(dim + part);
  }
  for (unsigned d = dim + 1; d < shape.size(); ++d) {
    permutation.push_back(apart.size());
    apart.push_back(shape[d]);
  }
  Type element = getElementTypeOrSelf(value);
  Value cut = ReshapeOp::create(builder, loc, makeType(apart, element), value);
  Value moved = TransposeOp::create(builder, loc, cut, permutation);
  Value joined = ReshapeOp::create(builder, loc, value.getType(), moved);
  setStored(joined.getDefiningOp());
  return joined;
}

} // namespace charonia::graph
