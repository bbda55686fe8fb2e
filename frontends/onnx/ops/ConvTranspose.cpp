// Transposed convolution, as the convolution of the spread-out input with the
// mirrored filter.
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

namespace {
struct Transposed {
  SmallVector<int64_t> kernel, strides, dilations, pads, outputPadding;
  int64_t groups = 1;
};
} // namespace

/// Padding that gives the extents that the node asks for.
static llvm::LogicalResult readPads(Node &n, Emitter &e, Transposed &t,
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

static llvm::FailureOr<Transposed> read(Node &n, Emitter &e) {
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 3, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0)),
        filter = graph::getShape(n.input(1));
  size_t spatial = rank - 2;
  Transposed t;
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

/// Elements a stride apart with zeros between, and around them what the filter
/// reaches: padding that is negative cuts zeros.
static Value spread(Value input, const Transposed &t, Emitter &e) {
  size_t spatial = t.kernel.size();
  Exprs shape = graph::getShape(input), apart = {shape[0], shape[1]},
        wide = apart, joined = apart;
  for (size_t i = 0; i < spatial; ++i) {
    AffineExpr size = shape[i + 2];
    apart.append({size, e.number(1)});
    wide.append({size, e.number(t.strides[i])});
    joined.push_back(graph::simplify(size * t.strides[i]));
  }
  Value zero = e.scalar(int64_t(0), elementOf(input));
  Value value = e.reshape(input, apart);
  if (apart != wide)
    value = e.pad(graph::PadMode::constant, value, zero,
                  e.numbers(SmallVector<int64_t>(wide.size(), 0)), wide);
  value = e.reshape(value, joined);
  Exprs lows = e.numbers({0, 0}), padded = joined;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t reach = (t.kernel[i] - 1) * t.dilations[i];
    int64_t low = reach - t.pads[i];
    int64_t high =
        reach - t.pads[i + spatial] + t.outputPadding[i] - (t.strides[i] - 1);
    lows.push_back(e.number(low));
    padded[i + 2] = graph::simplify(joined[i + 2] + low + high);
  }
  // Equal extents may still be shifted: zeros in front, cut behind.
  bool unmoved = llvm::all_of(
      lows, [&](AffineExpr e) { return graph::constantOf(e) == 0; });
  return unmoved && padded == joined
             ? value
             : e.pad(graph::PadMode::constant, value, zero, lows, padded);
}

/// [C, O/g, K...] as [O, C/g, K...], mirrored in space.
static Value mirror(Value filter, const Transposed &t, Emitter &e) {
  Exprs shape = graph::getShape(filter);
  AffineExpr groups = e.number(t.groups),
             inputs = graph::simplify(shape[0].floorDiv(t.groups));
  Exprs grouped = {groups, inputs, shape[1]},
        result = {graph::simplify(shape[1] * groups), inputs};
  SmallVector<int64_t> permutation = {0, 2, 1};
  Exprs starts = e.numbers({0, 0});
  SmallVector<int64_t> steps = {1, 1};
  for (size_t i = 0; i < t.kernel.size(); ++i) {
    grouped.push_back(shape[i + 2]);
    result.push_back(shape[i + 2]);
    permutation.push_back(3 + i);
    starts.push_back(e.number(t.kernel[i] - 1));
    steps.push_back(-1);
  }
  Value value =
      e.reshape(e.transpose(e.reshape(filter, grouped), permutation), result);
  return e.slice(value, starts, steps, result);
}

static llvm::LogicalResult convTranspose(Node &n, Emitter &e) {
  auto t = read(n, e);
  if (failed(t))
    return llvm::failure();
  size_t spatial = t->kernel.size();
  Value result = e.op<graph::ConvOp>(
      {spread(n.input(0), *t, e), mirror(n.input(1), *t, e)},
      {e.attr("strides", SmallVector<int64_t>(spatial, 1)),
       e.attr("pads", SmallVector<int64_t>(2 * spatial, 0)),
       e.attr("dilations", t->dilations), e.attr("groups", t->groups)});
  if (!n.has(2) || !result)
    return n.yield(result);
  if (failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  Value sum = e.add(result, e.asChannels(n.input(2), spatial));
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
