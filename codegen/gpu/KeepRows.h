// Rows that are read more than once.
#ifndef CHARONIA_CODEGEN_GPU_KEEPROWS_H
#define CHARONIA_CODEGEN_GPU_KEEPROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// Loads that several loops, one behind the other, do alike come from shared
/// memory (of `sharedBytes`) if all of their tiles fit there: asynchronous
/// copies bring them, issued all at once before the first loop, so that memory
/// is read once and early. A thread copies what it will read itself.
/// Says whether there are rows and all of them are kept.
bool keepRows(mlir::func::FuncOp function, int64_t sharedBytes);

} // namespace charonia::gpu

#endif
