//===- runtime.h - Load an engine, bind tensors, run ------------*- C++ -*-===//
//
//   auto engine = charonia::Engine::load("resnet50.engine");
//   if (!engine) { ... engine.status().message() ... }
//   auto context = engine->createContext({charonia::DeviceKind::Cpu});
//   float x[1 * 3 * 224 * 224];
//   context->setInput("x", {charonia::DType::Float32, {1, 3, 224, 224}, x});
//   charonia::Status ran = context->run();
//   charonia::Tensor y = *context->output("y");   // shape and data
//
// An Engine is immutable and may be used from any number of threads. A Context
// belongs to one thread at a time; for parallel runs make several contexts,
// which share the engine's code and weights. Nothing throws; charonia.h is the
// same for C.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_H
#define CHARONIA_RUNTIME_H

#include "charonia/signature.h"
#include "charonia/status.h"
#include "charonia/types.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace charonia {

/// "0.1.0"
CHARONIA_API std::string_view version();

/// Where a pointer points.
enum class Memory : uint8_t {
  Host = 0,
  Device = 1, ///< Memory of the context's GPU; not for CPU contexts.
};

/// A dense row-major tensor that somebody else owns.
struct Tensor {
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
  const void *data = nullptr; ///< May be null if the tensor has no elements.
  Memory memory = Memory::Host;
};

struct LoadOptions {
  /// Compare the checksums of all sections; reads the whole file.
  bool verifyWeights = false;
  /// Engine in memory: do not copy; the bytes start at a multiple of 4096 and
  /// outlive the engine and its contexts.
  bool borrowMemory = false;
};

struct ContextOptions {
  /// CPU: threads that run kernels, the caller's among them. 0: the environment
  /// variable CHARONIA_THREADS if it is set, else the physical cores available.
  int threads = 0;
  /// CPU: the best instruction set to use, "x86-64-v3" or "x86-64-v4". Empty:
  /// the environment variable CHARONIA_CPU_ISA if it is set, else all that
  /// there is.
  std::string isa;
  /// "fp16": only a program of this precision. Empty: the first that fits.
  std::string precision;
  /// CUDA: a CUstream (or cudaStream_t) that run() uses; null: the context's
  /// own.
  void *stream = nullptr;
  /// CUDA: replay a recorded graph per shape instead of launching each kernel.
  bool cudaGraph = true;
};

/// How long one step took, and what it had to do.
struct StepProfile {
  std::string name;               ///< The kernel's name; "copy", "fill".
  std::vector<std::string> ops;   ///< Operators fused into it.
  std::vector<std::string> nodes; ///< The model's nodes that it computes.
  double seconds = 0;             ///< Fastest of the repetitions.
  double meanSeconds = 0;
  int64_t flops = 0;
  int64_t bytes = 0; ///< That had to move between memory and chip.
  int64_t grid = 0;  ///< Program instances.
  unsigned blockThreads = 0;
  unsigned registers = 0; ///< Per thread; 0: not known.
  uint64_t sharedBytes = 0;
};

/// What a context of this engine would run: for tools and messages.
struct ProgramInfo {
  DeviceKind device;
  std::string precision;
  std::vector<std::string> archs;
  size_t kernels = 0; ///< Launches per run.
};

struct MemoryInfo {
  uint64_t arenaBytes = 0;      ///< Of the context, for the current shapes.
  uint64_t arenaLowerBound = 0; ///< Largest sum of live bytes.
  uint64_t weightBytes = 0;     ///< Shared by all contexts on the device.
};

/// One model instance: input and output bindings, an arena, threads or a
/// stream. Movable. Calls are for one thread at a time.
class CHARONIA_API Context {
public:
  Context(Context &&) noexcept;
  Context &operator=(Context &&) noexcept;
  ~Context();

  /// Binds an input without copying: the memory must stay valid and unchanged
  /// until the run that reads it has finished. It stays bound for further runs.
  /// Any alignment is accepted, but data that is not aligned to 64 bytes (256
  /// on a GPU) may be copied first.
  Status setInput(std::string_view name, const Tensor &tensor);
  Status setInput(size_t index, const Tensor &tensor);

  /// Lets runs write an output to the caller's memory of `capacity` bytes.
  Status setOutput(std::string_view name, void *data, size_t capacity,
                   Memory memory = Memory::Host);
  Status setOutput(size_t index, void *data, size_t capacity,
                   Memory memory = Memory::Host);

  /// Lets runs write an output to memory of the context: the default, on the
  /// host. The memory is valid until the next run or the context's end.
  Status allocateOutput(std::string_view name, Memory memory = Memory::Host);
  Status allocateOutput(size_t index, Memory memory = Memory::Host);

  /// The shape an output will have, given the inputs that are bound now.
  Result<std::vector<int64_t>> outputShape(std::string_view name) const;

  /// An output of the last run. After runAsync() its data is there only when
  /// the stream has come to it.
  Result<Tensor> output(std::string_view name) const;
  Result<Tensor> output(size_t index) const;

  /// Runs and waits. Fails without side effects if an input is missing or a
  /// shape is wrong; after a DeviceError the outputs are undefined.
  Status run();

  /// CUDA: enqueues a run on `stream` (a CUstream; null: the context's own) and
  /// returns. Bindings must stay valid until the stream has passed it. Copies
  /// from and to host memory are asynchronous only if that memory is pinned. On
  /// a CPU it runs and waits. Runs of one context must not overlap: use one
  /// stream.
  Status runAsync(void *stream = nullptr);

  /// Waits for the runs that were enqueued.
  Status synchronize();

  /// Runs once and gives the seconds that the steps took on the device, without
  /// copying inputs and outputs.
  Result<double> runTimed();

  /// Runs `repetitions` times, each step timed on its own.
  Result<std::vector<StepProfile>> profile(int repetitions = 10);

  /// For the inputs that are bound now.
  Result<MemoryInfo> memory() const;

  Device device() const;
  /// "x86-64-v4 on 8 threads", "sm_90 on NVIDIA H200".
  std::string description() const;
  const Signature &signature() const;

private:
  friend class Engine;
  struct CHARONIA_HIDDEN Impl;
  explicit Context(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// A loaded engine file. Copies share it.
class CHARONIA_API Engine {
public:
  static Result<Engine> load(const std::string &path,
                             const LoadOptions &options = {});
  static Result<Engine> load(std::span<const std::byte> bytes,
                             const LoadOptions &options = {});

  const Signature &signature() const;
  std::vector<ProgramInfo> programs() const;

  /// Loads code and weights to the device, unless another context has done so.
  Result<Context> createContext(Device device = {},
                                const ContextOptions &options = {}) const;

private:
  struct CHARONIA_HIDDEN Impl;
  explicit Engine(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl;
};

} // namespace charonia

#endif // CHARONIA_RUNTIME_H
