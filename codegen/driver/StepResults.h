// Values that a kernel stores twice.
#ifndef CHARONIA_CODEGEN_DRIVER_STEPRESULTS_H
#define CHARONIA_CODEGEN_DRIVER_STEPRESULTS_H

#include "graph/ir/Dialect.h"

namespace charonia::driver {

/// Whether the kernel stores tiles, and not whole results in some order, or
/// into memory that is there.
bool storesTiles(graph::KernelOp kernel);

/// Gives the kernel `result` once more behind its results: it is another kernel
/// then, in the old one's place.
mlir::OpResult addResult(mlir::OpResult result);

/// A kernel's result that steps of `repeat` carry on, and give as an output,
/// too, becomes two results of the kernel: each goes to its own place, and none
/// is copied.
void storeTwice(graph::RepeatOp repeat);

} // namespace charonia::driver

#endif
