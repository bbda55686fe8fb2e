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
  // Several at a time: all weights of the model are looked at.
  constexpr size_t lanes = 16;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float low[lanes], high[lanes];
  std::fill_n(low, lanes, infinity);
  std::fill_n(high, lanes, -infinity);
  size_t count = weight->bytes.size() / sizeof(float);
  for (size_t i = 0; i < count; i += lanes) {
    float values[lanes] = {};
    size_t n = std::min(lanes, count - i);
    std::memcpy(values, weight->bytes.data() + i * sizeof(float),
                n * sizeof(float));
    std::fill(values + n, values + lanes, values[0]);
    for (size_t lane = 0; lane < lanes; ++lane) {
      // NaN is neither.
      float v = values[lane];
      low[lane] = v < low[lane] ? v : low[lane];
      high[lane] = v > high[lane] ? v : high[lane];
    }
  }
  RealRange range{*std::min_element(low, low + lanes),
                  *std::max_element(high, high + lanes)};
  return range.low <= range.high ? std::optional(range) : std::nullopt;
}

Ranges::MaybeRange Ranges::compute(GraphOpInterface op) {
  // Sums of many terms are activations.
  if (op.getRole() == OpRole::Contraction)
    return std::nullopt;
  double limit = limitOf(op);
  const RealRange inside{-limit, limit};
  bool floats = false, assumed = false, outside = false;
  SmallVector<RealRange> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    MaybeRange range;
    if (isa<FloatType>(getElementTypeOrSelf(operand.get()))) {
      range = rangeOf(operand);
      floats = true;
      assumed |= !range;
      outside |= isOutside(range, limit);
    }
    operands.push_back(range.value_or(inside));
  }
  if (assumed && !outside)
    return std::nullopt;
  MaybeRange range = operands.empty() ? std::nullopt : op.getRange(operands);
  if (!range)
    range = floats ? RealRange{} : inside;
  return assumed && !isOutside(range, limit) ? std::nullopt : range;
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
