// Reading of images at coordinates that are data.
#include "frontends/common/builders/Sampling.h"
#include "frontends/common/builders/Window.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::ResizeMode;

static LogicalResult gridSample(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), grid = c.tensor("grid");
  int64_t mode = c.integer("interpolation_mode"),
          padding = c.integer("padding_mode");
  bool align = c.flag("align_corners");
  if (!x || !grid || rankOf(x) < 4 || rankOf(x) > 5 ||
      rankOf(grid) != rankOf(x))
    return c.fail("needs an input and a grid of 4 or 5 dimensions");
  constexpr ResizeMode modes[] = {ResizeMode::linear, ResizeMode::nearest,
                                  ResizeMode::cubic};
  constexpr SamplePadding paddings[] = {
      SamplePadding::zeros, SamplePadding::border, SamplePadding::reflection};
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
    return c.fail("interpolation mode " + Twine(mode) + " with padding mode " +
                  Twine(padding) + " is not supported");
  return c.yield(
      buildGridSample(x, grid, modes[mode], paddings[padding], align, e));
}

/// `size` is that of the image, [N, C, spatial dimensions...].
static LogicalResult affineGrid(Call &c) {
  Emitter &e = c.getEmitter();
  Value theta = c.tensor("theta");
  Exprs size = c.sizes("size");
  bool align = c.flag("align_corners");
  if (!theta || e.failed())
    return c.yield(Value());
  if (rankOf(theta) != 3 || size.size() < 4 || size.size() > 5 ||
      !e.agree(graph::getShape(theta)[0], size[0], "has a map a sample"))
    return c.fail("maps of " + e.describe(theta.getType()) +
                  " do not fit images of " + e.describe(size));
  return c.yield(
      buildAffineGrid(theta, llvm::ArrayRef(size).drop_front(2), align, e));
}

/// Of torchvision; `rois` are [R, 5], the image's number in front of bounds.
static LogicalResult roiAlign(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), rois = c.tensor("rois");
  bool aligned = c.flag("aligned");
  RegionGrid grid{{c.integer("pooled_height"), c.integer("pooled_width")},
                  c.integer("sampling_ratio"),
                  c.number("spatial_scale"),
                  aligned ? 0.5 : 0,
                  !aligned,
                  /*largest=*/false};
  if (!x || !rois || e.failed())
    return c.yield(Value());
  if (rankOf(x) != 4 || rankOf(rois) != 2 ||
      graph::getShape(rois)[1] != e.number(5))
    return c.fail("regions of " + e.describe(rois.getType()) +
                  " do not fit images of " + e.describe(x.getType()));
  grid.samples = std::max<int64_t>(grid.samples, 0);
  for (int64_t value :
       {grid.bins[0], grid.bins[1], std::max<int64_t>(grid.samples, 1)})
    if (value < 1 || value > maxDimension)
      return c.fail("an output of " + Twine(grid.bins[0]) + "x" +
                    Twine(grid.bins[1]) + " with " + Twine(grid.samples) +
                    " samples is not supported");
  AffineExpr count = graph::getShape(rois)[0];
  auto columns = [&](int64_t from, int64_t width) {
    return e.slice(rois, {e.number(0), e.number(from)}, {1, 1},
                   {count, e.number(width)});
  };
  Value images =
      e.cast(e.reshape(columns(0, 1), {count}), e.getBuilder().getI64Type());
  return c.yield(buildRoiAlign(x, columns(1, 4), images, grid, e));
}

/// Of torchvision.
static LogicalResult deformConv(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), filter = c.tensor("weight"),
        offsets = c.tensor("offset"), bias = c.tensor("bias"),
        mask = c.flag("use_mask") ? c.tensor("mask") : Value();
  c.ignore({"mask"});
  int64_t rows = c.integer("pad_h"), columns = c.integer("pad_w");
  DeformedWindow window{{c.integer("stride_h"), c.integer("stride_w")},
                        {c.integer("dilation_h"), c.integer("dilation_w")},
                        {rows, columns, rows, columns},
                        c.integer("groups"),
                        c.integer("offset_groups")};
  for (Value value : {x, filter, offsets, mask})
    if (value && rankOf(value) != 4)
      return c.fail("needs four dimensions, not " +
                    e.describe(value.getType()));
  for (int64_t value : llvm::concat<int64_t>(window.strides, window.dilations))
    if (value < 1 || value > maxWindow)
      c.fail("a stride or dilation of " + Twine(value) + " is not supported");
  for (int64_t value : {rows, columns})
    if (value < 0 || value > maxWindow)
      c.fail("a padding of " + Twine(value) + " is not supported");
  if (e.failed() || rankOf(bias) != 1)
    return c.fail("needs a bias of one dimension");
  Value y = buildDeformConv(x, filter, offsets, mask, window, e);
  if (!y)
    return c.yield(y);
  return c.yield(e.add(y, e.asChannels(e.cast(bias, elementOf(y)), 2)));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::samplingRows() {
  static const Row rows[] = {
      {"aten.grid_sampler.default", gridSample},
      {"aten.grid_sampler_2d.default", gridSample},
      {"aten.grid_sampler_3d.default", gridSample},
      {"aten.affine_grid_generator.default", affineGrid},
      {"torchvision.roi_align.default", roiAlign},
      {"torchvision.deform_conv2d.default", deformConv},
  };
  return rows;
}
