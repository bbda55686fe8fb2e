// Sizes of an exported program as expressions over the module's symbols.
#ifndef CHARONIA_FRONTENDS_PYTORCH_SIZES_H
#define CHARONIA_FRONTENDS_PYTORCH_SIZES_H

#include "frontends/pytorch/Program.h"

namespace charonia::frontend::pytorch {

/// Turns the file's expressions into sizes, once symbols are bound to
/// dimensions of inputs.
class Sizes {
public:
  Sizes(Symbols &symbols, mlir::MLIRContext *context)
      : symbols(symbols), context(context) {}

  /// What a symbol of the file stands for.
  void bind(llvm::StringRef symbol, mlir::AffineExpr size) {
    known.bound[symbol] = size;
  }
  bool isBound(llvm::StringRef symbol) const {
    return known.bound.count(symbol);
  }
  /// What a symbol of the file holds when the program runs, a scalar.
  void bindNumber(llvm::StringRef symbol, mlir::Value number) {
    known.numbers[symbol] = number;
  }
  /// Null where that was not said.
  mlir::Value numberOf(llvm::StringRef symbol) const {
    return known.numbers.lookup(symbol);
  }
  /// Whether an expression is a float.
  static bool isFloat(const Expression &expression);
  /// The size; null where the expression depends on data, or is of a kind that
  /// sizes cannot be.
  mlir::AffineExpr convert(const ExpressionPtr &expression);
  /// Null entries for sizes that convert() cannot tell.
  Exprs convert(llvm::ArrayRef<ExpressionPtr> expressions);

  /// Whether a condition holds for all sizes; none where it holds for some, or
  /// that cannot be told.
  std::optional<bool> decide(const ExpressionPtr &condition);
  /// Whether a condition holds, as 1 or 0; null where that cannot be computed.
  mlir::AffineExpr truth(const ExpressionPtr &condition);

private:
  mlir::AffineExpr operation(const Expression &expression,
                             llvm::ArrayRef<mlir::AffineExpr> operands);
  mlir::AffineExpr quotient(mlir::AffineExpr a, mlir::AffineExpr b, bool up);
  mlir::AffineExpr whole(const ExpressionPtr &expression);
  mlir::AffineExpr rounded(llvm::StringRef head, const ExpressionPtr &number);
  mlir::AffineExpr scaled(const Expression &product, bool up);
  bool appendFloat(const ExpressionPtr &expression,
                   graph::SizeProgram &program);
  std::optional<bool> decideFloats(llvm::StringRef relation,
                                   llvm::ArrayRef<ExpressionPtr> sides);
  std::optional<graph::NumberRange> rangeOf(const ExpressionPtr &number);
  mlir::AffineExpr junction(llvm::ArrayRef<ExpressionPtr> conditions,
                            bool isOr);
  mlir::AffineExpr isMore(const ExpressionPtr &a, const ExpressionPtr &b);

  Symbols &symbols;
  mlir::MLIRContext *context;
  struct Known {
    llvm::StringMap<mlir::AffineExpr> bound;
    llvm::StringMap<mlir::Value> numbers;
    llvm::DenseMap<const Expression *, mlir::AffineExpr> converted;
  } known;

public:
  /// What is said while it lives is forgotten with it: a step of a loop defines
  /// the symbols of its graph anew.
  class Scope {
  public:
    explicit Scope(Sizes &sizes) : sizes(sizes), before(sizes.known) {}
    ~Scope() { sizes.known = std::move(before); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    Sizes &sizes;
    Known before;
  };
};

} // namespace charonia::frontend::pytorch

#endif
