//===- ContextImpl.h - A context's state ------------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_EXEC_CONTEXTIMPL_H
#define CHARONIA_RUNTIME_EXEC_CONTEXTIMPL_H

#include "runtime/exec/Executor.h"

namespace charonia {

struct Context::Impl {
  struct Input {
    bool bound = false;
    std::vector<int64_t> shape;
    exec::Binding binding;
  };
  struct Output {
    bool callers = false; ///< The caller's memory, else the context's own.
    exec::Binding binding;
    uint64_t capacity = 0;
    std::unique_ptr<exec::Allocation> owned;
    /// Whether `binding` holds a result of lastPlan; if not, why.
    enum class State { NotRun, Valid, BoundAnew, RunFailed };
    State state = State::NotRun;
  };

  Impl(std::shared_ptr<const engine::Reader> reader, Device device,
       std::shared_ptr<exec::LoadedProgram> program,
       std::unique_ptr<exec::Executor> executor);
  ~Impl();

  const Signature &signature() const { return reader->manifest().signature; }

  Status setInput(size_t index, const Tensor &tensor);
  Status setOutput(size_t index, void *data, size_t capacity, Memory memory);
  Status allocateOutput(size_t index, Memory memory);
  Result<Tensor> output(size_t index) const;

  /// The plan for the shapes that are bound now; made once per shape.
  Result<const exec::ExecutionPlan *> currentPlan();
  Status run(const exec::RunRequest &request);
  Status synchronize();

  std::shared_ptr<const engine::Reader> reader;
  Device device;
  std::shared_ptr<exec::LoadedProgram> program;
  std::unique_ptr<exec::Executor> executor;
  std::vector<Input> inputs;
  std::vector<Output> outputs;

  /// Most recently used first.
  std::vector<std::shared_ptr<const exec::ExecutionPlan>> plans;
  const exec::ExecutionPlan *planOfShapes = nullptr; ///< Null: shapes changed.
  /// Of the last run; tells the outputs' shapes even when no longer in `plans`.
  std::shared_ptr<const exec::ExecutionPlan> lastPlan;
  std::vector<exec::Binding> inputBindings;
  std::vector<exec::Binding> outputBindings;

private:
  Status checkMemory(Memory memory, const char *what,
                     const std::string &name) const;
  void invalidate(Output &output, Output::State why);
  void invalidateOutputs();
  Status prepareOutputs(const exec::ExecutionPlan &plan);
  Status checkOutputsApart(const exec::ExecutionPlan &plan) const;
};

} // namespace charonia

#endif // CHARONIA_RUNTIME_EXEC_CONTEXTIMPL_H
