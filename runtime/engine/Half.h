//===- Half.h - Numbers of 16 bits ------------------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_HALF_H
#define CHARONIA_RUNTIME_ENGINE_HALF_H

#include <bit>
#include <cstdint>

namespace charonia::engine {

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
  if ((bits & 0x7fffffff) > 0x7f800000)
    return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_HALF_H
