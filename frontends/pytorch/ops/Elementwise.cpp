// Elementwise arithmetic of several operands, comparisons and choices.
#include "frontends/common/builders/Special.h"
#include "frontends/pytorch/ops/Complex.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;
using llvm::LogicalResult;
using mlir::Value;

static bool isBool(mlir::Type type) { return type && type.isInteger(1); }

/// The result of arithmetic in another type than it is stored in.
static LogicalResult yieldAs(Call &c, Value y) {
  return c.yield(c.getEmitter().cast(y, c.resultElement()));
}

/// The type that sums and products of half types are computed in.
static mlir::Type exactType(Call &c) {
  mlir::Type element = c.arithmeticType({"self", "other"});
  return c.exactType(element, {"self", "other", "alpha"});
}
template <typename Op> static LogicalResult binary(Call &c) {
  mlir::Type element = c.arithmeticType({"self", "other"});
  return yieldAs(c, c.getEmitter().op<Op>({c.operand("self", element),
                                           c.operand("other", element)}));
}

/// `name` times `factor`, where that is given.
static Value scaled(Call &c, llvm::StringRef name, llvm::StringRef factor,
                    mlir::Type element) {
  Value x = c.operand(name, element);
  const Argument *given = c.find(factor);
  bool isOne =
      !given ||
      (given->kind == Argument::Kind::Integer && given->integer == 1) ||
      (given->kind == Argument::Kind::Float && given->number == 1);
  return isOne ? x : c.getEmitter().mul(x, c.operand(factor, element));
}
static LogicalResult add(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = exactType(c);
  Value a = c.operand("self", element),
        b = scaled(c, "other", "alpha", element);
  return yieldAs(c, isBool(element) ? e.op<graph::OrOp>({a, b}) : e.add(a, b));
}
static LogicalResult sub(Call &c) {
  mlir::Type element = exactType(c);
  return yieldAs(c, c.getEmitter().sub(c.operand("self", element),
                                       scaled(c, "other", "alpha", element)));
}
static LogicalResult rsub(Call &c) {
  mlir::Type element = exactType(c);
  return yieldAs(c, c.getEmitter().sub(c.operand("other", element),
                                       scaled(c, "self", "alpha", element)));
}
static LogicalResult mul(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = exactType(c);
  Value a = c.operand("self", element), b = c.operand("other", element);
  return yieldAs(c, isBool(element) ? e.op<graph::AndOp>({a, b}) : e.mul(a, b));
}

/// Whether one is negative and the other is not.
static Value differInSign(Value a, Value b, Emitter &e) {
  Value zero = e.scalar(int64_t(0), elementOf(a));
  return e.op<graph::XorOp>(
      {e.compare(Predicate::lt, a, zero), e.compare(Predicate::lt, b, zero)});
}
/// a / b rounded down. Of floats it is what is left without the remainder,
/// which is not always the quotient rounded down: 1 / 0.1 is 9 and a remainder.
static Value floorDivide(Value a, Value b, Emitter &e) {
  if (!a || !b)
    return {};
  mlir::Type element = elementOf(a);
  auto number = [&](double value) { return e.scalar(value, element); };
  Value rest = e.op<graph::FmodOp>({a, b});
  Value goesOn = e.op<graph::AndOp>(
      {e.compare(Predicate::ne, rest, number(0)), differInSign(rest, b, e)});
  if (!isFloat(a))
    return element.isUnsignedInteger()
               ? e.div(a, b)
               : e.sub(e.div(a, b), e.cast(goesOn, element));
  Value quotient = e.div(e.sub(a, rest), b);
  quotient = e.select(goesOn, e.sub(quotient, number(1)), quotient);
  Value down = e.op<graph::FloorOp>({quotient});
  Value isFar = e.compare(Predicate::gt, e.sub(quotient, down), number(0.5));
  down = e.select(isFar, e.add(down, number(1)), down);
  // Zeros have the sign of the quotient; by zero it is what it is.
  Value plain = e.div(a, b);
  down = e.select(e.compare(Predicate::eq, quotient, number(0)),
                  e.mul(plain, number(0)), down);
  return e.select(e.compare(Predicate::eq, b, number(0)), plain, down);
}
static Value truncated(Value x, Emitter &e) {
  if (!isFloat(x))
    return x;
  Value isNegative = e.compare(Predicate::lt, x, e.scalar(0.0, elementOf(x)));
  return e.select(isNegative, e.op<graph::CeilOp>({x}),
                  e.op<graph::FloorOp>({x}));
}
static LogicalResult div(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = exactType(c);
  Value a = c.operand("self", element), b = c.operand("other", element);
  std::string mode = c.text("rounding_mode", "");
  if (mode.empty() || mode == "floor" || mode == "trunc") {
    Value quotient = mode == "floor" ? floorDivide(a, b, e) : e.div(a, b);
    return yieldAs(c, mode == "trunc" ? truncated(quotient, e) : quotient);
  }
  return c.fail("rounding mode '" + mode + "' is not supported");
}
static LogicalResult floorDiv(Call &c) {
  mlir::Type element = exactType(c);
  return yieldAs(c, floorDivide(c.operand("self", element),
                                c.operand("other", element), c.getEmitter()));
}
static LogicalResult trunc(Call &c) {
  return c.yield(
      truncated(c.operand("self", c.resultElement()), c.getEmitter()));
}

/// Small whole powers are products, as exporters of other formats write them.
static LogicalResult pow(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.arithmeticType({"self", "exponent"});
  Value base = c.operand("self", element);
  const Argument *exponent = c.find("exponent");
  bool isNumber = exponent && exponent->kind != Argument::Kind::Tensor &&
                  exponent->kind != Argument::Kind::SymInt;
  double power = isNumber ? c.number("exponent") : 0;
  if (isNumber && power == 1)
    return yieldAs(c, base);
  if (isNumber && power == 2)
    return yieldAs(c, e.mul(base, base));
  if (isNumber && power == 0.5 && isFloat(base))
    return yieldAs(c, e.op<graph::SqrtOp>({base}));
  return yieldAs(c, e.op<graph::PowOp>({base, c.operand("exponent", element)}));
}
template <Predicate predicate> static LogicalResult compare(Call &c) {
  mlir::Type element = c.promote({"self", "other"});
  return c.yield(c.getEmitter().compare(predicate, c.operand("self", element),
                                        c.operand("other", element)));
}
/// Logical operators ask whether a number is not 0.
template <typename Op> static LogicalResult logical(Call &c) {
  mlir::Type i1 = c.getEmitter().getBuilder().getI1Type();
  return c.yield(
      c.getEmitter().op<Op>({c.operand("self", i1), c.operand("other", i1)}));
}
static LogicalResult where(Call &c) {
  mlir::Type element = c.resultElement();
  Emitter &e = c.getEmitter();
  Value condition = e.cast(c.tensor("condition"), e.getBuilder().getI1Type());
  return c.yield(e.select(condition, c.operand("self", element),
                          c.operand("other", element)));
}
static LogicalResult maskedFill(Call &c) {
  mlir::Type element = c.resultElement();
  return c.yield(c.getEmitter().select(c.tensor("mask"),
                                       c.operand("value", element),
                                       c.operand("self", element)));
}

static LogicalResult clamp(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.arithmeticType({"self", "min", "max"});
  Value x = c.operand("self", element);
  if (c.has("min"))
    x = e.max(x, c.operand("min", element));
  if (c.has("max"))
    x = e.min(x, c.operand("max", element));
  return yieldAs(c, x);
}

/// self + value * tensor1 * tensor2, or / tensor2.
template <bool divide> static LogicalResult addProduct(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element =
      c.exactType(c.arithmeticType({"self", "tensor1", "tensor2"}), {"value"});
  Value a = scaled(c, "tensor1", "value", element),
        b = c.operand("tensor2", element);
  return yieldAs(
      c, e.add(c.operand("self", element), divide ? e.div(a, b) : e.mul(a, b)));
}
/// self + weight * (end - self).
/// From the nearer end, so that either is reached.
static LogicalResult lerp(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.exactType(c.resultElement(), {"weight"});
  Value a = c.operand("self", element), b = c.operand("end", element);
  Value weight = c.operand("weight", element), way = e.sub(b, a);
  Value isFar = e.compare(Predicate::ge, e.op<graph::AbsOp>({weight}),
                          e.scalar(0.5, element));
  Value rest = e.sub(e.scalar(1.0, element), weight);
  return yieldAs(c, e.select(isFar, e.sub(b, e.mul(way, rest)),
                             e.add(a, e.mul(weight, way))));
}

static LogicalResult atan2(Call &c) {
  mlir::Type element = c.resultElement();
  return c.yield(buildAtan2(c.operand("self", element),
                            c.operand("other", element), c.getEmitter()));
}
llvm::ArrayRef<Row> charonia::frontend::pytorch::elementwiseRows() {
  using namespace graph;
  static const Row rows[] = {
      {"aten.atan2.default", atan2},
      {"aten.trunc.default", trunc},
      {"aten.arctan2.default", atan2},
      {"aten.fix.default", trunc},
      {"aten.add.Tensor", {add, complexAdd}},
      {"aten.add.Scalar", {add, complexAdd}},
      {"aten.sub.Tensor", {sub, complexSub}},
      {"aten.subtract.Tensor", {sub, complexSub}},
      {"aten.sub.Scalar", {sub, complexSub}},
      {"aten.subtract.Scalar", {sub, complexSub}},
      {"aten.rsub.Tensor", {rsub, complexRsub}},
      {"aten.rsub.Scalar", {rsub, complexRsub}},
      {"aten.mul.Tensor", {mul, complexMul}},
      {"aten.multiply.Tensor", {mul, complexMul}},
      {"aten.mul.Scalar", {mul, complexMul}},
      {"aten.multiply.Scalar", {mul, complexMul}},
      {"aten.div.Tensor", {div, complexDiv}},
      {"aten.divide.Tensor", {div, complexDiv}},
      {"aten.div.Scalar", {div, complexDiv}},
      {"aten.divide.Scalar", {div, complexDiv}},
      {"aten.div.Tensor_mode", div},
      {"aten.divide.Tensor_mode", div},
      {"aten.true_divide.Tensor", {div, complexDiv}},
      {"aten.true_divide.Scalar", {div, complexDiv}},
      {"aten.div.Scalar_mode", div},
      {"aten.floor_divide.default", floorDiv},
      {"aten.floor_divide.Scalar", floorDiv},
      {"aten.remainder.Tensor", binary<ModOp>},
      {"aten.remainder.Scalar", binary<ModOp>},
      {"aten.fmod.Tensor", binary<FmodOp>},
      {"aten.fmod.Scalar", binary<FmodOp>},
      {"aten.pow.Tensor_Tensor", {pow, complexPow}},
      {"aten.pow.Tensor_Scalar", {pow, complexPow}},
      {"aten.pow.Scalar", {pow, complexPow}},
      {"aten.maximum.default", binary<MaxOp>},
      {"aten.minimum.default", binary<MinOp>},
      {"aten.max.other", binary<MaxOp>},
      {"aten.min.other", binary<MinOp>},
      {"aten.bitwise_and.Tensor", binary<AndOp>},
      {"aten.bitwise_and.Scalar", binary<AndOp>},
      {"aten.bitwise_or.Tensor", binary<OrOp>},
      {"aten.bitwise_or.Scalar", binary<OrOp>},
      {"aten.bitwise_xor.Tensor", binary<XorOp>},
      {"aten.bitwise_xor.Scalar", binary<XorOp>},
      {"aten.__and__.Tensor", binary<AndOp>},
      {"aten.__and__.Scalar", binary<AndOp>},
      {"aten.__or__.Tensor", binary<OrOp>},
      {"aten.__or__.Scalar", binary<OrOp>},
      {"aten.__xor__.Tensor", binary<XorOp>},
      {"aten.__xor__.Scalar", binary<XorOp>},
      {"aten.__lshift__.Tensor", binary<ShlOp>},
      {"aten.__lshift__.Scalar", binary<ShlOp>},
      {"aten.__rshift__.Tensor", binary<ShrOp>},
      {"aten.__rshift__.Scalar", binary<ShrOp>},
      {"aten.bitwise_left_shift.Tensor", binary<ShlOp>},
      {"aten.bitwise_left_shift.Tensor_Scalar", binary<ShlOp>},
      {"aten.bitwise_left_shift.Scalar_Tensor", binary<ShlOp>},
      {"aten.bitwise_right_shift.Scalar_Tensor", binary<ShrOp>},
      {"aten.bitwise_right_shift.Tensor", binary<ShrOp>},
      {"aten.bitwise_right_shift.Tensor_Scalar", binary<ShrOp>},
      {"aten.logical_and.default", logical<AndOp>},
      {"aten.logical_or.default", logical<OrOp>},
      {"aten.logical_xor.default", logical<XorOp>},
      {"aten.eq.Tensor", {compare<Predicate::eq>, complexEqual}},
      {"aten.eq.Scalar", {compare<Predicate::eq>, complexEqual}},
      {"aten.ne.Tensor", {compare<Predicate::ne>, complexNotEqual}},
      {"aten.not_equal.Tensor", {compare<Predicate::ne>, complexNotEqual}},
      {"aten.ne.Scalar", {compare<Predicate::ne>, complexNotEqual}},
      {"aten.not_equal.Scalar", {compare<Predicate::ne>, complexNotEqual}},
      {"aten.lt.Tensor", compare<Predicate::lt>},
      {"aten.less.Tensor", compare<Predicate::lt>},
      {"aten.lt.Scalar", compare<Predicate::lt>},
      {"aten.less.Scalar", compare<Predicate::lt>},
      {"aten.le.Tensor", compare<Predicate::le>},
      {"aten.less_equal.Tensor", compare<Predicate::le>},
      {"aten.le.Scalar", compare<Predicate::le>},
      {"aten.less_equal.Scalar", compare<Predicate::le>},
      {"aten.gt.Tensor", compare<Predicate::gt>},
      {"aten.greater.Tensor", compare<Predicate::gt>},
      {"aten.gt.Scalar", compare<Predicate::gt>},
      {"aten.greater.Scalar", compare<Predicate::gt>},
      {"aten.ge.Tensor", compare<Predicate::ge>},
      {"aten.greater_equal.Tensor", compare<Predicate::ge>},
      {"aten.ge.Scalar", compare<Predicate::ge>},
      {"aten.greater_equal.Scalar", compare<Predicate::ge>},
      {"aten.where.self", partwise(where)},
      {"aten.where.Scalar", partwise(where)},
      {"aten.where.ScalarSelf", partwise(where)},
      {"aten.where.ScalarOther", partwise(where)},
      {"aten.masked_fill.Scalar", partwise(maskedFill)},
      {"aten.masked_fill.Tensor", partwise(maskedFill)},
      {"aten.clamp.default", clamp},
      {"aten.clip.default", clamp},
      {"aten.clip.Tensor", clamp},
      {"aten.clamp.Tensor", clamp},
      {"aten.clamp_min.default", clamp},
      {"aten.clamp_min.Tensor", clamp},
      {"aten.clamp_max.default", clamp},
      {"aten.clamp_max.Tensor", clamp},
      {"aten.addcmul.default", addProduct<false>},
      {"aten.addcdiv.default", addProduct<true>},
      {"aten.lerp.Scalar", lerp},
      {"aten.lerp.Tensor", lerp},
  };
  return rows;
}
