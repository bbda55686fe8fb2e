//===- Verify.cpp - What a manifest must satisfy --------------------------===//
//
// After verify() a runtime may index, evaluate and add without further checks,
// except for values that depend on concrete shapes. What a launch writes is not
// in the manifest: kernels are trusted to leave inputs and weights alone, as
// they are trusted in all else (docs/engine-format.md). The time is linear in
// the manifest's size, but for sorting names.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Aliases.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/Format.h"
#include "runtime/engine/TensorMaps.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace charonia::engine {

namespace {

constexpr int64_t maxExtent = int64_t(1) << 40;
constexpr size_t maxRank = 64;
// All are evaluated whenever a shape is bound.
constexpr size_t maxConstraints = 4096;
constexpr uint64_t maxScratch = uint64_t(1) << 28;
constexpr uint64_t maxShared = uint64_t(1) << 24;

Status bad(std::string message) {
  return Status(StatusCode::Corrupt, std::move(message));
}

std::string at(const char *what, size_t index) {
  return std::string(what) + " " + std::to_string(index);
}

bool isPowerOfTwo(uint64_t value) { return value && !(value & (value - 1)); }

Status checkName(const std::string &name) {
  return name.size() <= maxNameBytes
             ? Status::ok()
             : bad("its name has more than " + std::to_string(maxNameBytes) +
                   " bytes");
}

class Verifier {
public:
  Verifier(const Manifest &manifest, std::span<const SectionInfo> sections)
      : manifest(manifest), sections(sections),
        numSymbols(manifest.signature.symbols.size()) {}

  Status run() {
    CHARONIA_RETURN_IF_ERROR(checkSignature());
    for (size_t i = 0; i < manifest.programs.size(); ++i)
      CHARONIA_RETURN_IF_ERROR(
          checkProgram(manifest.programs[i]).withContext(at("program", i)));
    return Status::ok();
  }

private:
  Status checkExpr(const ShapeExpr &expr) const {
    return expr.check(numSymbols);
  }

  /// A launch gives its kernel as many sizes as that takes, which exist.
  Status checkLaunch(const Program &program, const Step &step) const {
    if (step.kernel >= program.kernels.size())
      return bad("kernel " + std::to_string(step.kernel) + " does not exist");
    uint32_t taken = program.kernels[step.kernel].numSymbols;
    if (step.symbols.size() != taken)
      return bad("it gives " + std::to_string(step.symbols.size()) +
                 " sizes to kernel " + std::to_string(step.kernel) +
                 ", which takes " + std::to_string(taken));
    for (uint32_t symbol : step.symbols)
      if (symbol >= numSymbols)
        return bad("shape symbol " + std::to_string(symbol) +
                   " does not exist");
    return Status::ok();
  }

  Status checkTensors(const std::vector<TensorSpec> &specs, const char *what) {
    if (specs.size() > maxTensors)
      return bad("there are more than " + std::to_string(maxTensors) + " " +
                 what + "s");
    std::set<std::string_view> names;
    for (size_t i = 0; i < specs.size(); ++i) {
      const TensorSpec &spec = specs[i];
      if (spec.name.empty())
        return bad(at(what, i) + " has no name");
      CHARONIA_RETURN_IF_ERROR(checkName(spec.name).withContext(at(what, i)));
      if (!names.insert(spec.name).second)
        return bad(std::string("two ") + what + "s are named '" + spec.name +
                   "'");
      if (!isValidDType(static_cast<unsigned>(spec.dtype)))
        return bad(at(what, i) + " has an unknown element type");
      if (spec.dims.size() > maxRank)
        return bad(at(what, i) + " has too many dimensions");
      for (const ShapeExpr &dim : spec.dims)
        CHARONIA_RETURN_IF_ERROR(checkExpr(dim).withContext(at(what, i)));
    }
    return Status::ok();
  }

  Status checkSignature() {
    const Signature &signature = manifest.signature;
    for (size_t i = 0; i < signature.symbols.size(); ++i) {
      const Symbol &symbol = signature.symbols[i];
      CHARONIA_RETURN_IF_ERROR(
          checkName(symbol.name).withContext(at("shape symbol", i)));
      if (symbol.min < 0 || symbol.min > symbol.opt ||
          symbol.opt > symbol.max || symbol.max > maxExtent)
        return bad(at("shape symbol", i) + " has the range " +
                   std::to_string(symbol.min) + ".." +
                   std::to_string(symbol.opt) + ".." +
                   std::to_string(symbol.max));
      if (symbol.divisor < 1 || symbol.divisor > maxExtent)
        return bad(at("shape symbol", i) + " has the divisor " +
                   std::to_string(symbol.divisor));
    }
    CHARONIA_RETURN_IF_ERROR(checkTensors(signature.inputs, "input"));
    CHARONIA_RETURN_IF_ERROR(checkTensors(signature.outputs, "output"));
    return checkConstraints(signature.constraints);
  }

  Status checkConstraints(const std::vector<Constraint> &constraints) const {
    using Relation = Constraint::Relation;
    if (constraints.size() > maxConstraints)
      return bad("there are " + std::to_string(constraints.size()) +
                 " constraints");
    for (size_t i = 0; i < constraints.size(); ++i) {
      const Constraint &c = constraints[i];
      if (c.relation != Relation::Equal && c.relation != Relation::Divides &&
          c.relation != Relation::AtLeast && c.relation != Relation::Differs)
        return bad(at("constraint", i) + " has an unknown relation");
      if (c.reason.size() > maxNameBytes)
        return bad("the reason of " + at("constraint", i) + " has more than " +
                   std::to_string(maxNameBytes) + " bytes");
      for (const ShapeExpr *side : {&c.left, &c.right})
        CHARONIA_RETURN_IF_ERROR(
            checkExpr(*side).withContext(at("constraint", i)));
      if (auto divisor = c.left.constantValue();
          c.relation == Relation::Divides && divisor && *divisor < 1)
        return bad(at("constraint", i) + " has the divisor " +
                   std::to_string(*divisor));
    }
    return Status::ok();
  }

  Status checkRange(const Range &range, SectionKind kind) const {
    if (range.section >= sections.size())
      return bad("section " + std::to_string(range.section) +
                 " does not exist");
    const SectionInfo &section = sections[range.section];
    if (section.kind != kind)
      return bad("section " + std::to_string(range.section) +
                 " is of the wrong kind");
    if (range.offset > section.size || range.size > section.size - range.offset)
      return bad("a range leaves section " + std::to_string(range.section));
    return Status::ok();
  }

  Status checkBuffer(const Program &program, const Buffer &buffer) const {
    CHARONIA_RETURN_IF_ERROR(checkExpr(buffer.size));
    // What page-aligned sections and the driver's allocations guarantee.
    uint32_t most = program.device == DeviceKind::Cuda ? 256 : 4096;
    if (!isPowerOfTwo(buffer.alignment) || buffer.alignment > most)
      return bad("the alignment " + std::to_string(buffer.alignment) +
                 " is not a power of two up to " + std::to_string(most));
    if (buffer.firstStep > buffer.lastStep ||
        (buffer.lastStep >= program.steps.size() && !program.steps.empty()))
      return bad("the lifetime is not inside the program's steps");
    if (auto size = buffer.size.constantValue(); size && *size < 0)
      return bad("the size is negative");
    if (buffer.alias != noIndex) {
      if (buffer.kind != Buffer::Kind::Arena)
        return bad("only arena buffers may be aliases");
      if (buffer.alias >= program.buffers.size())
        return bad("buffer " + std::to_string(buffer.alias) +
                   " does not exist");
    }
    CHARONIA_RETURN_IF_ERROR(checkExpr(buffer.aliasOffset));
    switch (buffer.kind) {
    case Buffer::Kind::Input:
      return buffer.index < manifest.signature.inputs.size()
                 ? Status::ok()
                 : bad("input " + std::to_string(buffer.index) +
                       " does not exist");
    case Buffer::Kind::Output:
      return buffer.index < manifest.signature.outputs.size()
                 ? Status::ok()
                 : bad("output " + std::to_string(buffer.index) +
                       " does not exist");
    case Buffer::Kind::Weight: {
      auto size = buffer.size.constantValue();
      if (!size)
        return bad("a weight's size must be a constant");
      if (program.weightsSection == noIndex)
        return bad("the program has no weights section");
      if (buffer.weightOffset % buffer.alignment != 0)
        return bad("the weight is not aligned as declared");
      return checkRange({program.weightsSection, buffer.weightOffset,
                         static_cast<uint64_t>(*size)},
                        SectionKind::Weights);
    }
    case Buffer::Kind::Arena:
      return Status::ok();
    }
    return bad("the kind is unknown");
  }

  /// No cycles: every chain of aliases ends. Notes whose memory each buffer
  /// lies in at last.
  Status resolveAliases(const Program &program) {
    size_t n = program.buffers.size();
    auto aliasOf = [&](uint32_t b) { return program.buffers[b].alias; };
    AliasOrder aliases = orderAliases(n, aliasOf);
    if (aliases.cycle != noIndex)
      return bad(at("buffer", aliases.cycle) + " is an alias of itself");
    roots.assign(n, 0);
    for (uint32_t b : aliases.order)
      roots[b] = aliasOf(b) == noIndex ? b : roots[aliasOf(b)];
    return Status::ok();
  }

  Status checkBuffers(const Program &program) {
    std::vector<bool> inputs(manifest.signature.inputs.size());
    std::vector<bool> outputs(manifest.signature.outputs.size());
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const Buffer &buffer = program.buffers[i];
      CHARONIA_RETURN_IF_ERROR(
          checkBuffer(program, buffer).withContext(at("buffer", i)));
      auto claim = [&](std::vector<bool> &slots) {
        bool taken = slots[buffer.index];
        slots[buffer.index] = true;
        return !taken;
      };
      if ((buffer.kind == Buffer::Kind::Input && !claim(inputs)) ||
          (buffer.kind == Buffer::Kind::Output && !claim(outputs)))
        return bad(at("buffer", i) + " stands for an input or output that "
                                     "another buffer stands for");
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i])
        return bad("no buffer stands for the output '" +
                   manifest.signature.outputs[i].name + "'");
    return resolveAliases(program);
  }

  /// That what runs beside others is a launch behind a launch. `lastOfWave`:
  /// until when buffers of what it may run beside live.
  Status checkStep(const Program &program, size_t index,
                   size_t lastOfWave) const {
    const Step &step = program.steps[index];
    CHARONIA_RETURN_IF_ERROR(checkExpr(step.bytes));
    if (step.besidePrevious &&
        (step.kind != Step::Kind::Launch || index == 0 ||
         program.steps[index - 1].kind != Step::Kind::Launch))
      return bad(
          "it runs beside the step before it, and not both are launches");
    for (const Argument &arg : step.args) {
      if (arg.buffer >= program.buffers.size())
        return bad("buffer " + std::to_string(arg.buffer) + " does not exist");
      const Buffer &buffer = program.buffers[arg.buffer];
      if (index < buffer.firstStep || index > buffer.lastStep)
        return bad("buffer " + std::to_string(arg.buffer) +
                   " is used outside its lifetime");
      if (buffer.lastStep < lastOfWave)
        return bad("buffer " + std::to_string(arg.buffer) +
                   " does not live until the end of the wave, step " +
                   std::to_string(lastOfWave));
      CHARONIA_RETURN_IF_ERROR(checkExpr(arg.offset));
    }
    auto writes = [&](size_t arg) {
      Buffer::Kind kind = program.buffers[roots[step.args[arg].buffer]].kind;
      return kind == Buffer::Kind::Output || kind == Buffer::Kind::Arena
                 ? Status::ok()
                 : bad("it writes an input or a weight");
    };
    if (step.kind == Step::Kind::Launch)
      return checkLaunch(program, step);
    if (!step.symbols.empty())
      return bad("only launches take sizes");
    switch (step.kind) {
    case Step::Kind::Launch:
      break;
    case Step::Kind::Copy:
      return step.args.size() == 2 ? writes(0)
                                   : bad("a copy takes two arguments");
    case Step::Kind::Fill:
      if (step.args.size() != 1)
        return bad("a fill takes one argument");
      if (step.patternSize != 1 && step.patternSize != 2 &&
          step.patternSize != 4)
        return bad("a fill's pattern has 1, 2 or 4 bytes");
      return writes(0);
    }
    return bad("the kind is unknown");
  }

  /// None of a wave uses a buffer in the place of another one that it uses.
  Status checkAliases(const Step &step) {
    for (const Argument &arg : step.args)
      if (auto [it, isNew] = ofWave.try_emplace(roots[arg.buffer], arg.buffer);
          !isNew && it->second != arg.buffer)
        return bad("buffers " + std::to_string(it->second) + " and " +
                   std::to_string(arg.buffer) +
                   " lie in one place, and what runs side by side uses both");
    return Status::ok();
  }

  /// Repeats follow each other, and what counts them exists.
  Status checkRepeats(const Program &program) const {
    size_t behind = 0;
    for (size_t i = 0; i < program.repeats.size(); ++i) {
      const Repeat &repeat = program.repeats[i];
      if (repeat.first < behind || repeat.first >= repeat.last ||
          repeat.last > program.steps.size())
        return bad(at("repeat", i) + " has no step, is not behind the one "
                                     "before, or not inside the program's "
                                     "steps");
      if (repeat.symbol >= numSymbols)
        return bad(at("repeat", i) + " counts by shape symbol " +
                   std::to_string(repeat.symbol) + ", which does not exist");
      CHARONIA_RETURN_IF_ERROR(
          checkExpr(repeat.count).withContext(at("repeat", i)));
      for (uint32_t edge : {repeat.first, repeat.last})
        if (edge < program.steps.size() && program.steps[edge].besidePrevious)
          return bad(at("repeat", i) + " begins or ends among steps that run "
                                       "beside each other");
      behind = repeat.last;
    }
    return Status::ok();
  }

  Status checkVariant(const Program &program, const Variant &variant) const {
    bool cpu = program.device == DeviceKind::Cpu;
    if (variant.arch.empty())
      return bad("the architecture is not named");
    for (const CodeModule &module : variant.modules) {
      if (cpu ? module.image.empty()
              : module.ptx.empty() && module.cubin.empty())
        return bad("a module has no code");
      for (const Range *range : {&module.image, &module.ptx, &module.cubin})
        if (!range->empty())
          CHARONIA_RETURN_IF_ERROR(checkRange(*range, SectionKind::Code));
      if (module.image.offset % 64 != 0)
        return bad("an image is not aligned to 64 bytes");
    }
    if (variant.kernels.size() != program.kernels.size())
      return bad("it implements " + std::to_string(variant.kernels.size()) +
                 " of " + std::to_string(program.kernels.size()) + " kernels");
    for (size_t i = 0; i < variant.kernels.size(); ++i)
      CHARONIA_RETURN_IF_ERROR(
          checkKernelCode(program, variant, i).withContext(at("kernel", i)));
    return checkMapTerms(variant);
  }

  /// Of all launches together, which evaluate them each for itself.
  Status checkMapTerms(const Variant &variant) const {
    uint64_t terms = 0;
    for (size_t i = 0; i < variant.kernels.size(); ++i) {
      for (const TensorMap &map : variant.kernels[i].maps)
        terms += countTerms(map) * launches[i].count;
      if (terms > maxMapTerms)
        return bad("its launches take tensor maps with " +
                   std::to_string(terms) + " terms or more");
    }
    return Status::ok();
  }

  Status checkMaps(const Program &program, const KernelCode &code,
                   size_t number) const {
    if (code.maps.empty())
      return Status::ok();
    if (program.device != DeviceKind::Cuda)
      return bad("it has tensor maps, which only GPUs take");
    if (code.maps.size() > maxTensorMaps)
      return bad("it has " + std::to_string(code.maps.size()) +
                 " tensor maps, more than " + std::to_string(maxTensorMaps));
    for (size_t i = 0; i < code.maps.size(); ++i) {
      const TensorMap &map = code.maps[i];
      if (map.argument >= launches[number].fewestArgs)
        return bad(at("map", i) + " is of argument " +
                   std::to_string(map.argument) +
                   ", which not every launch has");
      CHARONIA_RETURN_IF_ERROR(
          checkTensorMap(map, program.kernels[number].numSymbols)
              .withContext(at("map", i)));
    }
    return Status::ok();
  }

  Status checkKernelCode(const Program &program, const Variant &variant,
                         size_t number) const {
    const KernelCode &code = variant.kernels[number];
    bool cpu = program.device == DeviceKind::Cpu;
    for (const ShapeExpr *expr : {&code.grid, &code.indexed})
      CHARONIA_RETURN_IF_ERROR(expr->check(program.kernels[number].numSymbols));
    if (cpu && code.indexed != ShapeExpr())
      return bad("it says what its indices count, which have 64 bits");
    if (code.module >= variant.modules.size())
      return bad("module " + std::to_string(code.module) + " does not exist");
    if (cpu && code.entryOffset >= variant.modules[code.module].image.size)
      return bad("the entry lies outside the image");
    if (!cpu &&
        (code.entry.empty() || code.entry.find('\0') != std::string::npos))
      return bad("the entry has no usable name");
    if (code.blockThreads < 1 || code.blockThreads > 1024)
      return bad("the block has " + std::to_string(code.blockThreads) +
                 " threads");
    if (code.clusterSize < 1 || code.clusterSize > 16)
      return bad("the cluster has " + std::to_string(code.clusterSize) +
                 " blocks");
    if (code.sharedBytes > maxShared || code.scratchBytes > maxScratch)
      return bad("it asks for too much shared memory or scratch");
    if (code.grain < 1)
      return bad("the grain is 0");
    return checkMaps(program, code, number);
  }

  void countLaunches(const Program &program) {
    launches.assign(program.kernels.size(), {});
    for (const Step &step : program.steps) {
      if (step.kind != Step::Kind::Launch)
        continue;
      Launches &of = launches[step.kernel];
      ++of.count;
      of.fewestArgs = std::min(of.fewestArgs, step.args.size());
    }
  }

  Status checkProgram(const Program &program) {
    if (program.device != DeviceKind::Cpu && program.device != DeviceKind::Cuda)
      return bad("the device kind is unknown");
    if (program.weightsSection != noIndex)
      CHARONIA_RETURN_IF_ERROR(
          checkRange({program.weightsSection, 0, 0}, SectionKind::Weights));
    for (size_t i = 0; i < program.kernels.size(); ++i) {
      const Kernel &kernel = program.kernels[i];
      if (kernel.numSymbols > numSymbols)
        return bad(at("kernel", i) + " takes " +
                   std::to_string(kernel.numSymbols) + " sizes, of which " +
                   std::to_string(numSymbols) + " exist");
      for (const ShapeExpr *work : {&kernel.flops, &kernel.bytes})
        CHARONIA_RETURN_IF_ERROR(
            work->check(kernel.numSymbols).withContext(at("kernel", i)));
    }
    CHARONIA_RETURN_IF_ERROR(checkBuffers(program));
    for (size_t i = 0, last = 0; i < program.steps.size(); ++i) {
      if (i == 0 || !program.steps[i].besidePrevious) {
        last = lastOfWave(program.steps, i);
        ofWave.clear();
      }
      CHARONIA_RETURN_IF_ERROR(
          checkStep(program, i, last).withContext(at("step", i)));
      if (program.steps[i].besidePrevious || last > i)
        CHARONIA_RETURN_IF_ERROR(
            checkAliases(program.steps[i]).withContext(at("step", i)));
    }
    CHARONIA_RETURN_IF_ERROR(checkRepeats(program));
    countLaunches(program);
    if (program.variants.empty())
      return bad("there is no code for it");
    for (size_t i = 0; i < program.variants.size(); ++i)
      CHARONIA_RETURN_IF_ERROR(checkVariant(program, program.variants[i])
                                   .withContext(at("variant", i)));
    return Status::ok();
  }

  const Manifest &manifest;
  std::span<const SectionInfo> sections;
  size_t numSymbols;
  std::vector<uint32_t> roots; ///< Of the current program's buffers.
  /// Buffers that the current wave uses, by their roots.
  std::unordered_map<uint32_t, uint32_t> ofWave;
  /// Of a kernel in the current program.
  struct Launches {
    uint64_t count = 0;
    size_t fewestArgs = SIZE_MAX;
  };
  std::vector<Launches> launches; ///< One a kernel.
};

} // namespace

size_t lastOfWave(std::span<const Step> steps, size_t step) {
  while (step + 1 < steps.size() && steps[step + 1].besidePrevious)
    ++step;
  return step;
}

Status verify(const Manifest &manifest, std::span<const SectionInfo> sections) {
  return Verifier(manifest, sections).run();
}

} // namespace charonia::engine
