// Kernels that begin while the one before them ends.
#ifndef CHARONIA_CODEGEN_GPU_DEPENDENTLAUNCH_H
#define CHARONIA_CODEGEN_GPU_DEPENDENTLAUNCH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// Makes the kernel wait for its predecessor before it touches memory that
/// another kernel writes or may still use; loads and copies of weights that
/// begin the kernel are issued before the wait. It is in the function's body,
/// so no thread ends without it. A kernel that may run beside its predecessor
/// (tile.waits_at_end) waits behind all else. At its end a kernel of few
/// instances lets the successor begin; earlier costs more than it gains in four
/// models of six (docs/performance.md), unless that may run beside it
/// (tile.starts_next). After pipelining, before shared memory is allocated
/// and barriers are placed.
void overlapLaunches(mlir::func::FuncOp function);

/// Whether the kernel lets the next one run beside it: as soon as the kernels
/// before both have ended, or at its beginning where it runs beside those.
bool startsNextAtOnce(mlir::func::FuncOp function);

} // namespace charonia::gpu

#endif
