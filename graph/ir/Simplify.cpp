// The simplifier of expressions: to polynomials, and back.
#include "graph/ir/Simplifier.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

Simplifier::Simplifier(MLIRContext *context, const Facts &facts)
    : PolyArithmetic(context), facts(facts), boundsOfAtom(facts) {
  auto read = [&](ArrayRef<AffineExpr> limits, Limits &polys) {
    for (AffineExpr limit : limits)
      polys.push_back(limit ? std::optional(visit(limit)) : std::nullopt);
    // A limit too large to handle bounds nothing.
    if (failed)
      polys.clear();
    failed = false;
  };
  auto divides = [](int64_t divisor) { return divisor > 1; };
  hasUnits = llvm::any_of(facts.dimDivisors, divides) ||
             llvm::any_of(facts.symbolDivisors, divides);
  read(facts.dimLimits, dimLimits);
  read(facts.symbolLimits, symbolLimits);
  ready = true;
  memo.clear();
}

AffineExpr Simplifier::run(AffineExpr expr) {
  // A second look may join what the first has opened.
  for (int round = 0; round < 4; ++round) {
    failed = false;
    Poly p = visit(expr);
    AffineExpr next = failed ? expr : build(p);
    if (next == expr || !hasOpen(p))
      return next;
    expr = next;
  }
  return expr;
}

bool Simplifier::prove(AffineExpr expr) {
  failed = false;
  Poly p = visit(expr);
  return !failed && nonNegative(p) && !failed;
}

bool Simplifier::proveWithin(AffineExpr expr, AffineExpr limit) {
  if (!prove(expr))
    return false;
  Poly below = sum(sum(visit(limit), constant(1), -1), visit(expr), -1);
  return !failed && nonNegative(below) && !failed;
}

Poly Simplifier::visit(AffineExpr e) {
  if (failed)
    return {};
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return constant(c.getValue());
  auto binary = dyn_cast<AffineBinaryOpExpr>(e);
  if (!binary)
    return visitVariable(e);
  if (auto it = memo.find(e); it != memo.end())
    return it->second;
  Poly a = visit(binary.getLHS()), b = visit(binary.getRHS()), result;
  switch (e.getKind()) {
  case AffineExprKind::Add:
    result = recombine(sum(a, b));
    break;
  case AffineExprKind::Mul:
    result = recombine(product(a, b));
    break;
  case AffineExprKind::CeilDiv:
    // Of integers, ceil(a / b) = floor((a + b - 1) / b).
    result = recombine(divmod(sum(sum(a, b), constant(1), -1), b).first);
    break;
  case AffineExprKind::FloorDiv:
    result = recombine(divmod(a, b).first);
    break;
  default:
    result = recombine(divmod(a, b).second);
    break;
  }
  if (!failed)
    memo[e] = result;
  return result;
}

Poly Simplifier::visitVariable(AffineExpr variable) {
  Interval range = facts.rangeOf(variable);
  if (range.low == range.high && range.isBounded())
    return constant(range.low);
  int64_t divisor = facts.divisorOf(variable);
  if (divisor < 2)
    return atom(variable);
  return Poly{{{variable.floorDiv(divisor)}, divisor}};
}

AffineExpr Simplifier::variableOf(AffineExpr a) {
  if (!isA(a, AffineExprKind::FloorDiv) || !isVariable(lhs(a)))
    return {};
  auto by = constantOf(rhs(a));
  return by && *by > 1 && facts.divisorOf(lhs(a)) == *by ? lhs(a)
                                                         : AffineExpr();
}

bool Simplifier::hasOpen(const Poly &p) {
  return llvm::any_of(p, [&](const auto &term) {
    return llvm::any_of(term.first, [&](AffineExpr a) { return isOpen(a); });
  });
}

int64_t Simplifier::scaleOf(const Poly &p) {
  int64_t scale = 1;
  for (const auto &[m, c] : p) {
    int64_t units = 1;
    for (AffineExpr a : m)
      if (AffineExpr variable = variableOf(a))
        if (llvm::MulOverflow(units, facts.divisorOf(variable), units))
          return 1;
    if (units == 1 || c == Interval::noLow)
      continue;
    int64_t missing = units / std::gcd(c, units);
    if (llvm::MulOverflow(scale, missing / std::gcd(scale, missing), scale) ||
        scale > maxScale)
      return 1;
  }
  return scale;
}

AffineExpr Simplifier::build(const Poly &p) {
  AffineExpr result;
  for (const auto &[m, c] : p) {
    Monomial atoms;
    int64_t coefficient = c;
    for (AffineExpr a : m)
      atoms.push_back(buildAtom(a, coefficient));
    AffineExpr term = buildTerm(atoms, coefficient);
    result = result ? result + term : term;
  }
  return result ? result : getAffineConstantExpr(0, context);
}

AffineExpr Simplifier::buildAtom(AffineExpr a, int64_t &coefficient) {
  if (coefficient == Interval::noLow)
    return a;
  if (AffineExpr variable = variableOf(a)) {
    int64_t divisor = facts.divisorOf(variable),
            taken = std::gcd(coefficient, divisor);
    coefficient /= taken;
    return variable.floorDiv(divisor / taken);
  }
  if (!isA(a, AffineExprKind::Mod) || !hasUnits)
    return a;
  // (x floordiv D) mod b * D = x mod (D * b)
  auto by = constantOf(rhs(a));
  if (!by || *by < 1)
    return a;
  Poly inside = visit(lhs(a));
  int64_t scale = scaleOf(inside), modulus = 0;
  Poly whole = sum({}, inside, scale);
  bool fits = !failed && !llvm::MulOverflow(*by, scale, modulus);
  failed = false;
  if (!fits || scale == 1 || coefficient % scale)
    return a;
  coefficient /= scale;
  return build(whole) % modulus;
}

AffineExpr charonia::graph::simplify(AffineExpr expr) {
  if (isa<AffineConstantExpr, AffineDimExpr, AffineSymbolExpr>(expr))
    return expr;
  return simplify(expr, Facts::ofCoordinates());
}

AffineExpr charonia::graph::simplify(AffineExpr expr, const Facts &facts) {
  return Simplifier(expr.getContext(), facts).run(expr);
}

AffineMap charonia::graph::simplify(AffineMap map,
                                    ArrayRef<AffineExpr> extents) {
  Facts facts = Facts::ofCoordinates(extents);
  Simplifier simplifier(map.getContext(), facts);
  Exprs results;
  for (AffineExpr result : map.getResults())
    results.push_back(simplifier.run(result));
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                        map.getContext());
}

bool charonia::graph::isNonNegative(AffineExpr expr, const Facts &facts) {
  return Simplifier(expr.getContext(), facts).prove(expr);
}

bool charonia::graph::isNonNegative(AffineExpr expr,
                                    ArrayRef<AffineExpr> extents) {
  return isNonNegative(expr, Facts::ofCoordinates(extents));
}

bool charonia::graph::isWithin(AffineExpr expr, AffineExpr limit,
                               const Facts &facts) {
  return Simplifier(expr.getContext(), facts).proveWithin(expr, limit);
}
