//===- DecodeCode.cpp - Variants' code from protobuf bytes ----------------===//

#include "runtime/engine/Decoder.h"
#include "runtime/engine/Fields.h"

namespace charonia::engine {

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

bool Decoder::counted(pbf_reader &in, KernelCode &out) {
  switch (in.tag_and_type()) {
  case number(field::code::Registers):
    out.registers = in.get_uint32();
    return true;
  case number(field::code::SpillBytes):
    out.spillBytes = in.get_uint32();
    return true;
  case number(field::code::Operations):
    out.operations = in.get_uint64();
    return true;
  case number(field::code::NeededOperations):
    out.neededOperations = in.get_uint64();
    return true;
  case number(field::code::AccessedBytes):
    out.accessedBytes = in.get_uint64();
    return true;
  case number(field::code::NeededBytes):
    out.neededBytes = in.get_uint64();
    return true;
  default:
    return false;
  }
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
    case number(field::code::WaitsForPrevious):
      out.waitsForPrevious = in.get_uint64() != 0;
      break;
    case number(field::code::WaitsAtEnd):
      out.waitsAtEnd = in.get_uint64() != 0;
      break;
    case bytes(field::code::Indexed):
      out.indexed = expr(in.get_message());
      break;
    case bytes(field::code::Maps):
      out.maps.push_back(map(in.get_message()));
      break;
    default:
      if (!counted(in, out))
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

} // namespace charonia::engine
