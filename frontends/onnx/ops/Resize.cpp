// Interpolation.
#include "frontends/onnx/Registry.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// What is to be resized and how; one entry an axis.
struct Target {
  SmallVector<int64_t> axes;
  /// As ONNX gives them; 0 for the ratio of the extents.
  SmallVector<double> scales;
  Exprs sizes;
};

struct Interpolation {
  graph::ResizeMode mode = graph::ResizeMode::nearest;
  graph::CoordinateMode coordinates = graph::CoordinateMode::asymmetric;
  graph::NearestMode nearest = graph::NearestMode::floor;
};
} // namespace

/// floor(size * scale), in single precision as ONNX has it.
static AffineExpr scaled(Emitter &e, AffineExpr size, double scale) {
  if (!(scale > 0) || scale > 1e6)
    return e.fail("a scale may not be " + Twine(std::to_string(scale)));
  if (auto known = graph::constantOf(size))
    return e.number(
        static_cast<int64_t>(std::floor(float(*known) * float(scale))));
  constexpr int64_t denominator = 1024;
  double numerator = scale * denominator;
  if (numerator != std::floor(numerator))
    return e.fail(
        "size " + e.getSymbols().toString(size) + " times " +
            Twine(std::to_string(scale)) + " is not a plain fraction",
        "fix that size with --shape, or give the sizes instead of scales");
  int64_t common = std::gcd(static_cast<int64_t>(numerator), denominator);
  return graph::simplify((size * (static_cast<int64_t>(numerator) / common))
                             .floorDiv(denominator / common));
}

static Value resizeTo(Value input, Node &n, Emitter &e, const Target &target,
                      const Interpolation &how) {
  Exprs shape = graph::getShape(input), dims = shape;
  // Axes that keep their extent are not touched.
  SmallVector<std::pair<int64_t, double>> touched;
  for (auto [axis, scale, size] :
       llvm::zip(target.axes, target.scales, target.sizes)) {
    if (size == shape[axis] && (scale == 0 || scale == 1))
      continue;
    if (shape[axis] == e.number(0))
      return e.fail("cannot resize an empty dimension");
    dims[axis] = size;
    touched.push_back({axis, scale});
  }
  if (touched.empty())
    return input;
  llvm::sort(touched);
  SmallVector<int64_t> axes;
  SmallVector<double> scales;
  for (auto [axis, scale] : touched) {
    axes.push_back(axis);
    scales.push_back(scale);
  }
  mlir::MLIRContext *context = e.getContext();
  SmallVector<mlir::NamedAttribute> attributes = {
      e.attr("mode", graph::ResizeModeAttr::get(context, how.mode)),
      e.attr("axes", axes),
      e.attr("scales", e.getBuilder().getDenseF64ArrayAttr(scales)),
      e.attr("coordinates",
             graph::CoordinateModeAttr::get(context, how.coordinates)),
      e.attr("nearest", graph::NearestModeAttr::get(context, how.nearest)),
      e.attr("cubic_coeff", n.number("cubic_coeff_a", -0.75))};
  if (n.flag("exclude_outside"))
    attributes.push_back(e.unit("exclude_outside"));
  return e.opTo<graph::ResizeOp>(e.type(dims, elementOf(input)), {input},
                                 attributes);
}

static Value resizeByScales(Value input, Node &n, Emitter &e,
                            llvm::ArrayRef<double> scales,
                            SmallVector<int64_t> axes,
                            const Interpolation &how) {
  if (scales.size() != axes.size())
    return e.fail("has " + Twine(scales.size()) + " scales for " +
                  Twine(axes.size()) + " dimensions");
  Target target{std::move(axes), SmallVector<double>(scales), {}};
  for (auto [axis, scale] : llvm::zip(target.axes, target.scales)) {
    target.sizes.push_back(scaled(e, graph::getShape(input)[axis], scale));
    if (!target.sizes.back())
      return {};
  }
  return resizeTo(input, n, e, target, how);
}

static llvm::FailureOr<graph::ResizeMode> readMode(Node &n, Emitter &e) {
  std::string text = n.text("mode", "nearest");
  auto mode = graph::symbolizeResizeMode(text == "bilinear" ? "linear" : text);
  if (!mode)
    return e.fail("attribute 'mode' has to be nearest, linear or cubic, not '" +
                  text + "'");
  return *mode;
}

/// Upsample, and Resize of opset 10: asymmetric coordinates. What the standard
/// leaves open, ONNX Runtime settled: the nearest element is the one below
/// where an axis grows, the one above where it shrinks.
static llvm::LogicalResult upsample(Node &n, Emitter &e) {
  auto mode = readMode(n, e);
  SmallVector<double> scales = n.numbersOf("scales");
  if (n.has(1)) {
    auto operand = n.constantNumbers(1);
    if (failed(operand))
      return llvm::failure();
    scales = *operand;
  }
  if (failed(mode))
    return llvm::failure();
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.input(0))));
  SmallVector<double> grow(scales), shrink(scales);
  for (double &scale : grow)
    scale = std::max(scale, 1.0);
  for (double &scale : shrink)
    scale = std::min(scale, 1.0);
  Interpolation down{*mode}, up{*mode};
  up.nearest = graph::NearestMode::ceil;
  if (*mode != graph::ResizeMode::nearest)
    return n.yield(resizeByScales(n.input(0), n, e, scales, axes, down));
  Value grown = resizeByScales(n.input(0), n, e, grow, axes, down);
  if (!grown)
    return llvm::failure();
  return n.yield(resizeByScales(grown, n, e, shrink, axes, up));
}

static llvm::FailureOr<Interpolation> readInterpolation(Node &n, Emitter &e) {
  auto mode = readMode(n, e);
  if (failed(mode))
    return llvm::failure();
  std::string coordinates = n.text("coordinate_transformation_mode");
  auto transformation = graph::symbolizeCoordinateMode(coordinates);
  if (!transformation)
    return e.fail("coordinate_transformation_mode '" + coordinates +
                      "' is not supported",
                  "export with half_pixel, pytorch_half_pixel, asymmetric or "
                  "align_corners");
  std::string rounding = n.text("nearest_mode");
  auto nearest = graph::symbolizeNearestMode(rounding);
  if (!nearest)
    return e.fail("attribute 'nearest_mode' may not be '" + rounding + "'");
  return Interpolation{*mode, *transformation, *nearest};
}

/// Sizes that keep the ratio of the extents: one scale for all axes.
static llvm::LogicalResult keepAspect(Node &n, Emitter &e, Target &target,
                                      bool larger) {
  std::optional<double> chosen;
  Exprs shape = graph::getShape(n.input(0));
  for (auto [axis, size] : llvm::zip(target.axes, target.sizes)) {
    auto from = graph::constantOf(shape[axis]), to = graph::constantOf(size);
    if (!from || !to || *from < 1)
      return e.fail("keep_aspect_ratio_policy needs sizes that are known",
                    "fix them with --shape");
    double scale = double(*to) / double(*from);
    chosen = !chosen  ? scale
             : larger ? std::max(*chosen, scale)
                      : std::min(*chosen, scale);
  }
  for (auto [i, axis] : llvm::enumerate(target.axes)) {
    target.scales[i] = *chosen;
    target.sizes[i] = e.number(static_cast<int64_t>(
        std::floor(*chosen * *graph::constantOf(shape[axis]) + 0.5)));
  }
  return llvm::success();
}

static llvm::LogicalResult resize(Node &n, Emitter &e) {
  auto how = readInterpolation(n, e);
  if (failed(how))
    return llvm::failure();
  Target target;
  target.axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.input(0))));
  if (auto given = n.integers("axes")) {
    auto axes = n.axes(*given, rankOf(n.input(0)));
    if (failed(axes))
      return llvm::failure();
    target.axes = *axes;
  }
  auto isGiven = [&](unsigned i) {
    return n.has(i) && rankOf(n.input(i)) == 1 &&
           graph::getShape(n.input(i))[0] != e.number(0);
  };
  if (isGiven(2)) {
    auto scales = n.constantNumbers(2);
    if (failed(scales))
      return llvm::failure();
    if (n.flag("antialias") &&
        llvm::any_of(*scales, [](double s) { return s < 1; }))
      return e.fail("antialias is not supported", "export with antialias = 0");
    return n.yield(
        resizeByScales(n.input(0), n, e, *scales, target.axes, *how));
  }
  if (!isGiven(3))
    return e.fail("has neither scales nor sizes");
  if (n.flag("antialias"))
    return e.fail("antialias is not supported", "export with antialias = 0");
  auto sizes = n.known(3);
  if (failed(sizes))
    return llvm::failure();
  if (sizes->size() != target.axes.size())
    return e.fail("has " + Twine(sizes->size()) + " sizes for " +
                  Twine(target.axes.size()) + " dimensions");
  for (AffineExpr size : *sizes)
    if (auto known = graph::constantOf(size);
        known && (*known < 1 || *known > maxDimension))
      return e.fail("cannot resize to " + e.describe(*sizes));
  target.sizes = *sizes;
  target.scales.assign(sizes->size(), 0);
  std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return e.fail("attribute 'keep_aspect_ratio_policy' may not be '" + policy +
                  "'");
  if (policy != "stretch" &&
      failed(keepAspect(n, e, target, policy == "not_smaller")))
    return llvm::failure();
  return n.yield(resizeTo(n.input(0), n, e, target, *how));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::resizeRows() {
  static const Row rows[] = {
      {"", "Upsample", 7, 10, upsample},
      {"", "Resize", 10, 10, upsample},
      {"", "Resize", 11, 19, resize},
  };
  return rows;
}
