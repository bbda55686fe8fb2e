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

  /// A tile of the input.
  FailureOr<Value> element(const Demand &d) {
    return e.emit({input, d.tile, d.coordinates, {}});
  }

  /// Reduction `kind` of f(element) along the row, as a tile of `at`'s shape.
  FailureOr<Value> reduce(const Demand &at, unsigned part,
                          graph::ReduceKind kind,
                          function_ref<FailureOr<Value>(const Demand &)> f) {
    Demand start = at;
    for (int64_t axis : axes)
      start.coordinates[axis] = e.constant(0);
    start.guards.clear();
    FailureOr<SmallVector<Value>> result =
        e.emitPart(start, part, [&](const Demand &outer) {
          Type type = e.computeType(
              cast<RankedTensorType>(input.getType()).getElementType());
          ReductionOf reduction{kind};
          return reduceOver(
              e, outer, extent, endsWithLast(axes, shape),
              {reduction.neutral(type)},
              [&](OpBuilder &b, Location loc, ArrayRef<Value> x,
                  ArrayRef<Value> y) {
                return SmallVector<Value>{reduction(b, loc, x[0], y[0])};
              },
              [&](const Demand &d,
                  AffineExpr index) -> FailureOr<SmallVector<Value>> {
                Demand inside = d;
                Exprs extents;
                for (int64_t axis : axes)
                  extents.push_back(shape[axis]);
                for (auto [axis, c] :
                     llvm::zip(axes, delinearize(index, extents)))
                  inside.coordinates[axis] = c;
                FailureOr<Value> x = f(inside);
                return failed(x) ? FailureOr<SmallVector<Value>>()
                                 : SmallVector<Value>{*x};
              });
        });
    return failed(result) ? FailureOr<Value>()
                          : FailureOr<Value>(result->front());
  }

private:
  TileEmitter &e;
  Value input;
  SmallVector<int64_t> axes;
  Exprs shape;
  Demand row;
  AffineExpr extent;
};

FailureOr<Value> softmax(graph::SoftmaxOp op, TileEmitter &e,
                         const Demand &demand) {
  OpBuilder &b = e.b();
  RowEmitter row(e, op.getInput(), {(int64_t)op.getAxis()}, demand);
  auto shifted = [&](const Demand &d) -> FailureOr<Value> {
    FailureOr<Value> x = row.element(d);
    if (failed(x))
      return failure();
    FailureOr<Value> max =
        row.reduce(d, 1, graph::ReduceKind::max,
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
      row.reduce(demand, 2, graph::ReduceKind::sum, exponential);
  FailureOr<Value> x = op.getLog() ? shifted(demand) : exponential(demand);
  if (failed(sum) || failed(x))
    return failure();
  if (op.getLog())
    return Value(arith::SubFOp::create(b, e.loc(), *x,
                                       math::LogOp::create(b, e.loc(), *sum)));
  return e.quotient(*x, *sum);
}

FailureOr<Value> normalize(graph::NormalizeOp op, TileEmitter &e,
                           const Demand &demand) {
  OpBuilder &b = e.b();
  RowEmitter row(e, op.getInput(), op.getAxes(), demand);
  Type type =
      e.computeType(cast<RankedTensorType>(op.getType()).getElementType());
  // 1 / extent as a tile of the demand's shape.
  auto average = [&](Value sum) -> Value {
    if (auto n = graph::constantOf(e.simplify(row.getExtent(), {})))
      return arith::MulFOp::create(b, e.loc(), sum, e.splatLike(1.0 / *n, sum));
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
    FailureOr<Value> sum =
        row.reduce(d, 1, graph::ReduceKind::sum,
                   [&](const Demand &i) { return row.element(i); });
    if (failed(sum))
      return failure();
    return Value(arith::SubFOp::create(b, e.loc(), *x, average(*sum)));
  };
  FailureOr<Value> squares = row.reduce(
      demand, 2, graph::ReduceKind::sum,
      [&](const Demand &d) -> FailureOr<Value> {
        FailureOr<Value> x = centered(d);
        return failed(x)
                   ? x
                   : FailureOr<Value>(
                         arith::MulFOp::create(b, e.loc(), *x, *x).getResult());
      });
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
