// Contents of small tensors that follow from sizes, also through floats and
// through what depends on which of two sizes is larger.
#ifndef CHARONIA_FRONTENDS_COMMON_SIZEEVALUATOR_H
#define CHARONIA_FRONTENDS_COMMON_SIZEEVALUATOR_H

#include "frontends/common/Symbols.h"
#include "graph/ir/Dialect.h"
#include "graph/ir/Symbolic.h"

namespace charonia::frontend {

/// One element: an integer, or a float.
struct SizeElement {
  /// Of an integer.
  mlir::AffineExpr size;
  /// Of a float: how it is computed.
  graph::SizeProgram program;
  /// The float is exactly `numerator` / 2^`shift`, if that is set.
  mlir::AffineExpr numerator;
  unsigned shift = 0;
  bool isKnown() const { return size || !program.empty(); }

  static SizeElement ofSize(mlir::AffineExpr size);
  static SizeElement ofNumber(double value);
  /// The float that is known now.
  std::optional<double> constantNumber() const;
};
using SizeElements = llvm::SmallVector<SizeElement, 4>;

/// Floats that are followed. How float and double round is known; of narrower
/// ones what stays exact is.
bool isSizeFloat(mlir::Type type);

/// Evaluates tensors element by element. An integer that no affine expression
/// says becomes a symbol that is defined by a program (Symbols::define), so ask
/// only for what has to be known.
class SizeEvaluator {
public:
  /// `known` tells what is a constant or an affine expression already: integer
  /// elements, and the constant that a value folds to.
  SizeEvaluator(Symbols &symbols,
                std::function<graph::SymbolicTensor(mlir::Value)> known,
                std::function<mlir::DenseElementsAttr(mlir::Value)> constantOf)
      : symbols(symbols), known(std::move(known)),
        constantOf(std::move(constantOf)) {}

  /// Elements in row-major order, each known or not; none where the tensor is
  /// not looked at.
  const SizeElements *evaluate(mlir::Value value);

  /// That `value`, of which nothing is known, is what `copy` is.
  void learnEqual(mlir::Value value, mlir::Value copy) { copies[value] = copy; }
  /// That copy; null where there is none.
  mlir::Value copyOf(mlir::Value value) const { return copies.lookup(value); }

private:
  SizeElements compute(mlir::Value value);
  SizeElements leaf(mlir::Value value);
  SizeElements moved(mlir::Operation *op);
  SizeElements reduced(graph::ReduceOp op);
  SizeElement arithmetic(mlir::Operation *op, llvm::ArrayRef<SizeElement> x);
  /// One of two operands behind a condition.
  SizeElement chosen(llvm::ArrayRef<SizeElement> x, mlir::Type type);
  SizeElement compared(graph::Predicate predicate, const SizeElement &a,
                       const SizeElement &b, mlir::Type type);
  SizeElement castTo(mlir::Type from, mlir::Type to, const SizeElement &x);
  /// Two elements as a reduction of this kind combines them.
  SizeElement combine(graph::ReduceKind kind, llvm::ArrayRef<SizeElement> x,
                      mlir::Type type);

  // Integers; a condition is 0 or 1.
  SizeElement integers(mlir::Operation *op, llvm::ArrayRef<SizeElement> x);
  /// Whether integers of `type` hold all values of `size`. Of those of 32 bits
  /// that is assumed where it matters (Emitter::assumeNoneWraps), of those of
  /// 64 always.
  bool fits(mlir::AffineExpr size, mlir::Type type) const;

  // Floats.
  SizeElement floats(mlir::Operation *op, llvm::ArrayRef<SizeElement> x);
  SizeElement floatStep(graph::SizeStep::Op op, llvm::ArrayRef<SizeElement> x,
                        mlir::Type type);
  SizeElement floatRemainder(const SizeElement &a, const SizeElement &b,
                             mlir::Type type);
  /// With the numerator of what is a fraction by a power of two.
  SizeElement asFraction(const SizeElement &x);
  /// Says that `x` is `numerator` / 2^`shift`, if a float of `type` holds that
  /// exactly.
  void setExact(SizeElement &x, mlir::AffineExpr numerator, int64_t shift,
                mlir::Type type);
  /// What a float of `type` that was computed as `x` says is known of.
  SizeElement rounded(SizeElement x, mlir::Type type);

  Symbols &symbols;
  graph::ExprEffort effort;
  std::function<graph::SymbolicTensor(mlir::Value)> known;
  std::function<mlir::DenseElementsAttr(mlir::Value)> constantOf;
  llvm::DenseMap<mlir::Value, SizeElements> memo;
  llvm::DenseMap<mlir::Value, mlir::Value> copies;
};

} // namespace charonia::frontend

#endif
