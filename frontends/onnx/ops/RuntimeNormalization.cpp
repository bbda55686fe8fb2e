// ONNX Runtime's normalizations of sums and of embeddings.
#include "frontends/common/builders/Normalization.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::Twine;
using mlir::Value;

/// Layer normalization over the last dimension, with scale and shift (or null)
/// of that dimension.
static Value normalizeLast(Value x, Value scale, Value shift, double epsilon,
                           bool rms, Emitter &e) {
  if (!x)
    return {};
  Value y = e.mul(buildNormalize(x, rankOf(x) - 1, epsilon, rms, e), scale);
  if (shift)
    y = e.add(y, shift);
  if (y && y.getType() != x.getType())
    return e.fail("scale and shift do not broadcast to the input, " +
                  e.describe(x.getType()));
  return y;
}

/// Normalizes input + skip + bias; the sum is the last output.
template <bool rms>
static llvm::LogicalResult skipNormalization(Node &n, Emitter &e) {
  unsigned biasAt = rms ? 3 : 4;
  Value sum = e.add(n.input(0), n.input(1));
  if (n.has(biasAt))
    sum = e.add(sum, n.input(biasAt));
  if (sum && sum.getType() != n.input(0).getType())
    return e.fail("skip and bias do not broadcast to the input, " +
                  e.describe(n.input(0).getType()));
  double epsilon = n.number("epsilon");
  Value y = normalizeLast(sum, n.input(2), rms ? Value() : n.input(3), epsilon,
                          rms, e);
  Value wide = e.widen(sum), mean, deviation;
  if (n.wants(1) || n.wants(2)) {
    mean = e.mean(wide, rankOf(wide) - 1, true);
    Value centered = rms ? wide : e.sub(wide, mean);
    Value variance = e.mean(e.mul(centered, centered), rankOf(wide) - 1, true);
    deviation = e.op<graph::RsqrtOp>(
        {e.add(variance, e.scalar(epsilon, elementOf(variance)))});
  }
  return n.yield({y, mean, deviation, sum});
}

namespace {
/// Operands of an embedding: of tables, scale and shift a value, or integers
/// with scale and zero point, each one for all (null for floats).
struct Quantized {
  Value value, scale = {}, point = {};
};
struct Embedding {
  Quantized words, positions, segments, gamma, beta;
  /// Where each word stands; may be null.
  Value places;
};
} // namespace

/// `x`, which are some of the elements of `of`, in float.
static Value dequantized(Value x, const Quantized &of, Emitter &e) {
  if (!of.scale)
    return x;
  auto single = [&](Value v) {
    return e.cast(e.reshape(v, {}), elementOf(of.scale));
  };
  Value distance = e.sub(e.cast(x, elementOf(of.scale)), single(of.point));
  return e.mul(distance, single(of.scale));
}

/// The rows of `table` that `ids`, [batch, length], name.
static Value lookUp(const Quantized &table, Value ids, Emitter &e) {
  return dequantized(
      e.op<graph::GatherOp>({table.value, ids}, e.attr("axis", int64_t(0))),
      table, e);
}

/// Rows of the table of positions for words of `ids`.
static Value positionsOf(const Embedding &from, Value ids, Emitter &e) {
  if (from.places)
    return lookUp(from.positions, from.places, e);
  mlir::AffineExpr length = graph::getShape(ids)[1],
                   rows = graph::getShape(from.positions.value)[0];
  if (!e.getSymbols().assumeAtLeast(rows, length,
                                    "so that positions lie inside the table"))
    return e.fail("sequences of " + e.getSymbols().toString(length) +
                      " are longer than the table of positions, " +
                      e.getSymbols().toString(rows),
                  "narrow the range with --shape");
  return dequantized(
      sliceAlong(from.positions.value, 0, {e.number(0), length, 1}, e),
      from.positions, e);
}

/// How many ids of a row take part, by the mask if there is one.
static Value countsOf(Node &n, Emitter &e) {
  mlir::Type i32 = e.getBuilder().getI32Type();
  if (!n.has(7) || n.integer("mask_index_type", 1) == 0)
    return e.broadcast(e.scalar(int64_t(0), i32),
                       {graph::getShape(n.input(0))[0]});
  Value counts =
      e.compare(graph::Predicate::eq, n.input(7), e.scalar(int64_t(1), i32));
  return e.reduce(graph::ReduceKind::sum, e.cast(counts, i32), int64_t(1),
                  false);
}

/// Operands 0 to 7: ids, segments, tables of words, positions and segments,
/// scale, shift, mask.
static llvm::LogicalResult yieldEmbedding(Node &n, Emitter &e,
                                          const Embedding &from) {
  if (failed(n.needsRank(0, 2, 2)))
    return llvm::failure();
  for (unsigned i : {2, 3, 4})
    if (n.has(i) && failed(n.needsRank(i, 2, 2)))
      return llvm::failure();
  if (n.has(1) != n.has(4))
    return e.fail("segments need a table of segments, and that needs segments");
  Value sum = e.add(lookUp(from.words, n.input(0), e),
                    positionsOf(from, n.input(0), e));
  if (n.has(1))
    sum = e.add(sum, lookUp(from.segments, n.input(1), e));
  Value y = normalizeLast(sum, dequantized(from.gamma.value, from.gamma, e),
                          dequantized(from.beta.value, from.beta, e),
                          n.number("epsilon"), false, e);
  return n.yield({y, n.wants(1) ? countsOf(n, e) : Value(), sum});
}

/// Behind the mask come positions.
static llvm::LogicalResult embedLayerNormalization(Node &n, Emitter &e) {
  return yieldEmbedding(n, e,
                        {{n.input(2)},
                         {n.input(3)},
                         {n.input(4)},
                         {n.input(5)},
                         {n.input(6)},
                         n.input(8)});
}

/// Behind the mask come five scales and five zero points.
static llvm::LogicalResult qEmbedLayerNormalization(Node &n, Emitter &e) {
  Quantized parts[5];
  for (unsigned i = 0; i < 5; ++i) {
    parts[i] = {n.input(2 + i), n.input(8 + i), n.input(13 + i)};
    if (parts[i].value && (!parts[i].scale || !parts[i].point))
      return e.fail("input " + Twine(2 + i) +
                    " needs a scale and a zero point");
  }
  return yieldEmbedding(n, e,
                        {parts[0], parts[1], parts[2], parts[3], parts[4], {}});
}

llvm::ArrayRef<Row> charonia::frontend::onnx::runtimeNormalizationRows() {
  static const Row rows[] = {
      {"com.microsoft", "SkipLayerNormalization", 1, 1,
       skipNormalization<false>},
      {"com.microsoft", "SkipSimplifiedLayerNormalization", 1, 1,
       skipNormalization<true>},
      {"com.microsoft", "EmbedLayerNormalization", 1, 1,
       embedLayerNormalization},
      {"com.microsoft", "QEmbedLayerNormalization", 1, 1,
       qEmbedLayerNormalization},
  };
  return rows;
}
