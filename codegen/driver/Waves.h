// Kernels that need nothing of one another, one behind the other.
#ifndef CHARONIA_CODEGEN_DRIVER_WAVES_H
#define CHARONIA_CODEGEN_DRIVER_WAVES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::driver {

/// Orders the kernels of a function so that those that need nothing of one
/// another, as branches of a model, follow one another, and marks them
/// (graph.beside_previous, graph.beside_next): a GPU runs them side by side. A
/// wave is a kernel and those behind it that are so marked. All that a wave
/// reads and writes is in memory until its end, so kernels of large values stay
/// alone, and so does what updates memory in place. Before the program is laid
/// out.
void formWaves(mlir::func::FuncOp function);

} // namespace charonia::driver

#endif
