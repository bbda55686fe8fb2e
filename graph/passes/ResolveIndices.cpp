#include "graph/analysis/IndexContent.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"

namespace charonia::graph {
#define GEN_PASS_DEF_RESOLVEINDICES
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

class ResolveIndices
    : public charonia::graph::impl::ResolveIndicesBase<ResolveIndices> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    if (auto module = getOperation()->getParentOfType<ModuleOp>())
      known = getFacts(module);
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) { ops.push_back(op); });
    for (GraphOpInterface op : ops) {
      if (op->use_empty() || op->getNumOperands() == 0)
        continue;
      builder.setInsertionPoint(op);
      Value value = constantContent(op, builder);
      if (!value)
        value = viewOfChosen(op, builder);
      if (value)
        op->getResult(0).replaceAllUsesWith(value);
    }
    eraseDead(getOperation());
  }

  /// A tensor that holds one known value everywhere.
  Value constantContent(GraphOpInterface op, OpBuilder &builder) {
    Value result = op->getResult(0);
    if (op.getRole() != OpRole::Pointwise ||
        !getElementTypeOrSelf(result).isIntOrIndex())
      return {};
    AffineExpr content =
        contentAt(result, coordinatesOf(result), getShape(result));
    auto constant = content ? constantOf(content) : std::nullopt;
    if (!constant || std::abs(*constant) > (int64_t(1) << 53))
      return {};
    Value scalar = scalarConstant(builder, op->getLoc(),
                                  getElementTypeOrSelf(result), *constant);
    return broadcastTo(builder, op->getLoc(), scalar, result.getType());
  }

  /// A choice of elements by known indices, as views.
  Value viewOfChosen(GraphOpInterface op, OpBuilder &builder) {
    Exprs extents = getShape(op->getResult(0));
    AffineMap map = op.getChosenMap(
        [&](unsigned operand, ArrayRef<AffineExpr> coordinates) {
          return contentAt(op->getOperand(operand), coordinates, extents);
        });
    if (!map)
      return {};
    map = simplify(map, extents);
    Value input = op->getOperand(0);
    known.setExtents(extents);
    // An index may count from the end or leave the input: then it is no view.
    for (auto [e, size] : llvm::zip_equal(map.getResults(), getShape(input)))
      if (!isWithin(e, size, known))
        return {};
    auto plan = planViews(map, getShape(input), extents);
    return plan ? buildViews(builder, op->getLoc(), input, *plan) : Value();
  }

  Facts known;
};

} // namespace
