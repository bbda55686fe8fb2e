// Polynomials with integer coefficients over atoms of affine expressions: dims,
// symbols, and divisions and remainders that nothing resolves. Private to the
// simplifier of expressions (Simplifier.h).
#ifndef CHARONIA_GRAPH_IR_POLYNOMIAL_H
#define CHARONIA_GRAPH_IR_POLYNOMIAL_H

#include "graph/ir/Algebra.h"
#include <map>

namespace charonia::graph {

/// Structural order of expressions, the same in every run: dims, symbols, the
/// rest.
int compareExprs(mlir::AffineExpr a, mlir::AffineExpr b);

/// A product of atoms, sorted; none is 1.
using Monomial = llvm::SmallVector<mlir::AffineExpr, 2>;
/// Products of more atoms first, the constant last.
struct MonomialLess {
  bool operator()(const Monomial &a, const Monomial &b) const;
};
/// Monomials with their coefficients, none of them 0.
using Poly = std::map<Monomial, int64_t, MonomialLess>;

/// `a` without the atoms of `b`, if it has them all.
std::optional<Monomial> divide(const Monomial &a, const Monomial &b);

/// Arithmetic that gives up on overflow and on more terms than are worth
/// handling: `failed` is set, and results mean nothing until it is cleared.
class PolyArithmetic {
protected:
  explicit PolyArithmetic(mlir::MLIRContext *context) : context(context) {}

  static Poly constant(int64_t c) { return c ? Poly{{{}, c}} : Poly{}; }
  static Poly atom(mlir::AffineExpr e) { return Poly{{{e}, 1}}; }
  static std::optional<int64_t> asConstant(const Poly &p);

  void addTerm(Poly &p, const Monomial &m, int64_t c);
  /// a + scale * b.
  Poly sum(Poly a, const Poly &b, int64_t scale = 1);
  Poly product(const Poly &a, const Poly &b);
  Poly scaled(const Poly &a, const Monomial &m, int64_t c) {
    return product(a, Poly{{m, c}});
  }
  /// Moves the multiples of b from `rest` to `quotient`: rest + b * quotient
  /// stays.
  void extract(Poly &rest, const Poly &b, Poly &quotient);

  /// The product as an expression; it reads `what depends on dims * (what does
  /// not)`, as strides do.
  mlir::AffineExpr buildTerm(const Monomial &m, int64_t c);

  mlir::MLIRContext *context;
  bool failed = false;
};

} // namespace charonia::graph

#endif
