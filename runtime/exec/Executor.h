//===- Executor.h - What a kind of device implements ------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_EXEC_EXECUTOR_H
#define CHARONIA_RUNTIME_EXEC_EXECUTOR_H

#include "charonia/runtime.h"
#include "runtime/engine/Reader.h"
#include "runtime/exec/ExecutionPlan.h"

namespace charonia::exec {

/// Memory that an input or output is bound to for a run; at least as large as
/// the plan says.
struct Binding {
  void *data = nullptr;
  Memory memory = Memory::Host;
};

struct RunRequest {
  bool wait = true;
  void *stream = nullptr;                     ///< Null: the executor's own.
  double *seconds = nullptr;                  ///< Time of all steps.
  std::vector<double> *stepSeconds = nullptr; ///< Time of each step.
};

/// Memory of a context that outlives runs: outputs the caller did not provide.
class Allocation {
public:
  virtual ~Allocation();
  void *data = nullptr;
  uint64_t size = 0;
};

/// Runs plans of one loaded program. Belongs to one context.
class Executor {
public:
  virtual ~Executor();
  virtual Status run(const ExecutionPlan &plan, std::span<const Binding> inputs,
                     std::span<const Binding> outputs,
                     const RunRequest &request) = 0;
  virtual Status synchronize() = 0;
  virtual Result<std::unique_ptr<Allocation>> allocate(uint64_t size,
                                                       Memory memory) = 0;
  /// The plan will not be run again and its address may be used by another.
  virtual void forget(const ExecutionPlan &plan) = 0;
  virtual std::string description() const = 0;
  /// CPU threads that run kernels; 0 where a GPU does.
  virtual unsigned threads() const = 0;
};

/// Which variant of which program to load.
struct Choice {
  size_t program = 0;
  size_t variant = 0;
};

struct LoadRequest {
  std::shared_ptr<const engine::Reader> reader;
  Choice choice;
  /// Compare the checksum of the weights; that of the code always is.
  bool verifyWeights = true;
};

/// A program's code and weights on one device: immutable, shared by contexts.
class LoadedProgram {
public:
  explicit LoadedProgram(LoadRequest request)
      : reader(std::move(request.reader)), programIndex(request.choice.program),
        variantIndex(request.choice.variant),
        verifyWeights(request.verifyWeights) {}
  virtual ~LoadedProgram();

  const engine::Program &program() const {
    return reader->manifest().programs[programIndex];
  }
  const engine::Variant &variant() const {
    return program().variants[variantIndex];
  }
  uint64_t weightBytes() const {
    uint32_t section = program().weightsSection;
    return section == engine::noIndex ? 0 : reader->section(section).size();
  }

  /// `self` is this object.
  virtual Result<std::unique_ptr<Executor>>
  createExecutor(std::shared_ptr<LoadedProgram> self,
                 const ContextOptions &options) = 0;

protected:
  const std::shared_ptr<const engine::Reader> reader;
  const size_t programIndex;
  const size_t variantIndex;
  const bool verifyWeights;
};

/// One device of this machine, for choosing and loading programs.
class DeviceBackend {
public:
  virtual ~DeviceBackend();
  /// How good a variant is here: the larger the better; < 0: it cannot run.
  virtual int rank(const engine::Variant &variant) const = 0;
  /// "NVIDIA H200 (sm_90)", "this CPU (x86-64-v4)".
  virtual std::string description() const = 0;
  virtual Result<std::shared_ptr<LoadedProgram>> load(LoadRequest request) = 0;
};

/// The device, or why there is none.
Result<std::shared_ptr<DeviceBackend>> openCpu(const ContextOptions &options);
Result<std::shared_ptr<DeviceBackend>> openCuda(int index);

/// Whether the engine has a program of that kind and precision (empty: any) at
/// all; the error lists what there is.
Status checkHolds(const engine::Manifest &manifest, DeviceKind kind,
                  const std::string &precision);

/// The best program and variant for the device; the error lists what there is.
Result<Choice> chooseProgram(const engine::Manifest &manifest, DeviceKind kind,
                             const DeviceBackend &backend,
                             const std::string &precision);

/// "cpu fp32 (x86-64-v3, x86-64-v4); cuda fp16 (sm_80)".
std::string listPrograms(const engine::Manifest &manifest);

} // namespace charonia::exec

#endif // CHARONIA_RUNTIME_EXEC_EXECUTOR_H
