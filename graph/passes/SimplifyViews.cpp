#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"

namespace charonia::graph {
#define GEN_PASS_DEF_SIMPLIFYVIEWS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// Where the slice starts along `axis`, if it is whole along all others.
AffineExpr startAlong(SliceOp slice, int64_t axis) {
  Exprs from = getShape(slice.getInput()), to = getShape(slice.getResult());
  for (size_t d = 0; d < to.size(); ++d)
    if (slice.getSteps()[d] != 1 || ((int64_t)d != axis && from[d] != to[d]))
      return {};
  return slice.getStarts().getResult(axis);
}

/// Whether runs of so many neighbours stay together that reading them in
/// another order costs nothing.
bool hasRunsBehind(ArrayRef<AffineExpr> shape, int64_t axis) {
  constexpr int64_t shortest = 16;
  int64_t run = 1;
  for (AffineExpr extent : shape.drop_front(axis + 1)) {
    std::optional<int64_t> known = constantOf(extent);
    if (!known)
      return false;
    run *= *known;
  }
  return run >= shortest;
}

/// The end of a value in front of its beginning is the value once around: as
/// views of it, twice in a row, of which one is read.
Value rolled(ConcatOp concat, OpBuilder &b) {
  int64_t axis = concat.getAxis();
  if (concat.getInputs().size() != 2)
    return {};
  auto end = concat.getInputs()[0].getDefiningOp<SliceOp>(),
       begin = concat.getInputs()[1].getDefiningOp<SliceOp>();
  if (!end || !begin || end.getInput() != begin.getInput())
    return {};
  Value x = end.getInput();
  Exprs shape = getShape(x);
  AffineExpr cut = startAlong(end, axis), zero = startAlong(begin, axis);
  if (!cut || !zero || constantOf(zero) != 0 ||
      getShape(concat.getResult()) != shape || !constantOf(cut) ||
      !constantOf(shape[axis]) || cut != getShape(begin.getResult())[axis] ||
      simplify(shape[axis] - cut) != getShape(end.getResult())[axis] ||
      !hasRunsBehind(shape, axis))
    return {};
  Location loc = concat.getLoc();
  Type element = getElementTypeOrSelf(x);
  auto make = [&](auto op, Exprs dims) -> Value {
    return decltype(op)::create(b, loc, makeType(dims, element), x);
  };
  Exprs twice = shape, pair = shape;
  pair.insert(pair.begin() + axis, getAffineConstantExpr(1, b.getContext()));
  x = make(ReshapeOp(), pair);
  pair[axis] = getAffineConstantExpr(2, b.getContext());
  x = make(BroadcastOp(), pair);
  twice[axis] = simplify(shape[axis] * 2);
  x = make(ReshapeOp(), twice);
  Exprs starts(shape.size(), getAffineConstantExpr(0, b.getContext()));
  starts[axis] = cut;
  return SliceOp::create(
      b, loc, concat.getType(), x,
      AffineMapAttr::get(AffineMap::get(0, end.getStarts().getNumSymbols(),
                                        starts, b.getContext())),
      b.getDenseI64ArrayAttr(SmallVector<int64_t>(shape.size(), 1)));
}

/// Values that are joined between transposes, at least half of which cancel:
/// joined as they lie. Others are read in another order in either way.
Value joinedAsTheyLie(TransposeOp back, OpBuilder &b) {
  auto concat = back.getInput().getDefiningOp<ConcatOp>();
  if (!concat || !concat->hasOneUse())
    return {};
  ArrayRef<int64_t> order = back.getPermutation();
  auto undone = [&](Value input) -> Value {
    auto there = input.getDefiningOp<TransposeOp>();
    for (auto [i, d] : llvm::enumerate(order))
      if (!there || there.getPermutation()[d] != (int64_t)i)
        return {};
    return there.getInput();
  };
  // What is moved in return is no more than what stays.
  AffineExpr stays = b.getAffineConstantExpr(0), moves = stays;
  for (Value input : concat.getInputs()) {
    AffineExpr &sum = undone(input) ? stays : moves;
    sum = sum + getShape(input)[concat.getAxis()];
  }
  if (!isNonNegative(simplify(stays - moves), Facts::ofCoordinates()))
    return {};
  SmallVector<Value> parts;
  for (Value input : concat.getInputs()) {
    Value part = undone(input);
    parts.push_back(
        part ? part
             : Value(TransposeOp::create(b, back.getLoc(), input, order)));
  }
  int64_t axis = llvm::find(order, concat.getAxis()) - order.begin();
  return ConcatOp::create(b, concat.getLoc(), parts, axis);
}

/// What is repeated along the first of two dimensions that become one: x of [1,
/// w, ..] as [n, w, ..], as [n w, ..].
struct Repeated {
  Value once; ///< [1, w, ..]
  AffineExpr times, width;
};

std::optional<Repeated> repeatedOf(Value value) {
  auto merged = value.getDefiningOp<ReshapeOp>();
  auto repeat =
      merged ? merged.getInput().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!repeat)
    return std::nullopt;
  Exprs once = getShape(repeat.getInput()), all = getShape(repeat.getResult()),
        out = getShape(value);
  if (all.size() != out.size() + 1 || once.size() != all.size() ||
      constantOf(once[0]) != 1 || constantOf(all[0]) == 1 ||
      ArrayRef(once).drop_front() != ArrayRef(all).drop_front() ||
      ArrayRef(all).drop_front(2) != ArrayRef(out).drop_front())
    return std::nullopt;
  return Repeated{repeat.getInput(), all[0], all[1]};
}

/// What is computed of weights, one of them repeated and the others the same
/// for all repetitions, is computed once, and repeated: masks of windows that
/// are the same for each image.
Value repeatedBehind(GraphOpInterface op, WeightsOnly &weightsOnly,
                     OpBuilder &b) {
  Exprs out = getShape(op->getResult(0));
  for (OpOperand &operand : op->getOpOperands()) {
    auto repeated = getShape(operand.get()).size() == out.size()
                        ? repeatedOf(operand.get())
                        : std::nullopt;
    if (!repeated || !weightsOnly(repeated->once))
      continue;
    bool areSame = llvm::all_of(op->getOpOperands(), [&](OpOperand &other) {
      Exprs shape = getShape(other.get());
      return &other == &operand ||
             (weightsOnly(other.get()) &&
              (shape.size() < out.size() || constantOf(shape[0]) == 1));
    });
    if (!areSame)
      continue;
    Location loc = op->getLoc();
    auto typed = [&](ArrayRef<AffineExpr> front) {
      Exprs shape(front);
      shape.append(out.begin() + 1, out.end());
      return makeType(shape, getElementTypeOrSelf(op->getResult(0)));
    };
    AffineExpr one = b.getAffineConstantExpr(1);
    Exprs once = getShape(repeated->once);
    Type type = makeType(ArrayRef(once).drop_front(),
                         getElementTypeOrSelf(operand.get()));
    Value own = ReshapeOp::create(b, loc, type, repeated->once);
    Operation *inner = b.clone(*op);
    inner->setOperand(operand.getOperandNumber(), own);
    inner->getResult(0).setType(typed(repeated->width));
    Value pair = ReshapeOp::create(b, loc, typed({one, repeated->width}),
                                   inner->getResult(0)),
          all = BroadcastOp::create(
              b, loc, typed({repeated->times, repeated->width}), pair);
    return ReshapeOp::create(b, loc, op->getResult(0).getType(), all);
  }
  return {};
}

class SimplifyViews
    : public charonia::graph::impl::SimplifyViewsBase<SimplifyViews> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    getOperation().walk([&](ConcatOp concat) {
      builder.setInsertionPoint(concat);
      if (Value value = rolled(concat, builder))
        concat.replaceAllUsesWith(value);
    });
    WeightsOnly weightsOnly;
    getOperation().walk([&](GraphOpInterface op) {
      builder.setInsertionPoint(op);
      if (op.getRole() != OpRole::Pointwise || op->getNumOperands() < 2)
        return;
      if (Value value = repeatedBehind(op, weightsOnly, builder))
        op->getResult(0).replaceAllUsesWith(value);
    });
    getOperation().walk([&](TransposeOp back) {
      builder.setInsertionPoint(back);
      if (Value value = joinedAsTheyLie(back, builder))
        back.replaceAllUsesWith(value);
    });
    // From the start, so that a chain's beginning is short when its end is
    // seen.
    getOperation().walk([&](GraphOpInterface op) {
      if (op.getRole() == OpRole::View && !op->use_empty())
        shortenViews(op, builder);
    });
    eraseDead(getOperation());
  }
};

} // namespace
