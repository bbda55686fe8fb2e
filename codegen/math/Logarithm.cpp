// Logarithms and inverse hyperbolic functions.
#include "codegen/math/Functions.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::functions;

LogParts functions::logParts(const Num &x) {
  LogParts p;
  bool f64 = x.isF64();
  double smallest = f64 ? 0x1p-1022 : 0x1p-126, scale = f64 ? 0x1p54 : 0x1p25;
  Bool subnormal = x < smallest;
  Num normal = select(subnormal, x * scale, x);
  Int root(x, f64 ? 0x3fe6a09e667f3bcdll : 0x3f3504f3);
  Int offset = normal.bits() - root;
  Int exponent = offset.shiftRightSigned(x.mantissaBits());
  Int mantissa = (offset & Int(x, f64 ? 0xfffffffffffffll : 0x7fffff)) + root;
  p.f = mantissa.asFloat() - 1;
  p.e = exponent.toFloat() -
        select(subnormal, x.constant(f64 ? 54 : 25), x.constant(0));
  return p;
}

Num functions::logSpecials(const Num &x, const Num &result) {
  Num r = select(x == kInf, x, result);
  r = select(x == 0.0, x.constant(-kInf), r);
  return select(x < 0.0, x.constant(kNaN), select(x.isNaN(), x, r));
}

Num functions::logTail(const Num &f) {
  Num half = f * f * 0.5;
  if (f.isF64()) {
    Num s = f / (f + 2), z = s * s;
    Num r = z * polynomial(z, {6.66666666666666609e-1, 4.00000000000062912e-1,
                               2.85714285690716104e-1, 2.22222226489580439e-1,
                               1.81817754916892096e-1, 1.53870983951720329e-1,
                               1.32499450862890685e-1, 1.32529101090823047e-1});
    return half - s * (half + r);
  }
  Num q = polynomial(f, {3.33333104422520525e-1, -2.4999986595006121e-1,
                         2.00022264406654927e-1, -1.6669250805063731e-1,
                         1.42186613116922111e-1, -1.2384350712690098e-1,
                         1.18729567484002804e-1, -1.17897912757226897e-1,
                         6.91539275300414982e-2});
  return fma(q, -(f * f * f), half);
}

constexpr double kLn2High32 = 0x1.62e400p-1, kLn2Low32 = 0x1.7f7d1cp-20;

static Num logNormal(const Num &x) {
  LogParts p = logParts(x);
  double high = x.isF64() ? kLn2High64 : kLn2High32,
         low = x.isF64() ? kLn2Low64 : kLn2Low32;
  return fma(p.e, x.constant(high),
             p.f - fma(p.e, x.constant(-low), logTail(p.f)));
}

Num functions::logOf(const Num &x) { return logSpecials(x, logNormal(x)); }

/// log(x) / log(base) for the bases 2 and 10: reciprocal of log(base) in two
/// parts.
static Num logBase(const Num &x, double high, double low, double exponentHigh,
                   double exponentLow) {
  LogParts p = logParts(x);
  // log(1 + f) in two parts, so that the product rounds once.
  Num tail = logTail(p.f);
  Num sum = p.f - tail, rest = (p.f - sum) - tail;
  Num scaled = sum * high, error = fma(sum, x.constant(high), -scaled);
  error = error + fma(sum, x.constant(low), rest * high);
  Num whole = p.e * exponentHigh;
  Num total = whole + scaled;
  Num lost = (whole - total) + scaled; // whole is zero or the larger
  return logSpecials(x,
                     total + (lost + fma(p.e, x.constant(exponentLow), error)));
}

Num functions::log2Of(const Num &x) {
  return x.isF64()
             ? logBase(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1, 0)
             : logBase(x, 0x1.715476p+0, 0x1.4ae0cp-26, 1, 0);
}

Num functions::log10Of(const Num &x) {
  return x.isF64() ? logBase(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57,
                             0x1.34413509f7800p-2, 0x1.fef311f12b358p-46)
                   : logBase(x, 0x1.bcb7b2p-2, -0x1.5b235ep-27, 0x1.344000p-2,
                             0x1.3509f8p-18);
}

Num functions::log1pOf(const Num &x) {
  // The rounding of 1 + x is put back to first order.
  Num u = x + 1;
  Num lost = select(abs(x) < 1.0, x - (u - 1), Num(x.constant(1)) - (u - x));
  Num result = logNormal(u) + lost / u;
  result = select(abs(x) < (x.isF64() ? 0x1p-54 : 0x1p-25), x, result);
  result = select(x == kInf, x, result);
  result = select(x == -1.0, x.constant(-kInf), result);
  return select(x < -1.0, x.constant(kNaN), select(x.isNaN(), x, result));
}

Num functions::asinhOf(const Num &x) {
  Num a = abs(x), q = a * a;
  Num small = log1pOf(a + q / (sqrt(q + 1) + 1));
  Num large = logOf(a) + kLn2;
  return copySign(select(a > (x.isF64() ? 0x1p30 : 0x1p15), large, small), x);
}

Num functions::acoshOf(const Num &x) {
  Num t = x - 1;
  Num small = log1pOf(t + sqrt(t * (t + 2)));
  Num large = logOf(x) + kLn2;
  Num result = select(x > (x.isF64() ? 0x1p30 : 0x1p15), large, small);
  return select(x < 1.0, x.constant(kNaN), result);
}

Num functions::atanhOf(const Num &x) {
  Num a = abs(x);
  return copySign(log1pOf((a * 2) / (Num(x.constant(1)) - a)) * 0.5, x);
}
