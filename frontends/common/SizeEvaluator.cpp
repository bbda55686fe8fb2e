#include "frontends/common/SizeEvaluator.h"
#include "frontends/common/SizeAlgebra.h"
#include "graph/ir/Dialect.h"
#include "graph/ir/Exact.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Operation;
using mlir::Value;

/// Tensors that hold sizes are short.
constexpr int64_t maxElements = 64;
const SizeElements *SizeEvaluator::evaluate(Value value) {
  // Post order over an explicit stack: a model may chain any number of nodes.
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value v = stack.back();
    if (memo.contains(v)) {
      stack.pop_back();
      continue;
    }
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(v.getType());
    if (!type || !type.hasStaticShape() ||
        type.getNumElements() > maxElements) {
      memo[v] = {};
      continue;
    }
    SizeElements elements = leaf(v);
    Operation *op = v.getDefiningOp();
    if (elements.empty() &&
        llvm::isa_and_present<graph::GraphOpInterface>(op)) {
      bool ready = true;
      for (Value operand : op->getOperands())
        if (!memo.contains(operand)) {
          stack.push_back(operand);
          ready = false;
        }
      if (!ready)
        continue;
      elements = compute(v);
      if (static_cast<int64_t>(elements.size()) != type.getNumElements())
        elements.clear();
    }
    memo[v] = std::move(elements);
  }
  SizeElements &found = memo[value];
  for (SizeElement &element : found)
    element.size = symbols.resolve(element.size);
  return found.empty() ? nullptr : &found;
}

/// What is known without this; empty where anything is open.
SizeElements SizeEvaluator::leaf(Value value) {
  SizeElements elements;
  if (Value copy = copyOf(value))
    if (const SizeElements *found = evaluate(copy))
      return *found;
  mlir::Type type = mlir::getElementTypeOrSelf(value.getType());
  if (type.isIntOrIndex()) {
    graph::SymbolicTensor contents = known(value);
    if (contents.isComplete())
      for (AffineExpr size : *contents.elements)
        elements.push_back(SizeElement::ofSize(size));
    return elements;
  }
  auto constant = constantOf(value);
  if (constant && isSizeFloat(type))
    for (mlir::FloatAttr number : constant.getValues<mlir::FloatAttr>())
      elements.push_back(SizeElement::ofNumber(number.getValueAsDouble()));
  return elements;
}

/// By result element, the element of an operand that broadcasts to it.
static int64_t broadcastIndex(int64_t linear, llvm::ArrayRef<int64_t> result,
                              llvm::ArrayRef<int64_t> operand) {
  int64_t index = 0, stride = 1;
  for (size_t i = 0; i < operand.size(); ++i) {
    int64_t extent = result[result.size() - 1 - i];
    int64_t own = operand[operand.size() - 1 - i];
    index += (own == 1 ? 0 : linear % extent) * stride;
    linear /= extent;
    stride *= own;
  }
  return index;
}

SizeElements SizeEvaluator::compute(Value value) {
  Operation *op = value.getDefiningOp();
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  if (auto reduce = llvm::dyn_cast<graph::ReduceOp>(op))
    return reduced(reduce);
  if (llvm::cast<graph::GraphOpInterface>(op).getRole() !=
      graph::OpRole::Pointwise)
    return moved(op);
  SizeElements elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    SmallVector<SizeElement> x;
    for (Value operand : op->getOperands()) {
      const SizeElements &all = memo[operand];
      auto shape = llvm::cast<mlir::RankedTensorType>(operand.getType());
      x.push_back(
          all.empty()
              ? SizeElement()
              : all[broadcastIndex(i, type.getShape(), shape.getShape())]);
    }
    elements.push_back(arithmetic(op, x));
  }
  return elements;
}

/// What moves elements, or combines integers, goes by the operator's own rule:
/// stand-ins take the elements' places.
SizeElements SizeEvaluator::moved(Operation *op) {
  constexpr unsigned firstStandIn = 1u << 24;
  mlir::MLIRContext *context = op->getContext();
  SmallVector<SizeElement> all;
  SmallVector<graph::SymbolicTensor> operands;
  for (Value operand : op->getOperands()) {
    graph::SymbolicTensor tensor;
    bool isInteger =
        mlir::getElementTypeOrSelf(operand.getType()).isIntOrIndex();
    if (isInteger)
      tensor = known(operand);
    if (!tensor.isComplete()) {
      tensor.elements.reset();
      for (const SizeElement &element : memo[operand]) {
        if (!tensor.elements)
          tensor.elements.emplace();
        tensor.elements->push_back(
            element.isKnown()
                ? mlir::getAffineSymbolExpr(firstStandIn + all.size(), context)
                : AffineExpr());
        all.push_back(element);
      }
    }
    operands.push_back(std::move(tensor));
  }
  SizeElements elements;
  graph::SymbolicTensor result =
      llvm::cast<graph::GraphOpInterface>(op).evaluateSymbolic(operands);
  for (AffineExpr expr :
       result ? *result.elements : SmallVector<AffineExpr>()) {
    auto standIn = llvm::dyn_cast_if_present<mlir::AffineSymbolExpr>(expr);
    if (standIn && standIn.getPosition() >= firstStandIn) {
      elements.push_back(all[standIn.getPosition() - firstStandIn]);
      continue;
    }
    llvm::DenseMap<AffineExpr, AffineExpr> sizes;
    bool isSize = static_cast<bool>(expr);
    if (expr)
      expr.walk([&](AffineExpr e) {
        auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e);
        if (!symbol || symbol.getPosition() < firstStandIn)
          return;
        AffineExpr size = all[symbol.getPosition() - firstStandIn].size;
        isSize &= static_cast<bool>(size);
        sizes[e] = size;
      });
    elements.push_back(
        isSize ? SizeElement::ofSize(graph::simplify(expr.replace(sizes)))
               : SizeElement());
  }
  return elements;
}

/// What combines the elements along some dimensions, in their order.
SizeElements SizeEvaluator::reduced(graph::ReduceOp op) {
  auto from = llvm::cast<mlir::RankedTensorType>(op.getInput().getType()),
       to = llvm::cast<mlir::RankedTensorType>(op.getType());
  const SizeElements &all = memo[op.getInput()];
  SizeElements elements(to.getNumElements());
  SmallVector<int64_t> counts(elements.size());
  for (auto [i, element] : llvm::enumerate(all)) {
    int64_t target = 0, rest = i, stride = 1;
    for (int64_t d = from.getRank() - 1; d >= 0; --d) {
      int64_t at = rest % from.getDimSize(d);
      rest /= from.getDimSize(d);
      if (llvm::is_contained(op.getAxes(), d))
        continue;
      target += at * stride;
      stride *= from.getDimSize(d);
    }
    SizeElement &sum = elements[target];
    if (counts[target]++ == 0)
      sum = element;
    else
      sum = combine(op.getKind(), {sum, element}, to.getElementType());
    // The order in which more than two floats are added is nobody's promise.
    bool isOrdered = op.getKind() == graph::ReduceKind::sum ||
                     op.getKind() == graph::ReduceKind::prod;
    if (isOrdered && counts[target] > 2 && !sum.size && !sum.numerator)
      sum = {};
  }
  return elements;
}

bool SizeEvaluator::fits(AffineExpr size, mlir::Type type) const {
  auto integer = llvm::dyn_cast<mlir::IntegerType>(type);
  if (!integer || integer.getWidth() == 1)
    return true;
  if (graph::hasHugeFactor(size))
    return false;
  bool isWide = integer.getWidth() >= 32;
  if (isWide && !integer.isUnsigned())
    return true;
  graph::Interval range = symbols.bounds(size);
  return isWide ? range.low >= 0 : graph::holds(integer, range);
}

SizeElement SizeEvaluator::integers(Operation *op,
                                    llvm::ArrayRef<SizeElement> x) {
  SmallVector<AffineExpr> sizes;
  for (const SizeElement &element : x)
    sizes.push_back(symbols.resolve(element.size));
  SizeAlgebra algebra(symbols);
  AffineExpr size =
      llvm::cast<graph::GraphOpInterface>(op).evaluateInteger(algebra, sizes);
  if (size)
    size = graph::simplify(size);
  // What is too long to go on with becomes a symbol.
  if (size && effort.isTooMuch(size) && !llvm::is_contained(sizes, size))
    size = algebra.named(size);
  // What does not fit wraps, and is no size of ours.
  mlir::Type type = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  return size && fits(size, type) ? SizeElement::ofSize(size) : SizeElement();
}

SizeElement SizeEvaluator::arithmetic(Operation *op,
                                      llvm::ArrayRef<SizeElement> x) {
  mlir::Type type = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  mlir::Type from = mlir::getElementTypeOrSelf(op->getOperand(0).getType());
  if (llvm::isa<graph::SelectOp>(op))
    return chosen(x, type);
  // What one operand settles.
  if (llvm::isa<graph::AndOp, graph::OrOp>(op) && type.isInteger(1))
    for (const SizeElement &element : x)
      if (auto value =
              element.size ? graph::constantOf(element.size) : std::nullopt;
          value && (*value != 0) == llvm::isa<graph::OrOp>(op))
        return element;
  for (const SizeElement &element : x)
    if (!element.isKnown())
      return {};
  if (llvm::isa<graph::CastOp>(op))
    return castTo(from, type, x[0]);
  if (auto compare = llvm::dyn_cast<graph::CompareOp>(op))
    return compared(compare.getPredicate(), x[0], x[1], from);
  if (type.isIntOrIndex() && from.isIntOrIndex())
    return integers(op, x);
  return isSizeFloat(type) && from == type ? floats(op, x) : SizeElement();
}
