// Scalar rules of the pointwise operators.
#ifndef CHARONIA_GRAPH_EVAL_SCALAR_H
#define CHARONIA_GRAPH_EVAL_SCALAR_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace charonia::graph {

/// An element: a float as double, an integer (i1 as 0 or 1) as int64_t.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

/// The result's element for these elements of the operands; nothing where there
/// is no rule or no value (division by zero, out of range). Not yet rounded or
/// wrapped to the result's type.
std::optional<Scalar> evaluateScalar(mlir::Operation *op,
                                     llvm::ArrayRef<Scalar> operands);

} // namespace charonia::graph

#endif
