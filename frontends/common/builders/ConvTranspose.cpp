#include "frontends/common/builders/ConvTranspose.h"
#include "frontends/common/builders/Fold.h"
#include "frontends/common/builders/Phases.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Value;

namespace {
/// A transposed convolution without products with the zeros between elements:
/// for each run of residues a convolution with the taps that reach them, a
/// channel for each residue; the results are laid side by side.
class ByPhases {
public:
  ByPhases(Value x, Value weight, const TransposedWindow &t, Emitter &e)
      : x(x), weight(weight), t(t), e(e), spatial(t.kernel.size()),
        input(graph::getShape(x)),
        outputs(*graph::constantOf(graph::getShape(weight)[1])) {
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
    all = withZeros(all);
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
  /// before `chosen.size()` those of one run. Zeros around an only run with
  /// taps are left to withZeros.
  Value sideBySide(SmallVector<Phases> chosen) {
    size_t i = chosen.size();
    if (i == spatial)
      return convolve(chosen);
    Values parts;
    std::optional<Phases> only = onlyRun(i);
    for (const Phases &run :
         only ? SmallVector<Phases>{*only}
              : phasesOf(t.kernel[i], t.strides[i], t.dilations[i])) {
      SmallVector<Phases> with(chosen);
      with.push_back(run);
      parts.push_back(sideBySide(with));
      if (!parts.back())
        return {};
    }
    return parts.size() == 1 ? parts[0] : e.concat(parts, 4 + 2 * i);
  }

  /// The run of a dimension that has taps, where there is one such.
  std::optional<Phases> onlyRun(size_t i) {
    SmallVector<Phases> runs =
        phasesOf(t.kernel[i], t.strides[i], t.dilations[i]);
    llvm::erase_if(runs, [](const Phases &run) { return run.taps == 0; });
    return runs.size() == 1 ? std::optional(runs[0]) : std::nullopt;
  }

  /// All residues of dimensions of which sideBySide has those of one run.
  Value withZeros(Value sums) {
    Exprs lows = e.numbers({0, 0, 0}), shape = graph::getShape(sums);
    for (size_t i = 0; i < spatial; ++i) {
      std::optional<Phases> only = onlyRun(i);
      lows.append({e.number(0), e.number(only ? only->residue : 0)});
      shape[4 + 2 * i] = e.number(t.strides[i]);
    }
    return shape == graph::getShape(sums)
               ? sums
               : e.pad(graph::PadMode::constant, sums,
                       e.scalar(int64_t(0), elementOf(x)), lows, shape);
  }

  /// Whether a phase is a sum of a few products rather than a convolution: no
  /// sum is over channels, so these need not be innermost in memory, which lays
  /// side by side what lies far apart. One without steps is as it should be.
  /// The same for all phases: where some are convolutions there is nothing to
  /// gain, nor of taps that lie apart, nor of open images whose phases differ
  /// (of volumes, whose channels lie far apart, there is).
  bool addsTaps() {
    int64_t taps = 1, most = spatial == 1 ? 4 : 12;
    bool hasSteps = false;
    for (size_t i = 0; i < spatial; ++i) {
      bool differ =
          t.kernel[i] > t.strides[i] && t.kernel[i] % t.strides[i] != 0;
      if (t.dilations[i] != 1 ||
          (differ && spatial < 3 && !graph::constantOf(input[i + 2])))
        return false;
      taps = std::min<int64_t>(
          taps * llvm::divideCeil(t.kernel[i], t.strides[i]), most + 1);
      hasSteps |= t.strides[i] > 1;
    }
    return graph::constantOf(input[1]) == t.groups && taps <= most && hasSteps;
  }

  /// Each element times each filter of its channel: `values` [N, groups, Q...]
  /// by `filters`, one tap of what `filter` gives.
  Value multiply(Value values, Value filters, ArrayRef<Phases> runs) {
    Exprs split = e.numbers({t.groups}),
          along = {input[0], e.number(t.groups), e.number(1)},
          across = e.numbers({t.groups, outputs});
    SmallVector<int64_t> permutation = {0, int64_t(spatial) + 1};
    for (size_t i = 0; i < spatial; ++i) {
      split.push_back(e.number(runs[i].count));
      along.append({counts[i], e.number(1)});
      across.append({e.number(1), e.number(runs[i].count)});
      permutation.push_back(i + 1);
    }
    split.push_back(e.number(outputs));
    Value turned = e.transpose(e.reshape(filters, split), permutation);
    return e.mul(e.reshape(values, along), e.reshape(turned, across));
  }

  /// The sum of products with each tap of `filters`.
  Value addTaps(Value filters, ArrayRef<Phases> runs) {
    Value sum;
    SmallVector<int64_t> steps(spatial + 2, 1), extents;
    for (const Phases &run : runs)
      extents.push_back(run.taps);
    Exprs one = graph::getShape(filters);
    std::fill(one.begin() + 2, one.end(), e.number(1));
    for (SmallVector<int64_t> &tap : allPlaces(extents)) {
      Exprs last = e.numbers({0, 0});
      for (auto [i, run] : llvm::enumerate(runs))
        last.push_back(e.number(run.taps - 1 - tap[i]));
      Value term =
          multiply(moved(runs, tap), e.slice(filters, last, steps, one), runs);
      sum = sum ? e.add(sum, term) : term;
    }
    return sum;
  }

  /// All places of a box, the last coordinate the fastest.
  static std::vector<SmallVector<int64_t>>
  allPlaces(ArrayRef<int64_t> extents) {
    std::vector<SmallVector<int64_t>> places = {{}};
    for (int64_t extent : extents) {
      std::vector<SmallVector<int64_t>> longer;
      for (const SmallVector<int64_t> &place : places)
        for (int64_t i = 0; i < extent; ++i) {
          longer.push_back(place);
          longer.back().push_back(i);
        }
      places = std::move(longer);
    }
    return places;
  }

  /// By how much a tap of a run moves the input up along dimension `i`.
  int64_t lowOf(size_t i, const Phases &run, int64_t tap) {
    return run.offset + tap * run.dilation - firsts[i];
  }

  /// The least and the most of all taps along dimension `i`.
  std::pair<int64_t, int64_t> lowsOf(size_t i) {
    int64_t least = std::numeric_limits<int64_t>::max(),
            most = std::numeric_limits<int64_t>::min();
    for (const Phases &run :
         phasesOf(t.kernel[i], t.strides[i], t.dilations[i]))
      for (int64_t tap = 0; tap < run.taps; ++tap) {
        least = std::min(least, lowOf(i, run, tap));
        most = std::max(most, lowOf(i, run, tap));
      }
    return {least, most};
  }

  /// The input [N, groups, Q...] as a tap of a phase meets it, with zeros where
  /// there is none: a part of one value that serves all of them.
  Value moved(ArrayRef<Phases> runs, ArrayRef<int64_t> tap) {
    SmallVector<int64_t> steps(spatial + 2, 1);
    Exprs starts = e.numbers({0, 0}), shape = {input[0], input[1]},
          lows = starts, wide = shape;
    for (size_t i = 0; i < spatial; ++i) {
      auto [least, most] = lowsOf(i);
      lows.push_back(e.number(most));
      wide.push_back(graph::simplify(counts[i] + (most - least)));
      starts.push_back(e.number(most - lowOf(i, runs[i], tap[i])));
      shape.push_back(counts[i]);
    }
    bool isSame = wide == input && llvm::all_of(lows, [&](mlir::AffineExpr n) {
                    return n == e.number(0);
                  });
    if (!surrounded)
      surrounded = isSame
                       ? x
                       : e.pad(graph::PadMode::constant, x,
                               e.scalar(int64_t(0), elementOf(x)), lows, wide);
    return shape == wide ? surrounded
                         : e.slice(surrounded, starts, steps, shape);
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
      return e.broadcast(e.scalar(int64_t(0), elementOf(x)), result);
    SmallVector<int64_t> pads(2 * spatial, 0), dilations;
    for (const Phases &run : runs)
      dilations.push_back(run.dilation);
    if (addsTaps())
      return addTaps(filter(runs), runs);
    Value values = padded(runs, pads), filters = filter(runs);
    bool hasOneTerm =
        graph::constantOf(input[1]) == t.groups &&
        llvm::all_of(runs, [](const Phases &run) { return run.taps == 1; });
    if (hasOneTerm && llvm::all_of(pads, [](int64_t n) { return n == 0; }))
      return multiply(values, filters, runs);
    Value sum = e.op<graph::ConvOp>(
        {values, filters},
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
    return changed ? e.pad(graph::PadMode::constant, x,
                           e.scalar(int64_t(0), elementOf(x)), lows, shape)
                   : x;
  }

  /// [C, O/g, K...] as [residues, O, C/g, taps...], the last tap first.
  Value filter(ArrayRef<Phases> runs) {
    Exprs given = graph::getShape(weight);
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
    Value w = weight;
    if (cut)
      w = e.pad(graph::PadMode::constant, w, e.scalar(int64_t(0), elementOf(w)),
                lows, reached);
    w = e.slice(e.reshape(w, split), starts, steps, chosen);
    return e.reshape(e.transpose(w, permutation), result);
  }

  Value x, weight;
  const TransposedWindow &t;
  Emitter &e;
  size_t spatial;
  Exprs input;
  int64_t outputs; // channels of a group
  /// Of q: the first, and the last less the input's extent; how many there are.
  SmallVector<int64_t> firsts, lasts;
  Exprs counts, extents;
  /// The input with the zeros that any tap meets.
  Value surrounded;
};
} // namespace

/// The filter's [C, O/g, K...] as [O, C/g, K...], or back, the last tap first.
static Value turnFilter(Value filter, int64_t groups, Emitter &e) {
  Exprs shape = graph::getShape(filter), split = shape, starts, result;
  split.insert(split.begin(), e.number(groups));
  split[1] = graph::simplify(shape[0].floorDiv(groups));
  SmallVector<int64_t> steps(split.size(), 1), order = {0, 2, 1};
  starts.append(split.size(), e.number(0));
  for (size_t d = 3; d < split.size(); ++d) {
    starts[d] = graph::simplify(split[d] - 1);
    steps[d] = -1;
    order.push_back(d);
  }
  Value turned = e.slice(e.reshape(filter, split), starts, steps, split);
  result = {graph::simplify(shape[1] * groups), split[1]};
  result.append(shape.begin() + 2, shape.end());
  return e.reshape(e.transpose(turned, order), result);
}

/// The convolution of the input with zeros between its elements: more work, but
/// one convolution.
static Value convolveSpread(Value x, Value filter, const TransposedWindow &t,
                            Emitter &e) {
  size_t spatial = t.kernel.size();
  Exprs shape = graph::getShape(x), lows(shape.size() + spatial, e.number(0)),
        columns = {shape[0], shape[1]}, wide = columns, merged = columns;
  SmallVector<int64_t> zeros(2 * spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    columns.append({shape[i + 2], e.number(1)});
    wide.append({shape[i + 2], e.number(t.strides[i])});
    merged.push_back(graph::simplify(shape[i + 2] * t.strides[i]));
  }
  Value zero = e.scalar(int64_t(0), elementOf(x));
  Value spread = e.reshape(
      e.pad(graph::PadMode::constant, e.reshape(x, columns), zero, lows, wide),
      merged);
  // What of the padding is left, or is cut, and the zeros behind the last.
  Exprs before = e.numbers({0, 0}), padded = {shape[0], shape[1]};
  for (size_t i = 0; i < spatial; ++i) {
    int64_t reach = (t.kernel[i] - 1) * t.dilations[i];
    before.push_back(e.number(reach - t.pads[i]));
    padded.push_back(graph::simplify(merged[i + 2] + 1 - t.strides[i] +
                                     2 * reach - t.pads[i] -
                                     t.pads[i + spatial] + t.outputPadding[i]));
  }
  spread = e.pad(graph::PadMode::constant, spread, zero, before, padded);
  return e.op<graph::ConvOp>(
      {spread, turnFilter(filter, t.groups, e)},
      {e.attr("strides", SmallVector<int64_t>(spatial, 1)),
       e.attr("pads", zeros), e.attr("dilations", t.dilations),
       e.attr("groups", t.groups)});
}

/// Whether the sum of windows takes what lies between the pads: it ends with
/// the stride of the last window.
static bool coversResult(const TransposedWindow &t) {
  for (size_t i = 0, spatial = t.kernel.size(); i < spatial; ++i)
    if (t.pads[i] < 0 ||
        t.outputPadding[i] - t.pads[i + spatial] >= t.strides[i])
      return false;
  return true;
}

/// Products that lanes take for each channel and element of the input where
/// each combination of runs of residues is a convolution: a filter of each
/// residue is a lane, and lanes come in whole vectors.
static int64_t costOfConvolutions(int64_t outputs, const TransposedWindow &t) {
  constexpr int64_t lanes = 16; // of the widest vector
  SmallVector<std::pair<int64_t, int64_t>> combined{{1, outputs}};
  for (size_t i = 0; i < t.kernel.size(); ++i) {
    SmallVector<std::pair<int64_t, int64_t>> next;
    for (const Phases &run :
         phasesOf(t.kernel[i], t.strides[i], t.dilations[i]))
      for (auto [taps, columns] : combined)
        if (run.taps > 0)
          next.push_back({taps * run.taps, columns * run.count});
    combined = std::move(next);
  }
  int64_t cost = 0;
  for (auto [taps, columns] : combined)
    cost += taps * llvm::alignTo(columns, lanes);
  return cost;
}

/// Whether one product with all taps of all filters costs less than
/// convolutions, of which there are not many. Its lanes are elements of the
/// image, but each element of it is written and read once more, and of residues
/// that are sums of their own results are laid side by side one by one. Costs
/// are products for each element of the input, as measured. `shape`: of the
/// filter, [C, O/g, K...].
static bool multipliesFirst(Value x, const Exprs &shape,
                            const TransposedWindow &t, bool isMany) {
  constexpr int64_t mostTaps = 64, leastTerms = 4, cached = 1 << 21,
                    storing = 6, storingFar = 32, laying = 80, mostOutputs = 16;
  int64_t channels = *graph::constantOf(shape[0]) / t.groups,
          outputs = *graph::constantOf(shape[1]), rows = outputs, residues = 1;
  for (auto [kernel, stride] : llvm::zip_equal(t.kernel, t.strides)) {
    if (kernel > mostTaps)
      return false;
    rows *= kernel;
    residues = std::min(residues * std::min(stride, mostTaps), cached);
  }
  // Of more outputs vectors, and instructions of GPUs, are full.
  if (channels < leastTerms || outputs > mostOutputs || !coversResult(t))
    return false;
  // Else zeros between elements are multiplied, too.
  if (isMany)
    return true;
  uint64_t elements = 1; // of the image; open ones are taken for few
  for (auto [d, extent] : llvm::enumerate(graph::getShape(x)))
    elements = llvm::SaturatingMultiply<uint64_t>(
        elements, d == 1 ? t.groups : graph::constantOf(extent).value_or(1));
  int64_t product =
      rows *
      (channels + (elements > uint64_t(cached / rows) ? storingFar : storing));
  if (residues > 1)
    product += laying * outputs * residues;
  // In a convolution filters take the place of one of six products.
  return 5 * product < 6 * costOfConvolutions(outputs, t) * channels;
}

/// Each element of the input times all taps of all filters, one product; its
/// rows, runs of the image, are added up where their taps put them.
static Value multiplyFirst(Value x, Value filter, const TransposedWindow &t,
                           Emitter &e) {
  Exprs input = graph::getShape(x), weights = graph::getShape(filter), image;
  size_t spatial = t.kernel.size();
  mlir::AffineExpr groups = e.number(t.groups),
                   channels = graph::simplify(weights[0].floorDiv(t.groups)),
                   elements = productOf(llvm::ArrayRef(input).drop_front(2),
                                        e.getContext()),
                   rows = productOf(llvm::ArrayRef(weights).drop_front(),
                                    e.getContext());
  Exprs split = {groups, channels, rows},
        columns = {input[0], groups, channels, elements},
        sums = {input[0], graph::simplify(weights[1] * t.groups)};
  if (t.groups == 1) {
    split.erase(split.begin());
    columns.erase(columns.begin() + 1);
  }
  Value turned = e.transpose(e.reshape(filter, split),
                             t.groups == 1 ? SmallVector<int64_t>{1, 0}
                                           : SmallVector<int64_t>{0, 2, 1});
  sums.append(weights.begin() + 2, weights.end());
  sums.append(input.begin() + 2, input.end());
  for (size_t i = 0; i < spatial; ++i) {
    int64_t last = (t.kernel[i] - 1) * t.dilations[i] + t.outputPadding[i] -
                   t.pads[i] - t.pads[i + spatial];
    image.push_back(
        graph::simplify((input[i + 2] - 1) * t.strides[i] + last + 1));
  }
  Value product =
      e.reshape(e.op<graph::MatmulOp>({turned, e.reshape(x, columns)}), sums);
  return addWindows(product, image, {t.kernel, t.strides, t.dilations, t.pads},
                    e);
}

/// Whether a fifth of an image of known sizes and more is no result's own
/// place.
static bool isMostlyBorder(Value x, const TransposedWindow &t) {
  double share = 1;
  Exprs shape = graph::getShape(x);
  for (auto [i, extent] : llvm::enumerate(llvm::drop_begin(shape, 2)))
    if (std::optional<int64_t> size = graph::constantOf(extent);
        size && *size) {
      int64_t cut = t.pads[i] + t.pads[i + t.kernel.size()] -
                    (t.kernel[i] - 1) * t.dilations[i];
      share *= double(*size - cut) / double(*size);
    }
  return share < 0.8;
}

Value charonia::frontend::convolveByProduct(Value x, Value filter,
                                            const Window &window,
                                            int64_t groups, Emitter &e) {
  TransposedWindow t;
  t.strides = window.strides;
  t.dilations = window.dilations;
  t.pads = window.pads;
  t.groups = groups;
  size_t spatial = window.strides.size();
  t.outputPadding.assign(spatial, 0);
  bool overlaps = false;
  Exprs shape = graph::getShape(filter);
  for (auto [d, extent] : llvm::enumerate(llvm::drop_begin(shape, 2))) {
    std::optional<int64_t> size = graph::constantOf(extent);
    if (!size || *size > maxWindow || t.strides[d] != 1)
      return {};
    t.kernel.push_back(*size);
    overlaps |= *size > 1;
    for (size_t side : {d, d + spatial})
      t.pads[side] = (*size - 1) * t.dilations[d] - t.pads[side];
  }
  if (!overlaps || window.channelsLast ||
      !llvm::isa<mlir::FloatType>(elementOf(x)) ||
      llvm::any_of(t.pads, [](int64_t pad) { return pad < 0; }))
    return {};
  mlir::AffineExpr outputs = graph::simplify(shape[0].floorDiv(groups));
  shape[0] = graph::simplify(shape[1] * groups);
  shape[1] = outputs;
  // Of more outputs, or more rows than terms, a convolution is as fast, and
  // what the product has of the image beyond the results is for nothing.
  constexpr int64_t mostOutputs = 3, mostRows = 64;
  int64_t rows = graph::constantOf(outputs).value_or(mostRows + 1);
  if (rows > mostOutputs)
    return {};
  for (int64_t extent : t.kernel)
    rows *= std::min(extent, mostRows + 1);
  std::optional<int64_t> channels =
      graph::constantOf(graph::getShape(filter)[1]);
  if (!channels || rows > std::min(*channels, mostRows) ||
      isMostlyBorder(x, t) || !multipliesFirst(x, shape, t, /*isMany=*/false))
    return {};
  return multiplyFirst(x, turnFilter(filter, groups, e), t, e);
}

/// Of a dimension of one element any stride gives the same: none that is longer
/// than the result, behind which there would be memory for its zeros.
static TransposedWindow withShortStrides(Value x, TransposedWindow t) {
  Exprs shape = graph::getShape(x);
  for (size_t i = 0, spatial = t.kernel.size(); i < spatial; ++i)
    if (graph::constantOf(shape[i + 2]) == 1) {
      int64_t end = (t.kernel[i] - 1) * t.dilations[i] + 1 +
                    t.outputPadding[i] - t.pads[i + spatial];
      t.strides[i] = std::clamp<int64_t>(end, 1, t.strides[i]);
    }
  return t;
}

Value charonia::frontend::buildConvTranspose(Value x, Value filter,
                                             const TransposedWindow &given,
                                             Emitter &e) {
  if (!x || !filter)
    return {};
  TransposedWindow window = withShortStrides(x, given);
  auto channels = graph::constantOf(graph::getShape(filter)[0]);
  if (window.groups < 1 || !channels || *channels % window.groups)
    return e.fail("a filter of " + e.describe(filter.getType()) +
                  " does not split into " + llvm::Twine(window.groups) +
                  " groups");
  // Each combination of runs would be a convolution.
  constexpr int64_t maxConvolutions = 64, maxTaps = int64_t(1) << 16;
  int64_t convolutions = 1;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    if (window.kernel[i] > maxTaps)
      return e.fail("a kernel of " + llvm::Twine(window.kernel[i]) +
                    " elements is not supported");
    auto runs =
        phasesOf(window.kernel[i], window.strides[i], window.dilations[i]);
    convolutions =
        std::min<int64_t>(convolutions * runs.size(), maxConvolutions + 1);
  }
  if (multipliesFirst(x, graph::getShape(filter), window,
                      convolutions > maxConvolutions))
    return multiplyFirst(x, filter, window, e);
  if (convolutions > maxConvolutions)
    return convolveSpread(x, filter, window, e);
  if (failed(e.writeOut(convolutions)))
    return {};
  return ByPhases(x, filter, window, e).run();
}
