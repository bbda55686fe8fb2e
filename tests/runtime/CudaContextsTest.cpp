// The CUDA device on the fake driver: contexts, threads and processes, weights.

#include "CudaEngine.h"

#include <atomic>
#include <cmath>
#include <thread>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

TEST_F(CudaEngine, ContextsShareWeightsAndModules) {
  auto engine = charonia::Engine::load(write());
  ASSERT_TRUE(engine.isOk());
  std::vector<std::thread> threads;
  std::vector<std::optional<Context>> contexts(4);
  for (auto &slot : contexts)
    threads.emplace_back([&] {
      auto c = engine->createContext({DeviceKind::Cuda});
      if (c)
        slot.emplace(std::move(*c));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fake().cubinsLoaded + fake().ptxLoaded, 1);
  EXPECT_EQ(fake().count("cuMemAlloc"), 1);
  for (auto &c : contexts) {
    ASSERT_TRUE(c.has_value());
    auto x = input(8, 1);
    ASSERT_TRUE(c->setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
    ASSERT_TRUE(c->run().isOk());
    expectOutputs(c->output("y")->data, c->output("z")->data, x);
  }
}

TEST_F(CudaEngine, DevicesAndThreads) {
  fake().deviceCount = 3;
  auto engine = charonia::Engine::load(write());
  ASSERT_TRUE(engine.isOk());
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      // Two threads a device; each changes its shapes.
      auto c = engine->createContext({DeviceKind::Cuda, t % 3});
      failures += !c;
      for (int round = 0; c && round < 40; ++round) {
        int64_t batch = 1 + (t * 7 + round / 2 * 13) % 64;
        auto x = input(batch, t * 100 + round);
        if (!c->setInput("x", {DType::Float32, {batch, 16}, x.data()}) ||
            !(round % 2 ? c->run() : c->runAsync()) || !c->synchronize()) {
          ++failures;
          continue;
        }
        auto *y = static_cast<const float *>(c->output("y")->data);
        for (size_t i = 0; i < x.size(); ++i)
          failures +=
              std::abs(y[i] - std::max(0.f, x[i] * weights[i % 16] +
                                                weights[16 + i % 16])) > 1e-6f;
      }
      failures += c && c->description().find("cuda:" + std::to_string(t % 3)) ==
                           std::string::npos;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  // Code once a device, unless both its contexts had gone in between.
  EXPECT_GE(fake().cubinsLoaded + fake().ptxLoaded, 3);
}

TEST_F(CudaEngine, MemoryDoesNotGrow) {
  Context c = context();
  auto all = [&] {
    for (int64_t batch = 0; batch <= 64; ++batch) {
      auto x = input(batch, 1);
      ASSERT_TRUE(
          c.setInput("x", {DType::Float32, {batch, 16}, x.data()}).isOk());
      ASSERT_TRUE(c.run().isOk() && c.run().isOk() && c.run().isOk());
    }
  };
  all(), all();
  auto alive = fake().alive;
  uint64_t allocated = fake().allocated;
  for (int round = 0; round < 5; ++round)
    all();
  EXPECT_EQ(fake().alive, alive);
  EXPECT_EQ(fake().allocated, allocated);
}

TEST_F(CudaEngine, DamagedWeightsAreFoundWhileUploading) {
  auto bytes = readBytes(write());
  bytes.back() ^= std::byte(1);
  auto engine = charonia::Engine::load(bytes);
  ASSERT_TRUE(engine.isOk());
  EXPECT_EQ(engine->createContext({DeviceKind::Cuda}).status().message(),
            "the engine in memory cannot be used: it is damaged: the checksum "
            "of the section 'weights' does not match");
  LoadOptions options;
  options.verifyWeights = false;
  options.allowHostCode = false; // Is about the CPU.
  engine = charonia::Engine::load(bytes, options);
  ASSERT_TRUE(engine.isOk());
  EXPECT_TRUE(engine->createContext({DeviceKind::Cuda}).isOk());
}

TEST_F(CudaEngine, AChildProcessGetsErrors) {
  auto engine = charonia::Engine::load(write());
  auto c =
      std::make_unique<Context>(*engine->createContext({DeviceKind::Cuda}));
  auto x = input(8, 1);
  ASSERT_TRUE(c->setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  for (int round = 0; round < 3; ++round)
    ASSERT_TRUE(c->run().isOk());
  EXPECT_EQ(
      inChild([&] {
        fake().calls.clear();
        if (c->run().message() !=
            "this context on Fake GPU (cuda:0, sm_90) was made before "
            "fork(), which CUDA does not survive; make contexts on a GPU "
            "in the process that uses them")
          return 1;
        if (engine->createContext({DeviceKind::Cuda}).status().message() !=
            "CUDA was opened before fork(), which it does not survive; "
            "fork before the first context on a GPU is made, or start the "
            "child with exec()")
          return 2;
        if (c->output("y").isOk() || c->runAsync() || c->runTimed())
          return 3;
        c.reset();
        engine = Status(StatusCode::NotFound, "");
        return fake().calls.empty() ? 0 : 4; // The parent's driver.
      }),
      0);
  ASSERT_TRUE(c->run().isOk());
  expectOutputs(c->output("y")->data, c->output("z")->data, x);
}

TEST_F(CudaEngine, LargeWeightsInPieces) {
  // More than two pieces of the upload, with a piece that is not full.
  weights.resize((20 << 20) / 4 + 5);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = std::cos(float(i));
  manifest.programs[0].buffers[1].weightOffset = (20 << 20) - 128;
  Context c = context();
  auto x = input(8, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  ASSERT_TRUE(c.run().isOk());
  std::vector<float> used(weights.end() - 37, weights.end() - 5);
  weights = used;
  expectOutputs(c.output("y")->data, c.output("z")->data, x);
  EXPECT_EQ(fake().count("cuEventSynchronize"), 1);
}

} // namespace
