// The manifest's bytes: those that protobuf's own code writes and reads for
// engine.proto, and a bound on what hostile ones unpack to.

#include "TestEngine.h"

#include "runtime/engine/Encoding.h"
#include "runtime/engine/Format.h"

#include "engine.pb.h"

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

std::span<const std::byte> bytesOf(const std::string &text) {
  return std::as_bytes(std::span(text));
}

Manifest unusualManifest() {
  Manifest m = sampleManifest();
  m.signature.symbols[0].min = INT64_MIN; // Ten bytes.
  m.signature.inputs[0].name = std::string("n\0\xff", 3);
  m.signature.inputs[0].dims[0] = ShapeExpr(INT64_MAX) - ShapeExpr::symbol(0);
  m.signature.outputs[0].dims.clear();
  Program &p = m.programs[0];
  p.weightsSection = noIndex;
  p.buffers[2].size = 0;
  p.buffers[3].aliasOffset = ShapeExpr::symbol(0) * 4;
  p.steps[0].nodes = {"", "a"};
  p.steps[0].symbols = {0, 300, noIndex};
  p.kernels[0].numSymbols = noIndex;
  p.kernels[0].ops = {""};
  p.variants[0].modules.push_back({});
  p.repeats = {{0, 1, noIndex, ShapeExpr::symbol(0) * 2}, {}};
  TensorMap &map = m.programs[1].variants[0].kernels[0].maps[1];
  map.argument = noIndex, map.elementBytes = 0;
  map.extents = {0, ShapeExpr::symbol(7) * 3}, map.strides.clear();
  map.box = {noIndex, 0, 300}, map.steps.clear();
  map.lower = {INT32_MIN, 0}, map.upper = {INT32_MAX};
  m.build.notes.push_back({"", ""});
  return m;
}

TEST(Encoding, WhatProtobufWrites) {
  for (const Manifest &m : {sampleManifest(), unusualManifest(), Manifest()}) {
    auto encoded = encodeManifest(m);
    ASSERT_TRUE(encoded.isOk());
    proto::Manifest message;
    ASSERT_TRUE(message.ParseFromString(*encoded));
    // Every field is one that engine.proto has, in protobuf's order and form.
    EXPECT_EQ(message.SerializeAsString(), *encoded);
    auto decoded = decodeManifest(bytesOf(*encoded));
    ASSERT_TRUE(decoded.isOk()) << decoded.status().message();
    EXPECT_EQ(*decoded, m);
  }
  auto encoded = encodeManifest(sampleManifest());
  proto::Manifest message;
  ASSERT_TRUE(message.ParseFromString(*encoded));
  const proto::Program &program = message.programs(1);
  EXPECT_EQ(program.precision(), "fp16");
  EXPECT_EQ(program.buffers(3).alias_plus_one(), 3u);
  EXPECT_EQ(program.steps(3).pattern(), 0x3f800000u);
  EXPECT_EQ(program.steps(1).symbols_size(), 1);
  EXPECT_EQ(program.kernels(1).num_symbols(), 1u);
  EXPECT_EQ(program.variants(0).kernels(0).shared_bytes(), 65536u);
  const proto::KernelCode &code = program.variants(0).kernels(0);
  ASSERT_EQ(code.maps_size(), 2);
  EXPECT_EQ(code.maps(0).element_bytes(), 4u);
  EXPECT_EQ(code.maps(0).extents_size(), 2);
  EXPECT_EQ(code.maps(1).argument(), 1u);
  EXPECT_EQ(code.maps(1).swizzle(), 128u);
  EXPECT_EQ(code.maps(1).strides_size(), 3);
  EXPECT_EQ(code.maps(1).box(1), 64u);
  EXPECT_EQ(code.maps(1).steps(1), 2u);
  EXPECT_EQ(code.maps(1).lower(0), -1);
  EXPECT_EQ(code.maps(1).upper(0), 1);
  EXPECT_EQ(message.signature().symbols(0).max(), 64);
  EXPECT_EQ(message.build().notes(0).key(), "memory.peak");
}

TEST(Encoding, FieldsOfTheFuture) {
  auto encoded = encodeManifest(sampleManifest());
  ASSERT_TRUE(encoded.isOk());
  // Fields 1000 of every wire type, and field 2 as a number.
  std::string more = *encoded + std::string("\xc0\x3e\x07"
                                            "\xc1\x3e"
                                            "12345678"
                                            "\xc2\x3e\x03"
                                            "abc"
                                            "\xc5\x3e"
                                            "1234"
                                            "\x10\x05");
  auto decoded = decodeManifest(bytesOf(more));
  ASSERT_TRUE(decoded.isOk()) << decoded.status().message();
  EXPECT_EQ(*decoded, sampleManifest());
}

TEST(Encoding, UnpackedNumbersAreReadToo) {
  // min = 0 and a dimension of 6 * s0 with one number a field.
  std::string code;
  for (uint8_t zigzag : {0, 12, 2, 0, 8, 0})
    code += std::string("\x08") + static_cast<char>(zigzag);
  std::string dim = std::string("\x1a") + static_cast<char>(code.size()) + code;
  std::string tensor =
      std::string("\x0a") + static_cast<char>(dim.size()) + dim;
  std::string manifest =
      std::string("\x0a") + static_cast<char>(tensor.size()) + tensor;
  auto decoded = decodeManifest(bytesOf(manifest));
  ASSERT_TRUE(decoded.isOk()) << decoded.status().message();
  ASSERT_EQ(decoded->signature.inputs.size(), 1u);
  EXPECT_EQ(decoded->signature.inputs[0].dims[0].str(), "(6 * s0)");
}

TEST(Encoding, UnpackedNumbersOfTensorMaps) {
  // box, steps, lower and upper with one number a field: {3, 2}, {1}, {-1}, {}.
  std::string data = "\x30\x03\x30\x02\x38\x01\x40\x01";
  // maps of kernels of variants of programs.
  for (const char *tag : {"\x92\x01", "\x1a", "\x3a", "\x12"})
    data = tag + std::string(1, static_cast<char>(data.size())) + data;
  // An unknown field, so that there are enough bytes for what they unpack to.
  data += "\xc2\x3e\x7f" + std::string(127, 'x');
  auto decoded = decodeManifest(bytesOf(data));
  ASSERT_TRUE(decoded.isOk()) << decoded.status().message();
  const KernelCode &code = decoded->programs[0].variants[0].kernels[0];
  ASSERT_EQ(code.maps.size(), 1u);
  EXPECT_EQ(code.maps[0].box, (std::vector<uint32_t>{3, 2}));
  EXPECT_EQ(code.maps[0].steps, (std::vector<uint32_t>{1}));
  EXPECT_EQ(code.maps[0].lower, (std::vector<int32_t>{-1}));
  EXPECT_TRUE(code.maps[0].upper.empty());
  EXPECT_EQ(code.maps[0].elementBytes, 0u);
}

TEST(Encoding, Truncated) {
  std::string encoded = *encodeManifest(sampleManifest());
  size_t refused = 0;
  for (size_t size = 1; size < encoded.size(); ++size) {
    auto decoded = decodeManifest(bytesOf(encoded).first(size));
    refused += !decoded;
    if (!decoded) {
      EXPECT_EQ(decoded.status().message(),
                "the engine's manifest cannot be parsed");
    }
  }
  // Only the ends of its three fields are ends of a message.
  EXPECT_GE(refused, encoded.size() - 5);
}

TEST(Encoding, NothingUnpacksToManyTimesItsSize) {
  // A message of `count` empty messages in the field `tag` of `outer`.
  auto varint = [](uint64_t number) {
    std::string text;
    for (uint64_t n = number; text.empty() || n; n >>= 7)
      text += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
    return text;
  };
  auto bomb = [&](std::initializer_list<int> path, size_t count) {
    std::string data;
    std::vector<int> tags(path);
    std::string empty = varint(tags.back() << 3 | 2) + '\0';
    for (size_t i = 0; i < count; ++i)
      data += empty;
    for (size_t level = tags.size() - 1; level-- > 0;)
      data = varint(tags[level] << 3 | 2) + varint(data.size()) + data;
    return data;
  };
  const std::string tooMuch = "the engine's manifest unpacks to more than " +
                              std::to_string(maxUnpacking) + " times its size";
  // Inputs, symbols, kernels, buffers, steps, variants, their kernels, modules
  // and tensor maps: some millions in six megabytes.
  for (std::initializer_list<int> path : {std::initializer_list<int>{1, 1},
                                          {1, 3},
                                          {2, 4},
                                          {2, 5},
                                          {2, 6},
                                          {2, 7},
                                          {2, 7, 2},
                                          {2, 7, 3},
                                          {2, 7, 3, 18},
                                          {3, 4},
                                          {2}}) {
    auto decoded = decodeManifest(bytesOf(bomb(path, 3'000'000)));
    ASSERT_FALSE(decoded.isOk()) << *path.begin() << " " << path.size();
    EXPECT_EQ(decoded.status().message(), tooMuch);
  }
  // Arguments, strings and extents stay below by themselves.
  for (std::initializer_list<int> path : {std::initializer_list<int>{2, 6, 3},
                                          {2, 6, 8},
                                          {2, 6, 9},
                                          {2, 4, 2},
                                          {2, 7, 3, 18, 4}})
    EXPECT_TRUE(decodeManifest(bytesOf(bomb(path, 100'000))).isOk());
}

TEST(Encoding, AnExpressionInManyPieces) {
  // A dimension of an input whose terms are all constants 0, `chunks` fields
  // of one term each.
  auto manifest = [](size_t chunks) {
    std::string data;
    for (size_t i = 0; i < chunks; ++i)
      data += std::string("\x0a\x02\0\0", 4);
    for (int tag : {3, 1, 1}) {
      std::string size;
      for (uint64_t n = data.size(); size.empty() || n; n >>= 7)
        size += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
      data = static_cast<char>(tag << 3 | 2) + size + data;
    }
    return data;
  };
  auto decoded = decodeManifest(bytesOf(manifest(maxExprTerms)));
  ASSERT_TRUE(decoded.isOk()) << decoded.status().message();
  EXPECT_EQ(decoded->signature.inputs[0].dims[0].terms().size(), maxExprTerms);
  for (size_t chunks : {maxExprTerms + 1, size_t(200'000)})
    EXPECT_EQ(decodeManifest(bytesOf(manifest(chunks))).status().message(),
              "a shape expression of the engine's manifest has more than 4096 "
              "terms");
}

} // namespace
