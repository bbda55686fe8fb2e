#include "frontends/common/builders/Sampling.h"

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// One element along an axis that a sample is made of: its index, and its
/// weight in float, null for 1.
struct Tap {
  Value index, weight;
};

/// One spatial axis of a GridSample; numbers are tensors of float.
class SampledAxis {
public:
  SampledAxis(Emitter &e, AffineExpr size, mlir::Type element,
              SamplePadding padding, bool align)
      : e(e), element(element), padding(padding), size(e.size(size, element)),
        last(e.sub(this->size, number(1))), low(number(align ? 0 : -0.5)),
        high(align ? last : e.sub(this->size, number(0.5))), align(align) {}

  /// From [-1, 1] to positions along the axis.
  Value position(Value x) const {
    Value shifted = e.add(x, number(1));
    return align ? e.mul(e.mul(shifted, number(0.5)), last)
                 : e.mul(e.sub(e.mul(shifted, size), number(1)), number(0.5));
  }
  /// Positions outside of the borders are moved as the padding says. What is no
  /// number, and what reflection makes none of, goes to the first element.
  Value moved(Value x) const {
    if (padding == SamplePadding::zeros)
      return x;
    if (padding == SamplePadding::reflection) {
      Value outside = e.op<graph::OrOp>({e.compare(Predicate::lt, x, low),
                                         e.compare(Predicate::gt, x, high)});
      x = e.select(outside, reflected(x), x);
    }
    return e.select(e.compare(Predicate::gt, x, number(0)), e.min(x, last),
                    number(0));
  }
  /// The element at a whole position.
  Tap tap(Value x, Value weight) const {
    if (padding == SamplePadding::zeros) {
      Value inside = e.op<graph::AndOp>({e.compare(Predicate::ge, x, number(0)),
                                         e.compare(Predicate::le, x, last)});
      // A weight that is no number stays none.
      Value kept = e.select(inside, number(1), number(0));
      weight = weight ? e.mul(weight, kept) : kept;
    } else if (padding == SamplePadding::reflection) {
      x = reflected(x);
    }
    return {e.cast(clamped(x), e.getBuilder().getI64Type()), weight};
  }
  SmallVector<Tap> taps(Value x, graph::ResizeMode mode) const {
    if (mode == graph::ResizeMode::nearest)
      return {tap(moved(e.op<graph::RoundOp>({x})), {})};
    // Of cubic samples, as PyTorch and ONNX Runtime have it, only the elements.
    if (mode == graph::ResizeMode::linear)
      x = moved(x);
    Value base = e.op<graph::FloorOp>({x}), t = e.sub(x, base);
    Value u = e.sub(number(1), t);
    auto at = [&](double by, Value weight) {
      return tap(e.add(base, number(by)), weight);
    };
    if (mode == graph::ResizeMode::linear)
      return {at(0, u), at(1, t)};
    return {at(-1, far(e.add(t, number(1)))), at(0, near(t)), at(1, near(u)),
            at(2, far(e.add(u, number(1))))};
  }

private:
  Value number(double value) const { return e.scalar(value, element); }
  Value clamped(Value x) const { return e.min(e.max(x, number(0)), last); }
  /// Back and forth between the borders.
  Value reflected(Value x) const {
    Value span = e.max(e.sub(high, low), number(1e-6));
    Value period = e.add(span, span);
    Value t = e.op<graph::FmodOp>({e.sub(x, low), period});
    t = e.select(e.compare(Predicate::lt, t, number(0)), e.add(t, period), t);
    t = e.select(e.compare(Predicate::gt, t, span), e.sub(period, t), t);
    return e.add(t, low);
  }
  // Cubic convolution with the coefficient -0.75, at distances below and
  // over 1.
  Value near(Value d) const {
    Value p = e.sub(e.mul(number(1.25), d), number(2.25));
    return e.add(e.mul(e.mul(p, d), d), number(1));
  }
  Value far(Value d) const {
    Value p = e.add(e.mul(number(-0.75), d), number(3.75));
    return e.add(e.mul(e.sub(e.mul(p, d), number(6)), d), number(3));
  }

  Emitter &e;
  mlir::Type element;
  SamplePadding padding;
  Value size, last, low, high;
  bool align;
};
} // namespace

/// Images [N, C, S...] as rows [N, places, C]: places count along the memory of
/// a channel, so that nobody divides by sizes.
static Value rowsOf(Value x, Emitter &e) {
  Exprs shape = x ? graph::getShape(x) : Exprs();
  AffineExpr count =
      x ? productOf(llvm::ArrayRef(shape).drop_front(2), e.getContext())
        : AffineExpr();
  if (x && !count)
    return e.fail("the number of elements is absurdly large");
  return x ? e.transpose(e.reshape(x, {shape[0], shape[1], count}), {0, 2, 1})
           : Value();
}

/// The sum, or largest, of the weighted elements that `taps` name, by axis: of
/// `rows`, [batch, places, C] of images of `sizes`, or of one image for all
/// batches, at tensors [batch, D..., 1] of one shape.
static Value combine(Value rows, llvm::ArrayRef<AffineExpr> sizes,
                     llvm::ArrayRef<SmallVector<Tap>> taps, mlir::Type wide,
                     bool largest, Emitter &e) {
  if (!rows)
    return {};
  int64_t spatial = taps.size(), batchDims = graph::getShape(rows).size() - 2;
  // One index for all axes: what the channels share is done once.
  mlir::Type i64 = e.getBuilder().getI64Type();
  SmallVector<size_t> at(spatial, 0);
  Value sum;
  for (;;) {
    Value index, weight;
    for (int64_t d = 0; d < spatial; ++d) {
      const Tap &tap = taps[d][at[d]];
      index = index ? e.add(e.mul(index, e.size(sizes[d], i64)), tap.index)
                    : tap.index;
      if (tap.weight)
        weight = weight ? e.mul(weight, tap.weight) : tap.weight;
    }
    Value sample =
        e.op<graph::GatherNDOp>({rows, index}, e.attr("batch_dims", batchDims));
    if (weight)
      sample = e.mul(e.cast(e.widen(sample), wide), weight);
    sum = !sum ? sample : largest ? e.max(sum, sample) : e.add(sum, sample);
    int64_t d = spatial - 1;
    while (d >= 0 && ++at[d] == taps[d].size())
      at[d--] = 0;
    if (d < 0 || !sum)
      return sum;
  }
}

Value charonia::frontend::buildGridSample(Value x, Value grid,
                                          graph::ResizeMode mode,
                                          SamplePadding padding, bool align,
                                          Emitter &e) {
  if (!x || !grid)
    return {};
  Exprs shape = graph::getShape(x), out = graph::getShape(grid);
  int64_t rank = shape.size(), spatial = rank - 2;
  if (mode == graph::ResizeMode::cubic && spatial > 2)
    return e.fail("cubic sampling in 3 dimensions is not supported");
  if (!e.agree(out.back(), e.number(spatial), "reads coordinates") ||
      !e.agree(out.front(), shape.front(), "samples within a batch"))
    return e.fail("a grid of " + e.describe(grid.getType()) +
                  " does not fit the input, " + e.describe(x.getType()));
  Value wide = e.widen(grid);
  if (!wide)
    return {};
  // A sample takes all channels at once.
  SmallVector<int64_t> back{0, rank - 1};
  for (int64_t d = 0; d < spatial; ++d)
    back.push_back(d + 1);
  Exprs tuple = out, weighted = out;
  tuple.back() = weighted.back() = e.number(1);
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t d = 0; d < spatial; ++d) {
    // The grid names the innermost axis first.
    Exprs starts(rank, e.number(0));
    starts.back() = e.number(spatial - 1 - d);
    Value part = e.slice(wide, starts, SmallVector<int64_t>(rank, 1), tuple);
    SampledAxis axis(e, shape[d + 2], elementOf(wide), padding, align);
    taps.push_back(axis.taps(axis.position(part), mode));
  }
  Value sum = combine(rowsOf(x, e), llvm::ArrayRef(shape).drop_front(2), taps,
                      elementOf(wide), /*largest=*/false, e);
  return e.cast(e.transpose(sum, back), elementOf(x));
}

Value charonia::frontend::buildAffineGrid(Value theta,
                                          llvm::ArrayRef<AffineExpr> sizes,
                                          bool align, Emitter &e) {
  Value wide = e.widen(theta);
  if (!wide)
    return {};
  int64_t rank = sizes.size();
  Exprs shape = graph::getShape(theta), column(rank + 2, e.number(1));
  if (shape[1] != e.number(rank) || shape[2] != e.number(rank + 1))
    return e.fail("a map of " + e.describe(theta.getType()) + " does not fit " +
                  Twine(rank) + " spatial dimensions");
  mlir::Type element = elementOf(wide);
  column.front() = shape[0];
  column.back() = shape[1];
  Value sum;
  for (int64_t d = 0; d <= rank; ++d) {
    Value part =
        e.reshape(e.slice(wide, {e.number(0), e.number(0), e.number(d)},
                          {1, 1, 1}, {shape[0], shape[1], e.number(1)}),
                  column);
    if (d < rank) {
      // The map names the innermost axis first.
      AffineExpr size = sizes[rank - 1 - d];
      Exprs along(rank + 2, e.number(1));
      along[rank - d] = size;
      Value last = e.size(size - 1, element);
      Value span =
          align ? e.max(last, e.scalar(1.0, element)) : e.size(size, element);
      Value twice =
          e.mul(e.iota(along, rank - d, element), e.scalar(2.0, element));
      part = e.mul(part, e.div(e.sub(twice, last), span));
    }
    sum = sum ? e.add(sum, part) : part;
  }
  return e.cast(sum, elementOf(theta));
}

/// One of two spatial axes of a deformed convolution: for each element of a
/// window, and each window, where it lies along that axis of the image.
static Value deformedPositions(Value offsets, int64_t d,
                               const DeformedWindow &w, Emitter &e) {
  Exprs dims = graph::getShape(offsets); // [batch, rows, columns, 2, h, w]
  mlir::Type element = elementOf(offsets);
  auto along = [&](int64_t axis, int64_t factor) {
    Exprs ones(5, e.number(1));
    // The dimension of the two is gone.
    ones[axis] = dims[axis < 3 ? axis : axis + 1];
    return e.mul(e.iota(ones, axis, element),
                 e.scalar(double(factor), element));
  };
  Value window =
      e.add(along(3 + d, w.strides[d]), e.scalar(-double(w.pads[d]), element));
  Exprs starts(6, e.number(0)), part = dims;
  starts[3] = e.number(d);
  part[3] = e.number(1);
  Value offset = e.slice(offsets, starts, SmallVector<int64_t>(6, 1), part);
  part.erase(part.begin() + 3);
  return e.add(e.add(window, along(1 + d, w.dilations[d])),
               e.reshape(offset, part));
}

Value charonia::frontend::buildDeformConv(Value x, Value filter, Value offsets,
                                          Value mask, const DeformedWindow &w,
                                          Emitter &e) {
  if (!x || !filter || !offsets)
    return {};
  Exprs shape = graph::getShape(x), weights = graph::getShape(filter),
        out = graph::getShape(offsets);
  AffineExpr batch = shape[0], one = e.number(1), two = e.number(2);
  auto channels = graph::constantOf(shape[1]),
       features = graph::constantOf(weights[0]),
       own = graph::constantOf(weights[1]);
  auto rows = graph::constantOf(weights[2]),
       columns = graph::constantOf(weights[3]);
  if (!channels || !features || !own || !rows || !columns)
    return e.fail("the channels and the filter's window have to be known",
                  "fix these sizes with --shape");
  int64_t taps = *rows * *columns;
  if (w.groups < 1 || w.offsetGroups < 1 || *channels != *own * w.groups ||
      *features % w.groups || *channels % w.offsetGroups)
    return e.fail(Twine(w.groups) + " groups and " + Twine(w.offsetGroups) +
                  " groups of offsets do not fit a filter of " +
                  e.describe(filter.getType()) + " on " +
                  e.describe(x.getType()));
  Exprs windows;
  for (int64_t d : {0, 1}) {
    int64_t reach = w.dilations[d] * ((d ? *columns : *rows) - 1) + 1;
    windows.push_back(
        graph::simplify((shape[2 + d] + w.pads[d] + w.pads[2 + d] - reach)
                            .floorDiv(w.strides[d]) +
                        1));
  }
  auto fits = [&](Value v, int64_t each) {
    Exprs dims = graph::getShape(v);
    return dims[1] == e.number(w.offsetGroups * taps * each) &&
           e.agree(dims[0], batch, "samples within a batch") &&
           e.agree(dims[2], windows[0], "moves each window") &&
           e.agree(dims[3], windows[1], "moves each window");
  };
  if (!fits(offsets, 2) || (mask && !fits(mask, 1)))
    return e.fail("offsets of " + e.describe(offsets.getType()) +
                  (mask ? " and a mask of " + e.describe(mask.getType()) : "") +
                  " do not fit windows of " + Twine(*rows) + "x" +
                  Twine(*columns) + " in " + e.describe(x.getType()) + ", of " +
                  "which there are " + e.describe(windows));
  // What moves alike is a batch of its own.
  AffineExpr groups = e.number(w.offsetGroups),
             each = e.number(*channels / w.offsetGroups),
             samples = graph::simplify(batch * w.offsetGroups);
  Value images = e.reshape(x, {samples, each, shape[2], shape[3]});
  Value wide = e.reshape(
      e.widen(offsets), {samples, weights[2], weights[3], two, out[2], out[3]});
  if (!images || !wide)
    return {};
  Exprs places = {samples, weights[2], weights[3], out[2], out[3], one};
  SmallVector<SmallVector<Tap>> corners;
  for (int64_t d : {0, 1}) {
    SampledAxis axis(e, shape[2 + d], elementOf(wide), SamplePadding::zeros,
                     /*align=*/true);
    corners.push_back(
        axis.taps(e.reshape(deformedPositions(wide, d, w, e), places),
                  graph::ResizeMode::linear));
  }
  Value sampled = combine(rowsOf(images, e), {shape[2], shape[3]}, corners,
                          elementOf(wide), /*largest=*/false, e);
  if (mask)
    sampled = e.mul(sampled, e.reshape(e.cast(mask, elementOf(wide)), places));
  // [N, groups, filters, terms] times [N, groups, terms, windows].
  Value terms =
      e.transpose(e.reshape(sampled, {batch, groups, weights[2], weights[3],
                                      out[2], out[3], each}),
                  {0, 1, 6, 2, 3, 4, 5});
  AffineExpr number = e.number(w.groups), depth = e.number(*own * taps),
             spread = productOf({out[2], out[3]}, e.getContext());
  if (!spread)
    return e.fail("the number of elements is absurdly large");
  Value product = e.op<graph::MatmulOp>(
      {e.reshape(e.cast(filter, elementOf(wide)),
                 {number, e.number(*features / w.groups), depth}),
       e.reshape(terms, {batch, number, depth, spread})});
  return e.cast(e.reshape(product, {batch, weights[0], out[2], out[3]}),
                elementOf(x));
}

namespace {
/// Regions along one of two spatial axes, as tensors of `rank` dimensions, the
/// regions' first.
struct RegionAxis {
  RegionAxis(Value rois, int64_t d, const RegionGrid &g, size_t rank,
             Emitter &e)
      : e(e), element(elementOf(rois)), spread(rank, e.number(1)) {
    spread[0] = graph::getShape(rois)[0];
    // x, y of the upper left, then of the lower right corner.
    from = bound(rois, 1 - d, g);
    extent = e.sub(bound(rois, 3 - d, g), from);
    if (g.atLeastOne)
      extent = e.max(extent, number(1));
  }
  Value number(double value) const { return e.scalar(value, element); }
  /// 0, 1, ... along a dimension.
  Value count(int64_t dim, AffineExpr size) const {
    Exprs dims(spread.size(), e.number(1));
    dims[dim] = size;
    return e.iota(dims, dim, element);
  }
  Value bound(Value rois, int64_t i, const RegionGrid &g) const {
    Value x = e.slice(rois, {e.number(0), e.number(i)}, {1, 1},
                      {spread[0], e.number(1)});
    return e.reshape(e.sub(e.mul(x, number(g.scale)), number(g.offset)),
                     spread);
  }

  Emitter &e;
  mlir::Type element;
  Exprs spread;
  Value from, extent;
};

/// An axis of which each region has its own number of samples.
struct SampledRegions {
  /// Of each element in the sum of each bin's samples: [R, 1, bins, size].
  Value weights;
  /// [R, 1, 1, 1].
  Value samples;
};
} // namespace

static SampledRegions sampleRegions(Value rois, AffineExpr size, int64_t d,
                                    const RegionGrid &g, Emitter &e) {
  RegionAxis axis(rois, d, g, 4, e);
  auto number = [&](double value) { return axis.number(value); };
  Value extent = e.size(size, axis.element), last = e.sub(extent, number(1));
  Value bin = e.div(axis.extent, number(double(g.bins[d])));
  Value samples = e.max(e.op<graph::CeilOp>({bin}), number(0));
  Value step = e.div(bin, e.max(samples, number(1)));
  Value first =
      e.add(e.add(axis.from, e.mul(axis.count(2, e.number(g.bins[d])), bin)),
            e.mul(step, number(0.5)));
  // Two samples of a bin lie over half an element apart, so that no more than
  // four are within one of an element; one more on either side for rounding.
  constexpr int near = 6;
  Value place = axis.count(3, size);
  Value from = e.op<graph::FloorOp>(
      {e.div(e.sub(e.sub(place, number(1)), first), step)});
  from = e.max(from, number(0));
  Value sum;
  for (int k = 0; k < near; ++k) {
    Value i = e.add(from, number(k)), x = e.add(first, e.mul(i, step));
    Value counts = e.op<graph::AndOp>({e.compare(Predicate::ge, x, number(-1)),
                                       e.compare(Predicate::le, x, extent)});
    counts = e.op<graph::AndOp>({counts, e.compare(Predicate::lt, i, samples)});
    Value at = e.min(e.max(x, number(0)), last);
    Value away = e.op<graph::AbsOp>({e.sub(at, place)});
    Value weight =
        e.select(counts, e.max(e.sub(number(1), away), number(0)), number(0));
    sum = sum ? e.add(sum, weight) : weight;
  }
  return {sum, samples};
}

/// The sums along rows, [R, C, bins, W], each region's from its own image: one
/// product over the rows of all images, of which the others' weigh nothing, so
/// that no image is copied for a region.
static Value sumRows(Value x, Value weights, Value batches, Emitter &e) {
  Exprs shape = graph::getShape(x), dims = graph::getShape(weights);
  mlir::Type element = elementOf(weights);
  x = e.cast(x, element);
  if (shape[0] == e.number(1))
    return e.op<graph::MatmulOp>({weights, x});
  AffineExpr regions = dims[0], bins = dims[2], one = e.number(1);
  Value isOwn =
      e.compare(Predicate::eq, e.reshape(batches, {regions, one, one, one}),
                e.iota({one, one, shape[0], one}, 2, elementOf(batches)));
  Value all =
      e.select(isOwn, e.reshape(weights, {regions, bins, one, shape[2]}),
               e.scalar(0.0, element));
  AffineExpr rows = productOf({shape[0], shape[2]}, e.getContext()),
             columns = productOf({shape[1], shape[3]}, e.getContext()),
             results = productOf({regions, bins}, e.getContext());
  if (!rows || !columns || !results)
    return e.fail("images of " + e.describe(x.getType()) + " are too large");
  Value sum = e.op<graph::MatmulOp>(
      {e.reshape(all, {results, rows}),
       e.reshape(e.transpose(x, {0, 2, 1, 3}), {rows, columns})});
  return e.transpose(e.reshape(sum, {regions, bins, shape[1], shape[3]}),
                     {0, 2, 1, 3});
}

/// Means of samples whose number is each region's: elements of the image weigh
/// what the samples beside them do, so that these are never counted up. All
/// elements of an image are multiplied, so one that is no number spoils the
/// regions beside and above it too.
static Value averageRegions(Value x, Value rois, Value batches,
                            const RegionGrid &g, Emitter &e) {
  Exprs shape = graph::getShape(x);
  SampledRegions rows = sampleRegions(rois, shape[2], 0, g, e),
                 columns = sampleRegions(rois, shape[3], 1, g, e);
  Value sum = sumRows(x, rows.weights, batches, e);
  sum =
      e.op<graph::MatmulOp>({sum, e.transpose(columns.weights, {0, 1, 3, 2})});
  Value count = e.max(e.mul(rows.samples, columns.samples),
                      e.scalar(1.0, elementOf(rois)));
  return e.cast(e.div(sum, count), elementOf(x));
}

/// Where the samples of one of two spatial axes lie, [R, P, 1, G, 1, 1] or, of
/// columns, [R, 1, P, 1, G, 1]: between two elements, and of no weight where
/// they are out of the image by over one.
static SmallVector<Tap> regionTaps(Value rois, AffineExpr size, int64_t d,
                                   const RegionGrid &g, Emitter &e) {
  RegionAxis axis(rois, d, g, 6, e);
  mlir::Type element = axis.element, i64 = e.getBuilder().getI64Type();
  auto number = [&](double value) { return axis.number(value); };
  Value bin = e.mul(axis.extent, number(1.0 / double(g.bins[d])));
  Value within =
      e.mul(e.add(axis.count(3 + d, e.number(g.samples)), number(0.5)),
            number(1.0 / double(g.samples)));
  Value bins = axis.count(1 + d, e.number(g.bins[d]));
  Value x = e.add(axis.from, e.mul(e.add(bins, within), bin));
  Value extentOf = e.size(size, element), last = e.sub(extentOf, number(1));
  Value inside = e.op<graph::AndOp>({e.compare(Predicate::ge, x, number(-1)),
                                     e.compare(Predicate::le, x, extentOf)});
  Value at = e.min(e.max(x, number(0)), last);
  Value base = e.op<graph::FloorOp>({at}), t = e.sub(at, base);
  auto tap = [&](Value place, Value weight) {
    return Tap{e.cast(place, i64), e.select(inside, weight, number(0))};
  };
  return {tap(base, e.sub(number(1), t)),
          tap(e.min(e.add(base, number(1)), last), t)};
}

Value charonia::frontend::buildRoiAlign(Value x, Value rois, Value batches,
                                        const RegionGrid &g, Emitter &e) {
  if (!x || !rois || !batches)
    return {};
  Exprs shape = graph::getShape(x);
  AffineExpr count = graph::getShape(rois)[0], one = e.number(1);
  if (!e.agree(graph::getShape(batches)[0], count, "takes regions"))
    return e.fail("regions of " + e.describe(rois.getType()) +
                  " do not fit batch indices of " +
                  e.describe(batches.getType()));
  Value wide = e.widen(rois);
  if (!wide)
    return {};
  if (g.samples == 0)
    return averageRegions(x, wide, batches, g, e);
  Exprs places = {count,
                  e.number(g.bins[0]),
                  e.number(g.bins[1]),
                  e.number(g.samples),
                  e.number(g.samples),
                  one};
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t d : {0, 1})
    taps.push_back(regionTaps(wide, shape[2 + d], d, g, e));
  for (auto &axis : taps)
    for (Tap &tap : axis)
      tap.index = e.broadcast(tap.index, places);
  // Each region's rows are those of its image, none of which are copied.
  Value rows = e.op<graph::GatherOp>(
      {rowsOf(x, e), e.cast(batches, e.getBuilder().getI64Type())},
      e.attr("axis", int64_t(0)));
  Value samples = combine(rows, llvm::ArrayRef(shape).drop_front(2), taps,
                          elementOf(wide), g.largest, e);
  Value pooled = g.largest
                     ? e.reduce(graph::ReduceKind::max, samples, {3, 4}, false)
                     : e.mean(samples, {3, 4}, false);
  return e.cast(e.transpose(pooled, {0, 3, 1, 2}), elementOf(x));
}
