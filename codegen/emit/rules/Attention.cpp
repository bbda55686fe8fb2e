// Attention by online softmax: one pass over keys and values, no score matrix.
#include "codegen/emit/rules/Dot.h"
#include "graph/analysis/IndexContent.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// On a GPU tiles have query rows first: scores are [rows, keys]. On a CPU rows
/// are the last axis, the lanes of vectors: scores are [keys, rows] and the
/// result is built as [columns, rows], so that maxima and sums are elementwise
/// and the rows of keys and values are read as broadcast scalars. A single row
/// has no axis there: features are lanes where it is multiplied by keys, keys
/// are where scores are compared, columns where values are added.
class AttentionEmitter {
public:
  AttentionEmitter(graph::AttentionOp op, TileEmitter &e, const Demand &demand)
      : op(op), e(e), b(e.b()), demand(demand),
        query(graph::getShape(op.getQuery())),
        key(graph::getShape(op.getKey())),
        value(graph::getShape(op.getValue())),
        rowsFirst(e.getTarget().kind == EmitTarget::Kind::Gpu) {}

  FailureOr<Value> run() {
    if (!placeAxes())
      return e.error(demand,
                     "attention needs a tile of query rows by value columns"),
             failure();
    Type type = e.computeType(elementOf(op.getQuery()));
    steps = e.getSchedule().keyTile;
    if (single)
      steps = 2 * e.getTarget().vectorElements;
    AffineExpr keys = key[2];
    if (auto known = graph::constantOf(keys); known && !rowsFirst)
      steps = std::max<int64_t>(std::min(steps, *known), 1);
    double inf = std::numeric_limits<double>::infinity();
    SmallVector<Value> start{e.splat(-inf, type, rowShape()),
                             e.splat(0, type, rowShape()),
                             e.splat(0, type, shape(columns))};
    FailureOr<SmallVector<Value>> total =
        e.loop((keys + (steps - 1)).floorDiv(steps), keptBlocks(), start,
               [&](AffineExpr counter, ArrayRef<Value> carried) {
                 return step(counter, carried);
               });
    if (failed(total))
      return failure();
    Value result = quotient((*total)[2], (*total)[1]);
    // An axis of our own holds the same value everywhere; any of them will do.
    if (ownColumns)
      result = reduceAxis(e, result, otherPosition(), graph::ReduceKind::max);
    if (ownRows)
      result = reduceAxis(e, result, ownColumns ? 0 : rowPosition(),
                          graph::ReduceKind::max);
    if (!single && !ownRows && !ownColumns &&
        (rowAxis < columnAxis) != rowsFirst)
      result =
          tile::TransposeOp::create(b, e.loc(), e.tileType(demand.tile, type),
                                    result, ArrayRef<int64_t>{1, 0});
    return result;
  }

private:
  template <typename Op> Value make(Value x, Value y) {
    return Op::create(b, e.loc(), x, y);
  }
  static Type elementOf(Value v) {
    return cast<RankedTensorType>(v.getType()).getElementType();
  }

  /// Finds the axis of query rows and that of value columns; one that the
  /// demand lacks (a single row) is added. False if an axis is neither.
  bool placeAxes() {
    for (unsigned i = 0, rank = demand.rank(); i < rank; ++i) {
      bool row = e.dependsOnAxis(demand.coordinates[2], i),
           column = e.dependsOnAxis(demand.coordinates[3], i);
      bool batch = e.dependsOnAxis(demand.coordinates[0], i) ||
                   e.dependsOnAxis(demand.coordinates[1], i);
      int64_t &axis = row ? rowAxis : columnAxis;
      if (batch || row == column || axis >= 0)
        return false;
      axis = i;
    }
    auto add = [&](int64_t &axis, int64_t extent) {
      if (axis >= 0)
        return false;
      axis = demand.rank();
      demand = e.addAxis(demand, extent);
      return true;
    };
    single = !rowsFirst && rowAxis < 0;
    ownRows = !single && add(rowAxis, 16);
    ownColumns = add(columnAxis, rowsFirst ? 16 : 2);
    rows = single ? 1 : demand.tile[rowAxis];
    columns = demand.tile[columnAxis];
    return true;
  }

  /// Shape of a tile of all rows by `other`.
  SmallVector<int64_t> shape(int64_t other) const {
    if (single)
      return {other};
    return rowsFirst ? SmallVector<int64_t>{rows, other}
                     : SmallVector<int64_t>{other, rows};
  }
  unsigned rowPosition() const { return rowsFirst ? 0 : 1; }
  unsigned otherPosition() const { return rowsFirst ? 1 : 0; }
  SmallVector<int64_t> rowShape() const {
    return single ? SmallVector<int64_t>{} : SmallVector<int64_t>{rows};
  }

  /// `x` as axes `axes` of a tile of this shape.
  Value spread(Value x, ArrayRef<int64_t> tile, ArrayRef<int64_t> axes) {
    return tile::BroadcastOp::create(
        b, e.loc(), e.tileType(tile, getElementTypeOrSelf(x.getType())), x,
        axes);
  }
  /// [rows] repeated along `count` of the other axis.
  Value repeat(Value x, int64_t count) {
    SmallVector<int64_t> axes;
    if (!single)
      axes.push_back(rowPosition());
    return spread(x, shape(count), axes);
  }

  AffineExpr headOf(AffineExpr head, AffineExpr heads) {
    AffineExpr shared = graph::simplify(query[1].floorDiv(heads));
    return heads == query[1] ? head : head.floorDiv(shared);
  }

  /// Coordinates `which` of the demand on a tile where rows are axis `row` and
  /// columns axis `column` (-1: not there).
  Exprs place(ArrayRef<unsigned> which, int64_t row, int64_t column,
              ArrayRef<int64_t> tile) {
    Exprs coordinates;
    for (unsigned i : which)
      coordinates.push_back(demand.coordinates[i]);
    SmallVector<int64_t> to(demand.rank(), -1);
    if (!single)
      to[rowAxis] = row;
    to[columnAxis] = column;
    return e.moveAxes({demand.value, demand.tile, coordinates, {}}, to, tile)
        .coordinates;
  }

  /// Of `features` in all, on a GPU.
  int64_t featuresAtOnce(int64_t features) const {
    int64_t all = llvm::bit_ceil<uint64_t>(std::max<int64_t>(features, 16)),
            some = e.getSchedule().featureTile;
    return some > 0 ? std::min(all, some) : all;
  }

  FailureOr<Value> dot(FailureOr<Value> lhs, FailureOr<Value> rhs,
                       Value accumulator, Type element) {
    if (failed(lhs) || failed(rhs))
      return failure();
    return Value(tile::DotOp::create(b, e.loc(), accumulator.getType(), *lhs,
                                     *rhs, accumulator,
                                     e.getTarget().tf32 && element.isF32()));
  }

  /// Products of queries with a tile of keys.
  FailureOr<Value> scores(AffineExpr counter) {
    Type element = elementOf(op.getQuery());
    AffineExpr features = query[3];
    int64_t kStep = 8;
    if (auto d = graph::constantOf(features)) {
      if (rowsFirst)
        kStep = featuresAtOnce(*d);
      else // unrolled, so that the queries' tile leaves the loop over keys
        kStep = *d <= 128 ? *d : std::gcd<int64_t>(*d, 64);
    }
    Value start = e.splat(0, e.computeType(element), shape(steps));
    FailureOr<SmallVector<Value>> total = e.loop(
        (features + (kStep - 1)).floorDiv(kStep), {start},
        [&](AffineExpr k,
            ArrayRef<Value> carried) -> FailureOr<SmallVector<Value>> {
          if (single)
            return addProducts(carried[0], k, kStep, counter);
          // In the product, lhs is [M, K] and rhs is [K, N].
          SmallVector<int64_t> lhsTile{rowsFirst ? rows : steps, kStep},
              rhsTile{kStep, rowsFirst ? steps : rows};
          unsigned qk = rowsFirst ? 1 : 0, tk = rowsFirst ? 0 : 1;
          Demand q{op.getQuery(), rowsFirst ? lhsTile : rhsTile, {}, {}};
          q.coordinates = place({0, 1, 2}, rowsFirst ? 0 : 1, -1, q.tile);
          q.coordinates.push_back(k * kStep + e.axis(qk));
          q.guards.push_back({q.coordinates[3], features});
          Demand t{op.getKey(), rowsFirst ? rhsTile : lhsTile, {}, {}};
          t.coordinates = {
              demand.coordinates[0], headOf(demand.coordinates[1], key[1]),
              counter * steps + e.axis(1 - tk), k * kStep + e.axis(tk)};
          t.guards.push_back({t.coordinates[3], features});
          FailureOr<Value> x = e.emitZeroOutside(std::move(q), element);
          FailureOr<Value> y = e.emitZeroOutside(std::move(t), element);
          FailureOr<Value> sum = rowsFirst ? dot(x, y, carried[0], element)
                                           : dot(y, x, carried[0], element);
          return failed(sum) ? FailureOr<SmallVector<Value>>()
                             : SmallVector<Value>{*sum};
        });
    return failed(total) ? FailureOr<Value>()
                         : FailureOr<Value>(total->front());
  }

  /// Products of the single query with a tile of keys, of some features.
  FailureOr<SmallVector<Value>> addProducts(Value sum, AffineExpr k,
                                            int64_t kStep, AffineExpr counter) {
    AffineExpr features = query[3];
    Type type = getElementTypeOrSelf(sum.getType());
    SmallVector<int64_t> tile{steps, kStep};
    Demand q{op.getQuery(), {kStep}, place({0, 1, 2}, -1, -1, {kStep}), {}};
    q.coordinates.push_back(k * kStep + e.axis(0));
    q.guards.push_back({q.coordinates[3], features});
    Demand t{op.getKey(), tile, {}, {}};
    t.coordinates = {demand.coordinates[0],
                     headOf(demand.coordinates[1], key[1]),
                     counter * steps + e.axis(0), k * kStep + e.axis(1)};
    t.guards.push_back({t.coordinates[3], features});
    FailureOr<Value> x = e.emitZeroOutside(std::move(q), type),
                     y = e.emitZeroOutside(std::move(t), type);
    if (failed(x) || failed(y))
      return failure();
    Value product = make<arith::MulFOp>(*y, spread(*x, tile, {1}));
    return SmallVector<Value>{make<arith::AddFOp>(
        sum, reduceAxis(e, product, 1, graph::ReduceKind::sum))};
  }

  /// Values of a tile of keys, weighted by `p` for the single query.
  FailureOr<Value> weighted(Value p, AffineExpr counter, Value accumulator) {
    SmallVector<int64_t> tile{steps, columns};
    Exprs where = place({0, 1, 3}, -1, 1, tile);
    Demand v{op.getValue(),
             tile,
             {where[0], headOf(where[1], value[1]), counter * steps + e.axis(0),
              where[2]},
             {}};
    v.guards.push_back({v.coordinates[2], key[2]});
    FailureOr<Value> values =
        e.emitZeroOutside(std::move(v), getElementTypeOrSelf(p.getType()));
    if (failed(values))
      return failure();
    Value product = make<arith::MulFOp>(*values, spread(p, tile, {0}));
    return make<arith::AddFOp>(
        accumulator, reduceAxis(e, product, 0, graph::ReduceKind::sum));
  }

  /// Expressions of which one is negative where a score is left out for sure,
  /// over the axes of `at`; `at[3]`, the key, is the dim `key`.
  Exprs keepConditions(ArrayRef<AffineExpr> at) {
    double inf = std::numeric_limits<double>::infinity();
    Exprs conditions;
    if (op.getFill().convertToDouble() != -inf)
      return conditions;
    if (op.getCausal())
      conditions.push_back(at[2] + (key[2] - query[2]) - at[3]);
    if (Value mask = op.getMask()) {
      Exprs extents = graph::getShape(mask), where;
      for (auto [i, extent] : llvm::enumerate(extents))
        where.push_back(graph::constantOf(extent) == 1
                            ? e.constant(0)
                            : at[4 - extents.size() + i]);
      if (auto known =
              graph::conditionsAt(mask, graph::coordinatesOf(mask), extents))
        for (AffineExpr condition : *known)
          conditions.push_back(condition.replaceDims(where));
    }
    return conditions;
  }

  /// The blocks of keys of which any row of the tile keeps any.
  TileEmitter::Limits keptBlocks() {
    TileEmitter::Limits limits;
    unsigned row = 0, last = 1; // the dims of rows and of the key
    Exprs at = place({0, 1, 2}, row, -1, {rows});
    at.push_back(e.axis(last));
    for (AffineExpr condition : keepConditions(at)) {
      graph::Sum sum(e.simplify(condition, {rows, int64_t(1) << 40}));
      auto byKey = sum.coefficientOf(last), byRow = sum.coefficientOf(row);
      if (!byKey || !byRow || *byKey == 0)
        continue;
      // Of the row that keeps most: byKey * key + most >= 0.
      AffineExpr most = sum.toExpr(b.getContext())
                            .replaceDims({e.constant(*byRow > 0 ? rows - 1 : 0),
                                          e.constant(0)});
      if (!e.isScalar(most))
        continue;
      if (*byKey < 0)
        limits.ends.push_back(most.floorDiv(-*byKey * steps) + 1);
      else
        limits.firsts.push_back((-most.floorDiv(*byKey)).floorDiv(steps));
    }
    return limits;
  }

  FailureOr<SmallVector<Value>> step(AffineExpr counter,
                                     ArrayRef<Value> carried) {
    FailureOr<Value> products = scores(counter);
    if (failed(products))
      return failure();
    Value s = *products;
    if (!scalesLate())
      s = scaled(s, op.getScale().convertToDouble());
    SmallVector<int64_t> tile = shape(steps);
    Exprs at = place({0, 1, 2}, rowPosition(), -1, tile);
    AffineExpr keyIndex = counter * steps + e.axis(otherPosition());
    double inf = std::numeric_limits<double>::infinity();
    // A fill of -inf that the bias can't change goes in with the last guards.
    double fill = op.getFill().convertToDouble();
    SmallVector<Guard> guards{{keyIndex, key[2]}}, causal;
    if (op.getCausal()) // keyIndex <= row + (T - S)
      (fill == -inf ? guards : causal)
          .push_back({at[2] + (key[2] - query[2]) - keyIndex, key[2]});
    Exprs scoreAt{at[0], at[1], at[2], keyIndex};
    FailureOr<Value> mask = added(op.getMask(), scoreAt, tile);
    FailureOr<Value> bias = added(op.getBias(), scoreAt, tile);
    if (failed(mask) || failed(bias))
      return failure();
    if (fill != -inf)
      s = e.maskWith(e.emitInBounds(causal, tile), e.maskWith(*mask, s, fill),
                     fill);
    if (*bias)
      s = biased(s, *bias);
    if (fill == -inf)
      s = e.maskWith(*mask, s, -inf);
    s = e.maskWith(e.emitInBounds(guards, tile), s, -inf);

    // A row with no key so far has maximum -inf; 0 in its place keeps NaN away.
    Value top = make<arith::MaximumFOp>(carried[0],
                                        reduceKeys(s, graph::ReduceKind::max));
    Value none = compare(arith::CmpFPredicate::OEQ, top, -inf);
    Value safe =
        arith::SelectOp::create(b, e.loc(), none, e.splatLike(0, top), top);
    Value p = weightsOf(s, safe);
    Value rescale = exponential(make<arith::SubFOp>(carried[0], safe));
    Value sum = make<arith::AddFOp>(make<arith::MulFOp>(carried[1], rescale),
                                    reduceKeys(p, graph::ReduceKind::sum));
    Value accumulator =
        make<arith::MulFOp>(carried[2], repeat(rescale, columns));

    if (single) {
      FailureOr<Value> next = weighted(p, counter, accumulator);
      return failed(next) ? FailureOr<SmallVector<Value>>()
                          : SmallVector<Value>{top, sum, *next};
    }
    Type element = elementOf(op.getValue());
    SmallVector<int64_t> vTile = rowsFirst
                                     ? SmallVector<int64_t>{steps, columns}
                                     : SmallVector<int64_t>{columns, steps};
    Exprs where = place({0, 1, 3}, -1, otherPosition(), vTile);
    Demand v{op.getValue(),
             vTile,
             {where[0], headOf(where[1], value[1]),
              counter * steps + e.axis(rowPosition()), where[2]},
             {}};
    v.guards.push_back({v.coordinates[2], key[2]});
    FailureOr<Value> values = e.emitZeroOutside(std::move(v), element);
    if (getElementTypeOrSelf(p.getType()) != element)
      p = arith::TruncFOp::create(b, e.loc(), e.tileType(tile, element), p);
    FailureOr<Value> next = rowsFirst ? dot(p, values, accumulator, element)
                                      : dot(values, p, accumulator, element);
    if (failed(next))
      return failure();
    return SmallVector<Value>{top, sum, *next};
  }

  /// Whether scores are kept as products, and their differences scaled: where
  /// nothing is added to them, and their order is that of the products.
  bool scalesLate() {
    double fill = op.getFill().convertToDouble();
    bool fills = op.getCausal() || op.getMask();
    return rowsFirst && !op.getBias() && op.getScale().convertToDouble() > 0 &&
           (!fills || fill == -std::numeric_limits<double>::infinity());
  }

  Value scaled(Value x, double factor) {
    return make<arith::MulFOp>(x, e.splatLike(factor, x));
  }

  double exponentFactor() {
    return op.getScale().convertToDouble() * llvm::numbers::log2e;
  }

  /// exp of a difference of scores; of that of products with the scale in one
  /// factor.
  Value exponential(Value x) {
    if (!scalesLate())
      return math::ExpOp::create(b, e.loc(), x);
    return math::Exp2Op::create(b, e.loc(), scaled(x, exponentFactor()));
  }

  /// exp of what scores are below their row's `top` one. Where that makes
  /// nothing larger, and weights are rounded to 16 bits, products are scaled by
  /// themselves, which takes one instruction with the difference: what the
  /// rounding of the top's adds is the same for all scores that it is the top
  /// of. What a later top rescales has to be scaled as a difference: the same
  /// top again gives 1, or a bit of each step would be left out of all before.
  Value weightsOf(Value s, Value top) {
    double factor = exponentFactor();
    bool isExact = elementOf(op.getQuery()).getIntOrFloatBitWidth() > 16;
    if (!scalesLate() || factor > 1 || isExact)
      return exponential(make<arith::SubFOp>(s, repeat(top, steps)));
    Value below = make<arith::SubFOp>(scaled(s, factor),
                                      repeat(scaled(top, factor), steps));
    return math::Exp2Op::create(b, e.loc(), below);
  }

  /// A mask or bias at the coordinates of scores; null where there is none.
  FailureOr<Value> added(Value tensor, ArrayRef<AffineExpr> scoreAt,
                         ArrayRef<int64_t> tile) {
    if (!tensor)
      return Value();
    Demand demand{tensor, SmallVector<int64_t>(tile), {}, {}};
    Exprs extents = graph::getShape(tensor);
    for (auto [i, extent] : llvm::enumerate(extents))
      demand.coordinates.push_back(graph::constantOf(extent) == 1
                                       ? e.constant(0)
                                       : scoreAt[4 - extents.size() + i]);
    return e.emit(std::move(demand));
  }

  Value biased(Value s, Value bias) {
    Value sum = make<arith::AddFOp>(s, bias);
    if (op.getGuard() != graph::RowGuard::empty)
      return sum;
    // What the bias leaves out is out, even if the score is NaN.
    double inf = std::numeric_limits<double>::infinity();
    return e.maskWith(compare(arith::CmpFPredicate::UNE, bias, -inf), sum,
                      -inf);
  }

  /// The result of accumulated values [rows, columns] and sums [rows]. A sum is
  /// at least 1; it is 0 where all scores are -inf, and NaN where one is. Where
  /// there are no keys there are no scores either, and the result is a product
  /// without terms: 0.
  Value quotient(Value values, Value sum) {
    Value anyKeys = e.emitInBounds({{e.constant(0), key[2]}}, rowShape());
    sum = e.maskWith(anyKeys, sum, 1);
    if (op.getGuard() == graph::RowGuard::empty)
      sum = e.maskWith(compare(arith::CmpFPredicate::UNE, sum, 0), sum, 1);
    Value result = e.quotient(values, repeat(sum, columns));
    if (op.getGuard() == graph::RowGuard::nan)
      result = e.maskWith(
          repeat(compare(arith::CmpFPredicate::OGT, sum, 0), columns), result,
          0);
    return result;
  }

  Value compare(arith::CmpFPredicate predicate, Value x, double constant) {
    return arith::CmpFOp::create(b, e.loc(), predicate, x,
                                 e.splatLike(constant, x));
  }

  Value reduceKeys(Value x, graph::ReduceKind kind) {
    return reduceAxis(e, x, otherPosition(), kind);
  }

  graph::AttentionOp op;
  TileEmitter &e;
  OpBuilder &b;
  Demand demand;
  Exprs query, key, value;
  bool rowsFirst, single = false, ownRows = false, ownColumns = false;
  int64_t rows = 1, columns = 1, rowAxis = -1, columnAxis = -1, steps = 16;
};

FailureOr<Value> attention(graph::AttentionOp op, TileEmitter &e,
                           const Demand &demand) {
  return AttentionEmitter(op, e, demand).run();
}

/// Under a causal mask a row keeps the keys up to its own.
struct AttentionRule
    : EmitOpInterface::ExternalModel<AttentionRule, graph::AttentionOp> {
  FailureOr<Value> emitTile(Operation *op, TileEmitter &emitter,
                            const Demand &demand) const {
    return attention(cast<graph::AttentionOp>(op), emitter, demand);
  }
  bool growsByRow(Operation *op) const {
    return cast<graph::AttentionOp>(op).getCausal();
  }
};

} // namespace

void emit::registerAttentionRules(MLIRContext *c) {
  graph::AttentionOp::attachInterface<AttentionRule>(*c);
}
