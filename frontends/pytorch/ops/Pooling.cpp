// Pooling over windows, also over those that follow from the result's size.
#include "frontends/common/builders/Window.h"
#include "frontends/pytorch/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::Value;

namespace {
/// The operand as [N, C, S...]; a batch of one is added where there is none.
struct Batched {
  Batched(Call &c, unsigned spatial) : e(c.getEmitter()) {
    value = c.tensor("self");
    int64_t rank = rankOf(value);
    if (!value)
      return;
    isBatch = rank == static_cast<int64_t>(spatial) + 2;
    if (!isBatch && rank != static_cast<int64_t>(spatial) + 1) {
      value = c.fail("has " + llvm::Twine(rank) + " dimensions, " +
                     llvm::Twine(spatial + 1) + " or " +
                     llvm::Twine(spatial + 2) + " are supported");
      return;
    }
    if (isBatch)
      return;
    Exprs shape = graph::getShape(value);
    shape.insert(shape.begin(), e.number(1));
    value = e.reshape(value, shape);
  }
  Value restore(Value result) const {
    if (isBatch || !result)
      return result;
    Exprs shape = graph::getShape(result);
    shape.erase(shape.begin());
    return e.reshape(result, shape);
  }

  Emitter &e;
  Value value;
  bool isBatch = true;
};
} // namespace

/// The window of a node, with its strides those of the kernel unless given.
static llvm::FailureOr<Window> readWindow(Call &c, unsigned spatial,
                                          Value input) {
  Window w;
  w.input = input;
  w.kernel = c.repeated("kernel_size", spatial, 1);
  w.strides = c.integers("stride").empty() ? w.kernel
                                           : c.repeated("stride", spatial, 1);
  w.dilations = c.repeated("dilation", spatial, 1);
  w.pads = c.repeated("padding", spatial, 0);
  w.ceilMode = c.flag("ceil_mode", false);
  for (unsigned i = 0; i < spatial; ++i)
    for (auto [value, low] : {std::pair(w.kernel[i], 1),
                              {w.strides[i], 1},
                              {w.dilations[i], 1},
                              {w.pads[i], 0}})
      if (value < low || value > maxWindow)
        return c.fail("a window of " + llvm::Twine(value) +
                      " is not supported");
  auto highs = w.pads;
  w.pads.append(highs.begin(), highs.end());
  if (!input || failed(fitWindow(w, c.getEmitter())))
    return llvm::failure();
  return w;
}

template <unsigned spatial> static LogicalResult maxPool(Call &c) {
  Batched x(c, spatial);
  auto window = readWindow(c, spatial, x.value);
  if (failed(window))
    return c.yield(Value());
  Emitter &e = c.getEmitter();
  Value y = buildPool(graph::PoolKind::max, *window, false, e);
  if (!y || c.numResults() == 1)
    return c.yield(x.restore(y));
  Value places = buildArgMaxPool(*window, graph::getShape(y),
                                 PlaceOrder::rowMajor, true, e);
  return c.yield({x.restore(y), x.restore(places)});
}

template <unsigned spatial> static LogicalResult averagePool(Call &c) {
  Emitter &e = c.getEmitter();
  Batched x(c, spatial);
  auto window = readWindow(c, spatial, x.value);
  bool countPadding = c.flag("count_include_pad", true);
  if (failed(window))
    return c.yield(Value());
  if (!c.has("divisor_override"))
    return c.yield(x.restore(
        buildPool(graph::PoolKind::average, *window, countPadding, e)));
  Value sum = buildPool(graph::PoolKind::sum, *window, false, e);
  return c.yield(x.restore(
      e.div(sum, e.scalar(c.integer("divisor_override"), elementOf(sum)))));
}

/// A count of windows: as many as there are elements.
constexpr int64_t unchanged = -1;

/// Combines `count` windows along one dimension of L elements, the i-th from
/// floor(i * L / count) to ceil((i + 1) * L / count).
static Value poolAlong(Value x, int64_t axis, int64_t count, bool max,
                       Emitter &e) {
  if (!x)
    return {};
  auto kind = max ? graph::ReduceKind::max : graph::ReduceKind::sum;
  auto combine = [&](Value part) {
    return max ? e.reduce(kind, part, {axis}, true) : e.mean(part, axis, true);
  };
  if (count == unchanged)
    return x;
  if (count == 1)
    return combine(x);
  Exprs shape = graph::getShape(x);
  auto length = graph::constantOf(shape[axis]);
  if (!length || *length < 1)
    return e.fail("an adaptive pooling to " + llvm::Twine(count) +
                      " elements needs a size that is known, not " +
                      e.getSymbols().toString(shape[axis]),
                  "fix that size with --shape or when exporting");
  if (*length == count)
    return x;
  constexpr int64_t maxWindows = 64;
  if (count < 1 || count > maxWindows)
    return e.fail("an adaptive pooling to " + llvm::Twine(count) +
                  " elements of " + llvm::Twine(*length) +
                  " is not supported: over " + llvm::Twine(maxWindows));
  Values parts;
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = i * *length / count,
            end = ((i + 1) * *length + count - 1) / count;
    Exprs starts = e.numbers(SmallVector<int64_t>(shape.size(), 0)),
          dims = shape;
    starts[axis] = e.number(begin);
    dims[axis] = e.number(end - begin);
    parts.push_back(combine(
        e.slice(x, starts, SmallVector<int64_t>(shape.size(), 1), dims)));
  }
  return e.concat(parts, axis);
}

/// Windows of equal extents are a pooling; else one dimension after the other.
static LogicalResult adaptivePool(Call &c, unsigned spatial, bool max) {
  Emitter &e = c.getEmitter();
  Batched x(c, spatial);
  Exprs given = c.sizes("output_size");
  if (!x.value || llvm::is_contained(given, mlir::AffineExpr()))
    return c.yield(Value());
  Exprs shape = graph::getShape(x.value);
  if (given.size() == 1)
    given.assign(spatial, given[0]);
  if (given.size() != spatial)
    return c.fail("has " + llvm::Twine(given.size()) + " sizes");
  // Dimensions may stay as they are, of whatever size that is.
  SmallVector<int64_t> counts;
  for (unsigned i = 0; i < spatial; ++i) {
    auto count = graph::constantOf(given[i]);
    bool stays = graph::simplify(given[i] - shape[i + 2]) == e.number(0);
    if (!count && !stays)
      return c.fail("an adaptive pooling to " +
                        e.getSymbols().toString(given[i]) +
                        " elements is not supported",
                    "fix that size when exporting");
    counts.push_back(stays ? unchanged : *count);
  }
  Window w;
  bool isEven = true, isGlobal = true;
  for (unsigned i = 0; i < spatial; ++i) {
    auto length = graph::constantOf(shape[i + 2]);
    isGlobal &= counts[i] == 1;
    bool stays = counts[i] == unchanged;
    isEven &= stays || (length && counts[i] >= 1 && *length >= counts[i] &&
                        *length % counts[i] == 0);
    w.kernel.push_back(isEven && !stays ? *length / counts[i] : 1);
  }
  if (isGlobal || isEven) {
    w.input = x.value;
    w.strides = w.kernel;
    w.dilations.assign(spatial, 1);
    w.pads.assign(2 * spatial, 0);
    auto axes = llvm::to_vector(llvm::seq<int64_t>(2, spatial + 2));
    Value y =
        isGlobal
            ? (max ? e.reduce(graph::ReduceKind::max, x.value, axes, true)
                   : e.mean(x.value, axes, true))
            : buildPool(max ? graph::PoolKind::max : graph::PoolKind::average,
                        w, false, e);
    if (!y || c.numResults() == 1 || !isEven)
      return c.yield(x.restore(y));
    Value places =
        buildArgMaxPool(w, graph::getShape(y), PlaceOrder::rowMajor, true, e);
    return c.yield({x.restore(y), x.restore(places)});
  }
  Value y = max ? x.value : e.widen(x.value);
  for (unsigned i = 0; i < spatial; ++i)
    y = poolAlong(y, i + 2, counts[i], max, e);
  return c.yield(x.restore(e.cast(y, elementOf(x.value))));
}
template <unsigned spatial> static LogicalResult adaptiveAverage(Call &c) {
  return adaptivePool(c, spatial, false);
}
template <unsigned spatial> static LogicalResult adaptiveMax(Call &c) {
  return adaptivePool(c, spatial, true);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::poolingRows() {
  static const Row rows[] = {
      {"aten.max_pool1d.default", maxPool<1>},
      {"aten.max_pool2d.default", maxPool<2>},
      {"aten.max_pool3d.default", maxPool<3>},
      {"aten.max_pool1d_with_indices.default", maxPool<1>},
      {"aten.max_pool2d_with_indices.default", maxPool<2>},
      {"aten.max_pool3d_with_indices.default", maxPool<3>},
      {"aten.avg_pool1d.default", averagePool<1>},
      {"aten.avg_pool2d.default", averagePool<2>},
      {"aten.avg_pool3d.default", averagePool<3>},
      {"aten.adaptive_avg_pool1d.default", adaptiveAverage<1>},
      {"aten.adaptive_avg_pool2d.default", adaptiveAverage<2>},
      {"aten._adaptive_avg_pool2d.default", adaptiveAverage<2>},
      {"aten.adaptive_avg_pool3d.default", adaptiveAverage<3>},
      {"aten._adaptive_avg_pool3d.default", adaptiveAverage<3>},
      {"aten.adaptive_max_pool1d.default", adaptiveMax<1>},
      {"aten.adaptive_max_pool2d.default", adaptiveMax<2>},
  };
  return rows;
}
