//===- Encoding.cpp - Manifest to protobuf bytes and back -----------------===//

#include "runtime/engine/Encoding.h"
#include "runtime/engine/Format.h"
#include "runtime/engine/engine.pb.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace charonia::engine {

namespace {

//===----------------------------------------------------------------------===//
// To protobuf
//===----------------------------------------------------------------------===//

void encode(const ShapeExpr &expr, proto::Expr *out) {
  for (const ShapeExpr::Term &term : expr.terms()) {
    out->add_code(static_cast<int64_t>(term.op));
    out->add_code(term.value);
  }
}

void encode(const Range &range, proto::Range *out) {
  out->set_section(range.section);
  out->set_offset(range.offset);
  out->set_size(range.size);
}

void encode(const TensorSpec &spec, proto::TensorSpec *out) {
  out->set_name(spec.name);
  out->set_dtype(static_cast<uint32_t>(spec.dtype));
  for (const ShapeExpr &dim : spec.dims)
    encode(dim, out->add_dims());
}

void encode(const Signature &signature, proto::Signature *out) {
  for (const TensorSpec &spec : signature.inputs)
    encode(spec, out->add_inputs());
  for (const TensorSpec &spec : signature.outputs)
    encode(spec, out->add_outputs());
  for (const Symbol &symbol : signature.symbols) {
    proto::Symbol *s = out->add_symbols();
    s->set_name(symbol.name);
    s->set_min(symbol.min);
    s->set_opt(symbol.opt);
    s->set_max(symbol.max);
    s->set_divisor(symbol.divisor);
  }
}

void encode(const Buffer &buffer, proto::Buffer *out) {
  out->set_name(buffer.name);
  out->set_kind(static_cast<uint32_t>(buffer.kind));
  out->set_index(buffer.index);
  out->set_weight_offset(buffer.weightOffset);
  encode(buffer.size, out->mutable_size());
  out->set_first_step(buffer.firstStep);
  out->set_last_step(buffer.lastStep);
  out->set_alignment(buffer.alignment);
  out->set_alias_plus_one(buffer.alias + 1); // noIndex wraps to 0.
  if (buffer.aliasOffset != ShapeExpr())
    encode(buffer.aliasOffset, out->mutable_alias_offset());
}

void encode(const Step &step, proto::Step *out) {
  out->set_kind(static_cast<uint32_t>(step.kind));
  out->set_kernel(step.kernel);
  for (const Argument &arg : step.args) {
    proto::Argument *a = out->add_args();
    a->set_buffer(arg.buffer);
    if (arg.offset != ShapeExpr())
      encode(arg.offset, a->mutable_offset());
  }
  if (step.bytes != ShapeExpr())
    encode(step.bytes, out->mutable_bytes());
  out->set_pattern(step.pattern);
  out->set_pattern_size(step.patternSize);
  out->set_overlap_previous(step.overlapPrevious);
  for (const std::string &node : step.nodes)
    out->add_nodes(node);
}

void encode(const Variant &variant, proto::Variant *out) {
  out->set_arch(variant.arch);
  for (const CodeModule &module : variant.modules) {
    proto::CodeModule *m = out->add_modules();
    if (!module.image.empty())
      encode(module.image, m->mutable_image());
    if (!module.ptx.empty())
      encode(module.ptx, m->mutable_ptx());
    if (!module.cubin.empty())
      encode(module.cubin, m->mutable_cubin());
  }
  for (const KernelCode &code : variant.kernels) {
    proto::KernelCode *k = out->add_kernels();
    k->set_module(code.module);
    k->set_entry(code.entry);
    k->set_entry_offset(code.entryOffset);
    encode(code.grid, k->mutable_grid());
    k->set_block_threads(code.blockThreads);
    k->set_cluster_size(code.clusterSize);
    k->set_shared_bytes(code.sharedBytes);
    k->set_scratch_bytes(code.scratchBytes);
    k->set_grain(code.grain);
    k->set_registers(code.registers);
    k->set_spill_bytes(code.spillBytes);
  }
}

void encode(const Program &program, proto::Program *out) {
  out->set_device(static_cast<uint32_t>(program.device));
  out->set_precision(program.precision);
  out->set_weights_section_plus_one(program.weightsSection + 1);
  for (const Kernel &kernel : program.kernels) {
    proto::Kernel *k = out->add_kernels();
    k->set_name(kernel.name);
    for (const std::string &op : kernel.ops)
      k->add_ops(op);
    encode(kernel.flops, k->mutable_flops());
    encode(kernel.bytes, k->mutable_bytes());
  }
  for (const Buffer &buffer : program.buffers)
    encode(buffer, out->add_buffers());
  for (const Step &step : program.steps)
    encode(step, out->add_steps());
  for (const Variant &variant : program.variants)
    encode(variant, out->add_variants());
}

//===----------------------------------------------------------------------===//
// From protobuf
//===----------------------------------------------------------------------===//

/// A missing message is the constant 0; a malformed one stays malformed, for
/// ShapeExpr::check() to find.
ShapeExpr decode(const proto::Expr &expr) {
  if (expr.code_size() == 0)
    return ShapeExpr();
  std::vector<ShapeExpr::Term> terms;
  terms.reserve(expr.code_size() / 2 + 1);
  for (int i = 0; i + 1 < expr.code_size(); i += 2) {
    int64_t op = expr.code(i);
    // 255 is no operator.
    terms.push_back({static_cast<ShapeExpr::Op>(op < 0 || op > 255 ? 255 : op),
                     expr.code(i + 1)});
  }
  if (expr.code_size() % 2 != 0)
    terms.push_back({static_cast<ShapeExpr::Op>(255), 0});
  return ShapeExpr::fromTerms(std::move(terms));
}

/// Enumerations are stored as numbers; those that do not fit become 0, which is
/// no enumerator.
template <typename Enum> Enum decodeEnum(uint32_t value) {
  return static_cast<Enum>(value > 0xff ? 0 : value);
}

Range decode(const proto::Range &range) {
  return {range.section(), range.offset(), range.size()};
}

TensorSpec decode(const proto::TensorSpec &in) {
  TensorSpec spec;
  spec.name = in.name();
  spec.dtype = decodeEnum<DType>(in.dtype());
  for (const proto::Expr &dim : in.dims())
    spec.dims.push_back(decode(dim));
  return spec;
}

Signature decode(const proto::Signature &in) {
  Signature signature;
  for (const proto::TensorSpec &spec : in.inputs())
    signature.inputs.push_back(decode(spec));
  for (const proto::TensorSpec &spec : in.outputs())
    signature.outputs.push_back(decode(spec));
  for (const proto::Symbol &s : in.symbols())
    signature.symbols.push_back(
        {s.name(), s.min(), s.opt(), s.max(), s.divisor()});
  return signature;
}

Buffer decode(const proto::Buffer &in) {
  Buffer buffer;
  buffer.name = in.name();
  buffer.kind = decodeEnum<Buffer::Kind>(in.kind());
  buffer.index = in.index();
  buffer.weightOffset = in.weight_offset();
  buffer.size = decode(in.size());
  buffer.firstStep = in.first_step();
  buffer.lastStep = in.last_step();
  buffer.alignment = in.alignment();
  buffer.alias = in.alias_plus_one() - 1;
  buffer.aliasOffset = decode(in.alias_offset());
  return buffer;
}

Step decode(const proto::Step &in) {
  Step step;
  step.kind = decodeEnum<Step::Kind>(in.kind());
  step.kernel = in.kernel();
  for (const proto::Argument &arg : in.args())
    step.args.push_back({arg.buffer(), decode(arg.offset())});
  step.bytes = decode(in.bytes());
  step.pattern = in.pattern();
  step.patternSize = in.pattern_size();
  step.overlapPrevious = in.overlap_previous();
  step.nodes.assign(in.nodes().begin(), in.nodes().end());
  return step;
}

Variant decode(const proto::Variant &in) {
  Variant variant;
  variant.arch = in.arch();
  for (const proto::CodeModule &module : in.modules())
    variant.modules.push_back(
        {decode(module.image()), decode(module.ptx()), decode(module.cubin())});
  for (const proto::KernelCode &k : in.kernels()) {
    KernelCode code;
    code.module = k.module();
    code.entry = k.entry();
    code.entryOffset = k.entry_offset();
    code.grid = decode(k.grid());
    code.blockThreads = k.block_threads();
    code.clusterSize = k.cluster_size();
    code.sharedBytes = k.shared_bytes();
    code.scratchBytes = k.scratch_bytes();
    code.grain = k.grain();
    code.registers = k.registers();
    code.spillBytes = k.spill_bytes();
    variant.kernels.push_back(std::move(code));
  }
  return variant;
}

Program decode(const proto::Program &in) {
  Program program;
  program.device = decodeEnum<DeviceKind>(in.device());
  program.precision = in.precision();
  program.weightsSection = in.weights_section_plus_one() - 1;
  for (const proto::Kernel &k : in.kernels()) {
    Kernel kernel;
    kernel.name = k.name();
    kernel.ops.assign(k.ops().begin(), k.ops().end());
    kernel.flops = decode(k.flops());
    kernel.bytes = decode(k.bytes());
    program.kernels.push_back(std::move(kernel));
  }
  for (const proto::Buffer &buffer : in.buffers())
    program.buffers.push_back(decode(buffer));
  for (const proto::Step &step : in.steps())
    program.steps.push_back(decode(step));
  for (const proto::Variant &variant : in.variants())
    program.variants.push_back(decode(variant));
  return program;
}

} // namespace

Result<std::string> encodeManifest(const Manifest &manifest) {
  proto::Manifest message;
  encode(manifest.signature, message.mutable_signature());
  for (const Program &program : manifest.programs)
    encode(program, message.add_programs());
  proto::BuildRecord *build = message.mutable_build();
  build->set_compiler(manifest.build.compiler);
  build->set_model_name(manifest.build.modelName);
  build->set_source_hash(manifest.build.sourceHash);
  for (const auto &[key, value] : manifest.build.options) {
    proto::Entry *entry = build->add_options();
    entry->set_key(key);
    entry->set_value(value);
  }
  for (const auto &[key, value] : manifest.build.notes) {
    proto::Entry *entry = build->add_notes();
    entry->set_key(key);
    entry->set_value(value);
  }
  if (message.ByteSizeLong() > maxManifestBytes)
    return Status(StatusCode::Unsupported,
                  "the engine's manifest is too large");
  // There are no maps in the message, so its serialization is deterministic.
  return message.SerializeAsString();
}

Result<Manifest> decodeManifest(std::span<const std::byte> bytes) {
  if (bytes.size() > maxManifestBytes)
    return Status(StatusCode::Corrupt, "the engine's manifest is too large");
  proto::Manifest message;
  google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                static_cast<int>(bytes.size()));
  if (!message.ParseFromZeroCopyStream(&stream))
    return Status(StatusCode::Corrupt,
                  "the engine's manifest cannot be parsed");
  Manifest manifest;
  manifest.signature = decode(message.signature());
  for (const proto::Program &program : message.programs())
    manifest.programs.push_back(decode(program));
  const proto::BuildRecord &build = message.build();
  manifest.build.compiler = build.compiler();
  manifest.build.modelName = build.model_name();
  manifest.build.sourceHash = build.source_hash();
  for (const proto::Entry &entry : build.options())
    manifest.build.options.emplace_back(entry.key(), entry.value());
  for (const proto::Entry &entry : build.notes())
    manifest.build.notes.emplace_back(entry.key(), entry.value());
  return manifest;
}

} // namespace charonia::engine
