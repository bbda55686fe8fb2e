#include "graph/analysis/Ranges.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/LiftScales.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

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
    ranges.clear();
    // Products of small floats have scales of their operands behind them.
    liftScales(getOperation());
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) { ops.push_back(op); });
    for (GraphOpInterface op : ops) {
      if (op->use_empty() || op->getNumResults() != 1)
        continue;
      OpBuilder builder(op);
      at = &builder;
      Term result = fold(op);
      Value value = result ? broadcastTo(builder, op->getLoc(), result.get(),
                                         op->getResult(0).getType())
                           : Value();
      if (!value)
        continue;
      op->getResult(0).replaceAllUsesWith(value);
    }
    eraseDead(getOperation());
  }

  /// The same with what `op` scales by or adds inside of weights further up.
  Term fold(GraphOpInterface op) {
    std::optional<unsigned> operand = variableOperand(op);
    auto linear = operand ? op.getLinear(*operand) : std::nullopt;
    if (!linear)
      return {};
    Term x(op->getOperand(*operand), *at, op->getLoc());
    if (!x.isReal())
      return {};
    auto term = [&](std::optional<unsigned> i) {
      return i ? x.with(op->getOperand(*i)) : Term();
    };
    Term s = term(linear->scale);
    if (linear->divisor)
      s = reciprocal(term(linear->divisor));
    if (linear->factor != 1)
      s = s ? s * linear->factor : x.scalar(linear->factor);
    Term c = term(linear->shift);
    if (c && linear->shiftFactor != 1)
      c = linear->shiftFactor == -1 ? -c : c * linear->shiftFactor;
    if (!s)
      return c ? shift(x, c) : Term();
    Term scaled = scale(x, s);
    return scaled && c ? scaled + c : scaled;
  }

  /// The one operand that does not depend on weights alone.
  std::optional<unsigned> variableOperand(Operation *op) {
    std::optional<unsigned> found;
    for (OpOperand &operand : op->getOpOperands()) {
      if (weightsOnly(operand.get()))
        continue;
      if (found)
        return std::nullopt;
      found = operand.getOperandNumber();
    }
    return found;
  }

  /// x * s with s inside of x's weights; the empty term where it does not fit.
  Term scale(Term x, Term s, int depth = 0) {
    if (!x.get().hasOneUse() || depth > 8)
      return {};
    if (Term scaled = scaleLinear(x, s, depth))
      return scaled;
    auto op = x.get().getDefiningOp<GraphOpInterface>();
    std::optional<Columns> columns = op ? op.getScaledColumns() : std::nullopt;
    if (!columns || !weightsOnly(op->getOperand(columns->operand)))
      return {};
    Term weights = x.with(op->getOperand(columns->operand));
    // Floats of 8 bits have no room for it.
    if (weights.element() != s.element())
      return {};
    std::optional<Exprs> shape = scaleShape(s, x, weights, *columns);
    if (!shape)
      return {};
    Term fitted = s.make<ReshapeOp>(makeType(*shape, s.element()), s.get());
    Term scaled = weights * fitted;
    if (scaled.get().getType() != weights.get().getType() ||
        !isNormal(scaled, weights))
      return {};
    OpBuilder builder(op);
    builder.setInsertionPointAfterValue(scaled.get());
    Operation *copy = builder.clone(*op);
    copy->setOperand(columns->operand, scaled.get());
    return x.with(copy->getResult(0));
  }

  /// The same where x is linear in one operand: scaling that and what is added
  /// to it scales x.
  Term scaleLinear(Term x, Term s, int depth) {
    auto op = x.get().getDefiningOp<GraphOpInterface>();
    std::optional<unsigned> operand = op ? variableOperand(op) : std::nullopt;
    auto linear = operand ? op.getLinear(*operand) : std::nullopt;
    if (!linear)
      return {};
    Term y = x.with(op->getOperand(*operand)), inner = s;
    if (getShape(y.get()) != getShape(x.get()))
      return {};
    if (y.element() != s.element()) {
      if (!holds(y.element(), s.element()))
        return {};
      inner = s.make<CastOp>(s.get(), y.element());
    }
    Term shift;
    if (linear->shift) {
      Term given = x.with(op->getOperand(*linear->shift));
      shift = given * s;
      if (!isNormal(shift, given))
        return {};
    }
    Term scaled = scale(y, inner, depth + 1);
    if (!scaled)
      return {};
    IRMapping mapping;
    mapping.map(y.get(), scaled.get());
    Operation *copy = at->clone(*op, mapping);
    if (shift)
      copy->setOperand(*linear->shift, shift.get());
    copy->moveBefore(at->getBlock(), at->getInsertionPoint());
    return x.with(copy->getResult(0));
  }

  /// Whether what is made of weights is finite, and not all of it lost below
  /// the least normal number where `from` is not: the model itself multiplies
  /// something else, which may well fit.
  bool isNormal(Term made, Term from) {
    auto type = cast<FloatType>(made.element());
    const llvm::fltSemantics &kind = type.getFloatSemantics();
    double most = llvm::APFloat::getLargest(kind).convertToDouble(),
           least = llvm::APFloat::getSmallestNormalized(kind).convertToDouble();
    Ranges &known = ranges.try_emplace(type, most).first->second;
    return !known.isOutside(made.get()) &&
           (!from || !known.isBelow(made.get(), least) ||
            known.isBelow(from.get(), least));
  }

  /// Whether a float type has all values of another.
  static bool holds(Type wide, Type narrow) {
    auto to = dyn_cast<FloatType>(wide), from = dyn_cast<FloatType>(narrow);
    return to && from &&
           llvm::APFloat::isRepresentableBy(from.getFloatSemantics(),
                                            to.getFloatSemantics());
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

  /// Whether x is a product with weights, or what is linear in one, and nothing
  /// else reads anything on the way: no value of the model is there to which
  /// another rounding could be compared.
  bool isOfWeights(Term x, int depth = 0) {
    auto op = x.get().getDefiningOp<GraphOpInterface>();
    if (!op || !x.get().hasOneUse() || depth > 8)
      return false;
    if (std::optional<Columns> columns = op.getScaledColumns())
      return weightsOnly(op->getOperand(columns->operand));
    std::optional<unsigned> operand = variableOperand(op);
    return operand &&
           (op.getRole() == OpRole::View || op.getLinear(*operand)) &&
           isOfWeights(x.with(op->getOperand(*operand)), depth + 1);
  }

  /// (x + b) + c = x + (b + c), where the sum of weights is no larger than they
  /// are. Sums of other values than products with weights stay as they are.
  Term shift(Term x, Term c) {
    auto op = x.get().getDefiningOp<GraphOpInterface>();
    std::optional<unsigned> operand = op ? variableOperand(op) : std::nullopt;
    auto linear = operand ? op.getLinear(*operand) : std::nullopt;
    if (!linear || !linear->shift || !isOfWeights(x))
      return {};
    Term b = x.with(op->getOperand(*linear->shift));
    auto elements = [](Term t) {
      return cast<RankedTensorType>(t.get().getType()).getNumElements();
    };
    auto joined = broadcastShapes(getShape(b.get()), getShape(c.get()));
    auto count = joined ? constantOf(numElements(*joined, x.get().getContext()))
                        : std::nullopt;
    auto result = broadcastShapes(getShape(x.get()), getShape(c.get()));
    if (!count || !result || *count > std::max(elements(b), elements(c)))
      return {};
    // b goes in by a factor of 1 or -1.
    Term sum = linear->shiftFactor == 1 ? b + c : b - c;
    if (!isNormal(sum, {}))
      return {};
    Operation *copy = at->clone(*op);
    copy->setOperand(*linear->shift, sum.get());
    copy->getResult(0).setType(makeType(*result, x.element()));
    return x.with(copy->getResult(0));
  }

  /// Where terms are made: in front of the operator that is folded.
  OpBuilder *at = nullptr;
  WeightsOnly weightsOnly;
  llvm::MapVector<Type, Ranges> ranges;
};

} // namespace
