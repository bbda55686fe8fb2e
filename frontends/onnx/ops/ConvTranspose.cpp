// Transposed convolution, as convolutions of the input whose results are laid
// side by side.
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Window.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

namespace {
struct Transposed {
  SmallVector<int64_t> kernel, strides, dilations, pads, outputPadding;
  int64_t groups = 1;
};
} // namespace

/// Padding that gives the extents that the node asks for.
static llvm::LogicalResult readPads(Node &n, Emitter &e, Transposed &t,
                                    const Exprs &shape) {
  size_t spatial = t.kernel.size();
  std::string autoPad = n.text("auto_pad", "NOTSET");
  bool upper = autoPad == "SAME_UPPER", same = upper || autoPad == "SAME_LOWER";
  if (!same && autoPad != "NOTSET" && autoPad != "VALID" && !autoPad.empty())
    return e.fail("attribute 'auto_pad' may not be '" + autoPad + "'");
  auto pads = readWindowList(n, e, "pads", 2 * spatial, 0, 0);
  if (failed(pads))
    return llvm::failure();
  t.pads = autoPad == "VALID" ? SmallVector<int64_t>(2 * spatial, 0) : *pads;
  auto extents = n.integers("output_shape");
  if (extents && extents->size() == spatial + 2)
    extents->erase(extents->begin(), extents->begin() + 2);
  if (extents && extents->size() != spatial)
    return e.fail("attribute 'output_shape' has " + Twine(extents->size()) +
                  " entries, but needs " + Twine(spatial));
  if (!extents && !same)
    return llvm::success();
  for (size_t i = 0; i < spatial; ++i) {
    AffineExpr size = shape[i + 2], stride = e.number(t.strides[i]);
    if (extents && std::abs((*extents)[i]) > maxDimension)
      return e.fail("attribute 'output_shape' may not hold " +
                    Twine((*extents)[i]));
    AffineExpr extent = extents ? e.number((*extents)[i]) : size * stride;
    AffineExpr total =
        graph::simplify((size - 1) * stride + t.outputPadding[i] +
                        (t.kernel[i] - 1) * t.dilations[i] + 1 - extent);
    auto known = graph::constantOf(total);
    if (!known)
      return e.fail("the padding has to be known",
                    "fix the input's size with --shape");
    // Negative padding adds to the end.
    int64_t half = llvm::divideFloorSigned(*known, 2);
    t.pads[i] = upper ? half : *known - half;
    t.pads[i + spatial] = *known - t.pads[i];
  }
  return llvm::success();
}

static llvm::FailureOr<Transposed> read(Node &n, Emitter &e) {
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 3, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0)),
        filter = graph::getShape(n.input(1));
  size_t spatial = rank - 2;
  Transposed t;
  for (AffineExpr size : llvm::drop_begin(filter, 2)) {
    auto known = graph::constantOf(size);
    if (!known || *known < 1)
      return e.fail("the filter's size has to be known",
                    "fix that size with --shape");
    t.kernel.push_back(*known);
  }
  if (auto given = n.integers("kernel_shape"); given && *given != t.kernel)
    return e.fail(
        "attribute 'kernel_shape' contradicts the shape of the filter, " +
        e.describe(n.input(1).getType()));
  auto strides = readWindowList(n, e, "strides", spatial, 1, 1);
  auto dilations = readWindowList(n, e, "dilations", spatial, 1, 1);
  auto padding = readWindowList(n, e, "output_padding", spatial, 0, 0);
  if (failed(strides) || failed(dilations) || failed(padding))
    return llvm::failure();
  t.strides = *strides;
  t.dilations = *dilations;
  t.outputPadding = *padding;
  t.groups = n.integer("group", 1);
  auto channels = graph::constantOf(filter[0]),
       perGroup = graph::constantOf(filter[1]);
  if (!e.agree(shape[1], filter[0], "multiplies over the channels") ||
      !channels || !perGroup || t.groups < 1 || *channels % t.groups)
    return e.fail("a filter of " + e.describe(n.input(1).getType()) + " in " +
                  Twine(t.groups) + " groups does not fit " +
                  e.describe(n.input(0).getType()));
  if (failed(readPads(n, e, t, shape)))
    return llvm::failure();
  return t;
}

/// Results a stride apart along one dimension that are computed alike. Behind
/// the padding, result `q * stride + r` is the sum over t < taps of input
/// q - offset - t * dilation times filter tap `first + r - residue + t * step`,
/// for `count` residues r from `residue` on.
struct Phases {
  int64_t residue, count, taps, first, step, offset, dilation;
};

/// All residues of one dimension in runs; a result without taps is 0.
static SmallVector<Phases> phasesOf(int64_t kernel, int64_t stride,
                                    int64_t dilation) {
  int64_t common = std::gcd(stride, dilation), step = stride / common;
  SmallVector<Phases> runs;
  for (int64_t r = 0; r < stride; ++r) {
    int64_t first = 0;
    while (first < step && first * dilation % stride != r)
      ++first;
    bool hit = first < step && first < kernel;
    Phases own{r,
               1,
               hit ? int64_t(llvm::divideCeil(kernel - first, step)) : 0,
               hit ? first : 0,
               step,
               hit ? (first * dilation - r) / stride : 0,
               dilation / common};
    if (!runs.empty()) {
      Phases &last = runs.back();
      bool follows = own.taps == 0 || own.first == last.first + last.count;
      if (own.taps == last.taps && own.offset == last.offset && follows) {
        ++last.count;
        continue;
      }
    }
    runs.push_back(own);
  }
  return runs;
}

namespace {
/// A transposed convolution without products with the zeros between elements:
/// for each run of residues a convolution with the taps that reach them, a
/// channel for each residue; the results are laid side by side.
class ByPhases {
public:
  ByPhases(Node &n, Emitter &e, const Transposed &t)
      : n(n), e(e), t(t), spatial(t.kernel.size()),
        input(graph::getShape(n.input(0))),
        outputs(*graph::constantOf(graph::getShape(n.input(1))[1])) {
    for (size_t i = 0; i < spatial; ++i) {
      int64_t stride = t.strides[i], last = (t.kernel[i] - 1) * t.dilations[i] -
                                            t.pads[i + spatial] +
                                            t.outputPadding[i];
      firsts.push_back(llvm::divideFloorSigned(t.pads[i], stride));
      lasts.push_back(llvm::divideFloorSigned(last, stride));
      counts.push_back(graph::simplify(input[i + 2] + lasts[i] - firsts[i]));
      extents.push_back(
          graph::simplify((input[i + 2] - 1) * stride + last + 1 - t.pads[i]));
    }
  }

  Value run() {
    Value all = sideBySide({});
    if (!all)
      return {};
    Exprs joined = {input[0], e.number(t.groups * outputs)}, starts, result;
    SmallVector<int64_t> steps(spatial + 2, 1);
    starts = e.numbers({0, 0});
    result = joined;
    for (size_t i = 0; i < spatial; ++i) {
      joined.push_back(graph::simplify(counts[i] * t.strides[i]));
      starts.push_back(e.number(t.pads[i] - firsts[i] * t.strides[i]));
      result.push_back(extents[i]);
    }
    all = e.reshape(all, joined);
    return joined == result ? all : e.slice(all, starts, steps, result);
  }

private:
  /// [N, groups, outputs, Q0, residues 0, Q1, residues 1, ...]; of dimensions
  /// before `chosen.size()` those of one run.
  Value sideBySide(SmallVector<Phases> chosen) {
    size_t i = chosen.size();
    if (i == spatial)
      return convolve(chosen);
    Values parts;
    for (const Phases &run :
         phasesOf(t.kernel[i], t.strides[i], t.dilations[i])) {
      SmallVector<Phases> with(chosen);
      with.push_back(run);
      parts.push_back(sideBySide(with));
      if (!parts.back())
        return {};
    }
    return parts.size() == 1 ? parts[0] : e.concat(parts, 4 + 2 * i);
  }

  Value convolve(ArrayRef<Phases> runs) {
    Exprs split = {input[0], e.number(t.groups)}, result = split;
    for (const Phases &run : runs)
      split.push_back(e.number(run.count));
    split.push_back(e.number(outputs));
    result.push_back(e.number(outputs));
    SmallVector<int64_t> permutation = {0, 1, int64_t(spatial) + 2};
    for (size_t i = 0; i < spatial; ++i) {
      split.push_back(counts[i]);
      result.append({counts[i], e.number(runs[i].count)});
      permutation.append({int64_t(spatial + 3 + i), int64_t(i + 2)});
    }
    if (llvm::any_of(runs, [](const Phases &run) { return run.taps == 0; }))
      return e.broadcast(e.scalar(int64_t(0), elementOf(n.input(0))), result);
    SmallVector<int64_t> pads(2 * spatial, 0), dilations;
    for (const Phases &run : runs)
      dilations.push_back(run.dilation);
    Value x = padded(runs, pads);
    Value sum = e.op<graph::ConvOp>(
        {x, filter(runs)},
        {e.attr("strides", SmallVector<int64_t>(spatial, 1)),
         e.attr("pads", pads), e.attr("dilations", dilations),
         e.attr("groups", t.groups)});
    return e.transpose(e.reshape(sum, split), permutation);
  }

  /// The input, with what of the padding a convolution does not take.
  Value padded(ArrayRef<Phases> runs, SmallVector<int64_t> &pads) {
    Exprs lows = e.numbers({0, 0}), shape = {input[0], input[1]};
    bool changed = false;
    for (auto [i, run] : llvm::enumerate(runs)) {
      int64_t low = run.offset + (run.taps - 1) * run.dilation - firsts[i],
              high = lasts[i] - run.offset;
      if (low >= 0 && high >= 0) {
        pads[i] = low;
        pads[i + spatial] = high;
        low = high = 0;
      }
      changed |= low || high;
      lows.push_back(e.number(low));
      shape.push_back(graph::simplify(input[i + 2] + low + high));
    }
    Value x = n.input(0);
    return changed ? e.pad(graph::PadMode::constant, x,
                           e.scalar(int64_t(0), elementOf(x)), lows, shape)
                   : x;
  }

  /// [C, O/g, K...] as [residues, O, C/g, taps...], the last tap first.
  Value filter(ArrayRef<Phases> runs) {
    Exprs given = graph::getShape(n.input(1));
    int64_t channels = *graph::constantOf(given[0]) / t.groups;
    Exprs lows = e.numbers({0, 0}), reached = {given[0], given[1]},
          split = e.numbers({t.groups, channels, outputs}), chosen = split,
          starts = e.numbers({0, 0, 0});
    SmallVector<int64_t> steps = {1, 1, 1}, permutation = {0};
    int64_t columns = t.groups * outputs;
    bool cut = false;
    for (auto [i, run] : llvm::enumerate(runs)) {
      int64_t reach = run.taps * run.step;
      cut |= run.first != 0 || reach != t.kernel[i];
      lows.push_back(e.number(-run.first));
      reached.push_back(e.number(reach));
      split.append({e.number(run.taps), e.number(run.step)});
      starts.append({e.number(run.taps - 1), e.number(0)});
      steps.append({-1, 1});
      chosen.append({e.number(run.taps), e.number(run.count)});
      columns *= run.count;
      permutation.push_back(4 + 2 * i);
    }
    permutation.append({2, 1});
    Exprs result = {e.number(columns), e.number(channels)};
    for (auto [i, run] : llvm::enumerate(runs)) {
      permutation.push_back(3 + 2 * i);
      result.push_back(e.number(run.taps));
    }
    Value w = n.input(1);
    if (cut)
      w = e.pad(graph::PadMode::constant, w, e.scalar(int64_t(0), elementOf(w)),
                lows, reached);
    w = e.slice(e.reshape(w, split), starts, steps, chosen);
    return e.reshape(e.transpose(w, permutation), result);
  }

  Node &n;
  Emitter &e;
  const Transposed &t;
  size_t spatial;
  Exprs input;
  int64_t outputs; // channels of a group
  /// Of q: the first, and the last less the input's extent; how many there are.
  SmallVector<int64_t> firsts, lasts;
  Exprs counts, extents;
};
} // namespace

static llvm::LogicalResult convTranspose(Node &n, Emitter &e) {
  auto t = read(n, e);
  if (failed(t))
    return llvm::failure();
  Value result = ByPhases(n, e, *t).run();
  if (!n.has(2) || !result)
    return n.yield(result);
  if (failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  Value sum = e.add(result, e.asChannels(n.input(2), t->kernel.size()));
  if (sum && sum.getType() != result.getType())
    return e.fail("the bias, " + e.describe(n.input(2).getType()) +
                  ", does not have one element an output channel");
  return n.yield(sum);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::convTransposeRows() {
  static const Row rows[] = {
      {"", "ConvTranspose", 1, 22, convTranspose},
  };
  return rows;
}
