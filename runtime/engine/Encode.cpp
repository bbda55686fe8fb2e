//===- Encode.cpp - A manifest's protobuf bytes ---------------------------===//
//
// The bytes are those that protobuf's own serializer writes for engine.proto:
// fields by their numbers, numbers and strings only if they are not zero or
// empty, expressions packed.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Encoding.h"
#include "runtime/engine/Fields.h"
#include "runtime/engine/Format.h"

#include <protozero/pbf_writer.hpp>

namespace charonia::engine {

namespace {

/// One message that is being written.
class Message {
public:
  void number(uint32_t tag, uint64_t value) {
    if (value != 0)
      writer.add_uint64(tag, value);
  }
  void numbers(uint32_t tag, const std::vector<uint32_t> &values) {
    writer.add_packed_uint32(tag, values.begin(), values.end());
  }
  void numbers(uint32_t tag, const std::vector<int32_t> &values) {
    writer.add_packed_sint32(tag, values.begin(), values.end());
  }
  void bytes(uint32_t tag, const std::string &value) {
    if (!value.empty())
      writer.add_bytes(tag, value);
  }
  void strings(uint32_t tag, const std::vector<std::string> &values) {
    for (const std::string &value : values)
      writer.add_bytes(tag, value);
  }
  /// Written even if it is empty.
  void message(uint32_t tag, const std::string &encoded) {
    writer.add_message(tag, encoded);
  }
  template <typename T>
  void messages(uint32_t tag, const std::vector<T> &values) {
    for (const T &value : values)
      message(tag, encode(value));
  }
  void present(uint32_t tag, const ShapeExpr &expr) {
    if (expr != ShapeExpr())
      message(tag, encode(expr));
  }
  void present(uint32_t tag, const Range &range) {
    if (!range.empty())
      message(tag, encode(range));
  }
  std::string take() { return std::move(data); }

  static std::string encode(const ShapeExpr &expr);
  static std::string encode(const Range &range);
  static std::string encode(const TensorSpec &spec);
  static std::string encode(const Symbol &symbol);
  static std::string encode(const Constraint &constraint);
  static std::string encode(const Signature &signature);
  static std::string encode(const Buffer &buffer);
  static std::string encode(const Argument &arg);
  static std::string encode(const Step &step);
  static std::string encode(const Kernel &kernel);
  static std::string encode(const CodeModule &module);
  static std::string encode(const TensorMap &map);
  static std::string encode(const KernelCode &code);
  static std::string encode(const Variant &variant);
  static std::string encode(const Repeat &repeat);
  static std::string encode(const Program &program);
  static std::string encode(const std::pair<std::string, std::string> &entry);
  static std::string encode(const BuildRecord &build);

private:
  friend Result<std::string>
  charonia::engine::encodeManifest(const Manifest &manifest);
  std::string data;
  protozero::pbf_writer writer{data};
};

template <typename Enum> uint64_t value(Enum number) {
  return static_cast<uint32_t>(number);
}

/// Negative numbers take ten bytes, as int64 does.
uint64_t signedValue(int64_t number) { return static_cast<uint64_t>(number); }

std::string Message::encode(const ShapeExpr &expr) {
  std::vector<int64_t> code;
  for (const ShapeExpr::Term &term : expr.terms()) {
    code.push_back(static_cast<int64_t>(term.op));
    code.push_back(term.value);
  }
  Message out;
  out.writer.add_packed_sint64(field::expr::Code, code.begin(), code.end());
  return out.take();
}

std::string Message::encode(const Range &range) {
  Message out;
  out.number(field::range::Section, range.section);
  out.number(field::range::Offset, range.offset);
  out.number(field::range::Size, range.size);
  return out.take();
}

std::string Message::encode(const TensorSpec &spec) {
  Message out;
  out.bytes(field::tensor::Name, spec.name);
  out.number(field::tensor::Dtype, value(spec.dtype));
  out.messages(field::tensor::Dims, spec.dims);
  return out.take();
}

std::string Message::encode(const Symbol &symbol) {
  Message out;
  out.bytes(field::symbol::Name, symbol.name);
  out.number(field::symbol::Min, signedValue(symbol.min));
  out.number(field::symbol::Opt, signedValue(symbol.opt));
  out.number(field::symbol::Max, signedValue(symbol.max));
  out.number(field::symbol::Divisor, signedValue(symbol.divisor));
  return out.take();
}

std::string Message::encode(const Constraint &constraint) {
  Message out;
  out.number(field::constraint::Relation, value(constraint.relation));
  out.message(field::constraint::Left, encode(constraint.left));
  out.message(field::constraint::Right, encode(constraint.right));
  out.bytes(field::constraint::Reason, constraint.reason);
  return out.take();
}

std::string Message::encode(const Signature &signature) {
  Message out;
  out.messages(field::signature::Inputs, signature.inputs);
  out.messages(field::signature::Outputs, signature.outputs);
  out.messages(field::signature::Symbols, signature.symbols);
  out.messages(field::signature::Constraints, signature.constraints);
  return out.take();
}

std::string Message::encode(const Buffer &buffer) {
  Message out;
  out.bytes(field::buffer::Name, buffer.name);
  out.number(field::buffer::Kind, value(buffer.kind));
  out.number(field::buffer::Index, buffer.index);
  out.number(field::buffer::WeightOffset, buffer.weightOffset);
  out.message(field::buffer::Size, encode(buffer.size));
  out.number(field::buffer::FirstStep, buffer.firstStep);
  out.number(field::buffer::LastStep, buffer.lastStep);
  out.number(field::buffer::Alignment, buffer.alignment);
  out.number(field::buffer::AliasPlusOne,
             buffer.alias + uint32_t(1)); // noIndex wraps to 0.
  out.present(field::buffer::AliasOffset, buffer.aliasOffset);
  return out.take();
}

std::string Message::encode(const Argument &arg) {
  Message out;
  out.number(field::argument::Buffer, arg.buffer);
  out.present(field::argument::Offset, arg.offset);
  return out.take();
}

std::string Message::encode(const Step &step) {
  Message out;
  out.number(field::step::Kind, value(step.kind));
  out.number(field::step::Kernel, step.kernel);
  out.messages(field::step::Args, step.args);
  out.present(field::step::Bytes, step.bytes);
  out.number(field::step::Pattern, step.pattern);
  out.number(field::step::PatternSize, step.patternSize);
  out.strings(field::step::Nodes, step.nodes);
  out.numbers(field::step::Symbols, step.symbols);
  out.number(field::step::BesidePrevious, step.besidePrevious);
  return out.take();
}

std::string Message::encode(const Kernel &kernel) {
  Message out;
  out.bytes(field::kernel::Name, kernel.name);
  out.strings(field::kernel::Ops, kernel.ops);
  out.message(field::kernel::Flops, encode(kernel.flops));
  out.message(field::kernel::Bytes, encode(kernel.bytes));
  out.number(field::kernel::NumSymbols, kernel.numSymbols);
  return out.take();
}

std::string Message::encode(const CodeModule &module) {
  Message out;
  out.present(field::module::Image, module.image);
  out.present(field::module::Ptx, module.ptx);
  out.present(field::module::Cubin, module.cubin);
  return out.take();
}

std::string Message::encode(const TensorMap &map) {
  Message out;
  out.number(field::map::Argument, map.argument);
  out.number(field::map::ElementBytes, map.elementBytes);
  out.number(field::map::Swizzle, map.swizzle);
  out.messages(field::map::Extents, map.extents);
  out.messages(field::map::Strides, map.strides);
  out.numbers(field::map::Box, map.box);
  out.numbers(field::map::Steps, map.steps);
  out.numbers(field::map::Lower, map.lower);
  out.numbers(field::map::Upper, map.upper);
  return out.take();
}

std::string Message::encode(const KernelCode &code) {
  Message out;
  out.number(field::code::Module, code.module);
  out.bytes(field::code::Entry, code.entry);
  out.number(field::code::EntryOffset, code.entryOffset);
  out.message(field::code::Grid, encode(code.grid));
  out.number(field::code::BlockThreads, code.blockThreads);
  out.number(field::code::ClusterSize, code.clusterSize);
  out.number(field::code::SharedBytes, code.sharedBytes);
  out.number(field::code::ScratchBytes, code.scratchBytes);
  out.number(field::code::Grain, code.grain);
  out.number(field::code::Registers, code.registers);
  out.number(field::code::SpillBytes, code.spillBytes);
  out.number(field::code::WaitsForPrevious, code.waitsForPrevious);
  out.number(field::code::Operations, code.operations);
  out.number(field::code::NeededOperations, code.neededOperations);
  out.number(field::code::AccessedBytes, code.accessedBytes);
  out.number(field::code::NeededBytes, code.neededBytes);
  out.present(field::code::Indexed, code.indexed);
  out.messages(field::code::Maps, code.maps);
  out.number(field::code::WaitsAtEnd, code.waitsAtEnd);
  return out.take();
}

std::string Message::encode(const Variant &variant) {
  Message out;
  out.bytes(field::variant::Arch, variant.arch);
  out.messages(field::variant::Modules, variant.modules);
  out.messages(field::variant::Kernels, variant.kernels);
  return out.take();
}

std::string Message::encode(const Repeat &repeat) {
  Message out;
  out.number(field::repeat::First, repeat.first);
  out.number(field::repeat::Last, repeat.last);
  out.number(field::repeat::Symbol, repeat.symbol);
  out.present(field::repeat::Count, repeat.count);
  return out.take();
}

std::string Message::encode(const Program &program) {
  Message out;
  out.number(field::program::Device, value(program.device));
  out.bytes(field::program::Precision, program.precision);
  out.number(field::program::WeightsSectionPlusOne,
             program.weightsSection + uint32_t(1));
  out.messages(field::program::Kernels, program.kernels);
  out.messages(field::program::Buffers, program.buffers);
  out.messages(field::program::Steps, program.steps);
  out.messages(field::program::Variants, program.variants);
  out.messages(field::program::Repeats, program.repeats);
  return out.take();
}

std::string Message::encode(const std::pair<std::string, std::string> &entry) {
  Message out;
  out.bytes(field::entry::Key, entry.first);
  out.bytes(field::entry::Value, entry.second);
  return out.take();
}

std::string Message::encode(const BuildRecord &build) {
  Message out;
  out.bytes(field::build::Compiler, build.compiler);
  out.bytes(field::build::ModelName, build.modelName);
  out.bytes(field::build::SourceHash, build.sourceHash);
  out.messages(field::build::Options, build.options);
  out.messages(field::build::Notes, build.notes);
  return out.take();
}

} // namespace

Result<std::string> encodeManifest(const Manifest &manifest) {
  Message out;
  out.message(field::manifest::Signature, Message::encode(manifest.signature));
  out.messages(field::manifest::Programs, manifest.programs);
  out.message(field::manifest::Build, Message::encode(manifest.build));
  std::string bytes = out.take();
  if (bytes.size() > maxManifestBytes)
    return Status(StatusCode::Unsupported,
                  "the engine's manifest is too large");
  return bytes;
}

} // namespace charonia::engine
