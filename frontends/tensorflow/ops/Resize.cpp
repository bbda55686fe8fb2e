// Resizing by interpolation.
#include "frontends/common/builders/Resize.h"
#include "frontends/tensorflow/Node.h"
#include <cmath>
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
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

// Weights as TensorFlow has them, which other frameworks do not.

using RowOfWeights = void (*)(int64_t i, int64_t from, float scale,
                              bool centers, llvm::MutableArrayRef<float> row);

/// Cubic convolution, whose coefficients TensorFlow takes from a table. What is
/// beyond an edge has no weight between the centers of elements, and is the
/// edge else.
static void cubicWeights(int64_t i, int64_t from, float scale, bool centers,
                         llvm::MutableArrayRef<float> row) {
  constexpr int tableSize = 1024;
  const float a = centers ? -0.5f : -0.75f;
  float at = centers ? (static_cast<float>(i) + 0.5f) * scale - 0.5f
                     : static_cast<float>(i) * scale;
  auto base = static_cast<int64_t>(std::floor(at));
  long step = std::lrintf((at - static_cast<float>(base)) * tableSize);
  auto near = [&](long k) {
    double x = double(k) / tableSize;
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  };
  auto far = [&](long k) {
    double x = double(k) / tableSize + 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  };
  const double weights[] = {far(step), near(step), near(tableSize - step),
                            far(tableSize - step)};
  double sum = 0;
  for (int k = 0; k < 4; ++k) {
    int64_t place = base - 1 + k,
            inside = std::clamp<int64_t>(place, 0, from - 1);
    if (centers && place != inside)
      continue;
    row[inside] += static_cast<float>(weights[k]);
    sum += weights[k];
  }
  constexpr double least = 1000 * std::numeric_limits<float>::min();
  if (centers && std::abs(sum) >= least)
    for (float &weight : row)
      weight = static_cast<float>(weight / sum);
}

/// The mean of what an element of the result covers.
static void areaWeights(int64_t i, int64_t from, float scale, bool,
                        llvm::MutableArrayRef<float> row) {
  float begin = static_cast<float>(i) * scale,
        end = static_cast<float>(i + 1) * scale;
  for (auto k = static_cast<int64_t>(std::floor(begin));
       k < static_cast<int64_t>(std::ceil(end)); ++k) {
    float covered = std::min(end, static_cast<float>(k + 1)) -
                    std::max(begin, static_cast<float>(k));
    row[std::clamp<int64_t>(k, 0, from - 1)] += covered / scale;
  }
}

/// Along each of the two dimensions a product with a matrix.
template <RowOfWeights fill>
static LogicalResult resizeByWeights(Node &n, Emitter &e) {
  constexpr int64_t maxMatrix = int64_t(1) << 24;
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  auto sizes = n.constants(1);
  if (failed(sizes))
    return llvm::failure();
  if (sizes->size() != 2)
    return e.fail("needs a height and a width");
  Value x = e.cast(n.input(0), e.getBuilder().getF32Type());
  bool corners = n.flag("align_corners"),
       centers = n.flag("half_pixel_centers");
  for (int64_t axis : {1, 2}) {
    int64_t to = (*sizes)[axis - 1];
    auto from = graph::constantOf(graph::getShape(n.input(0))[axis]);
    if (!from || *from < 1 || to < 1 || *from > maxMatrix || to > maxMatrix ||
        *from * to > maxMatrix)
      return e.fail("resizes " + e.describe(n.input(0).getType()) + " to " +
                        llvm::Twine(to) +
                        ", and needs a height and a width that are known",
                    "fix them with --shape");
    float scale =
        corners && to > 1
            ? static_cast<float>(*from - 1) / static_cast<float>(to - 1)
            : static_cast<float>(*from) / static_cast<float>(to);
    std::vector<float> weights(*from * to);
    for (int64_t i = 0; i < to; ++i)
      fill(i, *from, scale, centers,
           llvm::MutableArrayRef(weights).slice(i * *from, *from));
    x = weighAlong(x, axis, weights, to, e);
    if (!x)
      return llvm::failure();
  }
  return n.yield(x);
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::resizeRows() {
  static const Row rows[] = {
      {"ResizeBilinear", bilinear},
      {"ResizeNearestNeighbor", nearest},
      {"ResizeBicubic", resizeByWeights<cubicWeights>},
      {"ResizeArea", resizeByWeights<areaWeights>},
  };
  return rows;
}
