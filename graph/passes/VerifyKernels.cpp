#include "graph/analysis/IterationSpace.h"
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
    std::optional<IterationSpace> space = getIterationSpace(kernel);
    if (!space || !getResultMaps(*space, kernel))
      return kernel.emitOpError(
          "has a result that does not follow from its first");
    return success();
  }
};

} // namespace
} // namespace charonia::graph
