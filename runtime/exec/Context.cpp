//===- Context.cpp - Binding tensors and running --------------------------===//

#include "runtime/engine/Guard.h"
#include "runtime/exec/ContextImpl.h"

#include <algorithm>

namespace charonia {

namespace {

/// Shapes whose plans a context keeps, and the memory of all of them together;
/// the least recently used plans go.
constexpr size_t maxPlans = 64;
constexpr size_t maxPlanBytes = size_t(1) << 26;

Status noSuchIndex(const char *what, size_t index, size_t count) {
  return Status(StatusCode::NotFound,
                "no " + std::string(what) + " " + std::to_string(index) +
                    "; the engine has " + std::to_string(count));
}

} // namespace

Context::Impl::Impl(std::shared_ptr<const engine::Reader> reader, Device device,
                    std::shared_ptr<exec::LoadedProgram> program,
                    std::unique_ptr<exec::Executor> executor)
    : reader(std::move(reader)), device(device), program(std::move(program)),
      executor(std::move(executor)), inputs(signature().inputs.size()),
      outputs(signature().outputs.size()), inputBindings(inputs.size()),
      outputBindings(outputs.size()) {}

// Work that is still running uses the plans and the outputs' memory.
Context::Impl::~Impl() { (void)executor->synchronize(); }

Status Context::Impl::checkMemory(Memory memory, const char *what,
                                  const std::string &name) const {
  if (memory == Memory::Host ||
      (memory == Memory::Device && device.kind != DeviceKind::Cpu))
    return Status::ok();
  std::string subject = std::string("the ") + what + " '" + name + "' is in ";
  if (memory == Memory::Device)
    return Status(StatusCode::InvalidArgument,
                  subject + "device memory, but the context runs on the CPU");
  return Status(StatusCode::InvalidArgument,
                subject + "memory of the kind " +
                    std::to_string(static_cast<int>(memory)) +
                    "; there are 0, the host's, and 1, the device's");
}

Status Context::Impl::setInput(size_t index, const Tensor &tensor) {
  if (index >= inputs.size())
    return noSuchIndex("input", index, inputs.size());
  const TensorSpec &spec = signature().inputs[index];
  auto expected = [&] {
    return "the input '" + spec.name + "' takes " +
           signature().typeString(spec);
  };
  if (tensor.dtype != spec.dtype) {
    auto number = static_cast<int>(tensor.dtype);
    return Status(StatusCode::InvalidArgument,
                  expected() + ", not " +
                      (isValidDType(number)
                           ? std::string(dtypeName(tensor.dtype))
                           : "a type of the number " + std::to_string(number)));
  }
  if (tensor.shape.size() != spec.dims.size())
    return Status(StatusCode::InvalidArgument,
                  expected() + ", not the shape " + shapeString(tensor.shape));
  auto bytes = tensorBytes(tensor.dtype, tensor.shape);
  if (!bytes)
    return bytes.status().withContext(expected());
  if (!tensor.data && *bytes != 0)
    return Status(StatusCode::InvalidArgument,
                  "the data of the input '" + spec.name + "' is null");
  CHARONIA_RETURN_IF_ERROR(checkMemory(tensor.memory, "input", spec.name));
  Input &input = inputs[index];
  if (!input.bound || input.shape != tensor.shape) {
    planOfShapes = nullptr;
    input.shape = tensor.shape;
  }
  // Inputs are never written; the pointer loses const only to share a type.
  input.binding = {const_cast<void *>(tensor.data), tensor.memory};
  input.bound = true;
  return Status::ok();
}

/// Work that is under way still writes to what was bound before: a caller whose
/// memory it is waits for it, the context's own memory goes when it is over.
Status Context::Impl::setOutput(size_t index, void *data, size_t capacity,
                                Memory memory) {
  if (index >= outputs.size())
    return noSuchIndex("output", index, outputs.size());
  const TensorSpec &spec = signature().outputs[index];
  if (!data && capacity != 0)
    return Status(StatusCode::InvalidArgument,
                  "the memory for the output '" + spec.name + "' is null");
  CHARONIA_RETURN_IF_ERROR(checkMemory(memory, "output", spec.name));
  Output &output = outputs[index];
  if (output.owned)
    CHARONIA_RETURN_IF_ERROR(synchronize());
  invalidate(output, Output::State::BoundAnew);
  output.owned.reset();
  output.callers = true;
  output.binding = {data, memory};
  output.capacity = capacity;
  return Status::ok();
}

Status Context::Impl::allocateOutput(size_t index, Memory memory) {
  if (index >= outputs.size())
    return noSuchIndex("output", index, outputs.size());
  CHARONIA_RETURN_IF_ERROR(
      checkMemory(memory, "output", signature().outputs[index].name));
  Output &output = outputs[index];
  if (output.owned)
    CHARONIA_RETURN_IF_ERROR(synchronize());
  invalidate(output, Output::State::BoundAnew);
  output.owned.reset();
  output.callers = false;
  output.binding = {nullptr, memory};
  output.capacity = 0;
  return Status::ok();
}

void Context::Impl::invalidate(Output &output, Output::State why) {
  // What was never there cannot have gone away.
  if (output.state != Output::State::NotRun || why != Output::State::BoundAnew)
    output.state = why;
}

void Context::Impl::invalidateOutputs() {
  for (Output &output : outputs)
    invalidate(output, Output::State::RunFailed);
}

Result<const exec::ExecutionPlan *> Context::Impl::currentPlan() {
  if (planOfShapes)
    return planOfShapes;
  std::string missing;
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec &spec = signature().inputs[i];
    if (!inputs[i].bound)
      missing += (missing.empty() ? "'" : ", '") + spec.name + "' (" +
                 signature().typeString(spec) + ")";
    shapes.push_back(inputs[i].shape);
  }
  if (!missing.empty())
    return Status(StatusCode::FailedPrecondition,
                  "these inputs are not set: " + missing);
  CHARONIA_ASSIGN_OR_RETURN(std::vector<int64_t> symbols,
                            signature().solveSymbols(shapes));
  auto known = std::ranges::find_if(
      plans, [&](const auto &plan) { return plan->symbols == symbols; });
  if (known == plans.end()) {
    CHARONIA_ASSIGN_OR_RETURN(
        auto plan, exec::makeExecutionPlan(signature(), program->program(),
                                           program->variant(), symbols));
    size_t bytes = plan->bytes();
    while (!plans.empty() && (plans.size() == maxPlans ||
                              (plans.size() + 1) * bytes > maxPlanBytes)) {
      CHARONIA_RETURN_IF_ERROR(executor->synchronize());
      executor->forget(*plans.back());
      plans.pop_back();
    }
    plans.insert(plans.begin(), std::move(plan));
  } else {
    std::rotate(plans.begin(), known, known + 1);
  }
  planOfShapes = plans.front().get();
  return planOfShapes;
}

Status Context::Impl::prepareOutputs(const exec::ExecutionPlan &plan) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Output &output = outputs[i];
    uint64_t bytes = plan.outputs[i].bytes;
    if (output.callers) {
      if (output.capacity < bytes)
        return Status(StatusCode::InvalidArgument,
                      "the output '" + signature().outputs[i].name +
                          "' has the shape " +
                          shapeString(plan.outputs[i].shape) + " and needs " +
                          std::to_string(bytes) + " bytes, but " +
                          std::to_string(output.capacity) + " were given");
      continue;
    }
    if (!output.owned || output.owned->size < bytes) {
      CHARONIA_RETURN_IF_ERROR(executor->synchronize());
      output.owned.reset();
      output.binding.data = nullptr;
      CHARONIA_ASSIGN_OR_RETURN(
          output.owned, executor->allocate(bytes, output.binding.memory));
    }
    output.binding.data = output.owned->data;
  }
  return checkOutputsApart(plan);
}

/// The context's own memory never overlaps; two outputs of the caller may.
Status Context::Impl::checkOutputsApart(const exec::ExecutionPlan &plan) const {
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t j = 0; j < i && outputs[i].callers; ++j) {
      const Output &a = outputs[i], &b = outputs[j];
      auto x = reinterpret_cast<uintptr_t>(a.binding.data);
      auto y = reinterpret_cast<uintptr_t>(b.binding.data);
      if (b.callers && a.binding.memory == b.binding.memory &&
          x < y + plan.outputs[j].bytes && y < x + plan.outputs[i].bytes)
        return Status(StatusCode::InvalidArgument,
                      "the memory that was given for the outputs '" +
                          signature().outputs[j].name + "' and '" +
                          signature().outputs[i].name + "' overlaps");
    }
  return Status::ok();
}

Status Context::Impl::run(const exec::RunRequest &request) {
  // Until it has succeeded; whatever returns or throws below leaves it so.
  invalidateOutputs();
  CHARONIA_ASSIGN_OR_RETURN(const exec::ExecutionPlan *plan, currentPlan());
  CHARONIA_RETURN_IF_ERROR(prepareOutputs(*plan));
  for (size_t i = 0; i < inputs.size(); ++i)
    inputBindings[i] = inputs[i].binding;
  for (size_t i = 0; i < outputs.size(); ++i)
    outputBindings[i] = outputs[i].binding;
  CHARONIA_RETURN_IF_ERROR(
      executor->run(*plan, inputBindings, outputBindings, request));
  if (lastPlan.get() != plan)
    lastPlan = plans.front(); // The current one is the most recently used.
  for (Output &output : outputs)
    output.state = Output::State::Valid;
  return Status::ok();
}

Status Context::Impl::synchronize() {
  Status status = executor->synchronize();
  if (!status)
    invalidateOutputs();
  return status;
}

Result<Tensor> Context::Impl::output(size_t index) const {
  if (index >= outputs.size())
    return noSuchIndex("output", index, outputs.size());
  const TensorSpec &spec = signature().outputs[index];
  const Output &output = outputs[index];
  switch (output.state) {
  case Output::State::Valid:
    return Tensor{spec.dtype, lastPlan->outputs[index].shape,
                  output.binding.data, output.binding.memory};
  case Output::State::NotRun:
    return Status(StatusCode::FailedPrecondition,
                  "there is no output before a run");
  case Output::State::BoundAnew:
    return Status(StatusCode::FailedPrecondition,
                  "the output '" + spec.name +
                      "' was bound anew after the last run; run the context to "
                      "have it");
  case Output::State::RunFailed:
    break;
  }
  return Status(StatusCode::FailedPrecondition,
                "there is no output '" + spec.name +
                    "', since the last run failed; run the context again");
}

//===----------------------------------------------------------------------===//
// The public class: names to indices, and the boundary that nothing is thrown
// across.
//===----------------------------------------------------------------------===//

Context::Context(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Context::Context(Context &&) noexcept = default;
Context &Context::operator=(Context &&) noexcept = default;
Context::~Context() = default;

Context::Impl &Context::self() const noexcept {
  if (!impl) [[unlikely]]
    detail::movedFromUsed("Context");
  return *impl;
}

Status Context::setInput(size_t index, const Tensor &tensor) noexcept {
  return guarded([&] { return self().setInput(index, tensor); });
}

Status Context::setInput(std::string_view name, const Tensor &tensor) noexcept {
  return guarded([&]() -> Status {
    CHARONIA_ASSIGN_OR_RETURN(size_t index, signature().findInput(name));
    return self().setInput(index, tensor);
  });
}

Status Context::setOutput(size_t index, void *data, size_t capacity,
                          Memory memory) noexcept {
  return guarded(
      [&] { return self().setOutput(index, data, capacity, memory); });
}

Status Context::setOutput(std::string_view name, void *data, size_t capacity,
                          Memory memory) noexcept {
  return guarded([&]() -> Status {
    CHARONIA_ASSIGN_OR_RETURN(size_t index, signature().findOutput(name));
    return self().setOutput(index, data, capacity, memory);
  });
}

Status Context::allocateOutput(size_t index, Memory memory) noexcept {
  return guarded([&] { return self().allocateOutput(index, memory); });
}

Status Context::allocateOutput(std::string_view name, Memory memory) noexcept {
  return guarded([&]() -> Status {
    CHARONIA_ASSIGN_OR_RETURN(size_t index, signature().findOutput(name));
    return self().allocateOutput(index, memory);
  });
}

Result<std::vector<int64_t>>
Context::outputShape(std::string_view name) const noexcept {
  return guarded([&]() -> Result<std::vector<int64_t>> {
    CHARONIA_ASSIGN_OR_RETURN(size_t index, signature().findOutput(name));
    CHARONIA_ASSIGN_OR_RETURN(const exec::ExecutionPlan *plan,
                              self().currentPlan());
    return plan->outputs[index].shape;
  });
}

Result<Tensor> Context::output(size_t index) const noexcept {
  return guarded([&] { return self().output(index); });
}

Result<Tensor> Context::output(std::string_view name) const noexcept {
  return guarded([&]() -> Result<Tensor> {
    CHARONIA_ASSIGN_OR_RETURN(size_t index, signature().findOutput(name));
    return self().output(index);
  });
}

Status Context::run() noexcept {
  return guarded([&] { return self().run({}); });
}

Status Context::runAsync(void *stream) noexcept {
  return guarded([&] {
    exec::RunRequest request;
    request.wait = false;
    request.stream = stream;
    return self().run(request);
  });
}

Status Context::synchronize() noexcept {
  return guarded([&] { return self().synchronize(); });
}

Result<double> Context::runTimed() noexcept {
  return guarded([&]() -> Result<double> {
    double seconds = 0;
    exec::RunRequest request;
    request.seconds = &seconds;
    CHARONIA_RETURN_IF_ERROR(self().run(request));
    return seconds;
  });
}

Result<std::vector<StepProfile>> Context::profile(int repetitions) noexcept {
  return guarded([&]() -> Result<std::vector<StepProfile>> {
    if (repetitions < 1)
      return Status(StatusCode::InvalidArgument,
                    "a profile needs at least one repetition");
    CHARONIA_ASSIGN_OR_RETURN(const exec::ExecutionPlan *plan,
                              self().currentPlan());
    std::vector<StepProfile> rows;
    for (const exec::PlannedStep &step : plan->steps) {
      StepProfile row;
      row.nodes = step.step->nodes;
      if (step.kernel) {
        row.name = step.kernel->name;
        row.ops = step.kernel->ops;
        // Estimates; a shape where they overflow has no other trouble.
        auto flops = step.kernel->flops.evaluate(step.symbols);
        auto bytes = step.kernel->bytes.evaluate(step.symbols);
        row.flops = flops ? *flops : 0;
        row.bytes = bytes ? *bytes : 0;
        row.grid = step.grid;
        row.blockThreads = step.code->blockThreads;
        row.registers = step.code->registers;
        row.sharedBytes = step.code->sharedBytes;
      } else {
        bool copies = step.step->kind == engine::Step::Kind::Copy;
        row.name = copies ? "copy" : "fill";
        row.bytes = static_cast<int64_t>(step.bytes) * (copies ? 2 : 1);
      }
      rows.push_back(std::move(row));
    }
    std::vector<double> seconds;
    exec::RunRequest request;
    request.stepSeconds = &seconds;
    // One run that is not counted loads code and makes allocations.
    for (int i = -1; i < repetitions; ++i) {
      CHARONIA_RETURN_IF_ERROR(self().run(request));
      for (size_t s = 0; i >= 0 && s < rows.size(); ++s) {
        rows[s].seconds =
            i == 0 ? seconds[s] : std::min(rows[s].seconds, seconds[s]);
        rows[s].meanSeconds += seconds[s] / repetitions;
      }
    }
    return rows;
  });
}

Result<MemoryInfo> Context::memory() const noexcept {
  return guarded([&]() -> Result<MemoryInfo> {
    CHARONIA_ASSIGN_OR_RETURN(const exec::ExecutionPlan *plan,
                              self().currentPlan());
    return MemoryInfo{plan->arenaBytes, plan->arenaLowerBound,
                      self().program->weightBytes()};
  });
}

Device Context::device() const noexcept { return self().device; }

std::string Context::description() const {
  return self().executor->description();
}

unsigned Context::threads() const noexcept {
  return self().executor->threads();
}

const Signature &Context::signature() const noexcept {
  return self().signature();
}

} // namespace charonia
