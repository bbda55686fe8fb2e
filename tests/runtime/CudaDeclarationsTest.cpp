// Compares the runtime's own declarations of the driver with NVIDIA's header,
// on machines that have it.

#include "runtime/device/cuda/Driver.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

using namespace charonia::cuda;

namespace {

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, value) ==
              offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, stream) ==
              offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) ==
              offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, numAttributes) ==
              offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(GraphUpdateResult) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(sizeof(DevicePtr) == sizeof(CUdeviceptr));

static_assert(sizeof(EncodedTensorMap) == sizeof(CUtensorMap));

TEST(CudaDeclarations, Numbers) {
  EXPECT_EQ(cudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cudaNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(attributeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(attributeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(attributeSharedOptin,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(functionDynamicShared,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(functionNonPortableCluster,
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  EXPECT_EQ(streamNonBlocking, unsigned(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(eventDisableTiming, unsigned(CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(captureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(jitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_EQ(jitErrorLogBufferSize, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  EXPECT_EQ(pointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
  EXPECT_EQ(memoryTypeHost, unsigned(CU_MEMORYTYPE_HOST));
  EXPECT_EQ(tensorMapUint8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
  EXPECT_EQ(tensorMapUint16, CU_TENSOR_MAP_DATA_TYPE_UINT16);
  EXPECT_EQ(tensorMapUint32, CU_TENSOR_MAP_DATA_TYPE_UINT32);
  EXPECT_EQ(tensorMapUint64, CU_TENSOR_MAP_DATA_TYPE_UINT64);
  EXPECT_EQ(tensorMapNotInterleaved, CU_TENSOR_MAP_INTERLEAVE_NONE);
  EXPECT_EQ(tensorMapSwizzleNone, CU_TENSOR_MAP_SWIZZLE_NONE);
  EXPECT_EQ(tensorMapSwizzle128, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(tensorMapPromotion256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  EXPECT_EQ(tensorMapFillZeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  EXPECT_EQ(launchClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(launchProgrammaticStreamSerialization,
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
}

// A function of ours takes what NVIDIA's takes, if handles and enumerations are
// taken for what they are in the binary interface.
template <typename T>
using Abi =
    std::conditional_t<std::is_enum_v<T>, int,
                       std::conditional_t<std::is_pointer_v<T>, void *, T>>;
template <typename F> struct Signature;
template <typename... A> struct Signature<CUresult (*)(A...)> {
  using Type = void(Abi<A>...);
};
template <typename... A> struct Signature<CuResult (*)(A...)> {
  using Type = void(Abi<A>...);
};

TEST(CudaDeclarations, Parameters) {
  // cuda.h maps the plain names to the versions that the symbols name, but for
  // the elapsed time, of which the first version is used.
#define CHARONIA_COMPARE(name, symbol, ...)                                    \
  static_assert(std::is_same_v<Signature<decltype(&::symbol)>::Type,           \
                               Signature<decltype(Driver::name)>::Type>,       \
                #symbol);
  CHARONIA_CUDA_FUNCTIONS(CHARONIA_COMPARE)
  CHARONIA_CUDA_OPTIONAL_FUNCTIONS(CHARONIA_COMPARE)
}

} // namespace
#endif
