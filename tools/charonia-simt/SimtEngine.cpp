#include "tools/charonia-simt/SimtEngine.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <filesystem>

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

Result<SimtEngine> SimtEngine::open(const std::string &engine,
                                    const std::string &dump,
                                    MLIRContext &context) {
  CHARONIA_ASSIGN_OR_RETURN(auto reader, engine::Reader::open(engine));
  std::string code = findEntry(
      dump, [](llvm::StringRef name) { return name.ends_with("cuda-code"); });
  if (code.empty())
    return notFound(dump +
                    ": holds no code for a GPU; compile with --target "
                    "sm_90 --dump-dir " +
                    dump);
  SimtEngine result(std::move(reader), std::move(code), context);
  for (const engine::Program &program : result.reader->manifest().programs)
    if (program.device == DeviceKind::Cuda && !program.variants.empty()) {
      result.program = &program;
      result.variant = &program.variants.front();
      if (program.weightsSection != engine::noIndex)
        CHARONIA_RETURN_IF_ERROR(
            result.reader->verifySection(program.weightsSection));
      return result;
    }
  return notFound(engine + ": holds no program for a GPU");
}

/// Where a plan's locations are on this machine.
struct SimtEngine::Memory {
  const exec::ExecutionPlan &plan;
  const std::byte *weights = nullptr;
  Array arena;
  std::vector<Array> inputs, outputs;

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
              at.offset % 4096, true};
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

Status SimtEngine::launch(const exec::PlannedStep &step,
                          const exec::ExecutionPlan &plan, uint32_t number,
                          Memory &memory, const SimtOptions &options,
                          interpreter::Report &report) {
  CHARONIA_ASSIGN_OR_RETURN(const interpreter::Kernel *kernel, kernelOf(step));
  interpreter::Launch launch;
  launch.grid = step.grid;
  launch.sharedBytes = step.code->sharedBytes;
  launch.symbols = plan.symbols;
  launch.seed = options.seed ? options.seed + number : 0;
  launch.copies = options.copies;
  for (size_t i = 0; i < step.args.size(); ++i) {
    const engine::Argument &argument = step.step->args[i];
    const Buffer &buffer = program->buffers[argument.buffer];
    CHARONIA_ASSIGN_OR_RETURN(int64_t size, buffer.size.evaluate(plan.symbols));
    CHARONIA_ASSIGN_OR_RETURN(int64_t offset,
                              argument.offset.evaluate(plan.symbols));
    interpreter::Buffer place = memory.resolve(step.args[i], size - offset);
    // The arena is undefined where a buffer's life begins: numbers that are
    // none, so that using them shows.
    if (buffer.kind == Buffer::Kind::Arena && buffer.alias == engine::noIndex &&
        buffer.firstStep == number)
      std::memset(place.data, 0xff, place.bytes);
    launch.buffers.push_back(place);
  }
  if (kernel->numBuffers() != launch.buffers.size() ||
      kernel->numSymbols() != launch.symbols.size())
    return Status(StatusCode::InvalidArgument,
                  "the kernel " + kernel->name() +
                      " of the dump takes other arguments than the engine's");
  kernel->launch(launch, report);
  return Status::ok();
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
  for (uint32_t number = 0; number < plan->steps.size(); ++number) {
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
