// Activation functions, as compositions of elementwise operators.
#include "frontends/common/builders/Activation.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using mlir::Value;

static llvm::LogicalResult relu(Node &n, Emitter &e) {
  return n.yield(buildRelu(n.input(0), e));
}
static llvm::LogicalResult leakyRelu(Node &n, Emitter &e) {
  return n.yield(buildLeakyRelu(n.input(0), n.number("alpha"), e));
}
static llvm::LogicalResult pRelu(Node &n, Emitter &e) {
  Value slope = n.input(1);
  // Until opset 6 it is one number, or one a channel.
  if (n.sinceVersion() < 7 && rankOf(slope) == 1) {
    bool single = graph::getShape(slope)[0] == e.number(1);
    if (!single && failed(n.needsRank(0, 2, 32)))
      return llvm::failure();
    slope = e.asChannels(slope, single ? 0 : rankOf(n.input(0)) - 2);
  }
  return n.yield(buildLeakyRelu(n.input(0), slope, e));
}
static llvm::LogicalResult elu(Node &n, Emitter &e) {
  return n.yield(buildElu(n.input(0), n.number("alpha"), e));
}
static llvm::LogicalResult selu(Node &n, Emitter &e) {
  Value elu = buildElu(n.input(0), n.number("alpha"), e);
  return n.yield(e.mul(e.scalar(n.number("gamma"), elementOf(elu)), elu));
}
static llvm::LogicalResult celu(Node &n, Emitter &e) {
  return n.yield(buildCelu(n.input(0), n.number("alpha"), e));
}
static llvm::LogicalResult hardSigmoid(Node &n, Emitter &e) {
  return n.yield(
      buildHardSigmoid(n.input(0), n.number("alpha"), n.number("beta"), e));
}
static llvm::LogicalResult hardSwish(Node &n, Emitter &e) {
  return n.yield(buildHardSwish(n.input(0), e));
}
static llvm::LogicalResult softplus(Node &n, Emitter &e) {
  return n.yield(buildSoftplus(n.input(0), e));
}
static llvm::LogicalResult mish(Node &n, Emitter &e) {
  return n.yield(buildMish(n.input(0), e));
}
static llvm::LogicalResult softsign(Node &n, Emitter &e) {
  return n.yield(buildSoftsign(n.input(0), e));
}
static llvm::LogicalResult thresholdedRelu(Node &n, Emitter &e) {
  Value x = n.input(0);
  auto number = [&](double value) { return e.scalar(value, elementOf(x)); };
  Value above = e.compare(Predicate::gt, x, number(n.number("alpha")));
  return n.yield(e.select(above, x, number(0)));
}
static llvm::LogicalResult shrink(Node &n, Emitter &e) {
  Value x = n.input(0);
  auto number = [&](double value) { return e.scalar(value, elementOf(x)); };
  double lambda = n.number("lambd");
  Value bias = number(n.number("bias"));
  Value low = e.compare(Predicate::lt, x, number(-lambda));
  Value high = e.compare(Predicate::gt, x, number(lambda));
  return n.yield(
      e.select(low, e.add(x, bias), e.select(high, e.sub(x, bias), number(0))));
}
static llvm::LogicalResult swish(Node &n, Emitter &e) {
  return n.yield(buildSwish(n.input(0), n.number("alpha"), e));
}
static llvm::LogicalResult gelu(Node &n, Emitter &e) {
  return n.yield(buildGelu(n.input(0), n.text("approximate", "none"), e));
}
/// ONNX Runtime's gelus of a sum with a bias.
template <bool fast> static llvm::LogicalResult biasGelu(Node &n, Emitter &e) {
  Value x = n.has(1) ? e.add(n.input(0), n.input(1)) : n.input(0);
  return n.yield(buildGelu(x, fast ? "tanh" : "none", e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::activationRows() {
  static const Row rows[] = {
      {"", "Relu", 1, 14, relu},
      {"", "LeakyRelu", 1, 16, leakyRelu},
      {"", "PRelu", 1, 16, pRelu},
      {"", "Elu", 1, 22, elu},
      {"", "Selu", 1, 22, selu},
      {"", "Celu", 12, 28, celu},
      {"", "HardSigmoid", 1, 22, hardSigmoid},
      {"", "HardSwish", 14, 22, hardSwish},
      {"", "Softplus", 1, 22, softplus},
      {"", "Mish", 18, 22, mish},
      {"", "Softsign", 1, 22, softsign},
      {"", "ThresholdedRelu", 10, 22, thresholdedRelu},
      {"", "Shrink", 9, 9, shrink},
      {"", "Swish", 24, 24, swish},
      {"", "Gelu", 20, 20, gelu},
      {"com.microsoft", "Gelu", 1, 1, gelu},
      {"com.microsoft", "BiasGelu", 1, 1, biasGelu<false>},
      {"com.microsoft", "FastGelu", 1, 1, biasGelu<true>},
      {"com.microsoft", "QuickGelu", 1, 1, swish},
  };
  return rows;
}
