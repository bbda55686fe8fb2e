//===- FakeCuda.cpp - A CUDA driver made of host code ---------------------===//

#include "FakeCuda.h"

#include "runtime/device/cuda/Driver.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

using namespace charonia::cuda;

namespace {

using Work = std::function<void()>;

struct FakeStream {
  int device = 0;
  std::list<Work> queue;
  std::vector<Work> *capture = nullptr;
};

/// One recording of an event; waits refer to it even after the next one.
struct Recording {
  FakeStream *stream = nullptr;
  bool done = true;
  double time = 0;
};
struct FakeEvent {
  std::shared_ptr<Recording> last = std::make_shared<Recording>();
};

struct FakeFunction {
  std::string name;
  size_t parameters;
  void (*run)(uint64_t *p, unsigned grid);
  size_t maps = 0; ///< Behind the parameters, 16 numbers each.
  int sharedLimit = 48 * 1024;
};

template <typename T> T *pointer(uint64_t value) {
  return reinterpret_cast<T *>(value);
}

// The same kernels as kernels.c; the last parameter is the shape symbol.
void scaleAdd(uint64_t *p, unsigned grid) {
  auto *x = pointer<const float>(p[0]), *w = pointer<const float>(p[1]);
  auto *t = pointer<float>(p[2]);
  for (unsigned i = 0; i < grid * 16; ++i)
    t[i] = x[i] * w[i % 16] + w[16 + i % 16];
}
void relu(uint64_t *p, unsigned grid) {
  auto *t = pointer<const float>(p[0]);
  auto *y = pointer<float>(p[1]);
  for (unsigned i = 0; i < grid * 16; ++i)
    y[i] = t[i] > 0 ? t[i] : 0;
}
/// The same of an x that is found by the words of a tensor map alone: address,
/// columns, rows and what these are apart.
void scaleAddMap(uint64_t *p, unsigned grid) {
  uint64_t *map = p + 4;
  auto *w = pointer<const float>(p[1]);
  auto *t = pointer<float>(p[2]);
  if (map[0] != p[0] || map[1] != 16 || map[2] != grid)
    return;
  for (unsigned i = 0; i < grid * 16; ++i)
    t[i] = pointer<const float>(map[0] + i / 16 * map[3])[i % 16] * w[i % 16] +
           w[16 + i % 16];
}
void nothing(uint64_t *, unsigned) {}

struct FakeModule {
  std::map<std::string, FakeFunction> functions = {
      {"scale_add", {"scale_add", 4, scaleAdd}},
      {"scale_add_map", {"scale_add_map", 4, scaleAddMap, 1}},
      {"relu", {"relu", 3, relu}},
      {"charonia_delay", {"charonia_delay", 1, nothing}}};
};

FakeCuda fake;
std::recursive_mutex mutex;
std::map<uint64_t, uint64_t> deviceBlocks; // address -> size
std::map<uint64_t, int> blockDevices;      // address -> device
std::map<uint64_t, uint64_t> pinnedBlocks;
double ticks = 0;
thread_local std::vector<int> contexts; // Devices; the last is current.

bool inside(const std::map<uint64_t, uint64_t> &blocks, uint64_t address,
            uint64_t size) {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin())
    return false;
  --after;
  return address + size <= after->first + after->second;
}

void misuse(const std::string &what) {
  if (fake.misuse.empty())
    fake.misuse = what;
}

/// Counts the call; every function but those for devices needs a context.
#define CALL(name, needsContext)                                               \
  std::lock_guard lock(mutex);                                                 \
  ++fake.calls[#name];                                                         \
  if (needsContext && contexts.empty()) {                                      \
    misuse(#name " without a context");                                        \
    return 201;                                                                \
  }

FakeStream *fakeStream(CuStream stream) {
  if (!stream)
    misuse("the default stream");
  auto *result = reinterpret_cast<FakeStream *>(stream);
  if (result && result->device != contexts.back())
    misuse("a stream of another device");
  return result;
}

void drain(FakeStream *stream) {
  while (!stream->queue.empty()) {
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    work();
  }
}

void push(FakeStream *stream, Work work) {
  if (stream->capture)
    stream->capture->push_back(std::move(work));
  else
    stream->queue.push_back(std::move(work));
}

void checkDevice(uint64_t address, uint64_t size, const char *who) {
  if (!inside(deviceBlocks, address, size))
    misuse(std::string(who) + " outside device memory");
  else if (std::prev(blockDevices.upper_bound(address))->second !=
           contexts.back())
    misuse(std::string(who) + " of another device's memory");
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT FakeCuda *fakeCuda() { return &fake; }

EXPORT int cuInit(unsigned) {
  CALL(cuInit, false)
  return fake.initResult;
}
EXPORT int cuDeviceGetCount(int *count) {
  CALL(cuDeviceGetCount, false)
  *count = fake.deviceCount;
  return 0;
}
EXPORT int cuDeviceGet(int *device, int index) {
  CALL(cuDeviceGet, false)
  *device = index;
  return 0;
}
EXPORT int cuDeviceGetName(char *name, int size, int) {
  CALL(cuDeviceGetName, false)
  std::strncpy(name, "Fake GPU", size);
  return 0;
}
EXPORT int cuDeviceGetAttribute(int *value, int which, int) {
  CALL(cuDeviceGetAttribute, false)
  *value = which == attributeMajor         ? fake.capability / 10
           : which == attributeMinor       ? fake.capability % 10
           : which == attributeSharedOptin ? 227 * 1024
                                           : -1;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(CuContext *context, int device) {
  CALL(cuDevicePrimaryCtxRetain, false)
  ++fake.alive["context"];
  *context = reinterpret_cast<CuContext>(uintptr_t(device) + 1);
  return 0;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int) {
  CALL(cuDevicePrimaryCtxRelease, false)
  --fake.alive["context"];
  return 0;
}
EXPORT int cuCtxPushCurrent_v2(CuContext context) {
  contexts.push_back(static_cast<int>(reinterpret_cast<uintptr_t>(context)) -
                     1);
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(CuContext *) {
  contexts.pop_back();
  return 0;
}
EXPORT int cuMemGetInfo_v2(size_t *free, size_t *total) {
  CALL(cuMemGetInfo, true)
  *free = fake.memory - fake.allocated;
  *total = fake.memory;
  return 0;
}
EXPORT int cuMemAlloc_v2(DevicePtr *address, size_t size) {
  CALL(cuMemAlloc, true)
  if (fake.allocated + size > fake.memory)
    return 2;
  void *data = std::aligned_alloc(256, (size + 255) / 256 * 256);
  std::memset(data, 0xcd, size);
  *address = reinterpret_cast<uint64_t>(data);
  deviceBlocks[*address] = size;
  blockDevices[*address] = contexts.back();
  fake.allocated += size;
  ++fake.alive["memory"];
  return 0;
}
EXPORT int cuMemFree_v2(DevicePtr address) {
  CALL(cuMemFree, true)
  auto block = deviceBlocks.find(address);
  if (block == deviceBlocks.end()) {
    misuse("freeing what was not allocated");
    return 1;
  }
  std::memset(pointer<void>(address), 0xdd, block->second);
  fake.allocated -= block->second;
  deviceBlocks.erase(block);
  blockDevices.erase(address);
  std::free(pointer<void>(address));
  --fake.alive["memory"];
  return 0;
}
EXPORT int cuMemHostAlloc(void **data, size_t size, unsigned) {
  CALL(cuMemHostAlloc, true)
  *data = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  pinnedBlocks[reinterpret_cast<uint64_t>(*data)] = size;
  ++fake.alive["pinned"];
  return 0;
}
EXPORT int cuMemFreeHost(void *data) {
  CALL(cuMemFreeHost, true)
  pinnedBlocks.erase(reinterpret_cast<uint64_t>(data));
  std::free(data);
  --fake.alive["pinned"];
  return 0;
}
EXPORT int cuPointerGetAttributes(unsigned count, int *which, void **out,
                                  DevicePtr address) {
  CALL(cuPointerGetAttributes, true)
  if (count != 1 || *which != pointerMemoryType)
    return 1;
  bool pinned = inside(pinnedBlocks, address, 1);
  *static_cast<unsigned *>(*out) = pinned ? memoryTypeHost
                                   : inside(deviceBlocks, address, 1) ? 2
                                                                      : 0;
  return 0;
}

EXPORT int cuMemcpyHtoDAsync_v2(DevicePtr to, const void *from, size_t size,
                                CuStream stream) {
  CALL(cuMemcpyHtoDAsync, true)
  checkDevice(to, size, "copy");
  if (inside(pinnedBlocks, reinterpret_cast<uint64_t>(from), size)) {
    push(fakeStream(stream),
         [=] { std::memcpy(pointer<void>(to), from, size); });
    return 0;
  }
  // From pageable memory the driver takes a copy at once.
  auto *bytes = static_cast<const char *>(from);
  push(fakeStream(stream), [to, copy = std::string(bytes, size)] {
    std::memcpy(pointer<void>(to), copy.data(), copy.size());
  });
  return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, DevicePtr from, size_t size,
                                CuStream stream) {
  CALL(cuMemcpyDtoHAsync, true)
  checkDevice(from, size, "copy");
  push(fakeStream(stream), [=] { std::memcpy(to, pointer<void>(from), size); });
  // To pageable memory the driver waits.
  if (!inside(pinnedBlocks, reinterpret_cast<uint64_t>(to), size))
    drain(fakeStream(stream));
  return 0;
}
EXPORT int cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, size_t size,
                                CuStream stream) {
  CALL(cuMemcpyDtoDAsync, true)
  checkDevice(to, size, "copy");
  checkDevice(from, size, "copy");
  push(fakeStream(stream),
       [=] { std::memcpy(pointer<void>(to), pointer<void>(from), size); });
  return 0;
}

namespace {
template <typename T>
int memset(DevicePtr to, T value, size_t count, CuStream stream) {
  checkDevice(to, count * sizeof(T), "memset");
  if (to % sizeof(T) != 0)
    misuse("memset that is not aligned");
  push(fakeStream(stream), [=] { std::fill_n(pointer<T>(to), count, value); });
  return 0;
}
} // namespace
EXPORT int cuMemsetD8Async(DevicePtr to, unsigned char value, size_t count,
                           CuStream stream) {
  CALL(cuMemsetD8Async, true)
  return memset(to, value, count, stream);
}
EXPORT int cuMemsetD16Async(DevicePtr to, unsigned short value, size_t count,
                            CuStream stream) {
  CALL(cuMemsetD16Async, true)
  return memset(to, value, count, stream);
}
EXPORT int cuMemsetD32Async(DevicePtr to, unsigned value, size_t count,
                            CuStream stream) {
  CALL(cuMemsetD32Async, true)
  return memset(to, value, count, stream);
}

EXPORT int cuStreamCreate(CuStream *stream, unsigned) {
  CALL(cuStreamCreate, true)
  ++fake.alive["stream"];
  *stream =
      reinterpret_cast<CuStream>(new FakeStream{contexts.back(), {}, nullptr});
  return 0;
}
EXPORT int cuStreamDestroy_v2(CuStream stream) {
  CALL(cuStreamDestroy, true)
  drain(fakeStream(stream));
  delete fakeStream(stream);
  --fake.alive["stream"];
  return 0;
}
EXPORT int cuStreamSynchronize(CuStream stream) {
  CALL(cuStreamSynchronize, true)
  if (fakeStream(stream)->capture)
    misuse("waiting while recording");
  drain(fakeStream(stream));
  return 0;
}
EXPORT int cuStreamBeginCapture_v2(CuStream stream, int) {
  CALL(cuStreamBeginCapture, true)
  if (fake.rejectCapture)
    return 900;
  fakeStream(stream)->capture = new std::vector<Work>();
  return 0;
}
EXPORT int cuStreamEndCapture(CuStream stream, CuGraph *graph) {
  CALL(cuStreamEndCapture, true)
  ++fake.alive["graph"];
  *graph = reinterpret_cast<CuGraph>(fakeStream(stream)->capture);
  fakeStream(stream)->capture = nullptr;
  return 0;
}
EXPORT int cuGraphDestroy(CuGraph graph) {
  CALL(cuGraphDestroy, true)
  delete reinterpret_cast<std::vector<Work> *>(graph);
  --fake.alive["graph"];
  return 0;
}
EXPORT int cuGraphInstantiateWithFlags(CuGraphExec *exec, CuGraph graph,
                                       unsigned long long) {
  CALL(cuGraphInstantiate, true)
  ++fake.alive["graph exec"];
  *exec = reinterpret_cast<CuGraphExec>(
      new std::vector<Work>(*reinterpret_cast<std::vector<Work> *>(graph)));
  return 0;
}
EXPORT int cuGraphExecUpdate_v2(CuGraphExec exec, CuGraph graph,
                                GraphUpdateResult *) {
  CALL(cuGraphExecUpdate, true)
  auto &to = *reinterpret_cast<std::vector<Work> *>(exec);
  auto &from = *reinterpret_cast<std::vector<Work> *>(graph);
  if (to.size() != from.size())
    return 910;
  to = from;
  return 0;
}
EXPORT int cuGraphExecDestroy(CuGraphExec exec) {
  CALL(cuGraphExecDestroy, true)
  delete reinterpret_cast<std::vector<Work> *>(exec);
  --fake.alive["graph exec"];
  return 0;
}
EXPORT int cuGraphLaunch(CuGraphExec exec, CuStream stream) {
  CALL(cuGraphLaunch, true)
  for (const Work &work : *reinterpret_cast<std::vector<Work> *>(exec))
    push(fakeStream(stream), work);
  return 0;
}

EXPORT int cuEventCreate(CuEvent *event, unsigned) {
  CALL(cuEventCreate, true)
  ++fake.alive["event"];
  *event = reinterpret_cast<CuEvent>(new FakeEvent());
  return 0;
}
EXPORT int cuEventDestroy_v2(CuEvent event) {
  CALL(cuEventDestroy, true)
  delete reinterpret_cast<FakeEvent *>(event);
  --fake.alive["event"];
  return 0;
}
EXPORT int cuEventRecord(CuEvent event, CuStream stream) {
  CALL(cuEventRecord, true)
  auto recording = std::make_shared<Recording>();
  recording->done = false;
  recording->stream = fakeStream(stream);
  reinterpret_cast<FakeEvent *>(event)->last = recording;
  push(recording->stream, [recording] {
    recording->done = true;
    recording->time = ticks += 0.25;
  });
  return 0;
}
namespace {
void await(const std::shared_ptr<Recording> &recording) {
  while (!recording->done) {
    Work work = std::move(recording->stream->queue.front());
    recording->stream->queue.pop_front();
    work();
  }
}
} // namespace
EXPORT int cuEventSynchronize(CuEvent event) {
  CALL(cuEventSynchronize, true)
  await(reinterpret_cast<FakeEvent *>(event)->last);
  return 0;
}
EXPORT int cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned) {
  CALL(cuStreamWaitEvent, true)
  push(fakeStream(stream),
       [recording = reinterpret_cast<FakeEvent *>(event)->last] {
         await(recording);
       });
  return 0;
}
EXPORT int cuEventElapsedTime(float *milliseconds, CuEvent start, CuEvent end) {
  CALL(cuEventElapsedTime, true)
  auto a = reinterpret_cast<FakeEvent *>(start)->last;
  auto b = reinterpret_cast<FakeEvent *>(end)->last;
  if (!a->done || !b->done)
    return 600;
  *milliseconds = static_cast<float>(b->time - a->time);
  return 0;
}

EXPORT int cuModuleLoadDataEx(CuModule *module, const void *image,
                              unsigned count, int *options, void **values) {
  CALL(cuModuleLoadDataEx, true)
  auto *text = static_cast<const char *>(image);
  while (*text == '\n')
    ++text;
  if (std::strncmp(text,
                   "\x7f"
                   "ELF",
                   4) == 0) {
    if (fake.rejectCubins)
      return 209;
    ++fake.cubinsLoaded;
  } else if (std::strncmp(text, ".version", 8) == 0) {
    if (std::strstr(text, "syntax error")) {
      for (unsigned i = 0; i < count; ++i)
        if (options[i] == jitErrorLogBuffer)
          std::strcpy(static_cast<char *>(values[i]), "ptxas: line 2");
      return 218;
    }
    ++fake.ptxLoaded;
  } else {
    return 200;
  }
  ++fake.alive["module"];
  *module = reinterpret_cast<CuModule>(new FakeModule());
  return 0;
}
EXPORT int cuModuleUnload(CuModule module) {
  CALL(cuModuleUnload, true)
  delete reinterpret_cast<FakeModule *>(module);
  --fake.alive["module"];
  return 0;
}
EXPORT int cuModuleGetFunction(CuFunction *function, CuModule module,
                               const char *name) {
  CALL(cuModuleGetFunction, true)
  auto &functions = reinterpret_cast<FakeModule *>(module)->functions;
  auto found = functions.find(name);
  if (found == functions.end())
    return 500;
  *function = reinterpret_cast<CuFunction>(&found->second);
  return 0;
}
EXPORT int cuFuncSetAttribute(CuFunction function, int which, int value) {
  CALL(cuFuncSetAttribute, true)
  if (which == functionDynamicShared)
    reinterpret_cast<FakeFunction *>(function)->sharedLimit = value;
  return 0;
}

namespace {
int launch(CuFunction function, unsigned grid, unsigned block, unsigned shared,
           CuStream stream, void **parameters) {
  auto *f = reinterpret_cast<FakeFunction *>(function);
  if (fake.launchResult)
    return fake.launchResult;
  if (grid == 0 || block == 0 || static_cast<int>(shared) > f->sharedLimit)
    return 1;
  std::vector<uint64_t> values;
  for (size_t i = 0; i < f->parameters; ++i)
    values.push_back(*static_cast<uint64_t *>(parameters[i]));
  for (size_t i = 0; i < f->maps; ++i) {
    auto *words = static_cast<uint64_t *>(parameters[f->parameters + i]);
    if (reinterpret_cast<uint64_t>(words) % 64 != 0)
      misuse("a tensor map that is not aligned");
    values.insert(values.end(), words, words + 16);
  }
  push(fakeStream(stream),
       [f, grid, values]() mutable { f->run(values.data(), grid); });
  return 0;
}
} // namespace
EXPORT int cuLaunchKernel(CuFunction function, unsigned gridX, unsigned,
                          unsigned, unsigned blockX, unsigned, unsigned,
                          unsigned shared, CuStream stream, void **parameters,
                          void **) {
  CALL(cuLaunchKernel, true)
  return launch(function, gridX, blockX, shared, stream, parameters);
}
#ifndef FAKE_OLD_DRIVER
EXPORT int cuDriverGetVersion(int *version) {
  *version = fake.driverVersion;
  return 0;
}
EXPORT int cuLaunchKernelEx(const LaunchConfig *config, CuFunction function,
                            void **parameters, void **) {
  CALL(cuLaunchKernelEx, true)
  for (unsigned i = 0; i < config->numAttributes; ++i) {
    const LaunchAttribute &attribute = config->attributes[i];
    if (attribute.id == launchProgrammaticStreamSerialization)
      fake.overlappedLaunches +=
          attribute.value.programmaticStreamSerialization;
    if (attribute.id == launchClusterDimension)
      fake.lastClusterSize = attribute.value.clusterDim.x;
  }
  return launch(function, config->gridX, config->blockX, config->sharedBytes,
                config->stream, parameters);
}
namespace {
int encode(EncodedTensorMap *out, FakeMap map) {
  if (reinterpret_cast<uint64_t>(out) % 64 != 0)
    misuse("a tensor map that is not aligned");
  if (fake.encodeResult)
    return fake.encodeResult;
  if (map.address % 16 != 0)
    return 1;
  checkDevice(map.address, 1, "a tensor map");
  std::memset(out, 0, sizeof(*out));
  out->words[0] = map.address;
  out->words[1] = map.extents[0];
  if (map.extents.size() > 1)
    out->words[2] = map.extents[1], out->words[3] = map.strides[0];
  fake.maps.push_back(std::move(map));
  return 0;
}
} // namespace
EXPORT int cuTensorMapEncodeTiled(EncodedTensorMap *out, int type,
                                  uint32_t rank, void *address,
                                  const uint64_t *extents,
                                  const uint64_t *strides, const uint32_t *box,
                                  const uint32_t *steps, int interleave,
                                  int swizzle, int promotion, int fill) {
  CALL(cuTensorMapEncodeTiled, true)
  return encode(out, {false,
                      reinterpret_cast<uint64_t>(address),
                      {extents, extents + rank},
                      {strides, strides + rank - 1},
                      {},
                      {box, box + rank},
                      {steps, steps + rank},
                      {type, interleave, swizzle, promotion, fill}});
}
EXPORT int cuTensorMapEncodeIm2col(
    EncodedTensorMap *out, int type, uint32_t rank, void *address,
    const uint64_t *extents, const uint64_t *strides, const int *lower,
    const int *upper, uint32_t channels, uint32_t pixels, const uint32_t *steps,
    int interleave, int swizzle, int promotion, int fill) {
  CALL(cuTensorMapEncodeIm2col, true)
  std::vector<int> corners(lower, lower + rank - 2);
  corners.insert(corners.end(), upper, upper + rank - 2);
  return encode(out, {true,
                      reinterpret_cast<uint64_t>(address),
                      {extents, extents + rank},
                      {strides, strides + rank - 1},
                      corners,
                      {channels, pixels},
                      {steps, steps + rank},
                      {type, interleave, swizzle, promotion, fill}});
}
EXPORT int cuGetErrorName(int result, const char **name) {
  *name = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
  return 0;
}
EXPORT int cuGetErrorString(int result, const char **text) {
  *text = result == 700 ? "an illegal memory access was encountered" : "fake";
  return 0;
}
#endif
