// Normalizations and softmax. Scale and shift are operators beside
// graph.normalize.
#include "frontends/common/builders/Normalization.h"
#include "frontends/common/builders/Activation.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Tensors.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::Value;

/// `vector` with one element for each of the channels of `x`, as [C, 1, ...].
static Value channels(Node &n, unsigned i, Value x, Emitter &e) {
  if (failed(n.needsRank(i, 1, 1)) || !x)
    return {};
  Value vector = e.cast(n.input(i), elementOf(x));
  if (vector && !e.agree(graph::getShape(vector)[0], graph::getShape(x)[1],
                         "scales the channels"))
    return e.fail(
        "input " + Twine(i) + ", " + e.describe(n.input(i).getType()) +
        ", does not have one element a channel of " + e.describe(x.getType()));
  return e.asChannels(vector, rankOf(x) - 2);
}

static llvm::LogicalResult batchNormalization(Node &n, Emitter &e) {
  if (!n.integer("spatial", 1))
    return e.fail("spatial = 0 is not supported",
                  "export the model with opset 9 or newer");
  if (n.sinceVersion() < 7 && !n.flag("is_test"))
    return e.fail("is_test = 0, training mode, is not supported",
                  "export the model for inference");
  Value x = n.input(0);
  if (failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  // Statistics may be wider than the data.
  mlir::Type element = elementOf(n.input(4));
  for (unsigned i = 1; i <= 4; ++i) {
    if (failed(n.needsRank(i, 1, 1)))
      return llvm::failure();
    if (!e.agree(graph::getShape(n.input(i))[0], graph::getShape(x)[1],
                 "scales the channels"))
      return e.fail("input " + Twine(i) + ", " +
                    e.describe(n.input(i).getType()) +
                    ", does not have one element a channel of " +
                    e.describe(x.getType()));
  }
  Value mean = n.input(3), variance = n.input(4);
  // In training mode, those of the batch; the given ones are moved towards
  // them.
  SmallVector<Value> running;
  if (n.flag("training_mode")) {
    SmallVector<int64_t> axes{0};
    for (int64_t d = 2; d < rankOf(x); ++d)
      axes.push_back(d);
    Value wide = e.widen(x), average = e.mean(wide, axes, true);
    Value centered = e.sub(wide, average);
    Value spread = e.mean(e.mul(centered, centered), axes, false);
    Exprs vector{graph::getShape(x)[1]};
    average = e.cast(e.reshape(average, vector), element);
    spread = e.cast(spread, element);
    double momentum = n.number("momentum", 0.9);
    auto moved = [&](Value from, Value to) {
      return e.add(e.mul(from, e.scalar(momentum, element)),
                   e.mul(to, e.scalar(1 - momentum, element)));
    };
    running = {moved(mean, average), moved(variance, spread)};
    mean = average;
    variance = spread;
  }
  Value y = buildBatchNorm(x, n.input(1), n.input(2), mean, variance,
                           n.number("epsilon"), e);
  if (running.empty())
    return n.yield(y);
  return n.yield({y, running[0], running[1]});
}

/// Mean and 1 / sqrt(variance + epsilon), for the outputs that ask for them.
template <bool rms>
static llvm::LogicalResult layerNormalization(Node &n, Emitter &e) {
  Value x = n.input(0);
  auto axis = n.axis("axis", rankOf(x), -1);
  if (failed(axis))
    return llvm::failure();
  double epsilon = n.number("epsilon");
  auto axes = llvm::to_vector(llvm::seq<int64_t>(*axis, rankOf(x)));
  Value y = buildNormalize(x, axes, epsilon, rms, e);
  // ONNX Runtime's own may have scale, bias and result of another type.
  mlir::Type element = elementOf(y), result = elementOf(n.input(1));
  if (result && result != element && result.getIntOrFloatBitWidth() > 16)
    element = result;
  y = e.mul(e.cast(y, element), e.cast(n.input(1), element));
  if (n.has(2))
    y = e.add(y, e.cast(n.input(2), element));
  if (y && graph::getShape(y) != graph::getShape(x))
    return e.fail("scale and bias do not broadcast to the input, " +
                  e.describe(x.getType()));
  y = e.cast(y, result);
  unsigned inverse = rms ? 1 : 2;
  if (!n.wants(1) && !n.wants(2))
    return n.yield(y);
  Value wide = e.widen(x), mean = e.mean(wide, axes, true), deviation;
  if (n.wants(inverse) && mean) {
    Value centered = rms ? wide : e.sub(wide, mean);
    Value variance = e.mean(e.mul(centered, centered), axes, true);
    deviation = e.op<graph::RsqrtOp>(
        {e.add(variance, e.scalar(epsilon, elementOf(wide)))});
  }
  mlir::Type stash =
      elementType(int(n.integer("stash_type", 1)), e.getContext());
  if (!stash)
    return e.fail("attribute 'stash_type' names a type that is not supported",
                  elementTypeRemedy);
  if (rms)
    return n.yield({y, e.cast(deviation, stash)});
  return n.yield({y, e.cast(mean, stash), e.cast(deviation, stash)});
}

static llvm::LogicalResult rmsNormalization(Node &n, Emitter &e) {
  Value x = n.input(0);
  auto axis = n.axis("axis", rankOf(x), -1);
  if (failed(axis))
    return llvm::failure();
  auto axes = llvm::to_vector(llvm::seq<int64_t>(*axis, rankOf(x)));
  Value scale = e.cast(n.input(1), elementOf(x));
  Value y = e.mul(buildNormalize(x, axes, n.number("epsilon"), true, e), scale);
  if (y && y.getType() != x.getType())
    return e.fail("the scale does not broadcast to the input, " +
                  e.describe(x.getType()));
  // The result has the scale's type.
  return n.yield(e.cast(y, elementOf(n.input(1))));
}

static llvm::LogicalResult instanceNormalization(Node &n, Emitter &e) {
  Value x = n.input(0);
  if (failed(n.needsRank(0, 3, 32)))
    return llvm::failure();
  Value y = buildNormalize(x, llvm::to_vector(llvm::seq<int64_t>(2, rankOf(x))),
                           n.number("epsilon"), false, e);
  return n.yield(e.add(e.mul(y, channels(n, 1, x, e)), channels(n, 2, x, e)));
}

/// Channels in groups: [N, C, S...] is normalized as [N, G, C/G, S...].
static llvm::LogicalResult groupNormalization(Node &n, Emitter &e) {
  Value x = n.input(0);
  if (failed(n.needsRank(0, 3, 32)))
    return llvm::failure();
  // An open number of channels follows from the scale.
  Value scale = n.sinceVersion() >= 21 ? channels(n, 1, x, e) : Value();
  Exprs shape = graph::getShape(x);
  int64_t groups = n.integer("num_groups");
  Value y = groupChannels(x, groups, e);
  if (!y)
    return llvm::failure();
  y = buildNormalize(y, llvm::to_vector(llvm::seq<int64_t>(2, rankOf(y))),
                     n.number("epsilon"), false, e);
  if (n.sinceVersion() >= 21)
    return n.yield(
        e.add(e.mul(e.reshape(y, shape), scale), channels(n, 2, x, e)));
  // Until opset 20, scale and bias had one element a group.
  y = e.add(e.mul(y, channels(n, 1, y, e)), channels(n, 2, y, e));
  return n.yield(e.reshape(y, shape));
}

/// x / (bias + alpha / size * sum of squares over neighbouring channels) ^
/// beta. The sum is a pooling window over the channels.
static llvm::LogicalResult lrn(Node &n, Emitter &e) {
  Value x = n.input(0);
  if (failed(n.needsRank(0, 3, 32)))
    return llvm::failure();
  int64_t size = n.integer("size");
  if (size < 1 || size > (int64_t(1) << 20))
    return e.fail("attribute 'size' may not be " + Twine(size));
  Value wide = e.widen(x);
  if (!wide)
    return llvm::failure();
  Exprs shape = graph::getShape(x);
  mlir::AffineExpr area =
      productOf(llvm::ArrayRef(shape).drop_front(2), e.getContext());
  Value squares =
      e.reshape(e.mul(wide, wide), {shape[0], e.number(1), shape[1], area});
  int64_t low = (size - 1) / 2, high = size - 1 - low;
  Value sum = e.op<graph::PoolOp>(
      {squares},
      {e.attr("kind",
              graph::PoolKindAttr::get(e.getContext(), graph::PoolKind::sum)),
       e.attr("kernel", {size, 1}), e.attr("strides", {1, 1}),
       e.attr("pads", {low, 0, high, 0}), e.attr("dilations", {1, 1})});
  mlir::Type element = elementOf(wide);
  auto number = [&](double value) { return e.scalar(value, element); };
  Value base = e.add(
      number(n.number("bias")),
      e.mul(number(n.number("alpha") / double(size)), e.reshape(sum, shape)));
  Value y = e.div(wide, e.op<graph::PowOp>({base, number(n.number("beta"))}));
  return n.yield(e.cast(y, elementOf(x)));
}

template <bool log> static llvm::LogicalResult softmax(Node &n, Emitter &e) {
  Value x = n.input(0);
  bool flattens = n.sinceVersion() < 13;
  int64_t rank = rankOf(x);
  auto apply = [&](Value value, int64_t axis) {
    return buildSoftmax(value, axis, log, e);
  };
  // Until opset 12 the dimensions before and from `axis` were one each.
  int64_t given = n.integer("axis");
  if (flattens && given == rank)
    return e.fail("axis " + Twine(given) + " leaves nothing to normalize");
  auto axis = n.axis(given, rank);
  if (failed(axis))
    return llvm::failure();
  if (!flattens || *axis == rank - 1)
    return n.yield(apply(x, *axis));
  Exprs shape = graph::getShape(x);
  auto part = [&](unsigned begin, unsigned end) {
    return productOf(llvm::ArrayRef(shape).slice(begin, end - begin),
                     e.getContext());
  };
  Value flat = e.reshape(x, {part(0, *axis), part(*axis, rank)});
  return n.yield(e.reshape(apply(flat, 1), shape));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::normalizationRows() {
  static const Row rows[] = {
      {"", "BatchNormalization", 1, 15, batchNormalization},
      {"", "LayerNormalization", 1, 17, layerNormalization<false>},
      {"", "SimplifiedLayerNormalization", 1, 1, layerNormalization<true>},
      {"", "RMSNormalization", 23, 23, rmsNormalization},
      {"", "InstanceNormalization", 1, 22, instanceNormalization},
      {"", "GroupNormalization", 18, 21, groupNormalization},
      {"", "LRN", 1, 13, lrn},
      {"", "Softmax", 1, 13, softmax<false>},
      {"", "LogSoftmax", 1, 13, softmax<true>},
  };
  return rows;
}
