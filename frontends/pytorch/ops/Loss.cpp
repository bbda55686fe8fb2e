// Losses, as models have them that give their loss beside their results.
#include "frontends/common/builders/Activation.h"
#include "frontends/common/builders/Special.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;
using graph::ReduceKind;

namespace {
/// What a loss compares, in float of half types.
struct Compared {
  explicit Compared(Call &c, llvm::StringRef own = "self",
                    llvm::StringRef other = "target")
      : c(c), e(c.getEmitter()) {
    mlir::Type element = c.resultElement();
    x = e.widen(c.operand(own, element));
    target = e.widen(c.operand(other, element));
  }
  Value number(double value) { return e.scalar(value, elementOf(x)); }
  Value optional(llvm::StringRef name) {
    return c.has(name) ? c.operand(name, elementOf(x)) : Value();
  }
  /// All elements' losses (0), their mean (1) or their sum (2).
  LogicalResult yield(Value terms) {
    int64_t reduction = c.integer("reduction", 1);
    if (!terms || reduction < 0 || reduction > 2)
      return c.fail("reduction " + Twine(reduction) + " is not supported");
    auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(terms)));
    if (reduction == 1)
      terms = e.mean(terms, axes, false);
    else if (reduction == 2)
      terms = e.reduce(ReduceKind::sum, terms, axes, false);
    return c.yield(e.cast(terms, c.resultElement()));
  }
  Call &c;
  Emitter &e;
  Value x, target;
};
} // namespace

static LogicalResult squaredLoss(Call &c) {
  Compared l(c);
  Value way = l.e.sub(l.x, l.target);
  return l.yield(l.e.mul(way, way));
}
static LogicalResult absoluteLoss(Call &c) {
  Compared l(c);
  return l.yield(l.e.op<graph::AbsOp>({l.e.sub(l.x, l.target)}));
}
/// Squared near 0, linear beyond; with `beta` divided by that.
template <bool isHuber> static LogicalResult smoothLoss(Call &c) {
  Compared l(c);
  Emitter &e = l.e;
  double bound = c.number(isHuber ? "delta" : "beta", 1);
  Value way = e.op<graph::AbsOp>({e.sub(l.x, l.target)});
  if (bound == 0 && !isHuber)
    return l.yield(way);
  Value half = e.mul(e.mul(way, way), l.number(isHuber ? 0.5 : 0.5 / bound));
  Value far = e.sub(way, l.number(bound / 2));
  if (isHuber)
    far = e.mul(far, l.number(bound));
  return l.yield(
      e.select(e.compare(Predicate::lt, way, l.number(bound)), half, far));
}
/// target * (log(target) - x).
static LogicalResult divergence(Call &c) {
  Compared l(c);
  Emitter &e = l.e;
  if (c.flag("log_target", false))
    return l.yield(e.mul(e.op<graph::ExpOp>({l.target}), e.sub(l.target, l.x)));
  return l.yield(
      e.sub(buildXLogY(l.target, l.target, false, e), e.mul(l.target, l.x)));
}
/// Of probabilities; logarithms are cut at -100.
static LogicalResult binaryLoss(Call &c) {
  Compared l(c);
  Emitter &e = l.e;
  auto log = [&](Value x, bool plusOne) {
    Value y = plusOne ? e.op<graph::Log1pOp>({x}) : e.op<graph::LogOp>({x});
    return e.max(y, l.number(-100));
  };
  Value no =
      e.mul(e.sub(l.target, l.number(1)), log(e.op<graph::NegOp>({l.x}), true));
  Value terms = e.sub(no, e.mul(l.target, log(l.x, false)));
  Value weight = l.optional("weight");
  return l.yield(weight ? e.mul(terms, weight) : terms);
}
/// Of what the sigmoid is taken of.
static LogicalResult binaryLossOfLogits(Call &c) {
  Compared l(c);
  Emitter &e = l.e;
  // -log(sigmoid(x)) = softplus(-x).
  Value cost = buildSoftplus(e.op<graph::NegOp>({l.x}), e);
  if (Value positive = l.optional("pos_weight")) {
    Value factor =
        e.add(e.mul(e.sub(positive, l.number(1)), l.target), l.number(1));
    cost = e.mul(factor, cost);
  }
  Value terms = e.add(e.mul(e.sub(l.number(1), l.target), l.x), cost);
  Value weight = l.optional("weight");
  return l.yield(weight ? e.mul(terms, weight) : terms);
}
/// log(1 + exp(-target * x)).
static LogicalResult softMarginLoss(Call &c) {
  Compared l(c);
  Emitter &e = l.e;
  return l.yield(buildSoftplus(e.op<graph::NegOp>({e.mul(l.target, l.x)}), e));
}
/// How far the order that `target` says, 1 or -1, is from being kept.
static LogicalResult rankingLoss(Call &c) {
  Compared l(c, "input1");
  Emitter &e = l.e;
  Value way = e.sub(l.x, c.operand("input2", elementOf(l.x)));
  Value missed = e.sub(l.number(c.number("margin", 0)), e.mul(l.target, way));
  return l.yield(e.max(missed, l.number(0)));
}
/// A distance where `target` is 1, what it lacks where it is -1, else both.
static LogicalResult hingeLoss(Call &c) {
  Compared l(c);
  Emitter &e = l.e;
  Value lack = e.max(e.sub(l.number(c.number("margin", 1)), l.x), l.number(0));
  auto unless = [&](double which, Value cost) {
    Value is = e.compare(Predicate::eq, l.target, l.number(which));
    return e.select(is, l.number(0), cost);
  };
  return l.yield(e.add(unless(1, lack), unless(-1, l.x)));
}
/// Of counts; `full` adds Stirling's log(target!).
static LogicalResult poissonLoss(Call &c) {
  Compared l(c, "input");
  Emitter &e = l.e;
  auto log = [&](Value x) { return e.op<graph::LogOp>({x}); };
  double eps = c.number("eps", 1e-8);
  Value cost =
      c.flag("log_input", true)
          ? e.sub(e.op<graph::ExpOp>({l.x}), e.mul(l.target, l.x))
          : e.sub(l.x, e.mul(l.target, log(e.add(l.x, l.number(eps)))));
  if (c.flag("full", false)) {
    constexpr double turn = 6.283185307179586;
    Value more = e.sub(e.mul(l.target, log(l.target)), l.target);
    Value half = e.mul(log(e.mul(l.target, l.number(turn))), l.number(0.5));
    Value isMany = e.compare(Predicate::gt, l.target, l.number(1));
    cost = e.add(cost, e.select(isMany, e.add(more, half), l.number(0)));
  }
  return l.yield(cost);
}

// Of classes.

namespace {
/// Minus the logarithm of the probability of the class of each place.
struct ClassLoss {
  explicit ClassLoss(Call &c) : c(c), e(c.getEmitter()) {}
  /// Sets `terms` and `weights`, both of the target's shape; `logs` has the
  /// classes in dimension 1, or 0 of 1.
  bool choose(Value logs, Value target);
  LogicalResult yield();

  Call &c;
  Emitter &e;
  Value terms, weights, counts;
  int64_t axis = 0;
};
} // namespace

bool ClassLoss::choose(Value logs, Value target) {
  if (!logs || !target || e.failed() || rankOf(logs) < 1 ||
      rankOf(target) != rankOf(logs) - 1) {
    c.fail("needs a class for each place");
    return false;
  }
  axis = rankOf(logs) == 1 ? 0 : 1;
  mlir::Type i64 = e.getBuilder().getI64Type(), element = elementOf(logs);
  Exprs shape = graph::getShape(target), single = shape;
  single.insert(single.begin() + axis, e.number(1));
  target = e.cast(target, i64);
  Value ignored = e.compare(Predicate::eq, target,
                            e.scalar(c.integer("ignore_index", -100), i64));
  target = e.select(ignored, e.scalar(int64_t(0), i64), target);
  Value chosen = e.op<graph::GatherElementsOp>(
      {logs, e.reshape(target, single)}, e.attr("axis", axis));
  Value one = e.scalar(1.0, element), zero = e.scalar(0.0, element);
  weights = c.has("weight")
                ? e.op<graph::GatherOp>({c.operand("weight", element), target},
                                        e.attr("axis", int64_t(0)))
                : e.broadcast(one, shape);
  weights = e.select(ignored, zero, weights);
  counts = e.select(ignored, zero, one);
  terms = e.op<graph::NegOp>({e.mul(e.reshape(chosen, shape), weights)});
  terms = e.select(ignored, zero, terms);
  return !e.failed();
}
LogicalResult ClassLoss::yield() {
  int64_t reduction = c.integer("reduction", 1);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(weights)));
  auto total = [&](Value x) {
    return e.reduce(ReduceKind::sum, x, axes, false);
  };
  Value y = reduction == 0 ? terms : total(terms);
  if (reduction == 1)
    y = e.div(y, total(weights));
  return c.yield(e.cast(y, c.resultElement()));
}

static LogicalResult classLoss(Call &c) {
  Emitter &e = c.getEmitter();
  ClassLoss loss(c);
  Value logs = e.widen(c.operand("self", c.resultElement()));
  if (!loss.choose(logs, c.tensor("target")))
    return c.yield(Value());
  return loss.yield();
}
/// Of logits, with classes or the probabilities of them.
static LogicalResult crossEntropy(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = e.widen(c.operand("self", c.resultElement())),
        target = c.tensor("target");
  double smoothing = c.number("label_smoothing", 0);
  if (!x || !target || rankOf(x) < 1)
    return c.yield(Value());
  int64_t axis = rankOf(x) == 1 ? 0 : 1;
  mlir::Type element = elementOf(x);
  Exprs shape = graph::getShape(x), along(rankOf(x), e.number(1));
  along[axis] = shape[axis];
  Value logs = buildSoftmax(x, axis, true, e);
  Value weight = c.has("weight")
                     ? e.reshape(c.operand("weight", element), along)
                     : Value();
  Value weighted = weight ? e.mul(logs, weight) : logs;
  Value classes = e.size(shape[axis], element);
  auto number = [&](double value) { return e.scalar(value, element); };
  int64_t reduction = c.integer("reduction", 1);
  auto sum = [&](Value y, llvm::ArrayRef<int64_t> axes) {
    return e.reduce(ReduceKind::sum, y, axes, false);
  };
  if (rankOf(target) == rankOf(x) && isFloat(target)) {
    c.ignore({"ignore_index"});
    target = e.cast(target, element);
    if (smoothing > 0)
      target = e.add(e.mul(target, number(1 - smoothing)),
                     e.div(number(smoothing), classes));
    Value terms = e.op<graph::NegOp>({sum(e.mul(weighted, target), {axis})});
    auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(terms)));
    if (reduction != 0)
      terms = sum(terms, axes);
    if (reduction == 1) {
      shape.erase(shape.begin() + axis);
      terms = e.div(terms, e.size(productOf(shape, e.getContext()), element));
    }
    return c.yield(e.cast(terms, c.resultElement()));
  }
  ClassLoss loss(c);
  if (!loss.choose(logs, target))
    return c.yield(Value());
  if (smoothing > 0) {
    Value all = e.op<graph::NegOp>({sum(weighted, {axis})});
    all = e.mul(e.div(all, classes), loss.counts);
    loss.terms = e.add(e.mul(loss.terms, number(1 - smoothing)),
                       e.mul(all, number(smoothing)));
  }
  return loss.yield();
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::lossRows() {
  static const Row rows[] = {
      {"aten.mse_loss.default", squaredLoss},
      {"aten.l1_loss.default", absoluteLoss},
      {"aten.smooth_l1_loss.default", smoothLoss<false>},
      {"aten.huber_loss.default", smoothLoss<true>},
      {"aten.kl_div.default", divergence},
      {"aten.binary_cross_entropy.default", binaryLoss},
      {"aten.binary_cross_entropy_with_logits.default", binaryLossOfLogits},
      {"aten.soft_margin_loss.default", softMarginLoss},
      {"aten.margin_ranking_loss.default", rankingLoss},
      {"aten.hinge_embedding_loss.default", hingeLoss},
      {"aten.poisson_nll_loss.default", poissonLoss},
      {"aten.nll_loss_nd.default", classLoss},
      {"aten.cross_entropy_loss.default", crossEntropy},
  };
  return rows;
}
