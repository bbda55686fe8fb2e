// Resizing by interpolation.
#include "frontends/common/builders/Resize.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/ops/Num.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::Predicate;
using llvm::LogicalResult;
using mlir::Value;

/// Of images, [N, H, W, C], to the height and width that operand 1 gives.
static LogicalResult resize(Node &n, Emitter &e, graph::ResizeMode mode) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  auto sizes = n.known(1);
  if (failed(sizes))
    return llvm::failure();
  if (sizes->size() != 2)
    return e.fail("needs a height and a width");
  Resizing how;
  how.axes = {1, 2};
  how.scales = {0, 0};
  how.sizes = *sizes;
  how.mode = mode;
  how.byRatio = true;
  bool corners = n.flag("align_corners"),
       centers = n.flag("half_pixel_centers");
  if (corners && centers)
    return e.fail("has both align_corners and half_pixel_centers");
  how.coordinates = corners   ? graph::CoordinateMode::align_corners
                    : centers ? graph::CoordinateMode::half_pixel
                              : graph::CoordinateMode::asymmetric;
  // floor((i + 0.5) * scale), and halves up between corners.
  how.nearest = corners || centers ? graph::NearestMode::round_prefer_ceil
                                   : graph::NearestMode::floor;
  Value x = n.input(0);
  if (mode == graph::ResizeMode::linear)
    x = e.cast(x, e.getBuilder().getF32Type());
  return n.yield(buildResize(x, how, e));
}
static LogicalResult bilinear(Node &n, Emitter &e) {
  return resize(n, e, graph::ResizeMode::linear);
}
static LogicalResult nearest(Node &n, Emitter &e) {
  return resize(n, e, graph::ResizeMode::nearest);
}

// Weights as TensorFlow has them, which other frameworks do not: a matrix along
// each of the two dimensions, computed as the model runs, so that sizes may be
// open.

namespace {
/// The piece before a border, and that from it on.
Num before(double border, Num x, Num a, Num b) {
  return select(x < border, a, b);
}

/// What the matrix, [to, from], of one dimension is computed of.
struct Line {
  /// Numbers of the result's elements, [to, 1], and the input's, [1, from].
  Num place, element;
  /// How many the input has, and how many of them one of the result stands for.
  Num from, scale;
};
} // namespace

/// Cubic convolution, whose coefficients TensorFlow takes from a table. What is
/// beyond an edge has no weight between the centers of elements, and is the
/// edge else.
static Num cubicMatrix(const Line &l, bool centers) {
  constexpr double tableSize = 1024;
  const double a = centers ? -0.5 : -0.75;
  Num at = centers ? (l.place + 0.5) * l.scale - 0.5 : Num(l.place * l.scale);
  Num base = apply<graph::FloorOp>(at), zero = at.of(0.0), last = l.from - 1;
  Num t = apply<graph::RoundOp>((at - base) * tableSize) / tableSize;
  auto near = [&](Num x) { return (x * (a + 2) - (a + 3)) * x * x + 1; };
  auto far = [&](Num x) {
    Num d = x + 1;
    return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
  };
  // The nearest element is inside, so the sum is no less than a half.
  Num matrix = zero, sum = zero, rest = at.of(1.0) - t;
  double offset = -1;
  for (Num weight : {far(t), near(t), near(rest), far(rest)}) {
    Num place = base + offset++, inside = max(min(place, last), zero);
    if (centers)
      weight = select(compare(Predicate::eq, place, inside), weight, zero);
    matrix = matrix +
             select(compare(Predicate::eq, inside, l.element), weight, zero);
    sum = sum + weight;
  }
  return centers ? matrix / sum : matrix;
}

/// The mean of what an element of the result covers; beyond the input lies its
/// last element again.
static Num areaMatrix(const Line &l, bool) {
  Num begin = l.place * l.scale, end = (l.place + 1) * l.scale;
  Value isLast = compare(Predicate::eq, l.element, l.from - 1);
  Num border = select(isLast, end, min(end, l.element + 1));
  Num covered = border - max(begin, l.element);
  Num mean = max(covered, covered.of(0.0)) / l.scale;
  // Of a single element between corners all places are its own.
  Value isSame = compare(Predicate::eq, l.scale, l.scale.of(0.0));
  Value isFirst = compare(Predicate::eq, l.element, l.element.of(0.0));
  return select(isSame, select(isFirst, mean.of(1.0), 0), mean);
}

/// Images as floats, and their result's height and width.
static llvm::FailureOr<Exprs> readImages(Node &n, Emitter &e, unsigned count) {
  if (failed(n.needsTensors(count, count)) || failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  auto sizes = n.known(1);
  if (succeeded(sizes) && sizes->size() != 2)
    return e.fail("needs a height and a width");
  return sizes;
}

using Matrix = Num (*)(const Line &line, bool centers);

template <Matrix build>
static LogicalResult resizeByWeights(Node &n, Emitter &e) {
  auto sizes = readImages(n, e, 2);
  if (failed(sizes))
    return llvm::failure();
  mlir::Type f32 = e.getBuilder().getF32Type();
  Value x = e.cast(n.input(0), f32);
  bool corners = n.flag("align_corners"),
       centers = n.flag("half_pixel_centers");
  for (int64_t axis : {1, 2}) {
    mlir::AffineExpr to = (*sizes)[axis - 1],
                     from = graph::getShape(n.input(0))[axis];
    Num elements = {e.size(from, f32), &e}, results = {e.size(to, f32), &e};
    Num scale = elements / results;
    if (corners)
      scale = before(2, results, scale, (elements - 1) / (results - 1));
    Line line = {countAlong(1, 3, to, f32, e), countAlong(2, 3, from, f32, e),
                 elements, scale};
    x = weighAlong(x, axis, build(line, centers).value, e);
  }
  return n.yield(x);
}

// What tf.image.resize calls antialiasing.

/// A filter's weight at a distance, which is no less than 0.
using Filter = Num (*)(Num x);

static Num box(Num x) {
  return before(
      0.5, x, x.of(1.0),
      select(compare(Predicate::eq, x, x.of(0.5)), x.of(0.5), x.of(0.0)));
}
static Num triangle(Num x) { return max(x.of(1.0) - x, x.of(0.0)); }
static Num keysCubic(Num x) {
  Num near = (x * 1.5 - 2.5) * x * x + 1,
      far = ((x * -0.5 + 2.5) * x - 4) * x + 2;
  return before(1, x, near, before(2, x, far, x.of(0.0)));
}
static Num mitchell(Num x) {
  Num near = (x * (7.0 / 6) - 2) * x * x + 8.0 / 9,
      far = ((x * (-7.0 / 18) + 2) * x - 10.0 / 3) * x + 16.0 / 9;
  return before(1, x, near, before(2, x, far, x.of(0.0)));
}
static Num gaussian(Num x) {
  constexpr double sigma = 0.5, radius = 3 * sigma;
  Num y = apply<graph::ExpOp>(x * x / (-2 * sigma * sigma));
  return before(radius, x, y, x.of(0.0));
}
template <int radius> static Num lanczos(Num x) {
  Num angle = x * M_PI;
  Num y = apply<graph::SinOp>(angle) * apply<graph::SinOp>(angle / radius) *
          double(radius) / (angle * angle);
  return before(1e-3, x, x.of(1.0), before(radius, x, y, x.of(0.0)));
}

static Filter findFilter(llvm::StringRef name) {
  return llvm::StringSwitch<Filter>(name)
      .Case("box", box)
      .Case("triangle", triangle)
      .Case("keyscubic", keysCubic)
      .Case("mitchellcubic", mitchell)
      .Case("gaussian", gaussian)
      .Case("lanczos1", lanczos<1>)
      .Case("lanczos3", lanczos<3>)
      .Case("lanczos5", lanczos<5>)
      .Default(nullptr);
}

/// Filters as wide as what an element of the result stands for, whose weights
/// are divided by their sum; outside of the input there is nothing.
static LogicalResult scaleAndTranslate(Node &n, Emitter &e) {
  auto sizes = readImages(n, e, 4);
  if (failed(sizes))
    return llvm::failure();
  std::string name = n.text("kernel_type", "lanczos3");
  Filter filter = findFilter(name);
  if (!filter)
    return e.fail("kernel_type '" + printable(name) + "' is not supported");
  for (unsigned i : {2, 3})
    if (failed(n.needsRank(i, 1, 1)) ||
        !e.agree(graph::getShape(n.input(i))[0], e.number(2),
                 "has a number for each dimension"))
      return e.fail("needs two numbers for each of scale and translation");
  mlir::Type f32 = e.getBuilder().getF32Type();
  Value x = e.cast(n.input(0), f32);
  for (int64_t axis : {1, 2}) {
    auto numberOf = [&](unsigned i) {
      Value one =
          sliceAlong(n.input(i), 0, {e.number(axis - 1), e.number(1), 1}, e);
      return Num{e.reshape(one, {}), &e};
    };
    mlir::AffineExpr from = graph::getShape(n.input(0))[axis];
    // Rounded as TensorFlow rounds: box and gaussian jump, where the last place
    // of a distance decides.
    Num scale = numberOf(2), inverse = scale.of(1.0) / scale;
    Num moved = scale.of(0.0) - inverse * numberOf(3);
    Num at =
        (countAlong(1, 3, (*sizes)[axis - 1], f32, e) + 0.5) * inverse + moved;
    Num width =
        n.flag("antialias", true) ? max(inverse, at.of(1.0)) : at.of(1.0);
    Num distance = apply<graph::AbsOp>(
        (countAlong(2, 3, from, f32, e) + 0.5 - at) * (width.of(1.0) / width));
    Num end = {e.size(from, f32), &e};
    Value outside = e.op<graph::OrOp>({compare(Predicate::lt, at, at.of(0.0)),
                                       compare(Predicate::gt, at, end)});
    Num weights = select(outside, at.of(0.0), filter(distance));
    Num sum = at.of(e.reduce(graph::ReduceKind::sum, weights.value, {2}, true));
    constexpr double least = 1000 * std::numeric_limits<float>::min();
    weights =
        weights / before(least, apply<graph::AbsOp>(sum), at.of(1.0), sum);
    x = weighAlong(x, axis, weights.value, e);
  }
  return n.yield(x);
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::resizeRows() {
  static const Row rows[] = {
      {"ResizeBilinear", bilinear},
      {"ResizeNearestNeighbor", nearest},
      {"ResizeBicubic", resizeByWeights<cubicMatrix>},
      {"ResizeArea", resizeByWeights<areaMatrix>},
      {"ScaleAndTranslate", scaleAndTranslate},
  };
  return rows;
}
