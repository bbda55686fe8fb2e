// Affine expressions as sums of products, simplified by what is known of the
// range of the dims and the divisors of the symbols.
#ifndef CHARONIA_CODEGEN_TILE_ANALYSIS_AFFINEFORM_H
#define CHARONIA_CODEGEN_TILE_ANALYSIS_AFFINEFORM_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace charonia::tile {

/// What is known of the inputs of an expression. Dim i lies in [0, extents[i]);
/// extent 0 means unknown. Symbol i is divisible by divisors[i] (0: is zero).
/// Symbols may be negative.
struct AffineFacts {
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<int64_t> divisors;
};

/// constant + sum of coefficient * product of atoms. An atom is a dim, a symbol
/// or a floordiv or mod that could not be simplified away.
class AffineForm {
public:
  struct Term {
    int64_t coefficient;
    llvm::SmallVector<mlir::AffineExpr, 2> atoms; // sorted, not empty
  };

  AffineForm() = default;
  static AffineForm get(mlir::AffineExpr expr, const AffineFacts &facts);

  llvm::ArrayRef<Term> getTerms() const { return terms; }
  int64_t getConstant() const { return constant; }
  mlir::AffineExpr toExpr(mlir::MLIRContext *context) const;

  /// Whether any atom contains the dim, respectively the symbol.
  bool usesDim(unsigned dim) const;
  bool usesSymbol(unsigned symbol) const;
  /// The coefficient of the dim if it occurs as one plain term only or not at
  /// all.
  std::optional<int64_t> coefficientOf(unsigned dim) const;
  /// Known divisor of the value; 0 if the value is zero.
  int64_t divisor(const AffineFacts &facts) const;
  /// Smallest and largest value where both are known.
  std::optional<std::pair<int64_t, int64_t>>
  range(const AffineFacts &facts) const;

  AffineForm &operator+=(const AffineForm &other);
  AffineForm &operator*=(int64_t factor);
  AffineForm operator*(const AffineForm &other) const;
  void addTerm(Term term);
  void addConstant(int64_t value) { constant += value; }

private:
  void addAtom(mlir::AffineExpr expr, const AffineFacts &facts);
  static AffineForm divide(const AffineForm &numerator, int64_t divisor,
                           bool remainder, mlir::MLIRContext *context,
                           const AffineFacts &facts);

  llvm::SmallVector<Term, 4> terms;
  int64_t constant = 0;
};

/// Known divisor of an expression; 0 if it is zero.
int64_t knownDivisor(mlir::AffineExpr expr, const AffineFacts &facts);

} // namespace charonia::tile

#endif
