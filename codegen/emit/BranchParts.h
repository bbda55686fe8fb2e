// Choices that are the same for a whole tile become branches.
#ifndef CHARONIA_CODEGEN_EMIT_BRANCHPARTS_H
#define CHARONIA_CODEGEN_EMIT_BRANCHPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::emit {

/// A choice between two tiles by one condition is a branch, and what only one
/// side needs is loaded and computed there: of a concatenation of many operands
/// a tile reads the one that it is from.
void branchParts(mlir::func::FuncOp function);

} // namespace charonia::emit

#endif
