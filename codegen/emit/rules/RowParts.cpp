// Sums of parts of rows, and statistics of rows by what others have stored of
// these.
#include "codegen/emit/rules/Rules.h"
#include "graph/ir/FormedOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

Value emit::distanceFrom(TileEmitter &e, Value mean, Value value) {
  if (mean.getType() != value.getType())
    mean = tile::BroadcastOp::create(
        e.b(), e.loc(), cast<RankedTensorType>(value.getType()), mean,
        llvm::to_vector(llvm::seq<int64_t>(0, tile::shapeOf(mean).size())));
  return arith::SubFOp::create(e.b(), e.loc(), value, mean);
}

/// The sums of parts of rows [.., M, P], where a demand's rows are.
static FailureOr<Value> sumOfParts(TileEmitter &e, const Demand &demand,
                                   Value parts) {
  Exprs shape = graph::getShape(parts);
  Demand row{
      parts,
      demand.tile,
      Exprs(
          ArrayRef(demand.coordinates).drop_back().take_back(shape.size() - 1)),
      {}};
  row.coordinates.push_back(e.constant(0));
  auto term = [&](const Demand &d, AffineExpr k) {
    Demand inside = d;
    inside.coordinates.back() = k;
    return e.emit(inside);
  };
  constexpr unsigned part = 1;
  FailureOr<SmallVector<Value>> sums = e.emitPart(
      row, part, [&](const Demand &outer) -> FailureOr<SmallVector<Value>> {
        FailureOr<Value> sum =
            sumOver(e, outer, shape.back(), e.b().getF32Type(), term);
        return failed(sum) ? FailureOr<SmallVector<Value>>()
                           : SmallVector<Value>{*sum};
      });
  return failed(sums) ? FailureOr<Value>() : FailureOr<Value>(sums->front());
}

FailureOr<RowStatistics> emit::emitStatistics(TileEmitter &e,
                                              const Demand &demand,
                                              AffineExpr terms, Value squares,
                                              Value sums, double epsilon) {
  OpBuilder &b = e.b();
  Location loc = e.loc();
  std::optional<int64_t> count = graph::constantOf(e.simplify(terms, {}));
  if (!count)
    return e.error(demand, "the number of terms has to be known"), failure();
  auto average = [&](Value sum) -> Value {
    return arith::MulFOp::create(b, loc, sum,
                                 e.splatLike(1.0 / double(*count), sum));
  };
  FailureOr<Value> total = sumOfParts(e, demand, squares);
  if (failed(total))
    return failure();
  RowStatistics rows;
  Value variance = average(*total);
  if (sums) {
    total = sumOfParts(e, demand, sums);
    if (failed(total))
      return failure();
    rows.mean = average(*total);
    // What rounding leaves of equal terms is no variance of theirs. Terms of 11
    // bits have none that is less, except 0.
    constexpr double rounding = 0x1p-22;
    Value square = arith::MulFOp::create(b, loc, rows.mean, rows.mean);
    variance = arith::MaximumFOp::create(
        b, loc, arith::SubFOp::create(b, loc, variance, square),
        arith::MulFOp::create(b, loc, square, e.splatLike(rounding, square)));
  }
  rows.inverse = math::RsqrtOp::create(
      b, loc,
      arith::AddFOp::create(b, loc, variance, e.splatLike(epsilon, variance)));
  return rows;
}

static FailureOr<Value> normalizeRows(graph::NormalizeRowsOp op, TileEmitter &e,
                                      const Demand &demand) {
  Demand inside = demand;
  inside.value = op.getInput();
  FailureOr<Value> x = e.emit(inside);
  FailureOr<RowStatistics> rows = emitStatistics(
      e, demand, graph::getShape(op.getInput()).back(), op.getSquares(),
      op.getTerms(), op.getEpsilon().convertToDouble());
  if (failed(x) || failed(rows))
    return failure();
  Value distance = *x;
  if (rows->mean)
    distance = arith::SubFOp::create(e.b(), e.loc(), *x, rows->mean);
  return Value(arith::MulFOp::create(e.b(), e.loc(), distance, rows->inverse));
}

/// Of runs that no kernel in front of them has begun.
static FailureOr<Value> sumRuns(graph::SumRunsOp op, TileEmitter &e,
                                const Demand &demand) {
  OpBuilder &b = e.b();
  Type type = b.getF32Type();
  auto sumOf = [&](function_ref<Value(Value)> function) {
    return sumOver(e, demand, e.constant(op.getRun()), type,
                   [&](const Demand &d, AffineExpr k) -> FailureOr<Value> {
                     Demand inside = d;
                     inside.value = op.getInput();
                     inside.coordinates.back() =
                         d.coordinates.back() * op.getRun() + k;
                     FailureOr<Value> x = e.emitAs(inside, type);
                     return failed(x) ? x : FailureOr<Value>(function(*x));
                   });
  };
  FailureOr<Value> sum = sumOf([](Value x) { return x; });
  if (failed(sum) || !op.getSquaredDistances())
    return sum;
  Value mean = arith::MulFOp::create(
      b, e.loc(), *sum, e.splatLike(1.0 / double(op.getRun()), *sum));
  return sumOf([&](Value x) -> Value {
    Value distance = distanceFrom(e, mean, x);
    return arith::MulFOp::create(b, e.loc(), distance, distance);
  });
}

void emit::registerRowPartsRules(MLIRContext *c) {
  graph::SumRunsOp::attachInterface<Rule<graph::SumRunsOp, sumRuns>>(*c);
  graph::NormalizeRowsOp::attachInterface<
      Rule<graph::NormalizeRowsOp, normalizeRows>>(*c);
}
