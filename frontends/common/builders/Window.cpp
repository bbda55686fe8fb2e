#include "frontends/common/builders/Window.h"
#include "frontends/common/builders/ConvTranspose.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

llvm::LogicalResult charonia::frontend::padSame(Window &w, bool upper,
                                                std::optional<double> fill,
                                                Emitter &e) {
  size_t spatial = w.kernel.size();
  Exprs shape = graph::getShape(w.input), padded = shape;
  Exprs lows = e.numbers(SmallVector<int64_t>(shape.size(), 0));
  bool explicitly = false;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t stride = w.strides[i];
    AffineExpr size = shape[w.firstSpatial() + i];
    AffineExpr reach = e.number((w.kernel[i] - 1) * w.dilations[i] + 1);
    AffineExpr total =
        graph::simplify((size.ceilDiv(stride) - 1) * stride + reach - size);
    if (auto known = graph::constantOf(total)) {
      int64_t pad = std::max<int64_t>(*known, 0);
      w.pads[i] = upper ? pad / 2 : pad - pad / 2;
      w.pads[i + spatial] = pad - w.pads[i];
      continue;
    }
    // Windows of one element lie inside.
    if (*graph::constantOf(reach) == 1) {
      w.pads[i] = w.pads[i + spatial] = 0;
      continue;
    }
    // (ceil(size / stride) - 1) * stride >= size - stride, so this suffices.
    if (*graph::constantOf(reach) < stride)
      return e.fail("padding that keeps the size needs a size that is known "
                    "where the stride is over the kernel's size",
                    "fix that size with --shape");
    explicitly = true;
    lows[w.firstSpatial() + i] =
        graph::simplify(upper ? total.floorDiv(2) : total.ceilDiv(2));
    padded[w.firstSpatial() + i] = graph::simplify(size + total);
  }
  if (explicitly && !fill)
    return e.fail("padding that keeps the size needs sizes that are known "
                  "where an average leaves it out",
                  "fix them with --shape");
  if (explicitly) {
    for (size_t d = w.firstSpatial(); d < w.firstSpatial() + spatial; ++d)
      w.padded.push_back({lows[d], shape[d]});
    w.input = e.pad(graph::PadMode::constant, w.input,
                    e.scalar(*fill, elementOf(w.input)), lows, padded);
  }
  return llvm::success(bool(w.input));
}

llvm::LogicalResult charonia::frontend::fitWindow(const Window &w, Emitter &e) {
  size_t spatial = w.kernel.size();
  Exprs shape = graph::getShape(w.input);
  for (size_t i = 0; i < spatial; ++i) {
    if ((w.kernel[i] - 1) * w.dilations[i] > maxWindow)
      return e.fail("the dilated kernel is absurdly large");
    int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    // Where sizes are rounded up, a window may lack less than a stride.
    int64_t inside =
        w.ceilMode ? std::max<int64_t>(reach - w.strides[i] + 1, 1) : reach;
    AffineExpr least = e.number(inside);
    AffineExpr padded = graph::simplify(shape[w.firstSpatial() + i] +
                                        w.pads[i] + w.pads[i + spatial]);
    Symbols &symbols = e.getSymbols();
    if (symbols.assumeAtLeast(padded, least,
                              "so that a window fits into the input"))
      continue;
    std::string window = std::to_string(reach), size = symbols.toString(padded);
    // At some sizes of a declared range it may fit.
    if (symbols.bounds(padded).high >= inside)
      return e.fail("a window of " + window +
                        " may not fit into the padded size " + size + " for " +
                        symbols.describeRanges(padded),
                    "narrow the range with --shape so that " + size +
                        " >= " + std::to_string(inside));
    return e.fail("a window of " + window +
                  " does not fit into the padded size " + size);
  }
  return llvm::success();
}

Value charonia::frontend::buildPool(graph::PoolKind kind, const Window &w,
                                    bool countPadding, Emitter &e) {
  SmallVector<mlir::NamedAttribute> attributes = {
      e.attr("kind", graph::PoolKindAttr::get(e.getContext(), kind)),
      e.attr("kernel", w.kernel), e.attr("strides", w.strides),
      e.attr("pads", w.pads), e.attr("dilations", w.dilations)};
  if (w.ceilMode)
    attributes.push_back(e.unit("ceil_mode"));
  if (countPadding)
    attributes.push_back(e.unit("count_include_pad"));
  if (w.channelsLast)
    attributes.push_back(e.unit("channels_last"));
  return e.op<graph::PoolOp>({w.input}, attributes);
}

Value charonia::frontend::buildConv(const Window &w, Value input, Value filter,
                                    int64_t groups, Emitter &e) {
  if (!input || !filter)
    return {};
  unsigned last = rankOf(input) - 1, channelDim = w.channelsLast ? last : 1;
  AffineExpr extent = graph::getShape(input)[channelDim];
  auto channels = graph::constantOf(extent);
  Exprs shape = graph::getShape(filter);
  auto outputs = graph::constantOf(shape[0]),
       perGroup = graph::constantOf(shape[channelDim]);
  if (!channels && perGroup && groups > 0 &&
      *perGroup <= maxDimension / groups &&
      e.agree(extent, e.number(*perGroup * groups),
              "multiplies over the channels"))
    channels = *perGroup * groups;
  if (!channels)
    return e.fail("the number of channels has to be known",
                  "fix that size with --shape");
  if (!outputs || !perGroup || groups < 1 || groups > *channels ||
      *outputs % groups || *channels / groups != *perGroup ||
      *channels % groups)
    return e.fail("a filter of " + e.describe(filter.getType()) + " in " +
                  llvm::Twine(groups) + " groups does not fit the " +
                  llvm::Twine(*channels) + " channels of the input");
  if (Value sum = convolveByProduct(input, filter, w, groups, e))
    return sum;
  SmallVector<mlir::NamedAttribute> attributes = {
      e.attr("strides", w.strides), e.attr("pads", w.pads),
      e.attr("dilations", w.dilations), e.attr("groups", groups)};
  if (w.channelsLast)
    attributes.push_back(e.unit("channels_last"));
  return e.op<graph::ConvOp>({input, filter}, attributes);
}

llvm::FailureOr<SmallVector<int64_t>> charonia::frontend::kernelOf(Value filter,
                                                                   Emitter &e) {
  SmallVector<int64_t> kernel;
  Exprs shape = graph::getShape(filter);
  for (AffineExpr size : llvm::drop_begin(shape, 2)) {
    auto known = graph::constantOf(size);
    if (!known)
      return e.fail("the filter's size has to be known",
                    "fix that size with --shape");
    kernel.push_back(*known);
  }
  return kernel;
}
