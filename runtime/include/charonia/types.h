//===- types.h - Element types and devices ----------------------*- C++ -*-===//
#ifndef CHARONIA_TYPES_H
#define CHARONIA_TYPES_H

#include "charonia/status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace charonia {

/// Element types. The values are part of the file format and of the C ABI. As
/// wide as C's enumerations, here and below: a number that is none of them is
/// found to be wrong, not cut to eight bits first.
enum class DType : int {
  Float32 = 1,
  Float64 = 2,
  Float16 = 3,
  BFloat16 = 4,
  Int8 = 5,
  Int16 = 6,
  Int32 = 7,
  Int64 = 8,
  UInt8 = 9,
  UInt16 = 10,
  UInt32 = 11,
  UInt64 = 12,
  Bool = 13, ///< One byte, 0 or 1.
  Float8E4M3 = 14,
  Float8E5M2 = 15,
  Int4 = 16, ///< Two elements a byte, the first in the low half.
  UInt4 = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2FNUZ = 19,
};

/// NumPy's names: "float32", "int64", "bool", ...
CHARONIA_API std::string_view dtypeName(DType type);
CHARONIA_API std::optional<DType> parseDType(std::string_view name);
CHARONIA_API unsigned dtypeBits(DType type);
/// Whether the number is one of the enumerators above.
CHARONIA_API bool isValidDType(int64_t value);

/// Bytes of a dense tensor; an error if a dimension is negative or the product
/// does not fit 63 bits.
CHARONIA_API Result<uint64_t> tensorBytes(DType type,
                                          std::span<const int64_t> shape);

/// "1x3x224x224"; "scalar" for rank 0.
CHARONIA_API std::string shapeString(std::span<const int64_t> shape);

enum class DeviceKind : int { Cpu = 1, Cuda = 2 };

/// "cpu", "cuda".
CHARONIA_API std::string_view deviceKindName(DeviceKind kind);

/// One device of this machine.
struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int index = 0;

  friend bool operator==(const Device &, const Device &) = default;
};

/// "cpu", "cuda", "cuda:1".
CHARONIA_API Result<Device> parseDevice(std::string_view text);
CHARONIA_API std::string deviceString(Device device);

} // namespace charonia

#endif // CHARONIA_TYPES_H
