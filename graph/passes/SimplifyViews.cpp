#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"
#include "mlir/IR/Iterators.h"

namespace charonia::graph {
#define GEN_PASS_DEF_SIMPLIFYVIEWS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

GraphOpInterface viewOf(Value value) {
  auto op = value.getDefiningOp<GraphOpInterface>();
  return op && op.getRole() == OpRole::View ? op : GraphOpInterface();
}

class SimplifyViews
    : public charonia::graph::impl::SimplifyViewsBase<SimplifyViews> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    // From the start, so that a chain's beginning is short when its end is
    // seen.
    getOperation().walk([&](GraphOpInterface op) {
      if (op.getRole() == OpRole::View && !op->use_empty())
        shorten(op, builder);
    });
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>(
        [](Operation *op) {
          if (isOpTriviallyDead(op))
            op->erase();
        });
  }

  /// Looks for the longest chain of views up to `last` that fewer views make.
  void shorten(GraphOpInterface last, OpBuilder &builder) {
    Value result = last->getResult(0);
    Exprs extents = getShape(result);
    AffineMap map =
        AffineMap::getMultiDimIdentityMap(extents.size(), &getContext());
    Value source = result, bestSource;
    std::optional<ViewPlan> best;
    unsigned length = 0;
    int bestGain = 0;
    // Beyond this length the maps are no longer simple ones.
    while (GraphOpInterface view = length < 16 ? viewOf(source) : nullptr) {
      map = throughView(view, map, extents);
      source = view->getOperand(0);
      ++length;
      auto plan = planViews(map, getShape(source), extents);
      int gain =
          plan ? int(length) - int(plan->countViews(getShape(source))) : 0;
      if (gain > bestGain) {
        best = std::move(plan);
        bestSource = source;
        bestGain = gain;
      }
    }
    if (!best)
      return;
    builder.setInsertionPoint(last);
    result.replaceAllUsesWith(
        buildViews(builder, last->getLoc(), bestSource, *best));
  }
};

} // namespace
