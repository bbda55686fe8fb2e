//===- Decoder.h - A manifest from protobuf bytes ---------------*- C++ -*-===//
//
// Private to Decode*.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_ENGINE_DECODER_H
#define CHARONIA_RUNTIME_ENGINE_DECODER_H

#include "runtime/engine/Engine.h"

#include <array>

#include <protozero/pbf_reader.hpp>

namespace charonia::engine {

/// Of what unpacks to more than the budget, and of one expression.
struct TooLarge {};
struct ExprTooLong {};

class Decoder {
public:
  using pbf_reader = protozero::pbf_reader;

  explicit Decoder(uint64_t budget) : budget(budget) {}
  Manifest manifest(pbf_reader in);

private:
  /// What a case of a switch over tag_and_type() is.
  static constexpr uint32_t number(uint32_t tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
  }
  static constexpr uint32_t bytes(uint32_t tag) {
    return protozero::tag_and_type(tag,
                                   protozero::pbf_wire_type::length_delimited);
  }
  /// Enumerations are stored as numbers; those that do not fit become 0, which
  /// is no enumerator.
  template <typename Enum> static Enum decodeEnum(uint32_t value) {
    return static_cast<Enum>(value > 0xff ? 0 : value);
  }

  /// How often the fields of a message occur.
  using Counts = std::array<size_t, 32>;
  static Counts count(pbf_reader in) {
    Counts counts = {};
    for (; in.next(); in.skip())
      if (in.tag() < counts.size())
        ++counts[in.tag()];
    return counts;
  }

  void charge(uint64_t size) {
    if (size > budget)
      throw TooLarge();
    budget -= size;
  }
  /// Once for a vector: a second time it would be copied whole.
  template <typename T> void reserve(std::vector<T> &out, size_t size) {
    charge(size * sizeof(T));
    out.reserve(size);
  }

  // --- Decode.cpp
  ShapeExpr expr(pbf_reader in);
  static Range range(pbf_reader in);
  void numbers(pbf_reader &in, std::vector<uint32_t> &out);
  void numbers(pbf_reader &in, std::vector<int32_t> &out);
  static std::pair<std::string, std::string> entry(pbf_reader in);
  BuildRecord build(pbf_reader in);

  // --- DecodeSignature.cpp
  TensorSpec tensor(pbf_reader in);
  static Symbol symbol(pbf_reader in);
  Constraint constraint(pbf_reader in);
  Signature signature(pbf_reader in);

  // --- DecodeProgram.cpp
  Buffer buffer(pbf_reader in);
  Argument argument(pbf_reader in);
  Step step(pbf_reader in);
  Kernel kernel(pbf_reader in);
  Repeat repeat(pbf_reader in);
  Program program(pbf_reader in);

  // --- DecodeCode.cpp
  static CodeModule module(pbf_reader in);
  TensorMap map(pbf_reader in);
  KernelCode code(pbf_reader in);
  /// What was counted of a kernel's code; false where the field is no such
  /// number.
  static bool counted(pbf_reader &in, KernelCode &out);
  Variant variant(pbf_reader in);

  uint64_t budget;
};

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_DECODER_H
