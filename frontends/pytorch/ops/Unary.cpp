// Elementwise functions of one operand.
#include "frontends/pytorch/ops/Complex.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;

/// Operands become the result's type, whatever theirs are.
template <typename Op> static LogicalResult unary(Call &c) {
  return c.yield(c.getEmitter().op<Op>({c.operand("self", c.resultElement())}));
}
/// Of integers, rounding does nothing.
template <typename Op> static LogicalResult rounded(Call &c) {
  Value x = c.operand("self", c.resultElement());
  return c.yield(isFloat(x) ? c.getEmitter().op<Op>({x}) : x);
}
static LogicalResult roundDecimals(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.operand("self", c.resultElement());
  int64_t decimals = c.integer("decimals", 0);
  if (!isFloat(x))
    return decimals >= 0
               ? c.yield(x)
               : c.fail("integers rounded to " + llvm::Twine(decimals) +
                            " decimals are not supported",
                        "convert them to float64 first");
  mlir::Type element = elementOf(x);
  x = e.widen(x);
  Value scale =
      e.scalar(std::pow(10.0, std::abs(double(decimals))), elementOf(x));
  Value y =
      e.op<graph::RoundOp>({decimals < 0 ? e.div(x, scale) : e.mul(x, scale)});
  return c.yield(
      e.cast(decimals < 0 ? e.mul(y, scale) : e.div(y, scale), element));
}
/// 0 of NaN.
static LogicalResult sign(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.operand("self", c.resultElement());
  Value y = e.op<graph::SignOp>({x});
  if (!isFloat(x))
    return c.yield(y);
  return c.yield(
      e.select(e.op<graph::IsNanOp>({x}), e.scalar(0.0, elementOf(x)), y));
}

static LogicalResult square(Call &c) {
  Value x = c.operand("self", c.resultElement());
  return c.yield(c.getEmitter().mul(x, x));
}
// Programs round these down, so whole numbers have to be exact: they are what
// float64 gives, rounded once.
static LogicalResult exp2(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement(), wide = e.getBuilder().getF64Type();
  Value x = e.cast(c.operand("self", element), wide);
  Value y = e.op<graph::ExpOp>({e.mul(x, e.scalar(std::log(2.0), wide))});
  return c.yield(e.cast(y, element));
}
template <int base> static LogicalResult logTo(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement(), wide = e.getBuilder().getF64Type();
  Value x = e.cast(c.operand("self", element), wide);
  Value y =
      e.div(e.op<graph::LogOp>({x}), e.scalar(std::log(double(base)), wide));
  if (element == wide) {
    // What is off by the quotient's rounding.
    Value whole = e.op<graph::RoundOp>({y});
    auto size = [&](Value v) { return e.op<graph::AbsOp>({v}); };
    Value isWhole =
        e.compare(Predicate::le, size(e.sub(y, whole)),
                  e.mul(size(y), e.scalar(std::ldexp(1.0, -51), wide)));
    y = e.select(isWhole, whole, y);
  }
  return c.yield(e.cast(y, element));
}

static LogicalResult logicalNot(Call &c) {
  Emitter &e = c.getEmitter();
  return c.yield(e.op<graph::NotOp>(
      {e.cast(c.tensor("self"), e.getBuilder().getI1Type())}));
}

/// Of integers it is always `otherwise`.
static LogicalResult yieldTest(Call &c, Value x, bool otherwise,
                               llvm::function_ref<Value()> build) {
  Emitter &e = c.getEmitter();
  if (!x)
    return c.yield(x);
  return c.yield(isFloat(x) ? build()
                            : e.broadcast(e.scalar(int64_t(otherwise),
                                                   e.getBuilder().getI1Type()),
                                          graph::getShape(x)));
}
static LogicalResult isNan(Call &c) {
  Value x = c.tensor("self");
  return yieldTest(c, x, false,
                   [&] { return c.getEmitter().op<graph::IsNanOp>({x}); });
}
template <bool positive, bool negative>
static LogicalResult isInfinite(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  return yieldTest(c, x, false, [&] {
    return e.op<graph::IsInfOp>(
        {x}, {e.attr("positive", positive), e.attr("negative", negative)});
  });
}
static LogicalResult isFinite(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  return yieldTest(c, x, true, [&] {
    return e.op<graph::NotOp>({e.op<graph::OrOp>(
        {e.op<graph::IsNanOp>({x}),
         e.op<graph::IsInfOp>(
             {x}, {e.attr("positive", true), e.attr("negative", true)})})});
  });
}
/// NaN and infinities become numbers: 0, and the largest there are.
static LogicalResult nanToNum(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  c.ignore({"nan", "posinf", "neginf"});
  auto type = llvm::dyn_cast_or_null<mlir::FloatType>(elementOf(x));
  if (!type)
    return c.yield(x);
  llvm::APFloat most = llvm::APFloat::getLargest(type.getFloatSemantics());
  bool loses = false;
  most.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
               &loses);
  double largest = most.convertToDouble();
  auto replace = [&](Value where, llvm::StringRef name, double otherwise) {
    x = e.select(where, e.scalar(c.number(name, otherwise), type), x);
  };
  auto infinite = [&](bool positive) {
    return e.op<graph::IsInfOp>(
        {x}, {e.attr("positive", positive), e.attr("negative", !positive)});
  };
  Value isNan = e.op<graph::IsNanOp>({x}), high = infinite(true),
        low = infinite(false);
  replace(isNan, "nan", 0);
  replace(high, "posinf", largest);
  replace(low, "neginf", -largest);
  return c.yield(x);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::unaryRows() {
  using namespace graph;
  static const Row rows[] = {
      {"aten.neg.default", partwise(unary<NegOp>)},
      {"aten.negative.default", partwise(unary<NegOp>)},
      // What PyTorch makes of imaginary parts of conjugates.
      {"aten._neg_view.default", partwise(unary<NegOp>), Alias::View},
      {"aten.absolute.default", {unary<AbsOp>, complexAbs}},
      {"aten.abs.default", {unary<AbsOp>, complexAbs}},
      {"aten.sign.default", sign},
      {"aten.nan_to_num.default", nanToNum},
      {"aten.exp.default", {unary<ExpOp>, complexUnary<expComplex>}},
      {"aten.exp2.default", exp2},
      {"aten.expm1.default", unary<Expm1Op>},
      {"aten.log.default", {unary<LogOp>, complexUnary<logComplex>}},
      {"aten.log2.default", logTo<2>},
      {"aten.log10.default", logTo<10>},
      {"aten.log1p.default", unary<Log1pOp>},
      {"aten.sqrt.default", {unary<SqrtOp>, complexUnary<sqrtComplex>}},
      {"aten.rsqrt.default", {unary<RsqrtOp>, complexRsqrt}},
      {"aten.reciprocal.default", {unary<ReciprocalOp>, complexReciprocal}},
      {"aten.erf.default", unary<ErfOp>},
      {"aten.erfc.default", unary<ErfcOp>},
      {"aten.tanh.default", {unary<TanhOp>, complexUnary<tanhComplex>}},
      {"aten.sigmoid.default", {unary<SigmoidOp>, complexSigmoid}},
      {"aten.sin.default", {unary<SinOp>, complexTurned<sinhComplex, true>}},
      {"aten.cos.default", {unary<CosOp>, complexTurned<coshComplex, false>}},
      {"aten.tan.default", {unary<TanOp>, complexTurned<tanhComplex, true>}},
      {"aten.asin.default", unary<AsinOp>},
      {"aten.acos.default", unary<AcosOp>},
      {"aten.atan.default", unary<AtanOp>},
      {"aten.asinh.default", unary<AsinhOp>},
      {"aten.acosh.default", unary<AcoshOp>},
      {"aten.atanh.default", unary<AtanhOp>},
      {"aten.sinh.default", {unary<SinhOp>, complexUnary<sinhComplex>}},
      {"aten.cosh.default", {unary<CoshOp>, complexUnary<coshComplex>}},
      {"aten.floor.default", rounded<FloorOp>},
      {"aten.ceil.default", rounded<CeilOp>},
      {"aten.round.default", rounded<RoundOp>},
      {"aten.round.decimals", roundDecimals},
      {"aten.square.default", {square, complexSquare}},
      {"aten.special_expit.default", {unary<SigmoidOp>, complexSigmoid}},
      {"aten.special_erf.default", unary<ErfOp>},
      {"aten.special_erfc.default", unary<ErfcOp>},
      {"aten.special_expm1.default", unary<Expm1Op>},
      {"aten.special_log1p.default", unary<Log1pOp>},
      {"aten.special_exp2.default", exp2},
      {"aten.special_round.default", roundDecimals},
      {"aten.arcsin.default", unary<AsinOp>},
      {"aten.arccos.default", unary<AcosOp>},
      {"aten.arctan.default", unary<AtanOp>},
      {"aten.arcsinh.default", unary<AsinhOp>},
      {"aten.arccosh.default", unary<AcoshOp>},
      {"aten.arctanh.default", unary<AtanhOp>},
      {"aten.sgn.default", {sign, complexUnary<signComplex>}},
      {"aten.bitwise_not.default", unary<NotOp>},
      {"aten.logical_not.default", logicalNot},
      {"aten.isnan.default", {isNan, complexIsNan}},
      {"aten.isinf.default", {isInfinite<true, true>, complexIsInf}},
      {"aten.isposinf.default", isInfinite<true, false>},
      {"aten.isneginf.default", isInfinite<false, true>},
      {"aten.isfinite.default", {isFinite, complexIsFinite}},
  };
  return rows;
}
