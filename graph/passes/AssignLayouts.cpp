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
  // A reshape may have nothing left to do.
  Value result = copy->getResult(0);
  SmallVector<OpFoldResult> folded;
  if (succeeded(copy->fold(folded)) && folded.size() == 1 &&
      isa<Value>(folded[0])) {
    result = cast<Value>(folded[0]);
    copy->erase();
  }
  result = transposedBy(builder, result, permuted.result);
  op->getResult(0).replaceAllUsesWith(result);
  return result;
}

/// Whether a view takes a box of its operand, of the same dimensions, that is
/// smaller along the first.
bool cutsFirst(GraphOpInterface view) {
  AffineMap map = view.getOperandMap(0);
  Exprs in = getShape(view->getOperand(0)), out = getShape(view->getResult(0));
  if (!map || out.empty() || map.getNumResults() != out.size() ||
      in.size() != out.size() || in[0] == out[0])
    return false;
  for (auto [d, at] : llvm::enumerate(map.getResults())) {
    AffineExpr dim = getAffineDimExpr(d, view->getContext()),
               start = constantOf(out[d]) == 1
                           ? at.replace(dim, getAffineConstantExpr(
                                                 0, view->getContext()))
                           : simplify(at - dim);
    if (!start.isSymbolicOrConstant())
      return false;
  }
  return true;
}

/// Whether a value is read, perhaps behind pointwise operators, in several
/// parts along its first dimension and else not at all: by the steps of a
/// recurrence. As it lies these are runs of memory, and the steps' kernels
/// one; behind a transpose they are not.
bool isReadInSteps(Value value) {
  constexpr unsigned mostOps = 16;
  for (unsigned i = 0; i < mostOps; ++i) {
    auto isCut = [](Operation *user) {
      auto view = dyn_cast<GraphOpInterface>(user);
      return view && view.getRole() == OpRole::View &&
             view->getNumOperands() == 1 && cutsFirst(view);
    };
    if (!value.hasOneUse())
      return !value.use_empty() && llvm::all_of(value.getUsers(), isCut);
    auto next = dyn_cast<GraphOpInterface>(*value.user_begin());
    if (!next || next.getRole() != OpRole::Pointwise)
      return false;
    value = next->getResult(0);
  }
  return false;
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
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      auto permutation = permutationOf(operand);
      if (!permutation || weightsOnly(operand))
        continue;
      auto permuted = op.getPermuted(i, invertPermutationVector(*permutation));
      if (!permuted || !vanishes(op, *permuted))
        continue;
      // What is written once is read in each step.
      bool movesFirst =
          !permuted->result.empty() && permuted->result.front() != 0;
      if (op.isExpensive() && movesFirst && isReadInSteps(op->getResult(0)))
        continue;
      permute(builder, op, *permuted);
      return;
    }
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
