#include "frontends/common/builders/Matrix.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::Value;

Matrices::Matrices(Value left, Value right, Emitter &e)
    : lhs(left), rhs(right) {
  if (!lhs || !rhs)
    return;
  isRow = rankOf(lhs) == 1;
  isColumn = rankOf(rhs) == 1;
  if (isRow)
    lhs = e.reshape(lhs, {e.number(1), graph::getShape(lhs)[0]});
  if (isColumn)
    rhs = e.reshape(rhs, {graph::getShape(rhs)[0], e.number(1)});
}

Value Matrices::dropFrom(Value product, Emitter &e) const {
  if (!product || (!isRow && !isColumn))
    return product;
  Exprs shape = graph::getShape(product);
  if (isColumn)
    shape.pop_back();
  if (isRow)
    shape.erase(isColumn ? shape.end() - 1 : shape.end() - 2);
  return e.reshape(product, shape);
}

Value charonia::frontend::buildProduct(Value lhs, Value rhs, Emitter &e) {
  if (!lhs || !rhs)
    return {};
  Matrices matrices(lhs, rhs, e);
  return matrices.dropFrom(e.op<graph::MatmulOp>({matrices.lhs, matrices.rhs}),
                           e);
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
