#include "graph/analysis/Updates.h"

using namespace mlir;

namespace charonia::graph {

static Value firstResult(KernelOp kernel) {
  return kernel.getBody().front().getTerminator()->getOperand(0);
}

std::optional<unsigned> getUpdatedInput(KernelOp kernel) {
  auto op = firstResult(kernel).getDefiningOp<GraphOpInterface>();
  auto operand = op ? op.getUpdatedOperand() : std::nullopt;
  auto argument =
      operand ? dyn_cast<BlockArgument>(op->getOperand(*operand)) : nullptr;
  return argument ? std::optional(argument.getArgNumber()) : std::nullopt;
}

} // namespace charonia::graph
