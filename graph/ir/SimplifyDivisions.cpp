// Divisions and remainders: resolving them, and putting them back together.
#include "graph/ir/Simplifier.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

Poly Simplifier::opaque(AffineExprKind kind, const Poly &a, const Poly &b) {
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

/// Whether a value stays in 64 bits, as far as that can be told: by its bounds,
/// or as no size is beyond 2^40.
bool Simplifier::fits(const Poly &p) {
  constexpr int64_t largest = int64_t(1) << 22;
  return bounds(p).isBounded() || llvm::all_of(p, [](const auto &term) {
           return term.first.empty() ||
                  (term.second >= -largest && term.second <= largest);
         });
}

std::pair<Poly, Poly> Simplifier::divmod(const Poly &a, const Poly &b) {
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
  if (auto result = divideNearMultiples(rest, b))
    return {sum(quotient, result->first), result->second};
  if (auto result = divideQuotientAndMore(rest, b))
    return {sum(quotient, result->first), result->second};
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
      Poly without =
          sum(sum(open, Poly{{m, c}}, -1), scaled(visit(lhs(at)), cofactor, c));
      if (step.empty() && fits(without))
        open = std::move(without);
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
  return {sum(quotient, opaque(AffineExprKind::FloorDiv, rest, b)), remainder};
}

std::optional<int64_t> Simplifier::constantQuotient(const Poly &p,
                                                    const Poly &b) {
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

/// By a constant b, of terms a little more or less than multiples of it: places
/// in rows of b elements of what lies in rows of b - 1.
std::optional<std::pair<Poly, Poly>>
Simplifier::divideNearMultiples(const Poly &p, const Poly &b) {
  std::optional<int64_t> divisor = asConstant(b);
  if (!divisor || *divisor < 2)
    return std::nullopt;
  Poly quotient, rest;
  for (const auto &[m, c] : p) {
    int64_t near = c;
    if (!m.empty() && c != Interval::noLow) {
      near = c % *divisor;
      near -= near > *divisor / 2 ? *divisor : 0;
      near += near < -(*divisor / 2) ? *divisor : 0;
    }
    if (near != c)
      quotient = sum(quotient, Poly{{m, (c - near) / *divisor}});
    if (near != 0)
      rest = sum(rest, Poly{{m, near}});
  }
  if (quotient.empty() || failed)
    return std::nullopt;
  std::optional<int64_t> k = constantQuotient(rest, b);
  if (!k)
    return std::nullopt;
  return std::pair(sum(quotient, constant(*k)), sum(rest, b, -*k));
}

/// (x floordiv c + y) floordiv b = (x + y * c) floordiv (c * b), where nothing
/// is left of that division.
std::optional<std::pair<Poly, Poly>>
Simplifier::divideQuotientAndMore(const Poly &p, const Poly &b) {
  if (p.size() < 2)
    return std::nullopt;
  for (const auto &[m, c] : p) {
    if (c != 1 || m.size() != 1 || !isA(m[0], AffineExprKind::FloorDiv))
      continue;
    Poly by = visit(rhs(m[0])), others = sum(p, Poly{{m, c}}, -1),
         whole = sum(visit(lhs(m[0])), product(others, by)),
         divisor = product(by, b), quotient;
    if (failed)
      return std::nullopt;
    extract(whole, divisor, quotient);
    std::optional<std::pair<Poly, Poly>> result;
    if (auto k = constantQuotient(whole, divisor))
      result = {sum(quotient, constant(*k)), {}};
    else if ((result = divideNearMultiples(whole, divisor)))
      result->first = sum(quotient, result->first);
    if (!result)
      continue;
    result->second = sum(p, product(result->first, b), -1);
    return result;
  }
  return std::nullopt;
}

std::optional<std::pair<Poly, Poly>> Simplifier::divideByFactor(const Poly &p,
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

int Simplifier::weight(const Poly &p) {
  int w = 0;
  for (const auto &[m, c] : p) {
    w += 1;
    for (AffineExpr a : m)
      w += isOpen(a) ? 4 : 0;
  }
  return w;
}

Poly Simplifier::recombine(Poly p) {
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

std::optional<Poly> Simplifier::recombineAt(const Poly &p, const Monomial &m,
                                            int64_t c, AffineExpr at) {
  Depth guard(depth);
  if (depth > 24)
    return std::nullopt;
  Poly x = visit(lhs(at)), by = visit(rhs(at));
  if (auto d = asConstant(by); d && *d <= 0)
    return std::nullopt;
  Monomial cofactor = *divide(m, {at});
  Poly without = sum(p, Poly{{m, c}}, -1);
  auto accept = [&](const Poly &q) { return !failed && weight(q) < weight(p); };
  if (isA(at, AffineExprKind::FloorDiv)) {
    // x floordiv b * b = x - x mod b
    Poly coefficient{{cofactor, c}}, multiple;
    extract(coefficient, by, multiple);
    if (!coefficient.empty())
      return std::nullopt;
    Poly q = sum(without, product(multiple, sum(x, divmod(x, by).second, -1)));
    return accept(q) ? std::optional(q) : std::nullopt;
  }
  // x mod b = x - x floordiv b * b
  Poly floored = divmod(x, by).first;
  Poly q = sum(without, scaled(sum(x, product(by, floored), -1), cofactor, c));
  if (accept(q))
    return q;
  // x mod b + ((x floordiv b) mod e) * b = x mod (b * e), where b may be a sum,
  // whose terms are multiplied by themselves
  for (const auto &[m2, c2] : without)
    for (AffineExpr other : m2) {
      if (!isA(other, AffineExprKind::Mod) || llvm::count(m2, other) != 1)
        continue;
      Poly outer = visit(rhs(other)),
           multiple = product(atom(other), scaled(by, cofactor, c));
      bool isThere = llvm::all_of(multiple, [&](const auto &term) {
        auto found = without.find(term.first);
        return found != without.end() && found->second == term.second;
      });
      if (!isThere || divmod(floored, outer).second != atom(other))
        continue;
      Poly joined = divmod(x, product(by, outer)).second;
      Poly q = sum(sum(without, multiple, -1), scaled(joined, cofactor, c));
      if (accept(q))
        return q;
    }
  return std::nullopt;
}
