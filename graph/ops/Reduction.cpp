#include "graph/ir/FormedOps.h"
#include "graph/ops/Common.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>

using namespace mlir;
using namespace charonia::graph;

/// The shape that is left of `input` when `axes` are combined.
static FailureOr<Exprs> reducedShape(std::optional<Location> location,
                                     Value input, ArrayRef<int64_t> axes,
                                     bool keepdims) {
  if (!hasSymbolicShape(input.getType()))
    return emitOptionalError(location, "the operand's shape is not known: ",
                             typeToString(input.getType()));
  Exprs shape = getShape(input), result;
  if (!areAxes(axes, shape.size()))
    return emitOptionalError(location,
                             "axes must increase and lie in the rank of ",
                             shapeToString(input.getType()));
  for (auto [i, dim] : llvm::enumerate(shape)) {
    if (!llvm::is_contained(axes, (int64_t)i))
      result.push_back(dim);
    else if (keepdims)
      result.push_back(getAffineConstantExpr(1, input.getContext()));
  }
  return result;
}

static AffineExpr extentOf(Value input, ArrayRef<int64_t> axes) {
  Exprs shape = getShape(input), reduced;
  for (int64_t axis : axes)
    reduced.push_back(shape[axis]);
  return numElements(reduced, input.getContext());
}

/// A scalar constant, rounded to its type.
static Value scalarTensor(OpBuilder &builder, Location location,
                          FloatType element, double value) {
  APFloat rounded(value);
  bool inexact;
  rounded.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &inexact);
  return ConstantOp::create(
      builder, location,
      DenseElementsAttr::get(RankedTensorType::get({}, element), rounded));
}

static SmallVector<DimKind> rowKinds(Value result, ArrayRef<int64_t> axes) {
  SmallVector<DimKind> kinds(getShape(result).size(), DimKind::Parallel);
  for (int64_t axis : axes)
    kinds[axis] = DimKind::Whole;
  return kinds;
}

// reduce

CHARONIA_INFER(ReduceOp) {
  ReduceOp::Adaptor op(operands, attributes, properties, regions);
  auto shape =
      reducedShape(location, operands[0], op.getAxes(), op.getKeepdims());
  if (failed(shape))
    return failure();
  types.push_back(makeType(*shape, getElementTypeOrSelf(operands[0])));
  return success();
}

AffineExpr ReduceOp::getReductionExtent() {
  return extentOf(getInput(), getAxes());
}

SymbolicTensor ReduceOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  auto from = cast<RankedTensorType>(getInput().getType()),
       to = cast<RankedTensorType>(getType());
  if (!operands[0] || !from.hasStaticShape() || !to.hasStaticShape())
    return {};
  MLIRContext *context = getContext();
  bool extreme = getKind() == ReduceKind::max || getKind() == ReduceKind::min;
  AffineExpr start =
      getAffineConstantExpr(getKind() == ReduceKind::prod, context);
  SmallVector<AffineExpr> elements(to.getNumElements(),
                                   extreme ? AffineExpr() : start);
  SmallVector<bool> seen(elements.size(), false),
      unknown(elements.size(), false);
  int64_t position = 0;
  forEachElement(from, [&](ArrayRef<int64_t> at) {
    AffineExpr x = (*operands[0].elements)[position++];
    int64_t target = 0;
    for (auto [d, size] : llvm::enumerate(from.getShape()))
      if (!llvm::is_contained(getAxes(), (int64_t)d))
        target = target * size + at[d];
    AffineExpr &sum = elements[target];
    if (!x || unknown[target]) {
      unknown[target] = true;
    } else if (getKind() == ReduceKind::sum) {
      sum = sum + x;
    } else if (getKind() == ReduceKind::prod) {
      sum = sum * x;
    } else if (!seen[target]) {
      sum = x;
    } else {
      bool less = isNonNegative(sum - x), more = isNonNegative(x - sum);
      unknown[target] = !less && !more;
      if ((getKind() == ReduceKind::max) == more)
        sum = x;
    }
    seen[target] = true;
  });
  for (auto [i, e] : llvm::enumerate(elements))
    e = unknown[i] || !e ? AffineExpr() : simplify(e);
  return {std::move(elements)};
}

/// A reduction of extents that are all 1 is a reshape.
static LogicalResult reshapeUnitReduction(ReduceOp op,
                                          PatternRewriter &rewriter) {
  if (constantOf(op.getReductionExtent()) != 1)
    return failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
  return success();
}

Value ReduceOp::reduceAlong(OpBuilder &builder, Value input,
                            ArrayRef<int64_t> axes, bool keepDims) {
  return create(builder, getLoc(), getKind(), input, axes, keepDims);
}

void ReduceOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *) {
  patterns.add(reshapeUnitReduction);
}

// arg_reduce

CHARONIA_INFER(ArgReduceOp) {
  ArgReduceOp::Adaptor op(operands, attributes, properties, regions);
  int64_t axis = op.getAxis();
  auto shape = reducedShape(location, operands[0], axis, op.getKeepdims());
  if (failed(shape))
    return failure();
  types.push_back(makeType(*shape, IntegerType::get(context, 64)));
  return success();
}

AffineExpr ArgReduceOp::getReductionExtent() {
  return extentOf(getInput(), (int64_t)getAxis());
}

// pool

CHARONIA_INFER(PoolOp) {
  PoolOp::Adaptor op(operands, attributes, properties, regions);
  if (!hasSymbolicShape(operands[0].getType()))
    return emitOptionalError(location, "the operand's shape is not known");
  Exprs result = getShape(operands[0]);
  size_t spatial = op.getKernel().size(), first = op.getChannelsLast() ? 1 : 2;
  auto fail = [&](const Twine &what) {
    return emitOptionalError(location, "pool of ",
                             shapeToString(operands[0].getType()), ": ", what);
  };
  if (spatial < 1 || spatial > 3 || result.size() != spatial + 2)
    return fail(
        "needs 1 to 3 spatial dimensions, a batch and a channel dimension");
  if (op.getStrides().size() != spatial ||
      op.getDilations().size() != spatial || op.getPads().size() != 2 * spatial)
    return fail("kernel, strides, pads and dilations do not fit the spatial "
                "dimensions");
  for (size_t i = 0; i < spatial; ++i) {
    int64_t kernel = op.getKernel()[i], stride = op.getStrides()[i],
            dilation = op.getDilations()[i], low = op.getPads()[i],
            high = op.getPads()[spatial + i];
    if (kernel < 1 || stride < 1 || dilation < 1 || low < 0 || high < 0)
      return fail(
          "kernel, strides and dilations must be positive, pads not negative");
    int64_t window;
    if (llvm::MulOverflow(kernel - 1, dilation, window))
      return fail("the window is too large");
    AffineExpr room = result[first + i] + (low + high - window - 1);
    AffineExpr extent = room.floorDiv(stride) + 1;
    if (op.getCeilMode()) {
      // Rounded up, but no window starts in the high padding: window n starts
      // at n * stride, which must be below input + low.
      AffineExpr inside = result[first + i] + low;
      AffineExpr last = room + stride;
      extent =
          (high - window - 1 + stride <= 0 ? last : inside).ceilDiv(stride);
    }
    extent = simplify(extent);
    if (constantOf(extent).value_or(0) < 0)
      return fail("the window is larger than the padded input");
    result[first + i] = extent;
  }
  types.push_back(makeType(result, getElementTypeOrSelf(operands[0])));
  return success();
}

AffineExpr PoolOp::getReductionExtent() {
  AffineExpr extent = getAffineConstantExpr(1, getContext());
  for (int64_t k : getKernel())
    extent = extent * k;
  return extent;
}

LogicalResult PoolOp::verify() {
  if (getPadValue() && (getKind() != PoolKind::max || getCeilMode()))
    return emitOpError(
        "has a pad_value, which needs kind max and no ceil_mode");
  return success();
}

/// Whether every number of the type is exact as a double.
static bool fitsDouble(Type element) {
  return isa<FloatType>(element) || element.getIntOrFloatBitWidth() <= 32;
}

std::optional<SmallVector<NamedAttribute>>
PoolOp::getPaddedForm(unsigned, const Padding &padding) {
  Type element = getElementTypeOrSelf(getInput());
  auto pads = windowPads(padding, getPads(), spatialDim(0));
  // Rounding up depends on where the padding begins.
  if (!pads || getCeilMode() || !fitsDouble(element))
    return std::nullopt;
  bool isPadded = llvm::any_of(getPads(), [](int64_t p) { return p != 0; });
  Builder builder(getContext());
  SmallVector<NamedAttribute> attributes{
      {getPadsAttrName(), builder.getDenseI64ArrayAttr(*pads)}};
  switch (getKind()) {
  case PoolKind::sum:
    if (padding.value != 0)
      return std::nullopt;
    break;
  case PoolKind::average:
    if (padding.value != 0 || (isPadded && !getCountIncludePad()))
      return std::nullopt;
    attributes.emplace_back(getCountIncludePadAttrName(),
                            builder.getUnitAttr());
    break;
  case PoolKind::max: {
    double least = isa<FloatType>(element)
                       ? -std::numeric_limits<double>::infinity()
                       : std::nan("");
    double outside = getPadValue() ? getPadValue()->convertToDouble() : least;
    if (isPadded && outside != padding.value)
      return std::nullopt;
    if (getPadValue() || padding.value != least)
      attributes.emplace_back(getPadValueAttrName(),
                              builder.getF64FloatAttr(padding.value));
    break;
  }
  }
  return attributes;
}

SmallVector<WindowSide> PoolOp::getWindow() {
  SmallVector<WindowSide> sides;
  for (auto [i, extent, stride] : llvm::enumerate(getKernel(), getStrides()))
    sides.push_back({spatialDim(i), extent, stride});
  return sides;
}

SmallVector<int64_t> PoolOp::getCells() {
  auto isOne = [](int64_t x) { return x == 1; };
  auto isNone = [](int64_t x) { return x == 0; };
  if (getKind() != PoolKind::sum || getKernel() != getStrides() ||
      !llvm::all_of(getDilations(), isOne) || !llvm::all_of(getPads(), isNone))
    return {};
  Exprs shape = getShape(getInput());
  SmallVector<int64_t> cells(shape.size(), 1);
  for (auto [i, extent] : llvm::enumerate(getKernel())) {
    unsigned dim = spatialDim(i);
    // What is behind the last window as a whole counts in ceil mode alone.
    if (!getCeilMode() && constantOf(simplify(shape[dim] % extent)) != 0)
      return {};
    cells[dim] = extent;
  }
  return cells;
}

/// Counts of an average are products of those along the dimensions, so a mean
/// of means is the mean.
Value PoolOp::slideAlong(OpBuilder &builder, Value input,
                         ArrayRef<unsigned> sides) {
  size_t spatial = getKernel().size();
  SmallVector<int64_t> kernel(spatial, 1), strides(spatial, 1),
      dilations(spatial, 1), pads(2 * spatial, 0);
  for (unsigned i : sides) {
    kernel[i] = getKernel()[i];
    strides[i] = getStrides()[i];
    dilations[i] = getDilations()[i];
    pads[i] = getPads()[i];
    pads[spatial + i] = getPads()[spatial + i];
  }
  return create(builder, getLoc(), getKind(), input, kernel, strides, pads,
                dilations, getCeilMode(), getCountIncludePad(),
                getChannelsLast(), getPadValueAttr());
}

// softmax, normalize

CHARONIA_INFER(SoftmaxOp) {
  SoftmaxOp::Adaptor op(operands, attributes, properties, regions);
  if (failed(reducedShape(location, operands[0], (int64_t)op.getAxis(), false)))
    return failure();
  types.push_back(operands[0].getType());
  return success();
}
AffineExpr SoftmaxOp::getReductionExtent() {
  return extentOf(getInput(), getReductionAxes());
}
SmallVector<DimKind> PoolOp::getResultDimKinds() {
  SmallVector<DimKind> kinds(getShape(getResult()).size(), DimKind::Parallel);
  for (unsigned i = 0; i < getKernel().size(); ++i)
    kinds[spatialDim(i)] = DimKind::Window;
  return kinds;
}

SmallVector<DimKind> SoftmaxOp::getResultDimKinds() {
  return rowKinds(getResult(), getReductionAxes());
}

CHARONIA_INFER(NormalizeOp) {
  NormalizeOp::Adaptor op(operands, attributes, properties, regions);
  if (failed(reducedShape(location, operands[0], op.getAxes(), false)))
    return failure();
  types.push_back(operands[0].getType());
  return success();
}
AffineExpr NormalizeOp::getReductionExtent() {
  return extentOf(getInput(), getReductionAxes());
}
SmallVector<DimKind> NormalizeOp::getResultDimKinds() {
  return rowKinds(getResult(), getReductionAxes());
}

// Ranges

std::optional<RealRange> ReduceOp::getRange(ArrayRef<RealRange> operands) {
  // Nothing to combine gives an infinite maximum or minimum.
  auto known = constantOf(getReductionExtent());
  if (getKind() == ReduceKind::sum && known)
    return scalar::operator*(operands[0],
                             RealRange{double(*known), double(*known)});
  bool chooses = getKind() == ReduceKind::max || getKind() == ReduceKind::min;
  return chooses && known && *known > 0 ? std::optional(operands[0])
                                        : std::nullopt;
}
std::optional<RealRange> SoftmaxOp::getRange(ArrayRef<RealRange>) {
  return getLog() ? std::nullopt : std::optional(RealRange{0, 1});
}

Value NormalizeOp::reduceAlong(OpBuilder &builder, Value input,
                               ArrayRef<int64_t> axes, bool) {
  return create(builder, getLoc(), input.getType(), input,
                builder.getDenseI64ArrayAttr(axes), getEpsilonAttr(),
                getRmsAttr());
}

/// A number of elements as a tensor of floats.
static Value countTensor(OpBuilder &builder, Location location,
                         AffineExpr count, FloatType element) {
  if (auto known = constantOf(count))
    return scalarTensor(builder, location, element, double(*known));
  auto type = RankedTensorType::get({1}, builder.getI64Type());
  Value number = DimsOp::create(
      builder, location, type,
      AffineMapAttr::get(mapOf(0, {count}, builder.getContext())));
  return CastOp::create(builder, location, withElement(type, element), number,
                        TypeAttr::get(element));
}

/// In f32: (x - mean) / sqrt(variance + epsilon), or x / rms.
Value NormalizeOp::writeOut(OpBuilder &builder) {
  Location location = getLoc();
  Type element = getElementTypeOrSelf(getType());
  auto wide = element.isF64() ? cast<FloatType>(element) : builder.getF32Type();
  auto converted = [&](Value value, Type to) -> Value {
    if (getElementTypeOrSelf(value) == to)
      return value;
    return CastOp::create(builder, location, withElement(value.getType(), to),
                          value, TypeAttr::get(to));
  };
  Value count = countTensor(builder, location, getReductionExtent(), wide);
  auto mean = [&](Value value) -> Value {
    Value sum = ReduceOp::create(builder, location, ReduceKind::sum, value,
                                 getAxes(), /*keepdims=*/true);
    return DivOp::create(builder, location, sum, count);
  };
  Value x = converted(getInput(), wide);
  if (!getRms())
    x = SubOp::create(builder, location, x, mean(x));
  Value variance = mean(MulOp::create(builder, location, x, x));
  Value shifted = AddOp::create(
      builder, location, variance,
      scalarTensor(builder, location, wide, getEpsilon().convertToDouble()));
  Value scale = RsqrtOp::create(builder, location, shifted);
  return converted(MulOp::create(builder, location, x, scale), element);
}

// sum_runs

CHARONIA_INFER(SumRunsOp) {
  SumRunsOp::Adaptor op(operands, attributes, properties, regions);
  Exprs shape = getShape(operands[0]);
  int64_t run = op.getRun();
  if (shape.empty() || run < 1 ||
      !sizesAgree(shape.back() % run, getAffineConstantExpr(0, context),
                  "cuts the last dimension into runs"))
    return emitOptionalError(location, "sum_runs of ",
                             shapeToString(operands[0].getType()),
                             ": the last dimension is no multiple of ", run);
  shape.back() = simplify(shape.back().floorDiv(run));
  types.push_back(makeType(shape, Float32Type::get(context)));
  return success();
}

SmallVector<DimKind> SumRunsOp::getResultDimKinds() {
  return SmallVector<DimKind>(getShape(getResult()).size(), DimKind::Parallel);
}

AffineExpr SumRunsOp::getReductionExtent() {
  return getAffineConstantExpr(getRun(), getContext());
}

SmallVector<WindowSide> SumRunsOp::getWindow() {
  WindowSide side;
  side.dim = getShape(getInput()).size() - 1;
  side.extent = side.stride = getRun();
  return {side};
}

SmallVector<int64_t> SumRunsOp::getCells() {
  SmallVector<int64_t> cells(getShape(getInput()).size(), 1);
  cells.back() = getRun();
  return cells;
}
