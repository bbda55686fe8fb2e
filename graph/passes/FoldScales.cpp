#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/Iterators.h"

namespace charonia::graph {
#define GEN_PASS_DEF_FOLDSCALES
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// One walk over the function in order. Nothing is erased before its end, so
/// what is known about values stays true.
class FoldScales : public charonia::graph::impl::FoldScalesBase<FoldScales> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (op->use_empty() || op->getNumOperands() != 2 ||
          op->getNumResults() != 1 || weightsOnly(op->getResult(0)))
        continue;
      builder.setInsertionPoint(op);
      auto term = [&](unsigned i) {
        return Term(op->getOperand(i), builder, op->getLoc());
      };
      Term x = term(0), y = term(1), result;
      // The weights are the right operand of what commutes.
      if (op->hasTrait<OpTrait::IsCommutative>() && weightsOnly(x.get()))
        std::swap(x, y);
      if (!weightsOnly(y.get()) || !x.isReal())
        continue;
      if (isa<MulOp>(op))
        result = scale(x, y, op->getResult(0));
      else if (isa<DivOp>(op))
        result = scale(x, y.make<ReciprocalOp>(y.get()), op->getResult(0));
      else if (isa<AddOp>(op))
        result = shift(x, y);
      else if (isa<SubOp>(op))
        result = shift(x, -y);
      Value value = result ? broadcastTo(builder, op->getLoc(), result.get(),
                                         op->getResult(0).getType())
                           : Value();
      if (!value)
        continue;
      op->getResult(0).replaceAllUsesWith(value);
      ++numFolded;
    }
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>(
        [](Operation *op) {
          if (isOpTriviallyDead(op))
            op->erase();
        });
  }

  /// x * s with s inside of x's weights; the empty term where it does not fit.
  Term scale(Term x, Term s, Value result) {
    if (!x.get().hasOneUse())
      return {};
    // (x + b) * s = x * s + b * s
    if (auto add = x.as<AddOp>()) {
      Term y = x.with(add.getLhs()), b = x.with(add.getRhs());
      if (weightsOnly(y.get()))
        std::swap(y, b);
      if (!weightsOnly(b.get()) || y.get().getType() != x.get().getType())
        return {};
      Term scaled = scale(y, s, result);
      return scaled ? scaled + b * s : Term();
    }
    auto op = x.get().getDefiningOp<GraphOpInterface>();
    std::optional<Columns> columns = op ? op.getScaledColumns() : std::nullopt;
    if (!columns || !weightsOnly(op->getOperand(columns->operand)))
      return {};
    Term weights = x.with(op->getOperand(columns->operand));
    std::optional<Exprs> shape = scaleShape(s, x, weights, *columns);
    if (!shape)
      return {};
    Term fitted = s.make<ReshapeOp>(makeType(*shape, s.element()), s.get());
    Term scaled = weights * fitted;
    if (scaled.get().getType() != weights.get().getType())
      return {};
    OpBuilder builder(op);
    builder.setInsertionPointAfterValue(scaled.get());
    Operation *copy = builder.clone(*op);
    copy->setOperand(columns->operand, scaled.get());
    return x.with(copy->getResult(0));
  }

  /// The shape under which s, which broadcasts to the result and varies along
  /// its columns at most, multiplies the weights.
  static std::optional<Exprs> scaleShape(Term s, Term x, Term weights,
                                         const Columns &columns) {
    Exprs from = getShape(s.get()), to = getShape(x.get());
    if (from.size() > to.size())
      return std::nullopt;
    AffineExpr one = getAffineConstantExpr(1, s.get().getContext());
    Exprs shape(getShape(weights.get()).size(), one);
    for (auto [i, extent] : llvm::enumerate(from)) {
      size_t dim = to.size() - from.size() + i;
      if (dim == columns.resultDim && extent == to[dim])
        shape[columns.operandDim] = extent;
      else if (extent != one)
        return std::nullopt;
    }
    return shape;
  }

  /// (x + b) + c = x + (b + c), where the sum of weights is no larger than they
  /// are.
  Term shift(Term x, Term c) {
    auto add = x.as<AddOp>();
    if (!add || !x.get().hasOneUse())
      return {};
    Term y = x.with(add.getLhs()), b = x.with(add.getRhs());
    if (weightsOnly(y.get()))
      std::swap(y, b);
    if (!weightsOnly(b.get()))
      return {};
    auto elements = [](Term t) {
      return cast<RankedTensorType>(t.get().getType()).getNumElements();
    };
    auto joined = broadcastShapes(getShape(b.get()), getShape(c.get()));
    auto count = joined ? constantOf(numElements(*joined, x.get().getContext()))
                        : std::nullopt;
    if (!count || *count > std::max(elements(b), elements(c)))
      return {};
    return y + (b + c);
  }

  WeightsOnly weightsOnly;
};

} // namespace
