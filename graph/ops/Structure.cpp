#include "graph/ops/Common.h"

using namespace mlir;
using namespace charonia::graph;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

SymbolicTensor ConstantOp::evaluateSymbolic(ArrayRef<SymbolicTensor>) {
  auto values = dyn_cast<DenseIntElementsAttr>(getValue());
  if (!values)
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  for (const APInt &value : values) {
    bool isUnsigned =
        value.getBitWidth() == 1 || values.getElementType().isUnsignedInteger();
    if (isUnsigned ? value.getActiveBits() > 63
                   : value.getSignificantBits() > 64)
      return {};
    result.elements->push_back(getAffineConstantExpr(
        isUnsigned ? (int64_t)value.getZExtValue() : value.getSExtValue(),
        getContext()));
  }
  return result;
}

LogicalResult WeightOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError("a weight has a static shape, not ") << type;
  auto *dialect = cast<GraphDialect>((*this)->getDialect());
  if (const Weight *weight = dialect->getWeights().lookup(getName());
      weight && weight->type != type)
    return emitOpError("weight \"")
           << getName() << "\" is a " << weight->type << ", not a " << type;
  return success();
}

LogicalResult DimsOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape() || getValues().getNumDims() != 0 ||
      (int64_t)getValues().getNumResults() != type.getNumElements())
    return emitOpError("needs a static result with one expression without dims "
                       "for each element");
  return success();
}

SymbolicTensor DimsOp::evaluateSymbolic(ArrayRef<SymbolicTensor>) {
  return {SmallVector<AffineExpr>(getValues().getResults())};
}

CHARONIA_INFER(ShapeOfOp) {
  auto input = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!input)
    return emitOptionalError(location, "needs a ranked tensor");
  types.push_back(
      RankedTensorType::get({input.getRank()}, IntegerType::get(context, 64)));
  return success();
}

SymbolicTensor ShapeOfOp::evaluateSymbolic(ArrayRef<SymbolicTensor>) {
  return {SmallVector<AffineExpr>(getShape(getInput()))};
}

LogicalResult KernelOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("block arguments must have the types of the inputs");
  if (body.empty() || !isa<YieldOp>(body.back()))
    return emitOpError("must end in graph.yield");
  if (body.back().getOperandTypes() != getResultTypes())
    return emitOpError("graph.yield must have the types of the results");
  return success();
}
