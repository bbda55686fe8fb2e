#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"

namespace charonia::graph {
#define GEN_PASS_DEF_SIMPLIFYVIEWS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

class SimplifyViews
    : public charonia::graph::impl::SimplifyViewsBase<SimplifyViews> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    // From the start, so that a chain's beginning is short when its end is
    // seen.
    getOperation().walk([&](GraphOpInterface op) {
      if (op.getRole() == OpRole::View && !op->use_empty())
        shortenViews(op, builder);
    });
    eraseDead(getOperation());
  }
};

} // namespace
