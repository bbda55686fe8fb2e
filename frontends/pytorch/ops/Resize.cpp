// Interpolation between elements.
#include "frontends/common/builders/Resize.h"
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

/// Corners are aligned by the scale alone: filters lie where they would without
/// that.
static LogicalResult alignFilters(Call &c, Resizing &how, const Exprs &shape) {
  // Of one element: all of the input is at its beginning.
  constexpr double endless = 1e18;
  how.coordinates = CoordinateMode::half_pixel;
  for (auto [i, axis] : llvm::enumerate(how.axes)) {
    auto from = graph::constantOf(shape[axis]),
         to = graph::constantOf(how.sizes[i]);
    if (!from || !to)
      return c.fail("antialiasing needs sizes that are known",
                    "fix them with --shape");
    how.scales[i] = *from > 1 && *to > 1
                        ? static_cast<double>(*to - 1) / double(*from - 1)
                        : endless;
  }
  return llvm::success();
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
  if (how.coordinates == CoordinateMode::align_corners) {
    how.scales.assign(rank - 2, 0);
    if (how.antialias && failed(alignFilters(c, how, graph::getShape(x))))
      return llvm::failure();
  }
  bool isBytes = how.mode != ResizeMode::nearest && !isFloat(x);
  return c.yield(isBytes ? buildByteResize(x, how, e) : buildResize(x, how, e));
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
  };
  return rows;
}
