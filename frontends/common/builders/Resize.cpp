#include "frontends/common/builders/Resize.h"
#include "frontends/common/builders/Interpolation.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::Value;

static Value resizeByTaps(Value input, const Resizing &how, Emitter &e) {
  Exprs shape = graph::getShape(input), dims = shape;
  // Axes that keep their extent are not touched.
  SmallVector<std::pair<int64_t, double>> touched;
  for (auto [axis, scale, size] :
       llvm::zip_equal(how.axes, how.scales, how.sizes)) {
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
      e.attr("cubic_coeff", how.cubicCoefficient)};
  if (how.excludeOutside)
    attributes.push_back(e.unit("exclude_outside"));
  if (how.byRatio)
    attributes.push_back(e.unit("by_ratio"));
  return e.opTo<graph::ResizeOp>(e.type(dims, elementOf(input)), {input},
                                 attributes);
}

Value charonia::frontend::weighAlong(Value x, int64_t axis,
                                     llvm::ArrayRef<float> weights, int64_t to,
                                     Emitter &e) {
  if (!x)
    return {};
  auto f32 = e.getBuilder().getF32Type();
  Exprs shape = graph::getShape(x), result = shape;
  Value matrix = e.constant(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get(
          {1, to,
           static_cast<int64_t>(weights.size()) / std::max<int64_t>(to, 1)},
          f32),
      weights));
  result[axis] = e.number(to);
  Value columns = e.reshape(
      x,
      {productOf(llvm::ArrayRef(shape).take_front(axis), e.getContext()),
       shape[axis],
       productOf(llvm::ArrayRef(shape).drop_front(axis + 1), e.getContext())});
  return e.reshape(e.op<graph::MatmulOp>({matrix, columns}), result);
}

/// What no single tap or pair of taps does: wide filters where elements are
/// left out, and parts of the input. Along each axis a product with a matrix.
static Value resizeByMatrices(Value x, const Resizing &how, Emitter &e) {
  if (!isFloat(x))
    return e.fail("antialiasing and resizing of a part are not supported for "
                  "integers",
                  "cast to float first");
  const SmallVector<double> &roi = how.region;
  bool crop = !roi.empty();
  mlir::Type element = elementOf(x);
  x = e.cast(e.widen(x), e.getBuilder().getF32Type());
  for (auto [i, axis] : llvm::enumerate(how.axes)) {
    if (!x)
      return {};
    Exprs shape = graph::getShape(x);
    auto from = graph::constantOf(shape[axis]),
         to = graph::constantOf(how.sizes[i]);
    bool whole = !crop || (roi[i] == 0 && roi[i + how.axes.size()] == 1);
    if (whole && shape[axis] == how.sizes[i] &&
        (how.scales[i] == 0 || how.scales[i] == 1))
      continue;
    constexpr int64_t maxMatrix = int64_t(1) << 24;
    if (!from || !to || *from < 1 || *from > maxMatrix || *to > maxMatrix ||
        *from * *to > maxMatrix)
      return e.fail(
          "antialiasing and resizing of a part need sizes that are known",
          "fix them with --shape");
    AxisInterpolation a;
    a.mode = how.mode;
    a.coordinates = how.coordinates;
    a.nearest = how.nearest;
    a.antialias = how.antialias;
    a.excludeOutside = how.excludeOutside;
    a.cubicCoefficient = how.cubicCoefficient;
    a.from = *from;
    a.to = *to;
    a.scale = how.scales[i] ? how.scales[i] : double(*to) / double(*from);
    a.crop = crop;
    if (crop) {
      a.cropStart = roi[i];
      a.cropEnd = roi[i + how.axes.size()];
    }
    AxisWeights weights = weightsOf(a);
    auto f32 = e.getBuilder().getF32Type();
    x = weighAlong(x, axis, weights.values, *to, e);
    if (!llvm::is_contained(weights.outside, true))
      continue;
    SmallVector<bool> outside(weights.outside.begin(), weights.outside.end());
    SmallVector<int64_t> along(shape.size(), 1);
    along[axis] = *to;
    Value mask = e.constant(mlir::DenseElementsAttr::get(
        mlir::RankedTensorType::get(along, e.getBuilder().getI1Type()),
        outside));
    x = e.select(mask, e.scalar(how.outside, f32), x);
  }
  return e.cast(x, element);
}

Value charonia::frontend::buildResize(Value input, const Resizing &how,
                                      Emitter &e) {
  if (!input)
    return {};
  return how.antialias || !how.region.empty() ? resizeByMatrices(input, how, e)
                                              : resizeByTaps(input, how, e);
}
