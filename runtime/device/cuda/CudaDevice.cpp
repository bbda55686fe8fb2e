//===- CudaDevice.cpp - One GPU, its memory, streams and events -----------===//

#include "runtime/device/cuda/CudaDevice.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace charonia::cuda {

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(int index) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<CudaDevice>> devices;
  CHARONIA_ASSIGN_OR_RETURN(const Driver *api, Driver::get());
  std::lock_guard lock(mutex);
  if (auto known = devices[index].lock())
    return known;

  int count = 0;
  CHARONIA_RETURN_IF_ERROR(
      api->check(api->deviceGetCount(&count), "counting the GPUs"));
  if (count == 0)
    return Status(StatusCode::Unavailable,
                  "there is no NVIDIA GPU on this machine");
  if (index < 0 || index >= count)
    return Status(StatusCode::Unavailable,
                  "there is no device cuda:" + std::to_string(index) +
                      "; this machine has " + std::to_string(count) +
                      (count == 1 ? " GPU, cuda:0"
                                  : " GPUs, cuda:0 to cuda:" +
                                        std::to_string(count - 1)));
  std::shared_ptr<CudaDevice> opened(new CudaDevice(*api, index));
  CuDevice device;
  CHARONIA_RETURN_IF_ERROR(
      api->check(api->deviceGet(&device, index), "opening the GPU"));
  opened->device = device;
  auto attribute = [&](int which, int &value) {
    return api->check(api->deviceGetAttribute(&value, which, device),
                      "asking for the GPU's attributes");
  };
  CHARONIA_RETURN_IF_ERROR(attribute(attributeMajor, opened->major));
  CHARONIA_RETURN_IF_ERROR(attribute(attributeMinor, opened->minor));
  CHARONIA_RETURN_IF_ERROR(
      attribute(attributeSharedOptin, opened->sharedOptin));
  char name[256] = {};
  CHARONIA_RETURN_IF_ERROR(
      api->check(api->deviceGetName(name, sizeof(name) - 1, device),
                 "asking for the GPU's name"));
  opened->deviceName = name;
  CuContext context;
  CHARONIA_RETURN_IF_ERROR(
      api->check(api->primaryCtxRetain(&context, device), "opening the GPU"));
  opened->context = context;
  devices[index] = opened;
  return opened;
}

CudaDevice::~CudaDevice() {
  if (context && !inherited())
    api.primaryCtxRelease(device);
}

Status CudaDevice::checkNotInherited() const {
  if (!inherited())
    return Status::ok();
  return Status(
      StatusCode::FailedPrecondition,
      "this context on " + description() +
          " was made before fork(), which CUDA does not survive; make "
          "contexts on a GPU in the process that uses them");
}

std::string CudaDevice::description() const {
  return deviceName + " (cuda:" + std::to_string(number) + ", sm_" +
         std::to_string(capability()) + ")";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Result<DeviceMemory> DeviceMemory::allocate(DeviceRef device, uint64_t size,
                                            const char *what) {
  CudaDevice::Scope scope(*device);
  const Driver &api = device->driver();
  DeviceMemory memory;
  CuResult result = api.memAlloc(&memory.pointer, std::max<uint64_t>(size, 1));
  if (result == cudaOutOfMemory) {
    memory.pointer = 0;
    size_t free = 0, total = 0;
    std::string message = "out of memory on " + device->description() +
                          ": cannot get " + std::to_string(size) +
                          " bytes for " + what;
    if (api.memGetInfo(&free, &total) == cudaSuccess)
      message += "; " + std::to_string(free) + " of " + std::to_string(total) +
                 " bytes are free";
    return Status(StatusCode::OutOfMemory, message);
  }
  CHARONIA_RETURN_IF_ERROR(api.check(result, "allocating memory"));
  memory.device = std::move(device);
  memory.bytes = size;
  return memory;
}

DeviceMemory::~DeviceMemory() {
  if (!pointer || device->inherited())
    return;
  CudaDevice::Scope scope(*device);
  device->driver().memFree(pointer);
}

Result<PinnedMemory> PinnedMemory::allocate(DeviceRef device, uint64_t size,
                                            const char *what) {
  CudaDevice::Scope scope(*device);
  const Driver &api = device->driver();
  PinnedMemory memory;
  void *data = nullptr;
  CuResult result = api.memHostAlloc(&data, std::max<uint64_t>(size, 1), 0);
  if (result == cudaOutOfMemory)
    return Status(StatusCode::OutOfMemory,
                  "out of memory: cannot get " + std::to_string(size) +
                      " bytes of pinned host memory for " + what);
  CHARONIA_RETURN_IF_ERROR(api.check(result, "allocating pinned memory"));
  memory.pointer = static_cast<std::byte *>(data);
  memory.device = std::move(device);
  memory.bytes = size;
  return memory;
}

PinnedMemory::~PinnedMemory() {
  if (!pointer || device->inherited())
    return;
  CudaDevice::Scope scope(*device);
  device->driver().memFreeHost(pointer);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

Result<Stream> Stream::create(DeviceRef device) {
  CudaDevice::Scope scope(*device);
  const Driver &api = device->driver();
  Stream stream;
  CHARONIA_RETURN_IF_ERROR(
      api.check(api.streamCreate(&stream.handle, streamNonBlocking),
                "creating a stream"));
  stream.device = std::move(device);
  return stream;
}

Stream::~Stream() {
  if (!device || device->inherited())
    return;
  CudaDevice::Scope scope(*device);
  device->driver().streamDestroy(handle);
}

Result<Event> Event::create(DeviceRef device, bool timing) {
  CudaDevice::Scope scope(*device);
  const Driver &api = device->driver();
  Event event;
  CHARONIA_RETURN_IF_ERROR(
      api.check(api.eventCreate(&event.handle, timing ? 0 : eventDisableTiming),
                "creating an event"));
  event.device = std::move(device);
  return event;
}

Event::~Event() {
  if (!device || device->inherited())
    return;
  CudaDevice::Scope scope(*device);
  device->driver().eventDestroy(handle);
}

} // namespace charonia::cuda
