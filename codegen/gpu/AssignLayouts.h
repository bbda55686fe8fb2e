// From the tile dialect to the simt dialect.
#ifndef CHARONIA_CODEGEN_GPU_ASSIGNLAYOUTS_H
#define CHARONIA_CODEGEN_GPU_ASSIGNLAYOUTS_H

#include "codegen/target/GpuTarget.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace charonia::gpu {

/// Products of floats of 8 bits, where `which` says so, become those of f16,
/// which has all of their values. Whether there were any.
bool widenFloat8Dots(mlir::func::FuncOp function,
                     llvm::function_ref<bool(tile::DotOp)> which);

/// Before: a kernel in the tile dialect. After: every tensor has a layout, dots
/// are steps on fragments whose operands come from shared memory
/// (simt.to_shared, not yet placed) or registers, reductions across warps and
/// conversions that registers and shuffles cannot do go through shared memory.
/// `warps`: of a program instance, a power of two. `stays`: for instances that
/// stay (BoxPlan.h), where what is stored goes beside the next tile's operands
/// and warpgroups need not meet.
mlir::LogicalResult assignLayouts(mlir::func::FuncOp function, unsigned warps,
                                  const GpuTarget &target, bool stays = false);

} // namespace charonia::gpu

#endif
