// Elementwise arithmetic, comparisons and choices.
#include "frontends/pytorch/Registry.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;
using llvm::LogicalResult;
using mlir::Value;

static bool isBool(mlir::Type type) { return type && type.isInteger(1); }

/// Operands become the result's type, whatever theirs are.
template <typename Op> static LogicalResult unary(Call &c) {
  return c.yield(c.getEmitter().op<Op>({c.operand("self", c.resultElement())}));
}

template <typename Op> static LogicalResult binary(Call &c) {
  mlir::Type element = c.resultElement();
  return c.yield(c.getEmitter().op<Op>(
      {c.operand("self", element), c.operand("other", element)}));
}

/// `other` times alpha.
static Value scaledOther(Call &c, llvm::StringRef name, mlir::Type element) {
  Emitter &e = c.getEmitter();
  Value other = c.operand(name, element);
  if (!c.has("alpha"))
    return other;
  double alpha = c.number("alpha");
  return alpha == 1 ? other : e.mul(other, e.scalar(alpha, element));
}
static LogicalResult add(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.exactType(c.resultElement(), {"self", "other"});
  Value a = c.operand("self", element), b = scaledOther(c, "other", element);
  Value sum = isBool(element) ? e.op<graph::OrOp>({a, b}) : e.add(a, b);
  return c.yield(e.cast(sum, c.resultElement()));
}
static LogicalResult sub(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.exactType(c.resultElement(), {"self", "other"});
  return c.yield(e.cast(
      e.sub(c.operand("self", element), scaledOther(c, "other", element)),
      c.resultElement()));
}
static LogicalResult rsub(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value a = c.operand("self", element), b = c.operand("other", element);
  if (c.has("alpha") && c.number("alpha") != 1)
    a = e.mul(a, e.scalar(c.number("alpha"), element));
  return c.yield(e.sub(b, a));
}
static LogicalResult mul(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.exactType(c.resultElement(), {"self", "other"});
  Value a = c.operand("self", element), b = c.operand("other", element);
  Value product = isBool(element) ? e.op<graph::AndOp>({a, b}) : e.mul(a, b);
  return c.yield(e.cast(product, c.resultElement()));
}

/// a / b rounded down, of integers or floats.
static Value floorDivide(Value a, Value b, Emitter &e) {
  if (isFloat(a))
    return e.op<graph::FloorOp>({e.div(a, b)});
  // The remainder has the divisor's sign, so this division is exact.
  return e.div(e.sub(a, e.op<graph::ModOp>({a, b})), b);
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
  mlir::Type element = c.exactType(c.resultElement(), {"self", "other"});
  Value a = c.operand("self", element), b = c.operand("other", element);
  std::string mode = c.text("rounding_mode", "");
  if (mode.empty() || mode == "floor" || mode == "trunc") {
    Value quotient = mode == "floor" ? floorDivide(a, b, e) : e.div(a, b);
    if (mode == "trunc")
      quotient = truncated(quotient, e);
    return c.yield(e.cast(quotient, c.resultElement()));
  }
  return c.fail("rounding mode '" + mode + "' is not supported");
}
static LogicalResult floorDiv(Call &c) {
  mlir::Type element = c.resultElement();
  return c.yield(floorDivide(c.operand("self", element),
                             c.operand("other", element), c.getEmitter()));
}
static LogicalResult trunc(Call &c) {
  return c.yield(
      truncated(c.operand("self", c.resultElement()), c.getEmitter()));
}

/// Small whole powers are products, as exporters of other formats write them.
static LogicalResult pow(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value base = c.operand("self", element);
  const Argument *exponent = c.find("exponent");
  bool isNumber = exponent && exponent->kind != Argument::Kind::Tensor &&
                  exponent->kind != Argument::Kind::SymInt;
  double power = isNumber ? c.number("exponent") : 0;
  if (isNumber && power == 1)
    return c.yield(base);
  if (isNumber && power == 2)
    return c.yield(e.mul(base, base));
  if (isNumber && power == 0.5 && isFloat(base))
    return c.yield(e.op<graph::SqrtOp>({base}));
  return c.yield(e.op<graph::PowOp>({base, c.operand("exponent", element)}));
}
static LogicalResult square(Call &c) {
  Value x = c.operand("self", c.resultElement());
  return c.yield(c.getEmitter().mul(x, x));
}
static LogicalResult exp2(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  return c.yield(e.op<graph::ExpOp>(
      {e.mul(c.operand("self", element), e.scalar(std::log(2.0), element))}));
}
template <int base> static LogicalResult logTo(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  return c.yield(e.mul(e.op<graph::LogOp>({c.operand("self", element)}),
                       e.scalar(1 / std::log(double(base)), element)));
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
static LogicalResult logicalNot(Call &c) {
  Emitter &e = c.getEmitter();
  return c.yield(e.op<graph::NotOp>(
      {e.cast(c.tensor("self"), e.getBuilder().getI1Type())}));
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
  mlir::Type element = c.resultElement();
  Value x = c.operand("self", element);
  if (c.has("min"))
    x = e.max(x, c.operand("min", element));
  if (c.has("max"))
    x = e.min(x, c.operand("max", element));
  return c.yield(x);
}

/// self + value * tensor1 * tensor2, or / tensor2.
template <bool divide> static LogicalResult addProduct(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value a = c.operand("tensor1", element), b = c.operand("tensor2", element);
  Value term = divide ? e.div(a, b) : e.mul(a, b);
  if (c.has("value") && c.number("value") != 1)
    term = e.mul(term, e.scalar(c.number("value"), element));
  return c.yield(e.add(c.operand("self", element), term));
}
/// self + weight * (end - self).
static LogicalResult lerp(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value a = c.operand("self", element), b = c.operand("end", element);
  return c.yield(e.add(a, e.mul(c.operand("weight", element), e.sub(b, a))));
}

template <typename Op> static LogicalResult test(Call &c) {
  return c.yield(c.getEmitter().op<Op>({c.tensor("self")}));
}
static LogicalResult isFinite(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  return c.yield(e.op<graph::NotOp>({e.op<graph::OrOp>(
      {e.op<graph::IsNanOp>({x}),
       e.op<graph::IsInfOp>(
           {x}, {e.attr("positive", true), e.attr("negative", true)})})}));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::elementwiseRows() {
  using namespace graph;
  static const Row rows[] = {
      {"aten.neg.default", unary<NegOp>},
      {"aten.negative.default", unary<NegOp>},
      {"aten.absolute.default", unary<AbsOp>},
      {"aten.abs.default", unary<AbsOp>},
      {"aten.sign.default", unary<SignOp>},
      {"aten.exp.default", unary<ExpOp>},
      {"aten.exp2.default", exp2},
      {"aten.expm1.default", unary<Expm1Op>},
      {"aten.log.default", unary<LogOp>},
      {"aten.log2.default", logTo<2>},
      {"aten.log10.default", logTo<10>},
      {"aten.log1p.default", unary<Log1pOp>},
      {"aten.sqrt.default", unary<SqrtOp>},
      {"aten.rsqrt.default", unary<RsqrtOp>},
      {"aten.reciprocal.default", unary<ReciprocalOp>},
      {"aten.erf.default", unary<ErfOp>},
      {"aten.tanh.default", unary<TanhOp>},
      {"aten.sigmoid.default", unary<SigmoidOp>},
      {"aten.sin.default", unary<SinOp>},
      {"aten.cos.default", unary<CosOp>},
      {"aten.tan.default", unary<TanOp>},
      {"aten.asin.default", unary<AsinOp>},
      {"aten.acos.default", unary<AcosOp>},
      {"aten.atan.default", unary<AtanOp>},
      {"aten.sinh.default", unary<SinhOp>},
      {"aten.cosh.default", unary<CoshOp>},
      {"aten.floor.default", unary<FloorOp>},
      {"aten.ceil.default", unary<CeilOp>},
      {"aten.round.default", unary<RoundOp>},
      {"aten.trunc.default", trunc},
      {"aten.square.default", square},
      {"aten.bitwise_not.default", unary<NotOp>},
      {"aten.logical_not.default", logicalNot},
      {"aten.isnan.default", test<IsNanOp>},
      {"aten.isfinite.default", isFinite},
      {"aten.add.Tensor", add},
      {"aten.add.Scalar", add},
      {"aten.sub.Tensor", sub},
      {"aten.subtract.Tensor", sub},
      {"aten.sub.Scalar", sub},
      {"aten.subtract.Scalar", sub},
      {"aten.rsub.Tensor", rsub},
      {"aten.rsub.Scalar", rsub},
      {"aten.mul.Tensor", mul},
      {"aten.multiply.Tensor", mul},
      {"aten.mul.Scalar", mul},
      {"aten.multiply.Scalar", mul},
      {"aten.div.Tensor", div},
      {"aten.divide.Tensor", div},
      {"aten.div.Scalar", div},
      {"aten.divide.Scalar", div},
      {"aten.div.Tensor_mode", div},
      {"aten.divide.Tensor_mode", div},
      {"aten.true_divide.Tensor", div},
      {"aten.true_divide.Scalar", div},
      {"aten.div.Scalar_mode", div},
      {"aten.floor_divide.default", floorDiv},
      {"aten.floor_divide.Scalar", floorDiv},
      {"aten.remainder.Tensor", binary<ModOp>},
      {"aten.remainder.Scalar", binary<ModOp>},
      {"aten.fmod.Tensor", binary<FmodOp>},
      {"aten.fmod.Scalar", binary<FmodOp>},
      {"aten.pow.Tensor_Tensor", pow},
      {"aten.pow.Tensor_Scalar", pow},
      {"aten.pow.Scalar", pow},
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
      {"aten.logical_and.default", logical<AndOp>},
      {"aten.logical_or.default", logical<OrOp>},
      {"aten.logical_xor.default", logical<XorOp>},
      {"aten.eq.Tensor", compare<Predicate::eq>},
      {"aten.eq.Scalar", compare<Predicate::eq>},
      {"aten.ne.Tensor", compare<Predicate::ne>},
      {"aten.not_equal.Tensor", compare<Predicate::ne>},
      {"aten.ne.Scalar", compare<Predicate::ne>},
      {"aten.not_equal.Scalar", compare<Predicate::ne>},
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
      {"aten.where.self", where},
      {"aten.where.Scalar", where},
      {"aten.where.ScalarSelf", where},
      {"aten.where.ScalarOther", where},
      {"aten.masked_fill.Scalar", maskedFill},
      {"aten.masked_fill.Tensor", maskedFill},
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
