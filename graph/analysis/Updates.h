// Kernels that change memory which is there.
#ifndef CHARONIA_GRAPH_ANALYSIS_UPDATES_H
#define CHARONIA_GRAPH_ANALYSIS_UPDATES_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// The input whose memory becomes that of the kernel's result; nothing for
/// kernels that write their results.
std::optional<unsigned> getUpdatedInput(KernelOp kernel);

} // namespace charonia::graph

#endif
