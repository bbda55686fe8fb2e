// What a fusion plan decided, and why, for people.
#include "graph/analysis/FusionPlan.h"

using namespace mlir;

namespace charonia::graph {

/// By the groups as they are now: what forbade it while they grew still does,
/// or the reader had gone to another by then.
const char *FusionPlan::whyApart(const Group &from, const Group &to,
                                 OpOperand &use) const {
  auto reader = cast<GraphOpInterface>(use.getOwner());
  OpRole role = reader.getRole();
  constexpr const char *taken = "it is computed with what else it reads";
  const char *again =
      limits.instances == 0 ? nullptr : whyNotAgain(from, to, use);
  if (from.hasAnchor(OpRole::Ordered))
    return "all of it has to be there before any of it is read";
  if (role == OpRole::Pointwise || role == OpRole::View ||
      (isRowRole(role) && from.anchor &&
       isRowRole(GraphOpInterface(from.anchor).getRole()))) {
    std::optional<IterationSpace::Place> place;
    if (const char *why = whyNotBehind(from, reader, place))
      return again == kTooOften ? again : why;
    return taken;
  }
  if (again == kTooOften)
    return again;
  if (const char *why = whyNotInFront(from, to, use))
    return why;
  if (from.anchor)
    return "rows are read that lie in several tiles of what computes them";
  return "others read it at other places";
}

std::vector<FusionPlan::Decision> FusionPlan::decisions() const {
  std::vector<Decision> decisions;
  for (const Group *group : order())
    for (Operation *op : group->ops)
      for (Value value : op->getResults()) {
        auto type = cast<RankedTensorType>(value.getType()).getElementType();
        int64_t bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64,
                bytes = elementsOf(value) * std::max<int64_t>(bits / 8, 1);
        Readers readers;
        collectReaders(value, readers);
        llvm::SmallSetVector<const Group *, 4> seen;
        for (OpOperand *use : readers)
          seen.insert(groupOf(use->getOwner()));
        bool isStored = llvm::is_contained(group->results, value);
        for (const Group *to : seen) {
          if (!to)
            continue; // returned
          // One reader's kernel would leave it unstored.
          int64_t saved = to == group ? (isStored ? bytes : 2 * bytes)
                                      : (seen.size() == 1 ? 2 * bytes : bytes);
          const char *why = nullptr;
          for (OpOperand *use : readers)
            if (!why && to != group && groupOf(use->getOwner()) == to)
              why = whyApart(*group, *to, *use);
          decisions.push_back({value, group, to, saved, why});
        }
      }
  return decisions;
}

} // namespace charonia::graph
