#include "frontends/common/builders/Resize.h"
#include "frontends/common/Tables.h"
#include "frontends/common/builders/Interpolation.h"
#include <array>
#include <cmath>
#include <numeric>

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::AffineExpr;
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

Value charonia::frontend::weighAlong(Value x, int64_t axis, Value matrix,
                                     Emitter &e) {
  if (!x || !matrix)
    return {};
  Exprs shape = graph::getShape(x), result = shape;
  result[axis] = graph::getShape(matrix)[1];
  Value columns = e.reshape(
      x,
      {productOf(llvm::ArrayRef(shape).take_front(axis), e.getContext()),
       shape[axis],
       productOf(llvm::ArrayRef(shape).drop_front(axis + 1), e.getContext())});
  return e.reshape(e.op<graph::MatmulOp>({matrix, columns}), result);
}

namespace {
/// Weights of some neighbours each: what a matrix of [to, from] has that is not
/// zero.
template <typename T> struct Bands {
  int64_t taps = 1;
  std::vector<int64_t> starts; ///< Where the first of a row lies.

  Bands(llvm::ArrayRef<T> matrix, int64_t to, int64_t from) : starts(to) {
    auto isSome = [](T weight) { return weight != 0; };
    for (int64_t i = 0; i < to; ++i) {
      auto row = matrix.slice(i * from, from);
      auto first = llvm::find_if(row, isSome);
      if (first == row.end())
        continue;
      starts[i] = first - row.begin();
      auto last = llvm::find_if(llvm::reverse(row), isSome).base();
      taps = std::max<int64_t>(taps, last - first);
    }
    for (int64_t &start : starts)
      start = std::min(start, from - taps);
  }
};
} // namespace

/// x, whose axis has `from` elements, with `to` along it, each a weighted sum
/// by a row of a matrix [to, from].
template <typename T>
static Value weighByMatrix(Value x, int64_t axis, llvm::ArrayRef<T> matrix,
                           int64_t to, int64_t from, mlir::Type element,
                           Emitter &e) {
  // A product of matrices takes a term in so much less time than a sum of rows,
  // or of elements, that are chosen.
  constexpr int64_t ofRows = 3, ofElements = 8, shortRow = 8;
  AffineExpr behind = productOf(
      llvm::ArrayRef(graph::getShape(x)).drop_front(axis + 1), e.getContext());
  int64_t few = graph::constantOf(behind).value_or(shortRow) < shortRow
                    ? ofElements
                    : ofRows;
  auto constantOf = [&](llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<T> values) {
    return e.constant(mlir::DenseElementsAttr::get(
        mlir::RankedTensorType::get(shape, element), values));
  };
  Bands<T> bands(matrix, to, from);
  if (bands.taps * few > from)
    return weighAlong(x, axis, constantOf({1, to, from}, matrix), e);
  // Taps in front, so that neighbours of the result lie side by side.
  std::vector<T> weights;
  std::vector<uint32_t> places;
  for (int64_t tap = 0; tap < bands.taps; ++tap)
    for (int64_t i = 0; i < to; ++i) {
      places.push_back(bands.starts[i] + tap);
      weights.push_back(matrix[i * from + places.back()]);
    }
  SmallVector<int64_t> shape{bands.taps, to};
  Value chosen = e.op<graph::GatherOp>(
      {x, e.constant(mlir::DenseElementsAttr::get(
              mlir::RankedTensorType::get(
                  shape, e.getBuilder().getIntegerType(32, false)),
              llvm::ArrayRef(places)))},
      e.attr("axis", axis));
  shape.append(graph::getShape(x).size() - axis - 1, 1);
  Value terms = e.mul(chosen, constantOf(shape, weights));
  return e.reduce(graph::ReduceKind::sum, terms, {axis}, /*keepdims=*/false);
}

/// How the elements along an axis are weighed; null where it is not known, or
/// the axis stays as it is.
static std::optional<AxisInterpolation>
interpolationOf(const Resizing &how, size_t i, AffineExpr size, Emitter &e) {
  const SmallVector<double> &roi = how.region;
  size_t count = how.axes.size();
  AxisInterpolation a;
  a.crop = !roi.empty();
  bool isWhole = !a.crop || (roi[i] == 0 && roi[i + count] == 1);
  if (isWhole && size == how.sizes[i] &&
      (how.scales[i] == 0 || how.scales[i] == 1))
    return std::nullopt;
  auto from = graph::constantOf(size), to = graph::constantOf(how.sizes[i]);
  constexpr int64_t maxMatrix = int64_t(1) << 24;
  if (!from || !to || *from < 1 || *from > maxMatrix || *to > maxMatrix ||
      *from * *to > maxMatrix) {
    e.fail("antialiasing, resizing of a part and of integers need sizes that "
           "are known",
           "fix them with --shape");
    return std::nullopt;
  }
  a.mode = how.mode;
  a.coordinates = how.coordinates;
  a.nearest = how.nearest;
  a.antialias = how.antialias;
  a.excludeOutside = how.excludeOutside;
  a.cubicCoefficient = how.cubicCoefficient;
  a.from = *from;
  a.to = *to;
  a.scale = how.scales[i] ? how.scales[i] : double(*to) / double(*from);
  if (a.crop) {
    a.cropStart = roi[i];
    a.cropEnd = roi[i + count];
  }
  return a;
}

/// What no single tap or pair of taps does: wide filters where elements are
/// left out, and parts of the input. Along each axis sums of some neighbours,
/// or a product with a matrix.
static Value resizeByMatrices(Value x, const Resizing &how, Emitter &e) {
  if (!isFloat(x))
    return e.fail("antialiasing and resizing of a part are not supported for "
                  "integers",
                  "cast to float first");
  auto f32 = e.getBuilder().getF32Type();
  mlir::Type element = elementOf(x);
  x = e.cast(e.widen(x), f32);
  for (auto [i, axis] : llvm::enumerate(how.axes)) {
    if (!x)
      return {};
    Exprs shape = graph::getShape(x);
    auto a = interpolationOf(how, i, shape[axis], e);
    if (!a)
      continue;
    if (failed(reserveTable(a->from * a->to, f32, e)))
      return {};
    AxisWeights weights = weightsOf(*a);
    std::vector<float> rounded(weights.values.begin(), weights.values.end());
    x = weighByMatrix<float>(x, axis, rounded, a->to, a->from, f32, e);
    if (!llvm::is_contained(weights.outside, true))
      continue;
    SmallVector<bool> outside(weights.outside.begin(), weights.outside.end());
    SmallVector<int64_t> along(shape.size(), 1);
    along[axis] = a->to;
    Value mask = e.constant(mlir::DenseElementsAttr::get(
        mlir::RankedTensorType::get(along, e.getBuilder().getI1Type()),
        outside));
    x = e.select(mask, e.scalar(how.outside, f32), x);
  }
  if (e.failed())
    return {};
  return e.cast(x, element);
}

/// Bytes, in 32 bits, along one axis: weights have as many bits behind the
/// point as 16 bits hold.
static Value weighBytes(Value x, int64_t axis, const AxisInterpolation &a,
                        Emitter &e) {
  mlir::Type i32 = e.getBuilder().getI32Type();
  if (failed(reserveTable(a.from * a.to, i32, e)))
    return {};
  AxisWeights weights = weightsOf(a);
  double most = 0;
  for (double weight : weights.values)
    most = std::max(most, weight);
  constexpr int most16 = 1 << 15, mostBits = 22;
  int bits = 0;
  while (bits < mostBits &&
         static_cast<int>(0.5 + most * double(1 << (bits + 1))) < most16)
    ++bits;
  std::vector<int32_t> fixed;
  for (double weight : weights.values)
    fixed.push_back(
        static_cast<int32_t>(std::round(weight * double(1 << bits))));
  auto number = [&](int64_t value) { return e.scalar(value, i32); };
  Value sum = weighByMatrix<int32_t>(x, axis, fixed, a.to, a.from, i32, e);
  sum = e.op<graph::ShrOp>(
      {e.add(sum, number((int64_t(1) << bits) / 2)), number(bits)});
  return e.min(e.max(sum, number(0)), number(255));
}

Value charonia::frontend::buildByteResize(Value input, const Resizing &how,
                                          Emitter &e) {
  Value x = e.cast(input, e.getBuilder().getI32Type());
  for (size_t i = how.axes.size(); i-- > 0;) {
    if (!x)
      return {};
    if (auto a = interpolationOf(how, i, graph::getShape(x)[how.axes[i]], e))
      x = weighBytes(x, how.axes[i], *a, e);
  }
  return e.failed() ? Value() : e.cast(x, elementOf(input));
}

AffineExpr charonia::frontend::scaledSize(AffineExpr size,
                                          const SizeElement &scale,
                                          Emitter &e) {
  using Op = graph::SizeStep::Op;
  auto number = scale.constantNumber();
  auto known = graph::constantOf(size);
  if (number && known)
    return e.number(
        static_cast<int64_t>(std::floor(float(*known) * float(*number))));
  // Fractions by a power of two are expressions, where nothing is rounded: a
  // float holds the product's numerator.
  constexpr int64_t denominator = 1024, exactUntil = 1 << 24;
  double numerator = number.value_or(0) * denominator;
  if (number && numerator == std::floor(numerator) && numerator < exactUntil) {
    auto up = static_cast<int64_t>(numerator);
    int64_t common = std::gcd(up, denominator);
    AffineExpr product = size * (up / common);
    if (e.getSymbols().bounds(product).high <= exactUntil)
      return graph::simplify(product.floorDiv(denominator / common));
  }
  graph::SizeProgram program{
      {Op::Size, size, 0}, {Op::ToFloat, {}, 0}, {Op::ToSingle, {}, 0}};
  program.append(scale.program);
  program.append({{Op::ToSingle, {}, 0},
                  {Op::FloatMul, {}, 0},
                  {Op::ToSingle, {}, 0},
                  {Op::Floor, {}, 0},
                  {Op::Truncate, {}, 0}});
  return e.getSymbols().define(program);
}

namespace {
/// Along one axis, by a scale that is a value: positions are computed, and the
/// elements there gathered.
class AxisGather {
public:
  AxisGather(Emitter &e, Value x, const Resizing &how, unsigned i)
      : e(e), x(x), how(how), axis(how.axes[i]), from(graph::getShape(x)[axis]),
        to(how.sizes[i]), f32(e.getBuilder().getF32Type()),
        scale(e.cast(how.computedScales[i], f32)) {}

  Value run() {
    Value position =
        original(e.cast(e.iota({to}, 0, e.getBuilder().getI64Type()), f32));
    if (how.mode == graph::ResizeMode::nearest)
      return at(nearest(position));
    Value base = e.op<graph::FloorOp>({position});
    Value t = e.sub(position, base);
    if (how.mode == graph::ResizeMode::linear)
      return e.add(weighed(base, 0, e.sub(number(1), t)), weighed(base, 1, t));
    return cubic(base, t);
  }

private:
  Value number(double value) { return e.scalar(value, f32); }
  Value extent(AffineExpr size) { return e.size(size, f32); }

  /// As emit::ResizeEmitter has it.
  Value original(Value p) {
    using C = graph::CoordinateMode;
    Value half = number(0.5), one = number(1), out = extent(to);
    switch (how.coordinates) {
    case C::asymmetric:
      return e.div(p, scale);
    case C::align_corners:
      return e.div(e.mul(p, e.sub(extent(from), one)),
                   e.max(e.sub(out, one), one));
    case C::half_pixel_symmetric: {
      Value adjust = e.div(out, e.mul(scale, extent(from)));
      Value offset = e.mul(e.mul(extent(from), half), e.sub(one, adjust));
      return e.sub(e.add(offset, e.div(e.add(p, half), scale)), half);
    }
    case C::half_pixel:
    case C::half_pixel_or_zero:
      break;
    }
    p = e.sub(e.div(e.add(p, half), scale), half);
    return how.coordinates == C::half_pixel
               ? p
               : e.select(e.compare(graph::Predicate::gt, out, one), p,
                          number(0));
  }
  Value nearest(Value p) {
    using N = graph::NearestMode;
    Value half = number(0.5);
    switch (how.nearest) {
    case N::floor:
      return e.op<graph::FloorOp>({p});
    case N::ceil:
      return e.op<graph::CeilOp>({p});
    case N::round_prefer_floor:
      return e.op<graph::CeilOp>({e.sub(p, half)});
    case N::round_prefer_ceil:
      return e.op<graph::FloorOp>({e.add(p, half)});
    }
    return {};
  }
  /// Elements at the nearest place inside.
  Value at(Value place) {
    Value last = e.sub(extent(from), number(1));
    Value inside = e.min(e.max(place, number(0)), last);
    return e.op<graph::GatherOp>(
        {x, e.cast(inside, e.getBuilder().getI64Type())}, e.attr("axis", axis));
  }
  Value weighed(Value base, double by, Value weight) {
    return e.mul(at(e.add(base, number(by))),
                 e.asChannels(weight, rankOf(x) - axis - 1));
  }
  /// Weights at distances 1 + t, t, 1 - t and 2 - t.
  Value cubic(Value base, Value t) {
    double a = how.cubicCoefficient;
    auto polynomial = [&](Value d, std::array<double, 4> c) {
      Value sum = number(c[0]);
      for (double next : llvm::ArrayRef(c).drop_front())
        sum = e.add(e.mul(sum, d), number(next));
      return sum;
    };
    std::array<double, 4> near{a + 2, -(a + 3), 0, 1},
        far{a, -5 * a, 8 * a, -4 * a};
    Value one = number(1), u = e.sub(one, t);
    Value weights[] = {polynomial(e.add(t, one), far), polynomial(t, near),
                       polynomial(u, near), polynomial(e.add(u, one), far)};
    if (how.excludeOutside) {
      Value total = number(0);
      for (int64_t k = 0; k < 4; ++k) {
        Value place = e.add(base, number(double(k - 1)));
        Value inside = e.op<graph::AndOp>(
            {e.compare(graph::Predicate::ge, place, number(0)),
             e.compare(graph::Predicate::lt, place, extent(from))});
        weights[k] = e.select(inside, weights[k], number(0));
        total = e.add(total, weights[k]);
      }
      for (Value &weight : weights)
        weight = e.div(weight, total);
    }
    Value sum;
    for (int64_t k = 0; k < 4; ++k) {
      Value term = weighed(base, double(k - 1), weights[k]);
      sum = sum ? e.add(sum, term) : term;
    }
    return sum;
  }

  Emitter &e;
  Value x;
  const Resizing &how;
  int64_t axis;
  AffineExpr from, to;
  mlir::Type f32;
  Value scale;
};
} // namespace

/// Axes are independent: those with a computed scale first.
static Value resizeByGathers(Value x, const Resizing &how, Emitter &e) {
  bool interpolates = how.mode != graph::ResizeMode::nearest;
  if (interpolates && !isFloat(x))
    return e.fail("interpolation of integers is not supported",
                  "cast to float first");
  if (how.antialias || !how.region.empty())
    return e.fail("antialiasing and resizing of a part need scales that are "
                  "known",
                  "fix these sizes with --shape");
  mlir::Type element = elementOf(x);
  Value result =
      interpolates ? e.cast(e.widen(x), e.getBuilder().getF32Type()) : x;
  Resizing rest = how;
  rest.computedScales.clear();
  rest.axes.clear();
  rest.scales.clear();
  rest.sizes.clear();
  for (auto [i, axis] : llvm::enumerate(how.axes)) {
    if (!result)
      return {};
    if (how.computedScales[i]) {
      result = AxisGather(e, result, how, i).run();
      continue;
    }
    rest.axes.push_back(axis);
    rest.scales.push_back(how.scales[i]);
    rest.sizes.push_back(how.sizes[i]);
  }
  return e.cast(result ? resizeByTaps(result, rest, e) : result, element);
}

Value charonia::frontend::buildResize(Value input, const Resizing &how,
                                      Emitter &e) {
  if (!input)
    return {};
  if (llvm::any_of(how.computedScales, [](Value v) { return bool(v); }))
    return resizeByGathers(input, how, e);
  return how.antialias || !how.region.empty() ? resizeByMatrices(input, how, e)
                                              : resizeByTaps(input, how, e);
}
