// From the tile dialect to the simt dialect.
#ifndef CHARONIA_CODEGEN_GPU_ASSIGNLAYOUTS_H
#define CHARONIA_CODEGEN_GPU_ASSIGNLAYOUTS_H

#include "codegen/target/GpuTarget.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// Before: a kernel in the tile dialect. After: every tensor has a layout, dots
/// are steps on fragments whose operands come from shared memory
/// (simt.to_shared, not yet placed) or registers, reductions across warps and
/// conversions that registers and shuffles cannot do go through shared memory.
/// `warps`: of a program instance, a power of two.
mlir::LogicalResult assignLayouts(mlir::func::FuncOp function, unsigned warps,
                                  const GpuTarget &target);

} // namespace charonia::gpu

#endif
