#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"

namespace charonia::graph {
#define GEN_PASS_DEF_SPLITWINDOWS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// An order of sides, and what it costs: accesses to elements for one of the
/// result.
struct Plan {
  SmallVector<unsigned> order;
  int64_t cost = 0;
};

/// Sides of one element cost nothing, but a stride along them makes the result
/// smaller: they go with the first. A result in memory is written, and read by
/// operators that would have read the window's operand anyway.
Plan planOf(ArrayRef<WindowSide> sides, ArrayRef<unsigned> order) {
  constexpr int64_t stored = 3;
  Plan plan{SmallVector<unsigned>(order), 0};
  for (auto [place, side] : llvm::enumerate(order)) {
    int64_t elements = 1;
    for (unsigned later : order.drop_front(place + 1))
      elements *= sides[later].stride;
    bool isLast = place + 1 == order.size();
    plan.cost += elements * (sides[side].extent + (isLast ? 0 : stored));
  }
  return plan;
}

class SplitWindows
    : public charonia::graph::impl::SplitWindowsBase<SplitWindows> {
public:
  using SplitWindowsBase::SplitWindowsBase;

private:
  void runOnOperation() override {
    symbols = getOptimum(getOperation());
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) {
      if (!op.getWindow().empty())
        ops.push_back(op);
    });
    OpBuilder builder(&getContext());
    for (GraphOpInterface op : ops) {
      builder.setInsertionPoint(op);
      split(op, builder);
    }
    eraseDead(getOperation());
  }

  void split(GraphOpInterface op, OpBuilder &builder) {
    SmallVector<WindowSide> sides = op.getWindow();
    SmallVector<unsigned> longer, others;
    int64_t whole = 1;
    for (auto [i, side] : llvm::enumerate(sides)) {
      (side.extent > 1 ? longer : others).push_back(i);
      // Larger ones are not worth being counted.
      if (llvm::MulOverflow(whole, side.extent, whole) || side.stride > limit)
        return;
    }
    if (longer.size() < 2)
      return;
    Plan best = planOf(sides, longer);
    for (SmallVector<unsigned> order = longer;
         std::next_permutation(order.begin(), order.end());)
      if (Plan plan = planOf(sides, order); plan.cost < best.cost)
        best = std::move(plan);
    std::optional<int64_t> results = evaluate(
        numElements(getShape(op->getResult(0)), op->getContext()), symbols);
    // A third of them, and some.
    if (best.cost > whole - whole / 3 || !results ||
        (whole - best.cost) < leastSaved / std::max<int64_t>(*results, 1))
      return;
    replace(op, best.order, others, builder);
  }

  void replace(GraphOpInterface op, ArrayRef<unsigned> order,
               ArrayRef<unsigned> others, OpBuilder &builder) {
    Type element = getElementTypeOrSelf(op->getResult(0));
    auto small = dyn_cast<FloatType>(element);
    bool isRounded = small && small.getWidth() < 32;
    auto converted = [&](Value value, Type to) -> Value {
      return isRounded ? CastOp::create(builder, op->getLoc(),
                                        withElement(value.getType(), to), value,
                                        TypeAttr::get(to))
                       : value;
    };
    Value value = converted(op->getOperand(0), builder.getF32Type());
    for (auto [place, side] : llvm::enumerate(order)) {
      SmallVector<unsigned> together{side};
      if (place == 0)
        together.append(others.begin(), others.end());
      value = op.slideAlong(builder, value, together);
    }
    op->getResult(0).replaceAllUsesWith(converted(value, element));
  }

  /// Strides whose products are counted.
  static constexpr int64_t limit = 1 << 15;

  SmallVector<int64_t> symbols;
};

} // namespace
