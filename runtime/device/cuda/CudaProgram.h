//===- CudaProgram.h - A program's code and weights on a GPU ----*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_DEVICE_CUDA_CUDAPROGRAM_H
#define CHARONIA_RUNTIME_DEVICE_CUDA_CUDAPROGRAM_H

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/exec/Executor.h"

#include <optional>

namespace charonia::cuda {

/// "sm_80", "sm_90a": the chip that code was made for.
struct Arch {
  int capability = 0;    ///< 80, 90, ...
  bool specific = false; ///< "a": this chip only.
  bool ofFamily = false; ///< "f": later chips of the same major version too.

  static std::optional<Arch> parse(std::string_view text);
  /// Machine code for it runs on a device of that capability.
  bool cubinRunsOn(int device) const;
  /// PTX for it can be compiled for a device of that capability.
  bool ptxRunsOn(int device) const;
};

class CudaProgram final : public exec::LoadedProgram {
public:
  CudaProgram(DeviceRef device, exec::LoadRequest request)
      : LoadedProgram(std::move(request)), device(std::move(device)) {}
  ~CudaProgram() override;

  /// Loads modules (machine code where it fits the device, else PTX through the
  /// driver's compiler) and copies the weights.
  Status load();

  Result<std::unique_ptr<exec::Executor>>
  createExecutor(std::shared_ptr<LoadedProgram> self,
                 const ContextOptions &options) override;

  const DeviceRef device;
  std::vector<CuFunction> functions; ///< One per kernel.
  DeviceMemory weights;

private:
  /// Copies of the code sections that the variant uses, by section: what is
  /// compared with the checksums is what the driver gets.
  using Code = std::vector<std::vector<std::byte>>;
  Result<Code> readCode() const;
  Result<CuModule> loadModule(const Code &sections, const engine::Range &range,
                              bool cubin);
  Status loadModules();
  Status findFunctions();
  Status uploadWeights();

  std::vector<CuModule> modules;
};

} // namespace charonia::cuda

#endif // CHARONIA_RUNTIME_DEVICE_CUDA_CUDAPROGRAM_H
