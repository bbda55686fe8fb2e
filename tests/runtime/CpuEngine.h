//===- CpuEngine.h - A small engine with code for this CPU ------*- C++ -*-===//
#ifndef CHARONIA_TESTS_RUNTIME_CPUENGINE_H
#define CHARONIA_TESTS_RUNTIME_CPUENGINE_H

#include "TestEngine.h"

#include "charonia/runtime.h"
#include "runtime/device/cpu/CpuInfo.h"
#include "runtime/engine/Writer.h"

#include <cmath>

namespace charonia::test {

using namespace charonia::engine;

/// The kernels of kernels.c, in order.
enum KernelNumber : uint32_t { ScaleAdd, Relu, Count, PrivateScratch };

/// y = relu(x * w + v) for x of [batch, 16], batch in 1..64; and z, a copy of
/// y.
class CpuEngine : public ::testing::Test {
protected:
  void SetUp() override {
    if (cpu::detectLevel() < 3)
      GTEST_SKIP() << "needs x86-64-v3";
    code = readBytes(CHARONIA_TEST_IMAGE);
    ASSERT_FALSE(code.empty());
    for (int i = 0; i < 32; ++i)
      weights.push_back(std::sin(float(i)));

    ShapeExpr batch = ShapeExpr::symbol(0);
    manifest.signature.symbols = {{"batch", 0, 4, 64, 1}};
    manifest.signature.inputs = {{"x", DType::Float32, {batch, 16}}};
    manifest.signature.outputs = {{"y", DType::Float32, {batch, 16}},
                                  {"z", DType::Float32, {batch * 16}}};
    Program p;
    p.weightsSection = 1;
    p.kernels = {{"scale_add", {"mul", "add"}, batch * 32, batch * 128},
                 {"relu", {"relu"}, batch * 16, batch * 128}};
    Buffer x, w, t, y, z;
    x.kind = Buffer::Kind::Input, x.size = batch * 64, x.alignment = 16;
    w.kind = Buffer::Kind::Weight, w.size = 128;
    t.size = batch * 64, t.lastStep = 1;
    y.kind = Buffer::Kind::Output, y.size = batch * 64;
    y.firstStep = 1, y.lastStep = 2, y.alignment = 16;
    z.kind = Buffer::Kind::Output, z.index = 1, z.size = batch * 64;
    z.firstStep = 2, z.lastStep = 3, z.alignment = 4;
    p.buffers = {x, w, t, y, z};
    Step first, second, copy;
    first.kernel = 0, first.args = {{0, 0}, {1, 0}, {2, 0}};
    first.nodes = {"/mul", "/add"};
    second.kernel = 1, second.args = {{2, 0}, {3, 0}};
    copy.kind = Step::Kind::Copy, copy.args = {{4, 0}, {3, 0}};
    copy.bytes = batch * 64;
    Step fill; // The first element of z becomes 1.0.
    fill.kind = Step::Kind::Fill, fill.args = {{4, 0}};
    fill.bytes = min(batch, 1) * 4;
    fill.pattern = 0x3f800000, fill.patternSize = 4;
    p.steps = {first, second, copy, fill};
    p.variants = {variant("x86-64-v3", {ScaleAdd, Relu}, batch)};
    manifest.programs = {p};
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
    Writer w;
    w.addSection(SectionKind::Code, "code", code);
    w.addSection(SectionKind::Weights, "weights",
                 std::as_bytes(std::span(weights)));
    std::string path = dir / "test.engine";
    Status status = w.write(manifest, path);
    EXPECT_TRUE(status.isOk()) << status.message();
    return path;
  }

  Context context(ContextOptions options = {}) {
    auto engine = charonia::Engine::load(write());
    EXPECT_TRUE(engine.isOk()) << engine.status().message();
    auto context = engine->createContext({}, options);
    EXPECT_TRUE(context.isOk()) << context.status().message();
    return std::move(*context);
  }

  std::vector<float> input(int64_t batch, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(batch * 16);
    for (float &v : x)
      v = normal(random);
    return x;
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
