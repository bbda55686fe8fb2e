#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/VerifyKernel.h"
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
        isa<func::CallOp, RepeatOp>(op) || isSameBytes(op))
      return success();
    return op->emitOpError("was left outside of the kernels");
  }
};

} // namespace
} // namespace charonia::graph
