// Matrix products, convolution, attention.
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Window.h"
#include "frontends/pytorch/Registry.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::Value;

/// Fails unless the operand has this many dimensions.
static bool hasRank(Call &c, Value value, llvm::StringRef name, int64_t low,
                    int64_t high) {
  if (!value)
    return false;
  int64_t rank = rankOf(value);
  if (rank < low || rank > high)
    c.fail("argument '" + name + "' has " + llvm::Twine(rank) + " dimensions");
  return rank >= low && rank <= high;
}
static Value transposed(Value matrix, Emitter &e) {
  return rankOf(matrix) == 2 ? e.transpose(matrix, {1, 0}) : matrix;
}

static LogicalResult linear(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), weight = c.tensor("weight"),
        bias = c.optionalTensor("bias");
  if (!hasRank(c, x, "input", 1, 32) || !hasRank(c, weight, "weight", 1, 2))
    return c.yield(Value());
  Value y = buildMatmul(x, transposed(weight, e), e);
  return c.yield(bias ? e.add(y, bias) : y);
}
template <int64_t low, int64_t high>
static LogicalResult product(Call &c, llvm::StringRef lhs,
                             llvm::StringRef rhs) {
  Value a = c.tensor(lhs), b = c.tensor(rhs);
  if (!hasRank(c, a, lhs, low, high) || !hasRank(c, b, rhs, low, high))
    return c.yield(Value());
  return c.yield(buildMatmul(a, b, c.getEmitter()));
}
static LogicalResult matmul(Call &c) {
  return product<1, 32>(c, "self", "other");
}
static LogicalResult mm(Call &c) { return product<2, 2>(c, "self", "mat2"); }
static LogicalResult bmm(Call &c) { return product<3, 3>(c, "self", "mat2"); }
static LogicalResult mv(Call &c) { return product<1, 2>(c, "self", "vec"); }
static LogicalResult dot(Call &c) { return product<1, 1>(c, "self", "tensor"); }

/// beta * self + alpha * a b.
static LogicalResult addProduct(Call &c, llvm::StringRef lhs,
                                llvm::StringRef rhs) {
  Emitter &e = c.getEmitter();
  Value a = c.tensor(lhs), b = c.tensor(rhs), added = c.tensor("self");
  double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  if (!hasRank(c, a, lhs, 2, 3) || !hasRank(c, b, rhs, 1, 3))
    return c.yield(Value());
  Value y = buildMatmul(a, b, e);
  if (alpha != 1)
    y = e.mul(y, e.scalar(alpha, elementOf(y)));
  if (beta == 0)
    return c.yield(y);
  if (beta != 1)
    added = e.mul(added, e.scalar(beta, elementOf(added)));
  return c.yield(e.add(y, added));
}
static LogicalResult addmm(Call &c) { return addProduct(c, "mat1", "mat2"); }
static LogicalResult baddbmm(Call &c) {
  return addProduct(c, "batch1", "batch2");
}

// Convolution.

/// Of "same": the smaller half before the input.
static LogicalResult readPadding(Call &c, Window &w) {
  unsigned spatial = w.kernel.size();
  const Argument *padding = c.find("padding");
  if (!padding || padding->kind != Argument::Kind::String) {
    SmallVector<int64_t> lows = c.repeated("padding", spatial, 0);
    w.pads = lows;
    w.pads.append(lows.begin(), lows.end());
    return llvm::success();
  }
  w.pads.assign(2 * spatial, 0);
  if (padding->text == "valid")
    return llvm::success();
  if (padding->text != "same")
    return c.fail("padding '" + padding->text + "' is not supported");
  for (unsigned i = 0; i < spatial; ++i) {
    int64_t total = (w.kernel[i] - 1) * w.dilations[i];
    w.pads[i] = total / 2;
    w.pads[i + spatial] = total - total / 2;
  }
  return llvm::success();
}

static LogicalResult checkWindow(Call &c, const Window &w) {
  auto all = [&](llvm::ArrayRef<int64_t> values, int64_t low,
                 llvm::StringRef what) {
    for (int64_t value : values)
      if (value < low || value > maxWindow)
        c.fail("a " + what + " of " + llvm::Twine(value) + " is not supported");
  };
  all(w.kernel, 1, "kernel");
  all(w.strides, 1, "stride");
  all(w.dilations, 1, "dilation");
  all(w.pads, 0, "padding");
  return llvm::failure(c.getEmitter().failed());
}

static LogicalResult conv(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), filter = c.tensor("weight"),
        bias = c.optionalTensor("bias");
  c.ignore({"output_padding"});
  if (c.flag("transposed", false))
    return c.fail("transposed convolution is not supported yet",
                  "replace it by an upsampling and a convolution");
  if (!hasRank(c, filter, "weight", 3, 5) ||
      !hasRank(c, x, "input", rankOf(filter) - 1, rankOf(filter)))
    return c.yield(Value());
  bool isBatch = rankOf(x) == rankOf(filter);
  if (!isBatch) {
    Exprs shape = graph::getShape(x);
    shape.insert(shape.begin(), e.number(1));
    x = e.reshape(x, shape);
  }
  auto kernel = kernelOf(filter, e);
  if (failed(kernel))
    return llvm::failure();
  Window w;
  w.input = x;
  w.kernel = *kernel;
  unsigned spatial = w.kernel.size();
  w.strides = c.repeated("stride", spatial, 1);
  w.dilations = c.repeated("dilation", spatial, 1);
  if (failed(checkWindow(c, w)) || failed(readPadding(c, w)) ||
      failed(checkWindow(c, w)) || failed(fitWindow(w, e)))
    return llvm::failure();
  Value y = buildConv(w, x, filter, c.integer("groups", 1), e);
  if (bias && y) {
    if (!hasRank(c, bias, "bias", 1, 1))
      return c.yield(Value());
    y = e.add(y, e.asChannels(bias, spatial));
  }
  return c.yield(isBatch ? y : e.reshape(y, c.resultShape()));
}

// Attention.

/// Where query s may see key t: t <= s, whatever the lengths.
static Value lowerTriangle(mlir::AffineExpr queries, mlir::AffineExpr keys,
                           Emitter &e) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value s = e.iota({queries, e.number(1)}, 0, i64),
        t = e.iota({e.number(1), keys}, 1, i64);
  return e.compare(graph::Predicate::le, t, s);
}

static LogicalResult attention(Call &c) {
  Emitter &e = c.getEmitter();
  Value q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value"),
        mask = c.optionalTensor("attn_mask");
  bool causal = c.flag("is_causal", false);
  c.ignore({"enable_gqa"});
  if (c.number("dropout_p", 0) != 0)
    return c.fail("dropout is not supported", "export the model in eval()");
  if (!hasRank(c, q, "query", 2, 4) ||
      !hasRank(c, k, "key", rankOf(q), rankOf(q)) ||
      !hasRank(c, v, "value", rankOf(q), rankOf(q)))
    return c.yield(Value());
  int64_t missing = 4 - rankOf(q);
  // Without heads or batch there is one of them.
  auto whole = [&](Value value) {
    Exprs shape = graph::getShape(value);
    shape.insert(shape.end() - 2, missing, e.number(1));
    return missing ? e.reshape(value, shape) : value;
  };
  q = whole(q);
  k = whole(k);
  v = whole(v);
  if (mask && missing && rankOf(mask) > 2)
    mask = whole(mask);
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
  return c.yield(missing ? e.reshape(y, c.resultShape()) : y);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::contractionRows() {
  static const Row rows[] = {
      {"aten.linear.default", linear},
      {"aten.matmul.default", matmul},
      {"aten.mm.default", mm},
      {"aten.bmm.default", bmm},
      {"aten.mv.default", mv},
      {"aten.dot.default", dot},
      {"aten.addmm.default", addmm},
      {"aten.baddbmm.default", baddbmm},
      {"aten.conv1d.default", conv},
      {"aten.conv2d.default", conv},
      {"aten.conv3d.default", conv},
      {"aten.conv1d.padding", conv},
      {"aten.conv2d.padding", conv},
      {"aten.conv3d.padding", conv},
      {"aten.convolution.default", conv},
      {"aten.scaled_dot_product_attention.default", attention},
  };
  return rows;
}
