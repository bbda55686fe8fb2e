// Sampling at coordinates that are data.
#include "frontends/common/builders/Sampling.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

static llvm::LogicalResult gridSample(Node &n, Emitter &e) {
  Value x = n.input(0), grid = n.input(1);
  if (failed(n.needsRank(0, 3, 5)) ||
      failed(n.needsRank(1, rankOf(x), rankOf(x))))
    return llvm::failure();
  std::string text = n.text("mode", "linear");
  auto mode = graph::symbolizeResizeMode(
      text.rfind("bi", 0) == 0 ? text.substr(2) : text);
  std::string edge = n.text("padding_mode", "zeros");
  if (!mode || (edge != "zeros" && edge != "border" && edge != "reflection"))
    return e.fail("attributes 'mode' and 'padding_mode' may not be '" + text +
                  "' and '" + edge + "'");
  SamplePadding padding = edge == "zeros"    ? SamplePadding::zeros
                          : edge == "border" ? SamplePadding::border
                                             : SamplePadding::reflection;
  return n.yield(
      buildGridSample(x, grid, *mode, padding, n.flag("align_corners"), e));
}

static llvm::LogicalResult affineGrid(Node &n, Emitter &e) {
  // Samples, channels, then the spatial dimensions.
  auto size = n.known(1);
  if (failed(n.needsRank(0, 3, 3)) || failed(n.needsRank(1, 1, 1)) ||
      failed(size))
    return llvm::failure();
  if (size->size() != 4 && size->size() != 5)
    return e.fail("a size has 4 or 5 elements, not " +
                  llvm::Twine(size->size()));
  for (mlir::AffineExpr dim : *size)
    if (auto known = graph::constantOf(dim); known && *known < 1)
      return e.fail("a size may not be " + llvm::Twine(*known));
  if (!e.agree(graph::getShape(n.input(0))[0], size->front(),
               "samples within a batch"))
    return e.fail("maps of " + e.describe(n.input(0).getType()) +
                  " do not fit a size of " + e.describe(*size));
  return n.yield(buildAffineGrid(n.input(0),
                                 llvm::ArrayRef(*size).drop_front(2),
                                 n.flag("align_corners"), e));
}

static llvm::LogicalResult deformConv(Node &n, Emitter &e) {
  Value x = n.input(0), filter = n.input(1), offsets = n.input(2);
  for (unsigned i : {0, 1, 2})
    if (failed(n.needsRank(i, 4, 4)))
      return llvm::failure();
  if (n.has(4) && failed(n.needsRank(4, 4, 4)))
    return llvm::failure();
  auto strides = readWindowList(n, e, "strides", 2, 1, 1);
  auto dilations = readWindowList(n, e, "dilations", 2, 1, 1);
  auto pads = readWindowList(n, e, "pads", 4, 0, 0);
  auto kernel = kernelOf(filter, e);
  if (failed(strides) || failed(dilations) || failed(pads) || failed(kernel))
    return llvm::failure();
  if (auto given = n.integers("kernel_shape"); given && *given != *kernel)
    return e.fail("attribute 'kernel_shape' is not the shape of the filter, " +
                  e.describe(filter.getType()));
  DeformedWindow window{*strides, *dilations, *pads, n.integer("group", 1),
                        n.integer("offset_group", 1)};
  Value result = buildDeformConv(x, filter, offsets, n.input(4), window, e);
  if (n.has(3))
    result = e.add(result, e.asChannels(n.input(3), 2));
  return n.yield(result);
}

static llvm::LogicalResult roiAlign(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 4, 4)) || failed(n.needsRank(1, 2, 2)) ||
      failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  bool halfPixel =
      n.sinceVersion() >= 16 &&
      n.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  std::string mode = n.text("mode", "avg");
  RegionGrid grid{{n.integer("output_height", 1), n.integer("output_width", 1)},
                  n.integer("sampling_ratio", 0),
                  n.number("spatial_scale", 1),
                  halfPixel ? 0.5 : 0,
                  !halfPixel,
                  mode == "max"};
  if (!e.agree(graph::getShape(n.input(1))[1], e.number(4), "reads bounds"))
    return e.fail("regions have four bounds each, not " +
                  e.describe(n.input(1).getType()));
  if (grid.samples < 0)
    return e.fail("attribute 'sampling_ratio' may not be " +
                  llvm::Twine(grid.samples));
  if (mode != "max" && mode != "avg")
    return e.fail("attribute 'mode' may not be '" + mode + "'");
  if (grid.samples == 0 && grid.largest)
    return e.fail("the largest of samples whose number follows from the "
                  "regions is not supported",
                  "set attribute 'sampling_ratio', 2 for example");
  for (int64_t value :
       {grid.bins[0], grid.bins[1], std::max<int64_t>(grid.samples, 1)})
    if (value < 1 || value > maxDimension)
      return e.fail("an output of " + llvm::Twine(grid.bins[0]) + "x" +
                    llvm::Twine(grid.bins[1]) + " with " +
                    llvm::Twine(grid.samples) + " samples is not supported");
  return n.yield(buildRoiAlign(n.input(0), n.input(1), n.input(2), grid, e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::samplingRows() {
  static const Row rows[] = {
      {"", "GridSample", 16, 22, gridSample},
      {"", "AffineGrid", 20, 20, affineGrid},
      {"", "DeformConv", 19, 22, deformConv},
      {"", "RoiAlign", 10, 22, roiAlign},
  };
  return rows;
}
