// Convolution, and transposed convolution.
#include "frontends/common/builders/ConvTranspose.h"
#include "frontends/common/builders/Window.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

/// Of "same": the smaller half before the input.
static LogicalResult readPadding(Call &c, Window &w) {
  unsigned spatial = w.kernel.size();
  const Argument *padding = c.find("padding");
  if (!padding || padding->kind != Argument::Kind::String) {
    SmallVector<int64_t> lows = c.repeated("padding", spatial, 0);
    w.pads = lows;
    w.pads.append(lows.begin(), lows.end());
    return llvm::success();
  }
  w.pads.assign(2 * spatial, 0);
  if (padding->text == "valid")
    return llvm::success();
  if (padding->text != "same")
    return c.fail("padding '" + padding->text + "' is not supported");
  for (unsigned i = 0; i < spatial; ++i) {
    int64_t total = (w.kernel[i] - 1) * w.dilations[i];
    w.pads[i] = total / 2;
    w.pads[i + spatial] = total - total / 2;
  }
  return llvm::success();
}

static LogicalResult checkWindow(Call &c, const Window &w) {
  auto all = [&](llvm::ArrayRef<int64_t> values, int64_t low,
                 llvm::StringRef what) {
    for (int64_t value : values)
      if (value < low || value > maxWindow)
        c.fail("a " + what + " of " + llvm::Twine(value) + " is not supported");
  };
  all(w.kernel, 1, "kernel");
  all(w.strides, 1, "stride");
  all(w.dilations, 1, "dilation");
  all(w.pads, 0, "padding");
  return llvm::failure(c.getEmitter().failed());
}

/// The transposed convolution of an input with a batch.
static Value transposedConv(Call &c, Value x, Value filter, const Window &w) {
  Emitter &e = c.getEmitter();
  TransposedWindow t;
  t.kernel = w.kernel;
  t.strides = w.strides;
  t.dilations = w.dilations;
  t.pads = w.pads;
  t.outputPadding = c.repeated("output_padding", w.kernel.size(), 0);
  t.groups = c.integer("groups", 1);
  for (auto [i, padding] : llvm::enumerate(t.outputPadding))
    if (padding < 0 || padding >= std::max(w.strides[i], w.dilations[i]))
      return c.fail("an output_padding of " + llvm::Twine(padding) +
                    " is not supported");
  Exprs shape = graph::getShape(filter);
  auto channels = graph::constantOf(shape[0]),
       perGroup = graph::constantOf(shape[1]);
  if (!channels || !perGroup || t.groups < 1 || *channels % t.groups ||
      !e.agree(graph::getShape(x)[1], shape[0], "multiplies over the channels"))
    return c.fail("a filter of " + e.describe(shape) + " in " +
                  llvm::Twine(t.groups) + " groups does not fit " +
                  e.describe(graph::getShape(x)));
  return buildConvTranspose(x, filter, t, e);
}

template <bool transposed> static LogicalResult conv(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value x = c.operand("input", element), filter = c.operand("weight", element),
        bias = c.has("bias") ? c.operand("bias", element) : Value();
  bool isTransposed = transposed || c.flag("transposed", false);
  if (!isTransposed)
    c.ignore({"output_padding"});
  if (!hasRank(c, filter, "weight", 3, 5) ||
      !hasRank(c, x, "input", rankOf(filter) - 1, rankOf(filter)))
    return c.yield(Value());
  bool isBatch = rankOf(x) == rankOf(filter);
  if (!isBatch) {
    Exprs shape = graph::getShape(x);
    shape.insert(shape.begin(), e.number(1));
    x = e.reshape(x, shape);
  }
  auto kernel = kernelOf(filter, e);
  if (failed(kernel))
    return llvm::failure();
  Window w;
  w.input = x;
  w.kernel = *kernel;
  unsigned spatial = w.kernel.size();
  w.strides = c.repeated("stride", spatial, 1);
  w.dilations = c.repeated("dilation", spatial, 1);
  if (failed(checkWindow(c, w)) || failed(readPadding(c, w)) ||
      failed(checkWindow(c, w)) || (!isTransposed && failed(fitWindow(w, e))))
    return llvm::failure();
  Value y = isTransposed ? transposedConv(c, x, filter, w)
                         : buildConv(w, x, filter, c.integer("groups", 1), e);
  if (bias && y) {
    if (!hasRank(c, bias, "bias", 1, 1))
      return c.yield(Value());
    y = e.add(y, e.asChannels(bias, spatial));
  }
  return c.yield(isBatch ? y : e.reshape(y, c.resultShape()));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::convolutionRows() {
  static const Row rows[] = {
      {"aten.conv1d.default", conv<false>},
      {"aten.conv2d.default", conv<false>},
      {"aten.conv3d.default", conv<false>},
      {"aten.conv1d.padding", conv<false>},
      {"aten.conv2d.padding", conv<false>},
      {"aten.conv3d.padding", conv<false>},
      {"aten.convolution.default", conv<false>},
      {"aten.conv_transpose1d.default", conv<true>},
      {"aten.conv_transpose2d.input", conv<true>},
      {"aten.conv_transpose3d.input", conv<true>},
  };
  return rows;
}
