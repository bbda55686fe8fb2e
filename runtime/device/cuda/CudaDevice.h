//===- CudaDevice.h - One GPU, its memory, streams and events ---*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define CHARONIA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "runtime/device/Fork.h"
#include "runtime/device/cuda/Driver.h"

#include <memory>
#include <string>
#include <utility>

namespace charonia::cuda {

/// A GPU with its primary context, which all users of the driver in the process
/// share (PyTorch too), so that their pointers and streams are good here.
class CudaDevice : public std::enable_shared_from_this<CudaDevice> {
public:
  /// The device; open devices are shared.
  static Result<std::shared_ptr<CudaDevice>> open(int index);
  ~CudaDevice();

  const Driver &driver() const { return api; }
  int index() const { return number; }
  int capability() const { return major * 10 + minor; } ///< 90 for sm_90.
  int sharedBytesPerBlock() const { return sharedOptin; }
  const std::string &name() const { return deviceName; }
  /// "NVIDIA H200 (cuda:0, sm_90)".
  std::string description() const;

  /// Whether a parent process opened it. Then nothing here may call the driver,
  /// not even to release what belongs to the parent.
  bool inherited() const { return mark.inherited(); }
  /// Ok, or what to do instead.
  Status checkNotInherited() const;

  /// Makes the context current on this thread for a scope.
  class Scope {
  public:
    explicit Scope(const CudaDevice &device) : api(device.api) {
      pushed =
          !device.inherited() && api.ctxPush(device.context) == cudaSuccess;
    }
    ~Scope() {
      CuContext ignored;
      if (pushed)
        api.ctxPop(&ignored);
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    const Driver &api;
    bool pushed;
  };

private:
  CudaDevice(const Driver &api, int index) : api(api), number(index) {}
  const Driver &api;
  int number;
  CuDevice device = 0;
  CuContext context = nullptr;
  int major = 0, minor = 0, sharedOptin = 0;
  std::string deviceName;
  ProcessMark mark;
};

using DeviceRef = std::shared_ptr<CudaDevice>;

/// Memory of the GPU, aligned to 256 bytes at least.
class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory &&other) noexcept { swap(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceMemory();
  /// The error tells what for, and how much is free.
  static Result<DeviceMemory> allocate(DeviceRef device, uint64_t size,
                                       const char *what);
  DevicePtr address() const { return pointer; }
  uint64_t size() const { return bytes; }

private:
  void swap(DeviceMemory &other) {
    std::swap(device, other.device);
    std::swap(pointer, other.pointer);
    std::swap(bytes, other.bytes);
  }
  DeviceRef device;
  DevicePtr pointer = 0;
  uint64_t bytes = 0;
};

/// Host memory that the GPU copies from and to without the driver's help.
class PinnedMemory {
public:
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory &&other) noexcept { swap(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedMemory();
  static Result<PinnedMemory> allocate(DeviceRef device, uint64_t size,
                                       const char *what);
  std::byte *data() const { return pointer; }
  uint64_t size() const { return bytes; }

private:
  void swap(PinnedMemory &other) {
    std::swap(device, other.device);
    std::swap(pointer, other.pointer);
    std::swap(bytes, other.bytes);
  }
  DeviceRef device;
  std::byte *pointer = nullptr;
  uint64_t bytes = 0;
};

class Stream {
public:
  Stream() = default;
  Stream(Stream &&other) noexcept { swap(other); }
  Stream &operator=(Stream &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Stream();
  static Result<Stream> create(DeviceRef device);
  CuStream get() const { return handle; }

private:
  void swap(Stream &other) {
    std::swap(device, other.device);
    std::swap(handle, other.handle);
  }
  DeviceRef device;
  CuStream handle = nullptr;
};

class Event {
public:
  Event() = default;
  Event(Event &&other) noexcept { swap(other); }
  Event &operator=(Event &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Event();
  static Result<Event> create(DeviceRef device, bool timing);
  CuEvent get() const { return handle; }

private:
  void swap(Event &other) {
    std::swap(device, other.device);
    std::swap(handle, other.handle);
  }
  DeviceRef device;
  CuEvent handle = nullptr;
};

} // namespace charonia::cuda

#endif // CHARONIA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
