#include "tools/charonia/RuntimeTimer.h"
#include "charonia/runtime.h"
#include "runtime/device/cpu/CpuInfo.h"
#include "runtime/device/cuda/CudaProgram.h"
#include "tools/charonia/Elements.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

namespace charonia::tool {
namespace {

/// The inputs of trial engines: on the CPU, or in memory of a GPU.
class Inputs {
public:
  static Result<std::shared_ptr<Inputs>> create(const Signature &signature,
                                                cuda::DeviceRef device) {
    auto inputs = std::make_shared<Inputs>();
    std::vector<int64_t> sizes;
    for (const Symbol &symbol : signature.symbols)
      sizes.push_back(symbol.opt);
    std::map<std::string, Array> values;
    for (const TensorSpec &spec : signature.inputs) {
      CHARONIA_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                                signature.evaluateShape(spec, sizes));
      Array &array = values[spec.name.substr(0, spec.name.find('.'))];
      if (!array.data) {
        CHARONIA_ASSIGN_OR_RETURN(array, Array::allocate(spec.dtype, shape));
        fillRandom(array, values.size());
      }
      CHARONIA_RETURN_IF_ERROR(device ? inputs->copy(array, device)
                                      : inputs->copy(array));
    }
    return inputs;
  }

  Status bind(Context &context) const {
    for (size_t i = 0; i < tensors.size(); ++i)
      CHARONIA_RETURN_IF_ERROR(context.setInput(i, tensors[i]));
    return Status::ok();
  }

private:
  Status copy(const Array &array) {
    CHARONIA_ASSIGN_OR_RETURN(Array own,
                              Array::allocate(array.dtype, array.shape));
    std::copy_n(array.data.get(), array.size, own.data.get());
    tensors.push_back({own.dtype, own.shape, own.data.get(), Memory::Host});
    arrays.push_back(std::move(own));
    return Status::ok();
  }

  Status copy(const Array &array, const cuda::DeviceRef &device) {
    CHARONIA_ASSIGN_OR_RETURN(
        cuda::DeviceMemory own,
        cuda::DeviceMemory::allocate(device, std::max<uint64_t>(array.size, 1),
                                     "a kernel's inputs"));
    CHARONIA_ASSIGN_OR_RETURN(cuda::Stream stream,
                              cuda::Stream::create(device));
    cuda::CudaDevice::Scope scope(*device);
    const cuda::Driver &api = device->driver();
    if (array.size)
      CHARONIA_RETURN_IF_ERROR(
          api.check(api.memcpyHtoDAsync(own.address(), array.data.get(),
                                        array.size, stream.get()),
                    "copying a kernel's inputs"));
    CHARONIA_RETURN_IF_ERROR(api.check(api.streamSynchronize(stream.get()),
                                       "copying a kernel's inputs"));
    tensors.push_back({array.dtype, array.shape,
                       reinterpret_cast<const void *>(own.address()),
                       Memory::Device});
    memory.push_back(std::move(own));
    return Status::ok();
  }

  std::vector<Tensor> tensors;
  std::vector<Array> arrays;
  std::vector<cuda::DeviceMemory> memory;
};

class RuntimeTrial final : public driver::Trial {
public:
  RuntimeTrial(std::shared_ptr<Inputs> inputs, Context context)
      : inputs(std::move(inputs)), context(std::move(context)) {}

  Result<double> run() override { return context.runTimed(); }

  Result<std::vector<double>> results() override {
    // Evenly spread; an odd step meets all columns and rows of tiles.
    constexpr uint64_t most = 1 << 18;
    std::vector<double> values;
    for (size_t i = 0; i < context.signature().outputs.size(); ++i) {
      CHARONIA_ASSIGN_OR_RETURN(Tensor tensor, context.output(i));
      uint64_t count = 1;
      for (int64_t extent : tensor.shape)
        count *= extent;
      for (uint64_t at = 0, step = count / most | 1; at < count; at += step)
        values.push_back(elementAsDouble(tensor.dtype, tensor.data, at));
    }
    return values;
  }

private:
  std::shared_ptr<Inputs> inputs; ///< Outlives the context.
  Context context;
};

class RuntimeTimer final : public driver::KernelTimer {
public:
  Result<std::string> deviceFor(DeviceKind kind,
                                const std::string &arch) override {
    if (kind == DeviceKind::Cpu) {
      CHARONIA_RETURN_IF_ERROR(cpu::chooseLevel(arch).status());
      CHARONIA_ASSIGN_OR_RETURN(int threads, cpu::chooseThreads(0));
      return "this CPU, " + std::to_string(threads) +
             (threads == 1 ? " thread" : " threads");
    }
    CHARONIA_ASSIGN_OR_RETURN(cuda::DeviceRef device, findGpu(arch));
    return device->name();
  }

  std::vector<Result<std::unique_ptr<driver::Trial>>>
  load(const std::vector<driver::TrialEngine> &engines, DeviceKind kind,
       const std::string &arch) override {
    std::vector<Result<std::unique_ptr<driver::Trial>>> trials;
    for (size_t i = 0; i < engines.size(); ++i)
      trials.push_back(Status(StatusCode::Internal, "it was not loaded"));
    Result<Shared> shared = share(engines.front(), kind, arch);
    if (!shared) {
      trials.front() = shared.status();
      return trials;
    }
    // The driver's compiler takes long, and one thread a module.
    std::atomic<size_t> next{0};
    auto work = [&] {
      for (size_t i; (i = next++) < engines.size();)
        trials[i] = open(engines[i], kind, arch, *shared);
    };
    std::vector<std::thread> threads;
    size_t helpers = std::min<size_t>(cpu::availableCores(), engines.size());
    while (threads.size() + 1 < helpers)
      threads.emplace_back(work);
    work();
    for (std::thread &thread : threads)
      thread.join();
    return trials;
  }

private:
  struct Shared {
    std::shared_ptr<Inputs> inputs;
    int device = 0; ///< Number of the GPU.
  };

  /// The first GPU that is the target's, not merely one that runs its code.
  static Result<cuda::DeviceRef> findGpu(const std::string &arch) {
    auto wanted = cuda::Arch::parse(arch);
    std::string here;
    for (int i = 0;; ++i) {
      Result<cuda::DeviceRef> device = cuda::CudaDevice::open(i);
      if (!device && i == 0)
        return device.status();
      if (!device)
        return Status(StatusCode::Unavailable, "there is no GPU of " + arch +
                                                   " on this machine, but " +
                                                   here);
      if (wanted && (*device)->capability() == wanted->capability)
        return device;
      here += (i ? ", " : "") + (*device)->description();
    }
  }

  static Result<Shared> share(const driver::TrialEngine &trial, DeviceKind kind,
                              const std::string &arch) {
    Shared shared;
    cuda::DeviceRef device;
    if (kind == DeviceKind::Cuda) {
      CHARONIA_ASSIGN_OR_RETURN(device, findGpu(arch));
      shared.device = device->index();
    }
    CHARONIA_ASSIGN_OR_RETURN(Engine engine, Engine::load(trial.bytes));
    CHARONIA_ASSIGN_OR_RETURN(shared.inputs,
                              Inputs::create(engine.signature(), device));
    return shared;
  }

  static Result<std::unique_ptr<driver::Trial>>
  open(const driver::TrialEngine &trial, DeviceKind kind,
       const std::string &arch, const Shared &shared) {
    CHARONIA_ASSIGN_OR_RETURN(Engine engine, Engine::load(trial.bytes));
    ContextOptions options;
    if (kind == DeviceKind::Cpu)
      options.isa = arch;
    CHARONIA_ASSIGN_OR_RETURN(
        Context context, engine.createContext({kind, shared.device}, options));
    CHARONIA_RETURN_IF_ERROR(shared.inputs->bind(context));
    return std::unique_ptr<driver::Trial>(
        std::make_unique<RuntimeTrial>(shared.inputs, std::move(context)));
  }
};

} // namespace

std::unique_ptr<driver::KernelTimer> makeRuntimeTimer() {
  return std::make_unique<RuntimeTimer>();
}

} // namespace charonia::tool
