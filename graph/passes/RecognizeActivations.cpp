#include "graph/passes/Patterns.h"
#include <cmath>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// c with value = c * x.
std::optional<double> multipleOf(Term value, Term x) {
  double coefficient = 1;
  auto withoutSign = [&](Term term) {
    while (Term inner = term.operand<NegOp>()) {
      term = inner;
      coefficient = -coefficient;
    }
    return term;
  };
  value = withoutSign(value);
  if (value == x)
    return coefficient;
  Product product = factorize(value);
  if (product.factors.size() != 1 || !product.divisors.empty() ||
      !(withoutSign(product.factors[0]) == x))
    return std::nullopt;
  return coefficient * product.coefficient;
}

/// The other summand of y + c.
Term plus(Term sum, double c) {
  auto add = sum.as<AddOp>();
  if (!add)
    return {};
  Term a = sum.with(add.getLhs()), b = sum.with(add.getRhs());
  if (b.constant() && isClose(*b.constant(), c))
    return a;
  return a.constant() && isClose(*a.constant(), c) ? b : Term();
}

/// Whether value = sqrt(2 / pi) * (x + 0.044715 x^3), in either of two forms.
bool isTanhArgument(Term value, Term x) {
  constexpr double cubic = 0.044715;
  const double outer = std::sqrt(2 / M_PI);
  Product product = factorize(value);
  if (!isClose(product.coefficient, outer) || !product.divisors.empty())
    return false;
  auto isPower = [&](const Product &p, size_t n) {
    return p.factors.size() == n && p.divisors.empty() &&
           isClose(p.coefficient, cubic) &&
           llvm::all_of(p.factors, [&](Term t) { return t == x; });
  };
  if (product.factors.size() == 1) {
    // x + 0.044715 x x x; the cube may be read once as x * x * x elsewhere.
    auto add = product.factors[0].as<AddOp>();
    if (!add)
      return false;
    Term a = x.with(add.getLhs()), b = x.with(add.getRhs());
    if (!(a == x))
      std::swap(a, b);
    return a == x && isPower(factorize(b), 3);
  }
  if (product.factors.size() == 2) {
    // x * (1 + 0.044715 x x)
    auto [a, b] = std::pair(product.factors[0], product.factors[1]);
    if (!(a == x))
      std::swap(a, b);
    Term square = plus(b, 1);
    return a == x && square && isPower(factorize(square), 2);
  }
  return false;
}

/// 0.5 * x * (1 + erf(x / sqrt(2))), 0.5 * x * erfc(-x / sqrt(2)),
/// 0.5 * x * (1 + tanh(...)).
LogicalResult recognizeGelu(MulOp op, PatternRewriter &rewriter) {
  Term root(op.getResult(), rewriter, op.getLoc());
  Product product = factorize(root);
  if (!root.isReal() || product.factors.size() != 2 ||
      !product.divisors.empty() || !isClose(product.coefficient, 0.5))
    return failure();
  for (unsigned i : {0, 1}) {
    Term x = product.factors[i], other = product.factors[1 - i],
         bell = plus(other, 1);
    if (x.get().getType() != op.getType())
      continue;
    bool tanh = false;
    if (Term argument = other.operand<ErfcOp>()) {
      auto scale = multipleOf(argument, x);
      if (!scale || !isClose(*scale, -M_SQRT1_2))
        continue;
    } else if (!bell) {
      continue;
    } else if (Term argument = bell.operand<ErfOp>()) {
      auto scale = multipleOf(argument, x);
      if (!scale || !isClose(*scale, M_SQRT1_2))
        continue;
    } else if (Term argument = bell.operand<TanhOp>()) {
      if (!isTanhArgument(argument, x))
        continue;
      tanh = true;
    } else {
      continue;
    }
    if (!isReadWithin(op->getOperands(), x.get(), op.getOperation()))
      continue;
    rewriter.replaceOpWithNewOp<GeluOp>(op, op.getType(), x.get(), tanh);
    return success();
  }
  return failure();
}

} // namespace

void charonia::graph::addActivationPatterns(RewritePatternSet &patterns) {
  patterns.add(recognizeGelu);
}
