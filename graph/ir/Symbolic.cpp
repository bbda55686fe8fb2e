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
  if (!constant || holds(integer, {*constant, *constant}))
    return element;
  if (integer.getWidth() == 1 || integer.getWidth() == 64)
    return {};
  llvm::APInt bits = llvm::APInt(64, *constant).trunc(integer.getWidth());
  return getAffineConstantExpr(
      integer.isUnsigned() ? int64_t(bits.getZExtValue()) : bits.getSExtValue(),
      element.getContext());
}

SymbolicTensor SymbolicEvaluator::evaluate(Value value) {
  auto qualifies = [&](Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    return type && type.hasStaticShape() &&
           type.getElementType().isIntOrIndex() &&
           type.getNumElements() <= maxElements &&
           isa_and_present<GraphOpInterface>(v.getDefiningOp());
  };
  // Post order over an explicit stack: a model may chain any number of nodes.
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value v = stack.back();
    if (memo.contains(v)) {
      stack.pop_back();
      continue;
    }
    if (!qualifies(v)) {
      memo[v] = {};
      stack.pop_back();
      continue;
    }
    Operation *op = v.getDefiningOp();
    bool ready = true;
    for (Value operand : op->getOperands())
      if (!memo.contains(operand)) {
        stack.push_back(operand);
        ready = false;
      }
    if (!ready)
      continue;
    SmallVector<SymbolicTensor> operands;
    for (Value operand : op->getOperands())
      operands.push_back(memo.lookup(operand));
    SymbolicTensor result =
        cast<GraphOpInterface>(op).evaluateSymbolic(operands);
    if (result && (int64_t)result.elements->size() !=
                      cast<RankedTensorType>(v.getType()).getNumElements())
      result = {};
    if (result)
      for (AffineExpr &element : *result.elements)
        element = wrapped(element, getElementTypeOrSelf(v.getType()));
    memo[v] = std::move(result);
    stack.pop_back();
  }
  return memo.lookup(value);
}
