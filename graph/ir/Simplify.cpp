// Canonical forms of semi-affine expressions.
//
// An expression is a polynomial with integer coefficients over atoms: dims,
// symbols, and the divisions and remainders that could not be resolved. A
// division is resolved by taking out the part that the divisor divides and
// showing by bounds that the rest does not reach the divisor; the bounds are
// polynomials themselves, because divisors and extents may be symbolic.
#include "graph/ir/Polynomial.h"
#include "graph/ir/Shape.h"
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
  Simplifier(MLIRContext *context, Facts known)
      : PolyArithmetic(context), facts(std::move(known)) {
    auto read = [&](ArrayRef<AffineExpr> limits, Limits &polys) {
      for (AffineExpr limit : limits)
        polys.push_back(limit ? std::optional(visit(limit)) : std::nullopt);
      // A limit too large to handle bounds nothing.
      if (failed)
        polys.clear();
      failed = false;
    };
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
      if (next == expr)
        break;
      expr = next;
    }
    return expr;
  }
  bool prove(AffineExpr expr) {
    failed = false;
    Poly p = visit(expr);
    return !failed && nonNegative(p) && !failed;
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
      return atom(e);
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

  /// An unresolved division or remainder.
  Poly opaque(AffineExprKind kind, const Poly &a, const Poly &b) {
    if (failed)
      return {};
    AffineExpr e = getAffineBinaryOpExpr(kind, build(a), build(b));
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
      if (isA(at, AffineExprKind::FloorDiv)) {
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
      if (i.low != noLow && i.high != noHigh)
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
  static int weight(const Poly &p) {
    int w = 0;
    for (const auto &[m, c] : p) {
      w += 1;
      for (AffineExpr a : m)
        w += isDivision(a) ? 4 : 0;
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
          if (!isDivision(at) || llvm::count(m, at) != 1)
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
  static constexpr int64_t noLow = std::numeric_limits<int64_t>::min();
  static constexpr int64_t noHigh = std::numeric_limits<int64_t>::max();

  static bool isVariable(AffineExpr e) {
    return isA(e, AffineExprKind::DimId) || isA(e, AffineExprKind::SymbolId);
  }
  static unsigned positionOf(AffineExpr variable) {
    if (auto dim = dyn_cast<AffineDimExpr>(variable))
      return dim.getPosition();
    return cast<AffineSymbolExpr>(variable).getPosition();
  }
  /// What a variable is less than.
  std::optional<Poly> limitOf(AffineExpr variable) {
    const Limits &limits =
        isA(variable, AffineExprKind::DimId) ? dimLimits : symbolLimits;
    unsigned i = positionOf(variable);
    return ready && i < limits.size() ? limits[i] : std::nullopt;
  }
  Interval intervalOf(AffineExpr variable) {
    ArrayRef<Interval> intervals =
        isA(variable, AffineExprKind::DimId) ? facts.dims : facts.symbols;
    unsigned i = positionOf(variable);
    return i < intervals.size() ? intervals[i] : Interval{noLow, noHigh};
  }

  Interval bounds(const Poly &p) {
    Interval total{0, 0};
    for (const auto &[m, c] : p) {
      Interval i{c, c};
      for (AffineExpr a : m)
        i = multiply(i, atomBounds(a));
      total.low = add(total.low, i.low, noLow);
      total.high = add(total.high, i.high, noHigh);
    }
    return total;
  }
  static int64_t add(int64_t a, int64_t b, int64_t none) {
    int64_t r;
    return a == none || b == none || llvm::AddOverflow(a, b, r) ? none : r;
  }
  static Interval multiply(Interval a, Interval b) {
    auto times = [](int64_t x, int64_t y) -> int64_t {
      bool infinite = x == noLow || x == noHigh || y == noLow || y == noHigh;
      if (!x || !y)
        return 0;
      int64_t r;
      if (infinite || llvm::MulOverflow(x, y, r))
        return (x < 0) == (y < 0) ? noHigh : noLow;
      return r;
    };
    int64_t v[] = {times(a.low, b.low), times(a.low, b.high),
                   times(a.high, b.low), times(a.high, b.high)};
    return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
  }
  Interval atomBounds(AffineExpr a) {
    if (isVariable(a)) {
      Interval i = intervalOf(a);
      if (auto limit = limitOf(a))
        if (int64_t high = bounds(*limit).high; high != noHigh)
          i.high = std::min(i.high, std::max(high - 1, i.low));
      return i;
    }
    if (!isDivision(a))
      return {noLow, noHigh};
    Interval x = bounds(visit(lhs(a))), by = bounds(visit(rhs(a)));
    if (by.low <= 0)
      by.low = 1;
    if (isA(a, AffineExprKind::Mod)) {
      int64_t high =
          by.high == noHigh ? noHigh : std::max<int64_t>(by.high, 1) - 1;
      return {0, x.low >= 0 ? std::min(x.high, high) : high};
    }
    Interval r;
    r.low = x.low == noLow ? noLow
            : x.low < 0    ? llvm::divideFloorSigned(x.low, by.low)
            : by.high == noHigh
                ? 0
                : llvm::divideFloorSigned(x.low, std::max<int64_t>(by.high, 1));
    r.high = x.high == noHigh ? noHigh
             : x.high >= 0    ? llvm::divideFloorSigned(x.high, by.low)
                              : -1;
    return r;
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
      llvm::sort(candidates, [](AffineExpr x, AffineExpr y) {
        return compareExprs(x, y) > 0;
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
      auto low = lowOf(a);
      return low ? std::optional(sum(rest, product(cofactor, *low)))
                 : std::nullopt;
    }
    if (nonNegative(negated)) {
      auto high = highOf(a);
      return high ? std::optional(sum(rest, product(cofactor, *high)))
                  : std::nullopt;
    }
    return std::nullopt;
  }
  std::optional<Poly> lowOf(AffineExpr a) {
    int64_t low = atomBounds(a).low;
    return low == noLow ? std::nullopt : std::optional(constant(low));
  }
  std::optional<Poly> highOf(AffineExpr a) {
    if (isVariable(a)) {
      if (auto limit = limitOf(a))
        return sum(*limit, constant(1), -1);
      int64_t high = intervalOf(a).high;
      return high == noHigh ? std::nullopt : std::optional(constant(high));
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
        int64_t low = atomBounds(a).low;
        if (low == noLow)
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

  Facts facts;
  Limits dimLimits, symbolLimits;
  DenseMap<AffineExpr, Poly> memo;
  int depth = 0;
  bool ready = false;
};

} // namespace

/// Dims below their extents; symbols are sizes, at least 1 where `symbols` says
/// nothing.
static Facts factsOf(ArrayRef<AffineExpr> exprs, ArrayRef<AffineExpr> extents,
                     ArrayRef<Interval> symbols) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(),
                    most = std::numeric_limits<int64_t>::max();
  Facts facts;
  for (AffineExpr extent : extents) {
    facts.dims.push_back(extent ? Interval{0, most} : Interval{least, most});
    facts.dimLimits.push_back(extent);
  }
  facts.symbols.assign(symbols.begin(), symbols.end());
  for (ArrayRef<AffineExpr> list : {exprs, extents})
    for (AffineExpr expr : list)
      if (expr)
        expr.walk([&](AffineExpr e) {
          if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
            while (facts.symbols.size() <= symbol.getPosition())
              facts.symbols.push_back({1, most});
        });
  return facts;
}

AffineExpr charonia::graph::simplify(AffineExpr expr) {
  if (isa<AffineConstantExpr, AffineDimExpr, AffineSymbolExpr>(expr))
    return expr;
  return simplify(expr, factsOf(expr, {}, {}));
}

AffineExpr charonia::graph::simplify(AffineExpr expr, const Facts &facts) {
  return Simplifier(expr.getContext(), facts).run(expr);
}

AffineMap charonia::graph::simplify(AffineMap map, ArrayRef<AffineExpr> extents,
                                    ArrayRef<Interval> symbols) {
  Simplifier simplifier(map.getContext(),
                        factsOf(map.getResults(), extents, symbols));
  Exprs results;
  for (AffineExpr result : map.getResults())
    results.push_back(simplifier.run(result));
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                        map.getContext());
}

bool charonia::graph::isNonNegative(AffineExpr expr,
                                    ArrayRef<AffineExpr> extents,
                                    ArrayRef<Interval> symbols) {
  return Simplifier(expr.getContext(), factsOf(expr, extents, symbols))
      .prove(expr);
}

bool charonia::graph::isWithin(AffineExpr expr, AffineExpr limit,
                               const Facts &facts) {
  Simplifier simplifier(expr.getContext(), facts);
  return simplifier.prove(expr) && simplifier.prove(limit - 1 - expr);
}
