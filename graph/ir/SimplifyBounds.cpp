// Bounds of polynomials: what the simplifier can prove to be non-negative.
#include "graph/ir/Simplifier.h"
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

std::optional<Poly> Simplifier::limitOf(AffineExpr variable) {
  const Limits &limits =
      isA(variable, AffineExprKind::DimId) ? dimLimits : symbolLimits;
  unsigned i = isA(variable, AffineExprKind::DimId)
                   ? cast<AffineDimExpr>(variable).getPosition()
                   : cast<AffineSymbolExpr>(variable).getPosition();
  return ready && i < limits.size() ? limits[i] : std::nullopt;
}

Interval Simplifier::bounds(const Poly &p) {
  Interval total{0, 0};
  for (const auto &[m, c] : p) {
    Interval i{c, c};
    for (AffineExpr a : m)
      i = i * boundsOfAtom(a);
    total = total + i;
  }
  return total;
}

bool Simplifier::nonNegative(const Poly &p) {
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

bool Simplifier::varies(AffineExpr e) {
  bool found = false;
  e.walk([&](AffineExpr sub) {
    found |= isA(sub, AffineExprKind::DimId) ||
             (isA(sub, AffineExprKind::SymbolId) && limitOf(sub));
  });
  return found;
}

std::optional<Poly> Simplifier::leastOverDims(Poly p) {
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

std::optional<Poly> Simplifier::substituteLeast(const Poly &p, AffineExpr a) {
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

std::optional<Poly> Simplifier::substituteLargest(const Poly &rest,
                                                  const Poly &cofactor,
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
  if (exact)
    return sum(rest, product(cofactor, units));
  // Or a larger part of it, that the highest is a multiple of.
  int64_t part = facts.divisorOf(variable);
  for (const auto &[m, c] : cofactor)
    part = std::gcd(part, c);
  Poly parts = divmod(*high, constant(facts.divisorOf(variable) / part)).first;
  if (part == 1 || hasOpen(parts))
    return sum(rest, product(cofactor, units));
  Poly scaled;
  for (const auto &[m, c] : cofactor)
    addTerm(scaled, m, c / part);
  return sum(rest, product(scaled, parts));
}

std::optional<Poly> Simplifier::highOf(AffineExpr a) {
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
          return llvm::any_of(t.first, [&](AffineExpr e) { return varies(e); });
        }))
      return std::nullopt;
    auto negated = leastOverDims(sum({}, visit(lhs(a)), -1));
    if (!negated)
      return std::nullopt;
    return divmod(sum({}, *negated, -1), by).first;
  }
  return std::nullopt;
}

bool Simplifier::shiftedNonNegative(const Poly &p) {
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
