// Activation functions and softmax.
#include "frontends/common/builders/Activation.h"
#include "frontends/common/builders/Exact.h"
#include "frontends/pytorch/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using mlir::Value;

static LogicalResult relu(Call &c) {
  return c.yield(buildRelu(c.tensor("self"), c.getEmitter()));
}
static LogicalResult gelu(Call &c) {
  return c.yield(buildGelu(c.tensor("self"), c.text("approximate", "none"),
                           c.getEmitter()));
}
static LogicalResult silu(Call &c) {
  return c.yield(buildSwish(c.tensor("self"), 1, c.getEmitter()));
}
static LogicalResult mish(Call &c) {
  return c.yield(buildMish(c.tensor("self"), c.getEmitter()));
}
static LogicalResult hardswish(Call &c) {
  return c.yield(buildHardSwish(c.tensor("self"), c.getEmitter()));
}
static LogicalResult hardsigmoid(Call &c) {
  return c.yield(
      buildHardSigmoid(c.tensor("self"), 1.0 / 6, 0.5, c.getEmitter()));
}
static LogicalResult hardtanh(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  double low = c.number("min_val", -1), high = c.number("max_val", 1);
  return c.yield(e.min(e.max(x, e.scalar(low, elementOf(x))),
                       e.scalar(high, elementOf(x))));
}
static LogicalResult relu6(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = buildRelu(c.tensor("self"), e);
  return c.yield(e.min(x, e.scalar(6.0, elementOf(x))));
}
static LogicalResult leakyRelu(Call &c) {
  return c.yield(buildLeakyRelu(
      c.tensor("self"), c.number("negative_slope", 0.01), c.getEmitter()));
}
/// Of slopes that are drawn in training, the mean.
static LogicalResult randomRelu(Call &c) {
  c.ignore({"noise", "generator"});
  if (c.flag("training", false))
    return c.fail("is exported for training", "export the model in eval()");
  double slope = (c.number("lower", 0.125) + c.number("upper", 1.0 / 3)) / 2;
  return c.yield(buildLeakyRelu(c.tensor("self"), slope, c.getEmitter()));
}
/// alpha * (exp(input_scale * x) - 1) below zero, all times scale.
static LogicalResult elu(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  double alpha = c.number("alpha", 1), scale = c.number("scale", 1),
         inner = c.number("input_scale", 1);
  if (inner != 1)
    return c.fail("an input_scale other than 1 is not supported");
  return c.yield(scale == 1 ? buildElu(x, alpha, e)
                            : buildSelu(x, alpha, scale, e));
}
static LogicalResult celu(Call &c) {
  return c.yield(
      buildCelu(c.tensor("self"), c.number("alpha", 1), c.getEmitter()));
}
static LogicalResult selu(Call &c) {
  constexpr double alpha = 1.6732632423543772848170429916717,
                   scale = 1.0507009873554804934193349852946;
  return c.yield(buildSelu(c.tensor("self"), alpha, scale, c.getEmitter()));
}
/// Linear above the threshold, where it is equal in floats.
static LogicalResult softplus(Call &c) {
  Emitter &e = c.getEmitter();
  double beta = c.number("beta", 1), threshold = c.number("threshold", 20);
  auto build = [&](Value x) {
    mlir::Type element = elementOf(x);
    Value scaled = beta == 1 ? x : e.mul(x, e.scalar(beta, element));
    Value y = buildSoftplus(scaled, e);
    if (beta != 1)
      y = e.div(y, e.scalar(beta, element));
    Value isLinear =
        e.compare(graph::Predicate::gt, scaled, e.scalar(threshold, element));
    return e.select(isLinear, x, y);
  };
  return c.yield(computeExactly(c.tensor("self"), {beta, threshold}, build, e));
}
static LogicalResult logSigmoid(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Value decay =
      e.op<graph::ExpOp>({e.op<graph::NegOp>({e.op<graph::AbsOp>({x})})});
  return c.yield(e.sub(e.min(x, e.scalar(0.0, elementOf(x))),
                       e.op<graph::Log1pOp>({decay})));
}
static LogicalResult threshold(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Value isLow =
      e.compare(graph::Predicate::le, x, c.operand("threshold", elementOf(x)));
  return c.yield(e.select(isLow, c.operand("value", elementOf(x)), x));
}
/// Nothing from -lambda to lambda; what is beyond as it is, or nearer by
/// lambda.
template <bool isSoft> static LogicalResult shrink(Call &c) {
  Emitter &e = c.getEmitter();
  double lambda = c.number("lambd", 0.5);
  auto build = [&](Value x) {
    mlir::Type element = elementOf(x);
    Value high = e.scalar(lambda, element), low = e.scalar(-lambda, element);
    Value isHigh = e.compare(graph::Predicate::gt, x, high),
          isLow = e.compare(graph::Predicate::lt, x, low);
    // A NaN stays one.
    Value inside = e.mul(x, e.scalar(0.0, element));
    return e.select(isHigh, isSoft ? e.sub(x, high) : x,
                    e.select(isLow, isSoft ? e.sub(x, low) : x, inside));
  };
  return c.yield(computeExactly(c.tensor("self"), {lambda}, build, e));
}
/// One slope, or one a channel.
static LogicalResult prelu(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), slope = c.tensor("weight");
  if (!x || !slope)
    return c.yield(Value());
  if (rankOf(slope) == 1 && rankOf(x) > 2 &&
      graph::getShape(slope)[0] != e.number(1))
    slope = e.asChannels(slope, rankOf(x) - 2);
  return c.yield(buildLeakyRelu(x, slope, e));
}
/// The first half times the sigmoid of the second.
static LogicalResult glu(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t axis = c.axis("dim", rankOf(x), -1);
  Exprs half = c.resultShape();
  if (!x || c.getEmitter().failed() ||
      half.size() != static_cast<size_t>(rankOf(x)))
    return c.fail("does not fit its result");
  Exprs starts = e.numbers(llvm::SmallVector<int64_t>(half.size(), 0));
  llvm::SmallVector<int64_t> steps(half.size(), 1);
  Value a = e.slice(x, starts, steps, half);
  starts[axis] = half[axis];
  Value b = e.slice(x, starts, steps, half);
  return c.yield(e.mul(a, e.op<graph::SigmoidOp>({b})));
}

/// In the type that `dtype` asks for, else that of the operand.
template <bool log> static LogicalResult softmax(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"dtype", "half_to_float"});
  Value x = c.operand("self", c.resultElement());
  if (rankOf(x) == 0) {
    c.ignore({"dim"});
    Value row = e.reshape(x, {e.number(1)});
    return c.yield(e.reshape(buildSoftmax(row, 0, log, e), {}));
  }
  return c.yield(buildSoftmax(x, c.axis("dim", rankOf(x)), log, e));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::activationRows() {
  static const Row rows[] = {
      {"aten.relu.default", relu},
      {"aten.relu6.default", relu6},
      {"aten.gelu.default", gelu},
      {"aten.silu.default", silu},
      {"aten.mish.default", mish},
      {"aten.hardswish.default", hardswish},
      {"aten.hardsigmoid.default", hardsigmoid},
      {"aten.hardtanh.default", hardtanh},
      {"aten.leaky_relu.default", leakyRelu},
      {"aten.rrelu.default", randomRelu},
      {"aten.rrelu_with_noise_functional.default", randomRelu},
      {"aten.elu.default", elu},
      {"aten.celu.default", celu},
      {"aten.selu.default", selu},
      {"aten.softplus.default", softplus},
      {"aten.log_sigmoid.default", logSigmoid},
      {"aten.threshold.default", threshold},
      {"aten.hardshrink.default", shrink<false>},
      {"aten.softshrink.default", shrink<true>},
      {"aten.prelu.default", prelu},
      {"aten._prelu_kernel.default", prelu},
      {"aten.glu.default", glu},
      {"aten.softmax.int", softmax<false>},
      {"aten._softmax.default", softmax<false>},
      {"aten.special_softmax.default", softmax<false>},
      {"aten.special_log_softmax.default", softmax<true>},
      {"aten.log_softmax.int", softmax<true>},
      {"aten._log_softmax.default", softmax<true>},
  };
  return rows;
}
