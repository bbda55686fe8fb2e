// Algebraic identities, one line each, grouped by the operator they match.
//
// None of floats gives another number than the model's own operators do, but
// for zeros' signs and what leaves the range of floats on the way. Two are
// defined by what they become (docs/importing.md): the powers 3 and -0.5, and
// log(softmax). A rule that rounds otherwise would have to find the same
// expression wherever the model writes it, whatever reads it and whichever
// views are between: a maximum less the elements that it is of is 0 or more,
// and its root may be taken.
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>

namespace charonia::graph {
#define GEN_PASS_DEF_SIMPLIFYALGEBRA
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const Term none;

/// Replaces an `Op` by what a rule makes of its operands, broadcast to its
/// type.
template <typename Op, typename Rule> struct Rewrite : OpRewritePattern<Op> {
  Rewrite(MLIRContext *context, StringRef name, Rule rule)
      : OpRewritePattern<Op>(context), rule(rule) {
    this->setDebugName(name);
  }
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto term = [&](unsigned i) {
      return Term(op->getOperand(i), rewriter, op.getLoc());
    };
    Term result;
    if constexpr (std::is_invocable_v<Rule, Op, Term, Term>) {
      result = rule(op, term(0), term(1));
    } else if constexpr (std::is_invocable_v<Rule, Term, Term>) {
      // Constants of commutative operators count as right operands, also where
      // views hide them.
      bool swap = op->template hasTrait<OpTrait::IsCommutative>() &&
                  splatOf(op->getOperand(0)) && !splatOf(op->getOperand(1));
      result = rule(term(swap), term(!swap));
    } else
      result = rule(term(0));
    if (!result)
      return failure();
    Value value =
        broadcastTo(rewriter, op.getLoc(), result.get(), op.getType());
    if (!value)
      return failure();
    rewriter.replaceOp(op, value);
    return success();
  }
  Rule rule;
};

class Table {
public:
  explicit Table(RewritePatternSet &patterns) : patterns(patterns) {}
  template <typename Op, typename Rule> void on(StringRef name, Rule rule) {
    patterns.add(
        std::make_unique<Rewrite<Op, Rule>>(patterns.getContext(), name, rule));
  }

private:
  RewritePatternSet &patterns;
};

std::optional<double> real(Term c) {
  return c.isReal() ? c.constant() : std::nullopt;
}

/// Whether any float type holds a number and its reciprocal, finite and normal.
bool isMiddling(double value) {
  return std::fabs(value) > 1e-4 && std::fabs(value) < 1e4;
}
/// A constant that a product multiplies by, or a quotient divides by, without
/// rounding.
std::optional<double> powerOfTwo(Term c) {
  std::optional<double> value = real(c);
  int exponent;
  bool exact = value && isMiddling(*value) &&
               std::fabs(std::frexp(*value, &exponent)) == 0.5;
  return exact ? value : std::nullopt;
}

void sums(Table &t) {
  t.on<AddOp>("x + 0 = x", [](Term x, Term y) { return y.is(0) ? x : none; });
  t.on<AddOp>("x + -y = x - y", [](Term x, Term y) {
    Term z = y.operand<NegOp>();
    return z ? x - z : none;
  });
  t.on<SubOp>("x - 0 = x", [](Term x, Term y) { return y.is(0) ? x : none; });
  t.on<SubOp>("0 - x = -x", [](Term x, Term y) { return x.is(0) ? -y : none; });
  t.on<SubOp>("x - c = x + -c", [](Term x, Term c) {
    return real(c) ? x + -*c.constant() : none;
  });
  t.on<SubOp>("x - -y = x + y", [](Term x, Term y) {
    Term z = y.operand<NegOp>();
    return z ? x + z : none;
  });
  t.on<NegOp>("--x = x", [](Term x) { return x.operand<NegOp>(); });
}

void products(Table &t) {
  t.on<MulOp>("x * 1 = x", [](Term x, Term y) { return y.is(1) ? x : none; });
  t.on<MulOp>("x * -1 = -x",
              [](Term x, Term y) { return y.is(-1) ? -x : none; });
  t.on<MulOp>("(x * c) * d = x * (c * d)", [](Term x, Term d) {
    Term c = x.operand<MulOp>(1);
    if (!c || !real(c) || !real(d) || !(powerOfTwo(c) || powerOfTwo(d)))
      return none;
    double product = *real(c) * *real(d);
    return isMiddling(*real(c)) && isMiddling(*real(d)) && isMiddling(product)
               ? x.operand<MulOp>(0) * product
               : none;
  });
  t.on<MulOp>("-x * c = x * -c", [](Term x, Term c) {
    Term y = x.operand<NegOp>();
    return y && real(c) ? y * -*c.constant() : none;
  });
  t.on<NegOp>("-(x * c) = x * -c", [](Term x) {
    Term c = x.operand<MulOp>(1);
    return c && real(c) ? x.operand<MulOp>(0) * -*c.constant() : none;
  });
}

void quotients(Table &t) {
  t.on<DivOp>("x / 1 = x", [](Term x, Term y) { return y.is(1) ? x : none; });
  t.on<DivOp>("x / c = x * (1 / c)", [](Term x, Term c) {
    auto value = powerOfTwo(c);
    return value ? x * (1 / *value) : none;
  });
  t.on<DivOp>("1 / x = reciprocal(x)", [](Term x, Term y) {
    return y.isReal() && x.is(1) ? reciprocal(y) : none;
  });
}

void powers(Table &t) {
  // Others keep their general power: chains of products round more often.
  t.on<PowOp>("x ^ 1 = x", [](Term x, Term y) { return y.is(1) ? x : none; });
  t.on<PowOp>("x ^ 2 = x * x",
              [](Term x, Term y) { return y.is(2) ? x * x : none; });
  t.on<PowOp>("x ^ 3 = x * x * x",
              [](Term x, Term y) { return y.is(3) ? x * x * x : none; });
  t.on<PowOp>("x ^ 0.5 = sqrt(x)", [](Term x, Term y) {
    return x.isReal() && y.is(0.5) ? sqrt(x) : none;
  });
  t.on<PowOp>("x ^ -0.5 = rsqrt(x)", [](Term x, Term y) {
    return x.isReal() && y.is(-0.5) ? rsqrt(x) : none;
  });
  t.on<PowOp>("x ^ -1 = reciprocal(x)", [](Term x, Term y) {
    return x.isReal() && y.is(-1) ? reciprocal(x) : none;
  });
  t.on<AbsOp>("|-x| = |x|", [](Term x) {
    Term y = x.operand<NegOp>();
    return y ? abs(y) : none;
  });
  t.on<AbsOp>("||x|| = |x|",
              [](Term x) { return x.operand<AbsOp>() ? x : none; });
}

void bounds(Table &t) {
  t.on<MaxOp>("max(x, x) = x",
              [](Term x, Term y) { return x == y ? x : none; });
  t.on<MinOp>("min(x, x) = x",
              [](Term x, Term y) { return x == y ? x : none; });
  t.on<MaxOp>("max(x, -inf) = x",
              [](Term x, Term y) { return real(y) == -infinity ? x : none; });
  t.on<MinOp>("min(x, inf) = x",
              [](Term x, Term y) { return real(y) == infinity ? x : none; });
  t.on<MaxOp>("max(max(x, c), d) = max(x, max(c, d))", [](Term x, Term d) {
    Term c = x.operand<MaxOp>(1);
    bool match = c && real(c) && real(d) && !std::isnan(*real(c)) &&
                 !std::isnan(*real(d));
    return match ? max(x.operand<MaxOp>(0), std::max(*real(c), *real(d)))
                 : none;
  });
  t.on<MinOp>("min(min(x, c), d) = min(x, min(c, d))", [](Term x, Term d) {
    Term c = x.operand<MinOp>(1);
    bool match = c && real(c) && real(d) && !std::isnan(*real(c)) &&
                 !std::isnan(*real(d));
    return match ? min(x.operand<MinOp>(0), std::min(*real(c), *real(d)))
                 : none;
  });
}

void logic(Table &t) {
  t.on<NotOp>("!!x = x", [](Term x) { return x.operand<NotOp>(); });
  t.on<AndOp>("x & x = x", [](Term x, Term y) { return x == y ? x : none; });
  t.on<OrOp>("x | x = x", [](Term x, Term y) { return x == y ? x : none; });
  auto isBool = [](Term x) { return x.element().isInteger(1); };
  t.on<AndOp>("x & true = x",
              [=](Term x, Term y) { return isBool(x) && y.is(1) ? x : none; });
  t.on<OrOp>("x | false = x",
             [=](Term x, Term y) { return isBool(x) && y.is(0) ? x : none; });
  t.on<NotOp>("!(x == y) = x != y", [](Term x) {
    auto compare = x.as<CompareOp>();
    if (!compare || (compare.getPredicate() != Predicate::eq &&
                     compare.getPredicate() != Predicate::ne))
      return none;
    Predicate inverse =
        compare.getPredicate() == Predicate::eq ? Predicate::ne : Predicate::eq;
    return x.make<CompareOp>(inverse, compare.getLhs(), compare.getRhs());
  });
  t.on<LogOp>("log(softmax(x)) = log_softmax(x)", [](Term x) {
    auto softmax = x.as<SoftmaxOp>();
    bool match = softmax && !softmax.getLog() && softmax->hasOneUse();
    return match ? x.make<SoftmaxOp>(softmax.getInput(), softmax.getAxis(),
                                     /*log=*/true)
                 : none;
  });
}

/// select(!c, x, y) = select(c, y, x)
LogicalResult swapSelect(SelectOp op, PatternRewriter &rewriter) {
  auto negation = op.getCondition().getDefiningOp<NotOp>();
  if (!negation)
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    Value x = op.getLhs(), y = op.getRhs();
    op->setOperands({negation.getInput(), y, x});
  });
  return success();
}

/// select(c, true, false) = c, select(c, false, true) = !c
LogicalResult dropSelect(SelectOp op, PatternRewriter &rewriter) {
  auto x = splatOf(op.getLhs()), y = splatOf(op.getRhs());
  if (!getElementTypeOrSelf(op.getType()).isInteger(1) || !x || !y || *x == *y)
    return failure();
  Value condition = op.getCondition();
  if (*x == 0)
    condition = NotOp::create(rewriter, op.getLoc(), condition);
  Value result = broadcastTo(rewriter, op.getLoc(), condition, op.getType());
  if (!result)
    return failure();
  rewriter.replaceOp(op, result);
  return success();
}

class SimplifyAlgebra
    : public charonia::graph::impl::SimplifyAlgebraBase<SimplifyAlgebra> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    Table table(patterns);
    sums(table);
    products(table);
    quotients(table);
    powers(table);
    bounds(table);
    logic(table);
    patterns.add(swapSelect);
    patterns.add(dropSelect);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation().emitError("internal error: patterns come to no end");
      signalPassFailure();
    }
  }
};

} // namespace
