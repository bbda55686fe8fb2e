#include "graph/analysis/VerifyKernel.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/StoredParts.h"
#include "graph/analysis/Updates.h"
#include "graph/analysis/Walked.h"
#include "graph/analysis/Weights.h"

using namespace mlir;
using namespace charonia::graph;

/// Memory that a kernel changes belongs to it alone.
static LogicalResult verifyUpdate(KernelOp kernel, KernelOp replaced) {
  auto isOwn = [&](Value memory) {
    return memory.getDefiningOp<KernelOp>() &&
           llvm::count_if(memory.getUsers(), [&](Operation *user) {
             return user != replaced.getOperation();
           }) == 1;
  };
  for (Operation &op : kernel.getBody().front()) {
    auto graphOp = dyn_cast<GraphOpInterface>(&op);
    if (!graphOp || !graphOp.getUpdatedOperand())
      continue;
    std::optional<unsigned> updated = getUpdatedInput(kernel);
    if (!updated || kernel.getNumResults() != 1 ||
        !isOwn(kernel.getInputs()[*updated]) ||
        !kernel.getBody().getArgument(*updated).hasOneUse())
      return op.emitOpError("updates memory that is not its own");
  }
  return success();
}

LogicalResult charonia::graph::verifyKernel(KernelOp kernel,
                                            KernelOp replaced) {
  std::optional<IterationSpace> space = getIterationSpace(kernel);
  unsigned rows = 0, others = 0;
  for (Operation &op : kernel.getBody().front())
    if (auto graphOp = dyn_cast<GraphOpInterface>(&op)) {
      if (isWeight(&op))
        return op.emitOpError(
            "is inside of a kernel; weights are its operands");
      if (space && canBeComputedAgain(graphOp) &&
          !space->contains(op.getResult(0)))
        continue;
      // What adds up the tiles of another is none.
      if (auto place = space ? space->lookup(op.getResult(0)) : std::nullopt;
          place && place->extent == IterationSpace::Extent::Cell)
        continue;
      OpRole role = graphOp.getRole();
      rows += role == OpRole::Reduction || role == OpRole::RowNormalization;
      others += role == OpRole::Contraction || role == OpRole::Window ||
                role == OpRole::Ordered;
    }
  if (others > 1 || (others && rows))
    return kernel.emitOpError("has more than one anchor");
  if (failed(verifyUpdate(kernel, replaced)))
    return failure();
  if (kernel->hasAttr(kStoredPartsAttr))
    return kernel.emitOpError(
        "has results that are parts of other values, which they become when "
        "the program is laid out");
  if (kernel->hasAttr(kWalksProductAttr) && !mayWalkProduct(kernel))
    return kernel.emitOpError("has no product that it could walk");
  if (!space || !getResultMaps(kernel))
    return kernel.emitOpError(
        "has a result that does not follow from its first");
  return success();
}
