#include "graph/ops/Common.h"

using namespace mlir;
using namespace charonia::graph;

Exprs charonia::graph::coordinatesOf(Value value) {
  Exprs dims;
  for (size_t i = 0, rank = getShape(value).size(); i < rank; ++i)
    dims.push_back(getAffineDimExpr(i, value.getContext()));
  return dims;
}

SymbolicTensor charonia::graph::pick(const SymbolicTensor &operand, Type from,
                                     Type to, AffineMap map) {
  auto source = cast<RankedTensorType>(from),
       target = cast<RankedTensorType>(to);
  if (!operand || !map || !source.hasStaticShape() || !target.hasStaticShape())
    return {};
  SmallVector<AffineExpr> elements;
  bool known = true;
  forEachElement(to, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> coordinates;
    for (AffineExpr e : map.getResults()) {
      auto c = evaluate(e, at, {});
      known &= c.has_value();
      coordinates.push_back(c.value_or(0));
    }
    auto linear = linearize(coordinates, source.getShape());
    known &= linear.has_value();
    elements.push_back(linear ? (*operand.elements)[*linear] : AffineExpr());
  });
  return known ? SymbolicTensor{std::move(elements)} : SymbolicTensor{};
}

SmallVector<SymbolicTensor>
charonia::graph::broadcastOperands(GraphOpInterface op,
                                   ArrayRef<SymbolicTensor> operands) {
  SmallVector<SymbolicTensor> result;
  Value value = op->getResult(0);
  for (auto [i, operand] : llvm::enumerate(operands))
    result.push_back(pick(operand, op->getOperand(i).getType(), value.getType(),
                          op.getOperandMap(i)));
  return result;
}

bool charonia::graph::areAxes(ArrayRef<int64_t> axes, int64_t rank) {
  int64_t last = -1;
  for (int64_t axis : axes) {
    if (axis <= last || axis >= rank)
      return false;
    last = axis;
  }
  return true;
}

std::optional<SmallVector<int64_t>>
charonia::graph::windowPads(const Padding &padding, ArrayRef<int64_t> pads,
                            unsigned first) {
  unsigned spatial = pads.size() / 2;
  SmallVector<int64_t> result(pads);
  for (unsigned d = 0; d < padding.lows.size(); ++d) {
    int64_t low = padding.lows[d], high = padding.highs[d];
    if (d < first || d >= first + spatial) {
      if (low != 0 || high != 0)
        return std::nullopt;
      continue;
    }
    int64_t &before = result[d - first], &after = result[spatial + d - first];
    if (llvm::AddOverflow(before, low, before) ||
        llvm::AddOverflow(after, high, after))
      return std::nullopt;
  }
  return result;
}
