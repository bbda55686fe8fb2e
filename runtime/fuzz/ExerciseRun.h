//===- ExerciseRun.h - Contexts and runs of a hostile engine ----*- C++ -*-===//
//
// Machine code of an engine is executed as it is, by design. Here it consists
// of return instructions alone, so that whatever a manifest says of entries,
// grids and arguments, everything around the code can run: planning, arenas,
// bindings, threads, copies and fills.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_FUZZ_EXERCISERUN_H
#define CHARONIA_RUNTIME_FUZZ_EXERCISERUN_H

#include "charonia/runtime.h"
#include "runtime/fuzz/Exercise.h"

#include <cstdio>
#include <cstdlib>

namespace charonia::engine::fuzz {

/// What must hold for any engine that was accepted; ends the process if not, so
/// that a fuzzer keeps the input.
inline void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "runtime error: %s\n", what);
  std::abort();
}

/// Whether every byte of code is a return, wherever an entry may point.
inline bool isHarmless(const Reader &reader) {
  for (uint32_t i = 0; i < reader.sections().size(); ++i)
    if (reader.sections()[i].kind == SectionKind::Code &&
        !std::ranges::all_of(reader.section(i), [](std::byte b) {
          return b == returnInstruction;
        }))
      return false;
  return true;
}

/// Whether a run at these sizes is over in a moment, by any program.
inline bool isSmall(const Manifest &manifest,
                    const std::vector<int64_t> &symbols) {
  constexpr uint64_t mostBytes = 1 << 22, mostInstances = 1 << 14;
  // Where there is no plan, inputs are bound all the same.
  for (const TensorSpec &spec : manifest.signature.inputs) {
    auto shape = manifest.signature.evaluateShape(spec, symbols);
    auto bytes = shape ? tensorBytes(spec.dtype, *shape) : shape.status();
    if (!bytes || *bytes > mostBytes)
      return false;
  }
  for (const Program &program : manifest.programs)
    for (const Variant &variant : program.variants) {
      auto plan = exec::makeExecutionPlan(manifest.signature, program, variant,
                                          symbols);
      if (!plan)
        continue;
      uint64_t bytes = 0, instances = 0;
      auto add = [](uint64_t &sum, uint64_t more, uint64_t most) {
        sum += std::min(more, most + 1); // Sums of these cannot overflow.
      };
      add(bytes, (*plan)->arenaBytes, mostBytes);
      for (const auto *tensors : {&(*plan)->inputs, &(*plan)->outputs})
        for (const exec::PlannedTensor &tensor : *tensors)
          add(bytes, tensor.bytes, mostBytes);
      for (const exec::PlannedStep &step : (*plan)->steps) {
        add(bytes, step.bytes, mostBytes);
        add(instances, step.grid, mostInstances);
      }
      if (bytes > mostBytes || instances > mostInstances)
        return false;
    }
  return true;
}

/// One run with inputs and outputs in memory of exactly their sizes. Nothing
/// but outputs may change.
inline void exerciseRun(Context &context, const Signature &signature,
                        const std::vector<int64_t> &symbols) {
  std::vector<std::vector<std::byte>> inputs, outputs;
  for (const TensorSpec &spec : signature.inputs) {
    auto shape = signature.evaluateShape(spec, symbols);
    auto bytes = shape ? tensorBytes(spec.dtype, *shape) : shape.status();
    if (!bytes)
      return;
    // Every second one is misaligned.
    size_t odd = inputs.size() % 2;
    inputs.emplace_back(odd + *bytes, std::byte(0x5a));
    inputs.back().shrink_to_fit();
    if (!context.setInput(inputs.size() - 1,
                          {spec.dtype, *shape, inputs.back().data() + odd}))
      return;
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    auto shape = context.outputShape(signature.outputs[i].name);
    outputs.emplace_back();
    if (!shape || i % 2)
      continue;
    auto bytes = tensorBytes(signature.outputs[i].dtype, *shape);
    if (!bytes)
      continue;
    outputs.back().resize(*bytes);
    outputs.back().shrink_to_fit();
    (void)context.setOutput(i, outputs.back().data(), outputs.back().size());
  }
  (void)context.memory();
  if (context.run()) {
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      auto tensor = context.output(i);
      require(tensor.isOk(), "no output after a run");
      auto bytes = tensorBytes(tensor->dtype, tensor->shape);
      require(bytes.isOk(), "an output has no size");
      if (*bytes)
        (void)checksum(static_cast<const std::byte *>(tensor->data), *bytes);
    }
    (void)context.profile(1);
  }
  for (const auto &input : inputs)
    require(std::ranges::all_of(
                input, [](std::byte b) { return b == std::byte(0x5a); }),
            "a run changed an input");
  // The memory goes away; so must what refers to it.
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    (void)context.allocateOutput(i);
}

/// Loads the engine through the public API and runs it at the smallest, the
/// optimal and the largest sizes, where that is little work. `file` starts at a
/// multiple of 4096. True if a context was made.
inline bool exerciseContext(std::span<const std::byte> file) {
  auto reader = Reader::fromMemory(file, /*borrow=*/true);
  if (!reader || !isHarmless(**reader))
    return false;
  const Manifest &manifest = (*reader)->manifest();
  uint64_t before = checksum(file.data(), file.size());
  LoadOptions options;
  options.borrowMemory = true;
  auto engine = charonia::Engine::load(file, options);
  require(engine.isOk(), "the reader accepts what the engine refuses");
  (void)engine->programs();
  ContextOptions contextOptions;
  contextOptions.threads = 2;
  bool made = false;
  for (DeviceKind device : {DeviceKind::Cpu, DeviceKind::Cuda}) {
    auto context = engine->createContext({device}, contextOptions);
    if (!context)
      continue;
    made = true;
    (void)context->description();
    for (auto size : {&Symbol::min, &Symbol::opt, &Symbol::max}) {
      std::vector<int64_t> symbols;
      for (const Symbol &symbol : manifest.signature.symbols)
        symbols.push_back(symbol.*size);
      if (isSmall(manifest, symbols))
        exerciseRun(*context, manifest.signature, symbols);
    }
  }
  require(checksum(file.data(), file.size()) == before,
          "a run changed the engine");
  return made;
}

} // namespace charonia::engine::fuzz

#endif // CHARONIA_RUNTIME_FUZZ_EXERCISERUN_H
