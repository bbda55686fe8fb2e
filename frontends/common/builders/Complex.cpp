#include "frontends/common/builders/Complex.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/common/builders/Special.h"
#include <cmath>
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using mlir::Value;

static Value number(double value, Value like, Emitter &e) {
  return e.scalar(value, elementOf(like));
}
static Value negate(Value x, Emitter &e) { return e.op<graph::NegOp>({x}); }
static Value magnitude(Value x, Emitter &e) { return e.op<graph::AbsOp>({x}); }

/// The imaginary part, as zeros where there is none.
static Value imaginaryOf(Complex z, Emitter &e) {
  return z.imaginary || !z.real
             ? z.imaginary
             : e.broadcast(number(0, z.real, e), graph::getShape(z.real));
}

Value charonia::frontend::joinComplex(Complex z, Emitter &e) {
  if (!z.real)
    return {};
  Exprs shape = graph::getShape(z.real);
  shape.push_back(e.number(1));
  Value real = e.reshape(z.real, shape);
  return z.imaginary
             ? e.concat({real, e.reshape(z.imaginary, shape)}, shape.size() - 1)
             : real;
}

Complex charonia::frontend::splitComplex(Value pairs, Emitter &e) {
  if (!pairs || rankOf(pairs) < 1)
    return {};
  Exprs dims =
      llvm::to_vector(llvm::ArrayRef(graph::getShape(pairs)).drop_back());
  auto part = [&](int64_t i) {
    return e.reshape(
        sliceAlong(pairs, dims.size(), {e.number(i), e.number(1), 1}, e), dims);
  };
  return {part(0), part(1)};
}

Complex charonia::frontend::spreadComplex(
    Complex z, llvm::ArrayRef<mlir::AffineExpr> shape, Emitter &e) {
  Value imaginary = z.imaginary ? z.imaginary : number(0, z.real, e);
  return {e.broadcast(z.real, shape), e.broadcast(imaginary, shape)};
}

Complex charonia::frontend::addComplex(Complex a, Complex b, bool subtract,
                                       Emitter &e) {
  auto combine = [&](Value x, Value y) {
    return subtract ? e.sub(x, y) : e.add(x, y);
  };
  return {combine(a.real, b.real),
          combine(imaginaryOf(a, e), imaginaryOf(b, e))};
}

Complex charonia::frontend::mulComplex(Complex a, Complex b, Emitter &e) {
  if (!a.imaginary)
    std::swap(a, b);
  if (!b.imaginary)
    return {e.mul(a.real, b.real), e.mul(imaginaryOf(a, e), b.real)};
  return {e.sub(e.mul(a.real, b.real), e.mul(a.imaginary, b.imaginary)),
          e.add(e.mul(a.real, b.imaginary), e.mul(a.imaginary, b.real))};
}

/// By the larger part of the divisor first.
Complex charonia::frontend::divComplex(Complex a, Complex b, Emitter &e) {
  Value imaginary = imaginaryOf(a, e);
  if (!b.imaginary)
    return {e.div(a.real, b.real), e.div(imaginary, b.real)};
  Value isReal =
      e.compare(Predicate::ge, magnitude(b.real, e), magnitude(b.imaginary, e));
  Value most = e.select(isReal, b.real, b.imaginary),
        least = e.select(isReal, b.imaginary, b.real);
  Value ratio = e.div(least, most);
  Value divisor = e.add(most, e.mul(least, ratio));
  Value real = e.select(isReal, e.add(a.real, e.mul(imaginary, ratio)),
                        e.add(e.mul(a.real, ratio), imaginary));
  Value other = e.select(isReal, e.sub(imaginary, e.mul(a.real, ratio)),
                         e.sub(e.mul(imaginary, ratio), a.real));
  return {e.div(real, divisor), e.div(other, divisor)};
}

/// size * turn: what turns by nothing stays so, also where it is infinite.
static Value turnedBy(Value size, Value turn, Emitter &e) {
  Value isNothing = e.compare(Predicate::eq, turn, number(0, turn, e));
  return e.mul(e.select(isNothing, e.op<graph::SignOp>({size}), size), turn);
}
Complex charonia::frontend::expComplex(Complex z, Emitter &e) {
  Value size = e.op<graph::ExpOp>({z.real}), angle = imaginaryOf(z, e);
  return {e.mul(size, e.op<graph::CosOp>({angle})),
          turnedBy(size, e.op<graph::SinOp>({angle}), e)};
}
Complex charonia::frontend::logComplex(Complex z, Emitter &e) {
  return {e.op<graph::LogOp>({absComplex(z, e)}),
          buildAtan2(imaginaryOf(z, e), z.real, e)};
}

Complex charonia::frontend::sqrtComplex(Complex z, Emitter &e) {
  Value imaginary = imaginaryOf(z, e), half = number(0.5, z.real, e),
        zero = number(0, z.real, e);
  Value size = absComplex({z.real, imaginary}, e);
  Value root = e.op<graph::SqrtOp>(
      {e.add(e.mul(size, half), e.mul(magnitude(z.real, e), half))});
  Value isZero = e.compare(Predicate::eq, root, zero);
  Value other =
      e.select(isZero, imaginary, e.div(e.mul(imaginary, half), root));
  Value isLeft = e.compare(Predicate::lt, z.real, zero);
  Value signedRoot =
      e.select(buildSignBit(imaginary, e), negate(root, e), root);
  // Beside an infinite imaginary part the real one is nothing.
  Value isInfinite = e.op<graph::IsInfOp>(
      {imaginary}, {e.attr("positive", true), e.attr("negative", true)});
  return {e.select(isInfinite, magnitude(imaginary, e),
                   e.select(isLeft, magnitude(other, e), root)),
          e.select(isInfinite, imaginary, e.select(isLeft, signedRoot, other))};
}

Complex charonia::frontend::powComplex(Complex base, Complex exponent,
                                       Emitter &e) {
  Complex y = expComplex(mulComplex(exponent, logComplex(base, e), e), e);
  Value zero = number(0, y.real, e);
  auto isZero = [&](Complex z) {
    return e.op<graph::AndOp>(
        {e.compare(Predicate::eq, z.real, zero),
         e.compare(Predicate::eq, imaginaryOf(z, e), zero)});
  };
  // 1 of exponent 0, 0 of positive ones, infinite of negative ones.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Value nan = number(std::numeric_limits<double>::quiet_NaN(), y.real, e);
  Value isNone = isZero(exponent),
        isPositive = e.compare(Predicate::gt, exponent.real, zero),
        isNegative = e.compare(Predicate::lt, exponent.real, zero);
  Value real = e.select(isNegative, number(infinity, y.real, e), nan);
  real = e.select(isPositive, zero, real);
  real = e.select(isNone, number(1, y.real, e), real);
  Value isKnown = e.op<graph::OrOp>({isNone, isPositive});
  Value isBase = isZero(base);
  return {e.select(isBase, real, y.real),
          e.select(isBase, e.select(isKnown, zero, nan), y.imaginary)};
}
Complex charonia::frontend::powComplex(Complex base, int64_t exponent,
                                       Emitter &e) {
  if (!base.real)
    return {};
  Complex one = {
      e.broadcast(number(1, base.real, e), graph::getShape(base.real)), {}};
  Complex y, factor = base;
  for (uint64_t rest = std::abs(exponent); rest; rest /= 2) {
    if (rest % 2)
      y = y.real ? mulComplex(y, factor, e) : factor;
    if (rest > 1)
      factor = mulComplex(factor, factor, e);
  }
  if (!y.real)
    y = one;
  if (exponent < 0)
    y = divComplex(one, y, e);
  return {y.real, imaginaryOf(y, e)};
}

Complex charonia::frontend::sinhComplex(Complex z, Emitter &e) {
  Value angle = imaginaryOf(z, e);
  return {
      e.mul(e.op<graph::SinhOp>({z.real}), e.op<graph::CosOp>({angle})),
      turnedBy(e.op<graph::CoshOp>({z.real}), e.op<graph::SinOp>({angle}), e)};
}
Complex charonia::frontend::coshComplex(Complex z, Emitter &e) {
  Value angle = imaginaryOf(z, e);
  return {
      e.mul(e.op<graph::CoshOp>({z.real}), e.op<graph::CosOp>({angle})),
      turnedBy(e.op<graph::SinhOp>({z.real}), e.op<graph::SinOp>({angle}), e)};
}
/// tanh(a + ib) = (t + i sin(b) cos(b) / cosh(a)^2) / (cos(b)^2 + t^2 sin(b)^2)
/// where t = tanh(a): nothing of it is infinite for large a.
Complex charonia::frontend::tanhComplex(Complex z, Emitter &e) {
  Value angle = imaginaryOf(z, e), t = e.op<graph::TanhOp>({z.real});
  Value cos = e.op<graph::CosOp>({angle}), sin = e.op<graph::SinOp>({angle});
  Value turned = e.mul(t, sin);
  Value divisor = e.add(e.mul(cos, cos), e.mul(turned, turned));
  Value one = number(1, z.real, e);
  Value cosh = e.op<graph::CoshOp>({z.real});
  Value rest = e.div(e.div(one, cosh), cosh);
  return {e.div(t, divisor), e.div(e.mul(e.mul(sin, cos), rest), divisor)};
}
Complex charonia::frontend::turnComplex(Complex z, bool back, Emitter &e) {
  Value imaginary = imaginaryOf(z, e);
  return back ? Complex{imaginary, negate(z.real, e)}
              : Complex{negate(imaginary, e), z.real};
}

Value charonia::frontend::absComplex(Complex z, Emitter &e) {
  return z.imaginary ? buildHypot(z.real, z.imaginary, e)
                     : magnitude(z.real, e);
}
Complex charonia::frontend::signComplex(Complex z, Emitter &e) {
  Value size = absComplex(z, e);
  Value isZero = e.compare(Predicate::eq, size, number(0, size, e));
  Value divisor = e.select(isZero, number(1, size, e), size);
  return {e.div(z.real, divisor), e.div(imaginaryOf(z, e), divisor)};
}
