// The runtime on a real GPU: the digit classifier's CUDA program beside its CPU
// program, both of one engine. The engine is compiled for the test, by the
// command that the environment variable CHARONIA names, or given by
// CHARONIA_GPU_ENGINE.
#include "charonia/runtime.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

using namespace charonia;

namespace {

constexpr int64_t imageSize = 64, classes = 10;

std::string inQuotes(const std::string &text) { return "'" + text + "'"; }

class Gpu : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    std::string path;
    if (const char *given = std::getenv("CHARONIA_GPU_ENGINE")) {
      path = given;
    } else {
      const char *compiler = std::getenv("CHARONIA");
      const char *source = std::getenv("CHARONIA_SOURCE_DIR");
      std::string folder = source ? source : ".";
      path = ::testing::TempDir() + "gpu_test.engine";
      std::string command =
          inQuotes(compiler ? compiler : "charonia") + " compile -q " +
          inQuotes(folder + "/models/digits/digits.onnx") + " -o " +
          inQuotes(path) +
          " --target cpu,sm_80,sm_90 --shape image=1..16..360x1x8x8";
      ASSERT_EQ(std::system(command.c_str()), 0) << command;
    }
    Result<Engine> loaded = Engine::load(path);
    ASSERT_TRUE(loaded) << loaded.status().message();
    engine = new Engine(std::move(*loaded));
  }
  static void TearDownTestSuite() { delete engine; }

  static Context context(DeviceKind kind, const ContextOptions &options = {}) {
    Result<Context> made = engine->createContext({kind}, options);
    EXPECT_TRUE(made) << made.status().message();
    return std::move(*made);
  }

  static std::vector<float> images(int64_t batch, unsigned seed) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, 4);
    std::vector<float> values(batch * imageSize);
    for (float &v : values)
      v = normal(rng);
    return values;
  }
  static Tensor tensor(const void *data, int64_t batch,
                       Memory memory = Memory::Host) {
    return {DType::Float32, {batch, 1, 8, 8}, data, memory};
  }

  /// What the CPU computes.
  static std::vector<float> reference(const std::vector<float> &x) {
    Context cpu = context(DeviceKind::Cpu);
    int64_t batch = x.size() / imageSize;
    EXPECT_TRUE(cpu.setInput("image", tensor(x.data(), batch)).isOk());
    EXPECT_TRUE(cpu.run().isOk());
    Tensor y = *cpu.output("logits");
    const float *data = static_cast<const float *>(y.data);
    return {data, data + batch * classes};
  }

  static void expectClose(const float *actual,
                          const std::vector<float> &expected) {
    float scale = 0, error = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      scale = std::max(scale, std::abs(expected[i]));
      error = std::max(error, std::abs(expected[i] - actual[i]));
      ASSERT_TRUE(std::isfinite(actual[i])) << "element " << i;
    }
    EXPECT_GT(scale, 1e-3f);
    EXPECT_LE(error, 1e-5f * scale);
  }

  static void expectRun(Context &gpu, int64_t batch, unsigned seed) {
    std::vector<float> x = images(batch, seed);
    ASSERT_TRUE(gpu.setInput("image", tensor(x.data(), batch)).isOk());
    Status ran = gpu.run();
    ASSERT_TRUE(ran.isOk()) << ran.message();
    Tensor y = *gpu.output("logits");
    ASSERT_EQ(y.shape, (std::vector<int64_t>{batch, classes}));
    expectClose(static_cast<const float *>(y.data), reference(x));
  }

  static Engine *engine;
};
Engine *Gpu::engine = nullptr;

TEST_F(Gpu, BatchesOutOfOneContext) {
  Context gpu = context(DeviceKind::Cuda);
  for (int64_t batch : {1, 3, 360, 17, 3, 1})
    expectRun(gpu, batch, batch);
}

TEST_F(Gpu, WithoutGraphsTheBitsAreTheSame) {
  ContextOptions plain;
  plain.cudaGraph = false;
  Context graph = context(DeviceKind::Cuda),
          launches = context(DeviceKind::Cuda, plain);
  std::vector<float> x = images(37, 5);
  for (Context *c : {&graph, &launches}) {
    ASSERT_TRUE(c->setInput("image", tensor(x.data(), 37)).isOk());
    ASSERT_TRUE(c->run().isOk());
  }
  EXPECT_EQ(std::memcmp(graph.output("logits")->data,
                        launches.output("logits")->data,
                        37 * classes * sizeof(float)),
            0);
}

TEST_F(Gpu, DeviceMemoryOnTheCallersStream) {
  auto device = cuda::CudaDevice::open(0);
  ASSERT_TRUE(device) << device.status().message();
  const cuda::Driver &driver = **cuda::Driver::get();
  cuda::Stream stream = *cuda::Stream::create(*device);
  Context gpu = context(DeviceKind::Cuda);
  constexpr int64_t batch = 29;
  const size_t inputBytes = batch * imageSize * sizeof(float),
               outputBytes = batch * classes * sizeof(float);
  cuda::DeviceMemory x = *cuda::DeviceMemory::allocate(*device, inputBytes,
                                                       "x"),
                     y = *cuda::DeviceMemory::allocate(*device, outputBytes,
                                                       "y");
  void *xPointer = reinterpret_cast<void *>(x.address()),
       *yPointer = reinterpret_cast<void *>(y.address());
  ASSERT_TRUE(
      gpu.setInput("image", tensor(xPointer, batch, Memory::Device)).isOk());
  ASSERT_TRUE(
      gpu.setOutput("logits", yPointer, outputBytes, Memory::Device).isOk());
  for (unsigned round = 0; round < 3; ++round) {
    std::vector<float> values = images(batch, 100 + round),
                       result(batch * classes);
    cuda::CudaDevice::Scope scope(**device);
    ASSERT_EQ(driver.memcpyHtoDAsync(x.address(), values.data(), inputBytes,
                                     stream.get()),
              cuda::cudaSuccess);
    Status ran = gpu.runAsync(stream.get());
    ASSERT_TRUE(ran.isOk()) << ran.message();
    ASSERT_EQ(driver.memcpyDtoHAsync(result.data(), y.address(), outputBytes,
                                     stream.get()),
              cuda::cudaSuccess);
    ASSERT_EQ(driver.streamSynchronize(stream.get()), cuda::cudaSuccess);
    Tensor bound = *gpu.output("logits");
    EXPECT_EQ(bound.data, yPointer);
    EXPECT_EQ(bound.memory, Memory::Device);
    expectClose(result.data(), reference(values));
  }
}

TEST_F(Gpu, ContextsOnThreads) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      Context gpu = context(DeviceKind::Cuda);
      for (unsigned round = 0; round < 8; ++round)
        expectRun(gpu, 1 + (t * 8 + round) * 5 % 360, t * 100 + round);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(Gpu, OutOfRangeSaysWhatWouldBeRight) {
  Context gpu = context(DeviceKind::Cuda);
  std::vector<float> x(361 * imageSize);
  Status status = gpu.setInput("image", tensor(x.data(), 361));
  if (status.isOk())
    status = gpu.run();
  ASSERT_FALSE(status.isOk());
  EXPECT_NE(std::string(status.message()).find("1..360"), std::string::npos)
      << status.message();
}

} // namespace
