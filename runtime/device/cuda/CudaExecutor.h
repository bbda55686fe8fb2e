//===- CudaExecutor.h - Running plans on a GPU ------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_DEVICE_CUDA_CUDAEXECUTOR_H
#define CHARONIA_RUNTIME_DEVICE_CUDA_CUDAEXECUTOR_H

#include "runtime/device/cuda/CudaProgram.h"
#include "runtime/device/cuda/DelayKernel.h"
#include "runtime/device/cuda/GraphCache.h"

#include <vector>

namespace charonia::cuda {

class CudaExecutor final : public exec::Executor {
public:
  static Result<std::unique_ptr<CudaExecutor>>
  create(std::shared_ptr<CudaProgram> program, const ContextOptions &options);
  ~CudaExecutor() override;

  Status run(const exec::ExecutionPlan &plan,
             std::span<const exec::Binding> inputs,
             std::span<const exec::Binding> outputs,
             const exec::RunRequest &request) override;
  Status synchronize() override;
  Result<std::unique_ptr<exec::Allocation>> allocate(uint64_t size,
                                                     Memory memory) override;
  void forget(const exec::ExecutionPlan &plan) override;
  std::string description() const override;
  unsigned threads() const override { return 0; }

private:
  explicit CudaExecutor(std::shared_ptr<CudaProgram> program)
      : program(std::move(program)), delay(this->program->device) {}

  /// An input or output of the current run.
  struct Bound {
    DevicePtr address = 0; ///< What the kernels get.
    exec::Binding callers;
    uint64_t bytes = 0;
    bool copied = false;     ///< The caller's memory is not used in place.
    bool pinned = false;     ///< Copied: host memory that the GPU can reach.
    uint64_t hostOffset = 0; ///< Copied through pinned staging: where.
    bool staged = false;     ///< Copied through pinned staging.
  };

  Status bind(const exec::ExecutionPlan &plan,
              std::span<const exec::Binding> inputs,
              std::span<const exec::Binding> outputs, bool wait);
  Status copyInputs(CuStream stream);
  Status copyOutputs(CuStream stream);
  Status runSteps(const exec::ExecutionPlan &plan, CuStream stream);
  Status runProfiled(const exec::ExecutionPlan &plan, CuStream stream,
                     std::vector<double> &seconds);
  Status enqueue(const exec::ExecutionPlan &plan,
                 const exec::RunRequest &request, CuStream stream);
  /// Enqueues all steps; records events[i] before step i and one after the
  /// last.
  Status launchAll(const exec::ExecutionPlan &plan, CuStream stream,
                   std::span<const Event> events);
  /// What was enqueued right before a launch: a kernel that it may run beside
  /// (Step::besidePrevious), another one, or none.
  enum class Before { NoKernel, Kernel, OfWave };
  Status launch(const exec::PlannedStep &step, Before before, CuStream stream);
  /// Fills `parameters` with what the kernel takes.
  Status prepare(const exec::PlannedStep &step);
  Status encodeMaps(const exec::PlannedStep &step);
  /// Whether the driver takes programmatic dependent launches, in graphs too.
  bool driverOverlaps() const;
  DevicePtr resolve(const exec::Location &location) const;
  bool isPinned(const void *data) const;
  Status makeEvents(size_t count);

  const Driver &api() const { return program->device->driver(); }
  Status check(CuResult result, const char *doing) const {
    return api().check(result, doing);
  }

  std::shared_ptr<CudaProgram> program;
  Stream ownStream;
  CuStream stream = nullptr; ///< For run(): the caller's choice or ownStream.
  DeviceMemory arena;
  DeviceMemory ioMemory; ///< For inputs and outputs that are not used in place.
  PinnedMemory ioStaging;
  std::optional<GraphCache> graphs;
  bool overlapKernels = false;

  /// Set after asynchronous runs: the last one's end, and its stream.
  Event done;
  bool pending = false;
  CuStream lastStream = nullptr;

  std::vector<Bound> ins;
  std::vector<Bound> outs;
  std::vector<uint64_t> arguments;    ///< Of the current launch,
  std::vector<EncodedTensorMap> maps; ///< and the parameters behind them,
  std::vector<void *> parameters;     ///< as the driver wants them.
  std::vector<Event> timers;
  DelayKernel delay;
};

} // namespace charonia::cuda

#endif // CHARONIA_RUNTIME_DEVICE_CUDA_CUDAEXECUTOR_H
