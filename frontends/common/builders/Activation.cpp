#include "frontends/common/builders/Activation.h"
#include "frontends/common/builders/Exact.h"

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using mlir::Value;

static Value number(double value, Value like, Emitter &e) {
  return e.scalar(value, elementOf(like));
}
static Value isNegative(Value x, Emitter &e) {
  return e.compare(Predicate::lt, x, number(0, x, e));
}
/// alpha * (exp(x) - 1).
static Value expBranch(Value x, double alpha, Emitter &e) {
  return e.mul(number(alpha, x, e), e.op<graph::Expm1Op>({x}));
}

Value charonia::frontend::buildRelu(Value x, Emitter &e) {
  return e.max(x, number(0, x, e));
}
Value charonia::frontend::buildLeakyRelu(Value x, Value slope, Emitter &e) {
  return e.select(isNegative(x, e), e.mul(x, slope), x);
}
Value charonia::frontend::buildLeakyRelu(Value x, double slope, Emitter &e) {
  auto build = [&](Value x) {
    Value negative = isNegative(x, e);
    return e.select(negative, e.mul(x, number(slope, x, e)), x);
  };
  return computeExactly(x, {slope}, build, e);
}
Value charonia::frontend::buildElu(Value x, double alpha, Emitter &e) {
  auto build = [&](Value x) {
    return e.select(isNegative(x, e), expBranch(x, alpha, e), x);
  };
  return computeExactly(x, {alpha}, build, e);
}
Value charonia::frontend::buildSelu(Value x, double alpha, double scale,
                                    Emitter &e) {
  auto build = [&](Value x) {
    return e.mul(buildElu(x, alpha, e), number(scale, x, e));
  };
  return computeExactly(x, {alpha, scale}, build, e);
}
Value charonia::frontend::buildCelu(Value x, double alpha, Emitter &e) {
  auto build = [&](Value x) {
    Value scaled = e.div(x, number(alpha, x, e)), zero = number(0, x, e);
    return e.add(e.max(x, zero), e.min(expBranch(scaled, alpha, e), zero));
  };
  return computeExactly(x, {alpha}, build, e);
}
Value charonia::frontend::buildHardSigmoid(Value x, double alpha, double beta,
                                           Emitter &e) {
  auto build = [&](Value x) {
    Value line = e.add(e.mul(x, number(alpha, x, e)), number(beta, x, e));
    return e.min(e.max(line, number(0, x, e)), number(1, x, e));
  };
  return computeExactly(x, {alpha, beta}, build, e);
}
Value charonia::frontend::buildHardSwish(Value x, Emitter &e) {
  constexpr double alpha = 1.0 / 6, beta = 0.5;
  auto build = [&](Value x) {
    return e.mul(x, buildHardSigmoid(x, alpha, beta, e));
  };
  return computeExactly(x, {alpha, beta}, build, e);
}
Value charonia::frontend::buildSoftplus(Value x, Emitter &e) {
  Value tail =
      e.op<graph::ExpOp>({e.op<graph::NegOp>({e.op<graph::AbsOp>({x})})});
  return e.add(buildRelu(x, e), e.op<graph::Log1pOp>({tail}));
}
Value charonia::frontend::buildMish(Value x, Emitter &e) {
  return e.mul(x, e.op<graph::TanhOp>({buildSoftplus(x, e)}));
}
Value charonia::frontend::buildSoftsign(Value x, Emitter &e) {
  return e.div(x, e.add(number(1, x, e), e.op<graph::AbsOp>({x})));
}
Value charonia::frontend::buildSwish(Value x, double alpha, Emitter &e) {
  auto build = [&](Value x) {
    Value scaled = alpha == 1 ? x : e.mul(x, number(alpha, x, e));
    return e.mul(x, e.op<graph::SigmoidOp>({scaled}));
  };
  return computeExactly(x, {alpha}, build, e);
}
Value charonia::frontend::buildGelu(Value x, llvm::StringRef approximate,
                                    Emitter &e) {
  if (approximate == "tanh")
    return e.op<graph::GeluOp>({x}, e.unit("tanh"));
  if (approximate == "none")
    return e.op<graph::GeluOp>({x});
  return e.fail("attribute 'approximate' has to be 'none' or 'tanh', not '" +
                approximate + "'");
}
Value charonia::frontend::buildSoftmax(Value x, int64_t axis, bool log,
                                       Emitter &e) {
  llvm::SmallVector<mlir::NamedAttribute> attributes = {e.attr("axis", axis)};
  if (log)
    attributes.push_back(e.unit("log"));
  return e.op<graph::SoftmaxOp>({x}, attributes);
}
