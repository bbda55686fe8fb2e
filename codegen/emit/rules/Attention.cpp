// Attention by online softmax: one pass over keys and values, no score matrix.
#include "codegen/emit/rules/Dot.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

class AttentionEmitter {
public:
  AttentionEmitter(graph::AttentionOp op, Emitter &e, const Demand &demand)
      : op(op), e(e), b(e.b()), demand(demand), query(graph::getShape(op.getQuery())),
        key(graph::getShape(op.getKey())), value(graph::getShape(op.getValue())) {}

  FailureOr<Value> run() {
    // Rows are queries, columns are features of the value.
    std::optional<DotAxes> axes = axesOf();
    if (!axes)
      return e.error(demand, "attention needs a tile of query rows by value columns"), failure();
    rows = demand.tile[axes->row];
    columns = demand.tile[axes->column];
    row = axes->row;
    column = axes->column;
    Type f32 = e.computeType(elementOf(op.getQuery()));
    steps = e.getSchedule().keyTile;
    AffineExpr keys = key[2];
    std::optional<int64_t> known = graph::constantOf(keys);
    if (e.getTarget().kind == EmitTarget::Kind::Cpu && known)
      steps = std::min(steps, *known);
    double inf = std::numeric_limits<double>::infinity();
    SmallVector<Value> start{e.splat(-inf, f32, {rows}), e.splat(0, f32, {rows}),
                             e.splat(0, f32, {rows, columns})};
    FailureOr<SmallVector<Value>> total =
        e.loop((keys + (steps - 1)).floorDiv(steps), start,
               [&](AffineExpr counter, ArrayRef<Value> carried) { return step(counter, carried); });
    if (failed(total))
      return failure();
    Value sum = overColumns((*total)[1], columns);
    Value result = make<arith::DivFOp>((*total)[2], sum);
    if (row > column)
      result = tile::TransposeOp::create(b, e.loc(), e.tileType({columns, rows}, f32), result,
                                         ArrayRef<int64_t>{1, 0});
    return result;
  }

private:
  template <typename Op> Value make(Value x, Value y) { return Op::create(b, e.loc(), x, y); }
  static Type elementOf(Value v) { return cast<RankedTensorType>(v.getType()).getElementType(); }

  std::optional<DotAxes> axesOf() {
    if (demand.rank() != 2)
      return std::nullopt;
    Demand q{op.getQuery(), demand.tile, {demand.coordinates[2]}, {}};
    Demand v{op.getValue(), demand.tile, {demand.coordinates[3]}, {}};
    return classifyAxes(e, q, v, 2);
  }

  /// [rows] repeated along `count` columns.
  Value overColumns(Value x, int64_t count) {
    Type element = getElementTypeOrSelf(x.getType());
    return tile::BroadcastOp::create(b, e.loc(), e.tileType({rows, count}, element), x, ArrayRef<int64_t>{0});
  }

  AffineExpr headOf(AffineExpr head, AffineExpr heads) {
    std::optional<int64_t> q = graph::constantOf(query[1]), kv = graph::constantOf(heads);
    if (q && kv && *q != *kv)
      return head.floorDiv(*q / *kv);
    return head;
  }

  /// The demand's batch, head and row coordinates on a tile where rows are axis 0.
  Exprs place(ArrayRef<int64_t> tile) {
    SmallVector<int64_t> to(2, -1);
    to[row] = 0;
    Demand moved = e.moveAxes({demand.value, demand.tile,
                               {demand.coordinates[0], demand.coordinates[1], demand.coordinates[2]}, {}},
                              to, tile);
    return moved.coordinates;
  }

  /// Scores of a tile of keys: [rows, steps].
  FailureOr<Value> scores(AffineExpr counter) {
    Type element = elementOf(op.getQuery());
    AffineExpr features = query[3];
    int64_t kStep = e.getSchedule().kTile;
    if (auto d = graph::constantOf(features))
      kStep = e.getTarget().kind == EmitTarget::Kind::Gpu ? llvm::bit_ceil<uint64_t>(*d) : std::gcd(kStep, *d);
    Value start = e.splat(0, e.computeType(element), {rows, steps});
    FailureOr<SmallVector<Value>> total = e.loop(
        (features + (kStep - 1)).floorDiv(kStep), {start},
        [&](AffineExpr k, ArrayRef<Value> carried) -> FailureOr<SmallVector<Value>> {
          Demand q{op.getQuery(), {rows, kStep}, place({rows, kStep}), {}};
          q.coordinates.push_back(k * kStep + e.axis(1));
          q.guards.push_back({q.coordinates[3], features});
          Demand t{op.getKey(), {kStep, steps}, {}, {}};
          t.coordinates = {demand.coordinates[0], headOf(demand.coordinates[1], key[1]),
                           counter * steps + e.axis(1), k * kStep + e.axis(0)};
          t.guards.push_back({t.coordinates[3], features});
          FailureOr<Value> x = e.emitZeroOutside(std::move(q), element);
          FailureOr<Value> y = e.emitZeroOutside(std::move(t), element);
          if (failed(x) || failed(y))
            return failure();
          return SmallVector<Value>{tile::DotOp::create(b, e.loc(), carried[0].getType(), *x, *y, carried[0],
                                                        e.getTarget().tf32 && element.isF32())};
        });
    return failed(total) ? FailureOr<Value>() : FailureOr<Value>(total->front());
  }

  FailureOr<SmallVector<Value>> step(AffineExpr counter, ArrayRef<Value> carried) {
    FailureOr<Value> products = scores(counter);
    if (failed(products))
      return failure();
    Value s = make<arith::MulFOp>(*products, e.splatLike(op.getScale().convertToDouble(), *products));
    SmallVector<int64_t> tile{rows, steps};
    Exprs at = place(tile);
    AffineExpr keyIndex = counter * steps + e.axis(1);
    double inf = std::numeric_limits<double>::infinity();
    if (op.getMask()) {
      Exprs shape = graph::getShape(op.getMask());
      Exprs full{at[0], at[1], at[2], keyIndex};
      Demand m{op.getMask(), tile, {}, {}};
      for (auto [i, extent] : llvm::enumerate(shape))
        m.coordinates.push_back(graph::constantOf(extent) == 1 ? e.constant(0) : full[4 - shape.size() + i]);
      FailureOr<Value> mask = e.emit(std::move(m));
      if (failed(mask))
        return failure();
      s = getElementTypeOrSelf(mask->getType()).isInteger(1) ? e.maskWith(*mask, s, -inf)
                                                             : make<arith::AddFOp>(s, *mask);
    }
    SmallVector<Guard> guards{{keyIndex, key[2]}};
    if (op.getCausal()) // keyIndex <= row + (T - S)
      guards.push_back({at[2] + (key[2] - query[2]) - keyIndex, key[2]});
    s = e.maskWith(e.emitInBounds(guards, tile), s, -inf);

    // A row with no key so far has maximum -inf; 0 in its place keeps NaN away.
    Value top = make<arith::MaximumFOp>(carried[0], reduceColumns(s, graph::ReduceKind::max));
    Value none = arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::OEQ, top, e.splatLike(-inf, top));
    Value safe = arith::SelectOp::create(b, e.loc(), none, e.splatLike(0, top), top);
    Value p = math::ExpOp::create(b, e.loc(), make<arith::SubFOp>(s, overColumns(safe, steps)));
    Value rescale = math::ExpOp::create(b, e.loc(), make<arith::SubFOp>(carried[0], safe));
    Value sum = make<arith::AddFOp>(make<arith::MulFOp>(carried[1], rescale), reduceColumns(p, graph::ReduceKind::sum));
    Value accumulator = make<arith::MulFOp>(carried[2], overColumns(rescale, columns));

    Type element = elementOf(op.getValue());
    SmallVector<int64_t> vTile{steps, columns}, to(2, -1);
    to[column] = 1;
    Demand moved = e.moveAxes({demand.value, demand.tile,
                               {demand.coordinates[0], demand.coordinates[1], demand.coordinates[3]}, {}},
                              to, vTile);
    Demand v{op.getValue(), vTile, {moved.coordinates[0], headOf(moved.coordinates[1], value[1]),
                                    counter * steps + e.axis(0), moved.coordinates[2]}, {}};
    v.guards.push_back({v.coordinates[2], key[2]});
    FailureOr<Value> values = e.emitZeroOutside(std::move(v), element);
    if (failed(values))
      return failure();
    if (getElementTypeOrSelf(p.getType()) != element)
      p = arith::TruncFOp::create(b, e.loc(), e.tileType(tile, element), p);
    accumulator = tile::DotOp::create(b, e.loc(), accumulator.getType(), p, *values, accumulator,
                                      e.getTarget().tf32 && element.isF32());
    return SmallVector<Value>{top, sum, accumulator};
  }

  Value reduceColumns(Value x, graph::ReduceKind kind) {
    Type element = getElementTypeOrSelf(x.getType());
    auto reduce = tile::ReduceOp::create(b, e.loc(), TypeRange{e.tileType({rows}, element)}, ValueRange{x}, 1);
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&reduce.getCombiner(), {}, {element, element}, {e.loc(), e.loc()});
    Value y = ReductionOf{kind}(b, e.loc(), block->getArgument(0), block->getArgument(1));
    tile::YieldOp::create(b, e.loc(), ValueRange{y});
    return reduce.getResult(0);
  }

  graph::AttentionOp op;
  Emitter &e;
  OpBuilder &b;
  const Demand &demand;
  Exprs query, key, value;
  int64_t rows = 1, columns = 1, row = 0, column = 1, steps = 64;
};

FailureOr<Value> attention(graph::AttentionOp op, Emitter &e, const Demand &demand) {
  return AttentionEmitter(op, e, demand).run();
}

} // namespace

void emit::registerAttentionRules(MLIRContext *c) {
  graph::AttentionOp::attachInterface<Rule<graph::AttentionOp, attention>>(*c);
}
