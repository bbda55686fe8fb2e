#include "frontends/tensorflow/ops/Window.h"
#include "frontends/common/builders/Shape.h"
#include "frontends/tensorflow/ops/Num.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

llvm::FailureOr<bool>
charonia::frontend::tensorflow::channelsAreLast(Node &n, Emitter &e) {
  std::string format = n.text("data_format", "");
  if (format.empty() || format == "NHWC" || format == "NDHWC")
    return true;
  if (format == "NCHW" || format == "NCDHW")
    return false;
  return e.fail("data_format '" + format + "' is not supported");
}

/// The numbers of a name: an attribute, but of MaxPoolV2 an operand.
static llvm::FailureOr<SmallVector<int64_t>> listOf(Node &n, StringRef name) {
  if (n.op() == "MaxPoolV2" && name == "ksize")
    return n.constants(1);
  if (n.op() == "MaxPoolV2" && name == "strides")
    return n.constants(2);
  return n.integers(name);
}

llvm::FailureOr<SmallVector<int64_t>>
charonia::frontend::tensorflow::spatialOf(Node &n, Emitter &e, StringRef name,
                                          const Window &w, size_t rank) {
  auto given = listOf(n, name);
  SmallVector<int64_t> spatial;
  if (failed(given))
    return llvm::failure();
  if (given->empty())
    return SmallVector<int64_t>(rank - 2, 1);
  if (given->size() != rank)
    return e.fail("'" + name + "' has " + Twine(given->size()) +
                  " entries for " + Twine(rank) + " dimensions");
  for (auto [i, value] : llvm::enumerate(*given)) {
    bool isSpatial = i >= w.firstSpatial() && i < w.firstSpatial() + rank - 2;
    if (value < 1 || value > maxWindow || (!isSpatial && value != 1))
      return e.fail("'" + name + "' may not be " + Twine(value) +
                    " for dimension " + Twine(i));
    if (isSpatial)
      spatial.push_back(value);
  }
  return spatial;
}

/// Pads of `explicit_paddings`: a pair for each dimension.
static LogicalResult padExplicitly(Node &n, Emitter &e, Window &w) {
  SmallVector<int64_t> given = n.integers("explicit_paddings");
  size_t spatial = w.kernel.size();
  if (given.size() != 2 * (spatial + 2))
    return e.fail("attribute 'explicit_paddings' has " + Twine(given.size()) +
                  " entries for " + Twine(spatial + 2) + " dimensions");
  for (auto [i, value] : llvm::enumerate(given)) {
    size_t dim = i / 2 - w.firstSpatial();
    bool isSpatial = i / 2 >= w.firstSpatial() && dim < spatial;
    if (value < 0 || value > maxWindow || (!isSpatial && value != 0))
      return e.fail("attribute 'explicit_paddings' may not hold " +
                    Twine(value) + " for dimension " + Twine(i / 2));
    if (isSpatial)
      w.pads[dim + (i % 2) * spatial] = value;
  }
  return llvm::success();
}

/// Strides, dilations and padding of a window whose kernel is known.
static LogicalResult readWindow(Node &n, Emitter &e, Window &w, double fill) {
  size_t spatial = w.kernel.size();
  auto strides = spatialOf(n, e, "strides", w, spatial + 2);
  auto dilations = spatialOf(n, e, "dilations", w, spatial + 2);
  if (failed(strides) || failed(dilations))
    return llvm::failure();
  w.strides = *strides;
  w.dilations = *dilations;
  w.pads.assign(2 * spatial, 0);
  for (auto [size, dilation] : llvm::zip(w.kernel, w.dilations))
    if (size < 1 || (size - 1) * dilation > maxWindow)
      return e.fail("a window of " + Twine(size) + " is not supported");
  std::string padding = n.text("padding", "");
  if (padding == "SAME"
          ? failed(padSame(w, true, fill, e))
          : padding == "EXPLICIT" && failed(padExplicitly(n, e, w)))
    return llvm::failure();
  if (padding != "SAME" && padding != "VALID" && padding != "EXPLICIT")
    return e.fail("padding '" + padding + "' is not supported");
  return fitWindow(w, e);
}

llvm::FailureOr<Window>
charonia::frontend::tensorflow::readConvWindow(Node &n, Emitter &e) {
  Window w;
  auto last = channelsAreLast(n, e);
  if (failed(last))
    return llvm::failure();
  w.channelsLast = *last;
  w.input = n.input(0);
  Exprs filter = graph::getShape(n.input(1));
  for (mlir::AffineExpr size : llvm::ArrayRef(filter).drop_back(2)) {
    auto known = graph::constantOf(size);
    if (!known)
      return e.fail("the filter's size has to be known",
                    "fix that size with --shape");
    w.kernel.push_back(*known);
  }
  if (failed(readWindow(n, e, w, 0.0)))
    return llvm::failure();
  return w;
}

/// The largest of as many channels as the window has, which lie side by side.
static LogicalResult poolChannels(Node &n, Emitter &e,
                                  llvm::ArrayRef<int64_t> size) {
  auto strides = listOf(n, "strides");
  if (failed(strides))
    return llvm::failure();
  int64_t window = size.back();
  Exprs shape = graph::getShape(n.input(0));
  bool isSide = llvm::equal(*strides, size) &&
                llvm::all_of(llvm::ArrayRef(size).drop_back(),
                             [](int64_t i) { return i == 1; });
  AffineExpr count = graph::simplify(shape.back().floorDiv(window));
  if (!isSide || !e.agree(graph::simplify(count * window), shape.back(),
                          "splits the channels into windows"))
    return e.fail("takes windows of " + Twine(window) + " channels of " +
                      e.describe(n.input(0).getType()) +
                      ", which is only supported side by side and of one pixel",
                  "pool channels and pixels one after the other");
  shape.back() = count;
  shape.push_back(e.number(window));
  Value parts = e.reshape(n.input(0), shape);
  return n.yield(e.reduce(graph::ReduceKind::max, parts,
                          {static_cast<int64_t>(shape.size()) - 1}, false));
}

/// Padding of MaxPool is less than anything; AvgPool leaves it out.
template <graph::PoolKind kind> static LogicalResult pool(Node &n, Emitter &e) {
  unsigned operands = n.op() == "MaxPoolV2" ? 3 : 1;
  if (failed(n.needsTensors(operands, operands)) ||
      failed(n.needsRank(0, 4, 5)))
    return llvm::failure();
  Window w;
  auto last = channelsAreLast(n, e);
  if (failed(last))
    return llvm::failure();
  w.channelsLast = *last;
  w.input = n.input(0);
  auto sizes = listOf(n, "ksize");
  if (failed(sizes))
    return llvm::failure();
  if (kind == graph::PoolKind::max && *last && sizes->size() == 4 &&
      rankOf(w.input) == 4 && sizes->back() > 1)
    return poolChannels(n, e, *sizes);
  auto kernel = spatialOf(n, e, "ksize", w, rankOf(w.input));
  if (failed(kernel))
    return llvm::failure();
  w.kernel = *kernel;
  double fill = kind == graph::PoolKind::max ? lowestOf(elementOf(w.input)) : 0;
  if (failed(readWindow(n, e, w, fill)))
    return llvm::failure();
  return n.yield(buildPool(kind, w, false, e));
}

/// The largest of windows, and where they lie in an image, or in all images:
/// channels count fastest.
static LogicalResult maxPoolWithArgmax(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)) || failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  Window w;
  w.channelsLast = true;
  w.input = n.input(0);
  auto kernel = spatialOf(n, e, "ksize", w, 4);
  mlir::Type element =
      n.find("Targmax") ? n.sizeType("Targmax") : e.getBuilder().getI64Type();
  if (failed(kernel) || !element)
    return llvm::failure();
  w.kernel = *kernel;
  if (failed(readWindow(n, e, w, lowestOf(elementOf(w.input)))))
    return llvm::failure();
  Value y = buildPool(graph::PoolKind::max, w, false, e);
  if (!y)
    return llvm::failure();
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs shape = graph::getShape(n.input(0)), ones(4, e.number(1)),
        samples = ones, channels = ones;
  samples[0] = shape[0], channels[3] = shape[3];
  Value places =
      buildArgMaxPool(w, graph::getShape(y), PlaceOrder::rowMajor, false, e);
  if (n.flag("include_batch_in_index"))
    places = e.add(places,
                   e.mul(e.iota(samples, 0, i64),
                         e.mul(e.size(shape[1], i64), e.size(shape[2], i64))));
  places =
      e.add(e.mul(places, e.size(shape[3], i64)), e.iota(channels, 3, i64));
  return n.yield({y, e.cast(places, element)});
}

/// Windows that lie side by side: [N, H, k, W, l, C] as [N, H, W, k * l * C].
static Value patchesBesideEachOther(Value x, const Window &w, Exprs result,
                                    Emitter &e) {
  Exprs shape = graph::getShape(x), starts(4, e.number(0)), inside = shape;
  AffineExpr rows = e.number(w.kernel[0]), columns = e.number(w.kernel[1]);
  inside[1] = graph::simplify(result[1] * rows);
  inside[2] = graph::simplify(result[2] * columns);
  x = e.slice(x, starts, {1, 1, 1, 1}, inside);
  x = e.reshape(x, {shape[0], result[1], rows, result[2], columns, shape[3]});
  return e.reshape(e.transpose(x, {0, 1, 3, 2, 4, 5}), result);
}

namespace {
/// Windows of an image that may overlap: the padded image, the windows, and the
/// shape of one element of each.
struct Taps {
  Window w;
  Value x;
  Exprs dims;

  int64_t count() const { return w.kernel[0] * w.kernel[1]; }
  /// The elements `row`, `column` of all windows.
  Value take(int64_t row, int64_t column, Emitter &e) const {
    return e.slice(x,
                   {e.number(0), e.number(row * w.dilations[0]),
                    e.number(column * w.dilations[1]), e.number(0)},
                   {1, w.strides[0], w.strides[1], 1}, dims);
  }
};
} // namespace

/// Windows of w's kernel, by attributes, with `fill` around the image.
static std::optional<Taps> readTaps(Node &n, Emitter &e, Window w,
                                    double fill) {
  w.channelsLast = true;
  w.input = n.input(0);
  auto strides = spatialOf(n, e, "strides", w, 4),
       rates = spatialOf(n, e, "rates", w, 4);
  if (failed(strides) || failed(rates))
    return std::nullopt;
  w.strides = *strides, w.dilations = *rates;
  w.pads.assign(4, 0);
  std::string padding = n.text("padding", "");
  for (auto [size, rate] : llvm::zip(w.kernel, w.dilations))
    if (size < 1 || size > maxWindow / rate)
      e.fail("a window of " + Twine(size) + " is not supported");
  if (padding != "SAME" && padding != "VALID")
    e.fail("padding '" + padding + "' is not supported");
  if (e.failed() || (padding == "SAME" && failed(padSame(w, true, fill, e))) ||
      failed(fitWindow(w, e)))
    return std::nullopt;
  Exprs shape = graph::getShape(w.input), lows(4, e.number(0)), padded = shape;
  Taps taps = {w, w.input, shape};
  for (unsigned i : {0, 1}) {
    lows[i + 1] = e.number(w.pads[i]);
    padded[i + 1] = graph::simplify(shape[i + 1] + w.pads[i] + w.pads[i + 2]);
    int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    taps.dims[i + 1] =
        graph::simplify((padded[i + 1] - reach).floorDiv(w.strides[i]) + 1);
  }
  if (padded != shape)
    taps.x = e.pad(graph::PadMode::constant, taps.x,
                   e.scalar(fill, elementOf(taps.x)), lows, padded);
  return taps.x ? std::optional(std::move(taps)) : std::nullopt;
}

/// Each element of a window is a tensor that is written out.
static LogicalResult countTaps(const Taps &taps, Emitter &e) {
  constexpr int64_t maxParts = 1024;
  if (taps.w.kernel[0] <= maxParts / taps.w.kernel[1])
    return llvm::success();
  return e.fail("windows of " + Twine(taps.w.kernel[0]) + " x " +
                    Twine(taps.w.kernel[1]) + " that overlap are not supported",
                "take them with a stride of their size, or by a convolution");
}

/// The windows of an image: in depth row, column, channel.
static LogicalResult extractPatches(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)) || failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  Window w;
  w.channelsLast = true;
  w.input = n.input(0);
  auto kernel = spatialOf(n, e, "ksizes", w, 4);
  if (failed(kernel))
    return llvm::failure();
  w.kernel = *kernel;
  auto taps = readTaps(n, e, w, 0.0);
  if (!taps)
    return llvm::failure();
  Exprs result = taps->dims;
  result[3] = productOfSizes(
      {e.number(w.kernel[0]), e.number(w.kernel[1]), result[3]}, e);
  if (!result[3])
    return llvm::failure();
  bool isBeside =
      taps->w.kernel == taps->w.strides &&
      llvm::all_of(taps->w.dilations, [](int64_t r) { return r == 1; });
  if (isBeside)
    return n.yield(patchesBesideEachOther(taps->x, taps->w, result, e));
  if (failed(countTaps(*taps, e)))
    return llvm::failure();
  Values parts;
  for (int64_t row = 0; row < w.kernel[0]; ++row)
    for (int64_t column = 0; column < w.kernel[1]; ++column)
      parts.push_back(taps->take(row, column, e));
  return n.yield(e.concat(parts, 3));
}

/// The largest sum of a window and the filter, [height, width, channels].
static LogicalResult dilate(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 4, 4)) ||
      failed(n.needsRank(1, 3, 3)))
    return llvm::failure();
  Value filter = n.input(1);
  if (!isFloat(filter))
    return e.fail(e.describe(filter.getType()) + " is not supported",
                  "compute this in float32");
  Exprs shape = graph::getShape(filter);
  Window w;
  for (int64_t i : {0, 1})
    w.kernel.push_back(graph::constantOf(shape[i]).value_or(0));
  if (!e.agree(shape[2], graph::getShape(n.input(0))[3],
               "has a filter for each channel"))
    return e.fail(e.describe(filter.getType()) +
                  " is no filter for each channel of " +
                  e.describe(n.input(0).getType()));
  // What lies outside is below all.
  auto taps = readTaps(n, e, w, -largestOf(elementOf(filter)));
  if (!taps || failed(countTaps(*taps, e)))
    return llvm::failure();
  Value most;
  for (int64_t row = 0; row < w.kernel[0]; ++row)
    for (int64_t column = 0; column < w.kernel[1]; ++column) {
      Value weight = e.slice(filter, e.numbers({row, column, 0}), {1, 1, 1},
                             {e.number(1), e.number(1), shape[2]});
      Value sum =
          e.add(taps->take(row, column, e), e.reshape(weight, {shape[2]}));
      most = most ? e.max(most, sum) : sum;
    }
  return n.yield(most);
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::windowRows() {
  using graph::PoolKind;
  static const Row rows[] = {
      {"MaxPool", pool<PoolKind::max>},
      {"MaxPoolV2", pool<PoolKind::max>},
      {.op = "MaxPoolWithArgmax",
       .import = maxPoolWithArgmax,
       .results = "output argmax",
       .outputs = 2},
      {"MaxPool3D", pool<PoolKind::max>},
      {"AvgPool", pool<PoolKind::average>},
      {"AvgPool3D", pool<PoolKind::average>},
      {"ExtractImagePatches", extractPatches},
      {"Dilation2D", dilate},
  };
  return rows;
}
