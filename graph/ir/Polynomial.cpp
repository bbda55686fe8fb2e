#include "graph/ir/Polynomial.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia::graph;

/// More terms than this are not worth handling, nor are longer products.
static constexpr size_t maxTerms = 128, maxAtoms = 16;

int charonia::graph::compareExprs(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  auto rank = [](AffineExpr e) { return (int)e.getKind(); };
  if (a.getKind() != b.getKind()) {
    // Dims, then symbols, then divisions and remainders.
    auto order = [&](AffineExpr e) {
      return e.getKind() == AffineExprKind::DimId      ? -2
             : e.getKind() == AffineExprKind::SymbolId ? -1
                                                       : rank(e);
    };
    return order(a) < order(b) ? -1 : 1;
  }
  auto three = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  if (auto x = dyn_cast<AffineConstantExpr>(a))
    return three(x.getValue(), cast<AffineConstantExpr>(b).getValue());
  if (auto x = dyn_cast<AffineDimExpr>(a))
    return three(x.getPosition(), cast<AffineDimExpr>(b).getPosition());
  if (auto x = dyn_cast<AffineSymbolExpr>(a))
    return three(x.getPosition(), cast<AffineSymbolExpr>(b).getPosition());
  auto x = cast<AffineBinaryOpExpr>(a), y = cast<AffineBinaryOpExpr>(b);
  int left = compareExprs(x.getLHS(), y.getLHS());
  return left ? left : compareExprs(x.getRHS(), y.getRHS());
}

bool MonomialLess::operator()(const Monomial &a, const Monomial &b) const {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (int c = compareExprs(a[i], b[i]))
      return c < 0;
  return a.size() > b.size();
}

std::optional<Monomial> charonia::graph::divide(const Monomial &a,
                                                const Monomial &b) {
  Monomial rest;
  size_t j = 0;
  for (AffineExpr atom : a) {
    if (j < b.size() && b[j] == atom)
      ++j;
    else
      rest.push_back(atom);
  }
  if (j != b.size())
    return std::nullopt;
  return rest;
}

static bool dependsOnDims(AffineExpr e) {
  bool found = false;
  e.walk(
      [&](AffineExpr sub) { found |= sub.getKind() == AffineExprKind::DimId; });
  return found;
}

std::optional<int64_t> PolyArithmetic::asConstant(const Poly &p) {
  if (p.empty())
    return 0;
  if (p.size() == 1 && p.begin()->first.empty())
    return p.begin()->second;
  return std::nullopt;
}
void PolyArithmetic::addTerm(Poly &p, const Monomial &m, int64_t c) {
  if (!c)
    return;
  auto [it, inserted] = p.try_emplace(m, c);
  if (!inserted) {
    if (llvm::AddOverflow(it->second, c, it->second))
      failed = true;
    if (!it->second)
      p.erase(it);
  }
  if (p.size() > maxTerms)
    failed = true;
}
Poly PolyArithmetic::sum(Poly a, const Poly &b, int64_t scale) {
  for (const auto &[m, c] : b) {
    int64_t scaled;
    if (llvm::MulOverflow(c, scale, scaled)) {
      failed = true;
      return a;
    }
    addTerm(a, m, scaled);
  }
  return a;
}
Poly PolyArithmetic::product(const Poly &a, const Poly &b) {
  Poly result;
  if (a.size() * b.size() > 4 * maxTerms) {
    failed = true;
    return result;
  }
  for (const auto &[ma, ca] : a)
    for (const auto &[mb, cb] : b) {
      Monomial m(ma);
      m.append(mb.begin(), mb.end());
      llvm::sort(
          m, [](AffineExpr x, AffineExpr y) { return compareExprs(x, y) < 0; });
      int64_t c;
      if (m.size() > maxAtoms || llvm::MulOverflow(ca, cb, c)) {
        failed = true;
        return result;
      }
      addTerm(result, m, c);
    }
  return result;
}
AffineExpr PolyArithmetic::buildTerm(const Monomial &m, int64_t c) {
  AffineExpr varying, stride;
  for (AffineExpr a : m) {
    AffineExpr &part = dependsOnDims(a) ? varying : stride;
    part = part ? part * a : a;
  }
  AffineExpr factor = getAffineConstantExpr(c, context);
  stride = !stride ? factor : c == 1 ? stride : stride * factor;
  return varying ? varying * stride : stride;
}

void PolyArithmetic::extract(Poly &rest, const Poly &b, Poly &quotient) {
  if (b.empty())
    return;
  // The leading term of b decides; a sum must cancel as a whole.
  const auto &[lead, leadCoefficient] = *b.begin();
  for (bool changed = true; changed && !failed;) {
    changed = false;
    for (const auto &[m, c] : rest) {
      auto cofactor = divide(m, lead);
      if (!cofactor)
        continue;
      bool round = b.size() == 1 && m.empty();
      if (leadCoefficient == -1 && c == std::numeric_limits<int64_t>::min())
        continue;
      // A part of a term would tear apart what belongs together; a constant is
      // rounded down, which leaves a remainder below the divisor.
      if (!round && c % leadCoefficient)
        continue;
      int64_t q = round ? llvm::divideFloorSigned(c, leadCoefficient)
                        : c / leadCoefficient;
      if (!q)
        continue;
      Poly less = sum(rest, scaled(b, *cofactor, q), -1);
      if (b.size() > 1 && less.size() >= rest.size())
        continue;
      addTerm(quotient, *cofactor, q);
      rest = std::move(less);
      changed = true;
      break;
    }
  }
}
