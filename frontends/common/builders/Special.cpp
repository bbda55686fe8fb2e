#include "frontends/common/builders/Special.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using mlir::Value;

static Value isInfinite(Value x, Emitter &e) {
  return e.op<graph::IsInfOp>(
      {x}, {e.attr("positive", true), e.attr("negative", true)});
}

Value charonia::frontend::buildHypot(Value a, Value b, Emitter &e) {
  mlir::Type element = elementOf(a);
  a = e.op<graph::AbsOp>({e.widen(a)});
  b = e.op<graph::AbsOp>({e.widen(b)});
  auto number = [&](double value) { return e.scalar(value, elementOf(a)); };
  Value most = e.max(a, b);
  Value isZero = e.compare(Predicate::eq, most, number(0));
  Value ratio = e.select(isZero, number(0), e.div(e.min(a, b), most));
  Value y =
      e.mul(most, e.op<graph::SqrtOp>({e.add(number(1), e.mul(ratio, ratio))}));
  Value isAny = e.op<graph::OrOp>({isInfinite(a, e), isInfinite(b, e)});
  y = e.select(isAny, number(std::numeric_limits<double>::infinity()), y);
  return e.cast(y, element);
}

Value charonia::frontend::buildXLogY(Value x, Value y, bool plusOne,
                                     Emitter &e) {
  mlir::Type element = elementOf(x);
  Value wide = e.widen(x), own = e.widen(y),
        zero = e.scalar(0.0, elementOf(wide));
  Value log = plusOne ? e.op<graph::Log1pOp>({own}) : e.op<graph::LogOp>({own});
  Value z =
      e.select(e.compare(Predicate::eq, wide, zero), zero, e.mul(wide, log));
  return e.cast(e.select(e.op<graph::IsNanOp>({own}), own, z), element);
}

Value charonia::frontend::buildSignBit(Value x, Emitter &e) {
  if (!x)
    return {};
  mlir::Type integer =
      e.getBuilder().getIntegerType(elementOf(x).getIntOrFloatBitWidth());
  Value bits =
      e.op<graph::BitcastOp>({x}, e.attr("to", mlir::TypeAttr::get(integer)));
  return e.compare(Predicate::lt, bits, e.scalar(int64_t(0), integer));
}

Value charonia::frontend::buildAtan2(Value y, Value x, Emitter &e) {
  mlir::Type element = elementOf(x);
  y = e.widen(y);
  x = e.widen(x);
  mlir::Type wide = elementOf(x);
  auto number = [&](double value) { return e.scalar(value, wide); };
  auto isLess = [&](Value a, Value b) {
    return e.compare(Predicate::lt, a, b);
  };
  // Zeros have signs, too: so have their reciprocals.
  auto isNegative = [&](Value v) {
    Value isZero = e.compare(Predicate::eq, v, number(0));
    return isLess(e.select(isZero, e.div(number(1), v), v), number(0));
  };
  Value a = e.op<graph::AbsOp>({x}), b = e.op<graph::AbsOp>({y});
  Value most = e.max(a, b), least = e.min(a, b);
  // Of two infinities, or two zeros, the quotient is no number.
  Value quotient =
      e.select(e.compare(Predicate::eq, most, number(0)), number(0),
               e.select(e.compare(Predicate::eq, most, least), number(1),
                        e.div(least, most)));
  constexpr double pi = 3.14159265358979323846;
  Value angle = e.op<graph::AtanOp>({quotient});
  angle = e.select(isLess(a, b), e.sub(number(pi / 2), angle), angle);
  angle = e.select(isNegative(x), e.sub(number(pi), angle), angle);
  angle = e.select(isNegative(y), e.op<graph::NegOp>({angle}), angle);
  angle = e.select(
      e.op<graph::OrOp>({e.op<graph::IsNanOp>({x}), e.op<graph::IsNanOp>({y})}),
      e.add(x, y), angle);
  return e.cast(angle, element);
}
