#include "graph/ir/Algebra.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

//===----------------------------------------------------------------------===//
// Intervals
//===----------------------------------------------------------------------===//

static constexpr int64_t noLow = Interval::noLow, noHigh = Interval::noHigh;

static int64_t addBound(int64_t a, int64_t b, int64_t none) {
  int64_t r;
  return a == none || b == none || llvm::AddOverflow(a, b, r) ? none : r;
}

Interval charonia::graph::operator+(Interval a, Interval b) {
  return {addBound(a.low, b.low, noLow), addBound(a.high, b.high, noHigh)};
}

static int64_t multiplyBounds(int64_t a, int64_t b) {
  if (!a || !b)
    return 0;
  bool none = a == noLow || a == noHigh || b == noLow || b == noHigh;
  int64_t r;
  if (none || llvm::MulOverflow(a, b, r))
    return (a < 0) == (b < 0) ? noHigh : noLow;
  return r;
}

Interval charonia::graph::operator*(Interval a, Interval b) {
  auto [low, high] = std::minmax(
      {multiplyBounds(a.low, b.low), multiplyBounds(a.low, b.high),
       multiplyBounds(a.high, b.low), multiplyBounds(a.high, b.high)});
  return {low, high};
}

/// What is left of the range of a divisor.
static Interval positive(Interval b) {
  b.low = std::max<int64_t>(b.low, 1);
  return {b.low, std::max(b.high, b.low)};
}

Interval charonia::graph::floorDivide(Interval a, Interval b) {
  b = positive(b);
  // Past every divisor, quotients are 0 or -1.
  auto divide = [](int64_t x, int64_t by) -> int64_t {
    return by == noHigh ? -(x < 0) : llvm::divideFloorSigned(x, by);
  };
  return {a.low == noLow ? noLow : divide(a.low, a.low < 0 ? b.low : b.high),
          a.high == noHigh ? noHigh
                           : divide(a.high, a.high < 0 ? b.high : b.low)};
}

Interval charonia::graph::ceilDivide(Interval a, Interval b) {
  b = positive(b);
  auto divide = [](int64_t x, int64_t by) -> int64_t {
    return by == noHigh ? x > 0 : llvm::divideCeilSigned(x, by);
  };
  return {a.low == noLow ? noLow : divide(a.low, a.low < 0 ? b.low : b.high),
          a.high == noHigh ? noHigh
                           : divide(a.high, a.high < 0 ? b.high : b.low)};
}

Interval charonia::graph::modulo(Interval a, Interval b) {
  b = positive(b);
  if (a.low >= 0 && a.high < b.low)
    return a;
  int64_t high = b.high == noHigh ? noHigh : b.high - 1;
  return {0, a.low >= 0 ? std::min(a.high, high) : high};
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

Facts Facts::ofCoordinates(ArrayRef<AffineExpr> extents) {
  Facts facts;
  facts.setExtents(extents);
  facts.otherSymbols = {1, noHigh};
  return facts;
}

void Facts::setExtents(ArrayRef<AffineExpr> extents) {
  dims.clear();
  for (AffineExpr extent : extents)
    dims.push_back(extent ? Interval{0, noHigh} : Interval{});
  dimLimits.assign(extents.begin(), extents.end());
}

/// The entry of a variable in the list for its kind.
template <typename T>
static T entryOf(AffineExpr variable, ArrayRef<T> dims, ArrayRef<T> symbols,
                 T otherDim, T otherSymbol) {
  if (auto dim = dyn_cast<AffineDimExpr>(variable))
    return dim.getPosition() < dims.size() ? dims[dim.getPosition()] : otherDim;
  unsigned i = cast<AffineSymbolExpr>(variable).getPosition();
  return i < symbols.size() ? symbols[i] : otherSymbol;
}

int64_t Facts::divisorOf(AffineExpr variable) const {
  return entryOf<int64_t>(variable, dimDivisors, symbolDivisors, 1, 1);
}
AffineExpr Facts::limitOf(AffineExpr variable) const {
  return entryOf<AffineExpr>(variable, dimLimits, symbolLimits, {}, {});
}
Interval Facts::rangeOf(AffineExpr variable) const {
  Interval range = entryOf<Interval>(variable, dims, symbols, {}, otherSymbols);
  int64_t divisor = divisorOf(variable);
  if (divisor == 0)
    return {0, 0};
  if (divisor < 2)
    return range;
  // The ends move to multiples.
  Interval by{divisor, divisor}, inside = range;
  if (range.low != noLow)
    inside.low = (ceilDivide({range.low, range.low}, by) * by).low;
  if (range.high != noHigh)
    inside.high = (floorDivide({range.high, range.high}, by) * by).high;
  return inside.low <= inside.high ? inside : range;
}

Interval BoundsFinder::operator()(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto it = memo.find(expr); it != memo.end())
    return it->second;
  Interval result;
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    Interval a = (*this)(binary.getLHS()), b = (*this)(binary.getRHS());
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      result = a + b;
      break;
    case AffineExprKind::Mul:
      result = a * b;
      break;
    case AffineExprKind::FloorDiv:
      result = floorDivide(a, b);
      break;
    case AffineExprKind::CeilDiv:
      result = ceilDivide(a, b);
      break;
    default:
      result = modulo(a, b);
      break;
    }
  } else {
    result = facts.rangeOf(expr);
    // A limit is bounded by the ranges of its own variables alone, so that
    // limits may name one another.
    if (AffineExpr limit = facts.limitOf(expr)) {
      memo[expr] = result;
      int64_t high = (*this)(limit).high;
      if (high != noHigh && high != noLow)
        result.high = std::min(result.high, std::max(high - 1, result.low));
    }
  }
  memo[expr] = result;
  return result;
}

Interval charonia::graph::boundsOf(AffineExpr expr, const Facts &facts) {
  return BoundsFinder(facts)(expr);
}

/// A common divisor; of 0 and x it is x. Past what int64_t holds nobody gains
/// from knowing more.
static int64_t gcd(int64_t a, int64_t b) {
  if (a == noLow || b == noLow)
    return 1;
  return std::gcd(a, b);
}

int64_t charonia::graph::divisorOf(AffineExpr expr, const Facts &facts) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return gcd(constant.getValue(), 0);
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return facts.divisorOf(expr);
  int64_t a = divisorOf(binary.getLHS(), facts),
          b = divisorOf(binary.getRHS(), facts), product;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
  case AffineExprKind::Mod: // a - b * floor(a / b)
    return gcd(a, b);
  case AffineExprKind::Mul:
    return llvm::MulOverflow(a, b, product) ? a : product;
  default:
    if (auto by = constantOf(binary.getRHS()); by && *by > 0 && a % *by == 0)
      return a / *by;
    return 1;
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<int64_t> charonia::graph::constantOf(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  return std::nullopt;
}

std::optional<int64_t> charonia::graph::evaluate(AffineExpr expr,
                                                 ArrayRef<int64_t> symbols) {
  return evaluate(expr, {}, symbols);
}

std::optional<int64_t> charonia::graph::evaluate(AffineExpr expr,
                                                 ArrayRef<int64_t> dims,
                                                 ArrayRef<int64_t> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto entry = [](ArrayRef<int64_t> values, unsigned i) {
    return i < values.size() ? std::optional(values[i]) : std::nullopt;
  };
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return entry(dims, dim.getPosition());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return entry(symbols, symbol.getPosition());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto a = evaluate(binary.getLHS(), dims, symbols),
       b = evaluate(binary.getRHS(), dims, symbols);
  if (!a || !b)
    return std::nullopt;
  int64_t r;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return llvm::AddOverflow(*a, *b, r) ? std::nullopt : std::optional(r);
  case AffineExprKind::Mul:
    return llvm::MulOverflow(*a, *b, r) ? std::nullopt : std::optional(r);
  default:
    break;
  }
  if (*b <= 0)
    return std::nullopt;
  int64_t rest = *a % *b;
  switch (expr.getKind()) {
  case AffineExprKind::FloorDiv:
    return *a / *b - (rest < 0);
  case AffineExprKind::CeilDiv:
    return *a / *b + (rest > 0);
  default:
    return rest < 0 ? rest + *b : rest;
  }
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

Exprs charonia::graph::applyMap(AffineMap map,
                                ArrayRef<AffineExpr> coordinates) {
  Exprs results;
  for (AffineExpr e : map.getResults())
    results.push_back(e.replaceDims(coordinates));
  return results;
}

AffineMap charonia::graph::mapOf(unsigned numDims, ArrayRef<AffineExpr> results,
                                 MLIRContext *context) {
  unsigned symbols = 0;
  for (AffineExpr e : results)
    e.walk([&](AffineExpr part) {
      if (auto s = dyn_cast<AffineSymbolExpr>(part))
        symbols = std::max(symbols, s.getPosition() + 1);
    });
  return AffineMap::get(numDims, symbols, results, context);
}

AffineMap charonia::graph::composeMaps(AffineMap outer, AffineMap inner,
                                       ArrayRef<AffineExpr> extents) {
  return simplify(mapOf(inner.getNumDims(), applyMap(outer, inner.getResults()),
                        outer.getContext()),
                  extents);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Whether `e` is a product, whose factors then are in `term`.
static bool readProduct(AffineExpr e, Sum::Term &term) {
  if (auto constant = constantOf(e))
    return !llvm::MulOverflow(term.coefficient, *constant, term.coefficient);
  if (e.getKind() == AffineExprKind::Mul) {
    auto binary = cast<AffineBinaryOpExpr>(e);
    return readProduct(binary.getLHS(), term) &&
           readProduct(binary.getRHS(), term);
  }
  term.atoms.push_back(e);
  return true;
}

Sum::Sum(AffineExpr simplified) {
  SmallVector<AffineExpr> work{simplified};
  while (!work.empty()) {
    AffineExpr e = work.pop_back_val();
    if (e.getKind() == AffineExprKind::Add) {
      auto binary = cast<AffineBinaryOpExpr>(e);
      work.push_back(binary.getRHS());
      work.push_back(binary.getLHS());
      continue;
    }
    Term term;
    if (!readProduct(e, term))
      term = {1, {e}};
    if (!term.atoms.empty())
      terms.push_back(std::move(term));
    else if (llvm::AddOverflow(constant, term.coefficient, constant)) {
      terms.assign({Term{1, {simplified}}});
      constant = 0;
      return;
    }
  }
  llvm::erase_if(terms, [](const Term &t) { return t.coefficient == 0; });
}

bool Sum::Term::usesDim(unsigned dim) const {
  return llvm::any_of(atoms,
                      [&](AffineExpr e) { return e.isFunctionOfDim(dim); });
}
bool Sum::Term::usesSymbol(unsigned symbol) const {
  return llvm::any_of(
      atoms, [&](AffineExpr e) { return e.isFunctionOfSymbol(symbol); });
}
bool Sum::usesDim(unsigned dim) const {
  return llvm::any_of(terms, [&](const Term &t) { return t.usesDim(dim); });
}
bool Sum::usesSymbol(unsigned symbol) const {
  return llvm::any_of(terms,
                      [&](const Term &t) { return t.usesSymbol(symbol); });
}

std::optional<int64_t> Sum::coefficientOf(unsigned dim) const {
  int64_t coefficient = 0;
  unsigned plain = 0;
  for (const Term &term : terms) {
    if (!term.usesDim(dim))
      continue;
    if (term.atoms.size() != 1 || !isa<AffineDimExpr>(term.atoms[0]) || plain++)
      return std::nullopt;
    coefficient = term.coefficient;
  }
  return coefficient;
}

AffineExpr Sum::Term::toExpr() const {
  AffineExpr product = atoms[0];
  for (AffineExpr atom : llvm::drop_begin(atoms))
    product = product * atom;
  return product * coefficient;
}

AffineExpr Sum::toExpr(MLIRContext *context) const {
  AffineExpr sum = getAffineConstantExpr(0, context);
  for (const Term &term : terms)
    sum = sum + term.toExpr();
  return sum + constant;
}
