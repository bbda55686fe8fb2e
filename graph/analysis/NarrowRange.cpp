#include "graph/analysis/NarrowRange.h"
#include "graph/analysis/Weights.h"
#include "llvm/ADT/TypeSwitch.h"

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
  const Weight *weight =
      op->getContext()->getLoadedDialect<GraphDialect>()->getWeights().lookup(
          op.getName());
  if (!weight || !element.isInteger(8) || weight->bytes.empty())
    return std::nullopt;
  return element.isUnsignedInteger() ? boundsOf<uint8_t>(weight->bytes)
                                     : boundsOf<int8_t>(weight->bytes);
}

/// Of what an operator makes of its operands; nothing: no more than its type
/// says.
static std::optional<IntegerRange> rangeOfResult(Operation *op, int depth);

static std::optional<IntegerRange> rangeOf(Value value, int depth) {
  std::optional<IntegerRange> all = rangeOfType(getElementTypeOrSelf(value));
  constexpr int deepest = 16;
  if (!all || !value.getDefiningOp() || depth > deepest)
    return all;
  std::optional<IntegerRange> own =
      rangeOfResult(value.getDefiningOp(), depth + 1);
  return own && own->isWithin(all->low, all->high) ? own : all;
}

static std::optional<IntegerRange> rangeOfResult(Operation *op, int depth) {
  if (auto weight = dyn_cast<WeightOp>(op))
    return rangeOfWeight(weight);
  if (auto cast = dyn_cast<CastOp>(op))
    return rangeOf(cast.getInput(), depth);
  // A mask leaves what it has bits for.
  if (auto mask = dyn_cast<AndOp>(op)) {
    for (Value side : {mask.getLhs(), mask.getRhs()}) {
      std::optional<IntegerRange> bits = rangeOf(side, depth);
      if (bits && bits->low >= 0)
        return IntegerRange{0, bits->high};
    }
    return std::nullopt;
  }
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto values = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!values || !values.isSplat())
      return std::nullopt;
    auto type = cast<IntegerType>(values.getElementType());
    APInt splat = values.getSplatValue<APInt>();
    int64_t number = type.isUnsignedInteger() ? int64_t(splat.getZExtValue())
                                              : splat.getSExtValue();
    return IntegerRange{number, number};
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
