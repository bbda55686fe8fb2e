#include "tools/charonia/Elements.h"
#include "runtime/engine/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace charonia::tool {
namespace {

/// A floating-point format of IEEE's kind; `Finite` has no infinities, and one
/// NaN: all bits of exponent and mantissa set.
template <unsigned ExponentBits, unsigned MantissaBits, bool Finite = false>
double smallFloat(uint32_t bits) {
  constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  constexpr uint32_t top = (1u << ExponentBits) - 1,
                     ones = (1u << MantissaBits) - 1;
  uint32_t exponent = bits >> MantissaBits & top, mantissa = bits & ones;
  double value;
  if (exponent == top && (!Finite || mantissa == ones))
    value = !Finite && mantissa == 0 ? INFINITY : NAN;
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - bias - int(MantissaBits));
  else
    value = std::ldexp(mantissa + ones + 1,
                       int(exponent) - bias - int(MantissaBits));
  return bits >> (ExponentBits + MantissaBits) & 1 ? -value : value;
}

template <typename T> T load(const void *data, uint64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte *>(data) + index * sizeof(T),
              sizeof(T));
  return value;
}

uint8_t loadNibble(const void *data, uint64_t index) {
  return load<uint8_t>(data, index / 2) >> (index % 2 * 4) & 15;
}

/// A format without infinities and negative zero, whose code is NaN, and with
/// an exponent one smaller.
template <unsigned ExponentBits, unsigned MantissaBits>
double unsignedZeroFloat(uint8_t bits) {
  if (bits == 0x80)
    return NAN;
  constexpr int bias = 1 << (ExponentBits - 1);
  int exponent = (bits & 0x7f) >> MantissaBits,
      mantissa = bits & ((1 << MantissaBits) - 1);
  int whole = exponent ? mantissa + (1 << MantissaBits) : mantissa;
  double value =
      std::ldexp(whole, std::max(exponent, 1) - bias - int(MantissaBits));
  return bits & 0x80 ? -value : value;
}

/// The bits of a random element, in the lowest bytes.
uint64_t randomBits(DType dtype, uint64_t random) {
  float value = (int(random >> 48 & 1023) - 511) / 256.0f;
  uint32_t single;
  std::memcpy(&single, &value, 4);
  double wide = value;
  uint64_t twice;
  std::memcpy(&twice, &wide, 8);
  switch (dtype) {
  case DType::Float32:
    return single;
  case DType::Float64:
    return twice;
  case DType::Float16:
    return engine::floatToHalf(value);
  case DType::BFloat16:
    return engine::floatToBfloat(value);
  case DType::Float8E4M3:
  case DType::Float8E5M2:
    // Without the exponent's highest bit all are finite and below 2.
    return random >> 56 & 0xbf;
  case DType::Float8E4M3FNUZ:
  case DType::Float8E5M2FNUZ:
    return random >> 56 & 0x3f;
  case DType::Int8:
  case DType::UInt8:
  case DType::Int4:
  case DType::UInt4:
    return random >> 56;
  default:
    return random >> 63;
  }
}

} // namespace

double elementAsDouble(DType dtype, const void *data, uint64_t index) {
  switch (dtype) {
  case DType::Float32:
    return load<float>(data, index);
  case DType::Float64:
    return load<double>(data, index);
  case DType::Float16:
    return engine::halfToFloat(load<uint16_t>(data, index));
  case DType::BFloat16:
    return engine::bfloatToFloat(load<uint16_t>(data, index));
  case DType::Float8E4M3:
    return smallFloat<4, 3, /*Finite=*/true>(load<uint8_t>(data, index));
  case DType::Float8E5M2:
    return smallFloat<5, 2>(load<uint8_t>(data, index));
  case DType::Float8E4M3FNUZ:
    return unsignedZeroFloat<4, 3>(load<uint8_t>(data, index));
  case DType::Float8E5M2FNUZ:
    return unsignedZeroFloat<5, 2>(load<uint8_t>(data, index));
  case DType::Int8:
    return load<int8_t>(data, index);
  case DType::Int16:
    return load<int16_t>(data, index);
  case DType::Int32:
    return load<int32_t>(data, index);
  case DType::Int64:
    return double(load<int64_t>(data, index));
  case DType::UInt8:
  case DType::Bool:
    return load<uint8_t>(data, index);
  case DType::UInt16:
    return load<uint16_t>(data, index);
  case DType::UInt32:
    return load<uint32_t>(data, index);
  case DType::UInt64:
    return double(load<uint64_t>(data, index));
  case DType::Int4:
    return int8_t(loadNibble(data, index) << 4) >> 4;
  case DType::UInt4:
    return loadNibble(data, index);
  }
  return NAN;
}

Summary summarize(DType dtype, const void *data, uint64_t count) {
  Summary summary{count, 0, NAN, NAN, NAN};
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double value = elementAsDouble(dtype, data, i);
    if (std::isnan(value)) {
      ++summary.nans;
      continue;
    }
    // fmin and fmax give the number where the other one is NaN.
    summary.min = std::fmin(summary.min, value);
    summary.max = std::fmax(summary.max, value);
    sum += value;
  }
  if (summary.nans < count)
    summary.mean = sum / (count - summary.nans);
  return summary;
}

void fillRandom(Array &array, uint64_t seed) {
  std::mt19937_64 random(seed);
  // Two elements of 4 bits make one random byte.
  uint64_t bytes = std::max(1u, dtypeBits(array.dtype) / 8);
  for (uint64_t at = 0; at + bytes <= array.size; at += bytes) {
    uint64_t bits = randomBits(array.dtype, random());
    std::memcpy(array.data.get() + at, &bits, bytes);
  }
}

} // namespace charonia::tool
