#include "frontends/common/builders/Window.h"
#include "frontends/common/builders/ConvTranspose.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// The half of padding that is in front where sizes are open: that of
/// max((ceil(size / stride) - 1) * stride + reach - size, 0), whose maximum no
/// expression has but by counting the steps that it is above.
static AffineExpr openLow(AffineExpr size, int64_t stride, int64_t reach,
                          bool upper, Emitter &e) {
  AffineExpr lacking = (-size) % stride, low = e.number(0);
  // Padding of lacking + reach - stride has `step` elements in front and more.
  for (int64_t step = 1; 2 * step - !upper < reach; ++step) {
    int64_t least = stride - reach + 2 * step - !upper;
    low = low + (lacking - least).floorDiv(stride) + 1;
  }
  return graph::simplify(low);
}

llvm::LogicalResult charonia::frontend::padSame(Window &w, bool upper,
                                                double fill, Emitter &e) {
  size_t spatial = w.kernel.size();
  Exprs shape = graph::getShape(w.input), padded = shape;
  Exprs lows = e.numbers(SmallVector<int64_t>(shape.size(), 0));
  bool explicitly = false;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t stride = w.strides[i];
    AffineExpr size = shape[w.firstSpatial() + i];
    int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    AffineExpr total =
        graph::simplify((size.ceilDiv(stride) - 1) * stride + reach - size);
    if (auto known = graph::constantOf(total)) {
      int64_t pad = std::max<int64_t>(*known, 0);
      w.pads[i] = upper ? pad / 2 : pad - pad / 2;
      w.pads[i + spatial] = pad - w.pads[i];
      continue;
    }
    // Windows of one element lie inside.
    if (reach == 1) {
      w.pads[i] = w.pads[i + spatial] = 0;
      continue;
    }
    // Where windows are apart, nothing may be in front and the end is cut.
    constexpr int64_t mostApart = 64;
    if (reach < stride && reach > mostApart)
      return e.fail("padding that keeps the size needs a size that is known "
                    "where windows of more than " +
                        llvm::Twine(mostApart) + " elements are apart",
                    "fix that size with --shape");
    explicitly = true;
    lows[w.firstSpatial() + i] =
        reach < stride
            ? openLow(size, stride, reach, upper, e)
            : graph::simplify(upper ? total.floorDiv(2) : total.ceilDiv(2));
    padded[w.firstSpatial() + i] = graph::simplify(size + total);
  }
  if (explicitly) {
    for (size_t d = w.firstSpatial(); d < w.firstSpatial() + spatial; ++d)
      w.padded.push_back({lows[d], shape[d]});
    w.input = e.pad(graph::PadMode::constant, w.input,
                    e.scalar(fill, elementOf(w.input)), lows, padded);
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
                      " does not fit into the padded size " + size +
                      " of dimension " + llvm::Twine(w.firstSpatial() + i),
                  "give the model a larger input, or pad it");
  }
  return llvm::success();
}

/// Of the windows along spatial dimension `i` of an input that is padded: how
/// many elements are inside of what was padded, int64, along that dimension of
/// the result's `shape`.
static Value countInside(const Window &w, size_t i, const Exprs &shape,
                         Emitter &e) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  unsigned d = w.firstSpatial() + i;
  Exprs along(shape.size(), e.number(1));
  along[d] = shape[d];
  auto number = [&](int64_t value) { return e.scalar(value, i64); };
  // How many elements are in front of place `end` of the padded input.
  auto countTo = [&](AffineExpr end) {
    Value first = e.mul(e.iota(along, d, i64), number(w.strides[i])),
          reached = e.max(e.sub(e.size(end, i64), first), number(0));
    if (w.dilations[i] > 1)
      reached = e.div(e.add(reached, number(w.dilations[i] - 1)),
                      number(w.dilations[i]));
    return e.min(reached, number(w.kernel[i]));
  };
  AffineExpr low = graph::simplify(w.padded[i].low + w.pads[i]);
  return e.sub(countTo(graph::simplify(low + w.padded[i].size)), countTo(low));
}

/// The average without padding that depends on open sizes, which no pool can
/// leave out: the sum with zeros in its place, divided once by the number of
/// elements that are inside.
static Value averageInside(const Window &w, Emitter &e) {
  Window wide = w;
  wide.input = e.widen(w.input);
  Value sum = wide.input ? buildPool(graph::PoolKind::sum, wide,
                                     /*countPadding=*/false, e)
                         : Value();
  if (!sum)
    return {};
  Exprs shape = graph::getShape(sum);
  Value count;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    Value along = countInside(w, i, shape, e);
    count = count ? e.mul(count, along) : along;
  }
  return e.cast(e.div(sum, e.cast(count, elementOf(sum))), elementOf(w.input));
}

Value charonia::frontend::buildPool(graph::PoolKind kind, const Window &w,
                                    bool countPadding, Emitter &e) {
  if (kind == graph::PoolKind::average && !countPadding && !w.padded.empty())
    return averageInside(w, e);
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
