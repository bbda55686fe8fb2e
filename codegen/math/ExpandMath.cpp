#include "codegen/math/ExpandMath.h"
#include "codegen/math/Expression.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace charonia;

// Coefficients come from scripts/fit_polynomials.py.

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0.69314718055994530942;

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

/// exp(x) = 2^n exp(r), |r| <= ln(2)/2.
struct ExpParts {
  Num r, tail;  ///< exp(r) = 1 + r + tail
  Int exponent; ///< Bits whose low ones hold n, for shifting into the exponent
                ///< field.
  Num n;
};

/// Adding 1.5 * 2^mantissa rounds to an integer that then stands in the low
/// bits.
double roundingShift(const Num &x) { return x.isF64() ? 0x1.8p52 : 0x1.8p23; }

ExpParts expParts(const Num &x) {
  ExpParts p;
  double shift = roundingShift(x);
  Num shifted = fma(x, x.constant(1 / kLn2), x.constant(shift));
  p.n = shifted - shift;
  // ln(2) in two parts, the first of which times n is exact.
  p.r = x.isF64() ? fma(p.n, x.constant(-0x1.62e42fefa39efp-1), x)
                  : fma(p.n, x.constant(-0x1.62e400p-1), x);
  p.r = x.isF64() ? fma(p.n, x.constant(-0x1.abc9e3b39803fp-56), p.r)
                  : fma(p.n, x.constant(-0x1.7f7d1cp-20), p.r);
  Num q = x.isF64()
              ? polynomial(p.r, {5.0e-1, 1.6666666666666684e-1,
                                 4.16666666666667242e-2, 8.33333333331661839e-3,
                                 1.3888888888858557e-3, 1.98412698973619287e-4,
                                 2.48015873735699943e-5, 2.75572339292409847e-6,
                                 2.75572334735170279e-7, 2.5112348604125086e-8,
                                 2.0926915511638681e-9})
              : polynomial(p.r, {5.00000009630694696e-1, 1.66665183034943713e-1,
                                 4.16662024384420366e-2, 8.36895388003079284e-3,
                                 1.39507017302658148e-3});
  p.tail = q * (p.r * p.r);
  p.exponent = shifted.bits();
  return p;
}

Num expOf(const Num &x) {
  ExpParts p = expParts(x);
  // Straight into the exponent field: right wherever the result is a normal
  // number.
  Int bits = ((p.r + p.tail) + 1).bits() + (p.exponent << x.mantissaBits());
  double top = x.isF64() ? 0x1.62e42fefa39efp+9 : 0x1.62e42ep+6;
  double bottom = x.isF64() ? -0x1.6232bdd7abcd2p+9 : -0x1.5d589ep+6;
  Num result = select(x < bottom, x.constant(0), bits.asFloat());
  return select(x.exceeds(top), x + kInf, result); // NaN too
}

Num expm1Of(const Num &x) {
  ExpParts p = expParts(x);
  // With s = 2^(n - 1): 2 (s (r + tail) + (s - 1/2)), which does not overflow
  // early.
  Int bias = Int(x, x.isF64() ? 1022 : 126);
  Num s = ((p.exponent + bias) << x.mantissaBits()).asFloat();
  Num result = fma(p.r + p.tail, s, s - 0.5) * 2;
  double top = x.isF64() ? 0x1.62e42fefa39efp+9 : 0x1.62e42ep+6;
  double bottom = x.isF64() ? -38 : -18;
  result = select(x < bottom, x.constant(-1), result);
  // Keeps tiny arguments and the sign of zero.
  result = select(abs(x) < (x.isF64() ? 0x1p-54 : 0x1p-25), x, result);
  return select(x > top, x.constant(kInf), result);
}

Num exp2Of(const Num &x) {
  // The integer part is exact, the rest is small.
  Num n = roundEven(x);
  Num r = (x - n);
  double bottom = x.isF64() ? -1022 : -126;
  // exp(r ln 2) has |r ln 2| <= ln(2)/2, so its own n is zero.
  Num e = expOf(r * kLn2);
  double shift = roundingShift(x);
  Num result = (e.bits() + ((n + shift).bits() << x.mantissaBits())).asFloat();
  result = select(x < bottom, x.constant(0), result);
  return select(x.exceeds(x.isF64() ? 0x1.fffffffffffffp+9 : 0x1.fffffep+6),
                x + kInf, result);
}

Num tanhOf(const Num &x) {
  double saturated = x.isF64() ? 20 : 9.1;
  // A NaN fails both comparisons and stays.
  Num c = select(x > saturated, x.constant(saturated),
                 select(x < -saturated, x.constant(-saturated), x));
  Num e = expm1Of(c * 2);
  return select(abs(x) < (x.isF64() ? 0x1p-27 : 0x1p-12), x, e / (e + 2));
}

/// exp(|x|) / 2 without early overflow, and its reciprocal's quarter.
Num sinhOf(const Num &x) {
  Num a = abs(x);
  Num e = expm1Of(a);
  Num small = (e + e / (e + 1)) * 0.5;
  Num h = expOf(a * 0.5);
  Num large = (h * 0.5) * h;
  Num result = select(a > (x.isF64() ? 40.0 : 20.0), large, small);
  return copySign(result, x);
}

Num coshOf(const Num &x) {
  Num a = abs(x);
  Num e = expOf(a);
  Num small = fma(e, x.constant(0.5), x.constant(0.5) / e);
  Num h = expOf(a * 0.5);
  Num large = (h * 0.5) * h;
  return select(a > (x.isF64() ? 40.0 : 20.0), large, small);
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

struct LogParts {
  Num f, e; ///< x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)
};

LogParts logParts(const Num &x) {
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

Num logSpecials(const Num &x, const Num &result) {
  Num r = select(x == kInf, x, result);
  r = select(x == 0.0, x.constant(-kInf), r);
  return select(x < 0.0, x.constant(kNaN), select(x.isNaN(), x, r));
}

/// log(1 + f) = f - tail.
Num logTail(const Num &f) {
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
constexpr double kLn2High64 = 0x1.62e42fefa3800p-1,
                 kLn2Low64 = 0x1.ef35793c76730p-45;

Num logNormal(const Num &x) {
  LogParts p = logParts(x);
  double high = x.isF64() ? kLn2High64 : kLn2High32,
         low = x.isF64() ? kLn2Low64 : kLn2Low32;
  return fma(p.e, x.constant(high),
             p.f - fma(p.e, x.constant(-low), logTail(p.f)));
}

Num logOf(const Num &x) { return logSpecials(x, logNormal(x)); }

/// log(x) / log(base) for the bases 2 and 10: reciprocal of log(base) in two
/// parts.
Num logBase(const Num &x, double high, double low, double exponentHigh,
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

Num log2Of(const Num &x) {
  return x.isF64()
             ? logBase(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1, 0)
             : logBase(x, 0x1.715476p+0, 0x1.4ae0cp-26, 1, 0);
}

Num log10Of(const Num &x) {
  return x.isF64() ? logBase(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57,
                             0x1.34413509f7800p-2, 0x1.fef311f12b358p-46)
                   : logBase(x, 0x1.bcb7b2p-2, -0x1.5b235ep-27, 0x1.344000p-2,
                             0x1.3509f8p-18);
}

Num log1pOf(const Num &x) {
  // The rounding of 1 + x is put back to first order.
  Num u = x + 1;
  Num lost = select(abs(x) < 1.0, x - (u - 1), Num(x.constant(1)) - (u - x));
  Num result = logNormal(u) + lost / u;
  result = select(abs(x) < (x.isF64() ? 0x1p-54 : 0x1p-25), x, result);
  result = select(x == kInf, x, result);
  result = select(x == -1.0, x.constant(-kInf), result);
  return select(x < -1.0, x.constant(kNaN), select(x.isNaN(), x, result));
}

Num asinhOf(const Num &x) {
  Num a = abs(x), q = a * a;
  Num small = log1pOf(a + q / (sqrt(q + 1) + 1));
  Num large = logOf(a) + kLn2;
  return copySign(select(a > (x.isF64() ? 0x1p30 : 0x1p15), large, small), x);
}

Num acoshOf(const Num &x) {
  Num t = x - 1;
  Num small = log1pOf(t + sqrt(t * (t + 2)));
  Num large = logOf(x) + kLn2;
  Num result = select(x > (x.isF64() ? 0x1p30 : 0x1p15), large, small);
  return select(x < 1.0, x.constant(kNaN), result);
}

Num atanhOf(const Num &x) {
  Num a = abs(x);
  return copySign(log1pOf((a * 2) / (Num(x.constant(1)) - a)) * 0.5, x);
}

//===----------------------------------------------------------------------===//
// Error function
//===----------------------------------------------------------------------===//

Num erfOf(const Num &x) {
  Num a = abs(x), t = x * x;
  Num small, large;
  double border, saturated;
  if (x.isF64()) {
    border = 1, saturated = 6;
    small =
        fma(x,
            polynomial(t, {0.12837916709551257, -3.76126389031837524e-1,
                           1.12837916709551197e-1, -2.68661706451297144e-2,
                           5.22397762542175092e-3, -8.54832702182271159e-4,
                           1.20553328976981085e-4, -1.49256474071593807e-5,
                           1.6462042063284172e-6, -1.63645934675439232e-7,
                           1.47919288764855047e-8, -1.21616123573426587e-9,
                           8.69835860131146601e-11, -4.21384472742377196e-12}),
            x);
    Num s = (a - 3) / (a + 3);
    Num p = polynomial(s, {1.7900115118138995e-1, -3.26233560043037216e-1,
                           2.45603801712331637e-1, -1.50115936500767266e-1,
                           7.16658371979099925e-2, -2.43924993215620024e-2,
                           4.26913630453588227e-3, 7.07746357266341107e-4,
                           -5.97061193057744769e-4, 4.52650303399440992e-5,
                           6.41119213614960957e-5, -1.26617576032802153e-5,
                           -7.49154673553355007e-6, 2.94473278090943144e-6,
                           2.19832217825615506e-6, 3.85339974714324801e-7});
    large = Num(x.constant(1)) - expOf(-t) * p;
  } else {
    border = 1, saturated = 4;
    small = fma(x,
                polynomial(t, {0.12837916583402912, -3.76126264625195611e-1,
                               1.12835911868919325e-1, -2.68540132527376894e-2,
                               5.18861226583412815e-3, -8.01183385344349507e-4,
                               7.85644776615642468e-5}),
                x);
    Num g = polynomial(a, {-1.88034742612837747e-4, 1.12957839965509255,
                           6.33219939577243752e-1, 1.08418529422352468e-1,
                           -2.52082276610520395e-2, 4.20455148568639155e-3,
                           -4.41334354335747105e-4, 2.16866843380311993e-5});
    // Within (-17, 0): neither end of exp needs care.
    ExpParts p = expParts(-g);
    Int bits = ((p.r + p.tail) + 1).bits() + (p.exponent << x.mantissaBits());
    large = Num(x.constant(1)) - bits.asFloat();
  }
  large = copySign(select(a > saturated, x.constant(1), large), x);
  return select(a > border, large, small);
}

//===----------------------------------------------------------------------===//
// Trigonometric functions
//===----------------------------------------------------------------------===//

/// x = n pi/2 + r; the result has the type of x, the reduction happens in f64.
struct Quadrant {
  Num r;
  Int n; ///< Bits, of which the lowest two count.
};

/// A sum of two numbers, the second of which is the rounding of the first.
struct Pair {
  Num high, low;
};

Pair twoSum(const Num &a, const Num &b) {
  Num s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

/// a - n c for a constant c given in three parts.
Pair subtractMultiple(const Pair &a, const Num &n, double c0, double c1,
                      double c2) {
  auto minus = [&](const Pair &from, double c) {
    Num product = n * c, error = fma(n, n.constant(c), -product);
    Pair sum = twoSum(from.high, -product);
    return twoSum(sum.high, sum.low + (from.low - error));
  };
  return minus(minus(minus(a, c0), c1), c2);
}

constexpr double kPio2[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                             -0x1.f1976b7ed8fbcp-110};

Quadrant quadrant(const Num &x) {
  Num wide = x.isF64() ? x : x.extend();
  Pair rest{wide, wide.constant(0)};
  if (!x.isF64())
    // Arguments up to 2^128 in steps that take 50 bits off each time. The first
    // leaves an absolute error of 2^-30.
    for (double scale : {0x1p77, 0x1p27}) {
      Num n = roundEven(rest.high * (1 / (kPio2[0] * scale)));
      rest = subtractMultiple(rest, n, kPio2[0] * scale, kPio2[1] * scale,
                              kPio2[2] * scale);
    }
  Num shifted =
      fma(rest.high, wide.constant(1 / kPio2[0]), wide.constant(0x1.8p52));
  Num n = shifted - 0x1.8p52;
  rest = subtractMultiple(rest, n, kPio2[0], kPio2[1], kPio2[2]);
  Quadrant q;
  if (x.isF64()) {
    q.r = rest.high + rest.low;
    q.n = shifted.bits();
  } else {
    q.r = rest.high.truncate();
    q.n = shifted.bits().truncateTo32(x);
  }
  return q;
}

Num sinPolynomial(const Num &r) {
  Num t = r * r;
  Num p =
      r.isF64()
          ? polynomial(t, {-1.66666666666666666e-1, 8.3333333333333227e-3,
                           -1.98412698412549889e-4, 2.75573192141486316e-6,
                           -2.505210490047532e-8, 1.60583651846478849e-10,
                           -7.57862506199791439e-13})
          : polynomial(t, {-1.66666666414284556e-1, 8.33332936248699755e-3,
                           -1.98393271985437327e-4, 2.71823781320805224e-6});
  return fma(p, t * r, r);
}

Num cosPolynomial(const Num &r) {
  Num t = r * r;
  Num p = r.isF64()
              ? polynomial(t, {4.16666666666666666e-2, -1.3888888888888874e-3,
                               2.48015873015713814e-5, -2.75573192153257288e-7,
                               2.0876754354673225e-9, -1.14702919411957923e-11,
                               4.73804832820014551e-14})
              : polynomial(t, {4.1666646749887027e-2, -1.38873615480346396e-3,
                               2.44377402171684635e-5});
  Num half = t * 0.5, w = r.constant(1) - half;
  // What 1 - t/2 lost is added back.
  return w + fma(p, t * t, (r.constant(1) - w) - half);
}

Num finiteOnly(const Num &x, const Num &result) {
  return select(abs(x) < kInf, result, x.constant(kNaN));
}

/// sin(x + quarterTurns * pi/2).
Num sinShifted(const Num &x, int64_t quarterTurns) {
  Quadrant q = quadrant(x);
  Int n = q.n + Int(x, quarterTurns);
  Num s = sinPolynomial(q.r), c = cosPolynomial(q.r);
  Num value = select((n & Int(x, 1)).isZero(), s, c);
  Num result = select((n & Int(x, 2)).isZero(), value, -value);
  if (quarterTurns == 0) // keeps the sign of zero
    result = select(abs(x) < (x.isF64() ? 0x1p-27 : 0x1p-13), x, result);
  return finiteOnly(x, result);
}

Num tanOf(const Num &x) {
  Quadrant q = quadrant(x);
  Num s = sinPolynomial(q.r), c = cosPolynomial(q.r);
  Bool even = (q.n & Int(x, 1)).isZero();
  Num result = select(even, s, -c) / select(even, c, s);
  result = select(abs(x) < (x.isF64() ? 0x1p-27 : 0x1p-13), x, result);
  return finiteOnly(x, result);
}

Num atanOf(const Num &x) {
  Num a = abs(x);
  Bool large = a > 1.0;
  Num r = select(large, x.constant(-1) / a, a), t = r * r;
  Num p = x.isF64()
              ? polynomial(t, {-3.33333333333333256e-1, 1.99999999999982874e-1,
                               -1.42857142855802844e-1, 1.11111111057330703e-1,
                               -9.09090896016156976e-2, 7.69230557423569193e-2,
                               -6.66664234977435347e-2, 5.88214644669705087e-2,
                               -5.26181991636779913e-2, 4.75513317567187112e-2,
                               -4.32056808213247706e-2, 3.91146120902585586e-2,
                               -3.46882307320614175e-2, 2.93381393353856232e-2,
                               -2.28515081411010397e-2, 1.57598720178490085e-2,
                               -9.23571672073078163e-3, 4.40169826326576556e-3,
                               -1.62009313518922629e-3, 4.28698464169788467e-4,
                               -7.2191057372634774e-5,  5.78926311304293221e-6})
              : polynomial(t, {-3.33333018614574413e-1, 1.99986385262324961e-1,
                               -1.42652447691648987e-1, 1.09575743497857742e-1,
                               -8.41945658695448596e-2, 5.82345430005230939e-2,
                               -3.14557210753143656e-2, 1.10644619636739343e-2,
                               -1.8272193769075158e-3});
  Num base = select(large, x.constant(kPio2[0]), x.constant(0));
  double low = x.isF64() ? kPio2[1] : -0x1.777a5cp-25;
  Num correction = select(large, x.constant(low), x.constant(0));
  return copySign(base + (r + fma(p, t * r, correction)), x);
}

/// asin(x) = x + x * tail(x^2) for x^2 <= 1/4.
Num asinTail(const Num &t) {
  return t *
         (t.isF64()
              ? polynomial(t, {1.66666666666666595e-1, 7.50000000000255938e-2,
                               4.46428571396582261e-2, 3.03819446463266957e-2,
                               2.23721515488568089e-2, 1.73529463692131344e-2,
                               1.3961859310906311e-2, 1.15861083403813451e-2,
                               9.4810945648299691e-3, 1.00236437676001458e-2,
                               6.35504996962461431e-4, 2.49290783194936962e-2,
                               -2.628261111181531e-2, 3.37208509341633528e-2})
              : polynomial(t,
                           {1.66666598535618435e-1, 7.50051209394638222e-2,
                            4.45154784725655427e-2, 3.18197591448557783e-2,
                            1.43940216365953353e-2, 3.75778714403414354e-2}));
}

Num asinOf(const Num &x) {
  // asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2))
  Num a = abs(x);
  Bool large = a > 0.5;
  Num half = (x.constant(1) - a) * 0.5;
  Num t = select(large, half, a * a);
  Num base = select(large, sqrt(half), a);
  Num value = fma(base, asinTail(t), base);
  double low = x.isF64() ? kPio2[1] : -0x1.777a5cp-25;
  Num reflected = x.constant(kPio2[0]) - (value * 2 - low);
  return copySign(select(large, reflected, value), x);
}

Num acosOf(const Num &x) {
  Num a = abs(x);
  Bool large = a > 0.5;
  Num half = (x.constant(1) - a) * 0.5;
  Num t = select(large, half, a * a);
  Num base = select(large, sqrt(half), x);
  Num value = fma(base, asinTail(t), base);
  double low = x.isF64() ? kPio2[1] : -0x1.777a5cp-25;
  Num middle = x.constant(kPio2[0]) - (value - low);
  Num twice = value * 2;
  Num left = x.constant(2 * kPio2[0]) - (twice - 2 * low);
  return select(large, select(x < 0.0, left, twice), middle);
}

//===----------------------------------------------------------------------===//
// Powers, remainders, rounding
//===----------------------------------------------------------------------===//

/// Truth of "y is an odd integer", for the sign of a power.
Bool isOdd(const Num &y) {
  Num half = y * 0.5;
  return (truncate(y) == y) & (truncate(half) != half);
}

Num powOf(const Num &x, const Num &y) {
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

Num rsqrtOf(const Num &x) { return x.constant(1) / sqrt(x); }

Num roundOf(const Num &x) {
  // Half away from zero.
  Num whole = truncate(x);
  Num rest = abs(x - whole);
  return copySign(select(rest >= 0.5, abs(whole) + 1, abs(whole)), x);
}

/// Each step subtracts a multiple of y whose factor has few enough bits for the
/// difference to be exact.
Num fmodOf(const Num &x, const Num &y) {
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

//===----------------------------------------------------------------------===//
// The rewrite
//===----------------------------------------------------------------------===//

/// x^c for constants that need no logarithm.
std::optional<Num> powConstant(const Num &x, Value exponent) {
  FloatAttr scalar;
  DenseFPElementsAttr dense;
  double c;
  if (matchPattern(exponent, m_Constant(&scalar)))
    c = scalar.getValueAsDouble();
  else if (matchPattern(exponent, m_Constant(&dense)) && dense.isSplat())
    c = dense.getSplatValue<FloatAttr>().getValueAsDouble();
  else
    return std::nullopt;
  if (c == 1)
    return x;
  if (c == 2)
    return x * x;
  if (c == 3)
    return x * x * x;
  if (c == 4)
    return (x * x) * (x * x);
  if (c == -1)
    return x.constant(1) / x;
  return std::nullopt;
}

struct Expander {
  const ExpandMathOptions &options;

  std::optional<Num> expand(Operation *op, ArrayRef<Num> v) {
    const Num &x = v[0];
    bool f32 = !x.isF64();
    return llvm::TypeSwitch<Operation *, std::optional<Num>>(op)
        .Case<math::ExpOp>([&](auto) {
          return options.exp2 && f32 ? x.unary<math::Exp2Op>(x * (1 / kLn2))
                                     : expOf(x);
        })
        .Case<math::Exp2Op>([&](auto) -> std::optional<Num> {
          if (options.exp2 && f32)
            return std::nullopt;
          return exp2Of(x);
        })
        .Case<math::ExpM1Op>([&](auto) { return expm1Of(x); })
        .Case<math::LogOp>([&](auto) {
          return options.log2 && f32 ? x.unary<math::Log2Op>(x) * kLn2
                                     : logOf(x);
        })
        .Case<math::Log2Op>([&](auto) -> std::optional<Num> {
          if (options.log2 && f32)
            return std::nullopt;
          return log2Of(x);
        })
        .Case<math::Log10Op>([&](auto) { return log10Of(x); })
        .Case<math::Log1pOp>([&](auto) { return log1pOf(x); })
        .Case<math::TanhOp>([&](auto) -> std::optional<Num> {
          if (options.tanh && f32)
            return std::nullopt;
          return tanhOf(x);
        })
        .Case<math::RsqrtOp>([&](auto) -> std::optional<Num> {
          if (options.rsqrt && f32)
            return std::nullopt;
          return rsqrtOf(x);
        })
        .Case<math::ErfOp>([&](auto) { return erfOf(x); })
        .Case<math::SinOp>([&](auto) { return sinShifted(x, 0); })
        .Case<math::CosOp>([&](auto) { return sinShifted(x, 1); })
        .Case<math::TanOp>([&](auto) { return tanOf(x); })
        .Case<math::AsinOp>([&](auto) { return asinOf(x); })
        .Case<math::AcosOp>([&](auto) { return acosOf(x); })
        .Case<math::AtanOp>([&](auto) { return atanOf(x); })
        .Case<math::SinhOp>([&](auto) { return sinhOf(x); })
        .Case<math::CoshOp>([&](auto) { return coshOf(x); })
        .Case<math::AsinhOp>([&](auto) { return asinhOf(x); })
        .Case<math::AcoshOp>([&](auto) { return acoshOf(x); })
        .Case<math::AtanhOp>([&](auto) { return atanhOf(x); })
        .Case<math::PowFOp>([&](auto op) {
          std::optional<Num> simple = powConstant(x, op.getRhs());
          return simple ? simple : powOf(x, v[1]);
        })
        .Case<math::RoundOp>([&](auto) { return roundOf(x); })
        .Case<arith::RemFOp>([&](auto) { return fmodOf(x, v[1]); })
        .Default([](auto) { return std::nullopt; });
  }
};

} // namespace

void charonia::expandMath(Operation *root, const ExpandMathOptions &options) {
  SmallVector<Operation *> work;
  root->walk([&](Operation *op) {
    if ((isa<math::MathDialect>(op->getDialect()) || isa<arith::RemFOp>(op)) &&
        op->getNumResults() == 1) {
      Type element = getElementTypeOrSelf(op->getResult(0).getType());
      if ((element.isF32() || element.isF64()) &&
          llvm::all_of(op->getOperandTypes(), [&](Type t) {
            return getElementTypeOrSelf(t) == element;
          }))
        work.push_back(op);
    }
  });
  Expander expander{options};
  for (Operation *op : work) {
    OpBuilder builder(op);
    Expressions expressions(builder, op->getLoc(), op->getResult(0).getType());
    SmallVector<Num> operands;
    for (Value operand : op->getOperands())
      operands.push_back(expressions.number(operand));
    if (std::optional<Num> result = expander.expand(op, operands)) {
      op->getResult(0).replaceAllUsesWith(result->value());
      op->erase();
    }
  }
}
