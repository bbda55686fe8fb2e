// Powers, remainders, rounding.
#include "codegen/math/Functions.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::functions;

Pair functions::twoSum(const Num &a, const Num &b) {
  Num s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

/// Truth of "y is an odd integer", for the sign of a power.
static Bool isOdd(const Num &y) {
  Num half = y * 0.5;
  return (truncate(y) == y) & (truncate(half) != half);
}

Num functions::powOf(const Num &x, const Num &y) {
  Num a = abs(x), magnitude;
  if (!x.isF64()) {
    Num wide = a.extend();
    magnitude = expOf(logOf(wide) * y.extend()).truncate();
  } else {
    // The exponent needs more digits than f64 has: log(a) = high + low.
    LogParts p = logParts(a);
    Num whole = p.e * kLn2High64;
    Num tail = logTail(p.f);
    Pair first = twoSum(whole, p.f);
    Num rest = first.low + fma(p.e, x.constant(kLn2Low64), -tail);
    Num high = first.high + rest, low = (first.high - high) + rest;
    high = logSpecials(a, high);
    Num product = high * y;
    Num error = fma(high, y, -product) + low * y;
    Num e = expOf(product);
    magnitude = select(abs(error) < 1.0, fma(e, error, e), e);
    magnitude = select(e == kInf, e, magnitude);
  }
  Bool negative = x < 0.0;
  Num result = select(isOdd(y), copySign(magnitude, x), magnitude);
  // A negative number to a broken power; infinities and zero are fine.
  Bool broken = negative & (truncate(y) != y) & (a < kInf) & (abs(y) < kInf);
  result = select(broken, x.constant(kNaN), result);
  return select((y == 0.0) | (x == 1.0) | ((x == -1.0) & (abs(y) == kInf)),
                x.constant(1), result);
}

Num functions::rsqrtOf(const Num &x) { return x.constant(1) / sqrt(x); }

Num functions::roundOf(const Num &x) {
  // Half away from zero.
  Num whole = truncate(x);
  Num rest = abs(x - whole);
  return copySign(select(rest >= 0.5, abs(whole) + 1, abs(whole)), x);
}

Num functions::fmodOf(const Num &x, const Num &y) {
  Num a = x.isF64() ? abs(x) : abs(x).extend(),
      d = x.isF64() ? abs(y) : abs(y).extend();
  Int mask(a, ~((int64_t(1) << 27) - 1)); // 26 bits of the quotient
  Num r = a;
  int steps = x.isF64() ? 8 : 11;
  for (int i = 0; i <= steps; ++i) {
    Num q = truncate((r / d).bits().maskedFloat(mask));
    r = fma(-q, d, r);
    // The quotient's rounding may have gone one too far.
    r = select(r < 0.0, r + d, r);
  }
  r = select(r >= d, r - d, r);
  Num result = copySign(x.isF64() ? r : r.truncate(), x);
  result = select((abs(y) == kInf) & (abs(x) < kInf), x, result);
  return select((y == 0.0) | (abs(x) == kInf) | y.isNaN(), x.constant(kNaN),
                result);
}
