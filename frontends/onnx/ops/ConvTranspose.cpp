// Transposed convolution.
#include "frontends/common/builders/ConvTranspose.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Window.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// Padding that gives the extents that the node asks for.
static llvm::LogicalResult readPads(Node &n, Emitter &e, TransposedWindow &t,
                                    const Exprs &shape) {
  size_t spatial = t.kernel.size();
  std::string autoPad = n.text("auto_pad", "NOTSET");
  bool upper = autoPad == "SAME_UPPER", same = upper || autoPad == "SAME_LOWER";
  if (!same && autoPad != "NOTSET" && autoPad != "VALID" && !autoPad.empty())
    return e.fail("attribute 'auto_pad' may not be '" + autoPad + "'");
  auto pads = readWindowList(n, e, "pads", 2 * spatial, 0, 0);
  if (failed(pads))
    return llvm::failure();
  t.pads = autoPad == "VALID" ? SmallVector<int64_t>(2 * spatial, 0) : *pads;
  auto extents = n.integers("output_shape");
  if (extents && extents->size() == spatial + 2)
    extents->erase(extents->begin(), extents->begin() + 2);
  if (extents && extents->size() != spatial)
    return e.fail("attribute 'output_shape' has " + Twine(extents->size()) +
                  " entries, but needs " + Twine(spatial));
  if (!extents && !same)
    return llvm::success();
  for (size_t i = 0; i < spatial; ++i) {
    AffineExpr size = shape[i + 2], stride = e.number(t.strides[i]);
    if (extents && std::abs((*extents)[i]) > maxDimension)
      return e.fail("attribute 'output_shape' may not hold " +
                    Twine((*extents)[i]));
    AffineExpr extent = extents ? e.number((*extents)[i]) : size * stride;
    AffineExpr total =
        graph::simplify((size - 1) * stride + t.outputPadding[i] +
                        (t.kernel[i] - 1) * t.dilations[i] + 1 - extent);
    auto known = graph::constantOf(total);
    if (!known)
      return e.fail("the padding has to be known",
                    "fix the input's size with --shape");
    // Negative padding adds to the end.
    int64_t half = llvm::divideFloorSigned(*known, 2);
    t.pads[i] = upper ? half : *known - half;
    t.pads[i + spatial] = *known - t.pads[i];
  }
  return llvm::success();
}

static llvm::FailureOr<TransposedWindow> read(Node &n, Emitter &e) {
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 3, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0)),
        filter = graph::getShape(n.input(1));
  size_t spatial = rank - 2;
  TransposedWindow t;
  for (AffineExpr size : llvm::drop_begin(filter, 2)) {
    auto known = graph::constantOf(size);
    if (!known || *known < 1)
      return e.fail("the filter's size has to be known",
                    "fix that size with --shape");
    t.kernel.push_back(*known);
  }
  if (auto given = n.integers("kernel_shape"); given && *given != t.kernel)
    return e.fail(
        "attribute 'kernel_shape' contradicts the shape of the filter, " +
        e.describe(n.input(1).getType()));
  auto strides = readWindowList(n, e, "strides", spatial, 1, 1);
  auto dilations = readWindowList(n, e, "dilations", spatial, 1, 1);
  auto padding = readWindowList(n, e, "output_padding", spatial, 0, 0);
  if (failed(strides) || failed(dilations) || failed(padding))
    return llvm::failure();
  t.strides = *strides;
  t.dilations = *dilations;
  t.outputPadding = *padding;
  t.groups = n.integer("group", 1);
  auto channels = graph::constantOf(filter[0]),
       perGroup = graph::constantOf(filter[1]);
  if (!e.agree(shape[1], filter[0], "multiplies over the channels") ||
      !channels || !perGroup || t.groups < 1 || *channels % t.groups)
    return e.fail("a filter of " + e.describe(n.input(1).getType()) + " in " +
                  Twine(t.groups) + " groups does not fit " +
                  e.describe(n.input(0).getType()));
  if (failed(readPads(n, e, t, shape)))
    return llvm::failure();
  return t;
}

static llvm::LogicalResult convTranspose(Node &n, Emitter &e) {
  auto t = read(n, e);
  if (failed(t))
    return llvm::failure();
  Value result = buildConvTranspose(n.input(0), n.input(1), *t, e);
  if (!n.has(2) || !result)
    return n.yield(result);
  if (failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  Value sum = e.add(result, e.asChannels(n.input(2), t->kernel.size()));
  if (sum && sum.getType() != result.getType())
    return e.fail("the bias, " + e.describe(n.input(2).getType()) +
                  ", does not have one element an output channel");
  return n.yield(sum);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::convTransposeRows() {
  static const Row rows[] = {
      {"", "ConvTranspose", 1, 22, convTranspose},
  };
  return rows;
}
