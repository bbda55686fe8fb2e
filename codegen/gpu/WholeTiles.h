// Bounds that tiles mostly keep, checked once for a whole tile.
#ifndef CHARONIA_CODEGEN_GPU_WHOLETILES_H
#define CHARONIA_CODEGEN_GPU_WHOLETILES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// In loops with dots, elements that are replaced where a tile.in_bounds fails
/// are looked at only in iterations where it can fail: a branch that all
/// threads take alike.
void branchAroundBounds(mlir::func::FuncOp function);

} // namespace charonia::gpu

#endif
