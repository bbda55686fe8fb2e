// Functions that few models have, as compositions of elementwise operators.
#include "frontends/common/builders/Special.h"
#include "frontends/pytorch/ops/Rows.h"
#include <cmath>
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;

constexpr double pi = 3.14159265358979323846;

namespace {
/// Both operands in the type that is computed in, float of half types.
struct Pair {
  explicit Pair(Call &c, llvm::StringRef second = "other")
      : c(c), e(c.getEmitter()) {
    mlir::Type element = c.arithmeticType({"self", second});
    a = e.widen(c.operand("self", element));
    b = e.widen(c.operand(second, element));
  }
  Value number(double value) { return e.scalar(value, elementOf(a)); }
  LogicalResult yield(Value y) { return c.yield(e.cast(y, c.resultElement())); }
  Call &c;
  Emitter &e;
  Value a, b;
};
} // namespace

static Value isInfinite(Value x, Emitter &e) {
  return e.op<graph::IsInfOp>(
      {x}, {e.attr("positive", true), e.attr("negative", true)});
}
static Value magnitude(Value x, Emitter &e) { return e.op<graph::AbsOp>({x}); }

static LogicalResult hypot(Call &c) {
  Pair p(c);
  return p.yield(buildHypot(p.a, p.b, p.e));
}
template <bool plusOne> static LogicalResult xLogY(Call &c) {
  Pair p(c);
  return p.yield(buildXLogY(p.a, p.b, plusOne, p.e));
}
static LogicalResult copySign(Call &c) {
  Pair p(c);
  Value size = magnitude(p.a, p.e);
  return p.yield(
      p.e.select(buildSignBit(p.b, p.e), p.e.op<graph::NegOp>({size}), size));
}
static LogicalResult signBit(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  if (isFloat(x))
    return c.yield(buildSignBit(e.widen(x), e));
  if (!x || !elementOf(x).isInteger(1))
    return c.yield(
        e.compare(Predicate::lt, x, e.scalar(int64_t(0), elementOf(x))));
  return c.yield(e.op<graph::AndOp>({x, e.op<graph::NotOp>({x})}));
}
/// The other operand where one is NaN.
template <typename Op> static LogicalResult butNan(Call &c) {
  Pair p(c);
  Value y = p.e.op<Op>({p.a, p.b});
  if (isFloat(y)) {
    y = p.e.select(p.e.op<graph::IsNanOp>({p.b}), p.a, y);
    y = p.e.select(p.e.op<graph::IsNanOp>({p.a}), p.b, y);
  }
  return p.yield(y);
}

/// log(exp(a) + exp(b)), or of powers of 2.
template <bool binary> static LogicalResult logAddExp(Call &c) {
  Pair p(c);
  return p.yield(buildLogAddExp(p.a, p.b, p.e, binary ? std::log(2.0) : 1));
}
/// `values` at 0, else whether it is above.
static LogicalResult heaviside(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.arithmeticType({"self", "values"});
  Value x = c.operand("self", element), zero = e.scalar(int64_t(0), element);
  Value step = e.cast(e.compare(Predicate::gt, x, zero), element);
  return c.yield(e.select(e.compare(Predicate::eq, x, zero),
                          c.operand("values", element), step));
}
/// self * 2^other.
static LogicalResult scaleByPower(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type wide = e.getBuilder().getF64Type(), element = c.resultElement();
  Value power =
      e.op<graph::PowOp>({e.scalar(2.0, wide), c.operand("other", wide)});
  return c.yield(e.cast(e.mul(c.operand("self", wide), power), element));
}
static LogicalResult floatPower(Call &c) {
  mlir::Type f64 = c.getEmitter().getBuilder().getF64Type();
  return c.yield(c.getEmitter().op<graph::PowOp>(
      {c.operand("self", f64), c.operand("exponent", f64)}));
}
/// |self - other| <= atol + rtol * |other|, or equal.
static LogicalResult isClose(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.promote({"self", "other"});
  if (!llvm::isa_and_present<mlir::FloatType>(element))
    element = e.getBuilder().getF32Type();
  Value a = e.widen(c.operand("self", element)),
        b = e.widen(c.operand("other", element));
  auto number = [&](llvm::StringRef name, double otherwise) {
    return e.scalar(c.number(name, otherwise), elementOf(a));
  };
  Value way = magnitude(e.sub(a, b), e);
  Value limit =
      e.add(number("atol", 1e-8), e.mul(number("rtol", 1e-5), magnitude(b, e)));
  Value isNear = e.op<graph::AndOp>({e.compare(Predicate::le, way, limit),
                                     e.op<graph::NotOp>({isInfinite(way, e)})});
  Value y = e.op<graph::OrOp>({e.compare(Predicate::eq, a, b), isNear});
  if (c.flag("equal_nan", false))
    y = e.op<graph::OrOp>({y, e.op<graph::AndOp>({e.op<graph::IsNanOp>({a}),
                                                  e.op<graph::IsNanOp>({b})})});
  return c.yield(y);
}

// Of one operand: what `build` makes of it, in float of half types.

template <Value (*build)(Value, Call &)>
static LogicalResult function(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = e.widen(c.operand("self", c.resultElement()));
  return c.yield(e.cast(build(x, c), c.resultElement()));
}
static Value frac(Value x, Call &c) {
  Emitter &e = c.getEmitter();
  Value isNegative = e.compare(Predicate::lt, x, e.scalar(0.0, elementOf(x)));
  return e.sub(x, e.select(isNegative, e.op<graph::CeilOp>({x}),
                           e.op<graph::FloorOp>({x})));
}
/// sin(pi x) / (pi x).
static Value sinc(Value x, Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = elementOf(x);
  Value angle = e.mul(x, e.scalar(pi, element));
  Value isZero = e.compare(Predicate::eq, x, e.scalar(0.0, element));
  return e.select(isZero, e.scalar(1.0, element),
                  e.div(e.op<graph::SinOp>({angle}), angle));
}
/// log(x / (1 - x)), x cut to eps .. 1 - eps.
static Value logit(Value x, Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = elementOf(x);
  if (c.has("eps")) {
    double eps = c.number("eps");
    x = e.min(e.max(x, e.scalar(eps, element)), e.scalar(1 - eps, element));
  }
  return e.op<graph::LogOp>({e.div(x, e.sub(e.scalar(1.0, element), x))});
}
/// -x log(x); 0 of 0, and no entropy below.
static Value entropy(Value x, Call &c) {
  Emitter &e = c.getEmitter();
  Value zero = e.scalar(0.0, elementOf(x));
  Value y = e.op<graph::NegOp>({e.mul(x, e.op<graph::LogOp>({x}))});
  y = e.select(e.compare(Predicate::eq, x, zero), zero, y);
  Value none = e.scalar(-std::numeric_limits<double>::infinity(), elementOf(x));
  return e.select(e.compare(Predicate::lt, x, zero), none, y);
}
/// The part of a normal distribution that is below x: erfc(-x / sqrt(2)) / 2.
static Value normalBelow(Value x, Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = elementOf(x);
  Value below = e.mul(x, e.scalar(-std::sqrt(0.5), element));
  return e.mul(e.op<graph::ErfcOp>({below}), e.scalar(0.5, element));
}
template <bool toRadians> static Value angle(Value x, Call &c) {
  double factor = toRadians ? pi / 180 : 180 / pi;
  return c.getEmitter().mul(x, c.getEmitter().scalar(factor, elementOf(x)));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::specialRows() {
  static const Row rows[] = {
      {"aten.hypot.default", hypot},
      {"aten.xlogy.Tensor", xLogY<false>},
      {"aten.xlogy.Scalar_Other", xLogY<false>},
      {"aten.xlogy.Scalar_Self", xLogY<false>},
      {"aten.special_xlogy.default", xLogY<false>},
      {"aten.special_xlogy.other_scalar", xLogY<false>},
      {"aten.special_xlogy.self_scalar", xLogY<false>},
      {"aten.special_xlog1py.default", xLogY<true>},
      {"aten.special_xlog1py.other_scalar", xLogY<true>},
      {"aten.special_xlog1py.self_scalar", xLogY<true>},
      {"aten.copysign.Tensor", copySign},
      {"aten.copysign.Scalar", copySign},
      {"aten.signbit.default", signBit},
      {"aten.fmax.default", butNan<graph::MaxOp>},
      {"aten.fmin.default", butNan<graph::MinOp>},
      {"aten.logaddexp.default", logAddExp<false>},
      {"aten.logaddexp2.default", logAddExp<true>},
      {"aten.heaviside.default", heaviside},
      {"aten.ldexp.Tensor", scaleByPower},
      {"aten.float_power.Tensor_Tensor", floatPower},
      {"aten.float_power.Tensor_Scalar", floatPower},
      {"aten.float_power.Scalar", floatPower},
      {"aten.isclose.default", isClose},
      {"aten.frac.default", function<frac>},
      {"aten.sinc.default", function<sinc>},
      {"aten.special_sinc.default", function<sinc>},
      {"aten.logit.default", function<logit>},
      {"aten.special_logit.default", function<logit>},
      {"aten.special_entr.default", function<entropy>},
      {"aten.special_ndtr.default", function<normalBelow>},
      {"aten.deg2rad.default", function<angle<true>>},
      {"aten.rad2deg.default", function<angle<false>>},
  };
  return rows;
}
