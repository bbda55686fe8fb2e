// Activation functions, as compositions of elementwise operators.
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using mlir::Value;

namespace {
/// The operand of an activation, and numbers of its type.
struct Operand {
  Operand(Node &n, Emitter &e) : x(n.input(0)), e(e) {}
  Value number(double value) const { return e.scalar(value, elementOf(x)); }
  Value isNegative() const { return e.compare(Predicate::lt, x, number(0)); }
  Value exp(Value v) const { return e.op<graph::ExpOp>({v}); }
  Value tanh(Value v) const { return e.op<graph::TanhOp>({v}); }

  Value x;
  Emitter &e;
};
} // namespace

static llvm::LogicalResult relu(Node &n, Emitter &e) {
  Operand o(n, e);
  return n.yield(e.max(o.x, o.number(0)));
}
static llvm::LogicalResult leakyRelu(Node &n, Emitter &e) {
  Operand o(n, e);
  return n.yield(
      e.select(o.isNegative(), e.mul(o.x, o.number(n.number("alpha"))), o.x));
}
static llvm::LogicalResult pRelu(Node &n, Emitter &e) {
  Operand o(n, e);
  return n.yield(e.select(o.isNegative(), e.mul(o.x, n.input(1)), o.x));
}
/// alpha * (exp(x) - 1) below zero.
static Value expBranch(const Operand &o, double alpha, Value scaled) {
  Emitter &e = o.e;
  return e.mul(o.number(alpha), e.op<graph::Expm1Op>({scaled}));
}
static llvm::LogicalResult elu(Node &n, Emitter &e) {
  Operand o(n, e);
  return n.yield(
      e.select(o.isNegative(), expBranch(o, n.number("alpha"), o.x), o.x));
}
static llvm::LogicalResult selu(Node &n, Emitter &e) {
  Operand o(n, e);
  Value elu =
      e.select(o.isNegative(), expBranch(o, n.number("alpha"), o.x), o.x);
  return n.yield(e.mul(o.number(n.number("gamma")), elu));
}
static llvm::LogicalResult celu(Node &n, Emitter &e) {
  Operand o(n, e);
  double alpha = n.number("alpha");
  Value scaled = e.div(o.x, o.number(alpha));
  return n.yield(e.add(e.max(o.x, o.number(0)),
                       e.min(expBranch(o, alpha, scaled), o.number(0))));
}
static Value hardSigmoidOf(const Operand &o, double alpha, double beta) {
  Emitter &e = o.e;
  Value line = e.add(e.mul(o.x, o.number(alpha)), o.number(beta));
  return e.min(e.max(line, o.number(0)), o.number(1));
}
static llvm::LogicalResult hardSigmoid(Node &n, Emitter &e) {
  return n.yield(hardSigmoidOf({n, e}, n.number("alpha"), n.number("beta")));
}
static llvm::LogicalResult hardSwish(Node &n, Emitter &e) {
  Operand o(n, e);
  return n.yield(e.mul(o.x, hardSigmoidOf(o, 1.0 / 6, 0.5)));
}
/// log(1 + exp(x)), written so that exp cannot overflow.
static Value softplusOf(const Operand &o) {
  Emitter &e = o.e;
  Value tail = o.exp(e.op<graph::NegOp>({e.op<graph::AbsOp>({o.x})}));
  return e.add(e.max(o.x, o.number(0)), e.op<graph::Log1pOp>({tail}));
}
static llvm::LogicalResult softplus(Node &n, Emitter &e) {
  return n.yield(softplusOf({n, e}));
}
static llvm::LogicalResult mish(Node &n, Emitter &e) {
  Operand o(n, e);
  return n.yield(e.mul(o.x, o.tanh(softplusOf(o))));
}
static llvm::LogicalResult softsign(Node &n, Emitter &e) {
  Operand o(n, e);
  return n.yield(e.div(o.x, e.add(o.number(1), e.op<graph::AbsOp>({o.x}))));
}
static llvm::LogicalResult thresholdedRelu(Node &n, Emitter &e) {
  Operand o(n, e);
  Value above = e.compare(Predicate::gt, o.x, o.number(n.number("alpha")));
  return n.yield(e.select(above, o.x, o.number(0)));
}
static llvm::LogicalResult shrink(Node &n, Emitter &e) {
  Operand o(n, e);
  double lambda = n.number("lambd");
  Value bias = o.number(n.number("bias"));
  Value low = e.compare(Predicate::lt, o.x, o.number(-lambda));
  Value high = e.compare(Predicate::gt, o.x, o.number(lambda));
  return n.yield(e.select(low, e.add(o.x, bias),
                          e.select(high, e.sub(o.x, bias), o.number(0))));
}
static llvm::LogicalResult swish(Node &n, Emitter &e) {
  Operand o(n, e);
  double alpha = n.number("alpha");
  Value scaled = alpha == 1 ? o.x : e.mul(o.x, o.number(alpha));
  return n.yield(e.mul(o.x, e.op<graph::SigmoidOp>({scaled})));
}
static llvm::LogicalResult gelu(Node &n, Emitter &e) {
  std::string approximate = n.text("approximate");
  if (approximate == "tanh")
    return n.yield(e.op<graph::GeluOp>({n.input(0)}, e.unit("tanh")));
  if (approximate == "none")
    return n.yield(e.op<graph::GeluOp>({n.input(0)}));
  return e.fail("attribute 'approximate' has to be 'none' or 'tanh', not '" +
                approximate + "'");
}

llvm::ArrayRef<Row> charonia::frontend::onnx::activationRows() {
  static const Row rows[] = {
      {"", "Relu", 6, 14, relu},
      {"", "LeakyRelu", 6, 16, leakyRelu},
      {"", "PRelu", 7, 16, pRelu},
      {"", "Elu", 6, 22, elu},
      {"", "Selu", 6, 22, selu},
      {"", "Celu", 12, 28, celu},
      {"", "HardSigmoid", 6, 22, hardSigmoid},
      {"", "HardSwish", 14, 22, hardSwish},
      {"", "Softplus", 1, 22, softplus},
      {"", "Mish", 18, 22, mish},
      {"", "Softsign", 1, 22, softsign},
      {"", "ThresholdedRelu", 10, 22, thresholdedRelu},
      {"", "Shrink", 9, 9, shrink},
      {"", "Swish", 24, 24, swish},
      {"", "Gelu", 20, 20, gelu},
  };
  return rows;
}
