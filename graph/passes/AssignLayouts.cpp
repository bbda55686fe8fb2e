#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace charonia::graph {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// Replaces `op` by its permuted form, with transposes around it.
Value permute(OpBuilder &builder, Operation *op, const Permuted &permuted) {
  builder.setInsertionPoint(op);
  SmallVector<Value> operands;
  for (auto [operand, permutation] :
       llvm::zip_equal(op->getOperands(), permuted.operands))
    operands.push_back(permutation.empty()
                           ? operand
                           : transposedBy(builder, operand, permutation));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Exprs shape = getShape(type), before;
  for (int64_t p : invertPermutationVector(permuted.result))
    before.push_back(shape[p]);
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  for (NamedAttribute attribute : permuted.attributes)
    copy->setAttr(attribute.getName(), attribute.getValue());
  copy->getResult(0).setType(makeType(before, type.getElementType()));
  Value result = transposedBy(builder, copy->getResult(0), permuted.result);
  op->getResult(0).replaceAllUsesWith(result);
  return result;
}

class AssignLayouts
    : public charonia::graph::impl::AssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) { ops.push_back(op); });
    for (GraphOpInterface op : ops)
      if (auto permuted = op.getChannelsLastForm())
        permute(builder, op, *permuted);
    // In order, so that a transpose meets the operators on its way one after
    // the other, each of them once.
    ops.clear();
    getOperation().walk([&](GraphOpInterface op) { ops.push_back(op); });
    for (GraphOpInterface op : ops)
      if (!op->use_empty())
        sink(op, builder);
    eraseDead(getOperation());
  }

  /// Moves the transposes of the operands behind the operator, where that
  /// leaves none on them.
  void sink(GraphOpInterface op, OpBuilder &builder) {
    // What has sunk so far may cancel with a transpose behind a reshape.
    auto outer = permutationOf(op->getResult(0));
    if (outer && shortenViews(op, builder))
      return;
    if (outer && permutationOf(op->getOperand(0))) {
      builder.setInsertionPoint(op);
      op->getResult(0).replaceAllUsesWith(
          transposedBy(builder, op->getOperand(0), *outer));
      return;
    }
    if (auto reshape = dyn_cast<ReshapeOp>(op.getOperation()))
      return sinkThrough(reshape, builder);
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      auto permutation = permutationOf(operand);
      if (!permutation || weightsOnly(operand))
        continue;
      auto permuted = op.getPermuted(i, invertPermutationVector(*permutation));
      if (!permuted || !vanishes(op, *permuted))
        continue;
      permute(builder, op, *permuted);
      return;
    }
  }

  /// The same of a reshape, which splits or merges dimensions that are
  /// neighbours on both sides of the transpose.
  void sinkThrough(ReshapeOp op, OpBuilder &builder) {
    auto permutation = permutationOf(op.getInput());
    if (!permutation || weightsOnly(op.getInput()))
      return;
    Value source = op.getInput().getDefiningOp()->getOperand(0);
    auto sunk =
        sinkTranspose(getShape(source), *permutation, getShape(op.getResult()));
    if (!sunk)
      return;
    builder.setInsertionPoint(op);
    Type type = makeType(sunk->reshaped, getElementTypeOrSelf(source));
    if (source.getType() != type)
      source = ReshapeOp::create(builder, op.getLoc(), type, source);
    op.getResult().replaceAllUsesWith(
        transposedBy(builder, source, sunk->permutation));
  }

  /// Whether no transpose of an activation is left on the operands.
  bool vanishes(GraphOpInterface op, const Permuted &permuted) {
    for (auto [operand, permutation] :
         llvm::zip_equal(op->getOperands(), permuted.operands)) {
      if (permutation.empty() || weightsOnly(operand) || splatOf(operand))
        continue;
      auto inner = permutationOf(operand);
      if (!inner ||
          !isIdentityPermutation(applyPermutation(*inner, permutation)))
        return false;
    }
    return true;
  }

  WeightsOnly weightsOnly;
};

} // namespace
