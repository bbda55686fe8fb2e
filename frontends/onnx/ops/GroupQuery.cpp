// ONNX Runtime's attention of decoders: groups of heads of queries share keys
// and values, which a cache keeps.
#include "frontends/common/builders/Activation.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Attention.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// One node. Operands: query (or all three side by side), key, value, past keys
/// and values, the last place of each sequence, total length, cosines, sines,
/// positions, bias, sinks of heads.
class GroupQuery {
public:
  GroupQuery(Node &n, Emitter &e)
      : n(n), e(e), i64(e.getBuilder().getI64Type()) {}
  llvm::LogicalResult run();

private:
  llvm::LogicalResult checkAttributes();
  llvm::LogicalResult readProjections();
  llvm::LogicalResult readLengths();
  /// The length of the cache behind this node, which holds `past` before.
  AffineExpr presentLength(AffineExpr past);
  llvm::LogicalResult turn();
  Value withPast(Value rows, Value past);
  Value keptKeys();
  Value attend(Value kept, bool causal);
  Value composed(Value kept, bool causal, double scale);
  Value withoutSink(Value scores);

  Node &n;
  Emitter &e;
  mlir::Type i64;
  int64_t heads = 0, shared = 0, window = -1;
  Value q, k, v; // [B, H, S, D]
  /// Of queries, and of the cache behind them.
  AffineExpr length, total;
  /// How many rows of the cache count of each sequence, [B, 1, 1, 1]; null
  /// where all do, or there are none.
  Value before;
};
} // namespace

llvm::LogicalResult GroupQuery::checkAttributes() {
  if (failed(needs(n, e, "causal", 1)) || failed(needs(n, e, "qk_output", 0)) ||
      failed(n.needsRank(0, 3, 3)))
    return llvm::failure();
  if (n.has(3) != n.has(4))
    return e.fail("past keys need past values, and these need past keys");
  heads = n.integer("num_heads");
  shared = n.integer("kv_num_heads");
  if (heads < 1 || shared < 1 || heads > maxDimension || heads % shared)
    return e.fail(Twine(heads) + " heads of queries do not split into " +
                  Twine(shared) + " groups");
  window = n.integer("local_window_size", -1);
  if (window != -1 && (window < 1 || window > maxDimension))
    return e.fail("attribute 'local_window_size' may not be " + Twine(window));
  return llvm::success();
}

llvm::LogicalResult GroupQuery::readProjections() {
  q = n.input(0), k = n.input(1), v = n.input(2);
  if (!k && !v) {
    auto width = graph::constantOf(graph::getShape(q)[2]);
    if (!width || *width % (heads + 2 * shared))
      return e.fail("a query of " + e.describe(q.getType()) +
                    " does not split into " + Twine(heads + 2 * shared) +
                    " heads");
    int64_t depth = *width / (heads + 2 * shared);
    auto part = [&](int64_t first, int64_t count) {
      return sliceAlong(n.input(0), 2,
                        {e.number(first * depth), e.number(count * depth), 1},
                        e);
    };
    q = part(0, heads);
    k = part(heads, shared);
    v = part(heads + shared, shared);
  } else if (!k || !v || rankOf(k) != 3 || rankOf(v) != 3) {
    return e.fail("key and value have to have 3 dimensions", fusionRemedy);
  }
  q = splitHeads(q, heads, e);
  k = splitHeads(k, shared, e);
  v = splitHeads(v, shared, e);
  if (!q || !k || !v)
    return llvm::failure();
  length = total = graph::getShape(q)[2];
  if (!e.agree(graph::getShape(k)[2], length, "has a key for each query") ||
      !e.agree(graph::getShape(v)[2], length, "has a value for each query"))
    return e.fail("there have to be as many keys and values as queries");
  return llvm::success();
}

AffineExpr GroupQuery::presentLength(AffineExpr past) {
  AffineExpr both = graph::simplify(past + length);
  auto stated = e.evaluate(n.input(6));
  if (!stated || stated.elements->size() != 1 || !stated.elements->front()) {
    e.note("the total length is data: the new past is as long as the old one "
           "and the queries together, with zeros behind each sequence's end");
    return both;
  }
  AffineExpr whole = stated.elements->front();
  // A cache that has room for all that follows.
  if (e.getSymbols().isAtLeast(past, whole))
    return past;
  if (!e.agree(whole, both, "has the past and the queries in its total"))
    return e.fail("a total length of " + e.getSymbols().toString(whole) +
                      " is not supported: it is neither that of the past and "
                      "the queries, " +
                      e.getSymbols().toString(both) +
                      ", nor always inside of the past",
                  "fix these sizes with --shape");
  return graph::simplify(e.getSymbols().resolve(both));
}

llvm::LogicalResult GroupQuery::readLengths() {
  if (!n.has(3))
    return llvm::success();
  for (unsigned i : {3, 4})
    if (failed(n.needsRank(i, 4, 4)))
      return llvm::failure();
  auto past = [&] { return graph::getShape(n.input(3))[2]; };
  if (past() == e.number(0))
    return llvm::success();
  for (auto [i, now] : {std::pair(3u, k), {4u, v}}) {
    Exprs were = graph::getShape(n.input(i)), are = graph::getShape(now);
    if (!e.agree(were[0], are[0], "continues each sequence") ||
        !e.agree(were[2], past(), "has a value for each key") ||
        were[1] != are[1] || were[3] != are[3])
      return e.fail("a past of " + e.describe(n.input(i).getType()) +
                    " does not fit " + e.describe(now.getType()));
  }
  total = presentLength(past());
  if (!total)
    return llvm::failure();
  length = graph::getShape(q)[2];
  Exprs lengths = graph::getShape(n.input(5));
  if (lengths.empty() || lengths.size() > 2 ||
      !e.agree(lengths[0], graph::getShape(k)[0], "takes a length each"))
    return e.fail("there has to be a length for each sequence of the batch");
  Value last =
      e.reshape(e.cast(n.input(5), i64),
                {graph::getShape(k)[0], e.number(1), e.number(1), e.number(1)});
  // A first prompt may be shorter than its row of queries.
  Value ends = e.add(last, e.scalar(int64_t(1), i64));
  before = e.max(e.sub(ends, e.size(length, i64)), e.scalar(int64_t(0), i64));
  return llvm::success(bool(before));
}

/// Rotates queries and keys by their places.
llvm::LogicalResult GroupQuery::turn() {
  if (!n.flag("do_rotary"))
    return llvm::success();
  Value places = n.input(9);
  if (places && failed(n.needsRank(9, 2, 2)))
    return llvm::failure();
  if (!places && before) {
    Exprs rows{graph::getShape(q)[0], e.number(1)};
    places =
        e.add(e.reshape(before, rows), e.iota({e.number(1), length}, 1, i64));
  }
  Value cosines = anglesOf(n.input(7), places, length, e),
        sines = anglesOf(n.input(8), places, length, e);
  bool interleaved = n.flag("rotary_interleaved");
  q = rotate(q, cosines, sines, interleaved, e);
  k = rotate(k, cosines, sines, interleaved, e);
  return llvm::success(q && k);
}

/// The cache with `rows` behind those that count, and zeros behind them.
Value GroupQuery::withPast(Value rows, Value past) {
  Exprs dims = graph::getShape(rows), lows(4, e.number(0));
  dims[2] = total;
  if (graph::getShape(past)[2] != total)
    past = e.pad(graph::PadMode::constant, past, e.scalar(0.0, elementOf(past)),
                 lows, dims);
  AffineExpr one = e.number(1);
  Value zero = e.scalar(int64_t(0), i64);
  Value place = e.sub(e.iota({one, one, total, one}, 2, i64), before);
  if (!place)
    return {};
  // What lies outside of the table reads 0.
  Value at = e.reshape(e.max(place, zero), {dims[0], total, one});
  Value added = e.op<graph::GatherNDOp>({e.transpose(rows, {0, 2, 1, 3}), at},
                                        e.attr("batch_dims", int64_t(1)));
  return e.select(e.compare(Predicate::lt, place, zero), past,
                  e.transpose(added, {0, 2, 1, 3}));
}

/// Which keys count of each query: its own, and `window` - 1 or all in front of
/// it. Null where that is all up to the diagonal.
Value GroupQuery::keptKeys() {
  if (window == -1 && !before)
    return {};
  AffineExpr one = e.number(1);
  Value row = e.iota({one, one, length, one}, 2, i64),
        column = e.iota({one, one, one, total}, 3, i64);
  if (before)
    row = e.add(row, before);
  Value kept = e.compare(Predicate::le, column, row);
  if (window == -1)
    return kept;
  Value last = e.add(column, e.scalar(window, i64));
  return e.op<graph::AndOp>({kept, e.compare(Predicate::gt, last, row)});
}

/// Probabilities of `scores`, [B, H, S, T], among which one more key takes its
/// part that is nobody's.
Value GroupQuery::withoutSink(Value scores) {
  bool sinks = n.has(11);
  if (!scores || (!sinks && n.integer("smooth_softmax") <= 0))
    return scores ? buildSoftmax(scores, 3, false, e) : Value();
  Exprs column = graph::getShape(scores);
  AffineExpr one = e.number(1);
  column[3] = one;
  Value sink = e.scalar(0.0, elementOf(scores));
  if (sinks)
    sink = e.cast(e.reshape(n.input(11), {one, e.number(heads), one, one}),
                  elementOf(scores));
  Value all = e.concat({scores, e.broadcast(sink, column)}, 3);
  if (!all)
    return {};
  return sliceAlong(buildSoftmax(all, 3, false, e), 3, {e.number(0), total, 1},
                    e);
}

/// Attention whose scores are more than products.
Value GroupQuery::composed(Value kept, bool causal, double scale) {
  Exprs query = graph::getShape(q), keys = graph::getShape(k);
  AffineExpr group = e.number(heads / shared), one = e.number(1);
  auto grouped = [&](Value x, AffineExpr last, bool isShared) {
    AffineExpr rows = isShared ? total : length;
    return !x ? x
              : e.reshape(
                    x, {query[0], keys[1], isShared ? one : group, rows, last});
  };
  Value scores =
      buildMatmul(grouped(q, query[3], false),
                  e.transpose(grouped(k, query[3], true), {0, 1, 2, 4, 3}), e);
  scores = e.widen(e.reshape(scores, {query[0], query[1], length, total}));
  mlir::Type element = elementOf(scores);
  scores = e.mul(scores, e.scalar(scale, element));
  if (double cap = n.number("softcap")) {
    Value bound = e.scalar(cap, element);
    scores = e.mul(e.op<graph::TanhOp>({e.div(scores, bound)}), bound);
  }
  if (causal)
    kept = e.compare(Predicate::le, e.iota({one, one, one, total}, 3, i64),
                     e.iota({one, one, length, one}, 2, i64));
  if (n.has(10))
    scores = e.add(scores, e.cast(n.input(10), element));
  if (kept)
    scores = e.select(kept, scores, e.scalar(-INFINITY, element));
  Value parts = e.cast(withoutSink(scores), elementOf(v));
  query[3] = graph::getShape(v)[3];
  Value sums =
      buildMatmul(grouped(parts, total, false), grouped(v, query[3], true), e);
  return e.reshape(sums, query);
}

Value GroupQuery::attend(Value kept, bool causal) {
  auto depth = graph::constantOf(graph::getShape(q)[3]);
  if (!depth || *depth < 1)
    return e.fail("the width of a head has to be known",
                  "fix that size with --shape");
  if (n.has(10) && failed(n.needsRank(10, 4, 4)))
    return {};
  double scale = n.number("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(double(*depth));
  if (n.number("softcap") != 0 || n.integer("smooth_softmax") > 0 ||
      n.has(10) || n.has(11))
    return composed(kept, causal, scale);
  return buildAttention(q, k, v, kept, scale, causal, e);
}

llvm::LogicalResult GroupQuery::run() {
  if (failed(checkAttributes()) || failed(readProjections()) ||
      failed(readLengths()) || failed(turn()))
    return llvm::failure();
  if (before) {
    k = withPast(k, n.input(3));
    v = withPast(v, n.input(4));
    if (!k || !v)
      return llvm::failure();
  }
  // Without a past, what counts of a row are the keys up to the query's own, so
  // that lengths change no result that is inside of them.
  Value kept = keptKeys();
  Value result = attend(kept, !before && window == -1);
  return n.yield({mergeHeads(result, e), k, v});
}

static llvm::LogicalResult groupQueryAttention(Node &n, Emitter &e) {
  return GroupQuery(n, e).run();
}

llvm::ArrayRef<Row> charonia::frontend::onnx::groupQueryRows() {
  static const Row rows[] = {
      {"com.microsoft", "GroupQueryAttention", 1, 1, groupQueryAttention},
  };
  return rows;
}
