#include "frontends/common/Steps.h"

using namespace charonia;
using namespace charonia::frontend;

std::optional<int64_t> charonia::frontend::knownInteger(mlir::Value value,
                                                        Emitter &e) {
  if (!value)
    return std::nullopt;
  if (auto known = e.evaluate(value).constants())
    return known->size() == 1 ? std::optional(known->front()) : std::nullopt;
  auto constant = e.constantOf(value);
  mlir::Type element = constant ? constant.getElementType() : mlir::Type();
  if (!constant || constant.getNumElements() != 1 || !element.isInteger())
    return std::nullopt;
  llvm::APInt number = *constant.value_begin<llvm::APInt>();
  return element.isInteger(1) ? int64_t(number.getZExtValue())
                              : number.getSExtValue();
}

constexpr int maxDepth = 16;

/// The number itself, or what an integer is at most or at least.
static std::optional<int64_t> extreme(mlir::Value value, bool largest,
                                      Emitter &e, int depth = 0) {
  if (depth > maxDepth || !value || !elementOf(value).isSignlessInteger())
    return std::nullopt;
  if (auto known = knownInteger(value, e))
    return known;
  mlir::Operation *op = value.getDefiningOp();
  if (llvm::isa_and_present<graph::ReshapeOp, graph::BroadcastOp>(op))
    return extreme(op->getOperand(0), largest, e, depth + 1);
  bool isMin = llvm::isa_and_present<graph::MinOp>(op);
  if (!isMin && !llvm::isa_and_present<graph::MaxOp>(op))
    return std::nullopt;
  auto a = extreme(op->getOperand(0), largest, e, depth + 1),
       b = extreme(op->getOperand(1), largest, e, depth + 1);
  // The least of two is at most either of them.
  if (isMin == largest && (!a || !b))
    return a ? a : b;
  if (!a || !b)
    return std::nullopt;
  return isMin ? std::min(*a, *b) : std::max(*a, *b);
}

static StepBound boundOf(mlir::Value condition, Emitter &e, int depth) {
  if (depth > maxDepth || !condition)
    return {};
  if (auto known = knownInteger(condition, e))
    return {*known == 0, true};
  mlir::Operation *op = condition.getDefiningOp();
  if (llvm::isa_and_present<graph::ReshapeOp, graph::BroadcastOp>(op))
    return boundOf(op->getOperand(0), e, depth + 1);
  auto both = [&](mlir::Value left, mlir::Value right) -> StepBound {
    StepBound a = boundOf(left, e, depth + 1), b = boundOf(right, e, depth + 1);
    return {a.isFalse || b.isFalse, a.isBounded || b.isBounded};
  };
  if (llvm::isa_and_present<graph::AndOp>(op))
    return both(op->getOperand(0), op->getOperand(1));
  if (llvm::isa_and_present<graph::SelectOp>(op) &&
      knownInteger(op->getOperand(2), e) == 0)
    return both(op->getOperand(0), op->getOperand(1));
  auto compare = llvm::dyn_cast_or_null<graph::CompareOp>(op);
  if (!compare)
    return {};
  mlir::Value less = compare.getLhs(), more = compare.getRhs();
  graph::Predicate predicate = compare.getPredicate();
  if (predicate == graph::Predicate::gt || predicate == graph::Predicate::ge)
    std::swap(less, more);
  else if (predicate != graph::Predicate::lt &&
           predicate != graph::Predicate::le)
    return {};
  auto low = extreme(less, false, e), high = extreme(more, true, e);
  if (!low || !high)
    return {};
  bool isStrict =
      predicate == graph::Predicate::lt || predicate == graph::Predicate::gt;
  return {isStrict ? *low >= *high : *low > *high, true};
}

StepBound charonia::frontend::boundOf(mlir::Value condition, Emitter &e) {
  return ::boundOf(condition, e, 0);
}

std::set<std::string> charonia::frontend::openSizesBehind(mlir::Value value,
                                                          Emitter &e) {
  std::set<std::string> names;
  std::vector<mlir::Value> todo = {value};
  constexpr size_t maxValues = 64;
  for (size_t i = 0; i < todo.size() && todo.size() < maxValues; ++i) {
    auto known = todo[i] ? e.evaluate(todo[i]) : graph::SymbolicTensor();
    for (mlir::AffineExpr element : known ? *known.elements : graph::Exprs())
      if (element)
        element.walk([&](mlir::AffineExpr part) {
          if (llvm::isa<mlir::AffineSymbolExpr>(part))
            names.insert(e.getSymbols().toString(part));
        });
    // Behind what follows from sizes are others that it does not name.
    if (todo[i] && todo[i].getDefiningOp() && !known.isComplete())
      llvm::append_range(todo, todo[i].getDefiningOp()->getOperands());
  }
  return names;
}
