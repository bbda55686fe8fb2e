#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"

namespace charonia::graph {
#define GEN_PASS_DEF_STAGEORDERED
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

class StageOrdered
    : public charonia::graph::impl::StageOrderedBase<StageOrdered> {
public:
  using StageOrderedBase::StageOrderedBase;

private:
  void runOnOperation() override {
    SmallVector<int64_t> sizes = getOptimum(getOperation());
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) {
      if (op.getRole() == OpRole::Ordered)
        ops.push_back(op);
    });
    for (GraphOpInterface op : ops) {
      OpBuilder builder(op);
      if (Value result = op.writeInSteps(builder, {sizes, instances}))
        op->getResult(0).replaceAllUsesWith(result);
    }
    eraseDead(getOperation());
  }
};

} // namespace
