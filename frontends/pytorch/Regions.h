// Operators that hold graphs.
#ifndef CHARONIA_FRONTENDS_PYTORCH_REGIONS_H
#define CHARONIA_FRONTENDS_PYTORCH_REGIONS_H

#include "frontends/pytorch/Program.h"

namespace charonia::frontend::pytorch {

/// Whether a condition on sizes holds; none where that depends on them.
using Decide = llvm::function_ref<std::optional<bool>(const Argument &)>;

/// Puts the nodes of regions in their place: of no_grad and autocast, and of
/// the branch of a condition that is known. Where it is a tensor, both branches
/// are computed and their results chosen from. Regions of other kinds, and
/// conditions that cannot be decided, stay for the importer to refuse. False
/// where there would be over `maxNodes` nodes.
bool inlineRegions(Graph &graph, Decide decide, size_t maxNodes);

} // namespace charonia::frontend::pytorch

#endif
