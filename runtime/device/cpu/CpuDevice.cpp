//===- CpuDevice.cpp - Running programs on the CPU ------------------------===//

#include "runtime/device/cpu/CpuInfo.h"
#include "runtime/device/cpu/Memory.h"
#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/engine/Format.h"
#include "runtime/exec/Executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace charonia::cpu {

using engine::Buffer;
using engine::Step;
using exec::Binding;
using exec::ExecutionPlan;
using exec::Location;
using exec::PlannedStep;
using exec::PlannedTensor;

namespace {

/// A kernel of a CPU image: runs program instances [begin, end) of its grid.
using KernelFn = void (*)(void *const *buffers, const int64_t *symbols,
                          int64_t begin, int64_t end, void *scratch);

class CpuProgram final : public exec::LoadedProgram {
public:
  using LoadedProgram::LoadedProgram;

  Status load() {
    // A section that several modules share is loaded once.
    images.resize(reader->sections().size());
    for (const engine::CodeModule &module : variant().modules) {
      uint32_t section = module.image.section;
      if (images[section].data())
        continue;
      // Damaged weights give wrong numbers, damaged code a crash. What is
      // compared is the copy that will run.
      auto check = [&](std::span<const std::byte> copy) {
        return reader->checkSection(section,
                                    engine::checksum(copy.data(), copy.size()));
      };
      CHARONIA_ASSIGN_OR_RETURN(
          images[section], Pages::executable(reader->section(section), check));
    }
    for (const engine::KernelCode &code : variant().kernels) {
      const engine::Range &image = variant().modules[code.module].image;
      entries.push_back(reinterpret_cast<KernelFn>(
          images[image.section].data() + image.offset + code.entryOffset));
      scratchBytes = std::max(scratchBytes, code.scratchBytes);
    }
    uint32_t section = program().weightsSection;
    if (section == engine::noIndex)
      return Status::ok();
    weights = reader->section(section).data();
    return verifyWeights ? reader->verifySection(section) : Status::ok();
  }

  Result<std::unique_ptr<exec::Executor>>
  createExecutor(std::shared_ptr<LoadedProgram> self,
                 const ContextOptions &options) override;

  std::vector<KernelFn> entries; ///< One per kernel.
  const std::byte *weights = nullptr;
  uint64_t scratchBytes = 0; ///< Per thread.

private:
  std::vector<Pages> images; ///< By section; most are empty.
};

class CpuAllocation final : public exec::Allocation {
public:
  static Result<std::unique_ptr<exec::Allocation>> make(uint64_t size) {
    auto allocation = std::make_unique<CpuAllocation>();
    CHARONIA_ASSIGN_OR_RETURN(
        allocation->pages,
        Pages::allocate(std::max<uint64_t>(size, 1), "an output"));
    allocation->data = allocation->pages.data();
    allocation->size = size;
    return std::unique_ptr<exec::Allocation>(std::move(allocation));
  }

private:
  Pages pages;
};

class CpuExecutor final : public exec::Executor {
public:
  CpuExecutor(std::shared_ptr<CpuProgram> program, ThreadPool::Ptr pool,
              Pages scratch, uint64_t stride)
      : program(std::move(program)), pool(std::move(pool)),
        scratch(std::move(scratch)), scratchStride(stride) {}

  Status run(const ExecutionPlan &plan, std::span<const Binding> inputs,
             std::span<const Binding> outputs,
             const exec::RunRequest &request) override;

  Status synchronize() override { return Status::ok(); }

  Result<std::unique_ptr<exec::Allocation>> allocate(uint64_t size,
                                                     Memory) override {
    return CpuAllocation::make(size);
  }

  void forget(const ExecutionPlan &) override {}

  std::string description() const override {
    return program->variant().arch + " on " + std::to_string(pool->threads()) +
           (pool->threads() == 1 ? " thread" : " threads");
  }

  unsigned threads() const override { return pool->threads(); }

private:
  Status bind(const ExecutionPlan &plan, std::span<const Binding> inputs,
              std::span<const Binding> outputs);
  void *resolve(const Location &location) const;
  void copy(void *to, const void *from, uint64_t bytes);
  void runStep(const PlannedStep &step);

  struct Staged {
    const void *from;
    void *to;
    uint64_t bytes;
  };

  std::shared_ptr<CpuProgram> program;
  ThreadPool::Ptr pool;
  Pages scratch;
  uint64_t scratchStride;
  Pages arena;
  Pages staging;

  // Of the current run.
  std::vector<std::byte *> inputData;
  std::vector<std::byte *> outputData;
  std::vector<Staged> copyIn;
  std::vector<Staged> copyOut;
  std::vector<void *> buffers; ///< Arguments of the current launch.
};

bool isAligned(const void *data, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

bool overlap(const void *a, uint64_t aBytes, const void *b, uint64_t bBytes) {
  auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + bBytes && y < x + aBytes;
}

/// Decides where the kernels read and write: the caller's memory wherever
/// possible.
Status CpuExecutor::bind(const ExecutionPlan &plan,
                         std::span<const Binding> inputs,
                         std::span<const Binding> outputs) {
  constexpr uint64_t line = 4096;
  if (arena.size() < plan.arenaBytes) {
    arena = Pages();
    CHARONIA_ASSIGN_OR_RETURN(
        arena, Pages::allocate(plan.arenaBytes, "intermediate results"));
  }
  copyIn.clear();
  copyOut.clear();
  inputData.resize(inputs.size());
  outputData.resize(outputs.size());
  uint64_t staged = 0;
  std::vector<uint64_t> inputPlace(inputs.size(), UINT64_MAX);
  std::vector<uint64_t> outputPlace(outputs.size(), UINT64_MAX);
  auto stage = [&](uint64_t &place, uint64_t bytes) {
    place = staged;
    staged += (bytes + line - 1) / line * line;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputData[i] = static_cast<std::byte *>(inputs[i].data);
    if (!isAligned(inputs[i].data, plan.inputs[i].alignment))
      stage(inputPlace[i], plan.inputs[i].bytes);
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const PlannedTensor &tensor = plan.outputs[o];
    outputData[o] = static_cast<std::byte *>(outputs[o].data);
    bool copy = !isAligned(outputs[o].data, tensor.alignment);
    // An output that shares memory with an input would destroy it too early.
    for (size_t i = 0; i < inputs.size() && !copy; ++i)
      copy = overlap(outputs[o].data, tensor.bytes, inputs[i].data,
                     plan.inputs[i].bytes);
    if (copy)
      stage(outputPlace[o], tensor.bytes);
  }
  if (staged == 0)
    return Status::ok();
  if (staging.size() < staged) {
    staging = Pages();
    CHARONIA_ASSIGN_OR_RETURN(
        staging, Pages::allocate(staged, "copies of inputs and outputs"));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputPlace[i] != UINT64_MAX) {
      inputData[i] = staging.data() + inputPlace[i];
      copyIn.push_back({inputs[i].data, inputData[i], plan.inputs[i].bytes});
    }
  for (size_t o = 0; o < outputs.size(); ++o)
    if (outputPlace[o] != UINT64_MAX) {
      outputData[o] = staging.data() + outputPlace[o];
      copyOut.push_back(
          {outputData[o], outputs[o].data, plan.outputs[o].bytes});
    }
  return Status::ok();
}

void *CpuExecutor::resolve(const Location &location) const {
  switch (location.base) {
  case Buffer::Kind::Input:
    return inputData[location.index] + location.offset;
  case Buffer::Kind::Output:
    return outputData[location.index] + location.offset;
  case Buffer::Kind::Weight:
    // Kernels do not write weights; the ABI has one pointer type.
    return const_cast<std::byte *>(program->weights + location.offset);
  case Buffer::Kind::Arena:
    return arena.data() + location.offset;
  }
  return nullptr;
}

void fill(void *data, uint64_t bytes, uint32_t pattern, uint32_t size) {
  auto *out = static_cast<std::byte *>(data);
  if (size == 1) {
    std::memset(out, static_cast<int>(pattern & 0xff), bytes);
    return;
  }
  for (uint64_t i = 0; i < bytes; i += size)
    std::memcpy(out + i, &pattern, size);
}

/// Large copies are bound by memory, which one core alone does not saturate.
void CpuExecutor::copy(void *to, const void *from, uint64_t bytes) {
  constexpr int64_t piece = 1 << 16;
  struct Copy {
    std::byte *to;
    const std::byte *from;
    int64_t bytes;
  } job{static_cast<std::byte *>(to), static_cast<const std::byte *>(from),
        static_cast<int64_t>(bytes)};
  if (bytes == 0 || to == from)
    return;
  pool->run((job.bytes + piece - 1) / piece, /*grain=*/4,
            [](void *argument, int, int64_t begin, int64_t end) {
              auto *c = static_cast<Copy *>(argument);
              int64_t last = std::min(end * piece, c->bytes);
              std::memcpy(c->to + begin * piece, c->from + begin * piece,
                          last - begin * piece);
            },
            &job);
}

struct Launch {
  KernelFn kernel;
  void *const *buffers;
  const int64_t *symbols;
  std::byte *scratch;
  uint64_t scratchStride;
};

// UBSan would look for the function's type in the bytes before it, which need
// not exist.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
void runInstances(void *argument, int thread, int64_t begin, int64_t end) {
  auto *l = static_cast<Launch *>(argument);
  l->kernel(l->buffers, l->symbols, begin, end,
            l->scratch + thread * l->scratchStride);
}

void CpuExecutor::runStep(const PlannedStep &step) {
  switch (step.step->kind) {
  case Step::Kind::Copy:
    copy(resolve(step.args[0]), resolve(step.args[1]), step.bytes);
    return;
  case Step::Kind::Fill:
    fill(resolve(step.args[0]), step.bytes, step.step->pattern,
         step.step->patternSize);
    return;
  case Step::Kind::Launch:
    break;
  }
  buffers.resize(step.args.size());
  for (size_t i = 0; i < step.args.size(); ++i)
    buffers[i] = resolve(step.args[i]);
  Launch launch{program->entries[step.kernelIndex], buffers.data(),
                step.symbols.data(), scratch.data(), scratchStride};
  pool->run(step.grid, step.code->grain, runInstances, &launch);
}

Status CpuExecutor::run(const ExecutionPlan &plan,
                        std::span<const Binding> inputs,
                        std::span<const Binding> outputs,
                        const exec::RunRequest &request) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  if (pool->inherited()) {
    CHARONIA_ASSIGN_OR_RETURN(pool, ThreadPool::create(pool->threads()));
  }
  CHARONIA_RETURN_IF_ERROR(bind(plan, inputs, outputs));
  pool->wake();
  for (const Staged &staged : copyIn)
    copy(staged.to, staged.from, staged.bytes);
  auto start = Clock::now();
  if (request.stepSeconds) {
    request.stepSeconds->clear();
    for (const PlannedStep &step : plan.steps) {
      auto stepStart = Clock::now();
      runStep(step);
      request.stepSeconds->push_back(since(stepStart));
    }
  } else {
    for (const PlannedStep &step : plan.steps)
      runStep(step);
  }
  if (request.seconds)
    *request.seconds = since(start);
  for (const Staged &staged : copyOut)
    copy(staged.to, staged.from, staged.bytes);
  return Status::ok();
}

Result<std::unique_ptr<exec::Executor>>
CpuProgram::createExecutor(std::shared_ptr<LoadedProgram> self,
                           const ContextOptions &options) {
  CHARONIA_ASSIGN_OR_RETURN(int threads, chooseThreads(options.threads));
  CHARONIA_ASSIGN_OR_RETURN(auto pool, ThreadPool::create(threads));
  // A page between the threads' parts keeps prefetching from sharing lines.
  uint64_t stride =
      scratchBytes ? (scratchBytes + 4095) / 4096 * 4096 + 4096 : 0;
  CHARONIA_ASSIGN_OR_RETURN(
      Pages scratch, Pages::allocate(stride * threads, "the threads' scratch"));
  return std::unique_ptr<exec::Executor>(std::make_unique<CpuExecutor>(
      std::static_pointer_cast<CpuProgram>(std::move(self)), std::move(pool),
      std::move(scratch), stride));
}

class CpuBackend final : public exec::DeviceBackend {
public:
  explicit CpuBackend(int level) : level(level) {}

  int rank(const engine::Variant &variant) const override {
    int needed = levelOfArch(variant.arch);
    return needed != 0 && needed <= level ? needed : -1;
  }

  std::string description() const override {
    return "this CPU (" + archOfLevel(level) + ")";
  }

  Result<std::shared_ptr<exec::LoadedProgram>>
  load(exec::LoadRequest request) override {
    auto loaded = std::make_shared<CpuProgram>(std::move(request));
    CHARONIA_RETURN_IF_ERROR(loaded->load());
    return std::shared_ptr<exec::LoadedProgram>(std::move(loaded));
  }

private:
  int level;
};

} // namespace
} // namespace charonia::cpu

namespace charonia::exec {

Result<std::shared_ptr<DeviceBackend>> openCpu(const ContextOptions &options) {
  CHARONIA_ASSIGN_OR_RETURN(int level, cpu::chooseLevel(options.isa));
  return std::shared_ptr<DeviceBackend>(
      std::make_shared<cpu::CpuBackend>(level));
}

} // namespace charonia::exec
