#include "graph/analysis/Updates.h"
#include "graph/analysis/Cells.h"

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

Value getWalked(KernelOp kernel) {
  Value result = firstResult(kernel);
  auto op = result.getDefiningOp<GraphOpInterface>();
  if (auto walked = op ? op.getWalkedOperand() : std::nullopt)
    return op->getOperand(*walked);
  auto space = readsCells(kernel) ? getIterationSpace(kernel) : std::nullopt;
  return space ? getWalked(
                     *space,
                     kernel.getBody().front().getTerminator()->getOperands())
               : result;
}

} // namespace charonia::graph
