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

/// The rows of `table` that `ids`, [batch, length], name.
static Value lookUp(Value table, Value ids, Emitter &e) {
  return e.op<graph::GatherOp>({table, ids}, e.attr("axis", int64_t(0)));
}

/// Operands: ids, segments, tables of words, positions and segments, scale,
/// shift, mask, positions.
static llvm::LogicalResult embedLayerNormalization(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 2, 2)))
    return llvm::failure();
  for (unsigned i : {2, 3, 4})
    if (n.has(i) && failed(n.needsRank(i, 2, 2)))
      return llvm::failure();
  if (n.has(1) != n.has(4))
    return e.fail("segments need a table of segments, and that needs segments");
  Exprs ids = graph::getShape(n.input(0));
  Value positions;
  if (n.has(8)) {
    positions = lookUp(n.input(3), n.input(8), e);
  } else {
    mlir::AffineExpr rows = graph::getShape(n.input(3))[0];
    if (!e.getSymbols().assumeAtLeast(rows, ids[1],
                                      "so that positions lie inside the table"))
      return e.fail("sequences of " + e.getSymbols().toString(ids[1]) +
                        " are longer than the table of positions, " +
                        e.getSymbols().toString(rows),
                    "narrow the range with --shape");
    positions = sliceAlong(n.input(3), 0, {e.number(0), ids[1], 1}, e);
  }
  Value sum = e.add(lookUp(n.input(2), n.input(0), e), positions);
  if (n.has(1))
    sum = e.add(sum, lookUp(n.input(4), n.input(1), e));
  Value y =
      normalizeLast(sum, n.input(5), n.input(6), n.number("epsilon"), false, e);
  Value counts;
  mlir::Type i32 = e.getBuilder().getI32Type();
  if (n.wants(1)) {
    // How many ids of a row take part.
    Value one = e.scalar(int64_t(1), i32);
    counts =
        n.has(7) && n.integer("mask_index_type") != 0
            ? e.reduce(
                  graph::ReduceKind::sum,
                  e.cast(e.compare(graph::Predicate::eq, n.input(7), one), i32),
                  int64_t(1), false)
            : e.broadcast(e.scalar(int64_t(0), i32), {ids[0]});
  }
  return n.yield({y, counts, sum});
}

llvm::ArrayRef<Row> charonia::frontend::onnx::runtimeNormalizationRows() {
  static const Row rows[] = {
      {"com.microsoft", "SkipLayerNormalization", 1, 1,
       skipNormalization<false>},
      {"com.microsoft", "SkipSimplifiedLayerNormalization", 1, 1,
       skipNormalization<true>},
      {"com.microsoft", "EmbedLayerNormalization", 1, 1,
       embedLayerNormalization},
  };
  return rows;
}
