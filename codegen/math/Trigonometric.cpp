// Trigonometric functions and their inverses.
#include "codegen/math/Functions.h"
#include <cmath>

using namespace mlir;
using namespace charonia;
using namespace charonia::functions;

/// x = n pi/2 + r; the result has the type of x.
struct Quadrant {
  Num r;
  Int n; ///< Bits, of which the lowest two count.
};

/// a - n c for a constant c given in three parts.
static Pair subtractMultiple(const Pair &a, const Num &n, double c0, double c1,
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

/// 2/pi for some magnitudes of f32: 2^shift times as much, without whole turns,
/// in two parts. From `from` on, x is a multiple of 2^shift.
struct InversePio2 {
  double from;
  int shift;
  double high, low;
};
constexpr InversePio2 kInversePio2[] = {
    {0, 0, 0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55},
    {0x1p48, 25, -0x1.236377d5ac07bp+0, -0x1.505c1596447e5p-56},
    {0x1p71, 48, 0x1.529fc2757d1f5p-4, 0x1.a6ee06db14acdp-59},
    {0x1p94, 71, -0x1.ec54170565912p+0, 0x1.b6c52b3278872p-58},
    {0x1p117, 94, 0x1.f534ddc0db629p-2, 0x1.664f10e4107f9p-56}};

/// Rounded to whole numbers, for |x| < 2^51; the lowest bits of the sum are
/// those of the number.
constexpr double kToWhole = 0x1.8p52;

/// Turns are counted first, as whole ones fall away of each factor. y is below
/// 2^48 and low below 2^-54: the rest is hardly over half a turn, and its error
/// of 2^-59 is small beside 2^-30, than which no x comes closer to a zero.
static Quadrant quadrantOfSingle(const Num &x) {
  Num wide = x.extend(), size = abs(wide), whole = wide.constant(kToWhole);
  Num y = wide, high = wide.constant(kInversePio2[0].high),
      low = wide.constant(kInversePio2[0].low);
  for (const InversePio2 &part : llvm::ArrayRef(kInversePio2).drop_front()) {
    Bool reached = size >= part.from;
    y = select(reached, wide * std::ldexp(1.0, -part.shift), y);
    high = select(reached, wide.constant(part.high), high);
    low = select(reached, wide.constant(part.low), low);
  }
  Num product = y * high, rest = fma(y, low, fma(y, high, -product));
  Num shifted = fma(y, high, whole);
  Num turn = (product - (shifted - whole)) + rest;
  return {(turn * kPio2[0]).truncate(), shifted.bits().truncateTo32(x)};
}

static Quadrant quadrant(const Num &x) {
  if (!x.isF64())
    return quadrantOfSingle(x);
  Num shifted = fma(x, x.constant(1 / kPio2[0]), x.constant(kToWhole));
  Pair rest = subtractMultiple({x, x.constant(0)}, shifted - kToWhole, kPio2[0],
                               kPio2[1], kPio2[2]);
  // From 2^51 on numbers lie further apart than half a turn, and so would what
  // is left of one: any angle is as right as another.
  return {select(abs(x) < 0x1p51, rest.high + rest.low, x.constant(0)),
          shifted.bits()};
}

static Num sinPolynomial(const Num &r) {
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

static Num cosPolynomial(const Num &r) {
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

static Num finiteOnly(const Num &x, const Num &result) {
  return select(abs(x) < kInf, result, x.constant(kNaN));
}

Num functions::sinShifted(const Num &x, int64_t quarterTurns) {
  Quadrant q = quadrant(x);
  Int n = q.n + Int(x, quarterTurns);
  Num s = sinPolynomial(q.r), c = cosPolynomial(q.r);
  Num value = select((n & Int(x, 1)).isZero(), s, c);
  Num result = select((n & Int(x, 2)).isZero(), value, -value);
  if (quarterTurns == 0) // keeps the sign of zero
    result = select(abs(x) < (x.isF64() ? 0x1p-27 : 0x1p-13), x, result);
  return finiteOnly(x, result);
}

Num functions::tanOf(const Num &x) {
  Quadrant q = quadrant(x);
  Num s = sinPolynomial(q.r), c = cosPolynomial(q.r);
  Bool even = (q.n & Int(x, 1)).isZero();
  Num result = select(even, s, -c) / select(even, c, s);
  result = select(abs(x) < (x.isF64() ? 0x1p-27 : 0x1p-13), x, result);
  return finiteOnly(x, result);
}

Num functions::atanOf(const Num &x) {
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
static Num asinTail(const Num &t) {
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

Num functions::asinOf(const Num &x) {
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

Num functions::acosOf(const Num &x) {
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
