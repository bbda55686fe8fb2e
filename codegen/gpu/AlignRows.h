// Rows whose length is no multiple of what an access to memory moves.
#ifndef CHARONIA_CODEGEN_GPU_ALIGNROWS_H
#define CHARONIA_CODEGEN_GPU_ALIGNROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// Rows of 50257 elements begin at odd elements. Loops that walk along a row
/// begin before it then, at the last multiple of 16 bytes: tiles lie in memory
/// as vectors do, and the checks that keep them from passing the end of the row
/// keep them from what is in front of it as well.
void alignRows(mlir::func::FuncOp function);

} // namespace charonia::gpu

#endif
