#include "frontends/common/builders/Matrix.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::Value;

Value charonia::frontend::buildProduct(Value lhs, Value rhs, Emitter &e) {
  if (!lhs || !rhs)
    return {};
  bool lhsVector = rankOf(lhs) == 1, rhsVector = rankOf(rhs) == 1;
  Exprs lhsShape = graph::getShape(lhs), rhsShape = graph::getShape(rhs);
  if (lhsVector)
    lhs = e.reshape(lhs, {e.number(1), lhsShape[0]});
  if (rhsVector)
    rhs = e.reshape(rhs, {rhsShape[0], e.number(1)});
  Value result = e.op<graph::MatmulOp>({lhs, rhs});
  if (!result || (!lhsVector && !rhsVector))
    return result;
  Exprs shape = graph::getShape(result);
  if (rhsVector)
    shape.pop_back();
  if (lhsVector)
    shape.erase(rhsVector ? shape.end() - 1 : shape.end() - 2);
  return e.reshape(result, shape);
}

Value charonia::frontend::buildMatmul(Value lhs, Value rhs, Emitter &e) {
  Value result = buildProduct(lhs, rhs, e);
  return result ? e.cast(result, elementOf(lhs)) : result;
}

Value charonia::frontend::buildAttention(Value query, Value key, Value value,
                                         Value mask, double scale, bool causal,
                                         Emitter &e) {
  Values operands = {query, key, value};
  bool isBias = mask && llvm::isa<mlir::FloatType>(elementOf(mask));
  if (mask)
    operands.push_back(mask);
  mlir::Builder &builder = e.getBuilder();
  llvm::SmallVector<mlir::NamedAttribute> attributes = {
      e.attr("scale", scale),
      e.attr("operandSegmentSizes",
             builder.getDenseI32ArrayAttr({1, 1, 1, mask && !isBias, isBias})),
      e.attr("guard", graph::RowGuardAttr::get(builder.getContext(),
                                               graph::RowGuard::empty))};
  if (causal)
    attributes.push_back(e.unit("causal"));
  return e.op<graph::AttentionOp>(operands, attributes);
}
