#include "graph/analysis/Ranges.h"

using namespace mlir;
using namespace charonia::graph;

static std::optional<RealRange> rangeOfConstant(DenseFPElementsAttr values) {
  std::optional<RealRange> range;
  auto include = [&](APFloat value) {
    bool inexact;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &inexact);
    double v = value.convertToDouble();
    if (!std::isnan(v))
      range = range ? scalar::hull(*range, {v, v}) : RealRange{v, v};
  };
  if (values.isSplat())
    include(values.getSplatValue<APFloat>());
  else
    for (APFloat value : values)
      include(value);
  return range;
}

/// Weights of f32, the type that a precision replaces.
static std::optional<RealRange> rangeOfWeight(WeightOp op) {
  if (!getElementTypeOrSelf(op.getType()).isF32())
    return std::nullopt;
  auto *dialect = op->getContext()->getLoadedDialect<GraphDialect>();
  const Weight *weight = dialect->getWeights().lookup(op.getName());
  if (!weight || weight->bytes.size() < sizeof(float))
    return std::nullopt;
  RealRange none;
  float low = none.high, high = none.low;
  for (size_t i = 0, e = weight->bytes.size() / sizeof(float); i < e; ++i) {
    float v;
    std::memcpy(&v, weight->bytes.data() + i * sizeof(float), sizeof(float));
    low = std::min(low, v);
    high = std::max(high, v);
  }
  return low <= high ? std::optional(RealRange{low, high}) : std::nullopt;
}

Ranges::MaybeRange Ranges::compute(GraphOpInterface op) {
  // Sums of many terms are activations.
  if (op.getRole() == OpRole::Contraction)
    return std::nullopt;
  bool assumed = false, outside = false;
  SmallVector<RealRange> operands;
  for (Value operand : op->getOperands()) {
    MaybeRange range;
    if (isa<FloatType>(getElementTypeOrSelf(operand))) {
      range = rangeOf(operand);
      assumed |= !range;
      outside |= range && !isInside(*range);
    }
    operands.push_back(range.value_or(RealRange{-limit, limit}));
  }
  if (assumed && !outside)
    return std::nullopt;
  MaybeRange range = operands.empty() ? std::nullopt : op.getRange(operands);
  if (!range && outside)
    range = RealRange{};
  return assumed && range && isInside(*range) ? std::nullopt : range;
}

Ranges::MaybeRange Ranges::rangeOf(Value value) {
  // Operands before results, without recursion: chains are long.
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value v = work.back();
    if (known.contains(v)) {
      work.pop_back();
      continue;
    }
    auto op = v.getDefiningOp<GraphOpInterface>();
    if (!op || !isa<FloatType>(getElementTypeOrSelf(v))) {
      known[v] = std::nullopt;
      continue;
    }
    if (auto constant = dyn_cast<ConstantOp>(*op)) {
      auto values = dyn_cast<DenseFPElementsAttr>(constant.getValue());
      known[v] = values ? rangeOfConstant(values) : std::nullopt;
      continue;
    }
    if (auto weight = dyn_cast<WeightOp>(*op)) {
      known[v] = rangeOfWeight(weight);
      continue;
    }
    size_t before = work.size();
    if (op.getRole() != OpRole::Contraction)
      for (Value operand : op->getOperands())
        if (!known.contains(operand))
          work.push_back(operand);
    if (work.size() == before)
      known[v] = compute(op);
  }
  return known[value];
}

bool Ranges::isOutside(Value value) {
  MaybeRange range = rangeOf(value);
  return range && !isInside(*range);
}
