// Floating-point formats in registers: how their bits are read and rounded.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_FORMATS_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_FORMATS_H

#include "mlir/IR/BuiltinTypes.h"
#include <bit>
#include <cmath>
#include <cstdint>

namespace charonia::interpreter {

inline float halfToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest >= 0x7c00)
    return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  // Scaled by 2^-112 in the exponent's place: denormals become right, too.
  float value = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

/// Rounded to nearest, ties to even.
inline uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return sign | 0x7e00;
  if (bits >= 0x477ff000) // 65520
    return sign | 0x7c00;
  if (bits < 0x38800000) {
    // Below the normal numbers 2^-24 is the unit; adding brings it to the end.
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  bits += 0xfff + (bits >> 13 & 1);
  return sign | (bits - 0x38000000) >> 13;
}

inline float bfloatToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

inline uint16_t floatToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

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
