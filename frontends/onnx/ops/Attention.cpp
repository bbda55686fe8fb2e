// ONNX's attention, where it is what graph.attention computes.
#include "frontends/onnx/ops/Attention.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/onnx/Registry.h"
#include <cmath>

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

static llvm::LogicalResult attention(Node &n, Emitter &e) {
  // Caches, windows, soft caps and inner results are left to the function body,
  // whose reshapes take a length of 0 for one that is copied.
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
  if (!alone || (!plain && !empty) || (rank != 3 && rank != 4) ||
      rankOf(n.input(1)) != rank || rankOf(n.input(2)) != rank)
    return n.expand();
  Value q = n.input(0), k = n.input(1), v = n.input(2);
  if (rank == 3) {
    int64_t heads = n.integer("q_num_heads"),
            kvHeads = n.integer("kv_num_heads");
    q = splitHeads(q, heads, e);
    k = splitHeads(k, kvHeads, e);
    v = splitHeads(v, kvHeads, e);
  }
  if (!q || !k || !v)
    return llvm::failure();
  Exprs shape = graph::getShape(q), keys = graph::getShape(k);
  auto depth = graph::constantOf(shape[3]);
  bool causal = n.flag("is_causal") && !empty;
  // The diagonal starts at the first key; graph.attention's ends at the last.
  if (!depth || *depth == 0 || (causal && shape[2] != keys[2]))
    return n.expand();
  Value mask = empty ? Value() : n.input(3);
  if (mask) {
    // A mask shorter than the keys would be padded.
    Exprs dims = graph::getShape(mask);
    if (dims.empty() || (dims.back() != keys[2] && dims.back() != e.number(1)))
      return n.expand();
  }
  double scale = n.hasAttribute("scale") ? n.number("scale")
                                         : 1 / std::sqrt(double(*depth));
  // A query that may attend to no key gives zeros.
  Value result = buildAttention(q, k, v, mask, scale, causal, e);
  return n.yield(rank == 3 ? mergeHeads(result, e) : result);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::attentionRows() {
  static const Row rows[] = {
      {"", "Attention", 23, 25, attention},
  };
  return rows;
}
