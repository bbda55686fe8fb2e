// The contents of small integer tensors as expressions over shape symbols.
#ifndef CHARONIA_GRAPH_IR_SYMBOLIC_H
#define CHARONIA_GRAPH_IR_SYMBOLIC_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace charonia::graph {

/// Elements in row-major order; an entry may be null (not known). False as a
/// whole where nothing is known. Empty tensors are known and have no elements.
struct SymbolicTensor {
  std::optional<llvm::SmallVector<mlir::AffineExpr>> elements;
  explicit operator bool() const { return elements.has_value(); }
  /// Whether every element is known.
  bool isComplete() const;
  /// The elements as constants, if all are.
  std::optional<llvm::SmallVector<int64_t>> constants() const;
};

/// Integers that follow from sizes, in whose terms an operator says what it
/// computes (GraphOpInterface::evaluateInteger). Nothing wraps. All give null
/// where they cannot tell.
class IntegerAlgebra {
public:
  virtual ~IntegerAlgebra() = default;
  virtual mlir::AffineExpr larger(mlir::AffineExpr a, mlir::AffineExpr b) = 0;
  virtual mlir::AffineExpr smaller(mlir::AffineExpr a, mlir::AffineExpr b) = 0;
  virtual mlir::AffineExpr magnitude(mlir::AffineExpr a) = 0;
  /// -1, 0 or 1.
  virtual mlir::AffineExpr sign(mlir::AffineExpr a) = 0;
  /// Rounded toward zero.
  virtual mlir::AffineExpr quotient(mlir::AffineExpr a, mlir::AffineExpr b) = 0;
  /// With the sign of `b`.
  virtual mlir::AffineExpr modulo(mlir::AffineExpr a, mlir::AffineExpr b) = 0;
  /// With the sign of `a`.
  virtual mlir::AffineExpr remainder(mlir::AffineExpr a,
                                     mlir::AffineExpr b) = 0;
  // Bits of a tensor or an element of `type`; of i1, truth.
  virtual mlir::AffineExpr bitAnd(mlir::AffineExpr a, mlir::AffineExpr b,
                                  mlir::Type type) = 0;
  virtual mlir::AffineExpr bitOr(mlir::AffineExpr a, mlir::AffineExpr b,
                                 mlir::Type type) = 0;
  virtual mlir::AffineExpr bitXor(mlir::AffineExpr a, mlir::AffineExpr b,
                                  mlir::Type type) = 0;
  virtual mlir::AffineExpr shiftLeft(mlir::AffineExpr a,
                                     mlir::AffineExpr by) = 0;
  /// Rounded down.
  virtual mlir::AffineExpr shiftRight(mlir::AffineExpr a,
                                      mlir::AffineExpr by) = 0;
};

/// Tells expressions that take too long to be worth simplifying, as steps of
/// loops make them: what a step divides is part of what the next one does. The
/// effort is that of each product and division, the one of a division being as
/// many as are nested in it: sums of many sizes take little, 32 quotients of
/// quotients too much.
class ExprEffort {
public:
  bool isTooMuch(mlir::AffineExpr expr) { return of(expr).effort > most; }

private:
  static constexpr int64_t most = 512;
  struct Known {
    int64_t effort = 0, nested = 0;
  };
  Known of(mlir::AffineExpr expr);
  llvm::DenseMap<mlir::AffineExpr, Known> memo;
};

/// Evaluates integer tensors symbolically, through GraphOpInterface's
/// evaluateSymbolic, on demand and with a memo. Invalid after the IR it looked
/// at has changed. Tensors of more than `maxElements` elements are not looked
/// at. What an operator computes is not known where it takes too much effort.
class SymbolicEvaluator {
public:
  explicit SymbolicEvaluator(int64_t maxElements = 1024)
      : maxElements(maxElements) {}
  SymbolicTensor evaluate(mlir::Value value);
  /// That `value`, whose operator tells nothing, is what `copy` is, which is
  /// not looked at before somebody asks.
  void learnEqual(mlir::Value value, mlir::Value copy) {
    memo.erase(value);
    copies[value] = copy;
  }

private:
  bool qualifies(mlir::Value value) const;
  /// What its operands, which are known, make of it.
  SymbolicTensor compute(mlir::Value value);

  int64_t maxElements;
  ExprEffort effort;
  llvm::DenseMap<mlir::Value, SymbolicTensor> memo;
  llvm::DenseMap<mlir::Value, mlir::Value> copies;
};

} // namespace charonia::graph

#endif
