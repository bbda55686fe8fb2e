// Sampling at coordinates that are data.
#include "frontends/common/builders/Sampling.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using mlir::AffineExpr;
using mlir::Value;

static llvm::LogicalResult gridSample(Node &n, Emitter &e) {
  Value x = n.input(0), grid = n.input(1);
  if (failed(n.needsRank(0, 3, 5)) ||
      failed(n.needsRank(1, rankOf(x), rankOf(x))))
    return llvm::failure();
  std::string text = n.text("mode", "linear");
  auto mode = graph::symbolizeResizeMode(
      text.rfind("bi", 0) == 0 ? text.substr(2) : text);
  std::string edge = n.text("padding_mode", "zeros");
  if (!mode || (edge != "zeros" && edge != "border" && edge != "reflection"))
    return e.fail("attributes 'mode' and 'padding_mode' may not be '" + text +
                  "' and '" + edge + "'");
  SamplePadding padding = edge == "zeros"    ? SamplePadding::zeros
                          : edge == "border" ? SamplePadding::border
                                             : SamplePadding::reflection;
  return n.yield(
      buildGridSample(x, grid, *mode, padding, n.flag("align_corners"), e));
}

static llvm::LogicalResult affineGrid(Node &n, Emitter &e) {
  // Samples, channels, then the spatial dimensions.
  auto size = n.known(1);
  if (failed(n.needsRank(0, 3, 3)) || failed(n.needsRank(1, 1, 1)) ||
      failed(size))
    return llvm::failure();
  if (size->size() != 4 && size->size() != 5)
    return e.fail("a size has 4 or 5 elements, not " +
                  llvm::Twine(size->size()));
  for (mlir::AffineExpr dim : *size)
    if (auto known = graph::constantOf(dim); known && *known < 1)
      return e.fail("a size may not be " + llvm::Twine(*known));
  if (!e.agree(graph::getShape(n.input(0))[0], size->front(),
               "samples within a batch"))
    return e.fail("maps of " + e.describe(n.input(0).getType()) +
                  " do not fit a size of " + e.describe(*size));
  return n.yield(buildAffineGrid(n.input(0),
                                 llvm::ArrayRef(*size).drop_front(2),
                                 n.flag("align_corners"), e));
}

static llvm::LogicalResult deformConv(Node &n, Emitter &e) {
  Value x = n.input(0), filter = n.input(1), offsets = n.input(2);
  for (unsigned i : {0, 1, 2})
    if (failed(n.needsRank(i, 4, 4)))
      return llvm::failure();
  if (n.has(4) && failed(n.needsRank(4, 4, 4)))
    return llvm::failure();
  auto strides = readWindowList(n, e, "strides", 2, 1, 1);
  auto dilations = readWindowList(n, e, "dilations", 2, 1, 1);
  auto pads = readWindowList(n, e, "pads", 4, 0, 0);
  auto kernel = kernelOf(filter, e);
  if (failed(strides) || failed(dilations) || failed(pads) || failed(kernel))
    return llvm::failure();
  if (auto given = n.integers("kernel_shape"); given && *given != *kernel)
    return e.fail("attribute 'kernel_shape' is not the shape of the filter, " +
                  e.describe(filter.getType()));
  DeformedWindow window{*strides, *dilations, *pads, n.integer("group", 1),
                        n.integer("offset_group", 1)};
  Value result = buildDeformConv(x, filter, offsets, n.input(4), window, e);
  if (n.has(3))
    result = e.add(result, e.asChannels(n.input(3), 2));
  return n.yield(result);
}

static llvm::LogicalResult roiAlign(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 4, 4)) || failed(n.needsRank(1, 2, 2)) ||
      failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  bool halfPixel =
      n.sinceVersion() >= 16 &&
      n.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  std::string mode = n.text("mode", "avg");
  RegionGrid grid{{n.integer("output_height", 1), n.integer("output_width", 1)},
                  n.integer("sampling_ratio", 0),
                  n.number("spatial_scale", 1),
                  halfPixel ? 0.5 : 0,
                  !halfPixel,
                  mode == "max"};
  if (!e.agree(graph::getShape(n.input(1))[1], e.number(4), "reads bounds"))
    return e.fail("regions have four bounds each, not " +
                  e.describe(n.input(1).getType()));
  if (grid.samples < 0)
    return e.fail("attribute 'sampling_ratio' may not be " +
                  llvm::Twine(grid.samples));
  if (mode != "max" && mode != "avg")
    return e.fail("attribute 'mode' may not be '" + mode + "'");
  if (grid.samples == 0 && grid.largest)
    return e.fail("the largest of samples whose number follows from the "
                  "regions is not supported",
                  "set attribute 'sampling_ratio', 2 for example");
  for (int64_t value :
       {grid.bins[0], grid.bins[1], std::max<int64_t>(grid.samples, 1)})
    if (value < 1 || value > maxDimension)
      return e.fail("an output of " + llvm::Twine(grid.bins[0]) + "x" +
                    llvm::Twine(grid.bins[1]) + " with " +
                    llvm::Twine(grid.samples) + " samples is not supported");
  return n.yield(buildRoiAlign(n.input(0), n.input(1), n.input(2), grid, e));
}

/// To the nearest integer, away from 0 where two are. A half that is added
/// would be rounded itself.
static Value roundAway(Value x, Emitter &e) {
  Value size = e.op<graph::AbsOp>({x}), whole = e.op<graph::FloorOp>({size});
  mlir::Type element = elementOf(x);
  Value isUp =
      e.compare(Predicate::ge, e.sub(size, whole), e.scalar(0.5, element));
  Value nearest = e.select(isUp, e.add(whole, e.scalar(1.0, element)), whole);
  Value isNegative = e.compare(Predicate::lt, x, e.scalar(0.0, element));
  return e.select(isNegative, e.op<graph::NegOp>({nearest}), nearest);
}

namespace {
/// Along one dimension: which of its elements belong to each bin of each
/// region, [R, bins, elements], and which bins have none, [R, bins].
struct Bins {
  Value members, isEmpty;
};
} // namespace

/// Of regions [R, 5], whose bounds along the dimension are columns `low` and
/// `low` + 2, after `scale`.
static Bins binsOf(Value regions, int64_t low, int64_t bins, AffineExpr size,
                   double scale, Emitter &e) {
  mlir::Type element = elementOf(regions);
  AffineExpr one = e.number(1);
  auto bound = [&](int64_t column) {
    Value at = sliceAlong(regions, 1, {e.number(column), one, 1}, e);
    return roundAway(e.mul(at, e.scalar(scale, element)), e);
  };
  Value first = bound(low), unit = e.scalar(1.0, element);
  Value extent = e.max(e.add(e.sub(bound(low + 2), first), unit), unit);
  Value each = e.div(extent, e.scalar(double(bins), element));
  Value bin = e.iota({one, e.number(bins)}, 1, element);
  auto inside = [&](Value place) {
    return e.min(e.max(e.add(place, first), e.scalar(0.0, element)),
                 e.size(size, element));
  };
  Value begin = inside(e.op<graph::FloorOp>({e.mul(bin, each)})),
        end = inside(e.op<graph::CeilOp>({e.mul(e.add(bin, unit), each)}));
  if (!begin || !end)
    return {};
  Exprs spread = graph::getShape(begin);
  spread.push_back(one);
  Value place = e.iota({one, one, size}, 2, element);
  Value members = e.op<graph::AndOp>(
      {e.compare(Predicate::ge, place, e.reshape(begin, spread)),
       e.compare(Predicate::lt, place, e.reshape(end, spread))});
  return {members, e.compare(Predicate::le, end, begin)};
}

/// The largest element of each bin of each region, 0 of a bin without any: of
/// rows first, so that no element is compared for each column of bins.
static llvm::LogicalResult maxRoiPool(Node &n, Emitter &e) {
  Value x = n.input(0), regions = e.widen(n.input(1));
  auto pooled = n.integers("pooled_shape");
  if (failed(n.needsRank(0, 4, 4)) || failed(n.needsRank(1, 2, 2)) || !regions)
    return llvm::failure();
  if (!pooled || pooled->size() != 2 || pooled->front() < 1 ||
      pooled->back() < 1 || std::max((*pooled)[0], (*pooled)[1]) > maxDimension)
    return e.fail("attribute 'pooled_shape' has to be a height and a width");
  if (!e.agree(graph::getShape(regions)[1], e.number(5), "reads bounds"))
    return e.fail("regions have an image and four bounds each, not " +
                  e.describe(n.input(1).getType()));
  Exprs shape = graph::getShape(x);
  AffineExpr count = graph::getShape(regions)[0], one = e.number(1),
             height = e.number((*pooled)[0]), width = e.number((*pooled)[1]);
  double scale = n.number("spatial_scale", 1);
  Bins rows = binsOf(regions, 2, (*pooled)[0], shape[2], scale, e),
       columns = binsOf(regions, 1, (*pooled)[1], shape[3], scale, e);
  // Of one image nothing is copied.
  bool isSingle = shape[0] == one;
  Value image =
      e.reshape(sliceAlong(regions, 1, {e.number(0), one, 1}, e), {count});
  Value images = isSingle ? x
                          : e.op<graph::GatherOp>(
                                {x, e.cast(image, e.getBuilder().getI64Type())},
                                e.attr("axis", int64_t(0)));
  Value lowest = e.scalar(lowestOf(elementOf(x)), elementOf(x));
  auto largest = [&](Value members, const Exprs &as, Value of,
                     const Exprs &dims, int64_t axis) {
    return e.reduce(
        graph::ReduceKind::max,
        e.select(e.reshape(members, as), e.reshape(of, dims), lowest), axis,
        false);
  };
  Value high =
      largest(rows.members, {count, one, height, shape[2], one}, images,
              {isSingle ? one : count, shape[1], one, shape[2], shape[3]}, 3);
  Value y = largest(columns.members, {count, one, one, width, shape[3]}, high,
                    {count, shape[1], height, one, shape[3]}, 4);
  Value isEmpty =
      e.op<graph::OrOp>({e.reshape(rows.isEmpty, {count, one, height, one}),
                         e.reshape(columns.isEmpty, {count, one, one, width})});
  return n.yield(e.select(isEmpty, e.scalar(0.0, elementOf(x)), y));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::samplingRows() {
  static const Row rows[] = {
      {"", "GridSample", 16, 22, gridSample},
      {"", "AffineGrid", 20, 20, affineGrid},
      {"", "DeformConv", 19, 22, deformConv},
      {"", "RoiAlign", 10, 22, roiAlign},
      {"", "MaxRoiPool", 1, 22, maxRoiPool},
  };
  return rows;
}
