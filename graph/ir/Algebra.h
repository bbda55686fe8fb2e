// The algebra of integer expressions: affine expressions with symbolic factors
// and divisors, and what is known of their variables.
//
// Expressions mean integers without bounds. What can't be computed in 64 bits
// is "not known": simplification, bounds and evaluation check their arithmetic,
// and leave an expression in which it overflows as it is. Composition
// (applyMap, composeMaps) can't: MLIR's own operators add and multiply
// constants that meet, modulo 2^64, and keep no trace of it. It is exact where
// the sums and products of the magnitudes of constants that meet stay below
// 2^63, as they do in maps between tensors, whose elements can be counted.
// Divisors are positive; division rounds down, remainders are not negative,
// whatever the signs.
#ifndef CHARONIA_GRAPH_IR_ALGEBRA_H
#define CHARONIA_GRAPH_IR_ALGEBRA_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <limits>
#include <optional>

namespace charonia::graph {

using Exprs = llvm::SmallVector<mlir::AffineExpr>;

/// Inclusive bounds; saturated at the limits of int64_t, which mean "none".
struct Interval {
  static constexpr int64_t noLow = std::numeric_limits<int64_t>::min(),
                           noHigh = std::numeric_limits<int64_t>::max();
  int64_t low = noLow, high = noHigh;

  bool isBounded() const { return low != noLow && high != noHigh; }
  bool operator==(const Interval &) const = default;
};
Interval operator+(Interval a, Interval b);
Interval operator*(Interval a, Interval b);
/// Of a divided by a positive b.
Interval floorDivide(Interval a, Interval b);
Interval ceilDivide(Interval a, Interval b);
Interval modulo(Interval a, Interval b);

/// What is known of the variables of an expression. Of a variable beyond the
/// end of a list, or with a null entry, the list says nothing.
struct Facts {
  llvm::SmallVector<Interval> dims, symbols;
  /// A dim or symbol is less than this expression over symbols.
  llvm::SmallVector<mlir::AffineExpr> dimLimits, symbolLimits;
  /// A dim or symbol is a multiple of this; 0: it is zero.
  llvm::SmallVector<int64_t> dimDivisors, symbolDivisors;
  /// Of symbols beyond `symbols`.
  Interval otherSymbols;

  /// Dim i lies in [0, extents[i]) (null: nothing known). Symbols are sizes: at
  /// least 1.
  static Facts ofCoordinates(llvm::ArrayRef<mlir::AffineExpr> extents = {});
  /// Says the same of dims, and nothing of symbols.
  void setExtents(llvm::ArrayRef<mlir::AffineExpr> extents);

  /// Range and divisor of a dim or symbol, the limit left aside.
  Interval rangeOf(mlir::AffineExpr variable) const;
  int64_t divisorOf(mlir::AffineExpr variable) const;
  /// Null where there is none.
  mlir::AffineExpr limitOf(mlir::AffineExpr variable) const;
};

/// `expr` in canonical form: sums of products sorted, divisions folded. Symbols
/// are sizes, so at least 1; of dims nothing is known.
mlir::AffineExpr simplify(mlir::AffineExpr expr);
/// The same for every result of a map, knowing Facts::ofCoordinates: divisions
/// and remainders by what a term cannot reach vanish, x floordiv c * c + x mod
/// c becomes x.
mlir::AffineMap simplify(mlir::AffineMap map,
                         llvm::ArrayRef<mlir::AffineExpr> extents = {});
/// The same knowing `facts` and nothing else. Where s0 is a multiple of 16,
/// s0 mod 8 is 0 and s0 floordiv 4 * 4 is s0.
mlir::AffineExpr simplify(mlir::AffineExpr expr, const Facts &facts);

/// Whether `expr` >= 0 can be proved.
bool isNonNegative(mlir::AffineExpr expr, const Facts &facts);
bool isNonNegative(mlir::AffineExpr expr,
                   llvm::ArrayRef<mlir::AffineExpr> extents = {});
/// Whether 0 <= expr < limit can be proved.
bool isWithin(mlir::AffineExpr expr, mlir::AffineExpr limit,
              const Facts &facts);

/// Bounds of `expr`, found in one walk: not as tight as what isNonNegative
/// proves, but cheap.
Interval boundsOf(mlir::AffineExpr expr, const Facts &facts);
/// The same for many expressions with the same facts, each part looked at once.
/// `facts` must live as long.
class BoundsFinder {
public:
  explicit BoundsFinder(const Facts &facts) : facts(facts) {}
  Interval operator()(mlir::AffineExpr expr);

private:
  const Facts &facts;
  llvm::DenseMap<mlir::AffineExpr, Interval> memo;
};

/// A number that divides every value of `expr`; 0 if it is zero.
int64_t divisorOf(mlir::AffineExpr expr, const Facts &facts);

/// The constant that `expr` is, if it is one.
std::optional<int64_t> constantOf(mlir::AffineExpr expr);
/// Value of `expr` for these symbol values; nothing on division by less than 1
/// or overflow.
std::optional<int64_t> evaluate(mlir::AffineExpr expr,
                                llvm::ArrayRef<int64_t> symbols);
/// Value of `expr` for these values of dims and symbols.
std::optional<int64_t> evaluate(mlir::AffineExpr expr,
                                llvm::ArrayRef<int64_t> dims,
                                llvm::ArrayRef<int64_t> symbols);

/// The results of `map` where these expressions take the place of its dims, not
/// simplified.
Exprs applyMap(mlir::AffineMap map,
               llvm::ArrayRef<mlir::AffineExpr> coordinates);
/// `outer` of the results of `inner`, simplified for dims within `extents`;
/// both read the same symbols.
mlir::AffineMap composeMaps(mlir::AffineMap outer, mlir::AffineMap inner,
                            llvm::ArrayRef<mlir::AffineExpr> extents = {});
/// A map with as many symbols as the results use.
mlir::AffineMap mapOf(unsigned numDims,
                      llvm::ArrayRef<mlir::AffineExpr> results,
                      mlir::MLIRContext *context);

/// A simplified expression read as a sum: constant + sum of coefficient *
/// product of atoms. An atom is a dim, a symbol, or what could not be resolved
/// further: a division, a remainder, a sum that is too large.
struct Sum {
  struct Term {
    int64_t coefficient = 1;
    llvm::SmallVector<mlir::AffineExpr, 2> atoms; // at least one

    bool usesDim(unsigned dim) const;
    bool usesSymbol(unsigned symbol) const;
    mlir::AffineExpr toExpr() const;
  };
  llvm::SmallVector<Term, 4> terms;
  int64_t constant = 0;

  Sum() = default;
  explicit Sum(mlir::AffineExpr simplified);

  bool isConstant() const { return terms.empty(); }
  bool usesDim(unsigned dim) const;
  bool usesSymbol(unsigned symbol) const;
  /// The coefficient of the dim if it occurs as one plain term only or not at
  /// all.
  std::optional<int64_t> coefficientOf(unsigned dim) const;
  mlir::AffineExpr toExpr(mlir::MLIRContext *context) const;
};

} // namespace charonia::graph

#endif
