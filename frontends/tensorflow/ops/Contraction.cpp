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
/// Of operands of any types, in the type of the result.
static LogicalResult batchMatMulTo(Node &n, Emitter &e) {
  mlir::Type element = n.type("Tout", 1);
  if (!element || failed(n.needsTensors(2, 2)))
    return llvm::failure();
  for (unsigned i : {0, 1})
    n.setInput(i, e.cast(n.input(i), element));
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

/// As many as the filter's channels go into the input's.
static int64_t groupsOf(Value filter, Value input, const Window &w) {
  Exprs given = graph::getShape(filter), shape = graph::getShape(input);
  auto perGroup = graph::constantOf(given[given.size() - 2]),
       channels = graph::constantOf(w.channelsLast ? shape.back() : shape[1]);
  return perGroup && channels && *perGroup > 0 ? *channels / *perGroup : 1;
}

/// The filter, [H, W, C, M], has M results for each channel: [H, W, 1, C * M],
/// and groups of one channel.
static Value groupedFilter(Value filter, Emitter &e) {
  Exprs shape = graph::getShape(filter);
  AffineExpr results = productOfSizes({shape[2], shape[3]}, e);
  return results ? e.reshape(filter, {shape[0], shape[1], e.number(1), results})
                 : Value();
}

/// A convolution of blocks that takes every position is a dilated one of what
/// is in blocks. False where it does not, or is no such; then nothing is made.
static bool convBlocks(Node &n, Emitter &e, bool isDepthwise) {
  const Blocks &blocks = *n.blocks(0);
  size_t rank = blocks.sizes.size(), spatial = rank - 2;
  Window w;
  auto last = channelsAreLast(n, e);
  if (failed(last) || rank < 4 || rank > 5 || !n.input(1) ||
      rankOf(n.input(1)) != int64_t(rank) || n.text("padding", "") != "VALID")
    return false;
  w.channelsLast = *last;
  auto filterShape = graph::getShape(n.input(1));
  for (AffineExpr size : llvm::ArrayRef(filterShape).take_front(spatial))
    w.kernel.push_back(graph::constantOf(size).value_or(0));
  auto strides = spatialOf(n, e, "strides", w, rank),
       dilations = spatialOf(n, e, "dilations", w, rank);
  if (failed(strides) || failed(dilations))
    return false;
  w.strides = *strides;
  w.dilations = *dilations;
  w.pads.assign(2 * spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = blocks.sizes[i + w.firstSpatial()];
    if (w.kernel[i] < 1 || (size != 1 && w.strides[i] != 1) ||
        w.kernel[i] > maxWindow / (w.dilations[i] * size))
      return false;
    w.dilations[i] *= size;
  }
  // Channels and batch are in no blocks.
  if (blocks.sizes[w.channelsLast ? rank - 1 : 1] != 1 || blocks.sizes[0] != 1)
    return false;
  auto result = std::make_shared<Blocks>(blocks);
  result->make = [make = blocks.make, w, filter = n.input(1),
                  isDepthwise](Value padded, Emitter &e) mutable -> Value {
    w.input = make(padded, e);
    Value given = isDepthwise ? groupedFilter(filter, e) : filter;
    if (!w.input || !given || failed(fitWindow(w, e)))
      return {};
    return buildConv(w, w.input, filterOf(given, w, e),
                     groupsOf(given, w.input, w), e);
  };
  Item item;
  item.blocks = std::move(result);
  return succeeded(n.yieldItem(std::move(item)));
}

static LogicalResult conv(Node &n, Emitter &e) {
  if (n.blocks(0) && convBlocks(n, e, false))
    return llvm::success();
  if (e.failed() || !n.layOut(0) || failed(n.needsTensors(2, 2)))
    return llvm::failure();
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 4, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  auto window = readConvWindow(n, e);
  if (failed(window))
    return llvm::failure();
  return n.yield(buildConv(*window, window->input,
                           filterOf(n.input(1), *window, e),
                           groupsOf(n.input(1), window->input, *window), e));
}

static LogicalResult depthwiseConv(Node &n, Emitter &e) {
  if (n.blocks(0) && convBlocks(n, e, true))
    return llvm::success();
  if (e.failed() || !n.layOut(0) || failed(n.needsTensors(2, 2)) ||
      failed(n.needsRank(0, 4, 4)) || failed(n.needsRank(1, 4, 4)))
    return llvm::failure();
  auto window = readConvWindow(n, e);
  if (failed(window))
    return llvm::failure();
  auto channels = graph::constantOf(graph::getShape(n.input(1))[2]);
  Value grouped = groupedFilter(n.input(1), e);
  if (!channels || !grouped)
    return e.fail("the number of channels has to be known",
                  "fix that size with --shape");
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
  bool fits = same ? *excess >= reach - stride && *excess < reach
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

namespace {
/// Transposes that put channels behind the batch, and back behind all, and make
/// a filter [C, O, K...].
struct Turns {
  SmallVector<int64_t> first, behind, filter;

  explicit Turns(int64_t rank)
      : first{0, rank - 1}, behind{0}, filter{rank - 1, rank - 2} {
    for (int64_t d = 0; d < rank - 2; ++d) {
      first.push_back(d + 1);
      behind.push_back(d + 2);
      filter.push_back(d);
    }
    behind.push_back(1);
  }
};
} // namespace

/// The gradient of a convolution by its input, which layers use as transposed
/// convolution: operand 0 is the result's shape, the filter is [H, W, O, C].
static LogicalResult convTranspose(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(1, 4, 5)))
    return llvm::failure();
  unsigned rank = rankOf(n.input(1)), spatial = rank - 2;
  if (failed(n.needsRank(2, rank, rank)))
    return llvm::failure();
  auto shape = n.known(0);
  auto last = channelsAreLast(n, e);
  if (failed(shape) || failed(last) || shape->size() != rank)
    return e.fail("the shape of its result has to have " + llvm::Twine(rank) +
                  " sizes");
  TransposedWindow t;
  Window w;
  w.channelsLast = *last;
  Exprs filter = graph::getShape(n.input(1));
  for (AffineExpr size : llvm::ArrayRef(filter).take_front(spatial)) {
    auto known = graph::constantOf(size);
    if (!known || *known < 1 || *known > maxWindow)
      return e.fail("the filter's size has to be known",
                    "fix that size with --shape");
    t.kernel.push_back(*known);
  }
  auto strides = spatialOf(n, e, "strides", w, rank),
       dilations = spatialOf(n, e, "dilations", w, rank);
  if (failed(strides) || failed(dilations))
    return llvm::failure();
  t.strides = *strides;
  t.dilations = *dilations;
  t.pads.assign(2 * spatial, 0);
  std::string padding = n.text("padding", "");
  if (padding != "SAME" && padding != "VALID")
    return e.fail("padding '" + padding + "' is not supported");
  Turns turns(rank);
  Value x = *last ? e.transpose(n.input(2), turns.first) : n.input(2);
  Exprs given = graph::getShape(x);
  for (unsigned i = 0; i < spatial; ++i)
    if (failed(fitTransposed(t, i, given[i + 2], (*shape)[w.firstSpatial() + i],
                             padding == "SAME", e)))
      return llvm::failure();
  // Groups are as many as the filter's channels go into the result's.
  AffineExpr results = (*shape)[*last ? rank - 1 : 1];
  auto perGroup = graph::constantOf(filter[rank - 2]),
       all = graph::constantOf(results);
  bool splits =
      perGroup && all && *perGroup > 0 && *all > 0 && *all % *perGroup == 0;
  t.groups = splits ? *all / *perGroup : 1;
  if (!splits ||
      !e.agree(given[1], filter[rank - 1], "multiplies over the channels") ||
      !e.agree(given[0], (*shape)[0], "keeps the batch"))
    return e.fail("a filter of " + e.describe(n.input(1).getType()) +
                  " does not make " + e.describe(*shape) + " of " +
                  e.describe(n.input(2).getType()));
  Value y = buildConvTranspose(x, e.transpose(n.input(1), turns.filter), t, e);
  return n.yield(*last ? e.transpose(y, turns.behind) : y);
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
      {"BatchMatMulV3", batchMatMulTo},
      {"Einsum", einsum},
      {"Conv2D", conv, "", true},
      {"Conv3D", conv, "", true},
      {"DepthwiseConv2dNative", depthwiseConv, "", true},
      {"Conv2DBackpropInput", convTranspose},
      {"Conv3DBackpropInputV2", convTranspose},
  };
  return rows;
}
