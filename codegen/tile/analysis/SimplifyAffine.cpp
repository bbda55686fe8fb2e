#include "codegen/tile/analysis/SimplifyAffine.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::tile;

namespace {

/// A fixed order of expressions, the same in every run.
int compare(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return a.getKind() < b.getKind() ? -1 : 1;
  if (auto x = dyn_cast<AffineConstantExpr>(a)) {
    int64_t u = x.getValue(), v = cast<AffineConstantExpr>(b).getValue();
    return u < v ? -1 : 1;
  }
  if (auto x = dyn_cast<AffineDimExpr>(a))
    return x.getPosition() < cast<AffineDimExpr>(b).getPosition() ? -1 : 1;
  if (auto x = dyn_cast<AffineSymbolExpr>(a))
    return x.getPosition() < cast<AffineSymbolExpr>(b).getPosition() ? -1 : 1;
  auto x = cast<AffineBinaryOpExpr>(a), y = cast<AffineBinaryOpExpr>(b);
  if (int left = compare(x.getLHS(), y.getLHS()))
    return left;
  return compare(x.getRHS(), y.getRHS());
}

/// coefficient * product of factors (sorted; none is a sum, product or
/// constant).
struct Term {
  int64_t coefficient;
  SmallVector<AffineExpr, 2> factors;
};

/// Whether the factors of `c` are among those of `t`; `rest` is what remains.
bool dividesFactors(ArrayRef<AffineExpr> c, ArrayRef<AffineExpr> t,
                    SmallVectorImpl<AffineExpr> &rest) {
  rest.assign(t.begin(), t.end());
  for (AffineExpr f : c) {
    auto *it = llvm::find(rest, f);
    if (it == rest.end())
      return false;
    rest.erase(it);
  }
  return true;
}

class Simplifier {
public:
  Simplifier(const Ranges &ranges, MLIRContext *context)
      : ranges(ranges), context(context) {}

  AffineExpr run(AffineExpr expr) { return build(terms(expr)); }

  graph::Interval bounds(AffineExpr expr) {
    return graph::boundsOf(expr, ranges.dims, ranges.symbols);
  }

  /// Whether 0 <= expr < limit is certain; both simplified.
  bool within(AffineExpr expr, AffineExpr limit) {
    graph::Interval b = bounds(expr);
    if (b.low < 0)
      return false;
    if (b.high < bounds(limit).low)
      return true;
    if (expr.getKind() == AffineExprKind::Mod &&
        cast<AffineBinaryOpExpr>(expr).getRHS() == limit)
      return true;
    auto limitOf = [&](AffineExpr e) -> AffineExpr {
      auto s = dyn_cast<AffineSymbolExpr>(e);
      if (!s || s.getPosition() >= ranges.symbolLimits.size())
        return {};
      return ranges.symbolLimits[s.getPosition()];
    };
    if (AffineExpr known = limitOf(expr))
      return run(known) == limit;
    return false;
  }

private:
  SmallVector<Term> terms(AffineExpr expr) {
    SmallVector<Term> out;
    collect(expr, 1, out);
    return out;
  }

  void collect(AffineExpr expr, int64_t scale, SmallVectorImpl<Term> &out) {
    if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
      out.push_back({c.getValue() * scale, {}});
      return;
    }
    auto bin = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!bin) {
      out.push_back({scale, {expr}});
      return;
    }
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      collect(bin.getLHS(), scale, out);
      collect(bin.getRHS(), scale, out);
      return;
    case AffineExprKind::Mul: {
      SmallVector<Term> a = terms(bin.getLHS()), b = terms(bin.getRHS());
      for (const Term &x : a)
        for (const Term &y : b) {
          Term t{x.coefficient * y.coefficient * scale, x.factors};
          t.factors.append(y.factors.begin(), y.factors.end());
          llvm::sort(t.factors, [](AffineExpr l, AffineExpr r) {
            return compare(l, r) < 0;
          });
          out.push_back(std::move(t));
        }
      return;
    }
    case AffineExprKind::CeilDiv: {
      // ceildiv(a, c) = floordiv(a + c - 1, c)
      collect((bin.getLHS() + bin.getRHS() - 1).floorDiv(bin.getRHS()), scale,
              out);
      return;
    }
    default:
      break;
    }
    SmallVector<Term> reduced = expr.getKind() == AffineExprKind::Mod
                                    ? mod(bin.getLHS(), bin.getRHS())
                                    : floorDiv(bin.getLHS(), bin.getRHS());
    for (Term &t : reduced) {
      t.coefficient *= scale;
      out.push_back(std::move(t));
    }
  }

  /// The single term that a divisor is; none if it is a sum.
  std::optional<Term> divisor(AffineExpr c) {
    SmallVector<Term> t = combined(terms(c));
    if (t.size() != 1 || t[0].coefficient <= 0)
      return std::nullopt;
    return t[0];
  }

  /// Splits `all` into multiples of c (divided by it) and the rest.
  static void split(ArrayRef<Term> all, const Term &c,
                    SmallVectorImpl<Term> &multiples,
                    SmallVectorImpl<Term> &rest) {
    for (const Term &t : all) {
      SmallVector<AffineExpr> factors;
      if (t.coefficient % c.coefficient == 0 &&
          dividesFactors(c.factors, t.factors, factors))
        multiples.push_back(
            {t.coefficient / c.coefficient, {factors.begin(), factors.end()}});
      else
        rest.push_back(t);
    }
  }

  /// For a constant c: divides the rest and c by what divides both; the
  /// constant term of the rest is rounded down, which floor division allows.
  static int64_t commonFactor(ArrayRef<Term> rest, const Term &c) {
    if (!c.factors.empty())
      return 1;
    int64_t g = c.coefficient;
    for (const Term &t : rest)
      if (!t.factors.empty())
        g = std::gcd(g, t.coefficient);
    return g;
  }

  static int64_t floorDivide(int64_t a, int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
  }

  /// For a constant c: splits the rest into coarse + fine, where some g divides
  /// c and every coefficient of coarse, and 0 <= fine < g is certain. Then
  /// (coarse + fine) floordiv c = (coarse/g) floordiv (c/g), and the remainder
  /// is g * ((coarse/g) mod (c/g)) + fine. Gives the largest such g; 0 if there
  /// is none.
  int64_t splitFine(ArrayRef<Term> rest, const Term &c,
                    SmallVectorImpl<Term> &coarse,
                    SmallVectorImpl<Term> &fine) {
    if (!c.factors.empty())
      return 0;
    int64_t best = 0;
    for (const Term &t : rest) {
      int64_t g = std::gcd(t.coefficient, c.coefficient);
      if (g <= 1 || g <= best)
        continue;
      SmallVector<Term> above, below;
      for (const Term &u : rest)
        (u.coefficient % g == 0 ? above : below).push_back(u);
      // A constant's multiple of g belongs to the coarse part.
      for (Term &u : below)
        if (u.factors.empty() && u.coefficient >= g) {
          above.push_back({u.coefficient / g * g, {}});
          u.coefficient %= g;
        }
      graph::Interval b = bounds(build(below));
      if (below.empty() || b.low < 0 || b.high >= g)
        continue;
      best = g;
      coarse.assign(above.begin(), above.end());
      fine.assign(below.begin(), below.end());
    }
    for (Term &t : coarse)
      t.coefficient /= std::max<int64_t>(best, 1);
    return best;
  }

  SmallVector<Term> floorDiv(AffineExpr a, AffineExpr cExpr) {
    std::optional<Term> c = divisor(cExpr);
    SmallVector<Term> all = combined(terms(a)), result, rest;
    if (!c)
      return {{1, {build(all).floorDiv(run(cExpr))}}};
    split(all, *c, result, rest);
    if (rest.empty())
      return result;
    AffineExpr cBuilt = build({*c});
    if (within(build(rest), cBuilt))
      return result;
    SmallVector<Term> coarse, fine;
    if (int64_t g = splitFine(rest, *c, coarse, fine)) {
      result.append(floorDiv(
          build(coarse), getAffineConstantExpr(c->coefficient / g, context)));
      return result;
    }
    int64_t g = commonFactor(rest, *c);
    if (g > 1) {
      for (Term &t : rest)
        t.coefficient = floorDivide(t.coefficient, g);
      c->coefficient /= g;
      cBuilt = build({*c});
      llvm::erase_if(rest, [](const Term &t) { return t.coefficient == 0; });
      if (rest.empty())
        return result;
      if (c->coefficient == 1 && c->factors.empty()) {
        result.append(rest);
        return result;
      }
    }
    AffineExpr r = build(rest);
    auto nested = dyn_cast<AffineBinaryOpExpr>(r);
    if (nested && nested.getKind() == AffineExprKind::FloorDiv) {
      Term product = *c;
      if (std::optional<Term> inner = divisor(nested.getRHS())) {
        product.coefficient *= inner->coefficient;
        product.factors.append(inner->factors.begin(), inner->factors.end());
        llvm::sort(product.factors, [](AffineExpr l, AffineExpr r) {
          return compare(l, r) < 0;
        });
        SmallVector<Term> merged = floorDiv(nested.getLHS(), build({product}));
        result.append(merged);
        return result;
      }
    }
    result.push_back({1, {r.floorDiv(cBuilt)}});
    return result;
  }

  SmallVector<Term> mod(AffineExpr a, AffineExpr cExpr) {
    std::optional<Term> c = divisor(cExpr);
    SmallVector<Term> all = combined(terms(a)), multiples, rest;
    if (!c)
      return {{1, {build(all) % run(cExpr)}}};
    split(all, *c, multiples, rest);
    if (rest.empty())
      return {};
    AffineExpr cBuilt = build({*c});
    AffineExpr r = build(rest);
    if (within(r, cBuilt))
      return rest;
    SmallVector<Term> coarse, fine;
    if (int64_t g = splitFine(rest, *c, coarse, fine)) {
      SmallVector<Term> result = mod(
          build(coarse), getAffineConstantExpr(c->coefficient / g, context));
      for (Term &t : result)
        t.coefficient *= g;
      result.append(fine);
      return result;
    }
    if (c->factors.empty()) {
      // x mod (k*c) mod c is x mod c.
      auto nested = dyn_cast<AffineBinaryOpExpr>(r);
      if (nested && nested.getKind() == AffineExprKind::Mod)
        if (auto q = dyn_cast<AffineConstantExpr>(nested.getRHS()))
          if (q.getValue() % c->coefficient == 0)
            return mod(nested.getLHS(), cBuilt);
      int64_t g = c->coefficient;
      for (const Term &t : rest)
        g = std::gcd(g, t.coefficient);
      if (g > 1) {
        for (Term &t : rest)
          t.coefficient /= g;
        SmallVector<Term> inner = mod(
            build(rest), getAffineConstantExpr(c->coefficient / g, context));
        for (Term &t : inner)
          t.coefficient *= g;
        return inner;
      }
    }
    return {{1, {r % cBuilt}}};
  }

  /// Like terms added, zeros dropped, quotients and remainders joined, sorted.
  SmallVector<Term> combined(SmallVector<Term> in) {
    SmallVector<Term> out;
    for (Term &t : in) {
      auto *same = llvm::find_if(
          out, [&](const Term &o) { return o.factors == t.factors; });
      if (same == out.end())
        out.push_back(std::move(t));
      else
        same->coefficient += t.coefficient;
    }
    llvm::erase_if(out, [](const Term &t) { return t.coefficient == 0; });
    if (joinOnce(out))
      return combined(std::move(out));
    llvm::sort(out, [](const Term &a, const Term &b) {
      for (auto [x, y] : llvm::zip(a.factors, b.factors))
        if (int order = compare(x, y))
          return order < 0;
      return a.factors.size() > b.factors.size();
    });
    return out;
  }

  /// k * (e mod c) and k*c * d become k * w, see wholeOf.
  bool joinOnce(SmallVectorImpl<Term> &all) {
    for (size_t i = 0; i < all.size(); ++i)
      for (AffineExpr factor : all[i].factors) {
        auto m = dyn_cast<AffineBinaryOpExpr>(factor);
        if (!m || m.getKind() != AffineExprKind::Mod)
          continue;
        std::optional<Term> c = divisor(m.getRHS());
        if (!c)
          continue;
        Term others = all[i];
        others.factors.erase(llvm::find(others.factors, factor));
        for (size_t j = 0; j < all.size(); ++j) {
          if (j == i ||
              all[j].coefficient != all[i].coefficient * c->coefficient)
            continue;
          for (AffineExpr other : all[j].factors) {
            auto d = dyn_cast<AffineBinaryOpExpr>(other);
            AffineExpr whole = d ? wholeOf(d, m, *c) : AffineExpr();
            if (!whole)
              continue;
            SmallVector<AffineExpr> expect(others.factors.begin(),
                                           others.factors.end());
            expect.append(c->factors.begin(), c->factors.end());
            expect.push_back(other);
            llvm::sort(expect, [](AffineExpr l, AffineExpr r) {
              return compare(l, r) < 0;
            });
            if (ArrayRef<AffineExpr>(expect) !=
                ArrayRef<AffineExpr>(all[j].factors))
              continue;
            AffineExpr scaled = build({others}) * whole;
            all.erase(all.begin() + std::max(i, j));
            all.erase(all.begin() + std::min(i, j));
            collect(scaled, 1, all);
            return true;
          }
        }
      }
    return false;
  }

  /// The expression w with e mod c + c * d == w, where `m` is e mod c:
  /// d = f floordiv c gives f, and d = (h + f floordiv c) mod q gives
  /// (c*h + f) mod (c*q), for f = e or f = e mod (n*c). Null where neither
  /// fits.
  AffineExpr wholeOf(AffineBinaryOpExpr d, AffineBinaryOpExpr m,
                     const Term &c) {
    auto isQuotient = [&](AffineExpr x) {
      auto q = dyn_cast<AffineBinaryOpExpr>(x);
      return q && q.getKind() == AffineExprKind::FloorDiv &&
             q.getRHS() == m.getRHS() && congruent(q.getLHS(), m.getLHS(), c);
    };
    if (isQuotient(d))
      return d.getLHS();
    if (d.getKind() != AffineExprKind::Mod)
      return {};
    SmallVector<Term> parts = combined(terms(d.getLHS()));
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].coefficient != 1 || parts[i].factors.size() != 1 ||
          !isQuotient(parts[i].factors[0]))
        continue;
      AffineExpr f = cast<AffineBinaryOpExpr>(parts[i].factors[0]).getLHS();
      parts.erase(parts.begin() + i);
      return (build(parts) * m.getRHS() + f) % (d.getRHS() * m.getRHS());
    }
    return {};
  }

  /// f mod c == e mod c by form: equal, or f is e mod a multiple of c.
  bool congruent(AffineExpr f, AffineExpr e, const Term &c) {
    if (f == e)
      return true;
    auto m = dyn_cast<AffineBinaryOpExpr>(f);
    if (!m || m.getKind() != AffineExprKind::Mod || m.getLHS() != e)
      return false;
    std::optional<Term> q = divisor(m.getRHS());
    SmallVector<AffineExpr> rest;
    return q && q->coefficient % c.coefficient == 0 &&
           dividesFactors(c.factors, q->factors, rest);
  }

  AffineExpr build(SmallVector<Term> in) {
    AffineExpr sum = getAffineConstantExpr(0, context);
    for (const Term &t : combined(std::move(in))) {
      AffineExpr product = getAffineConstantExpr(1, context);
      for (AffineExpr f : t.factors)
        product = product * f;
      sum = sum + product * t.coefficient;
    }
    return sum;
  }

  const Ranges &ranges;
  MLIRContext *context;
};

} // namespace

AffineExpr tile::simplifyWithin(AffineExpr expr, const Ranges &ranges) {
  return Simplifier(ranges, expr.getContext()).run(expr);
}

AffineMap tile::simplifyWithin(AffineMap map, const Ranges &ranges) {
  Simplifier simplifier(ranges, map.getContext());
  SmallVector<AffineExpr> results;
  for (AffineExpr r : map.getResults())
    results.push_back(simplifier.run(r));
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                        map.getContext());
}

bool tile::isWithin(AffineExpr expr, AffineExpr limit, const Ranges &ranges) {
  Simplifier simplifier(ranges, expr.getContext());
  return simplifier.within(simplifier.run(expr), simplifier.run(limit));
}
