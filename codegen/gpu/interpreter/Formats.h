// Floating-point formats in registers: how their bits are read and rounded.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_FORMATS_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_FORMATS_H

#include "mlir/IR/BuiltinTypes.h"
#include "runtime/engine/Half.h"
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
