// Resizing by interpolation.
#include "frontends/common/builders/Resize.h"
#include "frontends/tensorflow/Node.h"

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

llvm::ArrayRef<Row> charonia::frontend::tensorflow::resizeRows() {
  static const Row rows[] = {
      {"ResizeBilinear", bilinear},
      {"ResizeNearestNeighbor", nearest},
  };
  return rows;
}
