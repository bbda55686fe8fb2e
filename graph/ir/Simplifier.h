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
//
// Private to Simplify.cpp and its parts.
#ifndef CHARONIA_GRAPH_IR_SIMPLIFIER_H
#define CHARONIA_GRAPH_IR_SIMPLIFIER_H

#include "graph/ir/Polynomial.h"

namespace charonia::graph {

class Simplifier : PolyArithmetic {
public:
  Simplifier(mlir::MLIRContext *context, const Facts &facts);

  mlir::AffineExpr run(mlir::AffineExpr expr);
  bool prove(mlir::AffineExpr expr);
  bool proveWithin(mlir::AffineExpr expr, mlir::AffineExpr limit);

private:
  using AffineExpr = mlir::AffineExpr;
  using AffineExprKind = mlir::AffineExprKind;
  using Limits = llvm::SmallVector<std::optional<Poly>>;
  struct Depth {
    explicit Depth(int &d) : d(d) { ++d; }
    ~Depth() { --d; }
    int &d;
  };

  static bool isDivision(AffineExpr e) {
    return e.getKind() == AffineExprKind::FloorDiv ||
           e.getKind() == AffineExprKind::Mod;
  }
  static bool isA(AffineExpr e, AffineExprKind kind) {
    return e.getKind() == kind;
  }
  static AffineExpr lhs(AffineExpr e) {
    return llvm::cast<mlir::AffineBinaryOpExpr>(e).getLHS();
  }
  static AffineExpr rhs(AffineExpr e) {
    return llvm::cast<mlir::AffineBinaryOpExpr>(e).getRHS();
  }
  static bool isVariable(AffineExpr e) {
    return isA(e, AffineExprKind::DimId) || isA(e, AffineExprKind::SymbolId);
  }

  // --- Expressions to polynomials.
  Poly visit(AffineExpr e);

  // --- Divisors of variables.
  Poly visitVariable(AffineExpr variable);
  /// The variable whose unit `a` is; null if it is none.
  AffineExpr variableOf(AffineExpr a);
  /// Whether `a` is a division that is not resolved.
  bool isOpen(AffineExpr a) { return isDivision(a) && !variableOf(a); }
  bool hasOpen(const Poly &p);
  /// The least number by which p must be multiplied so that each unit becomes
  /// its variable; 1 where that is too large.
  int64_t scaleOf(const Poly &p);
  static constexpr int64_t maxScale = int64_t(1) << 40;

  /// The expression of a polynomial, with variables in place of units.
  AffineExpr build(const Poly &p);
  /// An atom as it reads with a part of the coefficient, which it takes.
  AffineExpr buildAtom(AffineExpr a, int64_t &coefficient);

  // --- Divisions: SimplifyDivisions.cpp.
  /// An unresolved division or remainder.
  Poly opaque(AffineExprKind kind, const Poly &a, const Poly &b);
  bool fits(const Poly &p);
  /// Quotient and remainder of a by b > 0.
  std::pair<Poly, Poly> divmod(const Poly &a, const Poly &b);
  /// k with k * b <= p < (k + 1) * b for all values.
  std::optional<int64_t> constantQuotient(const Poly &p, const Poly &b);
  std::optional<std::pair<Poly, Poly>> divideNearMultiples(const Poly &p,
                                                           const Poly &b);
  std::optional<std::pair<Poly, Poly>> divideQuotientAndMore(const Poly &p,
                                                             const Poly &b);
  /// With g dividing b and p = g * p' + r, 0 <= r < g: the division is that of
  /// p' by b / g.
  std::optional<std::pair<Poly, Poly>> divideByFactor(const Poly &p,
                                                      const Poly &b);

  // --- Putting divisions back together, there too.
  int weight(const Poly &p);
  Poly recombine(Poly p);
  std::optional<Poly> recombineAt(const Poly &p, const Monomial &m, int64_t c,
                                  AffineExpr at);

  // --- Bounds: SimplifyBounds.cpp.
  /// What a variable is less than.
  std::optional<Poly> limitOf(AffineExpr variable);
  Interval bounds(const Poly &p);
  /// Whether p >= 0 for all values.
  bool nonNegative(const Poly &p);
  /// Whether `e` has dims, or symbols that something other than a number
  /// limits.
  bool varies(AffineExpr e);
  /// A lower bound of p without variables that others limit.
  std::optional<Poly> leastOverDims(Poly p);
  /// p with atom a at the end of its range that makes p least.
  std::optional<Poly> substituteLeast(const Poly &p, AffineExpr a);
  /// rest + cofactor * unit, cofactor <= 0, with the unit at its largest.
  std::optional<Poly> substituteLargest(const Poly &rest, const Poly &cofactor,
                                        AffineExpr variable);
  std::optional<Poly> highOf(AffineExpr a);
  /// With every atom written as its lower bound + a non-negative rest: whether
  /// all coefficients are non-negative.
  bool shiftedNonNegative(const Poly &p);

  const Facts &facts;
  BoundsFinder boundsOfAtom;
  /// Whether any variable has a divisor.
  bool hasUnits = false;
  Limits dimLimits, symbolLimits;
  llvm::DenseMap<AffineExpr, Poly> memo;
  int depth = 0;
  bool ready = false;
};

} // namespace charonia::graph

#endif
