// Numbers that a type of few digits has an exact form of.
#ifndef CHARONIA_GRAPH_IR_EXACT_H
#define CHARONIA_GRAPH_IR_EXACT_H

#include "graph/ir/Algebra.h"
#include "mlir/IR/BuiltinTypes.h"

namespace charonia::graph {

/// Whether `number` is an element of `type` without being rounded.
inline bool isExact(double number, mlir::FloatType type) {
  llvm::APFloat value(number);
  bool isRounded;
  value.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                &isRounded);
  return !isRounded;
}

/// The integers that `type` has, as far as an interval says them; of one bit 0
/// and 1.
inline Interval limitsOf(mlir::IntegerType type) {
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  unsigned digits = type.getWidth() - (isUnsigned ? 0 : 1);
  if (digits >= 63)
    return {isUnsigned ? 0 : Interval::noLow, Interval::noHigh};
  int64_t count = int64_t(1) << digits;
  return {isUnsigned ? 0 : -count, count - 1};
}
/// Whether integers that follow from sizes, of which nothing says that they
/// wrap, leave 64 bits at sizes that are met: those of over 2^40 times a size.
inline bool hasHugeFactor(mlir::AffineExpr expr) {
  constexpr int64_t most = int64_t(1) << 40;
  return llvm::any_of(Sum(expr).terms, [](const Sum::Term &term) {
    return term.coefficient > most || term.coefficient < -most;
  });
}
/// Whether they are all of a range.
inline bool holds(mlir::IntegerType type, Interval range) {
  Interval limits = limitsOf(type);
  return limits.low <= range.low && range.high <= limits.high;
}

} // namespace charonia::graph

#endif
