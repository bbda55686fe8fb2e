// ONNX's attention, where it is what graph.attention computes.
#include "frontends/onnx/ops/Attention.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/onnx/Registry.h"
#include <cmath>
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

Value charonia::frontend::onnx::splitHeads(Value value, int64_t heads,
                                           Emitter &e) {
  if (!value)
    return {};
  Exprs shape = graph::getShape(value);
  auto width = graph::constantOf(shape[2]);
  if (heads < 1 || !width || *width % heads)
    return e.fail("a width of " + e.getSymbols().toString(shape[2]) +
                  " does not split into " + llvm::Twine(heads) + " heads");
  Value split = e.reshape(
      value, {shape[0], shape[1], e.number(heads), e.number(*width / heads)});
  return e.transpose(split, {0, 2, 1, 3});
}

Value charonia::frontend::onnx::mergeHeads(Value value, Emitter &e) {
  if (!value)
    return {};
  Exprs dims = graph::getShape(value);
  return e.reshape(e.transpose(value, {0, 2, 1, 3}),
                   {dims[0], dims[2], graph::simplify(dims[1] * dims[3])});
}

/// Whether a sequence is known to have no element.
static bool isNone(Value sequence) {
  return rankOf(sequence) >= 2 &&
         graph::constantOf(graph::getShape(sequence).end()[-2]) == 0;
}

/// The mask, or the lower triangle if there is none, where query s sees just
/// keys t <= s, whatever the lengths. What is added to scores stays that.
static Value upToQuery(Value mask, mlir::AffineExpr queries,
                       mlir::AffineExpr keys, Emitter &e) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value s = e.iota({queries, e.number(1)}, 0, i64),
        t = e.iota({e.number(1), keys}, 1, i64),
        kept = e.compare(graph::Predicate::le, t, s);
  if (!mask)
    return kept;
  if (!isFloat(mask))
    return e.op<graph::AndOp>({mask, kept});
  double inf = std::numeric_limits<double>::infinity();
  return e.select(kept, mask, e.scalar(-inf, elementOf(mask)));
}

/// Whether keys and values follow those of a past that graph.attention reads as
/// they are.
static bool joinsPast(Node &n) {
  return n.has(4) && n.has(5) && !isNone(n.input(4)) && !n.wants(3) &&
         rankOf(n.input(4)) == 4 && rankOf(n.input(5)) == 4;
}

/// An operand as [batch, heads, length, width]; null if it is no such.
static Value inHeads(Value operand, int64_t heads, Emitter &e) {
  return rankOf(operand) == 3 ? splitHeads(operand, heads, e) : operand;
}

static llvm::LogicalResult attention(Node &n, Emitter &e) {
  // Lengths of keys, windows, soft caps and inner results are left to the
  // function body, whose reshapes take a length of 0 for one that is copied.
  bool plain = n.number("softcap") == 0 &&
               n.integer("left_window_size", -1) == -1 &&
               n.integer("right_window_size", -1) == -1 && !n.has(6);
  bool alone = !n.has(4) && !n.has(5);
  for (unsigned i = 1; i < n.numOutputs(); ++i)
    alone &= !n.wants(i);
  int64_t rank = rankOf(n.input(0));
  bool empty = isNone(n.input(0)) || isNone(n.input(1));
  if (empty && !alone && isNone(n.input(1)) &&
      (!n.has(4) || isNone(n.input(4))))
    return e.fail("there are no keys (a length of 0), and then neither caches "
                  "nor results beside the first are supported");
  bool joins = plain && !empty && joinsPast(n);
  if ((!alone && !joins) || (!plain && !empty) || (rank != 3 && rank != 4) ||
      rankOf(n.input(1)) != rank || rankOf(n.input(2)) != rank)
    return n.expand();
  int64_t heads = rank == 3 ? n.integer("q_num_heads") : 0,
          kvHeads = rank == 3 ? n.integer("kv_num_heads") : 0;
  Value q = inHeads(n.input(0), heads, e), k = inHeads(n.input(1), kvHeads, e),
        v = inHeads(n.input(2), kvHeads, e);
  if (!q || !k || !v)
    return llvm::failure();
  Exprs shape = graph::getShape(q), keys = graph::getShape(k);
  auto depth = graph::constantOf(shape[3]);
  bool causal = n.flag("is_causal") && !empty;
  // The diagonal starts at the first key that is new; graph.attention's ends at
  // the last one.
  bool endsBefore = causal && shape[2] != keys[2];
  if (!depth || *depth == 0 || (endsBefore && joins))
    return n.expand();
  if (joins) {
    k = e.concat({n.input(4), k}, 2);
    v = e.concat({n.input(5), v}, 2);
    if (!k || !v)
      return llvm::failure();
    keys = graph::getShape(k);
  }
  Value mask = empty ? Value() : n.input(3);
  if (mask) {
    // A mask shorter than the keys would be padded.
    Exprs dims = graph::getShape(mask);
    if (dims.empty() || (dims.back() != keys[2] && dims.back() != e.number(1)))
      return n.expand();
  }
  if (endsBefore) {
    mask = upToQuery(mask, shape[2], keys[2], e);
    if (!mask)
      return llvm::failure();
    causal = false;
  }
  double scale = n.hasAttribute("scale") ? n.number("scale")
                                         : 1 / std::sqrt(double(*depth));
  // A query that may attend to no key gives zeros.
  Value result = buildAttention(q, k, v, mask, scale, causal, e);
  result = rank == 3 ? mergeHeads(result, e) : result;
  return joins ? n.yield({result, k, v}) : n.yield(result);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::attentionRows() {
  static const Row rows[] = {
      {"", "Attention", 23, 25, attention},
  };
  return rows;
}
