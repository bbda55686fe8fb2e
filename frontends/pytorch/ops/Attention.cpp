// Attention, by the rules of scaled_dot_product_attention.
#include "frontends/common/builders/Matrix.h"
#include "frontends/pytorch/ops/Rows.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

/// Where query s may see key t: t <= s, whatever the lengths.
static Value lowerTriangle(mlir::AffineExpr queries, mlir::AffineExpr keys,
                           Emitter &e) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value s = e.iota({queries, e.number(1)}, 0, i64),
        t = e.iota({e.number(1), keys}, 1, i64);
  return e.compare(graph::Predicate::le, t, s);
}

/// [..., S, D] as [B, H, S, D]: dimensions that are missing have one element,
/// those in front of the heads are one.
static Value withHeads(Value x, Emitter &e) {
  Exprs shape = graph::getShape(x);
  size_t rank = shape.size();
  if (rank < 4) {
    shape.insert(shape.end() - 2, 4 - rank, e.number(1));
  } else if (rank > 4) {
    auto lead = llvm::ArrayRef(shape).drop_back(3);
    Exprs joined = {productOf(lead, e.getContext())};
    joined.append(shape.end() - 3, shape.end());
    shape = joined;
  }
  return e.reshape(x, shape);
}
/// The shape of scores, as far as a mask that is spread to it has dimensions.
static Exprs maskShape(Value q, Value k, Value mask, Emitter &e) {
  Exprs shape = graph::getShape(q), own = graph::getShape(mask);
  if (own.size() <= 2)
    return own;
  shape.back() = graph::getShape(k)[shape.size() - 2];
  // Rows and columns may stay spread.
  for (size_t last = 1; last <= 2; ++last)
    shape[shape.size() - last] = own[own.size() - last];
  return shape;
}

static LogicalResult attention(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value q = c.operand("query", element), k = c.operand("key", element),
        v = c.operand("value", element), mask = c.optionalTensor("attn_mask");
  bool causal = c.flag("is_causal", false);
  c.ignore({"enable_gqa"});
  if (c.number("dropout_p", 0) != 0)
    return c.fail("dropout is not supported", "export the model in eval()");
  if (!hasRank(c, q, "query", 2, 32) ||
      !hasRank(c, k, "key", rankOf(q), rankOf(q)) ||
      !hasRank(c, v, "value", rankOf(q), rankOf(q)))
    return c.yield(Value());
  bool isWhole = rankOf(q) == 4;
  if (!isWhole && mask)
    mask = e.broadcast(mask, maskShape(q, k, mask, e));
  q = withHeads(q, e);
  k = withHeads(k, e);
  v = withHeads(v, e);
  if (!isWhole && mask && rankOf(mask) > 2)
    mask = withHeads(mask, e);
  if (!q || !k || !v)
    return c.yield(Value());
  Exprs queries = graph::getShape(q), keys = graph::getShape(k);
  auto depth = graph::constantOf(queries[3]);
  if (!depth || *depth < 1)
    return c.fail("the width of a head has to be known",
                  "fix that size when exporting");
  double scale = c.number("scale", 1 / std::sqrt(double(*depth)));
  // The diagonal starts at the first key; graph.attention's ends at the last.
  if (causal && queries[2] != keys[2]) {
    Value triangle = lowerTriangle(queries[2], keys[2], e);
    if (mask)
      return c.fail("is_causal beside a mask is not supported for different "
                    "lengths of query and key");
    mask = triangle;
    causal = false;
  }
  Value y = buildAttention(q, k, v, mask, scale, causal, e);
  return c.yield(isWhole ? y : e.reshape(y, c.resultShape()));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::attentionRows() {
  static const Row rows[] = {
      {"aten.scaled_dot_product_attention.default", attention},
  };
  return rows;
}
