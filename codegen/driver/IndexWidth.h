// How many bits the indices of a GPU kernel have.
#ifndef CHARONIA_CODEGEN_DRIVER_INDEXWIDTH_H
#define CHARONIA_CODEGEN_DRIVER_INDEXWIDTH_H

#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::driver {

/// Sets tile.index_bits or tile.indexed of `function`, the tile program of
/// `kernel`, where one is needed. Indices whose 32 bits may be too few in the
/// symbols' ranges get 64 if they count more than half of that at the opt
/// values, or if they compute sizes that are elements of a tensor. Else they
/// keep 32, which are faster, the engine says what has to be counted, and the
/// runtime compares it.
void chooseIndexBits(graph::KernelOp kernel, mlir::func::FuncOp function);

} // namespace charonia::driver

#endif
