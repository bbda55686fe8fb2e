// Sums of parts of rows, and statistics of rows by what others have stored of
// these.
#include "codegen/emit/rules/Rules.h"
#include "graph/ir/FormedOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// Rows of which parts [.., M, P] are there.
struct RowParts {
  TileEmitter &e;
  Value squares, sums; ///< As of a normalized_matmul.
  int64_t terms, parts;

  Value scaled(Value x, double factor) const {
    return arith::MulFOp::create(e.b(), e.loc(), x, e.splatLike(factor, x));
  }

  FailureOr<Value> part(const Demand &row, Value of, AffineExpr k) const {
    Demand inside = row;
    inside.value = of;
    inside.coordinates.back() = k;
    return e.emit(inside);
  }

  FailureOr<Value> sumOf(const Demand &outer, Value of) const {
    return sumOver(
        e, outer, e.constant(parts), e.b().getF32Type(),
        [&](const Demand &d, AffineExpr k) { return part(d, of, k); });
  }

  /// The mean of squares.
  FailureOr<SmallVector<Value>> meanSquare(const Demand &outer) const {
    FailureOr<Value> total = sumOf(outer, squares);
    if (failed(total))
      return failure();
    return SmallVector<Value>{scaled(*total, 1.0 / double(terms))};
  }

  FailureOr<SmallVector<Value>> moments(const Demand &outer) const;
};

/// The mean and the variance, as Chan et al. join those of parts: squares of
/// distances, and of the parts' own from `middle`. That is the mean, or where
/// parts are too many to be held until it is known, one of them, so that all
/// comes from one walk: distances from one of so few are not so much larger
/// that their mean's square takes places from theirs.
FailureOr<SmallVector<Value>> RowParts::moments(const Demand &outer) const {
  OpBuilder &b = e.b();
  AffineExpr extent = e.constant(parts);
  double inPart = double(terms) / double(parts);
  bool isWalked = hasSteps(e, outer, extent, /*contiguous=*/true);
  FailureOr<Value> middle =
      isWalked ? part(outer, sums, e.constant(0)) : sumOf(outer, sums);
  if (failed(middle))
    return failure();
  if (!isWalked)
    middle = scaled(*middle, 1.0 / double(parts));
  SmallVector<TypedAttr> neutral(isWalked ? 2 : 1, b.getF32FloatAttr(0));
  FailureOr<SmallVector<Value>> totals = reduceOver(
      e, outer, extent, /*contiguous=*/true, neutral,
      [](OpBuilder &b, Location loc, ArrayRef<Value> x, ArrayRef<Value> y) {
        SmallVector<Value> sums;
        for (auto [p, q] : llvm::zip_equal(x, y))
          sums.push_back(arith::AddFOp::create(b, loc, p, q));
        return sums;
      },
      [&](const Demand &d, AffineExpr k) -> FailureOr<SmallVector<Value>> {
        FailureOr<Value> sum = part(d, sums, k), square = part(d, squares, k);
        if (failed(sum) || failed(square))
          return failure();
        Value distance = distanceFrom(e, *middle, *sum);
        Value apart = arith::MulFOp::create(b, e.loc(), distance, distance);
        SmallVector<Value> terms{arith::AddFOp::create(
            b, e.loc(), *square, scaled(apart, 1 / inPart))};
        if (isWalked)
          terms.push_back(distance);
        return terms;
      });
  if (failed(totals))
    return failure();
  Value mean = scaled(*middle, 1 / inPart),
        variance = scaled(totals->front(), 1.0 / double(terms));
  if (isWalked) {
    Value shift = scaled(totals->back(), 1.0 / double(terms));
    mean = arith::AddFOp::create(b, e.loc(), mean, shift);
    variance = arith::SubFOp::create(
        b, e.loc(), variance, arith::MulFOp::create(b, e.loc(), shift, shift));
  }
  return SmallVector<Value>{mean, variance};
}

/// One by the deviation of rows of a type; of equal terms 0, as they are no
/// distance from their mean. What rounding leaves of them, as of a product less
/// the mean's share, would be divided by epsilon alone.
Value inverseOf(TileEmitter &e, ArrayRef<Value> moments, const RowParts &rows,
                FloatType type, double epsilon) {
  OpBuilder &b = e.b();
  Value variance = moments.back();
  Value inverse = math::RsqrtOp::create(
      b, e.loc(),
      arith::AddFOp::create(b, e.loc(), variance,
                            e.splatLike(epsilon, variance)));
  if (!rows.sums)
    return inverse;
  // Two numbers of p bits are 2^-p of the larger apart, or equal: terms of
  // which not all are have a variance of at least half of that one's square,
  // divided by their number. Rounding leaves far less of small types.
  constexpr double rounding = 0x1p-44;
  double least = std::ldexp(
      0.5, -2 * int(APFloat::semanticsPrecision(type.getFloatSemantics())));
  // Of the largest means the square itself would be infinite.
  Value deviation = rows.scaled(
      moments.front(),
      std::sqrt(std::max(least / 2 / double(rows.terms), rounding)));
  Value areEqual = arith::CmpFOp::create(
      b, e.loc(), arith::CmpFPredicate::OLE, variance,
      arith::MulFOp::create(b, e.loc(), deviation, deviation));
  return arith::SelectOp::create(b, e.loc(), areEqual, e.splatLike(0, inverse),
                                 inverse);
}

} // namespace

Value emit::distanceFrom(TileEmitter &e, Value mean, Value value) {
  if (mean.getType() != value.getType())
    mean = tile::BroadcastOp::create(
        e.b(), e.loc(), cast<RankedTensorType>(value.getType()), mean,
        llvm::to_vector(llvm::seq<int64_t>(0, tile::shapeOf(mean).size())));
  return arith::SubFOp::create(e.b(), e.loc(), value, mean);
}

FailureOr<RowStatistics> emit::emitStatistics(TileEmitter &e,
                                              const Demand &demand, Value input,
                                              Value squares, Value sums,
                                              double epsilon) {
  Exprs shape = graph::getShape(squares);
  AffineExpr extent = e.simplify(graph::getShape(input).back(), {});
  std::optional<int64_t> terms = graph::constantOf(extent),
                         parts = graph::constantOf(shape.back());
  if (!terms || !parts || *parts < 1 || *terms % *parts != 0)
    return e.error(demand, "rows need parts of equal, known lengths"),
           failure();
  RowParts rows{e, squares, sums, *terms, *parts};
  auto type = cast<FloatType>(getElementTypeOrSelf(input));
  // Of each row once, not for each of its elements.
  Demand row = demand;
  row.guards.clear();
  row.coordinates = Exprs(ArrayRef(row.coordinates).take_back(shape.size()));
  row.coordinates.back() = e.constant(0);
  constexpr unsigned part = 1;
  FailureOr<SmallVector<Value>> found = e.emitPart(
      row, part, [&](const Demand &outer) -> FailureOr<SmallVector<Value>> {
        FailureOr<SmallVector<Value>> moments =
            sums ? rows.moments(outer) : rows.meanSquare(outer);
        if (succeeded(moments))
          moments->back() = inverseOf(e, *moments, rows, type, epsilon);
        return moments;
      });
  if (failed(found))
    return failure();
  return RowStatistics{sums ? found->front() : Value(), found->back()};
}

static FailureOr<Value> normalizeRows(graph::NormalizeRowsOp op, TileEmitter &e,
                                      const Demand &demand) {
  Demand inside = demand;
  inside.value = op.getInput();
  FailureOr<Value> x = e.emit(inside);
  FailureOr<RowStatistics> rows =
      emitStatistics(e, demand, op.getInput(), op.getSquares(), op.getTerms(),
                     op.getEpsilon().convertToDouble());
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
