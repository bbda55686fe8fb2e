// The functions of a program.
#ifndef CHARONIA_GRAPH_ANALYSIS_COMPUTING_H
#define CHARONIA_GRAPH_ANALYSIS_COMPUTING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::graph {

/// Those that compute something: @main, or where steps were outlined the ones
/// that it calls and repeats, in order.
llvm::SmallVector<mlir::func::FuncOp> getComputing(mlir::ModuleOp module);

/// Whether a function calls and repeats others, and computes nothing itself.
bool callsOthers(mlir::func::FuncOp function);

} // namespace charonia::graph

#endif
