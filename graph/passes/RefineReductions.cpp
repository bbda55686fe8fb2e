#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"

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
    SmallVector<ReduceOp> reductions;
    SmallVector<NormalizeOp> normalizations;
    getOperation().walk([&](Operation *op) {
      if (auto reduce = dyn_cast<ReduceOp>(op))
        reductions.push_back(reduce);
      else if (auto normalize = dyn_cast<NormalizeOp>(op))
        normalizations.push_back(normalize);
    });
    OpBuilder builder(&getContext());
    for (ReduceOp op : reductions)
      rewrite(op, builder);
    for (NormalizeOp op : normalizations)
      rewrite(op, builder);
    eraseDead(getOperation());
  }

  static void rewrite(ReduceOp op, OpBuilder &builder) {
    builder.setInsertionPoint(op);
    Refinement refinement;
    Value input = refine(op.getInput(), builder, refinement);
    if (!input)
      return;
    Value result = ReduceOp::create(builder, op.getLoc(), op.getKind(), input,
                                    refinedAxes(refinement, op.getAxes()),
                                    op.getKeepdims());
    replace(op, result, builder);
  }

  static void rewrite(NormalizeOp op, OpBuilder &builder) {
    builder.setInsertionPoint(op);
    Refinement refinement;
    Value input = refine(op.getInput(), builder, refinement);
    if (!input)
      return;
    Value result = NormalizeOp::create(
        builder, op.getLoc(), input.getType(), input,
        builder.getDenseI64ArrayAttr(refinedAxes(refinement, op.getAxes())),
        op.getEpsilonAttr(), op.getRmsAttr());
    replace(op, result, builder);
  }

  static void replace(Operation *op, Value result, OpBuilder &builder) {
    Type type = op->getResult(0).getType();
    if (result.getType() != type)
      result = ReshapeOp::create(builder, op->getLoc(), type, result);
    op->getResult(0).replaceAllUsesWith(result);
  }
};

} // namespace
