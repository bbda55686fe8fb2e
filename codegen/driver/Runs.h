// Operands that are one run of a larger tensor's memory.
#ifndef CHARONIA_CODEGEN_DRIVER_RUNS_H
#define CHARONIA_CODEGEN_DRIVER_RUNS_H

#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::driver {

/// Elements between the start of a view's operand and the view, where the view
/// is one run of its memory in the same order; null where it is not, or cannot
/// be told. Over shape symbols.
mlir::AffineExpr runOffset(graph::GraphOpInterface view);

/// Where a view begins that reads a box of its operand, of the same dimensions
/// and as it lies; nothing for others.
std::optional<graph::Exprs> boxStarts(graph::GraphOpInterface view);

/// Kernels that read an operand only through one part of it, which is a run and
/// starts at a multiple of `alignment` bytes, get that part as their operand:
/// the view moves in front of the kernel. Kernels that differ in nothing but
/// the place where they read, as the steps of a recurrence do, become one.
void passRuns(mlir::func::FuncOp function, int64_t alignment);

} // namespace charonia::driver

#endif
