#include "frontends/common/builders/Fold.h"
#include "frontends/common/Tables.h"
#include "frontends/common/builders/Phases.h"
#include "frontends/common/builders/Window.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// Terms of a sum of windows, and elements of the matrix of a transform.
constexpr int64_t maxTaps = 4096, maxMatrix = int64_t(1) << 24;

/// `x` with zeros around dimension `axis`.
static Value padAlong(Value x, int64_t axis, int64_t low, int64_t high,
                      Emitter &e) {
  if (!x || (low == 0 && high == 0))
    return x;
  Exprs dims = graph::getShape(x), lows(dims.size(), e.number(0));
  lows[axis] = e.number(low);
  dims[axis] = graph::simplify(dims[axis] + low + high);
  return e.pad(graph::PadMode::constant, x, e.scalar(int64_t(0), elementOf(x)),
               lows, dims);
}

/// The part `index` of dimension `axis`, which goes.
static Value partAlong(Value x, int64_t axis, int64_t index, Emitter &e) {
  if (!x)
    return {};
  Exprs dims = graph::getShape(x), starts(dims.size(), e.number(0));
  starts[axis] = e.number(index);
  dims[axis] = e.number(1);
  Value part = e.slice(x, starts, SmallVector<int64_t>(dims.size(), 1), dims);
  dims.erase(dims.begin() + axis);
  return e.reshape(part, dims);
}

/// Behind `axis`, which becomes `strides` elements longer, a dimension of one
/// residue of a run, or of all of a run without taps: the sum of the parts of
/// dimension `taps` that reach it, each moved by whole strides.
static Value addResidue(Value x, int64_t taps, int64_t axis, int64_t strides,
                        const Phases &run, int64_t residue, Emitter &e) {
  Value sum;
  for (int64_t tap = 0; tap < run.taps; ++tap) {
    int64_t low = run.offset + tap * run.dilation;
    Value part = partAlong(x, taps, run.first + residue + tap * run.step, e);
    part = padAlong(part, axis - 1, low, strides - low, e);
    sum = sum ? e.add(sum, part) : part;
  }
  Exprs dims = graph::getShape(x);
  dims[axis] = graph::simplify(dims[axis] + strides);
  dims.insert(dims.begin() + axis + 1, e.number(sum ? 1 : run.count));
  dims.erase(dims.begin() + taps);
  return sum ? e.reshape(sum, dims)
             : e.broadcast(e.scalar(int64_t(0), elementOf(x)), dims);
}

/// x with its dimension `taps` behind `axis`, which becomes `strides` longer.
static Value moveBehind(Value x, int64_t taps, int64_t axis, int64_t strides,
                        Emitter &e) {
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < rankOf(x); ++d) {
    if (d != taps)
      order.push_back(d);
    if (d == axis)
      order.push_back(taps);
  }
  return padAlong(e.transpose(x, order), axis - 1, 0, strides, e);
}

/// Strides behind `count` windows that an image of `size` elements may reach
/// into: the last window does, and up to a stride of elements behind it, or
/// what is known to be there.
static int64_t stridesBehind(AffineExpr count, AffineExpr size,
                             const Windows &w, int64_t d) {
  int64_t strides = (w.kernel[d] - 1) * w.dilations[d] / w.strides[d];
  auto beyond = graph::constantOf(
      graph::simplify(size + w.pads[d] - (count + strides) * w.strides[d]));
  return strides + (beyond
                        ? std::max<int64_t>(
                              llvm::divideCeilSigned(*beyond, w.strides[d]), 0)
                        : 1);
}

/// Of windows along a dimension those, and of their elements those, that may
/// lie in the image, where sizes are known: what does not takes no part in a
/// sum, but would take memory. A single window's stride is as good as any.
static Value cutToImage(Value x, int64_t taps, int64_t axis, AffineExpr size,
                        Windows &w, int64_t d, Emitter &e) {
  Exprs dims = graph::getShape(x), starts(dims.size(), e.number(0));
  auto count = graph::constantOf(dims[axis]), extent = graph::constantOf(size);
  if (!count || !extent || *count < 1 || *extent < 1)
    return x;
  int64_t &stride = w.strides[d], &kernel = w.kernel[d], &pad = w.pads[d],
          dilation = w.dilations[d], reach = (kernel - 1) * dilation;
  // The first that reaches behind the padding, or begins there.
  int64_t first = std::min<int64_t>(
      {std::max<int64_t>(llvm::divideCeilSigned(pad - reach, stride), 0),
       pad / stride, *count - 1});
  pad -= first * stride;
  int64_t end = *extent + pad,
          last = std::min(*count - first, llvm::divideCeilSigned(end, stride));
  kernel = std::min(kernel, llvm::divideCeilSigned(end, dilation));
  if (last == 1)
    stride = std::min(stride, end);
  starts[axis] = e.number(first);
  dims[axis] = e.number(last);
  dims[taps] = e.number(kernel);
  return dims == graph::getShape(x)
             ? x
             : e.slice(x, starts, SmallVector<int64_t>(dims.size(), 1), dims);
}

/// Dimension `axis`, windows, and dimension `taps`, the elements of each,
/// become one of `size` elements: what lies a stride apart is a sum of the same
/// taps, and these sums are laid side by side.
static Value foldAlong(Value x, int64_t taps, int64_t axis, AffineExpr size,
                       Windows w, int64_t d, Emitter &e) {
  x = cutToImage(x, taps, axis, size, w, d, e);
  if (!x)
    return {};
  int64_t strides = stridesBehind(graph::getShape(x)[axis], size, w, d);
  SmallVector<Phases> runs =
      phasesOf(w.kernel[d], w.strides[d], w.dilations[d]);
  bool overlaps = runs.size() > 1 || runs[0].taps > 1;
  Values sums;
  for (const Phases &run : runs)
    for (int64_t i = 0; overlaps && i < (run.taps ? run.count : 1); ++i) {
      sums.push_back(addResidue(x, taps, axis, strides, run, i, e));
      if (!sums.back())
        return {};
    }
  Value all = !overlaps          ? moveBehind(x, taps, axis, strides, e)
              : sums.size() == 1 ? sums[0]
                                 : e.concat(sums, axis);
  if (!all)
    return {};
  Exprs dims = graph::getShape(all), starts;
  dims.erase(dims.begin() + axis);
  dims[axis - 1] = graph::simplify(dims[axis - 1] * w.strides[d]);
  all = e.reshape(all, dims);
  starts.append(dims.size(), e.number(0));
  starts[axis - 1] = e.number(w.pads[d]);
  dims[axis - 1] = size;
  return e.slice(all, starts, SmallVector<int64_t>(dims.size(), 1), dims);
}

Value charonia::frontend::addWindows(Value x, llvm::ArrayRef<AffineExpr> image,
                                     const Windows &w, Emitter &e) {
  if (!x)
    return {};
  Value folded = e.widen(x);
  // The last dimension first, so that the others stay where they are.
  for (int64_t d = int64_t(image.size()) - 1; d >= 0 && folded; --d)
    folded = foldAlong(folded, 2 + d, 2 + d + 1 + d, image[d], w, d, e);
  return e.cast(folded, elementOf(x));
}

Value charonia::frontend::buildFold(Value x, llvm::ArrayRef<AffineExpr> image,
                                    const Windows &w, Emitter &e) {
  if (!x)
    return {};
  int64_t spatial = image.size(), elements = 1, terms = 0;
  for (int64_t d = 0; d < spatial; ++d) {
    for (int64_t value : {w.kernel[d], w.strides[d], w.dilations[d],
                          w.pads[d] + 1, w.pads[spatial + d] + 1})
      if (value < 1 || value > maxWindow)
        return e.fail("windows of these sizes are not supported");
    terms += w.kernel[d];
    if (terms > maxTaps || llvm::MulOverflow(elements, w.kernel[d], elements) ||
        w.kernel[d] * w.dilations[d] > maxWindow)
      return e.fail("windows of " + Twine(w.kernel[d]) +
                    " elements are not supported");
  }
  Exprs shape = graph::getShape(x), dims = {shape[0]};
  AffineExpr channels = graph::simplify(shape[1].floorDiv(elements));
  if (!e.agree(graph::simplify(channels * elements), shape[1],
               "takes windows apart"))
    return e.fail(e.describe(x.getType()) + " does not hold windows of " +
                  Twine(elements) + " elements");
  dims.push_back(channels);
  for (int64_t kernel : w.kernel)
    dims.push_back(e.number(kernel));
  Exprs counts;
  for (int64_t d = 0; d < spatial; ++d) {
    AffineExpr rest =
        graph::simplify(image[d] + w.pads[d] + w.pads[spatial + d] -
                        w.dilations[d] * (w.kernel[d] - 1) - 1);
    if (!e.getSymbols().assumeAtLeast(rest, e.number(0),
                                      "so that a window fits into the image"))
      return e.fail("a window of " +
                    Twine(w.dilations[d] * (w.kernel[d] - 1) + 1) +
                    " elements is larger than the image");
    counts.push_back(graph::simplify(rest.floorDiv(w.strides[d]) + 1));
  }
  AffineExpr windows = productOf(counts, e.getContext());
  if (!windows || !e.agree(windows, shape[2], "lays windows out"))
    return e.fail("an image of " + e.describe(image) + " does not have the " +
                  "windows of " + e.describe(x.getType()));
  dims.append(counts);
  return addWindows(e.reshape(x, dims), image, w, e);
}

/// By row the cosines of a frequency, then by row their sines with a minus; of
/// the imaginary part sines, then cosines.
static Value transformMatrix(int64_t length, int64_t frequencies, int64_t parts,
                             mlir::Type element, Emitter &e) {
  std::vector<double> values;
  values.reserve(2 * frequencies * parts * length);
  for (int row : {0, 1})
    for (int64_t f = 0; f < frequencies; ++f)
      for (int64_t part = 0; part < parts; ++part)
        for (int64_t i = 0; i < length; ++i) {
          // The product in a whole period keeps the angle exact.
          double angle = 2 * M_PI * double(f * i % length) / double(length);
          values.push_back(row == part ? std::cos(angle)
                           : row == 0  ? std::sin(angle)
                                       : -std::sin(angle));
        }
  auto type =
      mlir::RankedTensorType::get({2 * frequencies, parts, length}, element);
  if (element.isF64())
    return e.constant(
        mlir::DenseElementsAttr::get(type, llvm::ArrayRef(values)));
  std::vector<float> rounded(values.begin(), values.end());
  return e.constant(
      mlir::DenseElementsAttr::get(type, llvm::ArrayRef(rounded)));
}

Value charonia::frontend::buildStft(Value signal, Value window, int64_t step,
                                    int64_t length, bool onesided, Emitter &e) {
  if (!signal)
    return {};
  auto parts = graph::constantOf(graph::getShape(signal)[1]);
  int64_t frequencies = onesided ? length / 2 + 1 : length;
  if (!parts || *parts < 1 || *parts > 2)
    return e.fail("the signal has to have real, or real and imaginary parts");
  if (length < 1 || step < 1 || step > maxWindow || length > maxMatrix ||
      frequencies > maxMatrix / length)
    return e.fail("transforms of length " + Twine(length) + ", " + Twine(step) +
                      " apart, are not supported: a matrix of " +
                      Twine(maxMatrix) + " elements is the largest",
                  "use a shorter transform");
  mlir::Type element = elementOf(signal);
  if (!element.isF64())
    element = e.getBuilder().getF32Type();
  Value x = e.cast(signal, element);
  // Of each part the cosines and the sines.
  for (int64_t i = 0; i < 2 * *parts; ++i)
    if (failed(reserveTable(frequencies * length, element, e)))
      return {};
  Value filter = transformMatrix(length, frequencies, *parts, element, e);
  if (window)
    filter = e.mul(filter, e.cast(window, element));
  Window w;
  w.kernel = {length};
  w.strides = {step};
  w.dilations = {1};
  w.pads = {0, 0};
  w.input = x;
  if (failed(fitWindow(w, e)))
    return {};
  Value y = buildConv(w, x, filter, 1, e);
  if (!y)
    return {};
  Exprs dims = graph::getShape(y);
  y = e.reshape(y, {dims[0], e.number(2), e.number(frequencies), dims[2]});
  return e.cast(e.transpose(y, {0, 3, 2, 1}), elementOf(signal));
}

Value charonia::frontend::buildOverlapAdd(Value frames, int64_t step,
                                          Emitter &e) {
  if (!frames)
    return {};
  Exprs shape = graph::getShape(frames);
  auto length = graph::constantOf(shape[2]);
  if (!length || *length < 1 || step < 1 || step > maxWindow ||
      *length > maxWindow)
    return e.fail("windows of " + e.describe(frames.getType()) + ", " +
                  Twine(step) + " apart, are not supported");
  // Windows in pieces of a step: the j-th of each lies j steps behind it.
  int64_t pieces = (*length + step - 1) / step;
  if (pieces > maxTaps)
    return e.fail("windows that overlap " + Twine(pieces) +
                  " times are not supported");
  Value apart =
      e.reshape(padAlong(e.widen(frames), 2, 0, pieces * step - *length, e),
                {shape[0], shape[1], e.number(pieces), e.number(step)});
  Value sum;
  for (int64_t j = 0; j < pieces; ++j) {
    Value part = padAlong(partAlong(apart, 2, j, e), 1, j, pieces - 1 - j, e);
    sum = sum ? e.add(sum, part) : part;
  }
  AffineExpr all = graph::simplify((shape[1] + (pieces - 1)) * step),
             covered = graph::simplify((shape[1] - 1) * step + *length);
  Value line = e.reshape(sum, {shape[0], all});
  return e.cast(
      e.slice(line, {e.number(0), e.number(0)}, {1, 1}, {shape[0], covered}),
      elementOf(frames));
}
