//===- Decode.cpp - A manifest from protobuf bytes ------------------------===//
//
// The bytes are hostile. protozero checks every length against what is left and
// throws; vectors get their sizes at once, charged to a budget that is a
// multiple of the input, so that no manifest unpacks to much more than itself.
// Fields that are not known, or of another wire type, are skipped, as protobuf
// does; of a field that should occur once the last one counts.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Encoding.h"
#include "runtime/engine/Fields.h"
#include "runtime/engine/Format.h"

#include <array>
#include <exception>

#include <protozero/pbf_reader.hpp>

namespace charonia::engine {

namespace {

using protozero::pbf_reader;

/// What a case of a switch over tag_and_type() is.
constexpr uint32_t number(uint32_t tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr uint32_t bytes(uint32_t tag) {
  return protozero::tag_and_type(tag,
                                 protozero::pbf_wire_type::length_delimited);
}

struct TooLarge {};
struct ExprTooLong {};

/// Enumerations are stored as numbers; those that do not fit become 0, which is
/// no enumerator.
template <typename Enum> Enum decodeEnum(uint32_t value) {
  return static_cast<Enum>(value > 0xff ? 0 : value);
}

constexpr auto noOperator = static_cast<ShapeExpr::Op>(255);

class Decoder {
public:
  explicit Decoder(uint64_t budget) : budget(budget) {}
  Manifest manifest(pbf_reader in);

private:
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

  ShapeExpr expr(pbf_reader in);
  static Range range(pbf_reader in);
  TensorSpec tensor(pbf_reader in);
  static Symbol symbol(pbf_reader in);
  Constraint constraint(pbf_reader in);
  Signature signature(pbf_reader in);
  Buffer buffer(pbf_reader in);
  Argument argument(pbf_reader in);
  void numbers(pbf_reader &in, std::vector<uint32_t> &out);
  void numbers(pbf_reader &in, std::vector<int32_t> &out);
  Step step(pbf_reader in);
  Kernel kernel(pbf_reader in);
  static CodeModule module(pbf_reader in);
  TensorMap map(pbf_reader in);
  KernelCode code(pbf_reader in);
  Variant variant(pbf_reader in);
  Repeat repeat(pbf_reader in);
  Program program(pbf_reader in);
  static std::pair<std::string, std::string> entry(pbf_reader in);
  BuildRecord build(pbf_reader in);

  uint64_t budget;
};

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

TensorSpec Decoder::tensor(pbf_reader in) {
  TensorSpec out;
  out.dtype = DType(0);
  reserve(out.dims, count(in)[field::tensor::Dims]);
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::tensor::Name):
      out.name = in.get_bytes();
      break;
    case number(field::tensor::Dtype):
      out.dtype = decodeEnum<DType>(in.get_uint32());
      break;
    case bytes(field::tensor::Dims):
      out.dims.push_back(expr(in.get_message()));
      break;
    default:
      in.skip();
    }
  return out;
}

Symbol Decoder::symbol(pbf_reader in) {
  Symbol out{{}, 0, 0, 0, 0};
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::symbol::Name):
      out.name = in.get_bytes();
      break;
    case number(field::symbol::Min):
      out.min = in.get_int64();
      break;
    case number(field::symbol::Opt):
      out.opt = in.get_int64();
      break;
    case number(field::symbol::Max):
      out.max = in.get_int64();
      break;
    case number(field::symbol::Divisor):
      out.divisor = in.get_int64();
      break;
    default:
      in.skip();
    }
  return out;
}

Constraint Decoder::constraint(pbf_reader in) {
  Constraint out;
  out.relation = Constraint::Relation(0);
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::constraint::Relation):
      out.relation = decodeEnum<Constraint::Relation>(in.get_uint32());
      break;
    case bytes(field::constraint::Left):
      out.left = expr(in.get_message());
      break;
    case bytes(field::constraint::Right):
      out.right = expr(in.get_message());
      break;
    case bytes(field::constraint::Reason):
      out.reason = in.get_bytes();
      break;
    default:
      in.skip();
    }
  return out;
}

Signature Decoder::signature(pbf_reader in) {
  Signature out;
  Counts counts = count(in);
  reserve(out.inputs, counts[field::signature::Inputs]);
  reserve(out.outputs, counts[field::signature::Outputs]);
  reserve(out.symbols, counts[field::signature::Symbols]);
  reserve(out.constraints, counts[field::signature::Constraints]);
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::signature::Inputs):
      out.inputs.push_back(tensor(in.get_message()));
      break;
    case bytes(field::signature::Outputs):
      out.outputs.push_back(tensor(in.get_message()));
      break;
    case bytes(field::signature::Symbols):
      out.symbols.push_back(symbol(in.get_message()));
      break;
    case bytes(field::signature::Constraints):
      out.constraints.push_back(constraint(in.get_message()));
      break;
    default:
      in.skip();
    }
  return out;
}

Buffer Decoder::buffer(pbf_reader in) {
  Buffer out;
  out.kind = Buffer::Kind(0);
  out.alignment = 0;
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::buffer::Name):
      out.name = in.get_bytes();
      break;
    case number(field::buffer::Kind):
      out.kind = decodeEnum<Buffer::Kind>(in.get_uint32());
      break;
    case number(field::buffer::Index):
      out.index = in.get_uint32();
      break;
    case number(field::buffer::WeightOffset):
      out.weightOffset = in.get_uint64();
      break;
    case bytes(field::buffer::Size):
      out.size = expr(in.get_message());
      break;
    case number(field::buffer::FirstStep):
      out.firstStep = in.get_uint32();
      break;
    case number(field::buffer::LastStep):
      out.lastStep = in.get_uint32();
      break;
    case number(field::buffer::Alignment):
      out.alignment = in.get_uint32();
      break;
    case number(field::buffer::AliasPlusOne):
      out.alias = in.get_uint32() - 1;
      break;
    case bytes(field::buffer::AliasOffset):
      out.aliasOffset = expr(in.get_message());
      break;
    default:
      in.skip();
    }
  return out;
}

Argument Decoder::argument(pbf_reader in) {
  Argument out;
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::argument::Buffer):
      out.buffer = in.get_uint32();
      break;
    case bytes(field::argument::Offset):
      out.offset = expr(in.get_message());
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

Step Decoder::step(pbf_reader in) {
  Step out;
  out.kind = Step::Kind(0);
  out.patternSize = 0;
  Counts counts = count(in);
  reserve(out.args, counts[field::step::Args]);
  reserve(out.nodes, counts[field::step::Nodes]);
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::step::Kind):
      out.kind = decodeEnum<Step::Kind>(in.get_uint32());
      break;
    case number(field::step::Kernel):
      out.kernel = in.get_uint32();
      break;
    case bytes(field::step::Args):
      out.args.push_back(argument(in.get_message()));
      break;
    case bytes(field::step::Bytes):
      out.bytes = expr(in.get_message());
      break;
    case number(field::step::Pattern):
      out.pattern = in.get_uint32();
      break;
    case number(field::step::PatternSize):
      out.patternSize = in.get_uint32();
      break;
    case bytes(field::step::Nodes):
      out.nodes.push_back(in.get_bytes());
      break;
    case bytes(field::step::Symbols):
    case number(field::step::Symbols):
      numbers(in, out.symbols);
      break;
    case number(field::step::BesidePrevious):
      out.besidePrevious = in.get_uint64() != 0;
      break;
    default:
      in.skip();
    }
  return out;
}

Kernel Decoder::kernel(pbf_reader in) {
  Kernel out;
  reserve(out.ops, count(in)[field::kernel::Ops]);
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::kernel::Name):
      out.name = in.get_bytes();
      break;
    case bytes(field::kernel::Ops):
      out.ops.push_back(in.get_bytes());
      break;
    case bytes(field::kernel::Flops):
      out.flops = expr(in.get_message());
      break;
    case bytes(field::kernel::Bytes):
      out.bytes = expr(in.get_message());
      break;
    case number(field::kernel::NumSymbols):
      out.numSymbols = in.get_uint32();
      break;
    default:
      in.skip();
    }
  return out;
}

CodeModule Decoder::module(pbf_reader in) {
  CodeModule out;
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::module::Image):
      out.image = range(in.get_message());
      break;
    case bytes(field::module::Ptx):
      out.ptx = range(in.get_message());
      break;
    case bytes(field::module::Cubin):
      out.cubin = range(in.get_message());
      break;
    default:
      in.skip();
    }
  return out;
}

TensorMap Decoder::map(pbf_reader in) {
  TensorMap out;
  out.elementBytes = 0;
  Counts counts = count(in);
  reserve(out.extents, counts[field::map::Extents]);
  reserve(out.strides, counts[field::map::Strides]);
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::map::Argument):
      out.argument = in.get_uint32();
      break;
    case number(field::map::ElementBytes):
      out.elementBytes = in.get_uint32();
      break;
    case number(field::map::Swizzle):
      out.swizzle = in.get_uint32();
      break;
    case bytes(field::map::Extents):
      out.extents.push_back(expr(in.get_message()));
      break;
    case bytes(field::map::Strides):
      out.strides.push_back(expr(in.get_message()));
      break;
    case bytes(field::map::Box):
    case number(field::map::Box):
      numbers(in, out.box);
      break;
    case bytes(field::map::Steps):
    case number(field::map::Steps):
      numbers(in, out.steps);
      break;
    case bytes(field::map::Lower):
    case number(field::map::Lower):
      numbers(in, out.lower);
      break;
    case bytes(field::map::Upper):
    case number(field::map::Upper):
      numbers(in, out.upper);
      break;
    default:
      in.skip();
    }
  return out;
}

KernelCode Decoder::code(pbf_reader in) {
  KernelCode out;
  out.grid = 0;
  out.blockThreads = out.clusterSize = out.grain = 0;
  reserve(out.maps, count(in)[field::code::Maps]);
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::code::Module):
      out.module = in.get_uint32();
      break;
    case bytes(field::code::Entry):
      out.entry = in.get_bytes();
      break;
    case number(field::code::EntryOffset):
      out.entryOffset = in.get_uint64();
      break;
    case bytes(field::code::Grid):
      out.grid = expr(in.get_message());
      break;
    case number(field::code::BlockThreads):
      out.blockThreads = in.get_uint32();
      break;
    case number(field::code::ClusterSize):
      out.clusterSize = in.get_uint32();
      break;
    case number(field::code::SharedBytes):
      out.sharedBytes = in.get_uint64();
      break;
    case number(field::code::ScratchBytes):
      out.scratchBytes = in.get_uint64();
      break;
    case number(field::code::Grain):
      out.grain = in.get_uint32();
      break;
    case number(field::code::Registers):
      out.registers = in.get_uint32();
      break;
    case number(field::code::SpillBytes):
      out.spillBytes = in.get_uint32();
      break;
    case number(field::code::WaitsForPrevious):
      out.waitsForPrevious = in.get_uint64() != 0;
      break;
    case number(field::code::WaitsAtEnd):
      out.waitsAtEnd = in.get_uint64() != 0;
      break;
    case number(field::code::Operations):
      out.operations = in.get_uint64();
      break;
    case number(field::code::NeededOperations):
      out.neededOperations = in.get_uint64();
      break;
    case number(field::code::AccessedBytes):
      out.accessedBytes = in.get_uint64();
      break;
    case number(field::code::NeededBytes):
      out.neededBytes = in.get_uint64();
      break;
    case bytes(field::code::Indexed):
      out.indexed = expr(in.get_message());
      break;
    case bytes(field::code::Maps):
      out.maps.push_back(map(in.get_message()));
      break;
    default:
      in.skip();
    }
  return out;
}

Variant Decoder::variant(pbf_reader in) {
  Variant out;
  Counts counts = count(in);
  reserve(out.modules, counts[field::variant::Modules]);
  reserve(out.kernels, counts[field::variant::Kernels]);
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::variant::Arch):
      out.arch = in.get_bytes();
      break;
    case bytes(field::variant::Modules):
      out.modules.push_back(module(in.get_message()));
      break;
    case bytes(field::variant::Kernels):
      out.kernels.push_back(code(in.get_message()));
      break;
    default:
      in.skip();
    }
  return out;
}

Repeat Decoder::repeat(pbf_reader in) {
  Repeat out;
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::repeat::First):
      out.first = in.get_uint32();
      break;
    case number(field::repeat::Last):
      out.last = in.get_uint32();
      break;
    case number(field::repeat::Symbol):
      out.symbol = in.get_uint32();
      break;
    case bytes(field::repeat::Count):
      out.count = expr(in.get_message());
      break;
    default:
      in.skip();
    }
  return out;
}

Program Decoder::program(pbf_reader in) {
  Program out;
  out.device = DeviceKind(0);
  out.precision.clear();
  Counts counts = count(in);
  reserve(out.kernels, counts[field::program::Kernels]);
  reserve(out.buffers, counts[field::program::Buffers]);
  reserve(out.steps, counts[field::program::Steps]);
  reserve(out.variants, counts[field::program::Variants]);
  reserve(out.repeats, counts[field::program::Repeats]);
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::program::Device):
      out.device = decodeEnum<DeviceKind>(in.get_uint32());
      break;
    case bytes(field::program::Precision):
      out.precision = in.get_bytes();
      break;
    case number(field::program::WeightsSectionPlusOne):
      out.weightsSection = in.get_uint32() - 1;
      break;
    case bytes(field::program::Kernels):
      out.kernels.push_back(kernel(in.get_message()));
      break;
    case bytes(field::program::Buffers):
      out.buffers.push_back(buffer(in.get_message()));
      break;
    case bytes(field::program::Steps):
      out.steps.push_back(step(in.get_message()));
      break;
    case bytes(field::program::Variants):
      out.variants.push_back(variant(in.get_message()));
      break;
    case bytes(field::program::Repeats):
      out.repeats.push_back(repeat(in.get_message()));
      break;
    default:
      in.skip();
    }
  return out;
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

} // namespace

Result<Manifest> decodeManifest(std::span<const std::byte> bytes) {
  if (bytes.size() > maxManifestBytes)
    return Status(StatusCode::Corrupt, "the engine's manifest is too large");
  try {
    Decoder decoder(uint64_t(maxUnpacking) * bytes.size());
    return decoder.manifest(
        pbf_reader(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
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
