//===- Driver.h - The CUDA driver, opened at run time -----------*- C++ -*-===//
//
// The library is built without a CUDA toolkit and runs without a GPU: what it
// needs of the driver's stable binary interface is declared here, and
// libcuda.so.1 is opened when a CUDA context is first asked for. tests/runtime
// compares the declarations with cuda.h where that exists.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_DEVICE_CUDA_DRIVER_H
#define CHARONIA_RUNTIME_DEVICE_CUDA_DRIVER_H

#include "charonia/status.h"

#include <cstddef>
#include <cstdint>

namespace charonia::cuda {

using CuResult = int;
using CuDevice = int;
using DevicePtr = unsigned long long;
using CuContext = struct CuContextOpaque *;
using CuModule = struct CuModuleOpaque *;
using CuFunction = struct CuFunctionOpaque *;
using CuStream = struct CuStreamOpaque *;
using CuEvent = struct CuEventOpaque *;
using CuGraph = struct CuGraphOpaque *;
using CuGraphExec = struct CuGraphExecOpaque *;
using CuGraphNode = struct CuGraphNodeOpaque *;

// Results that are told apart.
constexpr CuResult cudaSuccess = 0;
constexpr CuResult cudaOutOfMemory = 2;
constexpr CuResult cudaNoDevice = 100;

// Device attributes.
constexpr int attributeMajor = 75;
constexpr int attributeMinor = 76;
constexpr int attributeSharedOptin = 97;
// Function attributes.
constexpr int functionDynamicShared = 8;
constexpr int functionNonPortableCluster = 14;
// Flags.
constexpr unsigned streamNonBlocking = 1;
constexpr unsigned eventDisableTiming = 2;
constexpr int captureRelaxed = 2;
constexpr int jitErrorLogBuffer = 5;
constexpr int jitErrorLogBufferSize = 6;
constexpr int pointerMemoryType = 2;
constexpr unsigned memoryTypeHost = 1;

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
    int programmaticStreamSerialization;
  } value;
};
constexpr int launchClusterDimension = 4;
constexpr int launchProgrammaticStreamSerialization = 6;

struct LaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  CuStream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

/// What a kernel takes of a tensor by value; opaque.
struct alignas(64) EncodedTensorMap {
  uint64_t words[16];
};
// Elements that are told apart by their sizes alone: copies do not look at
// them, but for what is out of bounds, which is 0 of any type.
constexpr int tensorMapUint8 = 0;
constexpr int tensorMapUint16 = 1;
constexpr int tensorMapUint32 = 2;
constexpr int tensorMapUint64 = 4;
constexpr int tensorMapNotInterleaved = 0;
constexpr int tensorMapSwizzleNone = 0;
constexpr int tensorMapSwizzle128 = 3;
constexpr int tensorMapPromotion256 = 3;
constexpr int tensorMapFillZeros = 0;

struct GraphUpdateResult {
  int result;
  CuGraphNode errorNode;
  CuGraphNode errorFromNode;
};

/// The driver's functions; the X-macro's columns are the member's name, the
/// exported symbol and the parameters.
#define CHARONIA_CUDA_FUNCTIONS(X)                                             \
  X(init, cuInit, unsigned)                                                    \
  X(deviceGetCount, cuDeviceGetCount, int *)                                   \
  X(deviceGet, cuDeviceGet, CuDevice *, int)                                   \
  X(deviceGetName, cuDeviceGetName, char *, int, CuDevice)                     \
  X(deviceGetAttribute, cuDeviceGetAttribute, int *, int, CuDevice)            \
  X(primaryCtxRetain, cuDevicePrimaryCtxRetain, CuContext *, CuDevice)         \
  X(primaryCtxRelease, cuDevicePrimaryCtxRelease_v2, CuDevice)                 \
  X(ctxPush, cuCtxPushCurrent_v2, CuContext)                                   \
  X(ctxPop, cuCtxPopCurrent_v2, CuContext *)                                   \
  X(memGetInfo, cuMemGetInfo_v2, size_t *, size_t *)                           \
  X(memAlloc, cuMemAlloc_v2, DevicePtr *, size_t)                              \
  X(memFree, cuMemFree_v2, DevicePtr)                                          \
  X(memHostAlloc, cuMemHostAlloc, void **, size_t, unsigned)                   \
  X(memFreeHost, cuMemFreeHost, void *)                                        \
  X(memcpyHtoDAsync, cuMemcpyHtoDAsync_v2, DevicePtr, const void *, size_t,    \
    CuStream)                                                                  \
  X(memcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void *, DevicePtr, size_t,          \
    CuStream)                                                                  \
  X(memcpyDtoDAsync, cuMemcpyDtoDAsync_v2, DevicePtr, DevicePtr, size_t,       \
    CuStream)                                                                  \
  X(memsetD8Async, cuMemsetD8Async, DevicePtr, unsigned char, size_t,          \
    CuStream)                                                                  \
  X(memsetD16Async, cuMemsetD16Async, DevicePtr, unsigned short, size_t,       \
    CuStream)                                                                  \
  X(memsetD32Async, cuMemsetD32Async, DevicePtr, unsigned, size_t, CuStream)   \
  X(pointerGetAttributes, cuPointerGetAttributes, unsigned, int *, void **,    \
    DevicePtr)                                                                 \
  X(streamCreate, cuStreamCreate, CuStream *, unsigned)                        \
  X(streamDestroy, cuStreamDestroy_v2, CuStream)                               \
  X(streamSynchronize, cuStreamSynchronize, CuStream)                          \
  X(streamWaitEvent, cuStreamWaitEvent, CuStream, CuEvent, unsigned)           \
  X(streamBeginCapture, cuStreamBeginCapture_v2, CuStream, int)                \
  X(streamEndCapture, cuStreamEndCapture, CuStream, CuGraph *)                 \
  X(graphInstantiate, cuGraphInstantiateWithFlags, CuGraphExec *, CuGraph,     \
    unsigned long long)                                                        \
  X(graphLaunch, cuGraphLaunch, CuGraphExec, CuStream)                         \
  X(graphExecDestroy, cuGraphExecDestroy, CuGraphExec)                         \
  X(graphDestroy, cuGraphDestroy, CuGraph)                                     \
  X(eventCreate, cuEventCreate, CuEvent *, unsigned)                           \
  X(eventDestroy, cuEventDestroy_v2, CuEvent)                                  \
  X(eventRecord, cuEventRecord, CuEvent, CuStream)                             \
  X(eventSynchronize, cuEventSynchronize, CuEvent)                             \
  X(eventElapsedTime, cuEventElapsedTime, float *, CuEvent, CuEvent)           \
  X(moduleLoadDataEx, cuModuleLoadDataEx, CuModule *, const void *, unsigned,  \
    int *, void **)                                                            \
  X(moduleUnload, cuModuleUnload, CuModule)                                    \
  X(moduleGetFunction, cuModuleGetFunction, CuFunction *, CuModule,            \
    const char *)                                                              \
  X(funcSetAttribute, cuFuncSetAttribute, CuFunction, int, int)                \
  X(launchKernel, cuLaunchKernel, CuFunction, unsigned, unsigned, unsigned,    \
    unsigned, unsigned, unsigned, unsigned, CuStream, void **, void **)

/// Functions that older drivers lack; null there.
#define CHARONIA_CUDA_OPTIONAL_FUNCTIONS(X)                                    \
  X(driverGetVersion, cuDriverGetVersion, int *)                               \
  X(launchKernelEx, cuLaunchKernelEx, const LaunchConfig *, CuFunction,        \
    void **, void **)                                                          \
  X(graphExecUpdate, cuGraphExecUpdate_v2, CuGraphExec, CuGraph,               \
    GraphUpdateResult *)                                                       \
  X(tensorMapEncodeTiled, cuTensorMapEncodeTiled, EncodedTensorMap *, int,     \
    uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,    \
    const uint32_t *, int, int, int, int)                                      \
  X(tensorMapEncodeIm2col, cuTensorMapEncodeIm2col, EncodedTensorMap *, int,   \
    uint32_t, void *, const uint64_t *, const uint64_t *, const int *,         \
    const int *, uint32_t, uint32_t, const uint32_t *, int, int, int, int)     \
  X(getErrorName, cuGetErrorName, CuResult, const char **)                     \
  X(getErrorString, cuGetErrorString, CuResult, const char **)

struct Driver {
#define CHARONIA_DECLARE(name, symbol, ...)                                    \
  CuResult (*name)(__VA_ARGS__) = nullptr;
  CHARONIA_CUDA_FUNCTIONS(CHARONIA_DECLARE)
  CHARONIA_CUDA_OPTIONAL_FUNCTIONS(CHARONIA_DECLARE)
#undef CHARONIA_DECLARE

  /// Opens libcuda.so.1 (or what the environment variable CHARONIA_CUDA_DRIVER
  /// names) and initializes it; the process keeps it open. Says why there is no
  /// driver or no GPU.
  static Result<const Driver *> get();

  /// Ok, or "<doing>: <the driver's text> (CUDA_ERROR_...)".
  Status check(CuResult result, const char *doing) const;
};

} // namespace charonia::cuda

#endif // CHARONIA_RUNTIME_DEVICE_CUDA_DRIVER_H
