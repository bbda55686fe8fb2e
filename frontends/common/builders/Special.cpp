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

Value charonia::frontend::buildLogAddExp(Value a, Value b, Emitter &e,
                                         double scale) {
  Value factor = e.scalar(scale, elementOf(a));
  Value most = e.max(a, b),
        way = e.op<graph::NegOp>({e.op<graph::AbsOp>({e.sub(a, b)})});
  Value rest = e.op<graph::Log1pOp>(
      {e.op<graph::ExpOp>({scale == 1 ? way : e.mul(way, factor)})});
  Value y = e.add(most, scale == 1 ? rest : e.div(rest, factor));
  // Infinities have no distance from themselves.
  Value isAlike =
      e.op<graph::AndOp>({isInfinite(a, e), e.compare(Predicate::eq, a, b)});
  return e.select(isAlike, a, y);
}

Value charonia::frontend::buildBesselI(Value x, int order, bool scaled,
                                       Emitter &e) {
  auto number = [&](double value) { return e.scalar(value, elementOf(x)); };
  auto polynomial = [&](llvm::ArrayRef<double> terms, Value at) {
    Value sum = number(0);
    for (double term : llvm::reverse(terms))
      sum = e.add(e.mul(sum, at), number(term));
    return sum;
  };
  // Up to the border the power series, whose terms are all positive; behind it
  // the asymptotic one has all digits of double.
  constexpr double border = 20, pi = 3.14159265358979323846;
  constexpr int nearTerms = 48, farTerms = 28;
  std::vector<double> near = {1}, far = {1};
  for (int k = 1; k < nearTerms; ++k)
    near.push_back(near.back() / (double(k) * (k + order)));
  for (int k = 1; k < farTerms; ++k) {
    double odd = 2 * k - 1;
    far.push_back(far.back() * (odd * odd - 4 * order) / (8.0 * k));
  }
  Value size = e.op<graph::AbsOp>({x});
  Value low = e.min(size, number(border)), high = e.max(size, number(border));
  Value y = polynomial(near, e.mul(e.mul(low, low), number(0.25)));
  if (order == 1)
    y = e.mul(y, e.mul(low, number(0.5)));
  Value z = e.div(polynomial(far, e.div(number(1), high)),
                  e.op<graph::SqrtOp>({e.mul(high, number(2 * pi))}));
  if (scaled)
    y = e.mul(y, e.op<graph::ExpOp>({e.op<graph::NegOp>({low})}));
  else
    z = e.mul(z, e.op<graph::ExpOp>({high}));
  y = e.select(e.compare(Predicate::le, size, number(border)), y, z);
  Value isNegative = e.compare(Predicate::lt, x, number(0));
  return order == 1 ? e.select(isNegative, e.op<graph::NegOp>({y}), y) : y;
}
