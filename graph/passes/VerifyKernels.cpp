#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Updates.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/Passes.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "graph/passes/Passes.h.inc"

namespace {

struct VerifyKernels : impl::VerifyKernelsBase<VerifyKernels> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Operation &op : function.getBody().front())
        if (failed(verify(&op)))
          signalPassFailure();
  }

  LogicalResult verify(Operation *op) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      return verifyKernel(kernel);
    if (op->hasTrait<OpTrait::IsTerminator>() || isWeight(op) ||
        isSameBytes(op))
      return success();
    return op->emitOpError("was left outside of the kernels");
  }

  LogicalResult verifyKernel(KernelOp kernel) {
    unsigned rows = 0, others = 0;
    for (Operation &op : kernel.getBody().front())
      if (auto graphOp = dyn_cast<GraphOpInterface>(&op)) {
        if (isWeight(&op))
          return op.emitOpError(
              "is inside of a kernel; weights are its operands");
        OpRole role = graphOp.getRole();
        rows += role == OpRole::Reduction || role == OpRole::RowNormalization;
        others += role == OpRole::Contraction || role == OpRole::Window ||
                  role == OpRole::Ordered;
      }
    if (others > 1 || (others && rows))
      return kernel.emitOpError("has more than one anchor");
    if (failed(verifyUpdate(kernel)))
      return failure();
    std::optional<IterationSpace> space = getIterationSpace(kernel);
    if (!space || !getResultMaps(*space, kernel))
      return kernel.emitOpError(
          "has a result that does not follow from its first");
    return success();
  }

  /// Memory that a kernel changes belongs to it alone.
  LogicalResult verifyUpdate(KernelOp kernel) {
    for (Operation &op : kernel.getBody().front()) {
      auto graphOp = dyn_cast<GraphOpInterface>(&op);
      if (!graphOp || !graphOp.getUpdatedOperand())
        continue;
      std::optional<unsigned> updated = getUpdatedInput(kernel);
      Value input = updated ? kernel.getInputs()[*updated] : Value();
      if (!input || kernel.getNumResults() != 1 || !input.hasOneUse() ||
          !input.getDefiningOp<KernelOp>() ||
          !kernel.getBody().getArgument(*updated).hasOneUse())
        return op.emitOpError("updates memory that is not its own");
    }
    return success();
  }
};

} // namespace
} // namespace charonia::graph
