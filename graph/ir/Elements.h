// Elements of tensors of static shape by their coordinates.
#ifndef CHARONIA_GRAPH_IR_ELEMENTS_H
#define CHARONIA_GRAPH_IR_ELEMENTS_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>

namespace charonia::graph {

/// Calls `visit(coordinates)` for every element of a static tensor, in order.
void forEachElement(mlir::Type type,
                    llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);
/// Row-major position of coordinates in a static shape, if inside.
std::optional<int64_t> linearize(llvm::ArrayRef<int64_t> coordinates,
                                 llvm::ArrayRef<int64_t> shape);

} // namespace charonia::graph

#endif
