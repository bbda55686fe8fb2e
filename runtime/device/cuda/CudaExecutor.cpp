//===- CudaExecutor.cpp - Running plans on a GPU --------------------------===//

#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/device/cuda/TensorMaps.h"

#include <algorithm>
#include <cstring>

namespace charonia::cuda {

using engine::Buffer;
using engine::Step;
using exec::Binding;
using exec::ExecutionPlan;
using exec::Location;
using exec::PlannedStep;
using exec::PlannedTensor;

namespace {

constexpr uint64_t deviceAlignment = 256; // What cuMemAlloc guarantees.

class DeviceAllocation final : public exec::Allocation {
public:
  explicit DeviceAllocation(DeviceMemory owned) : memory(std::move(owned)) {
    data = reinterpret_cast<void *>(memory.address());
    size = memory.size();
  }

private:
  DeviceMemory memory;
};

class PinnedAllocation final : public exec::Allocation {
public:
  explicit PinnedAllocation(PinnedMemory owned) : memory(std::move(owned)) {
    data = memory.data();
    size = memory.size();
  }

private:
  PinnedMemory memory;
};

bool overlap(DevicePtr a, uint64_t aBytes, DevicePtr b, uint64_t bBytes) {
  return a < b + bBytes && b < a + aBytes;
}

} // namespace

Result<std::unique_ptr<CudaExecutor>>
CudaExecutor::create(std::shared_ptr<CudaProgram> program,
                     const ContextOptions &options) {
  const DeviceRef &device = program->device;
  std::unique_ptr<CudaExecutor> executor(new CudaExecutor(program));
  CHARONIA_ASSIGN_OR_RETURN(executor->ownStream, Stream::create(device));
  CHARONIA_ASSIGN_OR_RETURN(executor->done, Event::create(device, false));
  executor->stream = options.stream ? static_cast<CuStream>(options.stream)
                                    : executor->ownStream.get();
  if (options.cudaGraph) {
    CHARONIA_ASSIGN_OR_RETURN(GraphCache graphs, GraphCache::create(device));
    executor->graphs.emplace(std::move(graphs));
  }
  executor->overlapKernels =
      options.overlapKernels && executor->driverOverlaps();
  return executor;
}

CudaExecutor::~CudaExecutor() { (void)synchronize(); }

std::string CudaExecutor::description() const {
  return program->variant().arch + " on " + program->device->description();
}

Result<std::unique_ptr<exec::Allocation>>
CudaExecutor::allocate(uint64_t size, Memory memory) {
  CHARONIA_RETURN_IF_ERROR(program->device->checkNotInherited());
  if (memory == Memory::Device) {
    CHARONIA_ASSIGN_OR_RETURN(
        DeviceMemory owned,
        DeviceMemory::allocate(program->device, size, "an output"));
    return std::unique_ptr<exec::Allocation>(
        std::make_unique<DeviceAllocation>(std::move(owned)));
  }
  CHARONIA_ASSIGN_OR_RETURN(
      PinnedMemory owned,
      PinnedMemory::allocate(program->device, size, "an output"));
  return std::unique_ptr<exec::Allocation>(
      std::make_unique<PinnedAllocation>(std::move(owned)));
}

void CudaExecutor::forget(const ExecutionPlan &plan) {
  if (graphs)
    graphs->forget(&plan);
}

Status CudaExecutor::synchronize() {
  if (!pending)
    return Status::ok();
  CHARONIA_RETURN_IF_ERROR(program->device->checkNotInherited());
  pending = false;
  CudaDevice::Scope scope(*program->device);
  return check(api().eventSynchronize(done.get()), "waiting for a run");
}

bool CudaExecutor::isPinned(const void *data) const {
  // The call for several attributes has no error for memory that CUDA does not
  // know.
  unsigned type = 0;
  int attribute = pointerMemoryType;
  void *value = &type;
  return api().pointerGetAttributes(1, &attribute, &value,
                                    reinterpret_cast<DevicePtr>(data)) ==
             cudaSuccess &&
         type == memoryTypeHost;
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

/// Decides for every input and output whether the kernels use the caller's
/// memory or a copy, and makes room for the copies and the arena.
Status CudaExecutor::bind(const ExecutionPlan &plan,
                          std::span<const Binding> inputs,
                          std::span<const Binding> outputs, bool wait) {
  uint64_t onDevice = 0, onHost = 0;
  auto round = [](uint64_t bytes) {
    return (bytes + deviceAlignment - 1) / deviceAlignment * deviceAlignment;
  };
  auto place = [&](Bound &bound, const Binding &binding,
                   const PlannedTensor &tensor) {
    bound = Bound();
    bound.callers = binding;
    bound.bytes = tensor.bytes;
    bound.address = reinterpret_cast<DevicePtr>(binding.data);
    bound.copied = tensor.bytes != 0 && (binding.memory == Memory::Host ||
                                         bound.address % tensor.alignment != 0);
  };
  ins.resize(inputs.size());
  outs.resize(outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    place(ins[i], inputs[i], plan.inputs[i]);
  for (size_t o = 0; o < outputs.size(); ++o) {
    place(outs[o], outputs[o], plan.outputs[o]);
    // An output that shares memory with an input would destroy it too early.
    for (const Bound &in : ins)
      if (!in.copied && !outs[o].copied &&
          overlap(outs[o].address, outs[o].bytes, in.address, in.bytes))
        outs[o].copied = true;
  }
  for (std::vector<Bound> *bounds : {&ins, &outs})
    for (Bound &bound : *bounds) {
      if (!bound.copied)
        continue;
      bound.address = onDevice; // Relative until the memory is there.
      onDevice += round(bound.bytes);
      if (bound.callers.memory == Memory::Device)
        continue;
      bound.pinned = isPinned(bound.callers.data);
      // An asynchronous run has no later moment to copy to pageable memory.
      bound.staged = wait && !bound.pinned;
      if (bound.staged) {
        bound.hostOffset = onHost;
        onHost += round(bound.bytes);
      }
    }

  bool grows = arena.size() < plan.arenaBytes || ioMemory.size() < onDevice ||
               ioStaging.size() < onHost;
  if (grows)
    CHARONIA_RETURN_IF_ERROR(
        synchronize()); // A run may still use the old ones.
  if (arena.size() < plan.arenaBytes) {
    arena = DeviceMemory();
    CHARONIA_ASSIGN_OR_RETURN(
        arena, DeviceMemory::allocate(program->device, plan.arenaBytes,
                                      "intermediate results"));
  }
  if (ioMemory.size() < onDevice) {
    ioMemory = DeviceMemory();
    CHARONIA_ASSIGN_OR_RETURN(ioMemory,
                              DeviceMemory::allocate(program->device, onDevice,
                                                     "inputs and outputs"));
  }
  if (ioStaging.size() < onHost) {
    ioStaging = PinnedMemory();
    CHARONIA_ASSIGN_OR_RETURN(
        ioStaging,
        PinnedMemory::allocate(program->device, onHost, "inputs and outputs"));
  }
  for (std::vector<Bound> *bounds : {&ins, &outs})
    for (Bound &bound : *bounds)
      if (bound.copied)
        bound.address += ioMemory.address();
  return Status::ok();
}

Status CudaExecutor::copyInputs(CuStream stream) {
  for (const Bound &in : ins) {
    if (!in.copied)
      continue;
    CuResult result;
    if (in.callers.memory == Memory::Device) {
      result = api().memcpyDtoDAsync(
          in.address, reinterpret_cast<DevicePtr>(in.callers.data), in.bytes,
          stream);
    } else {
      const void *from = in.callers.data;
      if (in.staged) {
        std::memcpy(ioStaging.data() + in.hostOffset, from, in.bytes);
        from = ioStaging.data() + in.hostOffset;
      }
      result = api().memcpyHtoDAsync(in.address, from, in.bytes, stream);
    }
    CHARONIA_RETURN_IF_ERROR(check(result, "copying an input"));
  }
  return Status::ok();
}

Status CudaExecutor::copyOutputs(CuStream stream) {
  for (const Bound &out : outs) {
    if (!out.copied)
      continue;
    CuResult result;
    if (out.callers.memory == Memory::Device)
      result =
          api().memcpyDtoDAsync(reinterpret_cast<DevicePtr>(out.callers.data),
                                out.address, out.bytes, stream);
    else
      result = api().memcpyDtoHAsync(
          out.staged ? ioStaging.data() + out.hostOffset
                     : static_cast<std::byte *>(out.callers.data),
          out.address, out.bytes, stream);
    CHARONIA_RETURN_IF_ERROR(check(result, "copying an output"));
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

bool CudaExecutor::driverOverlaps() const {
  constexpr int withEdgesInGraphs = 12030;
  int version = 0;
  return api().launchKernelEx && api().driverGetVersion &&
         api().driverGetVersion(&version) == cudaSuccess &&
         version >= withEdgesInGraphs;
}

DevicePtr CudaExecutor::resolve(const Location &location) const {
  switch (location.base) {
  case Buffer::Kind::Input:
    return ins[location.index].address + location.offset;
  case Buffer::Kind::Output:
    return outs[location.index].address + location.offset;
  case Buffer::Kind::Weight:
    return program->weights.address() + location.offset;
  case Buffer::Kind::Arena:
    return arena.address() + location.offset;
  }
  return 0;
}

Status CudaExecutor::encodeMaps(const PlannedStep &step) {
  maps.resize(step.maps.size());
  if (maps.empty())
    return Status::ok();
  if (!api().tensorMapEncodeTiled || !api().tensorMapEncodeIm2col)
    return Status(StatusCode::Unsupported,
                  "the kernel '" + step.kernel->name +
                      "' takes tensor maps, which the NVIDIA driver is too old "
                      "for; a driver for CUDA 12.0 or newer is needed");
  for (size_t i = 0; i < maps.size(); ++i) {
    const exec::PlannedMap &map = step.maps[i];
    CuResult result = encodeTensorMap(
        api(), map, resolve(step.args[map.map->argument]), maps[i]);
    if (result == cudaSuccess)
      continue;
    std::string doing = "encoding tensor map " + std::to_string(i) +
                        " of the kernel '" + step.kernel->name + "'";
    return check(result, doing.c_str());
  }
  return Status::ok();
}

Status CudaExecutor::prepare(const PlannedStep &step) {
  // One pointer a buffer, then the sizes that it takes, each 64 bits.
  arguments.clear();
  for (const Location &location : step.args)
    arguments.push_back(resolve(location));
  for (int64_t symbol : step.symbols)
    arguments.push_back(static_cast<uint64_t>(symbol));
  CHARONIA_RETURN_IF_ERROR(encodeMaps(step));
  parameters.clear();
  for (uint64_t &argument : arguments)
    parameters.push_back(&argument);
  for (EncodedTensorMap &map : maps)
    parameters.push_back(&map);
  return Status::ok();
}

Status CudaExecutor::launch(const PlannedStep &step, Before before,
                            CuStream stream) {
  const engine::KernelCode &code = *step.code;
  if (step.grid > INT32_MAX)
    return Status(StatusCode::Unsupported,
                  "the kernel '" + step.kernel->name +
                      "' has too many program instances for a GPU: " +
                      std::to_string(step.grid));
  if (step.grid % code.clusterSize != 0)
    return Status(StatusCode::Corrupt,
                  "the kernel '" + step.kernel->name + "' has " +
                      std::to_string(step.grid) +
                      " program instances, which are no clusters of " +
                      std::to_string(code.clusterSize));
  CHARONIA_RETURN_IF_ERROR(prepare(step));
  CuFunction function = program->functions[step.kernelIndex];
  auto grid = static_cast<unsigned>(step.grid);
  auto shared = static_cast<unsigned>(code.sharedBytes);
  LaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (code.clusterSize > 1) {
    attributes[count].id = launchClusterDimension;
    attributes[count++].value.clusterDim = {code.clusterSize, 1, 1};
  }
  // Captured, this is a programmatic edge of the graph. A kernel that waits has
  // all before it behind itself, so the next may rely on it in turn, and one
  // that waits at its end may overlap the wave that it is in alone; after a
  // copy or a fill the dependency is a full one.
  bool mayOverlap =
      code.waitsAtEnd ? before == Before::OfWave : before != Before::NoKernel;
  if (code.waitsForPrevious && mayOverlap && overlapKernels) {
    attributes[count].id = launchProgrammaticStreamSerialization;
    attributes[count++].value.programmaticStreamSerialization = 1;
  }
  CuResult result;
  if (count != 0) {
    LaunchConfig config = {grid, 1,      1,      code.blockThreads, 1,
                           1,    shared, stream, attributes,        count};
    result =
        api().launchKernelEx(&config, function, parameters.data(), nullptr);
  } else {
    result = api().launchKernel(function, grid, 1, 1, code.blockThreads, 1, 1,
                                shared, stream, parameters.data(), nullptr);
  }
  if (result == cudaSuccess)
    return Status::ok();
  std::string doing = "launching the kernel '" + step.kernel->name + "'";
  return check(result, doing.c_str());
}

Status CudaExecutor::launchAll(const ExecutionPlan &plan, CuStream stream,
                               std::span<const Event> events) {
  // Since the last copy or fill; a launch of nothing, since the last kernel.
  bool afterKernel = false, skipped = false;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlannedStep &step = plan.steps[i];
    if (!events.empty())
      CHARONIA_RETURN_IF_ERROR(check(api().eventRecord(events[i].get(), stream),
                                     "recording an event"));
    switch (step.step->kind) {
    case Step::Kind::Launch:
      if (step.grid == 0) {
        skipped = true;
        continue;
      }
      CHARONIA_RETURN_IF_ERROR(
          launch(step,
                 !afterKernel || !events.empty()         ? Before::NoKernel
                 : step.step->besidePrevious && !skipped ? Before::OfWave
                                                         : Before::Kernel,
                 stream));
      afterKernel = true;
      skipped = false;
      continue;
    case Step::Kind::Copy: {
      DevicePtr to = resolve(step.args[0]), from = resolve(step.args[1]);
      if (step.bytes != 0 && to != from)
        CHARONIA_RETURN_IF_ERROR(
            check(api().memcpyDtoDAsync(to, from, step.bytes, stream),
                  "copying on the GPU"));
      break;
    }
    case Step::Kind::Fill: {
      if (step.bytes == 0)
        continue;
      DevicePtr to = resolve(step.args[0]);
      uint32_t pattern = step.step->pattern, size = step.step->patternSize;
      uint64_t count = step.bytes / size;
      CuResult result =
          size == 4 ? api().memsetD32Async(to, pattern, count, stream)
          : size == 2
              ? api().memsetD16Async(to, static_cast<unsigned short>(pattern),
                                     count, stream)
              : api().memsetD8Async(to, static_cast<unsigned char>(pattern),
                                    count, stream);
      CHARONIA_RETURN_IF_ERROR(check(result, "filling memory"));
      break;
    }
    }
    afterKernel = false;
  }
  if (!events.empty())
    return check(api().eventRecord(events[plan.steps.size()].get(), stream),
                 "recording an event");
  return Status::ok();
}

Status CudaExecutor::runSteps(const ExecutionPlan &plan, CuStream stream) {
  if (!graphs)
    return launchAll(plan, stream, {});
  GraphCache::Addresses addresses{arena.address()};
  for (const std::vector<Bound> *bounds : {&ins, &outs})
    for (const Bound &bound : *bounds)
      addresses.push_back(bound.address);
  return graphs->run(&plan, addresses, stream, [&](CuStream target) {
    return launchAll(plan, target, {});
  });
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

Status CudaExecutor::makeEvents(size_t count) {
  while (timers.size() < count) {
    CHARONIA_ASSIGN_OR_RETURN(Event event,
                              Event::create(program->device, /*timing=*/true));
    timers.push_back(std::move(event));
  }
  return Status::ok();
}

Status CudaExecutor::runProfiled(const ExecutionPlan &plan, CuStream stream,
                                 std::vector<double> &seconds) {
  size_t steps = plan.steps.size();
  CHARONIA_RETURN_IF_ERROR(makeEvents(steps + 1));
  // An event and a launch take the host some microseconds.
  delay.enqueue(50'000 + steps * 10'000, stream);
  CHARONIA_RETURN_IF_ERROR(
      launchAll(plan, stream, std::span(timers).first(steps + 1)));
  CHARONIA_RETURN_IF_ERROR(
      check(api().streamSynchronize(stream), "running the engine"));
  seconds.assign(steps, 0);
  for (size_t i = 0; i < steps; ++i) {
    float milliseconds = 0;
    CHARONIA_RETURN_IF_ERROR(
        check(api().eventElapsedTime(&milliseconds, timers[i].get(),
                                     timers[i + 1].get()),
              "reading the time"));
    seconds[i] = milliseconds * 1e-3;
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

Status CudaExecutor::enqueue(const ExecutionPlan &plan,
                             const exec::RunRequest &request, CuStream stream) {
  // The arena is one: a run on another stream starts after the last one.
  if (pending && stream != lastStream)
    CHARONIA_RETURN_IF_ERROR(check(api().streamWaitEvent(stream, done.get(), 0),
                                   "ordering two streams"));
  CHARONIA_RETURN_IF_ERROR(copyInputs(stream));
  if (request.stepSeconds) {
    CHARONIA_RETURN_IF_ERROR(runProfiled(plan, stream, *request.stepSeconds));
  } else if (request.seconds) {
    CHARONIA_RETURN_IF_ERROR(makeEvents(2));
    CHARONIA_RETURN_IF_ERROR(check(api().eventRecord(timers[0].get(), stream),
                                   "recording an event"));
    CHARONIA_RETURN_IF_ERROR(runSteps(plan, stream));
    CHARONIA_RETURN_IF_ERROR(check(api().eventRecord(timers[1].get(), stream),
                                   "recording an event"));
  } else {
    CHARONIA_RETURN_IF_ERROR(runSteps(plan, stream));
  }
  return copyOutputs(stream);
}

Status CudaExecutor::run(const ExecutionPlan &plan,
                         std::span<const Binding> inputs,
                         std::span<const Binding> outputs,
                         const exec::RunRequest &request) {
  CHARONIA_RETURN_IF_ERROR(program->device->checkNotInherited());
  CudaDevice::Scope scope(*program->device);
  CuStream target =
      request.stream ? static_cast<CuStream>(request.stream) : stream;
  CHARONIA_RETURN_IF_ERROR(bind(plan, inputs, outputs, request.wait));
  Status status = enqueue(plan, request, target);
  if (!request.wait) {
    // Even after a failure part of the run may be under way.
    Status recorded =
        check(api().eventRecord(done.get(), target), "recording an event");
    pending = true;
    lastStream = target;
    return status ? recorded : status;
  }
  // After a failure as well: nothing may still use the caller's memory.
  Status finished =
      check(api().streamSynchronize(target), "running the engine");
  pending = false;
  CHARONIA_RETURN_IF_ERROR(status);
  CHARONIA_RETURN_IF_ERROR(finished);
  for (const Bound &out : outs)
    if (out.staged)
      std::memcpy(out.callers.data, ioStaging.data() + out.hostOffset,
                  out.bytes);
  if (request.seconds && !request.stepSeconds) {
    float milliseconds = 0;
    CHARONIA_RETURN_IF_ERROR(check(
        api().eventElapsedTime(&milliseconds, timers[0].get(), timers[1].get()),
        "reading the time"));
    *request.seconds = milliseconds * 1e-3;
  }
  return Status::ok();
}

Result<std::unique_ptr<exec::Executor>>
CudaProgram::createExecutor(std::shared_ptr<LoadedProgram> self,
                            const ContextOptions &options) {
  CudaDevice::Scope scope(*device);
  CHARONIA_ASSIGN_OR_RETURN(
      auto executor,
      CudaExecutor::create(
          std::static_pointer_cast<CudaProgram>(std::move(self)), options));
  return std::unique_ptr<exec::Executor>(std::move(executor));
}

} // namespace charonia::cuda
