//===- DelayKernel.h - Keeping the GPU busy for a while ---------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_DEVICE_CUDA_DELAYKERNEL_H
#define CHARONIA_RUNTIME_DEVICE_CUDA_DELAYKERNEL_H

#include "runtime/device/cuda/CudaDevice.h"

namespace charonia::cuda {

/// Small kernels take less time than enqueueing them does. While the GPU waits
/// in this kernel, the host gets ahead, and what follows runs without gaps, so
/// that events between kernels measure kernels. Where it can't be loaded
/// nothing waits.
class DelayKernel {
public:
  explicit DelayKernel(DeviceRef device) : device(std::move(device)) {}
  ~DelayKernel();
  DelayKernel(const DelayKernel &) = delete;
  DelayKernel &operator=(const DelayKernel &) = delete;

  /// Waits for that time, 20 ms at most.
  void enqueue(uint64_t nanoseconds, CuStream stream);

private:
  DeviceRef device;
  CuModule module = nullptr;
  CuFunction function = nullptr;
  bool tried = false;
};

} // namespace charonia::cuda

#endif // CHARONIA_RUNTIME_DEVICE_CUDA_DELAYKERNEL_H
