#include "graph/ir/Refinement.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"

namespace charonia::graph {
#define GEN_PASS_DEF_REFINEREDUCTIONS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// The dimensions of the refinement that the axes are made of.
SmallVector<int64_t> refinedAxes(const Refinement &refinement,
                                 ArrayRef<int64_t> axes) {
  SmallVector<int64_t> refined;
  for (auto [i, owner] : llvm::enumerate(refinement.second))
    if (llvm::is_contained(axes, (int64_t)owner))
      refined.push_back(i);
  return refined;
}

/// The operand before the reshape that merged its dimensions, with all
/// boundaries that either shape has; null where nothing was merged.
Value refine(Value input, OpBuilder &builder, Refinement &refinement) {
  auto reshape = input.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  Exprs from = getShape(reshape.getInput()), to = getShape(input);
  std::optional<Refinement> found = commonRefinement(from, to);
  if (!found || found->dims.size() <= to.size())
    return {};
  refinement = std::move(*found);
  if (refinement.dims == from)
    return reshape.getInput();
  return ReshapeOp::create(
      builder, reshape.getLoc(),
      makeType(refinement.dims, getElementTypeOrSelf(input)),
      reshape.getInput());
}

class RefineReductions
    : public charonia::graph::impl::RefineReductionsBase<RefineReductions> {
  void runOnOperation() override {
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) {
      if (!op.getReductionAxes().empty())
        ops.push_back(op);
    });
    OpBuilder builder(&getContext());
    for (GraphOpInterface op : ops) {
      builder.setInsertionPoint(op);
      rewrite(op, builder);
    }
    eraseDead(getOperation());
  }

  static void rewrite(GraphOpInterface op, OpBuilder &builder) {
    Value whole = op->getOperand(0);
    Refinement refinement;
    Value input = refine(whole, builder, refinement);
    if (!input)
      return;
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    bool keepDims =
        type.getRank() == cast<RankedTensorType>(whole.getType()).getRank();
    Value result = op.reduceAlong(
        builder, input, refinedAxes(refinement, op.getReductionAxes()),
        keepDims);
    if (!result)
      return;
    if (result.getType() != type)
      result = ReshapeOp::create(builder, op->getLoc(), type, result);
    op->getResult(0).replaceAllUsesWith(result);
  }
};

} // namespace
