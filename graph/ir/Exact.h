// Numbers that a type of few digits has an exact form of.
#ifndef CHARONIA_GRAPH_IR_EXACT_H
#define CHARONIA_GRAPH_IR_EXACT_H

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

} // namespace charonia::graph

#endif
