#include "graph/ir/Symbolic.h"
#include "graph/ir/Dialect.h"
#include "graph/ir/Exact.h"

using namespace mlir;
using namespace charonia::graph;

bool SymbolicTensor::isComplete() const {
  return elements &&
         llvm::all_of(*elements, [](AffineExpr e) { return (bool)e; });
}

std::optional<SmallVector<int64_t>> SymbolicTensor::constants() const {
  if (!isComplete())
    return std::nullopt;
  SmallVector<int64_t> values;
  for (AffineExpr e : *elements) {
    auto constant = constantOf(e);
    if (!constant)
      return std::nullopt;
    values.push_back(*constant);
  }
  return values;
}

/// A constant as integers of `type` hold it; null where it is none of ours.
/// What is no constant is taken to fit if it may.
static AffineExpr wrapped(AffineExpr element, Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  auto constant = element && integer ? constantOf(element) : std::nullopt;
  if (element && integer && !constant && integer.getWidth() == 32) {
    Interval limits = limitsOf(integer);
    ArrayRef<AffineExpr> none;
    bool isOutside = isNonNegative(element - limits.high - 1, none) ||
                     isNonNegative(limits.low - 1 - element, none);
    return isOutside ? AffineExpr() : element;
  }
  if (element && integer && !constant && hasHugeFactor(element))
    return {};
  if (!constant || holds(integer, {*constant, *constant}))
    return element;
  if (integer.getWidth() == 1 || integer.getWidth() == 64)
    return {};
  llvm::APInt bits = llvm::APInt(64, *constant).trunc(integer.getWidth());
  return getAffineConstantExpr(
      integer.isUnsigned() ? int64_t(bits.getZExtValue()) : bits.getSExtValue(),
      element.getContext());
}

ExprEffort::Known ExprEffort::of(AffineExpr expr) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return {};
  if (auto it = memo.find(expr); it != memo.end())
    return it->second;
  Known a = of(binary.getLHS()), b = of(binary.getRHS());
  // Parts that are shared are counted each time, as they are looked at.
  Known known{a.effort + b.effort, std::max(a.nested, b.nested)};
  if (expr.getKind() == AffineExprKind::Mul)
    known.effort +=
        !constantOf(binary.getLHS()) && !constantOf(binary.getRHS());
  else if (expr.getKind() != AffineExprKind::Add)
    known.effort += ++known.nested;
  known.effort = std::min(known.effort, most + 1);
  memo[expr] = known;
  return known;
}

bool SymbolicEvaluator::qualifies(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() &&
         type.getElementType().isIntOrIndex() &&
         type.getNumElements() <= maxElements &&
         isa_and_present<GraphOpInterface>(value.getDefiningOp());
}

SymbolicTensor SymbolicEvaluator::compute(Value value) {
  Operation *op = value.getDefiningOp();
  SmallVector<SymbolicTensor> operands;
  for (Value operand : op->getOperands())
    operands.push_back(memo.lookup(operand));
  SymbolicTensor result = cast<GraphOpInterface>(op).evaluateSymbolic(operands);
  auto type = cast<RankedTensorType>(value.getType());
  if (result && (int64_t)result.elements->size() != type.getNumElements())
    return {};
  // What is moved, or is a size of a tensor, is there already.
  auto isThere = [&](AffineExpr element) {
    return cast<GraphOpInterface>(op).getRole() == OpRole::Source ||
           llvm::any_of(operands, [&](const SymbolicTensor &operand) {
             return operand && llvm::is_contained(*operand.elements, element);
           });
  };
  if (result)
    for (AffineExpr &element : *result.elements) {
      if (element && effort.isTooMuch(element) && !isThere(element))
        element = {};
      element = wrapped(element, type.getElementType());
    }
  return result;
}

SymbolicTensor SymbolicEvaluator::evaluate(Value value) {
  // Post order over an explicit stack: a model may chain any number of nodes.
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value v = stack.back();
    if (memo.contains(v)) {
      stack.pop_back();
      continue;
    }
    Value copy = copies.lookup(v);
    SmallVector<Value> needed;
    if (copy)
      needed.push_back(copy);
    else if (qualifies(v))
      llvm::append_range(needed, v.getDefiningOp()->getOperands());
    bool ready = true;
    for (Value other : needed)
      if (!memo.contains(other)) {
        stack.push_back(other);
        ready = false;
      }
    if (!ready)
      continue;
    SymbolicTensor result = copy           ? memo.lookup(copy)
                            : qualifies(v) ? compute(v)
                                           : SymbolicTensor();
    memo[v] = std::move(result);
    stack.pop_back();
  }
  return memo.lookup(value);
}
