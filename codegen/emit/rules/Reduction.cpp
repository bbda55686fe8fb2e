// Reductions.
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// Coordinates of the input of a reduction: those of the result, and those of a
/// linear index over the axes.
Exprs inputCoordinates(ArrayRef<AffineExpr> result, ArrayRef<int64_t> axes,
                       bool keepdims, ArrayRef<AffineExpr> shape,
                       AffineExpr index) {
  Exprs extents;
  for (int64_t axis : axes)
    extents.push_back(shape[axis]);
  Exprs reduced = delinearize(index, extents), coordinates;
  unsigned next = 0, r = 0;
  for (unsigned i = 0; i < shape.size(); ++i) {
    bool isReduced = llvm::is_contained(axes, (int64_t)i);
    coordinates.push_back(isReduced ? reduced[r++] : result[next]);
    if (!isReduced || keepdims)
      ++next;
  }
  return coordinates;
}

FailureOr<Value> reduce(graph::ReduceOp op, TileEmitter &e,
                        const Demand &demand) {
  Exprs shape = graph::getShape(op.getInput());
  ArrayRef<int64_t> axes = op.getAxes();
  ReductionOf reduction{op.getKind(), isUnsignedElement(op.getType())};
  Type type =
      e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
  bool split = e.getSplit().count > 1 && type.isF32() &&
               op.getKind() == graph::ReduceKind::sum;
  FailureOr<SmallVector<Value>> result = reduceOver(
      e, demand, extentOf(e, shape, axes), endsWithLast(axes, shape),
      {reduction.neutral(type)},
      [&](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
        return SmallVector<Value>{reduction(b, loc, x[0], y[0])};
      },
      [&](const Demand &d, AffineExpr index) -> FailureOr<SmallVector<Value>> {
        FailureOr<Value> x =
            e.emit({op.getInput(),
                    d.tile,
                    inputCoordinates(d.coordinates, axes, op.getKeepdims(),
                                     shape, index),
                    {}});
        return failed(x) ? FailureOr<SmallVector<Value>>()
                         : SmallVector<Value>{*x};
      },
      split);
  if (failed(result))
    return failure();
  return split ? e.sumParts(result->front()) : result->front();
}

/// Of two elements with their indices the better one; of equal ones the first,
/// or the last.
SmallVector<Value> better(OpBuilder &b, Location loc, const ReductionOf &order,
                          bool last, ArrayRef<Value> x, ArrayRef<Value> y) {
  Value best = order(b, loc, x[0], y[0]);
  Value tie, left;
  if (isa<FloatType>(getElementTypeOrSelf(x[0].getType()))) {
    using P = arith::CmpFPredicate;
    auto compare = [&](P how, Value left, Value right) -> Value {
      return arith::CmpFOp::create(b, loc, how, left, right);
    };
    // NaN comes before all others, and equals itself.
    Value xIs = compare(P::UNO, x[0], x[0]), yIs = compare(P::UNO, y[0], y[0]);
    left = compare(order.kind == graph::ReduceKind::max ? P::OGT : P::OLT, x[0],
                   y[0]);
    left = arith::OrIOp::create(b, loc, left, xIs);
    tie = arith::OrIOp::create(b, loc, compare(P::OEQ, x[0], y[0]),
                               arith::AndIOp::create(b, loc, xIs, yIs));
  } else {
    tie = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x[0], y[0]);
    left = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, best, x[0]);
  }
  Value first = last ? Value(arith::MaxSIOp::create(b, loc, x[1], y[1]))
                     : arith::MinSIOp::create(b, loc, x[1], y[1]);
  Value index = arith::SelectOp::create(b, loc, left, x[1], y[1]);
  index = arith::SelectOp::create(b, loc, tie, first, index);
  return {best, index};
}

/// Whether an element comes before the best of those in front of it.
Value isBetter(OpBuilder &b, Location loc, const ReductionOf &order, bool last,
               Value x, Value best) {
  bool greater = order.kind == graph::ReduceKind::max;
  if (isa<FloatType>(getElementTypeOrSelf(x.getType()))) {
    using P = arith::CmpFPredicate;
    auto compare = [&](P how, Value left, Value right) -> Value {
      return arith::CmpFOp::create(b, loc, how, left, right);
    };
    // NaN comes before all others, and equals itself.
    if (last)
      return arith::OrIOp::create(b, loc,
                                  compare(greater ? P::OGE : P::OLE, x, best),
                                  compare(P::UNO, x, x));
    return arith::AndIOp::create(b, loc,
                                 compare(greater ? P::UGT : P::ULT, x, best),
                                 compare(P::ORD, best, best));
  }
  using P = arith::CmpIPredicate;
  bool noSign = order.isUnsigned || getElementTypeOrSelf(x).isInteger(1);
  P how = greater ? (noSign ? (last ? P::uge : P::ugt)
                     : last ? P::sge
                            : P::sgt)
                  : (noSign ? (last ? P::ule : P::ult)
                     : last ? P::sle
                            : P::slt);
  return arith::CmpIOp::create(b, loc, how, x, best);
}

/// The place of the best element of a row. Terms come in rising order, so what
/// is in front is known of each; only the last few bests are compared by their
/// places.
class ArgReduceEmitter {
public:
  ArgReduceEmitter(graph::ArgReduceOp op, TileEmitter &e)
      : op(op), e(e), shape(graph::getShape(op.getInput())),
        order{op.getMin() ? graph::ReduceKind::min : graph::ReduceKind::max,
              isUnsignedElement(op.getInput().getType())} {
    auto known = graph::constantOf(shape[op.getAxis()]);
    Builder &b = e.b();
    index = known && *known <= std::numeric_limits<int32_t>::max()
                ? b.getI32Type()
                : b.getI64Type();
    unsigned bits = cast<IntegerType>(index).getWidth();
    none =
        b.getIntegerAttr(index, op.getLast() ? APInt::getAllOnes(bits)
                                             : APInt::getSignedMaxValue(bits));
  }

  FailureOr<Value> run(const Demand &demand) {
    int64_t axis = op.getAxis();
    Type type = e.computeType(getElementTypeOrSelf(op.getInput().getType()));
    auto add = [&](ArrayRef<Value> best, ArrayRef<Value> term, Value inside) {
      return added(best, term, inside);
    };
    Running running{add};
    FailureOr<SmallVector<Value>> result = reduceOver(
        e, demand, shape[axis], endsWithLast({axis}, shape),
        {order.neutral(type), none},
        [&](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
          return better(b, loc, order, op.getLast(), x, y);
        },
        [&](const Demand &d, AffineExpr i) { return term(d, i); },
        /*part=*/false, &running);
    if (failed(result))
      return failure();
    // None is better than what nothing can be worse than.
    OpBuilder &b = e.b();
    Value place = (*result)[1],
          isNone = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq,
                                         place, e.splat(none, demand.tile));
    place = arith::SelectOp::create(b, e.loc(), isNone,
                                    e.splat(0, index, demand.tile), place);
    if (index.isInteger(64))
      return place;
    return Value(arith::ExtSIOp::create(
        b, e.loc(), e.tileType(demand.tile, b.getI64Type()), place));
  }

private:
  SmallVector<Value> added(ArrayRef<Value> best, ArrayRef<Value> term,
                           Value inside) {
    OpBuilder &b = e.b();
    Value wins = isBetter(b, e.loc(), order, op.getLast(), term[0], best[0]);
    if (inside)
      wins = arith::AndIOp::create(b, e.loc(), wins, inside);
    return {arith::SelectOp::create(b, e.loc(), wins, term[0], best[0]),
            arith::SelectOp::create(b, e.loc(), wins, term[1], best[1])};
  }

  FailureOr<SmallVector<Value>> term(const Demand &d, AffineExpr i) {
    FailureOr<Value> x =
        e.emit({op.getInput(),
                d.tile,
                inputCoordinates(d.coordinates, {(int64_t)op.getAxis()},
                                 op.getKeepdims(), shape, i),
                {}});
    if (failed(x))
      return failure();
    return SmallVector<Value>{*x, arith::IndexCastOp::create(
                                      e.b(), e.loc(), e.tileType(d.tile, index),
                                      e.emitIndex(i, d.tile))};
  }

  graph::ArgReduceOp op;
  TileEmitter &e;
  Exprs shape;
  ReductionOf order;
  Type index;
  TypedAttr none;
};

FailureOr<Value> argReduce(graph::ArgReduceOp op, TileEmitter &e,
                           const Demand &demand) {
  return ArgReduceEmitter(op, e).run(demand);
}

/// What lies behind the last dimension that is reduced stays as it is.
unsigned behindLast(Value input, ArrayRef<int64_t> axes) {
  unsigned rank = graph::getShape(input).size();
  return axes.empty() ? rank : rank - 1 - *llvm::max_element(axes);
}

unsigned passedByReduce(graph::ReduceOp op, unsigned) {
  return behindLast(op.getInput(), op.getAxes());
}

unsigned passedByArgReduce(graph::ArgReduceOp op, unsigned) {
  return behindLast(op.getInput(), op.getAxis());
}

} // namespace

void emit::registerReductionRules(MLIRContext *c) {
  graph::ReduceOp::attachInterface<
      PassingRule<graph::ReduceOp, reduce, passedByReduce>>(*c);
  graph::ArgReduceOp::attachInterface<
      PassingRule<graph::ArgReduceOp, argReduce, passedByArgReduce>>(*c);
}
