#include "graph/passes/Expression.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia::graph;

std::optional<double> charonia::graph::splatOf(Value value) {
  // Views of equal elements are equal elements.
  while (auto op = value.getDefiningOp<GraphOpInterface>()) {
    if (op.getRole() != OpRole::View)
      break;
    value = op->getOperand(0);
  }
  DenseElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat())
    return std::nullopt;
  Type element = constant.getElementType();
  if (isa<FloatType>(element)) {
    APFloat number = constant.getSplatValue<APFloat>();
    bool inexact;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &inexact);
    return number.convertToDouble();
  }
  if (!element.isIntOrIndex())
    return std::nullopt;
  APInt number = constant.getSplatValue<APInt>();
  bool isUnsigned = element.isInteger(1) || element.isUnsignedInteger();
  constexpr unsigned exact = 53;
  if (isUnsigned ? number.getActiveBits() > exact
                 : number.getSignificantBits() > exact)
    return std::nullopt;
  return isUnsigned ? double(number.getZExtValue())
                    : double(number.getSExtValue());
}

Value charonia::graph::scalarConstant(OpBuilder &builder, Location location,
                                      Type element, double value) {
  auto type = RankedTensorType::get({}, element);
  Attribute attribute;
  if (auto real = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool inexact;
    number.convert(real.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &inexact);
    attribute = FloatAttr::get(real, number);
  } else {
    unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
    attribute = IntegerAttr::get(
        element, APInt(64, static_cast<int64_t>(value), true).trunc(bits));
  }
  return ConstantOp::create(builder, location,
                            DenseElementsAttr::get(type, attribute));
}

Term Term::under(GraphOpInterface view) const {
  IRMapping mapping;
  mapping.map(view->getOperand(0), value);
  Value copy = builder->clone(*view, mapping)->getResult(0);
  copy.setType(withElement(copy.getType(), element()));
  return with(copy);
}

Value charonia::graph::zeroPadded(OpBuilder &builder, Location location,
                                  Value value, ArrayRef<AffineExpr> shape,
                                  ArrayRef<int64_t> lows) {
  Type element = getElementTypeOrSelf(value);
  SmallVector<AffineExpr> starts;
  for (int64_t low : lows)
    starts.push_back(builder.getAffineConstantExpr(low));
  Value zero = scalarConstant(builder, location, element, 0);
  return PadOp::create(builder, location, makeType(shape, element),
                       PadMode::constant, value, zero,
                       AffineMap::get(0, 0, starts, builder.getContext()));
}

void charonia::graph::hoist(Value value, Operation *before) {
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(before))
    return;
  for (Value operand : op->getOperands())
    hoist(operand, before);
  op->moveBefore(before);
}

void charonia::graph::eraseDead(Operation *root) {
  // Users come after what they use, so one sweep from the end is enough.
  root->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op != root && isOpTriviallyDead(op))
      op->erase();
  });
}

Value charonia::graph::broadcastTo(OpBuilder &builder, Location location,
                                   Value value, Type type) {
  if (value.getType() == type)
    return value;
  auto joined = broadcastShapes(getShape(value), getShape(type));
  if (getElementTypeOrSelf(value) != getElementTypeOrSelf(type) || !joined ||
      *joined != getShape(type))
    return {};
  return BroadcastOp::create(builder, location, type, value);
}
