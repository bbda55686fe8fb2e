// Rows that one walk computes and a later one would compute again.
#ifndef CHARONIA_CODEGEN_EMIT_KEEPROWS_H
#define CHARONIA_CODEGEN_EMIT_KEEPROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::emit {

/// Of a tile program for a CPU: what two loops over the same numbers both
/// compute at some cost (the exponentials of a softmax, what is fused in front
/// of a normalization) the first stores in memory of the program instance, and
/// the second loads it there. Where the loops' number is open there is a
/// branch, with a body for no more tiles than there is room for.
void keepRows(mlir::func::FuncOp function);

} // namespace charonia::emit

#endif
