// Windows of elements, and elements in another arrangement.
#include "frontends/common/Tables.h"
#include "frontends/common/builders/ConvTranspose.h"
#include "frontends/common/builders/Pad.h"
#include "frontends/common/builders/Window.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

/// Windows of `size` elements, `dilation` apart, along `axis`: the axis becomes
/// two, [windows, size].
static Value windowsAlong(Value x, int64_t axis, int64_t size, int64_t step,
                          int64_t dilation, Emitter &e) {
  if (!x)
    return {};
  Exprs shape = graph::getShape(x);
  int64_t reach = (size - 1) * dilation + 1;
  if (!e.getSymbols().assumeAtLeast(shape[axis], e.number(reach),
                                    "so that a window fits into its input"))
    return e.fail("a window of " + Twine(reach) + " elements is larger than " +
                  e.getSymbols().toString(shape[axis]));
  AffineExpr count = graph::simplify((shape[axis] - reach).floorDiv(step) + 1);
  mlir::Type i64 = e.getBuilder().getI64Type();
  auto along = [&](AffineExpr first, AffineExpr second, int64_t d,
                   int64_t factor) {
    return e.mul(e.iota({first, second}, d, i64), e.scalar(factor, i64));
  };
  Value positions = e.add(along(count, e.number(1), 0, step),
                          along(e.number(1), e.number(size), 1, dilation));
  return e.op<graph::GatherOp>({x, positions}, e.attr("axis", axis));
}

static bool isWindow(Call &c, int64_t size, int64_t step, int64_t dilation,
                     int64_t padding) {
  bool fits = size >= 1 && step >= 1 && dilation >= 1 && padding >= 0;
  for (int64_t value : {size, step, dilation, padding})
    fits &= value <= maxDimension;
  if (!fits || size * dilation > maxWindow) {
    c.fail("a window of " + Twine(size) + " elements, " + Twine(dilation) +
           " apart, a step of " + Twine(step) + " and a padding of " +
           Twine(padding) + " is not supported");
    return false;
  }
  return true;
}

/// The windows' elements become the last dimension.
static LogicalResult unfold(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t rank = rankOf(x), axis = c.axis("dimension", rank),
          size = c.integer("size"), step = c.integer("step");
  if (!x || e.failed() || rank < 1 || !isWindow(c, size, step, 1, 0))
    return c.fail("needs at least one dimension");
  Value windows = windowsAlong(x, axis, size, step, 1, e);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank + 1));
  order.erase(order.begin() + axis + 1);
  order.push_back(axis + 1);
  return c.yield(e.transpose(windows, order));
}

namespace {
/// The arguments of im2col and col2im, by dimension.
struct Columns {
  explicit Columns(Call &c)
      : kernel(c.repeated("kernel_size", 2, 1)),
        dilation(c.repeated("dilation", 2, 1)),
        padding(c.repeated("padding", 2, 0)),
        stride(c.repeated("stride", 2, 1)) {
    for (int i : {0, 1})
      isGood &= isWindow(c, kernel[i], stride[i], dilation[i], padding[i]);
  }
  SmallVector<int64_t> kernel, dilation, padding, stride;
  bool isGood = true;
};
} // namespace

/// [N, C, H, W] to [N, C * window, windows].
static LogicalResult imageToColumns(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Columns w(c);
  Exprs result = c.resultShape();
  if (!x || e.failed() || !w.isGood)
    return c.yield(Value());
  int64_t rank = rankOf(x);
  if (rank != 3 && rank != 4)
    return c.fail("needs 3 or 4 dimensions, not " + Twine(rank));
  Exprs pads = e.numbers(w.padding);
  x = buildPad(graph::PadMode::constant, x, e.scalar(int64_t(0), elementOf(x)),
               pads, pads, {rank - 2, rank - 1}, e);
  x = windowsAlong(x, rank - 2, w.kernel[0], w.stride[0], w.dilation[0], e);
  x = windowsAlong(x, rank, w.kernel[1], w.stride[1], w.dilation[1], e);
  // [.., rows, kernel, columns, kernel] to [.., kernel, kernel, rows, columns].
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  order.append({rank - 1, rank + 1, rank - 2, rank});
  return c.yield(e.reshape(e.transpose(x, order), result));
}

/// The sum of the windows where they lie: a transposed convolution of each
/// channel whose filters have a single one.
static LogicalResult columnsToImage(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  // Truths that lie at one place are one or the other: a sum that is not 0.
  if (mlir::Type element = elementOf(x); element && element.isInteger(1))
    x = e.cast(x, e.getBuilder().getF32Type());
  Columns w(c);
  c.ignore({"output_size"});
  Exprs result = c.resultShape();
  if (!x || e.failed() || !w.isGood)
    return c.yield(Value());
  if (result.size() < 3 || result.size() > 4 ||
      rankOf(x) != static_cast<int64_t>(result.size()) - 1)
    return c.fail("needs 2 or 3 dimensions, not " + Twine(rankOf(x)));
  int64_t taps = w.kernel[0] * w.kernel[1];
  auto channels = graph::constantOf(result[result.size() - 3]);
  constexpr int64_t maxFilter = int64_t(1) << 20;
  if (!channels || *channels < 1 || taps > maxFilter ||
      *channels > maxFilter / taps / taps)
    return c.fail("needs a number of channels that is known, and not so large");
  TransposedWindow t;
  t.kernel = w.kernel;
  t.strides = w.stride;
  t.dilations = w.dilation;
  t.pads = w.padding;
  t.pads.append(w.padding.begin(), w.padding.end());
  t.groups = *channels;
  Exprs image = {rankOf(x) == 3 ? result[0] : e.number(1),
                 e.number(*channels * taps)};
  for (int i : {0, 1}) {
    AffineExpr size = result[result.size() - 2 + i];
    int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
    AffineExpr span = graph::simplify(size + 2 * w.padding[i] - reach);
    image.push_back(graph::simplify(span.floorDiv(w.stride[i]) + 1));
    // What no window reaches at the end is 0.
    AffineExpr rest = graph::simplify(span % w.stride[i]);
    auto known = graph::constantOf(rest);
    if (!known)
      return c.fail("needs an output_size that is known",
                    "fix that size with --shape");
    t.outputPadding.push_back(*known);
  }
  mlir::Type f32 = e.getBuilder().getF32Type();
  if (failed(reserveTable(*channels * taps * taps, f32, e)))
    return llvm::failure();
  std::vector<float> ones(*channels * taps * taps, 0);
  for (int64_t i = 0; i < *channels * taps; ++i)
    ones[i * taps + i % taps] = 1;
  Value filter = e.constant(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get(
          {*channels * taps, 1, w.kernel[0], w.kernel[1]}, f32),
      llvm::ArrayRef<float>(ones)));
  Value y = buildConvTranspose(e.reshape(x, image),
                               e.cast(filter, elementOf(x)), t, e);
  return c.yield(e.cast(e.reshape(y, result), c.resultElement()));
}

/// Channels to space, or back: [.., C, r, r, H, W] beside [.., C, H, r, W, r].
template <bool up> static LogicalResult pixelShuffle(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t r = c.integer(up ? "upscale_factor" : "downscale_factor");
  Exprs result = c.resultShape();
  if (!x || e.failed() || rankOf(x) < 3 || r < 1 || r > maxDimension ||
      result.size() != static_cast<size_t>(rankOf(x)))
    return c.fail("a factor of " + Twine(r) + " for " + Twine(rankOf(x)) +
                  " dimensions is not supported");
  Exprs shape = graph::getShape(x), split;
  int64_t rank = shape.size(), lead = rank - 3;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, lead));
  split.append(shape.begin(), shape.end() - 3);
  AffineExpr factor = e.number(r);
  if (up) {
    split.append(
        {result[lead], factor, factor, shape[lead + 1], shape[lead + 2]});
    order.append({lead, lead + 3, lead + 1, lead + 4, lead + 2});
  } else {
    split.append(
        {shape[lead], result[lead + 1], factor, result[lead + 2], factor});
    order.append({lead, lead + 2, lead + 4, lead + 1, lead + 3});
  }
  return c.yield(e.reshape(e.transpose(e.reshape(x, split), order), result));
}
/// Channels of groups take turns.
static LogicalResult channelShuffle(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t groups = c.integer("groups");
  if (!x || rankOf(x) < 3 || groups < 1 || groups > maxDimension)
    return c.fail("needs at least 3 dimensions and 1 group");
  Exprs shape = graph::getShape(x), split = shape;
  split[1] = e.number(groups);
  split.insert(split.begin() + 2, graph::simplify(shape[1].floorDiv(groups)));
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, split.size()));
  std::swap(order[1], order[2]);
  return c.yield(e.reshape(e.transpose(e.reshape(x, split), order), shape));
}

/// Each element `repeats` times in a row.
static LogicalResult repeatInterleave(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  AffineExpr repeats = c.size("repeats");
  c.ignore({"output_size"});
  if (!x || !repeats || e.failed())
    return c.yield(Value());
  if (!c.has("dim"))
    x = e.reshape(x, {productOf(graph::getShape(x), e.getContext())});
  int64_t axis = c.axis("dim", rankOf(x), 0);
  if (!x || e.failed())
    return c.yield(Value());
  Exprs split = graph::getShape(x);
  split.insert(split.begin() + axis + 1, e.number(1));
  Value wide = e.reshape(x, split);
  split[axis + 1] = repeats;
  return c.yield(e.reshape(e.broadcast(wide, split), c.resultShape()));
}

/// Coordinates of a grid: each vector along a dimension of its own.
static LogicalResult meshgrid(Call &c) {
  Emitter &e = c.getEmitter();
  Values vectors = c.tensors("tensors"), results;
  bool swapped = c.text("indexing", "ij") == "xy" && vectors.size() > 1;
  for (auto [i, vector] : llvm::enumerate(vectors)) {
    Exprs shape = c.resultShape(i), along(shape.size(), e.number(1));
    if (!vector || e.failed() || rankOf(vector) > 1 ||
        shape.size() != vectors.size())
      return c.fail("needs vectors");
    size_t d = swapped && i < 2 ? 1 - i : i;
    along[d] = shape[d];
    results.push_back(e.broadcast(e.reshape(vector, along), shape));
  }
  return c.yield(results);
}

/// Each spread to the shape of all together.
static LogicalResult broadcastTensors(Call &c) {
  Values results;
  for (auto [i, value] : llvm::enumerate(c.tensors("tensors")))
    results.push_back(c.getEmitter().broadcast(value, c.resultShape(i)));
  return c.yield(results);
}

/// Differences of elements that follow each other.
static LogicalResult diff(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t times = c.integer("n", 1), axis = c.axis("dim", rankOf(x), -1);
  Value before = c.optionalTensor("prepend"),
        after = c.optionalTensor("append");
  constexpr int64_t maxTimes = 64;
  if (!x || e.failed() || times < 0 || times > maxTimes)
    return c.fail("differences of order " + Twine(times) +
                  " are not supported");
  Values parts;
  for (Value part : {before, x, after})
    if (part)
      parts.push_back(e.cast(part, c.resultElement()));
  x = parts.size() > 1 ? e.concat(parts, axis) : parts[0];
  for (int64_t i = 0; i < times && x; ++i) {
    Exprs shape = graph::getShape(x), first(shape.size(), e.number(0)),
          next = first;
    SmallVector<int64_t> steps(shape.size(), 1);
    if (!e.getSymbols().assumeAtLeast(shape[axis], e.number(1),
                                      "so that there are elements"))
      return c.fail("there are no elements to subtract");
    shape[axis] = graph::simplify(shape[axis] - 1);
    next[axis] = e.number(1);
    Value a = e.slice(x, next, steps, shape),
          b = e.slice(x, first, steps, shape);
    x = elementOf(x).isInteger(1) ? e.compare(graph::Predicate::ne, a, b)
                                  : e.sub(a, b);
  }
  return c.yield(x);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::foldRows() {
  static const Row rows[] = {
      {"aten.unfold.default", partwise(unfold), Alias::View},
      {"aten.im2col.default", imageToColumns},
      {"aten.col2im.default", columnsToImage},
      {"aten.pixel_shuffle.default", pixelShuffle<true>},
      {"aten.pixel_unshuffle.default", pixelShuffle<false>},
      {"aten.channel_shuffle.default", channelShuffle},
      {"aten.native_channel_shuffle.default", channelShuffle},
      {"aten.repeat_interleave.self_int", partwise(repeatInterleave)},
      {"aten.meshgrid.default", partwise(meshgrid), Alias::View},
      {"aten.meshgrid.indexing", partwise(meshgrid), Alias::View},
      {"aten.broadcast_tensors.default", partwise(broadcastTensors),
       Alias::View},
      {"aten.diff.default", partwise(diff)},
  };
  return rows;
}
