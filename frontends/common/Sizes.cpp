// Products and quotients of sizes.
#include "frontends/common/Emitter.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;

/// Splits products into a constant factor and the others.
static bool collectFactors(AffineExpr expr, int64_t &constant, Exprs &factors) {
  if (auto product = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(expr);
      product && product.getKind() == mlir::AffineExprKind::Mul)
    return collectFactors(product.getLHS(), constant, factors) &&
           collectFactors(product.getRHS(), constant, factors);
  if (auto known = graph::constantOf(expr))
    return !llvm::MulOverflow(constant, *known, constant);
  factors.push_back(expr);
  return true;
}

AffineExpr charonia::frontend::divideSizes(llvm::ArrayRef<AffineExpr> total,
                                           llvm::ArrayRef<AffineExpr> parts,
                                           mlir::MLIRContext *context) {
  int64_t numerator = 1, denominator = 1;
  Exprs factors, divisors;
  for (AffineExpr expr : total)
    if (!expr || !collectFactors(expr, numerator, factors))
      return {};
  for (AffineExpr expr : parts)
    if (!expr || !collectFactors(expr, denominator, divisors))
      return {};
  auto cancel = [&](AffineExpr factor) {
    auto it = llvm::find(factors, factor);
    if (it == factors.end())
      return false;
    factors.erase(it);
    return true;
  };
  for (AffineExpr divisor : divisors) {
    if (cancel(divisor))
      continue;
    // A quotient that is exact: s over s / 8 is 8.
    auto quotient = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(divisor);
    if (!quotient || quotient.getKind() != mlir::AffineExprKind::FloorDiv)
      return {};
    auto by = graph::constantOf(quotient.getRHS());
    Exprs dividend;
    if (!by || llvm::MulOverflow(numerator, *by, numerator) ||
        !collectFactors(quotient.getLHS(), denominator, dividend) ||
        !llvm::all_of(dividend, cancel))
      return {};
  }
  if (denominator <= 0)
    return {};
  if (factors.empty() && numerator % denominator)
    return {};
  int64_t common = std::gcd(numerator, denominator);
  AffineExpr result = mlir::getAffineConstantExpr(numerator / common, context);
  for (AffineExpr factor : factors)
    result = result * factor;
  result =
      denominator == common ? result : result.floorDiv(denominator / common);
  return graph::simplify(result);
}

AffineExpr charonia::frontend::productOf(llvm::ArrayRef<AffineExpr> sizes,
                                         mlir::MLIRContext *context) {
  int64_t constant = 1;
  Exprs factors;
  for (AffineExpr expr : sizes)
    if (!expr || !collectFactors(expr, constant, factors))
      return {};
  AffineExpr result = mlir::getAffineConstantExpr(constant, context);
  for (AffineExpr factor : factors)
    result = result * factor;
  return graph::simplify(result);
}
