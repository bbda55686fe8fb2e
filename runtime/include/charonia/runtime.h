//===- runtime.h - Load an engine, bind tensors, run ------------*- C++ -*-===//
//
//   auto engine = charonia::Engine::load("resnet50.engine");
//   if (!engine) { ... engine.status().message() ... }
//   auto context = engine->createContext({charonia::DeviceKind::Cpu});
//   if (!context) ...
//   float x[1 * 3 * 224 * 224];
//   auto set = context->setInput("x", {charonia::DType::Float32,
//                                      {1, 3, 224, 224}, x});
//   if (!set) ...
//   if (charonia::Status ran = context->run(); !ran) ...
//   auto y = context->output("y");   // y->shape, y->data
//
// An Engine is immutable and may be used from any number of threads. A Context
// belongs to one thread at a time; for parallel runs make several contexts,
// which share the engine's code and weights. What returns a Status or a Result
// throws nothing (status.h); charonia.h is the same for C. One that was moved
// from can be assigned to and destroyed; another use of it ends the process.
//
// Trust: an engine holds machine code, which is run as it is. The checks at
// load find damage; they cannot make the code of a hostile engine harmless. Run
// engines from sources you would run programs from, or pin the file that you
// trust by LoadOptions::digest. LoadOptions::allowHostCode = false keeps an
// engine's code off the CPU; on a GPU it can still read and write all memory
// that the process has there.
//
// fork: a child process may use, destroy and create CPU contexts; the threads
// of a context that the parent made are started anew by its next run. CUDA does
// not survive fork: contexts on a GPU that the parent made may only be
// destroyed, everything else on them, and opening a GPU where the parent had
// opened one, is an error. As with every library that has locks, no other
// thread may be inside a call of this one at the moment of the fork.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_H
#define CHARONIA_RUNTIME_H

#if __cplusplus <= 201703L
#error "charonia/runtime.h needs C++20 (-std=c++20); charonia.h is for C"
#endif

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
enum class Memory : int {
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
  /// Compare the checksum of a program's weights when a context first loads
  /// them: createContext() then reads them all, at the speed of memory. Without
  /// it damaged weights give wrong results. Code is always compared.
  bool verifyWeights = true;
  /// false: contexts on the CPU are refused, so that no machine code of the
  /// engine runs in this process. Programs for GPUs are not affected.
  bool allowHostCode = true;
  /// SHA-256 that the whole file must have, as 64 hexadecimal digits; empty:
  /// any. `sha256sum FILE` prints it, and Engine::digest(). The file is then
  /// read once, to memory of its own of as many bytes, so that what was
  /// compared is what is used, whatever happens to the file; contexts share
  /// that memory, processes do not.
  std::string digest;
  /// Engine in memory: do not copy; the bytes start at a multiple of 4096 and
  /// outlive the engine and its contexts. With a digest they are copied all the
  /// same: nobody can change the copy after it was compared.
  bool borrowMemory = false;
};

struct ContextOptions {
  /// CPU: threads that run kernels, the caller's among them. 0: the environment
  /// variable CHARONIA_THREADS if it is set, else the physical cores available.
  int threads = 0;
  /// CPU: the best instruction set to use, "x86-64-v3", "x86-64-v4" or
  /// "x86-64-v4-vnni". Empty: the environment variable CHARONIA_CPU_ISA if it
  /// is set, else all that there is.
  std::string isa;
  /// "fp16": only a program of this precision. Empty: the first that fits.
  std::string precision;
  /// CUDA: a CUstream (or cudaStream_t) that run() uses; null: the context's
  /// own.
  void *stream = nullptr;
  /// CUDA: replay a recorded graph per shape instead of launching each kernel.
  bool cudaGraph = true;
  /// CUDA: start each kernel while the one before it ends, where its code knows
  /// how to wait (compute capability 9.0, driver of CUDA 12.3). Results are the
  /// same without, in more time: to look for errors.
  bool overlapKernels = true;
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
  Status setInput(std::string_view name, const Tensor &tensor) noexcept;
  Status setInput(size_t index, const Tensor &tensor) noexcept;

  /// Lets runs write an output to the caller's memory of `capacity` bytes.
  /// Until the next run there is no such output. The memory of two outputs must
  /// not overlap, nor that of an output and an input.
  Status setOutput(std::string_view name, void *data, size_t capacity,
                   Memory memory = Memory::Host) noexcept;
  Status setOutput(size_t index, void *data, size_t capacity,
                   Memory memory = Memory::Host) noexcept;

  /// Lets runs write an output to memory of the context: the default, on the
  /// host. The memory is valid until the next run, the next binding of this
  /// output, or the context's end.
  Status allocateOutput(std::string_view name,
                        Memory memory = Memory::Host) noexcept;
  Status allocateOutput(size_t index, Memory memory = Memory::Host) noexcept;

  /// The shape an output will have, given the inputs that are bound now.
  Result<std::vector<int64_t>>
  outputShape(std::string_view name) const noexcept;

  /// An output of the last run; an error if that failed, or if the output was
  /// bound anew since. Binding inputs changes nothing here. After runAsync()
  /// its data is there only when the stream has come to it.
  Result<Tensor> output(std::string_view name) const noexcept;
  Result<Tensor> output(size_t index) const noexcept;

  /// Runs and waits. After a failure there are no outputs, and the caller's
  /// memory for them is undefined; the context may run again, unless its GPU is
  /// lost (DeviceError).
  Status run() noexcept;

  /// CUDA: enqueues a run on `stream` (a CUstream; null: the context's own) and
  /// returns. Bindings must stay valid until the stream has passed it. Copies
  /// from and to host memory are asynchronous only if that memory is pinned. On
  /// a CPU it runs and waits. Runs of one context must not overlap: use one
  /// stream.
  Status runAsync(void *stream = nullptr) noexcept;

  /// Waits for the runs that were enqueued.
  Status synchronize() noexcept;

  /// Runs once and gives the seconds that the steps took on the device, without
  /// copying inputs and outputs.
  Result<double> runTimed() noexcept;

  /// Runs `repetitions` times, each step timed on its own.
  Result<std::vector<StepProfile>> profile(int repetitions = 10) noexcept;

  /// For the inputs that are bound now.
  Result<MemoryInfo> memory() const noexcept;

  Device device() const noexcept;
  /// "x86-64-v4 on 8 threads", "sm_90 on NVIDIA H200".
  std::string description() const;
  /// CPU threads that run kernels, the caller's among them; 0 on a GPU.
  unsigned threads() const noexcept;
  const Signature &signature() const noexcept;

private:
  friend class Engine;
  struct CHARONIA_HIDDEN Impl;
  explicit Context(std::unique_ptr<Impl> impl);
  CHARONIA_HIDDEN Impl &self() const noexcept;
  std::unique_ptr<Impl> impl;
};

/// A loaded engine file. Copies share it.
class CHARONIA_API Engine {
public:
  static Result<Engine> load(const std::string &path,
                             const LoadOptions &options = {}) noexcept;
  static Result<Engine> load(std::span<const std::byte> bytes,
                             const LoadOptions &options = {}) noexcept;

  const Signature &signature() const noexcept;
  std::vector<ProgramInfo> programs() const;
  /// SHA-256 of the whole file in hexadecimal, for LoadOptions::digest; reads
  /// it all.
  Result<std::string> digest() const noexcept;

  /// Loads code and weights to the device, unless another context has done so.
  Result<Context>
  createContext(Device device = {},
                const ContextOptions &options = {}) const noexcept;

private:
  struct CHARONIA_HIDDEN Impl;
  explicit Engine(std::shared_ptr<Impl> impl);
  CHARONIA_HIDDEN Impl &self() const noexcept;
  std::shared_ptr<Impl> impl;
};

} // namespace charonia

#endif // CHARONIA_RUNTIME_H
