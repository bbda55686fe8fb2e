// What codegen may expect of a kernel.
#ifndef CHARONIA_GRAPH_ANALYSIS_VERIFYKERNEL_H
#define CHARONIA_GRAPH_ANALYSIS_VERIFYKERNEL_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// Fails with an error at the operator where a kernel holds weights, has more
/// than one anchor, a result that does not follow from its first, or updates
/// memory that others read. Uses by `replaced`, which the kernel is to take the
/// place of, do not count.
llvm::LogicalResult verifyKernel(KernelOp kernel, KernelOp replaced = {});

} // namespace charonia::graph

#endif
