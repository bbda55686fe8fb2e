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

Num functions::expm1Of(const Num &x) {
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
  Num c = select(x > saturated, x.constant(saturated),
                 select(x < -saturated, x.constant(-saturated), x));
  Num e = expm1Of(c * 2);
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

Num functions::erfOf(const Num &x) {
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
