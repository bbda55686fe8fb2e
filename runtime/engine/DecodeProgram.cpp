//===- DecodeProgram.cpp - Programs from protobuf bytes -------------------===//

#include "runtime/engine/Decoder.h"
#include "runtime/engine/Fields.h"

namespace charonia::engine {

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

} // namespace charonia::engine
