// Floats of 8 bits: e4m3fn, e5m2 and their fnuz kinds.
#ifndef CHARONIA_GRAPH_IR_FLOAT8_H
#define CHARONIA_GRAPH_IR_FLOAT8_H

#include "mlir/IR/BuiltinTypes.h"

namespace charonia::graph {

/// Whether an element is a float of 8 bits, of any kind.
inline bool isFloat8(mlir::Type element) {
  return llvm::isa<mlir::FloatType>(element) &&
         element.getIntOrFloatBitWidth() == 8;
}

} // namespace charonia::graph

#endif
