// ONNX Runtime's attentions and rotary embedding.
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Attention.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using llvm::StringRef;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

llvm::LogicalResult charonia::frontend::onnx::needs(Node &n, Emitter &e,
                                                    StringRef name,
                                                    int64_t value) {
  const auto *given = n.find(name);
  bool isFloat = given && given->type() == ::onnx::AttributeProto::FLOAT;
  if (!given || (isFloat ? given->f() == float(value) : given->i() == value))
    return llvm::success();
  return e.fail(
      "attribute '" + name + "' = " +
          (isFloat ? std::to_string(given->f()) : std::to_string(given->i())) +
          " is not supported",
      fusionRemedy);
}

/// Fails where the node has this operand.
static llvm::LogicalResult lacks(Node &n, Emitter &e, unsigned i,
                                 StringRef name) {
  if (!n.has(i))
    return llvm::success();
  return e.fail("input " + Twine(i) + " (" + name + ") is not supported",
                fusionRemedy);
}

/// What counts of `mask` (see AttentionExtras) for queries [B, H, S, D] and
/// keys [B, H, T, D], as truth values that broadcast to [B, H, S, T].
static Value keptKeys(Value mask, Value query, Value key, Emitter &e) {
  Exprs q = graph::getShape(query), dims = graph::getShape(mask);
  AffineExpr batch = q[0], length = graph::getShape(key)[2], one = e.number(1);
  mlir::Type i32 = e.getBuilder().getI32Type();
  Value zero = e.scalar(int64_t(0), i32);
  if (dims.size() == 2 || dims.size() == 3) {
    if (!e.agree(dims.back(), length, "says of each key whether it counts"))
      return e.fail("a mask of " + e.describe(mask.getType()) +
                        " does not cover the " +
                        e.getSymbols().toString(length) + " keys",
                    fusionRemedy);
    dims.insert(dims.begin() + 1, dims.size() == 2 ? 2 : 1, one);
    return e.compare(Predicate::gt, e.reshape(mask, dims), zero);
  }
  bool hasStarts = dims.size() == 1 && dims[0] != batch &&
                   dims[0] == graph::simplify(batch * 2);
  if (dims.size() != 1 ||
      (!hasStarts && !e.agree(dims[0], batch, "takes a length each")))
    return e.fail("a mask of " + e.describe(mask.getType()) +
                      " is not supported",
                  fusionRemedy);
  Value place = e.iota({one, one, one, length}, 3, i32);
  auto bound = [&](AffineExpr first) {
    return e.reshape(e.slice(mask, {first}, {1}, {batch}),
                     {batch, one, one, one});
  };
  Value kept = e.compare(Predicate::lt, place, bound(e.number(0)));
  if (!hasStarts)
    return kept;
  return e.op<graph::AndOp>(
      {kept, e.compare(Predicate::ge, place, bound(batch))});
}

/// Attention with ONNX Runtime's mask: a number is added where keys do not
/// count.
static Value attend(Node &n, Emitter &e, Value query, Value key, Value value,
                    const AttentionExtras &extras, bool causal) {
  if (!query || !key || !value)
    return {};
  auto depth = graph::constantOf(graph::getShape(query)[3]);
  if (!depth || *depth < 1)
    return e.fail("the width of a head has to be known",
                  "fix that size with --shape");
  Value bias = extras.bias;
  if (extras.mask) {
    mlir::Type element = elementOf(query);
    Value kept = keptKeys(extras.mask, query, key, e);
    Value added =
        e.select(kept, e.scalar(0.0, element),
                 e.scalar(n.number("mask_filter_value", -10000), element));
    bias = bias ? e.add(bias, added) : added;
    if (!bias)
      return {};
  }
  double scale = n.number("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(double(*depth));
  return buildAttention(query, key, value, bias, scale, causal, e);
}

llvm::LogicalResult charonia::frontend::onnx::yieldAttention(
    Node &n, Emitter &e, Value projected, llvm::ArrayRef<int64_t> widths,
    const AttentionExtras &extras, Value past) {
  if (failed(needs(n, e, "do_rotary", 0)) ||
      failed(needs(n, e, "past_present_share_buffer", 0)) || !projected)
    return llvm::failure();
  int64_t heads = n.integer("num_heads"), start = 0;
  Exprs shape = graph::getShape(projected);
  Values parts;
  for (int64_t width : widths) {
    Value part =
        sliceAlong(projected, 2, {e.number(start), e.number(width), 1}, e);
    parts.push_back(splitHeads(part, heads, e));
    start += width;
    if (!parts.back())
      return llvm::failure();
  }
  Values present;
  for (int64_t i = 0; i < 2; ++i) {
    Value &part = parts[i + 1];
    if (past) {
      if (rankOf(past) != 5)
        return e.fail("the past has to have 5 dimensions, not " +
                      Twine(rankOf(past)));
      Exprs dims = graph::getShape(past);
      Value before = sliceAlong(past, 0, {e.number(i), e.number(1), 1}, e);
      before = e.reshape(before, llvm::ArrayRef(dims).drop_front());
      part = e.concat({before, part}, 2);
    }
    if (!part)
      return llvm::failure();
    Exprs one = graph::getShape(part);
    one.insert(one.begin(), e.number(1));
    present.push_back(n.wants(1) ? e.reshape(part, one) : Value());
  }
  Value result = attend(n, e, parts[0], parts[1], parts[2], extras,
                        n.flag("unidirectional"));
  return n.yield(
      {mergeHeads(result, e), n.wants(1) ? e.concat(present, 0) : Value()});
}

/// Operands: input, weights, bias, mask, past, attention bias.
static llvm::LogicalResult attention(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 3, 3)) || failed(n.needsRank(1, 2, 2)) ||
      failed(lacks(n, e, 6, "past_sequence_length")))
    return llvm::failure();
  auto whole = graph::constantOf(graph::getShape(n.input(1))[1]);
  llvm::SmallVector<int64_t> widths(3, whole.value_or(0) / 3);
  if (auto given = n.integers("qkv_hidden_sizes"); given && !given->empty())
    widths = *given;
  int64_t total = 0;
  for (int64_t width : widths)
    total += width >= 1 && width <= maxDimension ? width : maxDimension;
  if (widths.size() != 3 || total != whole)
    return e.fail("weights of " + e.describe(n.input(1).getType()) +
                  " do not hold queries, keys and values");
  Value projected = buildMatmul(n.input(0), n.input(1), e);
  if (n.has(2))
    projected = e.add(projected, n.input(2));
  return yieldAttention(n, e, projected, widths, {n.input(3), n.input(5)},
                        n.input(4));
}

/// Entry `i` of dimension `axis`, which goes.
static Value entry(Value value, int64_t axis, int64_t i, Emitter &e) {
  Value one = sliceAlong(value, axis, {e.number(i), e.number(1), 1}, e);
  if (!one)
    return {};
  Exprs dims = graph::getShape(one);
  dims.erase(dims.begin() + axis);
  return e.reshape(one, dims);
}

namespace {
/// Queries, keys and values, [B, H, S, D].
struct Projections {
  Value query, key, value;
};
} // namespace

/// Queries alone, or packed with keys and values in one tensor of 5 dimensions;
/// keys and values of 3 dimensions, packed in one of 5, or of 4 with their
/// heads apart.
static Projections readProjections(Node &n, Emitter &e, int64_t heads) {
  Value q = n.input(0), k = n.input(1), v = n.input(2);
  auto headsFirst = [&](Value x) { return e.transpose(x, {0, 2, 1, 3}); };
  if (rankOf(q) == 5 && !k && !v)
    return {headsFirst(entry(q, 3, 0, e)), headsFirst(entry(q, 3, 1, e)),
            headsFirst(entry(q, 3, 2, e))};
  if (rankOf(q) != 3 || !k) {
    (void)e.fail("a query of " + e.describe(q.getType()) +
                     (k ? "" : " without a key") + " is not supported",
                 fusionRemedy);
    return {};
  }
  Value query = splitHeads(q, heads, e);
  if (rankOf(k) == 5 && !v)
    return {query, headsFirst(entry(k, 3, 0, e)),
            headsFirst(entry(k, 3, 1, e))};
  if (!v || rankOf(v) != rankOf(k) || (rankOf(k) != 3 && rankOf(k) != 4)) {
    (void)e.fail("a key of " + e.describe(k.getType()) +
                     " and this value are not supported",
                 fusionRemedy);
    return {};
  }
  if (rankOf(k) == 4)
    return {query, k, v};
  return {query, splitHeads(k, heads, e), splitHeads(v, heads, e)};
}

/// Part of `bias` from `start` on, for `x`, [B, H, S, D]; moves `start` behind
/// it.
static Value withBias(Value x, Value bias, int64_t &start, Emitter &e) {
  if (!x || !bias)
    return x;
  Exprs dims = graph::getShape(x);
  auto heads = graph::constantOf(dims[1]), depth = graph::constantOf(dims[3]);
  if (!heads || !depth)
    return e.fail("the width of a head has to be known",
                  "fix that size with --shape");
  Value part =
      sliceAlong(bias, 0, {e.number(start), e.number(*heads * *depth), 1}, e);
  start += *heads * *depth;
  return e.add(
      x, e.reshape(part, {e.number(*heads), e.number(1), e.number(*depth)}));
}

/// Operands: query, key, value, bias, mask of keys, attention bias, past keys
/// and values.
static llvm::LogicalResult multiHeadAttention(Node &n, Emitter &e) {
  if (failed(lacks(n, e, 8, "past_sequence_length")) ||
      failed(lacks(n, e, 9, "cache_indirection")))
    return llvm::failure();
  Projections p = readProjections(n, e, n.integer("num_heads"));
  if (!p.query || !p.key || !p.value)
    return llvm::failure();
  int64_t start = 0;
  p.query = withBias(p.query, n.input(3), start, e);
  // Keys with their heads apart are those of an earlier layer, with their bias.
  bool biased = rankOf(n.input(1)) != 4;
  p.key = biased ? withBias(p.key, n.input(3), start, e) : p.key;
  p.value = biased ? withBias(p.value, n.input(3), start, e) : p.value;
  if (n.has(6) != n.has(7))
    return e.fail("past keys need past values, and these need past keys");
  if (n.has(6)) {
    p.key = e.concat({n.input(6), p.key}, 2);
    p.value = e.concat({n.input(7), p.value}, 2);
  }
  Value result = attend(n, e, p.query, p.key, p.value, {n.input(4), n.input(5)},
                        n.flag("unidirectional"));
  return n.yield({mergeHeads(result, e), p.key, p.value});
}

Value charonia::frontend::onnx::rotate(Value x, Value cosines, Value sines,
                                       bool interleaved, Emitter &e) {
  if (!x || !cosines || !sines)
    return {};
  Exprs dims = graph::getShape(x), pairs = dims;
  auto depth = graph::constantOf(dims[3]),
       half = graph::constantOf(graph::getShape(cosines)[3]);
  if (!depth || !half || *half < 1 || 2 * *half > *depth)
    return e.fail("angles of " + e.describe(cosines.getType()) +
                  " do not fit heads of " + e.describe(x.getType()));
  auto part = [&](int64_t start, int64_t count) {
    return sliceAlong(x, 3, {e.number(start), e.number(count), 1}, e);
  };
  Value rest = part(2 * *half, *depth - 2 * *half);
  pairs[3] = e.number(*half);
  pairs.push_back(e.number(2));
  Value first, second;
  if (interleaved) {
    Value split = e.reshape(part(0, 2 * *half), pairs);
    first = entry(split, 4, 0, e);
    second = entry(split, 4, 1, e);
  } else {
    first = part(0, *half);
    second = part(*half, *half);
  }
  Value a = e.sub(e.mul(first, cosines), e.mul(second, sines)),
        b = e.add(e.mul(first, sines), e.mul(second, cosines));
  Value turned;
  if (interleaved) {
    pairs.back() = e.number(1);
    Exprs flat = dims;
    flat[3] = e.number(2 * *half);
    turned = e.reshape(e.concat({e.reshape(a, pairs), e.reshape(b, pairs)}, 4),
                       flat);
  } else {
    turned = e.concat({a, b}, 3);
  }
  return 2 * *half == *depth ? turned : e.concat({turned, rest}, 3);
}

Value charonia::frontend::onnx::anglesOf(Value cache, Value positions,
                                         AffineExpr length, Emitter &e) {
  if (!cache || rankOf(cache) != 2)
    return e.fail("tables of cosines and sines have to have 2 dimensions");
  Exprs dims = graph::getShape(cache);
  if (!e.getSymbols().assumeAtLeast(dims[0], length,
                                    "so that positions lie inside their table"))
    return e.fail("sequences of " + e.getSymbols().toString(length) +
                      " are longer than the table of angles, " +
                      e.describe(cache.getType()),
                  "narrow the range with --shape");
  Value rows;
  if (!positions) {
    rows = sliceAlong(cache, 0, {e.number(0), length, 1}, e);
  } else {
    if (rankOf(positions) == 1)
      positions =
          e.add(e.iota({length}, 0, e.getBuilder().getI64Type()), positions);
    rows =
        e.op<graph::GatherOp>({cache, positions}, e.attr("axis", int64_t(0)));
  }
  if (!rows)
    return {};
  Exprs shape = graph::getShape(rows);
  shape.insert(shape.end() - 2, rankOf(rows) == 2 ? 2 : 1, e.number(1));
  return e.reshape(rows, shape);
}

/// Operands: input, positions, cosines, sines.
static llvm::LogicalResult rotaryEmbedding(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 3, 4)) || failed(n.needsRank(1, 1, 2)) ||
      failed(n.needsRank(2, 2, 2)) || failed(n.needsRank(3, 2, 2)) ||
      failed(needs(n, e, "is_packed_batching", 0)) ||
      failed(needs(n, e, "scale", 1)))
    return llvm::failure();
  Value x = n.input(0);
  Exprs shape = graph::getShape(x);
  bool split = shape.size() == 3;
  if (split) {
    auto width = graph::constantOf(shape[2]),
         half = graph::constantOf(graph::getShape(n.input(2))[1]);
    int64_t heads = n.integer("num_heads");
    if (heads == 0 && width && half && *half > 0)
      heads = *width / (2 * *half);
    x = splitHeads(x, heads, e);
  }
  AffineExpr length = split ? shape[1] : shape[2];
  x = rotate(x, anglesOf(n.input(2), n.input(1), length, e),
             anglesOf(n.input(3), n.input(1), length, e), n.flag("interleaved"),
             e);
  return n.yield(split ? mergeHeads(x, e) : x);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::runtimeAttentionRows() {
  static const Row rows[] = {
      {"com.microsoft", "Attention", 1, 1, attention},
      {"com.microsoft", "MultiHeadAttention", 1, 1, multiHeadAttention},
      {"com.microsoft", "RotaryEmbedding", 1, 1, rotaryEmbedding},
  };
  return rows;
}
