// Kernels that change memory which is there.
#ifndef CHARONIA_GRAPH_ANALYSIS_UPDATES_H
#define CHARONIA_GRAPH_ANALYSIS_UPDATES_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// The input whose memory becomes that of the kernel's result; nothing for
/// kernels that write their results.
std::optional<unsigned> getUpdatedInput(KernelOp kernel);

/// The value inside of the kernel whose elements are dealt out to program
/// instances: the first result, the operand that its operator walks, or what is
/// cut into cells of which others have elements.
mlir::Value getWalked(KernelOp kernel);

} // namespace charonia::graph

#endif
