// Floating-point formats in registers: how their bits are read and rounded.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_FORMATS_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_FORMATS_H

#include "mlir/IR/BuiltinTypes.h"
#include "runtime/engine/Half.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace charonia::interpreter {

using engine::bfloatToFloat;
using engine::floatToBfloat;
using engine::floatToHalf;
using engine::halfToFloat;

/// A double as a float such that rounding that to fewer bits is right: rounded
/// to odd.
inline float roundToOdd(double value) {
  float near = float(value);
  if (double(near) == value || std::isnan(value) || std::isinf(near))
    return near;
  uint32_t bits = std::bit_cast<uint32_t>(near);
  if (std::fabs(double(near)) > std::fabs(value))
    --bits; // Truncated.
  return std::bit_cast<float>(bits | 1);
}

struct Half {
  using Bits = uint32_t;
  using Number = float;
  static float read(uint32_t bits) { return halfToFloat(bits); }
  static uint32_t round(float value) { return floatToHalf(value); }
  static uint32_t round(double value) { return round(roundToOdd(value)); }
};
struct Bfloat {
  using Bits = uint32_t;
  using Number = float;
  static float read(uint32_t bits) { return bfloatToFloat(bits); }
  static uint32_t round(float value) { return floatToBfloat(value); }
  static uint32_t round(double value) { return round(roundToOdd(value)); }
};
/// A float of 8 bits with an exponent of `bias`; without infinities where
/// `finite`.
template <unsigned mantissaBits, int bias, bool finite> struct Float8 {
  using Bits = uint32_t;
  using Number = float;
  static constexpr uint32_t top = finite ? 0x7f : 0x7c;
  static float read(uint32_t bits) {
    uint32_t code = bits & 0x7f;
    int exponent = code >> mantissaBits;
    uint32_t whole = code & ((1u << mantissaBits) - 1);
    float value = finite ? (code == top ? NAN : 0)
                         : (code > top    ? NAN
                            : code == top ? INFINITY
                                          : 0);
    if (code < top)
      value = std::ldexp(float(exponent ? whole + (1u << mantissaBits) : whole),
                         std::max(exponent, 1) - bias - int(mantissaBits));
    return bits & 0x80 ? -value : value;
  }
  /// To nearest, halves to even, and what is too large the largest, as
  /// cvt.rn.satfinite does.
  static uint32_t round(float value) {
    uint32_t sign = std::signbit(value) ? 0x80 : 0;
    if (std::isnan(value))
      return 0x7f;
    double size = std::fabs(double(value));
    uint32_t code = top - 1;
    if (size < read(top - 1)) {
      int exponent =
          size == 0 ? 1 - bias : std::max(std::ilogb(size), 1 - bias);
      // Units of the last place; a carry goes on into the exponent.
      auto units = uint32_t(
          std::nearbyint(std::ldexp(size, int(mantissaBits) - exponent)));
      code = units + (uint32_t(exponent + bias - 1) << mantissaBits);
    }
    return std::min(code, top - 1) | sign;
  }
};
using E4m3 = Float8<3, 7, true>;
using E5m2 = Float8<2, 15, false>;
struct Single {
  using Bits = uint32_t;
  using Number = float;
  static float read(uint32_t bits) { return std::bit_cast<float>(bits); }
  static uint32_t round(float value) { return std::bit_cast<uint32_t>(value); }
  static uint32_t round(double value) { return round(float(value)); }
};
struct Double {
  using Bits = uint64_t;
  using Number = double;
  static double read(uint64_t bits) { return std::bit_cast<double>(bits); }
  static uint64_t round(double value) { return std::bit_cast<uint64_t>(value); }
};

/// Calls `then` with an object of the type's format; otherwise gives null.
template <typename F> auto withFormat(mlir::Type type, F then) {
  if (type.isF32())
    return then(Single());
  if (type.isF64())
    return then(Double());
  if (type.isF16())
    return then(Half());
  if (type.isBF16())
    return then(Bfloat());
  return decltype(then(Single()))();
}

} // namespace charonia::interpreter

#endif
