#include "graph/analysis/Ranges.h"

using namespace mlir;
using namespace charonia::graph;

Ranges::MaybeRange Ranges::compute(GraphOpInterface op) {
  // Sums of many terms are activations.
  if (op.getRole() == OpRole::Contraction)
    return std::nullopt;
  if (op.getRole() == OpRole::Source)
    return op.getRange({});
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
