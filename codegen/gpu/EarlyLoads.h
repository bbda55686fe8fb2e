// Loads behind a loop of products, such as a bias and what a residual
// connection adds: issued in front of it, so that they come while the loop
// runs.
#ifndef CHARONIA_CODEGEN_GPU_EARLYLOADS_H
#define CHARONIA_CODEGEN_GPU_EARLYLOADS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// On a function with layouts, before pipelining. Moves loads that do not
/// depend on the loop, as long as the registers of a thread hold them beside
/// the accumulators.
void issueLoadsEarly(mlir::func::FuncOp function);

} // namespace charonia::gpu

#endif
