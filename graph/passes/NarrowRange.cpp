#include "graph/passes/NarrowRange.h"
#include "graph/ir/StoredWeight.h"
#include "graph/passes/Expression.h"
#include <cmath>

using namespace mlir;

namespace charonia::graph {

static std::optional<IntegerRange> rangeOfType(Type element) {
  auto type = dyn_cast<IntegerType>(element);
  if (!type || type.getWidth() > 32)
    return std::nullopt;
  int64_t all = int64_t(1) << type.getWidth();
  if (type.isUnsignedInteger() || type.getWidth() == 1)
    return IntegerRange{0, all - 1};
  return IntegerRange{-all / 2, all / 2 - 1};
}

template <typename T> static IntegerRange boundsOf(ArrayRef<char> bytes) {
  auto values =
      ArrayRef(reinterpret_cast<const T *>(bytes.data()), bytes.size());
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

/// Of the bytes that a weight has.
static std::optional<IntegerRange> rangeOfWeight(WeightOp op) {
  Type element = op.getType().getElementType();
  const Weight *weight = storedWeight(op);
  if (!weight || !element.isInteger(8) || weight->bytes.empty())
    return std::nullopt;
  return element.isUnsignedInteger() ? boundsOf<uint8_t>(weight->bytes)
                                     : boundsOf<int8_t>(weight->bytes);
}

/// Integers that a float type has all of.
static std::optional<IntegerRange> exactIn(FloatType type) {
  unsigned digits = llvm::APFloat::semanticsPrecision(type.getFloatSemantics());
  int64_t most = int64_t(1) << std::min(digits, 32u);
  return IntegerRange{-most, most};
}

static std::optional<IntegerRange> rangeOfResult(Operation *op, int depth);

static std::optional<IntegerRange> rangeOf(Value value, int depth) {
  Type element = getElementTypeOrSelf(value);
  auto real = dyn_cast<FloatType>(element);
  std::optional<IntegerRange> all = real ? exactIn(real) : rangeOfType(element),
                              own;
  constexpr int deepest = 16;
  if (!all)
    return all;
  if (value.getDefiningOp() && depth <= deepest)
    own = rangeOfResult(value.getDefiningOp(), depth + 1);
  if (own && own->isWithin(all->low, all->high))
    return own;
  return real ? std::nullopt : all;
}

static std::optional<IntegerRange> rangeOfConstant(Value value) {
  std::optional<double> number = splatOf(value);
  constexpr double most = double(int64_t(1) << 32);
  if (!number || std::floor(*number) != *number || std::abs(*number) > most)
    return std::nullopt;
  return IntegerRange{int64_t(*number), int64_t(*number)};
}

/// x + y or x - y, of which one is a constant: of two that vary each is
/// narrower than what they make.
static std::optional<IntegerRange> rangeOfSum(Operation *op, int depth) {
  if (!rangeOfConstant(op->getOperand(0)) &&
      !rangeOfConstant(op->getOperand(1)))
    return std::nullopt;
  std::optional<IntegerRange> x = rangeOf(op->getOperand(0), depth),
                              y = rangeOf(op->getOperand(1), depth);
  if (!x || !y)
    return std::nullopt;
  if (isa<SubOp>(op))
    y = IntegerRange{-y->high, -y->low};
  return IntegerRange{x->low + y->low, x->high + y->high};
}

/// Of what an operator makes of its operands; nothing: no more than its type
/// says.
static std::optional<IntegerRange> rangeOfResult(Operation *op, int depth) {
  if (auto weight = dyn_cast<WeightOp>(op))
    return rangeOfWeight(weight);
  if (std::optional<IntegerRange> number = rangeOfConstant(op->getResult(0)))
    return number;
  if (auto cast = dyn_cast<CastOp>(op))
    return rangeOf(cast.getInput(), depth);
  if (isa<AddOp, SubOp>(op))
    return rangeOfSum(op, depth);
  // A mask leaves what it has bits for.
  if (auto mask = dyn_cast<AndOp>(op)) {
    for (Value side : {mask.getLhs(), mask.getRhs()})
      if (std::optional<IntegerRange> bits = rangeOfConstant(side);
          bits && bits->low >= 0)
        return IntegerRange{0, bits->high};
    return std::nullopt;
  }
  if (!isa<ConcatOp>(op) &&
      cast<GraphOpInterface>(op).getRole() != OpRole::View)
    return std::nullopt;
  std::optional<IntegerRange> joined;
  for (Value operand : op->getOperands()) {
    std::optional<IntegerRange> part = rangeOf(operand, depth);
    if (!part)
      return std::nullopt;
    joined = joined ? IntegerRange{std::min(joined->low, part->low),
                                   std::max(joined->high, part->high)}
                    : *part;
  }
  return joined;
}

std::optional<IntegerRange> integerRangeOf(Value value) {
  return rangeOf(value, 0);
}

} // namespace charonia::graph
