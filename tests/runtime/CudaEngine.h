//===- CudaEngine.h - A small engine on the fake driver ---------*- C++ -*-===//
#ifndef CHARONIA_TESTS_RUNTIME_CUDAENGINE_H
#define CHARONIA_TESTS_RUNTIME_CUDAENGINE_H

#include "FakeCuda.h"
#include "TestEngine.h"

#include "charonia/runtime.h"
#include "runtime/device/cuda/CudaProgram.h"
#include "runtime/device/cuda/Driver.h"

#include <cmath>
#include <cstring>

#include <dlfcn.h>

namespace charonia::test {

using namespace charonia::engine;

inline FakeCuda *(*driverState)() = nullptr;

inline FakeCuda &fake() { return *driverState(); }

/// The driver's own functions, for a caller's device memory and streams.
inline const cuda::Driver &driver() {
  static const cuda::Driver *api = *cuda::Driver::get();
  return *api;
}

/// The engine of reluManifest() for GPUs.
class CudaEngine : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("CHARONIA_CUDA_DRIVER", CHARONIA_FAKE_CUDA, 1);
    void *library = dlopen(CHARONIA_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    driverState = reinterpret_cast<FakeCuda *(*)()>(dlsym(library, "fakeCuda"));
  }

  void SetUp() override {
    fake() = FakeCuda();
    for (int i = 0; i < 32; ++i)
      weights.push_back(std::cos(float(i)));
    manifest = reluManifest();
    Program &p = manifest.programs[0];
    p.device = DeviceKind::Cuda;
    p.precision = "fp16";
    addVariant(p, "sm_80");
  }

  void addVariant(Program &p, std::string arch, bool cubin = true) {
    ShapeExpr batch = ShapeExpr::symbol(0);
    Variant v;
    v.arch = std::move(arch);
    v.modules = {{{}, code.addText(ptx), {}}};
    if (cubin)
      v.modules[0].cubin = code.add(std::as_bytes(std::span(elf)));
    KernelCode first, second;
    first.entry = "scale_add", first.grid = batch, first.blockThreads = 128;
    second.entry = "relu", second.grid = batch, second.blockThreads = 64;
    v.kernels = {first, second};
    p.variants.push_back(v);
  }

  std::string write() {
    return writeEngine(manifest, code.bytes(), weights, dir / "test.engine");
  }

  Result<Context> tryContext(ContextOptions options = {}, int index = 0) {
    auto engine = charonia::Engine::load(write());
    if (!engine)
      return engine.status();
    return engine->createContext({DeviceKind::Cuda, index}, options);
  }

  Context context(ContextOptions options = {}) {
    auto context = tryContext(options);
    EXPECT_TRUE(context.isOk()) << context.status().message();
    return std::move(*context);
  }

  void TearDown() override {
    EXPECT_EQ(fake().misuse, "");
    for (auto &[kind, count] : fake().alive)
      EXPECT_EQ(count, 0) << kind << "s are left";
  }

  void expectOutputs(const void *y, const void *z,
                     const std::vector<float> &x) {
    for (size_t i = 0; i < x.size(); ++i) {
      float v = x[i] * weights[i % 16] + weights[16 + i % 16];
      float got;
      std::memcpy(&got, static_cast<const char *>(y) + 4 * i, 4);
      ASSERT_NEAR(got, std::max(v, 0.f), 1e-6) << i;
      std::memcpy(&got, static_cast<const char *>(z) + 4 * i, 4);
      ASSERT_NEAR(got, i == 0 ? 1.f : std::max(v, 0.f), 1e-6) << i;
    }
  }

  /// Runs inputs of a batch, and compares what that gives.
  void expectRun(Context &c, int64_t batch, unsigned seed) {
    auto x = input(batch, seed);
    ASSERT_TRUE(
        c.setInput("x", {DType::Float32, {batch, 16}, x.data()}).isOk());
    Status status = c.run();
    ASSERT_TRUE(status.isOk()) << status.message();
    expectOutputs(c.output("y")->data, c.output("z")->data, x);
  }

  /// Memory of the fake GPU that a caller owns.
  struct CallersMemory {
    explicit CallersMemory(uint64_t size) {
      auto device = cuda::CudaDevice::open(0);
      memory = *cuda::DeviceMemory::allocate(*device, size, "the caller");
    }
    char *data() const { return reinterpret_cast<char *>(memory.address()); }
    cuda::DeviceMemory memory;
  };

  std::string ptx = ".version 7.0 ...", elf = "\x7f"
                                              "ELF...";
  TempDir dir;
  CodeSection code{0};
  std::vector<float> weights;
  Manifest manifest;
};

} // namespace charonia::test

#endif // CHARONIA_TESTS_RUNTIME_CUDAENGINE_H
