// Exponentials, hyperbolic functions, the error function.
#include "codegen/math/Functions.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::functions;

/// Adding 1.5 * 2^mantissa rounds to an integer that then stands in the low
/// bits.
static double roundingShift(const Num &x) {
  return x.isF64() ? 0x1.8p52 : 0x1.8p23;
}

ExpParts functions::expParts(const Num &x) {
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

Num functions::expOf(const Num &x) {
  ExpParts p = expParts(x);
  // Straight into the exponent field: right wherever the result is a normal
  // number.
  Int bits = ((p.r + p.tail) + 1).bits() + (p.exponent << x.mantissaBits());
  double top = x.isF64() ? 0x1.62e42fefa39efp+9 : 0x1.62e42ep+6;
  double bottom = x.isF64() ? -0x1.6232bdd7abcd2p+9 : -0x1.5d589ep+6;
  Num result = select(x < bottom, x.constant(0), bits.asFloat());
  return select(x.exceeds(top), x + kInf, result); // NaN too
}

/// Where the result is neither infinite nor -1, and x is no tiny number.
static Num expm1Within(const Num &x) {
  ExpParts p = expParts(x);
  // With s = 2^(n - 1): 2 (s (r + tail) + (s - 1/2)), which does not overflow
  // early.
  Int bias = Int(x, x.isF64() ? 1022 : 126);
  Num s = ((p.exponent + bias) << x.mantissaBits()).asFloat();
  return fma(p.r + p.tail, s, s - 0.5) * 2;
}

Num functions::expm1Of(const Num &x) {
  Num result = expm1Within(x);
  double top = x.isF64() ? 0x1.62e42fefa39efp+9 : 0x1.62e42ep+6;
  double bottom = x.isF64() ? -38 : -18;
  result = select(x < bottom, x.constant(-1), result);
  // Keeps tiny arguments and the sign of zero.
  result = select(abs(x) < (x.isF64() ? 0x1p-54 : 0x1p-25), x, result);
  return select(x > top, x.constant(kInf), result);
}

Num functions::exp2Of(const Num &x) {
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

Num functions::tanhOf(const Num &x) {
  double saturated = x.isF64() ? 20 : 9.1;
  // A NaN fails both comparisons and stays.
  Num c = select(x < -saturated, x.constant(-saturated), x);
  c = select(c > saturated, x.constant(saturated), c);
  Num e = expm1Within(c * 2);
  return select(abs(x) < (x.isF64() ? 0x1p-27 : 0x1p-12), x, e / (e + 2));
}

/// exp(|x|) / 2 without early overflow, and its reciprocal's quarter.
Num functions::sinhOf(const Num &x) {
  Num a = abs(x);
  Num e = expm1Of(a);
  Num small = (e + e / (e + 1)) * 0.5;
  Num h = expOf(a * 0.5);
  Num large = (h * 0.5) * h;
  Num result = select(a > (x.isF64() ? 40.0 : 20.0), large, small);
  return copySign(result, x);
}

Num functions::coshOf(const Num &x) {
  Num a = abs(x);
  Num e = expOf(a);
  Num small = fma(e, x.constant(0.5), x.constant(0.5) / e);
  Num h = expOf(a * 0.5);
  Num large = (h * 0.5) * h;
  return select(a > (x.isF64() ? 40.0 : 20.0), large, small);
}

/// erf(x) / x - 1 at t = x^2 <= 1.
static Num erfSlope(const Num &t) {
  return t.isF64()
             ? polynomial(t,
                          {0.12837916709551257, -3.76126389031837524e-1,
                           1.12837916709551197e-1, -2.68661706451297144e-2,
                           5.22397762542175092e-3, -8.54832702182271159e-4,
                           1.20553328976981085e-4, -1.49256474071593807e-5,
                           1.6462042063284172e-6, -1.63645934675439232e-7,
                           1.47919288764855047e-8, -1.21616123573426587e-9,
                           8.69835860131146601e-11, -4.21384472742377196e-12})
             : polynomial(t, {0.12837916583402912, -3.76126264625195611e-1,
                              1.12835911868919325e-1, -2.68540132527376894e-2,
                              5.18861226583412815e-3, -8.01183385344349507e-4,
                              7.85644776615642468e-5});
}

Num functions::erfOf(const Num &x) {
  Num a = abs(x), t = x * x;
  Num small = fma(x, erfSlope(t), x), large;
  double saturated;
  if (x.isF64()) {
    saturated = 6;
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
    saturated = 4;
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
  return select(a > 1, large, small);
}

/// erfc(x) = exp(-x^2) P(s) / (1 + 2 x), s = (x - k) / (x + k), of x >= 1/2 as
/// far as it is a number that is not zero.
static Num erfcTail(const Num &x) {
  double k = x.isF64() ? 4 : 2;
  Num s = (x - k) / (x + k);
  Num p =
      x.isF64()
          ? polynomial(s, {1.23299511862555251,     -1.39621116840562488e-1,
                           1.53796521026198396e-2,  6.80970542546888796e-2,
                           -1.01039066036309835e-1, 9.37328349985164877e-2,
                           -6.63303658120959538e-2, 3.71675155341309218e-2,
                           -1.61977340591829611e-2, 5.03197001509506086e-3,
                           -7.57773279511181521e-4, -1.9925694408742888e-4,
                           1.50621640998368569e-4,  -2.43981402296442075e-5,
                           -1.12219590596843497e-5, 5.70669642600456278e-6,
                           2.93766779570821312e-7,  -8.19808644345064571e-7,
                           7.45423121789380962e-8,  1.03506018609450645e-7,
                           -1.77449815152946474e-8, -9.74079805586018278e-9,
                           1.75256513695070168e-9})
          : polynomial(s, {1.27697838521364697, -9.27637673401348186e-2,
                           -1.66030854895697755e-1, 1.64048886480532695e-1,
                           -5.42107750796419037e-2, -8.00731994561128558e-3,
                           8.65673246300642377e-3, 1.15320535915241619e-3,
                           -1.26179775724835433e-3, -2.34529407502976691e-4});
  // What rounding the square loses would be many units of the exponential.
  Num square = x * x, lost = fma(x, x, -square);
  ExpParts e = expParts(-square);
  Num above1 = e.r + e.tail;
  above1 = fma(-(above1 + 1), lost, above1);
  Num scaled = p / fma(x, x.constant(2), x.constant(1));
  Num factor = fma(above1, scaled, scaled);
  // By two powers of two, since one alone may be no normal number.
  Int whole = e.exponent - x.constant(roundingShift(x)).bits();
  Int first = whole.shiftRightSigned(1), second = whole - first;
  Int bias = Int(x, x.isF64() ? 1023 : 127);
  auto power = [&](const Int &n) {
    return ((n + bias) << x.mantissaBits()).asFloat();
  };
  return factor * power(first) * power(second);
}

Num functions::erfcOf(const Num &x) {
  Num a = abs(x);
  Num small = fma(-x, erfSlope(x * x), x.constant(1) - x);
  Num tail = select(a > (x.isF64() ? 27.3 : 10.1), x.constant(0), erfcTail(a));
  Num large = select(x < 0, x.constant(2) - tail, tail);
  return select(a > 0.5, large, small);
}
