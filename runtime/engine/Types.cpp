//===- Types.cpp - Status codes, element types, devices -------------------===//

#include "charonia/types.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace charonia {

void detail::resultMisused(const Status &status) noexcept {
  std::fprintf(
      stderr,
      status.isOk()
          ? "charonia: a Result was made of a Status without an error\n"
          : "charonia: the value of a Result was taken that is an "
            "error: %s\n",
      status.message().c_str());
  std::abort();
}

void detail::movedFromUsed(const char *type) noexcept {
  std::fprintf(stderr, "charonia: the %s that was used had been moved from\n",
               type);
  std::abort();
}

std::string_view statusCodeName(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidArgument:
    return "invalid argument";
  case StatusCode::OutOfRange:
    return "out of range";
  case StatusCode::NotFound:
    return "not found";
  case StatusCode::FailedPrecondition:
    return "failed precondition";
  case StatusCode::Unsupported:
    return "unsupported";
  case StatusCode::Corrupt:
    return "corrupt";
  case StatusCode::Io:
    return "input/output";
  case StatusCode::OutOfMemory:
    return "out of memory";
  case StatusCode::Unavailable:
    return "unavailable";
  case StatusCode::DeviceError:
    return "device error";
  case StatusCode::Internal:
    return "internal";
  }
  return "unknown";
}

namespace {
struct DTypeRow {
  DType type;
  std::string_view name;
  unsigned bits;
};
constexpr DTypeRow dtypeRows[] = {
    {DType::Float32, "float32", 32},
    {DType::Float64, "float64", 64},
    {DType::Float16, "float16", 16},
    {DType::BFloat16, "bfloat16", 16},
    {DType::Int8, "int8", 8},
    {DType::Int16, "int16", 16},
    {DType::Int32, "int32", 32},
    {DType::Int64, "int64", 64},
    {DType::UInt8, "uint8", 8},
    {DType::UInt16, "uint16", 16},
    {DType::UInt32, "uint32", 32},
    {DType::UInt64, "uint64", 64},
    {DType::Bool, "bool", 8},
    {DType::Float8E4M3, "float8_e4m3fn", 8},
    {DType::Float8E5M2, "float8_e5m2", 8},
    {DType::Int4, "int4", 4},
    {DType::UInt4, "uint4", 4},
    {DType::Float8E4M3FNUZ, "float8_e4m3fnuz", 8},
    {DType::Float8E5M2FNUZ, "float8_e5m2fnuz", 8},
};

const DTypeRow *findRow(DType type) {
  auto it = std::ranges::find(dtypeRows, type, &DTypeRow::type);
  return it == std::end(dtypeRows) ? nullptr : it;
}
} // namespace

std::string_view dtypeName(DType type) {
  const DTypeRow *row = findRow(type);
  return row ? row->name : "invalid";
}

std::optional<DType> parseDType(std::string_view name) {
  auto it = std::ranges::find(dtypeRows, name, &DTypeRow::name);
  if (it == std::end(dtypeRows))
    return std::nullopt;
  return it->type;
}

unsigned dtypeBits(DType type) {
  const DTypeRow *row = findRow(type);
  return row ? row->bits : 0;
}

bool isValidDType(int64_t value) {
  return std::ranges::any_of(dtypeRows, [&](const DTypeRow &row) {
    return static_cast<int64_t>(row.type) == value;
  });
}

Result<uint64_t> tensorBytes(DType type, std::span<const int64_t> shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      return Status(StatusCode::InvalidArgument,
                    "the shape " + shapeString(shape) +
                        " has a negative dimension");
    empty |= dim == 0;
  }
  if (empty)
    return uint64_t(0);
  int64_t bits = 0;
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(count, dim, &count))
      return Status(StatusCode::OutOfRange, "the shape " + shapeString(shape) +
                                                " has too many elements");
  if (__builtin_mul_overflow(count, int64_t(dtypeBits(type)), &bits))
    return Status(StatusCode::OutOfRange,
                  "the shape " + shapeString(shape) + " has too many bytes");
  return static_cast<uint64_t>(bits) / 8 + (bits % 8 != 0);
}

std::string shapeString(std::span<const int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (int64_t dim : shape) {
    if (!text.empty())
      text += 'x';
    text += std::to_string(dim);
  }
  return text;
}

std::string_view deviceKindName(DeviceKind kind) {
  switch (kind) {
  case DeviceKind::Cpu:
    return "cpu";
  case DeviceKind::Cuda:
    return "cuda";
  }
  return "unknown";
}

Result<Device> parseDevice(std::string_view text) {
  std::string_view kind = text.substr(0, text.find(':'));
  Device device;
  bool known = true;
  if (kind == "cpu")
    device.kind = DeviceKind::Cpu;
  else if (kind == "cuda")
    device.kind = DeviceKind::Cuda;
  else
    known = false;
  if (known && kind.size() != text.size()) {
    std::string_view number = text.substr(kind.size() + 1);
    auto [end, error] = std::from_chars(
        number.data(), number.data() + number.size(), device.index);
    known = error == std::errc() && end == number.data() + number.size() &&
            device.index >= 0 &&
            (device.kind == DeviceKind::Cuda || device.index == 0);
  }
  if (!known)
    return Status(StatusCode::InvalidArgument,
                  "unknown device '" + std::string(text) +
                      "'; write cpu, cuda or cuda:<number>");
  return device;
}

std::string deviceString(Device device) {
  std::string text(deviceKindName(device.kind));
  if (device.kind == DeviceKind::Cuda)
    text += ":" + std::to_string(device.index);
  return text;
}

} // namespace charonia
