// Canonical forms of semi-affine expressions.
//
// An expression is a polynomial with integer coefficients over atoms: dims,
// symbols, and the divisions and remainders that could not be resolved. A
// division is resolved by taking out the part that the divisor divides and
// showing by bounds that the rest does not reach the divisor; the bounds are
// polynomials themselves, because divisors and extents may be symbolic.
//
// A variable that is a multiple of D > 1 is D times an atom of its own, its
// *unit* `variable floordiv D`; so the coefficients show what divides it, and
// the rules need not know of divisors. `build` puts the variable back.
#include "graph/ir/Polynomial.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

namespace {

bool isDivision(AffineExpr e) {
  return e.getKind() == AffineExprKind::FloorDiv ||
         e.getKind() == AffineExprKind::Mod;
}
bool isA(AffineExpr e, AffineExprKind kind) { return e.getKind() == kind; }
AffineExpr lhs(AffineExpr e) { return cast<AffineBinaryOpExpr>(e).getLHS(); }
AffineExpr rhs(AffineExpr e) { return cast<AffineBinaryOpExpr>(e).getRHS(); }

class Simplifier : PolyArithmetic {
public:
  Simplifier(MLIRContext *context, const Facts &facts)
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

  AffineExpr run(AffineExpr expr) {
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
  bool prove(AffineExpr expr) {
    failed = false;
    Poly p = visit(expr);
    return !failed && nonNegative(p) && !failed;
  }
  bool proveWithin(AffineExpr expr, AffineExpr limit) {
    if (!prove(expr))
      return false;
    Poly below = sum(sum(visit(limit), constant(1), -1), visit(expr), -1);
    return !failed && nonNegative(below) && !failed;
  }

private:
  using Limits = SmallVector<std::optional<Poly>>;

  // --- Expressions to polynomials.
  Poly visit(AffineExpr e) {
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

  // --- Divisors of variables.
  Poly visitVariable(AffineExpr variable) {
    Interval range = facts.rangeOf(variable);
    if (range.low == range.high && range.isBounded())
      return constant(range.low);
    int64_t divisor = facts.divisorOf(variable);
    if (divisor < 2)
      return atom(variable);
    return Poly{{{variable.floorDiv(divisor)}, divisor}};
  }
  /// The variable whose unit `a` is; null if it is none.
  AffineExpr variableOf(AffineExpr a) {
    if (!isA(a, AffineExprKind::FloorDiv) || !isVariable(lhs(a)))
      return {};
    auto by = constantOf(rhs(a));
    return by && *by > 1 && facts.divisorOf(lhs(a)) == *by ? lhs(a)
                                                           : AffineExpr();
  }
  /// Whether `a` is a division that is not resolved.
  bool isOpen(AffineExpr a) { return isDivision(a) && !variableOf(a); }
  bool hasOpen(const Poly &p) {
    return llvm::any_of(p, [&](const auto &term) {
      return llvm::any_of(term.first, [&](AffineExpr a) { return isOpen(a); });
    });
  }

  /// The least number by which p must be multiplied so that each unit becomes
  /// its variable; 1 where that is too large.
  int64_t scaleOf(const Poly &p) {
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
  static constexpr int64_t maxScale = int64_t(1) << 40;

  /// The expression of a polynomial, with variables in place of units.
  AffineExpr build(const Poly &p) {
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
  /// An atom as it reads with a part of the coefficient, which it takes.
  AffineExpr buildAtom(AffineExpr a, int64_t &coefficient) {
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

  /// An unresolved division or remainder.
  Poly opaque(AffineExprKind kind, const Poly &a, const Poly &b) {
    if (failed)
      return {};
    Poly dividend = a, divisor = b;
    // (x floordiv D) floordiv b = x floordiv (D * b)
    if (hasUnits && kind == AffineExprKind::FloorDiv && asConstant(b))
      if (int64_t scale = scaleOf(a); scale != 1) {
        dividend = sum({}, a, scale);
        divisor = sum({}, b, scale);
        if (failed) {
          dividend = a;
          divisor = b;
        }
        failed = false;
      }
    AffineExpr e = getAffineBinaryOpExpr(kind, build(dividend), build(divisor));
    // MLIR's own folding may have found something simpler.
    Depth guard(depth);
    return isDivision(e) || depth > 24 ? atom(e) : visit(e);
  }

  /// Quotient and remainder of a by b > 0.
  std::pair<Poly, Poly> divmod(const Poly &a, const Poly &b) {
    auto divisor = asConstant(b);
    if (failed || (divisor && *divisor <= 0))
      return {opaque(AffineExprKind::FloorDiv, a, b),
              opaque(AffineExprKind::Mod, a, b)};
    Depth guard(depth);
    if (depth > 24) {
      failed = true;
      return {};
    }

    // What b divides comes out.
    Poly quotient, rest = a;
    extract(rest, b, quotient);
    if (auto k = constantQuotient(rest, b))
      return {sum(quotient, constant(*k)), sum(rest, b, -*k)};
    if (b.size() == 1)
      if (auto result = divideByFactor(rest, b))
        return {sum(quotient, result->first), result->second};

    // (x mod m) with b dividing k * m is k * x for the remainder.
    Poly open = rest;
    for (const auto &[m, c] : rest)
      for (AffineExpr at : m) {
        if (!isA(at, AffineExprKind::Mod) || llvm::count(m, at) != 1)
          continue;
        Monomial cofactor = *divide(m, {at});
        Poly step = scaled(visit(rhs(at)), cofactor, c);
        Poly ignored;
        extract(step, b, ignored);
        if (step.empty())
          open = sum(sum(open, Poly{{m, c}}, -1),
                     scaled(visit(lhs(at)), cofactor, c));
        break;
      }
    Poly remainder;
    if (open != rest)
      remainder = divmod(open, b).second;
    else
      remainder = opaque(AffineExprKind::Mod, rest, b);

    if (rest.size() == 1 && rest.begin()->second == 1 &&
        rest.begin()->first.size() == 1) {
      AffineExpr at = rest.begin()->first[0];
      // (x floordiv c) floordiv b = x floordiv (c * b)
      if (isA(at, AffineExprKind::FloorDiv) && isOpen(at)) {
        Poly inner = divmod(visit(lhs(at)), product(visit(rhs(at)), b)).first;
        return {sum(quotient, inner), remainder};
      }
      // (x mod (b * c)) floordiv b = (x floordiv b) mod c
      if (isA(at, AffineExprKind::Mod)) {
        Poly modulus = visit(rhs(at)), factor;
        extract(modulus, b, factor);
        if (modulus.empty()) {
          Poly inner = divmod(divmod(visit(lhs(at)), b).first, factor).second;
          return {sum(quotient, inner), remainder};
        }
      }
    }
    return {sum(quotient, opaque(AffineExprKind::FloorDiv, rest, b)),
            remainder};
  }

  /// k with k * b <= p < (k + 1) * b for all values.
  std::optional<int64_t> constantQuotient(const Poly &p, const Poly &b) {
    if (auto c = asConstant(b)) {
      Interval i = bounds(p);
      if (i.isBounded())
        if (int64_t k = llvm::divideFloorSigned(i.low, *c);
            k == llvm::divideFloorSigned(i.high, *c))
          return k;
    }
    for (int64_t k : {0, -1}) {
      Poly r = sum(p, b, -k);
      if (nonNegative(r) && nonNegative(sum(sum(b, constant(1), -1), r, -1)))
        return k;
    }
    return std::nullopt;
  }

  /// With g dividing b and p = g * p' + r, 0 <= r < g: the division is that of
  /// p' by b / g.
  std::optional<std::pair<Poly, Poly>> divideByFactor(const Poly &p,
                                                      const Poly &b) {
    const auto &[bm, bc] = *b.begin();
    for (const auto &[m, c] : p) {
      if (m.empty())
        continue;
      Monomial common;
      std::set_intersection(
          m.begin(), m.end(), bm.begin(), bm.end(), std::back_inserter(common),
          [](AffineExpr x, AffineExpr y) { return compareExprs(x, y) < 0; });
      if (c == Interval::noLow || bc == Interval::noLow)
        continue;
      int64_t g = std::gcd(c, bc);
      if (g <= 0 || (g == 1 && common.empty()) ||
          (g == bc && common.size() == bm.size()))
        continue;
      Poly factor{{common, g}}, multiple, rest = p;
      extract(rest, factor, multiple);
      if (multiple.empty())
        continue;
      auto k = constantQuotient(rest, factor);
      if (!k)
        continue;
      rest = sum(rest, factor, -*k);
      multiple = sum(multiple, constant(*k));
      Poly smaller{{*divide(bm, common), bc / g}};
      auto [q, r] = divmod(multiple, smaller);
      return std::pair(q, sum(product(r, factor), rest));
    }
    return std::nullopt;
  }

  // --- Putting divisions back together.
  int weight(const Poly &p) {
    int w = 0;
    for (const auto &[m, c] : p) {
      w += 1;
      for (AffineExpr a : m)
        w += isOpen(a) ? 4 : 0;
    }
    return w;
  }

  Poly recombine(Poly p) {
    if (!ready && p.size() > 32)
      return p;
    for (bool changed = true; changed && !failed;) {
      changed = false;
      for (const auto &[m, c] : p) {
        for (AffineExpr at : m) {
          if (!isOpen(at) || llvm::count(m, at) != 1)
            continue;
          if (auto better = recombineAt(p, m, c, at)) {
            p = std::move(*better);
            changed = true;
            break;
          }
        }
        if (changed)
          break;
      }
    }
    return p;
  }

  std::optional<Poly> recombineAt(const Poly &p, const Monomial &m, int64_t c,
                                  AffineExpr at) {
    Depth guard(depth);
    if (depth > 24)
      return std::nullopt;
    Poly x = visit(lhs(at)), by = visit(rhs(at));
    if (auto d = asConstant(by); d && *d <= 0)
      return std::nullopt;
    Monomial cofactor = *divide(m, {at});
    Poly without = sum(p, Poly{{m, c}}, -1);
    auto accept = [&](const Poly &q) {
      return !failed && weight(q) < weight(p);
    };
    if (isA(at, AffineExprKind::FloorDiv)) {
      // x floordiv b * b = x - x mod b
      Poly coefficient{{cofactor, c}}, multiple;
      extract(coefficient, by, multiple);
      if (!coefficient.empty())
        return std::nullopt;
      Poly q =
          sum(without, product(multiple, sum(x, divmod(x, by).second, -1)));
      return accept(q) ? std::optional(q) : std::nullopt;
    }
    // x mod b = x - x floordiv b * b
    Poly floored = divmod(x, by).first;
    Poly q =
        sum(without, scaled(sum(x, product(by, floored), -1), cofactor, c));
    if (accept(q))
      return q;
    // x mod b + ((x floordiv b) mod e) * b = x mod (b * e)
    for (const auto &[m2, c2] : without)
      for (AffineExpr other : m2) {
        if (!isA(other, AffineExprKind::Mod) || llvm::count(m2, other) != 1)
          continue;
        Poly outer = visit(rhs(other));
        if (Poly{{*divide(m2, {other}), c2}} != scaled(by, cofactor, c) ||
            divmod(floored, outer).second != atom(other))
          continue;
        Poly joined = divmod(x, product(by, outer)).second;
        Poly q =
            sum(sum(without, Poly{{m2, c2}}, -1), scaled(joined, cofactor, c));
        if (accept(q))
          return q;
      }
    return std::nullopt;
  }

  // --- Bounds.
  static bool isVariable(AffineExpr e) {
    return isA(e, AffineExprKind::DimId) || isA(e, AffineExprKind::SymbolId);
  }
  /// What a variable is less than.
  std::optional<Poly> limitOf(AffineExpr variable) {
    const Limits &limits =
        isA(variable, AffineExprKind::DimId) ? dimLimits : symbolLimits;
    unsigned i = isA(variable, AffineExprKind::DimId)
                     ? cast<AffineDimExpr>(variable).getPosition()
                     : cast<AffineSymbolExpr>(variable).getPosition();
    return ready && i < limits.size() ? limits[i] : std::nullopt;
  }
  Interval bounds(const Poly &p) {
    Interval total{0, 0};
    for (const auto &[m, c] : p) {
      Interval i{c, c};
      for (AffineExpr a : m)
        i = i * boundsOfAtom(a);
      total = total + i;
    }
    return total;
  }

  /// Whether p >= 0 for all values.
  bool nonNegative(const Poly &p) {
    if (failed)
      return false;
    if (bounds(p).low >= 0)
      return true;
    if (depth > 8)
      return false;
    Depth guard(depth);
    auto least = leastOverDims(p);
    bool proved = least && shiftedNonNegative(*least);
    // Too large to prove is no reason to give up the expression.
    bool result = proved && !failed;
    failed = false;
    return result;
  }

  /// Whether `e` has dims, or symbols that something other than a number
  /// limits.
  bool varies(AffineExpr e) {
    bool found = false;
    e.walk([&](AffineExpr sub) {
      found |= isA(sub, AffineExprKind::DimId) ||
               (isA(sub, AffineExprKind::SymbolId) && limitOf(sub));
    });
    return found;
  }

  /// A lower bound of p without variables that others limit.
  std::optional<Poly> leastOverDims(Poly p) {
    for (int step = 0; step < 16 && !failed; ++step) {
      SmallVector<AffineExpr> candidates;
      for (const auto &[m, c] : p)
        for (AffineExpr a : m)
          if (varies(a) && !llvm::is_contained(candidates, a))
            candidates.push_back(a);
      if (candidates.empty())
        return p;
      // Divisions first: their bounds hold whatever the dims are.
      llvm::sort(candidates, [&](AffineExpr x, AffineExpr y) {
        return isOpen(x) != isOpen(y) ? isOpen(x) : compareExprs(x, y) > 0;
      });
      std::optional<Poly> next;
      for (AffineExpr a : candidates)
        if ((next = substituteLeast(p, a)))
          break;
      if (!next)
        return std::nullopt;
      p = std::move(*next);
    }
    return std::nullopt;
  }

  /// p with atom a at the end of its range that makes p least.
  std::optional<Poly> substituteLeast(const Poly &p, AffineExpr a) {
    Poly cofactor, rest;
    for (const auto &[m, c] : p) {
      if (llvm::count(m, a) > 1)
        return std::nullopt;
      if (auto without = divide(m, {a}))
        addTerm(cofactor, *without, c);
      else
        addTerm(rest, m, c);
    }
    Poly negated = sum({}, cofactor, -1);
    if (nonNegative(cofactor)) {
      int64_t low = boundsOfAtom(a).low;
      return low != Interval::noLow
                 ? std::optional(sum(rest, product(cofactor, constant(low))))
                 : std::nullopt;
    }
    if (nonNegative(negated)) {
      if (AffineExpr variable = variableOf(a))
        return substituteLargest(rest, cofactor, variable);
      auto high = highOf(a);
      return high ? std::optional(sum(rest, product(cofactor, *high)))
                  : std::nullopt;
    }
    return std::nullopt;
  }
  /// rest + cofactor * unit, cofactor <= 0, with the unit at its largest.
  std::optional<Poly> substituteLargest(const Poly &rest, const Poly &cofactor,
                                        AffineExpr variable) {
    auto high = highOf(variable);
    if (!high)
      return std::nullopt;
    Poly by = constant(facts.divisorOf(variable));
    Poly units = divmod(*high, by).first;
    bool exact = !hasOpen(units);
    // In place of a division: the variable itself at its largest.
    Poly left = cofactor, whole;
    if (!exact)
      extract(left, by, whole);
    if (!exact && left.empty())
      return sum(rest, product(whole, *high));
    return sum(rest, product(cofactor, units));
  }
  std::optional<Poly> highOf(AffineExpr a) {
    if (isVariable(a)) {
      if (auto limit = limitOf(a))
        return sum(*limit, constant(1), -1);
      int64_t high = facts.rangeOf(a).high;
      return high == Interval::noHigh ? std::nullopt
                                      : std::optional(constant(high));
    }
    if (isA(a, AffineExprKind::Mod))
      return sum(visit(rhs(a)), constant(1), -1);
    if (isA(a, AffineExprKind::FloorDiv)) {
      Poly by = visit(rhs(a));
      if (llvm::any_of(by, [&](const auto &t) {
            return llvm::any_of(t.first,
                                [&](AffineExpr e) { return varies(e); });
          }))
        return std::nullopt;
      auto negated = leastOverDims(sum({}, visit(lhs(a)), -1));
      if (!negated)
        return std::nullopt;
      return divmod(sum({}, *negated, -1), by).first;
    }
    return std::nullopt;
  }

  /// With every atom written as its lower bound + a non-negative rest: whether
  /// all coefficients are non-negative.
  bool shiftedNonNegative(const Poly &p) {
    Poly total;
    for (const auto &[m, c] : p) {
      Poly term = constant(c);
      for (AffineExpr a : m) {
        int64_t low = boundsOfAtom(a).low;
        if (low == Interval::noLow)
          return false;
        term = product(term, sum(atom(a), constant(low)));
      }
      total = sum(total, term);
    }
    return !failed &&
           llvm::all_of(total, [](const auto &t) { return t.second >= 0; });
  }

  struct Depth {
    explicit Depth(int &d) : d(d) { ++d; }
    ~Depth() { --d; }
    int &d;
  };

  const Facts &facts;
  BoundsFinder boundsOfAtom;
  /// Whether any variable has a divisor.
  bool hasUnits = false;
  Limits dimLimits, symbolLimits;
  DenseMap<AffineExpr, Poly> memo;
  int depth = 0;
  bool ready = false;
};

} // namespace

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
