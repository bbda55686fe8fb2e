// Interpolation, between elements and at coordinates that are data.
#include "frontends/common/builders/Resize.h"
#include "frontends/common/builders/Sampling.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::CoordinateMode;
using graph::NearestMode;
using graph::ResizeMode;

/// The factors that coordinates are computed with; 0 for the ratio of the
/// extents. With several dimensions each has an argument of its own, or all are
/// in a list.
static SmallVector<double> readScales(Call &c, size_t spatial) {
  if (c.has("scale_factors")) {
    SmallVector<double> scales = c.numbers("scale_factors");
    if (scales.size() != spatial)
      c.fail("has " + Twine(scales.size()) + " scale factors for " +
             Twine(spatial) + " dimensions");
    return scales;
  }
  if (spatial == 1)
    return {c.number("scales", 0)};
  SmallVector<double> scales;
  for (llvm::StringRef name : {"scales_d", "scales_h", "scales_w"})
    if (spatial == 3 || name != "scales_d")
      scales.push_back(c.number(name, 0));
  return scales;
}

static LogicalResult resizeBy(Call &c, Resizing how) {
  Emitter &e = c.getEmitter();
  bool isList = llvm::StringRef(c.getNode().target).ends_with(".vec");
  Value x = c.tensor(isList ? "input" : "self");
  Exprs shape = c.resultShape();
  c.ignore({"output_size", "scale_factors"});
  int64_t rank = rankOf(x);
  if (!x || e.failed() || rank < 3 || rank > 5 ||
      static_cast<int64_t>(shape.size()) != rank)
    return c.fail("needs 3 to 5 dimensions");
  how.byRatio = true;
  how.scales = readScales(c, rank - 2);
  for (double scale : how.scales)
    if (!(scale >= 0) || scale > 1e6)
      return c.fail("a scale may not be " + Twine(std::to_string(scale)));
  for (int64_t d = 2; d < rank; ++d) {
    how.axes.push_back(d);
    how.sizes.push_back(shape[d]);
  }
  if (how.mode != ResizeMode::nearest && c.flag("align_corners", false))
    how.coordinates = CoordinateMode::align_corners;
  if (how.coordinates == CoordinateMode::align_corners)
    how.scales.assign(rank - 2, 0);
  return c.yield(buildResize(x, how, e));
}
template <ResizeMode mode, bool antialias = false>
static LogicalResult interpolate(Call &c) {
  Resizing how;
  how.mode = mode;
  how.coordinates = CoordinateMode::half_pixel;
  how.antialias = how.excludeOutside = antialias;
  // As in the library that it was to agree with.
  if (antialias)
    how.cubicCoefficient = -0.5;
  return resizeBy(c, how);
}
/// The element below; of nearest_exact that whose center is nearest.
template <bool exact> static LogicalResult nearest(Call &c) {
  Resizing how;
  how.coordinates =
      exact ? CoordinateMode::half_pixel : CoordinateMode::asymmetric;
  how.nearest = exact ? NearestMode::round_prefer_ceil : NearestMode::floor;
  return resizeBy(c, how);
}

static LogicalResult gridSample(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), grid = c.tensor("grid");
  int64_t mode = c.integer("interpolation_mode"),
          padding = c.integer("padding_mode");
  bool align = c.flag("align_corners");
  if (!x || !grid || rankOf(x) < 4 || rankOf(x) > 5 ||
      rankOf(grid) != rankOf(x))
    return c.fail("needs an input and a grid of 4 or 5 dimensions");
  constexpr ResizeMode modes[] = {ResizeMode::linear, ResizeMode::nearest,
                                  ResizeMode::cubic};
  constexpr SamplePadding paddings[] = {
      SamplePadding::zeros, SamplePadding::border, SamplePadding::reflection};
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
    return c.fail("interpolation mode " + Twine(mode) + " with padding mode " +
                  Twine(padding) + " is not supported");
  return c.yield(
      buildGridSample(x, grid, modes[mode], paddings[padding], align, e));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::resizeRows() {
  constexpr auto linear = interpolate<ResizeMode::linear>,
                 cubic = interpolate<ResizeMode::cubic>,
                 filtered = interpolate<ResizeMode::linear, true>,
                 cubicFiltered = interpolate<ResizeMode::cubic, true>;
  static const Row rows[] = {
      {"aten.upsample_nearest1d.default", nearest<false>},
      {"aten.upsample_nearest1d.vec", nearest<false>},
      {"aten.upsample_nearest2d.default", nearest<false>},
      {"aten.upsample_nearest2d.vec", nearest<false>},
      {"aten.upsample_nearest3d.default", nearest<false>},
      {"aten.upsample_nearest3d.vec", nearest<false>},
      {"aten._upsample_nearest_exact1d.default", nearest<true>},
      {"aten._upsample_nearest_exact1d.vec", nearest<true>},
      {"aten._upsample_nearest_exact2d.default", nearest<true>},
      {"aten._upsample_nearest_exact2d.vec", nearest<true>},
      {"aten._upsample_nearest_exact3d.default", nearest<true>},
      {"aten._upsample_nearest_exact3d.vec", nearest<true>},
      {"aten.upsample_linear1d.default", linear},
      {"aten.upsample_linear1d.vec", linear},
      {"aten.upsample_bilinear2d.default", linear},
      {"aten.upsample_bilinear2d.vec", linear},
      {"aten.upsample_trilinear3d.default", linear},
      {"aten.upsample_trilinear3d.vec", linear},
      {"aten.upsample_bicubic2d.default", cubic},
      {"aten.upsample_bicubic2d.vec", cubic},
      {"aten._upsample_bilinear2d_aa.default", filtered},
      {"aten._upsample_bilinear2d_aa.vec", filtered},
      {"aten._upsample_bicubic2d_aa.default", cubicFiltered},
      {"aten._upsample_bicubic2d_aa.vec", cubicFiltered},
      {"aten.grid_sampler.default", gridSample},
      {"aten.grid_sampler_2d.default", gridSample},
      {"aten.grid_sampler_3d.default", gridSample},
  };
  return rows;
}
