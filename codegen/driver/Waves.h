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
/// alone, and what lives at a time is at most a quarter more than in the
/// model's own order, and a megabyte, at the sizes to optimize for. What
/// updates memory in place stays where it is. `isWhole`: the function's
/// arguments and results are the model's, in memory of its callers. Before the
/// program is laid out.
void formWaves(mlir::func::FuncOp function, bool isWhole);

} // namespace charonia::driver

#endif
