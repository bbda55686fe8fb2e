//===- CpuEngine.h - A small engine with code for this CPU ------*- C++ -*-===//
#ifndef CHARONIA_TESTS_RUNTIME_CPUENGINE_H
#define CHARONIA_TESTS_RUNTIME_CPUENGINE_H

#include "TestEngine.h"

#include "charonia/runtime.h"
#include "runtime/device/cpu/CpuInfo.h"

#include <cmath>

namespace charonia::test {

using namespace charonia::engine;

/// The kernels of kernels.c, in order.
enum KernelNumber : uint32_t { ScaleAdd, Relu, Count, PrivateScratch };

/// The engine of reluManifest() for the CPU.
class CpuEngine : public ::testing::Test {
protected:
  void SetUp() override {
    if (cpu::detectLevel() < 3)
      GTEST_SKIP() << "needs x86-64-v3";
    code = readBytes(CHARONIA_TEST_IMAGE);
    ASSERT_FALSE(code.empty());
    for (int i = 0; i < 32; ++i)
      weights.push_back(std::sin(float(i)));

    manifest = reluManifest();
    manifest.programs[0].variants = {
        variant("x86-64-v3", {ScaleAdd, Relu}, ShapeExpr::symbol(0))};
  }

  Variant variant(std::string arch, std::vector<uint32_t> kernels,
                  ShapeExpr grid) {
    Variant v;
    v.arch = std::move(arch);
    v.modules = {{{0, 0, code.size()}, {}, {}}};
    for (uint32_t kernel : kernels) {
      KernelCode k;
      k.entryOffset = 64 * kernel;
      k.grid = grid;
      v.kernels.push_back(k);
    }
    return v;
  }

  std::string write() {
    return writeEngine(manifest, code, weights, dir / "test.engine");
  }

  Context context(ContextOptions options = {}) {
    auto engine = charonia::Engine::load(write());
    EXPECT_TRUE(engine.isOk()) << engine.status().message();
    auto context = engine->createContext({}, options);
    EXPECT_TRUE(context.isOk()) << context.status().message();
    return std::move(*context);
  }

  void expectOutputs(const float *y, const float *z,
                     const std::vector<float> &x) {
    for (size_t i = 0; i < x.size(); ++i) {
      float v = x[i] * weights[i % 16] + weights[16 + i % 16];
      EXPECT_NEAR(y[i], std::max(v, 0.f), 1e-6) << i;
      EXPECT_EQ(z[i], i == 0 ? 1.f : y[i]) << i;
    }
  }

  static const float *floats(const Tensor &tensor) {
    return static_cast<const float *>(tensor.data);
  }

  TempDir dir;
  std::vector<std::byte> code;
  std::vector<float> weights;
  Manifest manifest;
};

} // namespace charonia::test

#endif // CHARONIA_TESTS_RUNTIME_CPUENGINE_H
