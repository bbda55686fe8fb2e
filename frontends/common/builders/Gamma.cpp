#include "frontends/common/builders/Gamma.h"
#include <cmath>
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using mlir::Value;

constexpr double pi = 3.14159265358979323846;
constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
/// Arithmetic in double.
struct Double {
  explicit Double(Emitter &e) : e(e), type(e.getBuilder().getF64Type()) {}
  Value number(double value) { return e.scalar(value, type); }
  Value log(Value x) { return e.op<graph::LogOp>({x}); }
  Value sin(Value x) { return e.op<graph::SinOp>({x}); }
  Value less(Value a, double b) {
    return e.compare(Predicate::lt, a, number(b));
  }
  /// x to the nearest whole number, from -0.5 to 0.5: what a period leaves.
  Value rest(Value x) { return e.sub(x, e.op<graph::RoundOp>({x})); }
  Emitter &e;
  mlir::Type type;
};
} // namespace

/// log(gamma(x)) of x > 0, by Lanczos' sum for g = 7.
static Value logGammaAbove(Value x, Double &d) {
  constexpr double terms[] = {676.5203681218851,     -1259.1392167224028,
                              771.32342877765313,    -176.61502916214059,
                              12.507343278686905,    -0.13857109526572012,
                              9.9843695780195716e-6, 1.5056327351493116e-7};
  Emitter &e = d.e;
  Value y = e.sub(x, d.number(1)), sum = d.number(0.99999999999980993);
  for (auto [i, term] : llvm::enumerate(terms))
    sum = e.add(sum, e.div(d.number(term), e.add(y, d.number(double(i + 1)))));
  Value base = e.add(y, d.number(7.5));
  Value power = e.sub(e.mul(e.add(y, d.number(0.5)), d.log(base)), base);
  return e.add(e.add(power, d.number(std::log(2 * pi) / 2)), d.log(sum));
}
/// Below 0.5 from that of 1 - x.
Value charonia::frontend::buildLogGamma(Value x, Emitter &e) {
  Double d(e);
  Value isLow = d.less(x, 0.5);
  Value above = logGammaAbove(e.select(isLow, e.sub(d.number(1), x), x), d);
  Value turn = e.op<graph::AbsOp>({d.sin(e.mul(d.rest(x), d.number(pi)))});
  Value below = e.sub(e.sub(d.number(std::log(pi)), d.log(turn)), above);
  Value y = e.select(isLow, below, above);
  Value isInfinite = e.op<graph::IsInfOp>(
      {x}, {e.attr("positive", true), e.attr("negative", true)});
  return e.select(isInfinite, d.number(infinity), y);
}

/// The derivative of log(gamma(x)): ten steps up, then the asymptotic series.
static Value digammaAbove(Value x, Double &d) {
  // Of 1 / y^2, from its highest power down.
  constexpr double terms[] = {1.0 / 12,  -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                              1.0 / 252, -1.0 / 120,     1.0 / 12};
  Emitter &e = d.e;
  Value steps = d.number(0);
  for (int i = 0; i < 10; ++i)
    steps = e.add(steps, e.div(d.number(1), e.add(x, d.number(double(i)))));
  Value y = e.add(x, d.number(10));
  Value inverse = e.div(d.number(1), y), square = e.mul(inverse, inverse);
  Value series = d.number(0);
  for (double term : terms)
    series = e.mul(square, e.add(series, d.number(term)));
  Value y0 = e.sub(e.sub(d.log(y), e.mul(inverse, d.number(0.5))), series);
  return e.sub(y0, steps);
}
Value charonia::frontend::buildDigamma(Value x, Emitter &e) {
  Double d(e);
  Value isLow = e.compare(Predicate::le, x, d.number(0));
  Value above = digammaAbove(e.select(isLow, e.sub(d.number(1), x), x), d);
  Value angle = e.mul(d.rest(x), d.number(pi));
  Value cotangent = e.div(e.op<graph::CosOp>({angle}), d.sin(angle));
  Value below = e.sub(above, e.mul(cotangent, d.number(pi)));
  // Of whole numbers there is none, but at 0.
  Value isWhole = e.compare(Predicate::eq, e.op<graph::RoundOp>({x}), x);
  below = e.select(isWhole, d.number(std::numeric_limits<double>::quiet_NaN()),
                   below);
  Value y = e.select(isLow, below, above);
  y = e.select(e.compare(Predicate::eq, x, d.number(infinity)), x, y);
  Value ofZero = e.div(d.number(-1), x);
  return e.select(e.compare(Predicate::eq, x, d.number(0)), ofZero, y);
}

/// x where erf(x) is the operand: Giles' approximation, then two of Newton's
/// steps.
Value charonia::frontend::buildInverseErf(Value x, Emitter &e) {
  Double d(e);
  constexpr double inner[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                              -4.39150654e-06, 0.00021858087,  -0.00125372503,
                              -0.00417768164,  0.246640727,    1.50140941};
  constexpr double outer[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                              -0.00367342844,  0.00573950773,  -0.0076224613,
                              0.00943887047,   1.00167406,     2.83297682};
  auto polynomial = [&](llvm::ArrayRef<double> terms, Value at) {
    Value sum = d.number(0);
    for (double term : terms)
      sum = e.add(e.mul(sum, at), d.number(term));
    return sum;
  };
  Value w = e.op<graph::NegOp>(
      {d.log(e.mul(e.sub(d.number(1), x), e.add(d.number(1), x)))});
  Value isInner = d.less(w, 5);
  Value near = polynomial(inner, e.sub(w, d.number(2.5)));
  Value far = polynomial(outer, e.sub(e.op<graph::SqrtOp>({w}), d.number(3)));
  Value y = e.mul(e.select(isInner, near, far), x);
  for (int step = 0; step < 2; ++step) {
    Value slope = e.mul(e.op<graph::ExpOp>({e.op<graph::NegOp>({e.mul(y, y)})}),
                        d.number(2 / std::sqrt(pi)));
    y = e.sub(y, e.div(e.sub(e.op<graph::ErfOp>({y}), x), slope));
  }
  Value isEdge = e.compare(Predicate::eq, e.op<graph::AbsOp>({x}), d.number(1));
  return e.select(isEdge, e.mul(x, d.number(infinity)), y);
}
