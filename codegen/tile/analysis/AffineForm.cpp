#include "codegen/tile/analysis/AffineForm.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia::tile;

using Bounds = std::optional<std::pair<int64_t, int64_t>>;

static int64_t floorDiv(int64_t a, int64_t b) {
  return llvm::divideFloorSigned(a, b);
}
static int64_t floorMod(int64_t a, int64_t b) { return a - b * floorDiv(a, b); }

/// Divisors multiply up to a bound: past it nobody gains from knowing more.
static int64_t boundedProduct(int64_t a, int64_t b) {
  int64_t product;
  constexpr int64_t limit = int64_t(1) << 40;
  if (__builtin_mul_overflow(a, b, &product) || product > limit)
    return a;
  return product;
}

//===----------------------------------------------------------------------===//
// Facts about expressions
//===----------------------------------------------------------------------===//

int64_t charonia::tile::knownDivisor(AffineExpr expr,
                                     const AffineFacts &facts) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return std::abs(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbol.getPosition() < facts.divisors.size()
               ? facts.divisors[symbol.getPosition()]
               : 1;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = knownDivisor(binary.getLHS(), facts),
          rhs = knownDivisor(binary.getRHS(), facts);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
  case AffineExprKind::Mod: // a - b * floor(a / b)
    return std::gcd(lhs, rhs);
  case AffineExprKind::Mul:
    return lhs == 0 || rhs == 0 ? 0 : boundedProduct(lhs, rhs);
  default: // floordiv, ceildiv
    if (auto by = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      if (by.getValue() > 0 && lhs % by.getValue() == 0)
        return lhs / by.getValue();
    return 1;
  }
}

static Bounds rangeOf(AffineExpr expr, const AffineFacts &facts) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    unsigned position = dim.getPosition();
    if (position < facts.extents.size() && facts.extents[position] > 0)
      return std::pair<int64_t, int64_t>(0, facts.extents[position] - 1);
    return std::nullopt;
  }
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    auto by = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (!by || by.getValue() <= 0)
      return std::nullopt;
    if (expr.getKind() == AffineExprKind::Mod) {
      int64_t granule =
          std::gcd(knownDivisor(binary.getLHS(), facts), by.getValue());
      return std::pair<int64_t, int64_t>(0, by.getValue() - granule);
    }
    if (expr.getKind() == AffineExprKind::FloorDiv)
      if (Bounds inner = AffineForm::get(binary.getLHS(), facts).range(facts))
        return std::pair(floorDiv(inner->first, by.getValue()),
                         floorDiv(inner->second, by.getValue()));
  }
  return std::nullopt;
}

static int64_t divisorOf(const AffineForm::Term &term,
                         const AffineFacts &facts) {
  int64_t divisor = std::abs(term.coefficient);
  for (AffineExpr atom : term.atoms) {
    int64_t factor = knownDivisor(atom, facts);
    if (factor == 0)
      return 0;
    divisor = boundedProduct(divisor, factor);
  }
  return divisor;
}

static Bounds rangeOf(const AffineForm::Term &term, const AffineFacts &facts) {
  Bounds bounds = rangeOf(term.atoms[0], facts);
  if (!bounds || term.atoms.size() != 1)
    return std::nullopt;
  int64_t a = bounds->first * term.coefficient,
          b = bounds->second * term.coefficient;
  return std::pair(std::min(a, b), std::max(a, b));
}

int64_t AffineForm::divisor(const AffineFacts &facts) const {
  int64_t result = std::abs(constant);
  for (const Term &term : terms)
    result = std::gcd(result, divisorOf(term, facts));
  return result;
}

Bounds AffineForm::range(const AffineFacts &facts) const {
  std::pair<int64_t, int64_t> sum(constant, constant);
  for (const Term &term : terms) {
    Bounds bounds = rangeOf(term, facts);
    if (!bounds)
      return std::nullopt;
    sum.first += bounds->first;
    sum.second += bounds->second;
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// A total order that does not depend on addresses, so that results do not
/// either.
static int compare(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return a.getKind() < b.getKind() ? -1 : 1;
  if (auto x = dyn_cast<AffineDimExpr>(a))
    return x.getPosition() < cast<AffineDimExpr>(b).getPosition() ? -1 : 1;
  if (auto x = dyn_cast<AffineSymbolExpr>(a))
    return x.getPosition() < cast<AffineSymbolExpr>(b).getPosition() ? -1 : 1;
  if (auto x = dyn_cast<AffineConstantExpr>(a))
    return x.getValue() < cast<AffineConstantExpr>(b).getValue() ? -1 : 1;
  auto x = cast<AffineBinaryOpExpr>(a), y = cast<AffineBinaryOpExpr>(b);
  int left = compare(x.getLHS(), y.getLHS());
  return left ? left : compare(x.getRHS(), y.getRHS());
}

void AffineForm::addTerm(Term term) {
  if (term.coefficient == 0)
    return;
  llvm::sort(term.atoms,
             [](AffineExpr a, AffineExpr b) { return compare(a, b) < 0; });
  for (Term &other : terms)
    if (other.atoms == term.atoms) {
      other.coefficient += term.coefficient;
      if (other.coefficient == 0)
        terms.erase(&other);
      return;
    }
  terms.push_back(std::move(term));
}

AffineForm &AffineForm::operator+=(const AffineForm &other) {
  for (const Term &term : other.terms)
    addTerm(term);
  constant += other.constant;
  return *this;
}

AffineForm &AffineForm::operator*=(int64_t factor) {
  if (factor == 0)
    terms.clear();
  for (Term &term : terms)
    term.coefficient *= factor;
  constant *= factor;
  return *this;
}

AffineForm AffineForm::operator*(const AffineForm &other) const {
  AffineForm product = *this;
  product *= other.constant;
  for (const Term &right : other.terms) {
    product.addTerm({constant * right.coefficient, right.atoms});
    for (const Term &left : terms) {
      Term term{left.coefficient * right.coefficient, left.atoms};
      term.atoms.append(right.atoms);
      product.addTerm(std::move(term));
    }
  }
  return product;
}

/// floor(n / c) or n mod c. Three rules, n = A + B:
/// - A a multiple of c: floor(n / c) = A / c + floor(B / c), n mod c = B mod c.
/// - A a multiple of some g that divides c, 0 <= B < g:
///   floor(n / c) = floor(A / c), n mod c = (A mod c) + B.
/// - the range of n lies between neighbouring multiples of c: a constant.
AffineForm AffineForm::divide(const AffineForm &numerator, int64_t by,
                              bool remainder, MLIRContext *context,
                              const AffineFacts &facts) {
  AffineForm multiple, rest, result;
  for (const Term &term : numerator.terms)
    (divisorOf(term, facts) % by == 0 ? multiple : rest).addTerm(term);
  multiple.constant = by * floorDiv(numerator.constant, by);
  rest.constant = numerator.constant - multiple.constant;

  if (!remainder) {
    // What the coefficients show is divided; what only a symbol's divisor shows
    // stays one floordiv, which is exact.
    AffineForm hidden;
    for (const Term &term : multiple.terms) {
      if (term.coefficient % by == 0)
        result.addTerm({term.coefficient / by, term.atoms});
      else
        hidden.addTerm(term);
    }
    result.constant = multiple.constant / by;
    if (!hidden.terms.empty())
      result.addAtom(hidden.toExpr(context).floorDiv(by), facts);
  }

  // Grow g from the finest granule to the coarsest.
  SmallVector<int64_t> granules;
  for (const Term &term : rest.terms)
    granules.push_back(std::gcd(divisorOf(term, facts), by));
  llvm::sort(granules);
  granules.erase(llvm::unique(granules), granules.end());
  for (int64_t granule : llvm::reverse(granules)) {
    if (granule == 1)
      break;
    AffineForm coarse, fine;
    for (const Term &term : rest.terms)
      (divisorOf(term, facts) % granule == 0 ? coarse : fine).addTerm(term);
    fine.constant = floorMod(rest.constant, granule);
    coarse.constant = rest.constant - fine.constant;
    Bounds bounds = fine.range(facts);
    if (!bounds || bounds->first < 0 || bounds->second >= granule ||
        (fine.terms.empty() && fine.constant == 0))
      continue;
    rest = coarse;
    if (remainder)
      result += fine;
    break;
  }

  if (Bounds bounds = rest.range(facts);
      bounds && floorDiv(bounds->first, by) == floorDiv(bounds->second, by)) {
    int64_t quotient = floorDiv(bounds->first, by);
    if (!remainder) {
      result.constant += quotient;
    } else {
      result += rest;
      result.constant -= quotient * by;
    }
    return result;
  }
  AffineExpr expr = rest.toExpr(context);
  result.addAtom(remainder ? expr % by : expr.floorDiv(by), facts);
  return result;
}

/// The builder of affine expressions may have found the division to be simple.
void AffineForm::addAtom(AffineExpr expr, const AffineFacts &facts) {
  if (expr.getKind() == AffineExprKind::FloorDiv ||
      expr.getKind() == AffineExprKind::Mod)
    addTerm({1, {expr}});
  else
    *this += get(expr, facts);
}

AffineForm AffineForm::get(AffineExpr expr, const AffineFacts &facts) {
  AffineForm form;
  if (auto value = dyn_cast<AffineConstantExpr>(expr)) {
    form.constant = value.getValue();
    return form;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    if (dim.getPosition() >= facts.extents.size() ||
        facts.extents[dim.getPosition()] != 1)
      form.addTerm({1, {expr}});
    return form;
  }
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    if (symbol.getPosition() >= facts.divisors.size() ||
        facts.divisors[symbol.getPosition()] != 0)
      form.addTerm({1, {expr}});
    return form;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  AffineForm lhs = get(binary.getLHS(), facts),
             rhs = get(binary.getRHS(), facts);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    lhs += rhs;
    return lhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  default:
    break;
  }
  MLIRContext *context = expr.getContext();
  if (rhs.terms.empty() && rhs.constant > 0) {
    if (expr.getKind() == AffineExprKind::CeilDiv)
      lhs.constant += rhs.constant - 1;
    return divide(lhs, rhs.constant, expr.getKind() == AffineExprKind::Mod,
                  context, facts);
  }
  // Division by a symbolic extent: only a numerator of zero is simple.
  if (lhs.terms.empty() && lhs.constant == 0)
    return form;
  AffineExpr atom = getAffineBinaryOpExpr(expr.getKind(), lhs.toExpr(context),
                                          rhs.toExpr(context));
  form.addTerm({1, {atom}});
  return form;
}

AffineExpr AffineForm::toExpr(MLIRContext *context) const {
  AffineExpr sum = getAffineConstantExpr(constant, context);
  for (const Term &term : terms) {
    AffineExpr product = term.atoms[0];
    for (AffineExpr atom : llvm::drop_begin(term.atoms))
      product = product * atom;
    sum = sum + product * term.coefficient;
  }
  return sum;
}

bool AffineForm::usesDim(unsigned dim) const {
  return llvm::any_of(terms, [&](const Term &term) {
    return llvm::any_of(term.atoms,
                        [&](AffineExpr e) { return e.isFunctionOfDim(dim); });
  });
}

bool AffineForm::usesSymbol(unsigned symbol) const {
  return llvm::any_of(terms, [&](const Term &term) {
    return llvm::any_of(
        term.atoms, [&](AffineExpr e) { return e.isFunctionOfSymbol(symbol); });
  });
}

std::optional<int64_t> AffineForm::coefficientOf(unsigned dim) const {
  int64_t coefficient = 0;
  for (const Term &term : terms) {
    auto plain = dyn_cast<AffineDimExpr>(term.atoms[0]);
    if (term.atoms.size() == 1 && plain && plain.getPosition() == dim) {
      coefficient = term.coefficient;
      continue;
    }
    if (llvm::any_of(term.atoms,
                     [&](AffineExpr e) { return e.isFunctionOfDim(dim); }))
      return std::nullopt;
  }
  return coefficient;
}
