// Pooling over windows, also over those that follow from the result's size.
#include "frontends/common/builders/Window.h"
#include "frontends/pytorch/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::AffineExpr;
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

namespace {
/// Windows along one dimension of L elements, the i-th of `count` from
/// floor(i * L / count) to ceil((i + 1) * L / count).
struct Windows {
  Windows(Value x, int64_t axis, int64_t count, bool max, Emitter &e)
      : x(x), axis(axis), count(count), max(max), e(e),
        shape(graph::getShape(x)), length(shape[axis]) {}

  /// The windows of one extent as a dimension of their own, if they are so.
  Value equal() {
    Exprs dims = shape;
    dims[axis] = e.number(count);
    dims.insert(dims.begin() + axis + 1,
                graph::simplify(length.floorDiv(count)));
    return combine(e.reshape(x, dims), axis + 1, false);
  }

  /// A part of the tensor for each window.
  Value inParts() {
    Values parts;
    for (int64_t i = 0; i < count; ++i) {
      AffineExpr begin = (length * i).floorDiv(count),
                 end = (length * (i + 1)).ceilDiv(count);
      Exprs starts = e.numbers(SmallVector<int64_t>(shape.size(), 0)),
            dims = shape;
      starts[axis] = graph::simplify(begin);
      dims[axis] = graph::simplify(end - begin);
      Value part =
          e.slice(x, starts, SmallVector<int64_t>(shape.size(), 1), dims);
      parts.push_back(combine(part, axis, true));
    }
    return e.concat(parts, axis);
  }

  /// All windows in one pass: as many places for each as the longest one has,
  /// of which those behind a window's end count for nothing.
  Value atPlaces() {
    mlir::Type i64 = e.getBuilder().getI64Type();
    AffineExpr most = graph::simplify(length.ceilDiv(count) +
                                      (length % count).ceilDiv(count));
    auto number = [&](int64_t value) { return e.scalar(value, i64); };
    Value size = e.size(length, i64), all = number(count);
    Value i = e.iota({e.number(count), e.number(1)}, 0, i64);
    Value begin = e.div(e.mul(i, size), all);
    Value end =
        e.div(e.add(e.mul(e.add(i, number(1)), size), number(count - 1)), all);
    Value places = e.add(begin, e.iota({e.number(count), most}, 1, i64));
    // Of the largest one the last element may be read several times.
    Value last = e.sub(end, number(1));
    Value gathered =
        e.op<graph::GatherOp>({x, e.min(places, last)}, e.attr("axis", axis));
    if (max)
      return combine(gathered, axis + 1, false);
    auto rest = static_cast<unsigned>(shape.size() - 1 - axis);
    auto spread = [&](Value table) {
      Exprs dims = graph::getShape(table);
      dims.append(rest, e.number(1));
      return e.reshape(table, dims);
    };
    Value isInside = spread(e.compare(graph::Predicate::le, places, last));
    Value sum =
        e.reduce(graph::ReduceKind::sum,
                 e.select(isInside, gathered, e.scalar(0.0, elementOf(x))),
                 {axis + 1}, false);
    Value extents = e.reshape(e.sub(end, begin), {e.number(count)});
    return e.div(sum, e.cast(e.asChannels(extents, rest), elementOf(x)));
  }

private:
  Value combine(Value part, int64_t along, bool keep) {
    return max ? e.reduce(graph::ReduceKind::max, part, {along}, keep)
               : e.mean(part, along, keep);
  }

  Value x;
  int64_t axis, count;
  bool max;
  Emitter &e;
  Exprs shape;
  AffineExpr length;
};
} // namespace

/// Combines `count` windows along one dimension.
static Value poolAlong(Value x, int64_t axis, int64_t count, bool max,
                       Emitter &e) {
  if (!x || count == unchanged)
    return x;
  if (count == 1)
    return max ? e.reduce(graph::ReduceKind::max, x, {axis}, true)
               : e.mean(x, axis, true);
  AffineExpr length = graph::getShape(x)[axis];
  if (length == e.number(count))
    return x;
  constexpr int64_t maxWindows = int64_t(1) << 20;
  if (count < 1 || count > maxWindows || length == e.number(0))
    return e.fail("an adaptive pooling of " + e.getSymbols().toString(length) +
                  " elements to " + llvm::Twine(count) +
                  " is not supported: it has to be to 1 to " +
                  llvm::Twine(maxWindows) + ", and of any");
  Windows windows(x, axis, count, max, e);
  if (e.getSymbols().isAtLeast(e.number(0), graph::simplify(length % count)))
    return windows.equal();
  // Neighbours in memory are read faster as parts, but each is a kernel.
  constexpr int64_t fewParts = 8;
  bool isLast = axis + 1 == rankOf(x);
  return isLast && count <= fewParts ? windows.inParts() : windows.atPlaces();
}

/// Windows of equal extents are a pooling; else one dimension after the other.
static LogicalResult adaptivePool(Call &c, unsigned spatial, bool max) {
  Emitter &e = c.getEmitter();
  Batched x(c, spatial);
  Exprs given = c.sizes("output_size");
  if (!x.value || llvm::is_contained(given, AffineExpr()))
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
      {"aten.adaptive_max_pool3d.default", adaptiveMax<3>},
  };
  return rows;
}
