// Interpolation.
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Interpolation.h"
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
  /// Coordinate mode tf_crop_and_resize.
  bool crop = false;
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

/// The target's scales and sizes, from `scales`.
static llvm::LogicalResult sizesOf(Node &n, Emitter &e,
                                   llvm::ArrayRef<double> scales,
                                   Target &target, Value input = {}) {
  if (scales.size() != target.axes.size())
    return e.fail("has " + Twine(scales.size()) + " scales for " +
                  Twine(target.axes.size()) + " dimensions");
  target.scales.assign(scales.begin(), scales.end());
  Exprs shape = graph::getShape(input ? input : n.input(0));
  for (auto [axis, scale] : llvm::zip(target.axes, target.scales)) {
    target.sizes.push_back(scaled(e, shape[axis], scale));
    if (!target.sizes.back())
      return llvm::failure();
  }
  return llvm::success();
}

static Value resizeByScales(Value input, Node &n, Emitter &e,
                            llvm::ArrayRef<double> scales,
                            SmallVector<int64_t> axes,
                            const Interpolation &how) {
  Target target{std::move(axes), {}, {}};
  if (failed(sizesOf(n, e, scales, target, input)))
    return {};
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
  if (n.sinceVersion() < 7)
    scales = {1, 1, n.number("height_scale"), n.number("width_scale")};
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
  bool crop = coordinates == "tf_crop_and_resize";
  if (crop)
    coordinates = "align_corners";
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
  return Interpolation{*mode, *transformation, *nearest, crop};
}

/// What no single tap or pair of taps does: wide filters where elements are
/// left out, and parts of the input. Along each axis a product with a matrix.
static Value resizeByMatrices(Node &n, Emitter &e, const Target &target,
                              const Interpolation &how) {
  Value x = n.input(0);
  if (!isFloat(x))
    return e.fail("antialias and tf_crop_and_resize are not supported for "
                  "integers",
                  "cast to float first");
  SmallVector<double> roi;
  if (how.crop) {
    auto given = n.constantNumbers(1);
    if (failed(given))
      return {};
    roi = *given;
    if (roi.size() != 2 * target.axes.size())
      return e.fail("the region of interest has to have a start and an end an "
                    "axis");
  }
  mlir::Type element = elementOf(x);
  x = e.cast(e.widen(x), e.getBuilder().getF32Type());
  for (auto [i, axis] : llvm::enumerate(target.axes)) {
    if (!x)
      return {};
    Exprs shape = graph::getShape(x);
    auto from = graph::constantOf(shape[axis]),
         to = graph::constantOf(target.sizes[i]);
    bool whole = !how.crop || (roi[i] == 0 && roi[i + target.axes.size()] == 1);
    if (whole && shape[axis] == target.sizes[i] &&
        (target.scales[i] == 0 || target.scales[i] == 1))
      continue;
    constexpr int64_t maxMatrix = int64_t(1) << 24;
    if (!from || !to || *from < 1 || *from > maxMatrix || *to > maxMatrix ||
        *from * *to > maxMatrix)
      return e.fail(
          "antialias and tf_crop_and_resize need sizes that are known",
          "fix them with --shape");
    AxisInterpolation a;
    a.mode = how.mode;
    a.coordinates = how.coordinates;
    a.nearest = how.nearest;
    a.antialias = n.flag("antialias");
    a.excludeOutside = n.flag("exclude_outside");
    a.cubicCoefficient = n.number("cubic_coeff_a", -0.75);
    a.from = *from;
    a.to = *to;
    a.scale = target.scales[i] ? target.scales[i] : double(*to) / double(*from);
    a.crop = how.crop;
    if (how.crop) {
      a.cropStart = roi[i];
      a.cropEnd = roi[i + target.axes.size()];
    }
    AxisWeights weights = weightsOf(a);
    auto f32 = e.getBuilder().getF32Type();
    Value matrix = e.constant(mlir::DenseElementsAttr::get(
        mlir::RankedTensorType::get({1, *to, *from}, f32),
        llvm::ArrayRef<float>(weights.values)));
    Exprs result = shape;
    result[axis] = target.sizes[i];
    Value columns = e.reshape(
        x, {productOf(llvm::ArrayRef(shape).take_front(axis), e.getContext()),
            shape[axis],
            productOf(llvm::ArrayRef(shape).drop_front(axis + 1),
                      e.getContext())});
    x = e.reshape(e.op<graph::MatmulOp>({matrix, columns}), result);
    if (!llvm::is_contained(weights.outside, true))
      continue;
    SmallVector<bool> outside(weights.outside.begin(), weights.outside.end());
    SmallVector<int64_t> along(shape.size(), 1);
    along[axis] = *to;
    Value mask = e.constant(mlir::DenseElementsAttr::get(
        mlir::RankedTensorType::get(along, e.getBuilder().getI1Type()),
        outside));
    x = e.select(mask, e.scalar(n.number("extrapolation_value"), f32), x);
  }
  return e.cast(x, element);
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
    if (how->crop)
      return e.fail("tf_crop_and_resize with scales is not supported",
                    "export with sizes");
    if (n.flag("antialias") &&
        llvm::any_of(*scales, [](double s) { return s < 1; })) {
      if (failed(sizesOf(n, e, *scales, target)))
        return llvm::failure();
      return n.yield(resizeByMatrices(n, e, target, *how));
    }
    return n.yield(
        resizeByScales(n.input(0), n, e, *scales, target.axes, *how));
  }
  if (!isGiven(3))
    return e.fail("has neither scales nor sizes");
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
  return n.yield(how->crop || n.flag("antialias")
                     ? resizeByMatrices(n, e, target, *how)
                     : resizeTo(n.input(0), n, e, target, *how));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::resizeRows() {
  static const Row rows[] = {
      {"", "Upsample", 1, 10, upsample},
      {"", "Resize", 10, 10, upsample},
      {"", "Resize", 11, 19, resize},
  };
  return rows;
}
