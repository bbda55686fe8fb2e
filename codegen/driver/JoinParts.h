// Concatenations whose operands are stored where they belong.
#ifndef CHARONIA_CODEGEN_DRIVER_JOINPARTS_H
#define CHARONIA_CODEGEN_DRIVER_JOINPARTS_H

#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::driver {

/// Kernels that do nothing but join what other kernels give are no kernels any
/// more: those store their results, or slices of them, as parts of the joined
/// value (see graph::getStoredPart), and once more as they are where others
/// read them. Of what is computed in front of the join one operand stays a
/// kernel. `isWhole`: the function's results are the model's; what a step of a
/// loop gives has other places, and is left alone.
void joinParts(mlir::func::FuncOp function, bool isWhole);

/// The value in whose memory a kernel's result is stored: that which it is
/// joined to; null where it has memory of its own.
mlir::Value joinedOf(mlir::Value result);

} // namespace charonia::driver

#endif
