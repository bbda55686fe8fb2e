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
