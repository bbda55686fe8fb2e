//===- Decode.cpp - A manifest from protobuf bytes ------------------------===//
//
// The bytes are hostile. protozero checks every length against what is left and
// throws; vectors get their sizes at once, charged to a budget that is a
// multiple of the input, so that no manifest unpacks to much more than itself.
// Fields that are not known, or of another wire type, are skipped, as protobuf
// does; of a field that should occur once the last one counts.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Decoder.h"
#include "runtime/engine/Encoding.h"
#include "runtime/engine/Fields.h"
#include "runtime/engine/Format.h"

#include <exception>

namespace charonia::engine {

static constexpr auto noOperator = static_cast<ShapeExpr::Op>(255);

/// A missing message is the constant 0; a malformed one stays malformed, for
/// ShapeExpr::check() to find.
ShapeExpr Decoder::expr(pbf_reader in) {
  std::vector<ShapeExpr::Term> terms;
  bool half = false;
  auto add = [&](int64_t value) {
    if (half)
      terms.back().value = value;
    else if (terms.size() == maxExprTerms)
      throw ExprTooLong();
    else
      terms.push_back({value < 0 || value > 255
                           ? noOperator
                           : static_cast<ShapeExpr::Op>(value),
                       0});
    half = !half;
  };
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::expr::Code): {
      // In one piece as a rule, but it may come in any number of them.
      auto values = in.get_packed_sint64();
      size_t more = (values.size() + 1) / 2;
      if (more > maxExprTerms)
        throw ExprTooLong();
      charge(more * sizeof(ShapeExpr::Term));
      if (terms.empty())
        terms.reserve(more);
      for (int64_t value : values)
        add(value);
      break;
    }
    case number(field::expr::Code):
      charge(sizeof(ShapeExpr::Term));
      add(in.get_sint64());
      break;
    default:
      in.skip();
    }
  if (half)
    terms.back().op = noOperator;
  return ShapeExpr::fromTerms(std::move(terms));
}

Range Decoder::range(pbf_reader in) {
  Range out;
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::range::Section):
      out.section = in.get_uint32();
      break;
    case number(field::range::Offset):
      out.offset = in.get_uint64();
      break;
    case number(field::range::Size):
      out.size = in.get_uint64();
      break;
    default:
      in.skip();
    }
  return out;
}

/// A packed field, a piece of it, or one number by itself.
void Decoder::numbers(pbf_reader &in, std::vector<uint32_t> &out) {
  if (in.wire_type() == protozero::pbf_wire_type::varint) {
    charge(sizeof(uint32_t));
    out.push_back(in.get_uint32());
    return;
  }
  auto values = in.get_packed_uint32();
  charge(values.size() * sizeof(uint32_t));
  out.insert(out.end(), values.begin(), values.end());
}

void Decoder::numbers(pbf_reader &in, std::vector<int32_t> &out) {
  if (in.wire_type() == protozero::pbf_wire_type::varint) {
    charge(sizeof(int32_t));
    out.push_back(in.get_sint32());
    return;
  }
  auto values = in.get_packed_sint32();
  charge(values.size() * sizeof(int32_t));
  out.insert(out.end(), values.begin(), values.end());
}

std::pair<std::string, std::string> Decoder::entry(pbf_reader in) {
  std::pair<std::string, std::string> out;
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::entry::Key):
      out.first = in.get_bytes();
      break;
    case bytes(field::entry::Value):
      out.second = in.get_bytes();
      break;
    default:
      in.skip();
    }
  return out;
}

BuildRecord Decoder::build(pbf_reader in) {
  BuildRecord out;
  Counts counts = count(in);
  reserve(out.options, counts[field::build::Options]);
  reserve(out.notes, counts[field::build::Notes]);
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::build::Compiler):
      out.compiler = in.get_bytes();
      break;
    case bytes(field::build::ModelName):
      out.modelName = in.get_bytes();
      break;
    case bytes(field::build::SourceHash):
      out.sourceHash = in.get_bytes();
      break;
    case bytes(field::build::Options):
      out.options.push_back(entry(in.get_message()));
      break;
    case bytes(field::build::Notes):
      out.notes.push_back(entry(in.get_message()));
      break;
    default:
      in.skip();
    }
  return out;
}

Manifest Decoder::manifest(pbf_reader in) {
  Manifest out;
  reserve(out.programs, count(in)[field::manifest::Programs]);
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::manifest::Signature):
      out.signature = signature(in.get_message());
      break;
    case bytes(field::manifest::Programs):
      out.programs.push_back(program(in.get_message()));
      break;
    case bytes(field::manifest::Build):
      out.build = build(in.get_message());
      break;
    default:
      in.skip();
    }
  return out;
}

Result<Manifest> decodeManifest(std::span<const std::byte> bytes) {
  if (bytes.size() > maxManifestBytes)
    return Status(StatusCode::Corrupt, "the engine's manifest is too large");
  try {
    Decoder decoder(uint64_t(maxUnpacking) * bytes.size());
    return decoder.manifest(Decoder::pbf_reader(
        reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  } catch (const TooLarge &) {
    return Status(StatusCode::Corrupt,
                  "the engine's manifest unpacks to more than " +
                      std::to_string(maxUnpacking) + " times its size");
  } catch (const ExprTooLong &) {
    return Status(StatusCode::Corrupt,
                  "a shape expression of the engine's manifest has more than " +
                      std::to_string(maxExprTerms) + " terms");
  } catch (const protozero::exception &) {
    return Status(StatusCode::Corrupt,
                  "the engine's manifest cannot be parsed");
  }
}

} // namespace charonia::engine
