// Interpolation.
#include "frontends/common/builders/Resize.h"
#include "frontends/onnx/Registry.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// `how` with scales, and the sizes that follow from them.
static llvm::LogicalResult setScales(Value input, Emitter &e,
                                     llvm::ArrayRef<SizeElement> scales,
                                     Resizing &how) {
  if (scales.size() != how.axes.size())
    return e.fail("has " + Twine(scales.size()) + " scales for " +
                  Twine(how.axes.size()) + " dimensions");
  Exprs shape = graph::getShape(input);
  for (auto [axis, scale] : llvm::zip(how.axes, scales)) {
    auto number = scale.constantNumber();
    if (number && (!(*number > 0) || *number > 1e6))
      return e.fail("a scale may not be " + Twine(std::to_string(*number)));
    how.scales.push_back(number.value_or(0));
    how.sizes.push_back(scaledSize(shape[axis], scale, e));
    if (!how.sizes.back())
      return e.fail("cannot tell the range of size " +
                        e.getSymbols().toString(shape[axis]) +
                        " times its scale",
                    "narrow the range of that size with --shape");
  }
  return llvm::success();
}

/// Scales that are known now, or follow from sizes.
static llvm::FailureOr<SmallVector<SizeElement>> readScales(Node &n, unsigned i,
                                                            Emitter &e) {
  if (isFloat(n.input(i)) && !e.constantOf(n.input(i)))
    if (SizeElements elements = e.evaluateNumbers(n.input(i));
        !elements.empty())
      return SmallVector<SizeElement>(elements.begin(), elements.end());
  auto numbers = n.constantNumbers(i);
  if (failed(numbers))
    return llvm::failure();
  return llvm::map_to_vector(*numbers, SizeElement::ofNumber);
}

static Value resizeByScales(Value input, Emitter &e,
                            llvm::ArrayRef<double> scales, Resizing how) {
  auto elements = llvm::map_to_vector(scales, SizeElement::ofNumber);
  if (failed(setScales(input, e, elements, how)))
    return {};
  return buildResize(input, how, e);
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
  Resizing down;
  down.axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.input(0))));
  down.mode = *mode;
  Resizing up = down;
  up.nearest = graph::NearestMode::ceil;
  SmallVector<double> grow(scales), shrink(scales);
  for (double &scale : grow)
    scale = std::max(scale, 1.0);
  for (double &scale : shrink)
    scale = std::min(scale, 1.0);
  if (*mode != graph::ResizeMode::nearest)
    return n.yield(resizeByScales(n.input(0), e, scales, down));
  Value grown = resizeByScales(n.input(0), e, grow, down);
  if (!grown)
    return llvm::failure();
  return n.yield(resizeByScales(grown, e, shrink, up));
}

static std::optional<graph::CoordinateMode>
toCoordinateMode(llvm::StringRef name) {
  using C = graph::CoordinateMode;
  return llvm::StringSwitch<std::optional<C>>(name)
      .Case("half_pixel", C::half_pixel)
      .Case("asymmetric", C::asymmetric)
      .Case("align_corners", C::align_corners)
      .Case("pytorch_half_pixel", C::half_pixel_or_zero)
      .Case("half_pixel_symmetric", C::half_pixel_symmetric)
      .Default(std::nullopt);
}

/// What attributes say; mode tf_crop_and_resize has its region.
static llvm::FailureOr<Resizing> readResizing(Node &n, Emitter &e) {
  auto mode = readMode(n, e);
  if (failed(mode))
    return llvm::failure();
  Resizing how;
  how.mode = *mode;
  how.axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.input(0))));
  if (auto given = n.integers("axes")) {
    auto axes = n.axes(*given, rankOf(n.input(0)));
    if (failed(axes))
      return llvm::failure();
    how.axes = *axes;
  }
  std::string coordinates = n.text("coordinate_transformation_mode");
  if (coordinates == "tf_crop_and_resize") {
    coordinates = "align_corners";
    auto region = n.constantNumbers(1);
    if (failed(region))
      return llvm::failure();
    if (region->empty() || region->size() != 2 * how.axes.size())
      return e.fail("the region of interest has to have a start and an end an "
                    "axis");
    how.region = *region;
    how.outside = n.number("extrapolation_value");
  }
  auto transformation = toCoordinateMode(coordinates);
  if (!transformation)
    return e.fail("coordinate_transformation_mode '" + coordinates +
                      "' is not supported",
                  "export with half_pixel, pytorch_half_pixel, asymmetric or "
                  "align_corners");
  std::string rounding = n.text("nearest_mode");
  auto nearest = graph::symbolizeNearestMode(rounding);
  if (!nearest)
    return e.fail("attribute 'nearest_mode' may not be '" + rounding + "'");
  how.coordinates = *transformation;
  how.nearest = *nearest;
  how.cubicCoefficient = n.number("cubic_coeff_a", -0.75);
  how.excludeOutside = n.flag("exclude_outside");
  how.antialias = n.flag("antialias");
  return how;
}

/// Sizes that keep the ratio of the extents: one scale for all axes.
static llvm::LogicalResult keepAspect(Node &n, Emitter &e, Resizing &how,
                                      bool larger) {
  std::optional<double> chosen;
  Exprs shape = graph::getShape(n.input(0));
  for (auto [axis, size] : llvm::zip(how.axes, how.sizes)) {
    auto from = graph::constantOf(shape[axis]), to = graph::constantOf(size);
    if (!from || !to || *from < 1)
      return e.fail("keep_aspect_ratio_policy needs sizes that are known",
                    "fix them with --shape");
    double scale = double(*to) / double(*from);
    chosen = !chosen  ? scale
             : larger ? std::max(*chosen, scale)
                      : std::min(*chosen, scale);
  }
  for (auto [i, axis] : llvm::enumerate(how.axes)) {
    how.scales[i] = *chosen;
    how.sizes[i] = e.number(static_cast<int64_t>(
        std::floor(*chosen * *graph::constantOf(shape[axis]) + 0.5)));
  }
  return llvm::success();
}

static llvm::LogicalResult resize(Node &n, Emitter &e) {
  auto how = readResizing(n, e);
  if (failed(how))
    return llvm::failure();
  auto isGiven = [&](unsigned i) {
    return n.has(i) && rankOf(n.input(i)) == 1 &&
           graph::getShape(n.input(i))[0] != e.number(0);
  };
  if (isGiven(2)) {
    auto scales = readScales(n, 2, e);
    if (failed(scales))
      return llvm::failure();
    if (!how->region.empty())
      return e.fail("tf_crop_and_resize with scales is not supported",
                    "export with sizes");
    if (failed(setScales(n.input(0), e, *scales, *how)))
      return llvm::failure();
    // Where nothing is left out there is nothing to filter.
    how->antialias &= llvm::any_of(*scales, [](const SizeElement &scale) {
      return scale.constantNumber().value_or(0) < 1;
    });
    how->computedScales.resize(scales->size());
    for (auto [k, scale] : llvm::enumerate(*scales))
      if (!scale.constantNumber())
        how->computedScales[k] = e.reshape(
            e.slice(n.input(2), e.number(int64_t(k)), 1, e.number(1)), {});
    return n.yield(buildResize(n.input(0), *how, e));
  }
  if (!isGiven(3))
    return e.fail("has neither scales nor sizes");
  auto sizes = n.known(3);
  if (failed(sizes))
    return llvm::failure();
  if (sizes->size() != how->axes.size())
    return e.fail("has " + Twine(sizes->size()) + " sizes for " +
                  Twine(how->axes.size()) + " dimensions");
  for (AffineExpr size : *sizes)
    if (auto known = graph::constantOf(size);
        known && (*known < 1 || *known > maxDimension))
      return e.fail("cannot resize to " + e.describe(*sizes));
  how->sizes = *sizes;
  how->scales.assign(sizes->size(), 0);
  std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return e.fail("attribute 'keep_aspect_ratio_policy' may not be '" + policy +
                  "'");
  if (policy != "stretch" &&
      failed(keepAspect(n, e, *how, policy == "not_smaller")))
    return llvm::failure();
  return n.yield(buildResize(n.input(0), *how, e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::resizeRows() {
  static const Row rows[] = {
      {"", "Upsample", 1, 10, upsample},
      {"", "Resize", 10, 10, upsample},
      {"", "Resize", 11, 19, resize},
  };
  return rows;
}
