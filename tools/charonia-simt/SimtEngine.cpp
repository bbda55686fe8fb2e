#include "tools/charonia-simt/SimtEngine.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>

using namespace mlir;
namespace fs = std::filesystem;

namespace charonia::tool {

using engine::Buffer;
using engine::Step;

static Status notFound(const std::string &what) {
  return Status(StatusCode::NotFound, what);
}

/// The one entry of a folder that `accept` takes; empty if there is none.
static std::string
findEntry(const std::string &folder,
          llvm::function_ref<bool(llvm::StringRef name)> accept) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (accept(it->path().filename().string()))
      return it->path().string();
  return "";
}

static std::string describe(const engine::Program &program,
                            const engine::Variant &variant) {
  return variant.arch + ", " + program.precision;
}

Result<SimtEngine> SimtEngine::open(const std::string &engine,
                                    const std::string &dump,
                                    const std::string &arch,
                                    const std::string &precision,
                                    MLIRContext &context) {
  CHARONIA_ASSIGN_OR_RETURN(auto reader, engine::Reader::open(engine));
  SimtEngine result(std::move(reader), context);
  std::vector<std::string> all, fitting;
  for (const engine::Program &program : result.reader->manifest().programs)
    for (const engine::Variant &variant : program.variants) {
      if (program.device != DeviceKind::Cuda)
        continue;
      all.push_back(describe(program, variant));
      if ((!arch.empty() && variant.arch != arch) ||
          (!precision.empty() && program.precision != precision))
        continue;
      fitting.push_back(all.back());
      result.program = &program;
      result.variant = &variant;
    }
  if (all.empty())
    return notFound(engine + ": holds no program for a GPU");
  if (fitting.size() != 1)
    return notFound(engine + ": " + (fitting.empty() ? "none" : "several") +
                    " of its programs for GPUs (" + llvm::join(all, "; ") +
                    ") " + (fitting.empty() ? "fits" : "fit") +
                    " --arch and --precision; name one");
  std::string folder = result.variant->arch + "-cuda-code";
  result.code = findEntry(
      dump, [&](llvm::StringRef name) { return name.ends_with("-" + folder); });
  if (result.code.empty())
    return notFound(dump + ": holds no code for " + result.variant->arch +
                    "; compile with --target " + result.variant->arch +
                    " --dump-dir " + dump);
  if (result.program->weightsSection != engine::noIndex)
    CHARONIA_RETURN_IF_ERROR(
        result.reader->verifySection(result.program->weightsSection));
  return result;
}

std::string SimtEngine::description() const {
  return describe(*program, *variant);
}

/// Where a plan's locations are on this machine.
struct SimtEngine::Memory {
  const exec::ExecutionPlan &plan;
  const std::byte *weights = nullptr;
  Array arena;
  std::vector<Array> inputs, outputs;
  /// Buffers that steps of a wave have used, the wave by its last step, and how
  /// often that ran before.
  std::set<uint32_t> begun = {};
  std::pair<size_t, int64_t> wave = {SIZE_MAX, 0};

  /// Alignment that a tensor's address is known to have, and no more.
  static uint64_t alignmentOf(const exec::PlannedTensor &tensor) {
    return std::min<uint64_t>(tensor.alignment, 2048);
  }
  interpreter::Buffer resolve(const exec::Location &at, uint64_t bytes) const {
    switch (at.base) {
    case Buffer::Kind::Input:
      return {inputs[at.index].data.get() + at.offset, bytes,
              alignmentOf(plan.inputs[at.index]) + at.offset % 2048, true};
    case Buffer::Kind::Output:
      return {outputs[at.index].data.get() + at.offset, bytes,
              alignmentOf(plan.outputs[at.index]) + at.offset % 2048};
    case Buffer::Kind::Weight:
      return {const_cast<std::byte *>(weights) + at.offset, bytes,
              at.offset % 4096, true, true};
    case Buffer::Kind::Arena:
      return {arena.data.get() + at.offset, bytes, at.offset % 4096};
    }
    return {};
  }
};

Result<const interpreter::Kernel *>
SimtEngine::kernelOf(const exec::PlannedStep &step) {
  auto known = kernels.find(step.kernelIndex);
  if (known != kernels.end())
    return &known->second;
  std::string number = std::to_string(step.kernelIndex) + "-";
  std::string folder = findEntry(
      code, [&](llvm::StringRef name) { return name.starts_with(number); });
  std::string path = findEntry(folder, [&](llvm::StringRef name) {
    return name.starts_with(variant->arch + ".") &&
           name.ends_with("-thread.mlir");
  });
  if (path.empty())
    return notFound(code + ": holds no kernel " + number + "*/" +
                    variant->arch + ".*-thread.mlir");
  std::string errors;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(errors) << "; " << diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(path, ParserConfig(context));
  if (!module)
    return Status(StatusCode::InvalidArgument, path + errors);
  auto functions = module->getOps<LLVM::LLVMFuncOp>();
  if (!llvm::hasSingleElement(functions))
    return Status(StatusCode::InvalidArgument, path + ": is not one kernel");
  FailureOr<interpreter::Kernel> kernel =
      interpreter::Kernel::decode(*functions.begin());
  if (failed(kernel))
    return Status(StatusCode::Unsupported, path + errors);
  return &kernels.emplace(step.kernelIndex, std::move(*kernel)).first->second;
}

/// The dump and the engine may come from different compilations.
Status SimtEngine::checkKernel(const interpreter::Kernel &kernel,
                               const exec::PlannedStep &step) const {
  const engine::KernelCode &code = *step.code;
  size_t buffers = step.args.size(), symbols = step.symbols.size();
  auto differs = [&](const std::string &dumped, const std::string &engine) {
    return Status(StatusCode::InvalidArgument,
                  "the dump is not of this engine: its kernel " +
                      kernel.name() + " " + dumped + ", the engine's " +
                      engine);
  };
  if (kernel.name() != code.entry)
    return differs("stands in the place of another", "is " + code.entry);
  if (kernel.blockThreads() != code.blockThreads)
    return differs("has blocks of " + std::to_string(kernel.blockThreads()) +
                       " threads",
                   "of " + std::to_string(code.blockThreads));
  if (kernel.clusterBlocks() != code.clusterSize)
    return differs("has clusters of " + std::to_string(kernel.clusterBlocks()) +
                       " blocks",
                   "of " + std::to_string(code.clusterSize));
  if (kernel.numBuffers() != buffers || kernel.numSymbols() != symbols)
    return differs("takes " + std::to_string(kernel.numBuffers()) +
                       " buffers and " + std::to_string(kernel.numSymbols()) +
                       " symbols",
                   std::to_string(buffers) + " and " + std::to_string(symbols));
  if (kernel.numMaps() != code.maps.size())
    return differs("takes " + std::to_string(kernel.numMaps()) + " tensor maps",
                   std::to_string(code.maps.size()));
  return Status::ok();
}

static interpreter::TensorMap convert(const exec::PlannedMap &planned) {
  const engine::TensorMap &map = *planned.map;
  interpreter::TensorMap result;
  result.buffer = map.argument;
  result.elementBytes = map.elementBytes;
  result.swizzle = map.swizzle;
  result.extents.assign(planned.extents.begin(), planned.extents.end());
  result.strides.assign(planned.strides.begin(), planned.strides.end());
  result.box.assign(map.box.begin(), map.box.end());
  result.steps.assign(map.steps.begin(), map.steps.end());
  result.lower.assign(map.lower.begin(), map.lower.end());
  result.upper.assign(map.upper.begin(), map.upper.end());
  return result;
}

/// The loop that a step of the program is in, if any.
const engine::Repeat *SimtEngine::repeatOf(uint32_t step) const {
  for (const engine::Repeat &repeat : program->repeats)
    if (repeat.first <= step && step < repeat.last)
      return &repeat;
  return nullptr;
}

Status SimtEngine::launch(const exec::PlannedStep &step,
                          const exec::ExecutionPlan &plan, uint32_t number,
                          Memory &memory, const SimtOptions &options,
                          interpreter::Report &report) {
  CHARONIA_ASSIGN_OR_RETURN(const interpreter::Kernel *kernel, kernelOf(step));
  CHARONIA_RETURN_IF_ERROR(checkKernel(*kernel, step));
  interpreter::Launch launch;
  launch.grid = step.grid;
  launch.sharedBytes = step.code->sharedBytes;
  launch.symbols.assign(step.symbols.begin(), step.symbols.end());
  for (const exec::PlannedMap &map : step.maps)
    launch.maps.push_back(convert(map));
  launch.seed = options.seed ? options.seed + number : 0;
  launch.copies = options.copies;
  // Behind a copy or a fill it could not happen; the kernel does not know.
  launch.overlapsPrevious = step.code->waitsForPrevious;
  launch.waitsAtEnd = step.code->waitsAtEnd;
  uint32_t index = step.step - program->steps.data();
  size_t wave = engine::lastOfWave(program->steps, index);
  if (std::exchange(memory.wave, std::pair(wave, step.time)) !=
      std::pair(wave, step.time))
    memory.begun.clear();
  const engine::Repeat *repeat = repeatOf(index);
  std::vector<int64_t> symbols = plan.symbols;
  if (repeat)
    symbols[repeat->symbol] = step.time + 1;
  for (size_t i = 0; i < step.args.size(); ++i) {
    const engine::Argument &argument = step.step->args[i];
    const Buffer &buffer = program->buffers[argument.buffer];
    CHARONIA_ASSIGN_OR_RETURN(int64_t size, buffer.size.evaluate(symbols));
    CHARONIA_ASSIGN_OR_RETURN(int64_t offset,
                              argument.offset.evaluate(symbols));
    interpreter::Buffer place = memory.resolve(step.args[i], size - offset);
    // The arena is undefined where a buffer's life begins: numbers that are
    // none, so that using them shows. Of a wave that is the first use,
    // whichever step's it is.
    bool isThereAlready =
        step.time > 0 && repeat && buffer.lastStep >= repeat->last;
    if (buffer.kind == Buffer::Kind::Arena && buffer.alias == engine::noIndex &&
        wave == engine::lastOfWave(program->steps, buffer.firstStep) &&
        !isThereAlready && memory.begun.insert(argument.buffer).second)
      std::memset(place.data, 0xff, place.bytes);
    launch.buffers.push_back(place);
  }
  if (step.grid != 0) // Otherwise its maps are not planned.
    kernel->launch(launch, report);
  return Status::ok();
}

/// The plan's steps, one after another; with a seed those that may run beside
/// one another in an order of it: with 1 from the last to the first.
static std::vector<uint32_t> orderOf(const exec::ExecutionPlan &plan,
                                     uint64_t seed) {
  std::vector<uint32_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  for (size_t first = 0, last = 0; first < order.size(); first = last) {
    do
      ++last;
    while (last < order.size() && plan.steps[last].step->besidePrevious);
    if (seed == 1)
      std::reverse(order.begin() + first, order.begin() + last);
    else if (seed)
      std::shuffle(order.begin() + first, order.begin() + last, random);
  }
  return order;
}

Result<std::vector<Array>> SimtEngine::run(const std::vector<Array> &inputs,
                                           const SimtOptions &options,
                                           interpreter::Report &report) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Array &input : inputs)
    shapes.push_back(input.shape);
  CHARONIA_ASSIGN_OR_RETURN(std::vector<int64_t> symbols,
                            signature().solveSymbols(shapes));
  CHARONIA_ASSIGN_OR_RETURN(
      auto plan,
      exec::makeExecutionPlan(signature(), *program, *variant, symbols));
  Memory memory{*plan, nullptr, {}, inputs, {}};
  if (program->weightsSection != engine::noIndex)
    memory.weights = reader->section(program->weightsSection).data();
  CHARONIA_ASSIGN_OR_RETURN(
      memory.arena, Array::allocate(DType::UInt8, {int64_t(plan->arenaBytes)}));
  for (size_t i = 0; i < plan->outputs.size(); ++i) {
    CHARONIA_ASSIGN_OR_RETURN(
        Array output,
        Array::allocate(signature().outputs[i].dtype, plan->outputs[i].shape));
    std::memset(output.data.get(), 0xff, output.size);
    memory.outputs.push_back(std::move(output));
  }
  for (uint32_t number : orderOf(*plan, options.seed)) {
    const exec::PlannedStep &step = plan->steps[number];
    switch (step.step->kind) {
    case Step::Kind::Launch:
      CHARONIA_RETURN_IF_ERROR(
          launch(step, *plan, number, memory, options, report));
      break;
    case Step::Kind::Copy:
      std::memmove(memory.resolve(step.args[0], step.bytes).data,
                   memory.resolve(step.args[1], step.bytes).data, step.bytes);
      break;
    case Step::Kind::Fill: {
      auto *to = static_cast<std::byte *>(
          memory.resolve(step.args[0], step.bytes).data);
      for (uint64_t at = 0; at < step.bytes; at += step.step->patternSize)
        std::memcpy(to + at, &step.step->pattern, step.step->patternSize);
      break;
    }
    }
  }
  return std::move(memory.outputs);
}

} // namespace charonia::tool
