// Softmax and normalization of rows.
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// What softmax and normalize share: reductions along the row that the demanded
/// elements lie in. A row's reductions depend on no axis that only moves along
/// the row, so they are emitted once for it, outside the loop over its
/// elements.
class RowEmitter {
public:
  RowEmitter(TileEmitter &e, Value input, ArrayRef<int64_t> axes,
             const Demand &demand)
      : e(e), input(input), axes(axes), shape(graph::getShape(input)),
        row(demand), extent(extentOf(e, shape, axes)) {
    for (int64_t axis : axes)
      row.coordinates[axis] = e.constant(0);
    row.guards.clear();
  }

  AffineExpr getExtent() const { return extent; }

  /// Whether a GPU walks along the row: then all that is known of it should
  /// come from one walk.
  bool isWalked(const Demand &at) const {
    Demand start = startOf(at);
    for (unsigned i = 0; i < start.rank(); ++i)
      if (llvm::none_of(start.coordinates,
                        [&](AffineExpr c) { return e.dependsOnAxis(c, i); }))
        start.tile[i] = 1;
    return e.getTarget().kind == EmitTarget::Kind::Gpu &&
           hasSteps(e, start, extent, endsWithLast(axes, shape));
  }

  /// A tile of the input.
  FailureOr<Value> element(const Demand &d) {
    FailureOr<Value> x = e.emit({input, d.tile, d.coordinates, {}});
    if (succeeded(x) && mayBeRounded && x->getDefiningOp())
      x->getDefiningOp()->setAttr(
          tile::kMayBeRoundedAttr,
          TypeAttr::get(
              cast<RankedTensorType>(input.getType()).getElementType()));
    return x;
  }

  /// What is computed of the row may be kept from one walk along it to the next
  /// as it would be stored.
  void letBeRounded() {
    mayBeRounded = isa<Float16Type, BFloat16Type>(
        cast<RankedTensorType>(input.getType()).getElementType());
  }

  /// Reduction `kind` of f(element) along the row, as a tile of `at`'s shape.
  FailureOr<Value> reduce(const Demand &at, unsigned part,
                          graph::ReduceKind kind,
                          function_ref<FailureOr<Value>(const Demand &)> f) {
    ReductionOf reduction{kind};
    FailureOr<SmallVector<Value>> result = reduceAll(
        at, part, {reduction.neutral(getType())},
        [&](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
          return SmallVector<Value>{reduction(b, loc, x[0], y[0])};
        },
        f);
    return failed(result) ? FailureOr<Value>()
                          : FailureOr<Value>(result->front());
  }

  /// The same of several components; `running` adds f(element) to them.
  FailureOr<SmallVector<Value>>
  reduceAll(const Demand &at, unsigned part, ArrayRef<TypedAttr> neutral,
            Combine combine, function_ref<FailureOr<Value>(const Demand &)> f,
            const Running *running = nullptr) {
    return e.emitPart(startOf(at), part, [&](const Demand &outer) {
      return reduceOver(
          e, outer, extent, endsWithLast(axes, shape), neutral, combine,
          [&](const Demand &d,
              AffineExpr index) -> FailureOr<SmallVector<Value>> {
            Demand inside = d;
            Exprs extents;
            for (int64_t axis : axes)
              extents.push_back(shape[axis]);
            for (auto [axis, c] : llvm::zip(axes, delinearize(index, extents)))
              inside.coordinates[axis] = c;
            FailureOr<Value> x = f(inside);
            return failed(x) ? FailureOr<SmallVector<Value>>()
                             : SmallVector<Value>{*x};
          },
          /*part=*/false, running);
    });
  }

  FloatType getType() const {
    return cast<FloatType>(e.computeType(
        cast<RankedTensorType>(input.getType()).getElementType()));
  }

private:
  /// Of the first element of the row.
  Demand startOf(const Demand &at) const {
    Demand start = at;
    for (int64_t axis : axes)
      start.coordinates[axis] = e.constant(0);
    start.guards.clear();
    return start;
  }

  TileEmitter &e;
  Value input;
  SmallVector<int64_t> axes;
  Exprs shape;
  Demand row;
  AffineExpr extent;
  bool mayBeRounded = false;
};

/// The maximum of a row and the sum of what its elements are below it, from one
/// walk: what was added so far is scaled when the maximum grows. Of an element
/// and the maximum one is as far above the other, so one exponential will do.
FailureOr<SmallVector<Value>> maximumAndSum(RowEmitter &row, TileEmitter &e,
                                            const Demand &demand) {
  OpBuilder &b = e.b();
  FloatType type = row.getType();
  // Finite, so that it is below itself by nothing.
  TypedAttr least = FloatAttr::get(
      type, APFloat::getLargest(type.getFloatSemantics(), /*Negative=*/true));
  auto add = [&](ArrayRef<Value> c, ArrayRef<Value> terms, Value inside) {
    Location loc = e.loc();
    Value x =
        e.maskWith(inside, terms[0], -std::numeric_limits<double>::infinity());
    Value above = arith::SubFOp::create(b, loc, x, c[0]);
    Value below =
        arith::NegFOp::create(b, loc, math::AbsFOp::create(b, loc, above));
    Value factor = math::ExpOp::create(b, loc, below);
    Value grows =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, c[0]);
    Value scaled = arith::AddFOp::create(
        b, loc, arith::MulFOp::create(b, loc, c[1], factor),
        e.splatLike(1, factor));
    Value added = arith::AddFOp::create(b, loc, c[1], factor);
    return SmallVector<Value>{
        arith::MaximumFOp::create(b, loc, c[0], x),
        arith::SelectOp::create(b, loc, grows, scaled, added)};
  };
  // Each sum is scaled once, to the maximum of all.
  auto join = [&](ArrayRef<Value> c, const AlongLast &along) {
    Location loc = e.loc();
    Value max = along.reduce(graph::ReduceKind::max, c[0]);
    Value below = arith::SubFOp::create(b, loc, c[0], along.spread(max, c[0]));
    Value scaled =
        arith::MulFOp::create(b, loc, c[1], math::ExpOp::create(b, loc, below));
    return SmallVector<Value>{max,
                              along.reduce(graph::ReduceKind::sum, scaled)};
  };
  Running running{add, join};
  return row.reduceAll(
      demand, 1, {least, b.getFloatAttr(type, 0)},
      [](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
        // The lower one first: lanes combine in either order, and have to agree
        // in all bits. Infinity is no distance below itself: NaN, as in a sum.
        Value max = arith::MaximumFOp::create(b, loc, x[0], y[0]),
              min = arith::MinimumFOp::create(b, loc, x[0], y[0]);
        Value ordered = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE,
                                              x[0], y[0]);
        auto scaled = [&](Value from, Value sum) -> Value {
          Value below = arith::SubFOp::create(b, loc, from, max);
          return arith::MulFOp::create(b, loc, sum,
                                       math::ExpOp::create(b, loc, below));
        };
        Value low =
            scaled(min, arith::SelectOp::create(b, loc, ordered, x[1], y[1]));
        Value high =
            scaled(max, arith::SelectOp::create(b, loc, ordered, y[1], x[1]));
        return SmallVector<Value>{max,
                                  arith::AddFOp::create(b, loc, low, high)};
      },
      [&](const Demand &i) { return row.element(i); }, &running);
}

FailureOr<Value> softmax(graph::SoftmaxOp op, TileEmitter &e,
                         const Demand &demand) {
  OpBuilder &b = e.b();
  RowEmitter row(e, op.getInput(), {(int64_t)op.getAxis()}, demand);
  bool walked = row.isWalked(demand);
  auto component = [&](const Demand &d, unsigned i) -> FailureOr<Value> {
    FailureOr<SmallVector<Value>> both = maximumAndSum(row, e, d);
    return failed(both) ? FailureOr<Value>() : FailureOr<Value>((*both)[i]);
  };
  auto shifted = [&](const Demand &d) -> FailureOr<Value> {
    FailureOr<Value> x = row.element(d);
    if (failed(x))
      return failure();
    FailureOr<Value> max =
        walked ? component(d, 0)
               : row.reduce(d, 1, graph::ReduceKind::max,
                            [&](const Demand &i) { return row.element(i); });
    if (failed(max))
      return failure();
    return Value(arith::SubFOp::create(b, e.loc(), *x, *max));
  };
  auto exponential = [&](const Demand &d) -> FailureOr<Value> {
    FailureOr<Value> x = shifted(d);
    return failed(x) ? x
                     : FailureOr<Value>(
                           math::ExpOp::create(b, e.loc(), *x).getResult());
  };
  // Operands of the demand are coordinates of the result, which are the
  // input's.
  FailureOr<Value> sum =
      walked ? component(demand, 1)
             : row.reduce(demand, 2, graph::ReduceKind::sum, exponential);
  FailureOr<Value> x = op.getLog() ? shifted(demand) : exponential(demand);
  if (failed(sum) || failed(x))
    return failure();
  if (op.getLog())
    return Value(arith::SubFOp::create(b, e.loc(), *x,
                                       math::LogOp::create(b, e.loc(), *sum)));
  return e.quotient(*x, *sum);
}

/// The mean of a row and the sum of squared distances from it, from one walk
/// (Welford). Parts side by side have their mean first, then squares of their
/// own and of their means' distances from it; others are joined as by Chan.
FailureOr<SmallVector<Value>> moments(RowEmitter &row, TileEmitter &e,
                                      const Demand &demand,
                                      function_ref<Value(Value)> average) {
  OpBuilder &b = e.b();
  TypedAttr zero = b.getFloatAttr(row.getType(), 0);
  auto add = [&](ArrayRef<Value> c, ArrayRef<Value> terms, Value inside) {
    Location loc = e.loc();
    Value one = e.splatLike(1, c[2]),
          count = arith::AddFOp::create(b, loc, c[2], one), x = terms[0];
    if (inside) // as far from the mean as nothing
      x = arith::SelectOp::create(b, loc, inside, x, c[0]);
    Value distance = arith::SubFOp::create(b, loc, x, c[0]);
    Value mean = arith::AddFOp::create(
        b, loc, c[0],
        arith::MulFOp::create(b, loc, distance, e.quotient(one, count)));
    Value square = arith::MulFOp::create(
        b, loc, distance, arith::SubFOp::create(b, loc, x, mean));
    if (inside)
      count = arith::SelectOp::create(b, loc, inside, count, c[2]);
    return SmallVector<Value>{mean, arith::AddFOp::create(b, loc, c[1], square),
                              count};
  };
  auto join = [&](ArrayRef<Value> c, const AlongLast &along) {
    Location loc = e.loc();
    auto mul = [&](Value x, Value y) -> Value {
      return arith::MulFOp::create(b, loc, x, y);
    };
    Value sum = along.reduce(graph::ReduceKind::sum, mul(c[2], c[0])), count;
    if (along.isPart)
      count = along.reduce(graph::ReduceKind::sum, c[2]);
    Value mean =
        along.isPart
            ? e.quotient(sum, arith::MaximumFOp::create(b, loc, count,
                                                        e.splatLike(1, count)))
            : average(sum);
    Value distance =
        arith::SubFOp::create(b, loc, c[0], along.spread(mean, c[0]));
    Value squares =
        arith::AddFOp::create(b, loc, c[1], mul(mul(c[2], distance), distance));
    SmallVector<Value> all{mean, along.reduce(graph::ReduceKind::sum, squares)};
    if (along.isPart)
      all.push_back(count);
    return all;
  };
  Running running{add, join};
  return row.reduceAll(
      demand, 1, {zero, zero, zero},
      [&](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
        auto mul = [&](Value p, Value q) -> Value {
          return arith::MulFOp::create(b, loc, p, q);
        };
        auto add = [&](Value p, Value q) -> Value {
          return arith::AddFOp::create(b, loc, p, q);
        };
        // The lower mean first: lanes combine in either order, and have to
        // agree in all bits.
        Value ordered = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE,
                                              x[0], y[0]);
        auto pick = [&](unsigned i, bool first) -> Value {
          return arith::SelectOp::create(b, loc, ordered, first ? x[i] : y[i],
                                         first ? y[i] : x[i]);
        };
        Value low = pick(0, true), lowCount = pick(2, true),
              count = add(x[2], y[2]);
        TypedAttr one = b.getFloatAttr(row.getType(), 1);
        if (auto tile = dyn_cast<RankedTensorType>(count.getType()))
          one = DenseElementsAttr::get(tile, one);
        // Of two parts without elements neither has a share.
        Value share = e.quotient(
            pick(2, false),
            arith::MaximumFOp::create(b, loc, count,
                                      arith::ConstantOp::create(b, loc, one)));
        Value distance = arith::SubFOp::create(b, loc, pick(0, false), low);
        Value squares = mul(mul(distance, distance), mul(lowCount, share));
        return SmallVector<Value>{add(low, mul(distance, share)),
                                  add(add(x[1], y[1]), squares), count};
      },
      [&](const Demand &i) { return row.element(i); }, &running);
}

FailureOr<Value> normalize(graph::NormalizeOp op, TileEmitter &e,
                           const Demand &demand) {
  OpBuilder &b = e.b();
  RowEmitter row(e, op.getInput(), op.getAxes(), demand);
  bool hasWalks = row.isWalked(demand), walked = !op.getRms() && hasWalks;
  // Not so a softmax's terms, which a far bias would leave equal.
  if (hasWalks)
    row.letBeRounded();
  Type type =
      e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
  // The sum times 1 / extent, a number that nothing else is part of: what
  // equals the mean has no distance from it.
  auto average = [&](Value sum) -> Value {
    if (auto n = graph::constantOf(e.simplify(row.getExtent(), {}))) {
      auto mean =
          arith::MulFOp::create(b, e.loc(), sum, e.splatLike(1.0 / *n, sum));
      mean->setAttr(kRoundedAttr, b.getUnitAttr());
      return mean;
    }
    Value i = arith::IndexCastOp::create(b, e.loc(), b.getI64Type(),
                                         e.materialize(row.getExtent()));
    Value n = arith::SIToFPOp::create(b, e.loc(), type, i);
    return arith::DivFOp::create(
        b, e.loc(), sum, tile::SplatOp::create(b, e.loc(), sum.getType(), n));
  };
  auto centered = [&](const Demand &d) -> FailureOr<Value> {
    FailureOr<Value> x = row.element(d);
    if (failed(x) || op.getRms())
      return x;
    if (walked) {
      FailureOr<SmallVector<Value>> all = moments(row, e, d, average);
      if (failed(all))
        return failure();
      return Value(arith::SubFOp::create(b, e.loc(), *x, all->front()));
    }
    FailureOr<Value> sum =
        row.reduce(d, 1, graph::ReduceKind::sum,
                   [&](const Demand &i) { return row.element(i); });
    if (failed(sum))
      return failure();
    return Value(arith::SubFOp::create(b, e.loc(), *x, average(*sum)));
  };
  auto sumOfSquares = [&]() -> FailureOr<Value> {
    if (walked) {
      FailureOr<SmallVector<Value>> all = moments(row, e, demand, average);
      return failed(all) ? FailureOr<Value>() : FailureOr<Value>((*all)[1]);
    }
    return row.reduce(demand, 2, graph::ReduceKind::sum,
                      [&](const Demand &d) -> FailureOr<Value> {
                        FailureOr<Value> x = centered(d);
                        if (failed(x))
                          return failure();
                        return Value(arith::MulFOp::create(b, e.loc(), *x, *x));
                      });
  };
  FailureOr<Value> squares = sumOfSquares();
  FailureOr<Value> x = centered(demand);
  if (failed(squares) || failed(x))
    return failure();
  Value variance = average(*squares);
  Value shifted = arith::AddFOp::create(
      b, e.loc(), variance,
      e.splatLike(op.getEpsilon().convertToDouble(), variance));
  Value scale = math::RsqrtOp::create(b, e.loc(), shifted);
  return Value(arith::MulFOp::create(b, e.loc(), *x, scale));
}

} // namespace

void emit::registerNormalizationRules(MLIRContext *c) {
  graph::SoftmaxOp::attachInterface<Rule<graph::SoftmaxOp, softmax>>(*c);
  graph::NormalizeOp::attachInterface<Rule<graph::NormalizeOp, normalize>>(*c);
}
