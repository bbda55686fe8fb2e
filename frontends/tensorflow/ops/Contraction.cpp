// Matrix products and convolutions.
#include "frontends/common/builders/ConvTranspose.h"
#include "frontends/common/builders/Einsum.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Shape.h"
#include "frontends/tensorflow/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// The operand with its last two dimensions exchanged.
static Value transposed(Value matrix, Emitter &e) {
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, rankOf(matrix)));
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return e.transpose(matrix, permutation);
}

static LogicalResult product(Node &n, Emitter &e, int64_t maxRank,
                             llvm::StringRef lhs, llvm::StringRef rhs) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 2, maxRank)) ||
      failed(n.needsRank(1, 2, maxRank)))
    return llvm::failure();
  Value a = n.input(0), b = n.input(1);
  return n.yield(buildMatmul(n.flag(lhs) ? transposed(a, e) : a,
                             n.flag(rhs) ? transposed(b, e) : b, e));
}
static LogicalResult matMul(Node &n, Emitter &e) {
  return product(n, e, 2, "transpose_a", "transpose_b");
}
static LogicalResult batchMatMul(Node &n, Emitter &e) {
  return product(n, e, 32, "adj_x", "adj_y");
}

/// [K..., C / groups, O] as [O, K..., C / groups], or in the order of channels
/// in front.
static Value filterOf(Value filter, const Window &w, Emitter &e) {
  int64_t rank = rankOf(filter);
  SmallVector<int64_t> permutation = {rank - 1};
  if (!w.channelsLast)
    permutation.push_back(rank - 2);
  for (int64_t d = 0; d < rank - 2; ++d)
    permutation.push_back(d);
  if (w.channelsLast)
    permutation.push_back(rank - 2);
  return e.transpose(filter, permutation);
}

/// Groups are as many as the filter's channels go into the input's.
static LogicalResult conv(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 4, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  auto window = readConvWindow(n, e);
  if (failed(window))
    return llvm::failure();
  Exprs filter = graph::getShape(n.input(1)),
        input = graph::getShape(window->input);
  auto perGroup = graph::constantOf(filter[rank - 2]),
       channels = graph::constantOf(input[window->channelsLast ? rank - 1 : 1]);
  int64_t groups =
      perGroup && channels && *perGroup > 0 ? *channels / *perGroup : 1;
  return n.yield(buildConv(*window, window->input,
                           filterOf(n.input(1), *window, e), groups, e));
}

/// The filter, [H, W, C, M], has M results for each channel: C groups.
static LogicalResult depthwiseConv(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 4, 4)) ||
      failed(n.needsRank(1, 4, 4)))
    return llvm::failure();
  auto window = readConvWindow(n, e);
  if (failed(window))
    return llvm::failure();
  Exprs filter = graph::getShape(n.input(1));
  auto channels = graph::constantOf(filter[2]);
  AffineExpr results = productOfSizes({filter[2], filter[3]}, e);
  if (!channels || !results)
    return e.fail("the number of channels has to be known",
                  "fix that size with --shape");
  Value grouped =
      e.reshape(n.input(1), {filter[0], filter[1], e.number(1), results});
  return n.yield(buildConv(*window, window->input,
                           filterOf(grouped, *window, e), *channels, e));
}

/// What the padding of a transposed convolution takes off the result along one
/// dimension of n elements, where the result is to have `size`: all of it but
/// what the convolution it reverses would have padded.
static LogicalResult fitTransposed(TransposedWindow &t, unsigned i,
                                   AffineExpr n, AffineExpr size, bool same,
                                   Emitter &e) {
  int64_t stride = t.strides[i], reach = (t.kernel[i] - 1) * t.dilations[i] + 1;
  AffineExpr full = graph::simplify((n - 1) * stride + reach);
  auto excess = graph::constantOf(graph::simplify(full - size));
  if (!excess)
    return e.fail("a result of " + e.getSymbols().toString(size) + " from " +
                      e.getSymbols().toString(n) + " elements is not supported",
                  "fix these sizes with --shape");
  int64_t taken = std::max<int64_t>(*excess, 0), missing = taken - *excess;
  // SAME of n elements gives those that n windows a stride apart begin in.
  bool fits = same ? *excess > reach - stride - stride &&
                         *excess <= std::max<int64_t>(reach - 1, 0)
                   : *excess <= 0 && missing < stride;
  if (!fits)
    return e.fail("a result of " + e.getSymbols().toString(size) +
                  " does not fit " + e.getSymbols().toString(n) +
                  " elements a stride of " + llvm::Twine(stride) + " apart");
  t.pads[i] = taken / 2;
  t.pads[i + t.kernel.size()] = taken - taken / 2;
  t.outputPadding.push_back(missing);
  return llvm::success();
}

/// The gradient of a convolution by its input, which layers use as transposed
/// convolution: operand 0 is the result's shape, the filter is [H, W, O, C].
static LogicalResult convTranspose(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(1, 4, 4)) ||
      failed(n.needsRank(2, 4, 4)))
    return llvm::failure();
  auto shape = n.known(0);
  auto last = channelsAreLast(n, e);
  if (failed(shape) || failed(last) || shape->size() != 4)
    return e.fail("the shape of its result has to have four sizes");
  TransposedWindow t;
  Window w;
  w.channelsLast = *last;
  Exprs filter = graph::getShape(n.input(1));
  for (AffineExpr size : llvm::ArrayRef(filter).take_front(2)) {
    auto known = graph::constantOf(size);
    if (!known || *known < 1 || *known > maxWindow)
      return e.fail("the filter's size has to be known",
                    "fix that size with --shape");
    t.kernel.push_back(*known);
  }
  auto strides = spatialOf(n, e, "strides", w, 4),
       dilations = spatialOf(n, e, "dilations", w, 4);
  if (failed(strides) || failed(dilations))
    return llvm::failure();
  t.strides = *strides;
  t.dilations = *dilations;
  t.pads.assign(4, 0);
  std::string padding = n.text("padding", "");
  if (padding != "SAME" && padding != "VALID")
    return e.fail("padding '" + padding + "' is not supported");
  Value x = *last ? e.transpose(n.input(2), {0, 3, 1, 2}) : n.input(2);
  Exprs given = graph::getShape(x);
  for (unsigned i : {0, 1})
    if (failed(fitTransposed(t, i, given[i + 2], (*shape)[w.firstSpatial() + i],
                             padding == "SAME", e)))
      return llvm::failure();
  if (!e.agree(given[1], filter[3], "multiplies over the channels"))
    return e.fail("a filter of " + e.describe(n.input(1).getType()) +
                  " does not fit the channels of " +
                  e.describe(n.input(2).getType()));
  Value y = buildConvTranspose(x, e.transpose(n.input(1), {3, 2, 0, 1}), t, e);
  return n.yield(*last ? e.transpose(y, {0, 2, 3, 1}) : y);
}

static LogicalResult einsum(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 64)))
    return llvm::failure();
  return n.yield(buildEinsum(n.text("equation", ""), n.allInputs(), e));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::contractionRows() {
  static const Row rows[] = {
      {"MatMul", matMul},
      {"BatchMatMul", batchMatMul},
      {"BatchMatMulV2", batchMatMul},
      {"BatchMatMulV3", batchMatMul},
      {"Einsum", einsum},
      {"Conv2D", conv},
      {"Conv3D", conv},
      {"DepthwiseConv2dNative", depthwiseConv},
      {"Conv2DBackpropInput", convTranspose},
  };
  return rows;
}
