// The CUDA device on the fake driver (FakeCuda.h).

#include "FakeCuda.h"
#include "TestEngine.h"

#include "charonia/runtime.h"
#include "runtime/device/cuda/CudaProgram.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/engine/Writer.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include <dlfcn.h>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

FakeCuda *(*driverState)() = nullptr;

FakeCuda &fake() { return *driverState(); }

/// The driver's own functions, for a caller's device memory and streams.
const cuda::Driver &driver() {
  static const cuda::Driver *api = *cuda::Driver::get();
  return *api;
}

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
    Writer w;
    w.addSection(SectionKind::Code, "code", code.bytes());
    w.addSection(SectionKind::Weights, "weights",
                 std::as_bytes(std::span(weights)));
    std::string path = dir / "test.engine";
    Status status = w.write(manifest, path);
    EXPECT_TRUE(status.isOk()) << status.message();
    return path;
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

TEST_F(CudaEngine, HostMemoryAtEveryShape) {
  Context c = context();
  EXPECT_EQ(c.description(), "sm_80 on Fake GPU (cuda:0, sm_90)");
  EXPECT_EQ(c.threads(), 0u);
  for (int64_t batch : {4, 1, 64, 0, 37, 4, 64, 64, 4}) {
    auto x = input(batch, batch);
    ASSERT_TRUE(
        c.setInput("x", {DType::Float32, {batch, 16}, x.data()}).isOk());
    Status status = c.run();
    ASSERT_TRUE(status.isOk()) << status.message();
    expectOutputs(c.output("y")->data, c.output("z")->data, x);
  }
}

TEST_F(CudaEngine, OutputsInTheCallersHostMemory) {
  Context c = context();
  auto x = input(8, 1);
  std::vector<float> y(8 * 16), z(8 * 16);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  ASSERT_TRUE(c.setOutput("y", y.data(), y.size() * 4).isOk());
  ASSERT_TRUE(c.setOutput("z", z.data(), z.size() * 4).isOk());
  for (int round = 0; round < 3; ++round) {
    y.assign(y.size(), -1);
    ASSERT_TRUE(c.run().isOk());
    expectOutputs(y.data(), z.data(), x);
  }
}

TEST_F(CudaEngine, GraphPerShape) {
  Context c = context();
  auto run = [&](int64_t batch) {
    auto x = input(batch, 3);
    ASSERT_TRUE(
        c.setInput("x", {DType::Float32, {batch, 16}, x.data()}).isOk());
    ASSERT_TRUE(c.run().isOk());
    expectOutputs(c.output("y")->data, c.output("z")->data, x);
  };
  // The largest shape first, so that no memory moves later.
  run(64);
  EXPECT_EQ(fake().count("cuGraphLaunch"), 0);
  EXPECT_EQ(fake().count("cuLaunchKernel"), 2);
  run(64); // Recorded
  EXPECT_EQ(fake().count("cuGraphInstantiate"), 1);
  EXPECT_EQ(fake().count("cuGraphLaunch"), 1);
  run(64); // and replayed.
  EXPECT_EQ(fake().count("cuGraphInstantiate"), 1);
  EXPECT_EQ(fake().count("cuGraphLaunch"), 2);
  EXPECT_EQ(fake().count("cuLaunchKernel"), 4);
  run(8), run(8), run(64), run(8);
  EXPECT_EQ(fake().count("cuGraphInstantiate"), 2);
  EXPECT_EQ(fake().count("cuGraphLaunch"), 5);
}

TEST_F(CudaEngine, WithoutGraphs) {
  ContextOptions options;
  options.cudaGraph = false;
  Context c = context(options);
  auto x = input(8, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  for (int round = 0; round < 3; ++round)
    ASSERT_TRUE(c.run().isOk());
  expectOutputs(c.output("y")->data, c.output("z")->data, x);
  EXPECT_EQ(fake().count("cuLaunchKernel"), 6);
  EXPECT_EQ(fake().count("cuStreamBeginCapture"), 0);
}

TEST_F(CudaEngine, WhereGraphsFailKernelsAreLaunched) {
  fake().rejectCapture = true;
  Context c = context();
  auto x = input(8, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  for (int round = 0; round < 4; ++round)
    ASSERT_TRUE(c.run().isOk());
  expectOutputs(c.output("y")->data, c.output("z")->data, x);
  EXPECT_EQ(fake().count("cuStreamBeginCapture"), 1);
  EXPECT_EQ(fake().count("cuLaunchKernel"), 8);
}

TEST_F(CudaEngine, DeviceMemoryIsUsedInPlace) {
  Context c = context();
  CallersMemory x(1024), y(1024), z(1024);
  auto values = input(8, 1);
  std::memcpy(x.data(), values.data(), 512);
  ASSERT_TRUE(
      c.setInput("x", {DType::Float32, {8, 16}, x.data(), Memory::Device})
          .isOk());
  ASSERT_TRUE(c.setOutput("y", y.data(), 1024, Memory::Device).isOk());
  ASSERT_TRUE(c.setOutput("z", z.data(), 1024, Memory::Device).isOk());
  int uploads = fake().count("cuMemcpyHtoDAsync");
  for (int round = 0; round < 3; ++round)
    ASSERT_TRUE(c.run().isOk());
  expectOutputs(y.data(), z.data(), values);
  EXPECT_EQ(fake().count("cuMemcpyHtoDAsync"), uploads);
  EXPECT_EQ(fake().count("cuMemcpyDtoHAsync"), 0);
  // The copy step, launched once and recorded once.
  EXPECT_EQ(fake().count("cuMemcpyDtoDAsync"), 2);
}

TEST_F(CudaEngine, ManySetsOfBuffers) {
  // More sets than graphs are kept: the least recently used one is updated.
  Context c = context();
  auto values = input(8, 1);
  std::vector<CallersMemory> xs;
  for (int i = 0; i < 6; ++i) {
    xs.emplace_back(512);
    std::memcpy(xs.back().data(), values.data(), 512);
  }
  ASSERT_TRUE(c.allocateOutput("y", Memory::Device).isOk());
  ASSERT_TRUE(c.allocateOutput("z", Memory::Device).isOk());
  for (int round = 0; round < 4; ++round)
    for (CallersMemory &x : xs) {
      ASSERT_TRUE(
          c.setInput("x", {DType::Float32, {8, 16}, x.data(), Memory::Device})
              .isOk());
      ASSERT_TRUE(c.run().isOk());
      EXPECT_EQ(c.output("y")->memory, Memory::Device);
      expectOutputs(c.output("y")->data, c.output("z")->data, values);
    }
  EXPECT_EQ(fake().count("cuGraphInstantiate"), 4);
  EXPECT_GE(fake().count("cuGraphExecUpdate"), 2);
}

TEST_F(CudaEngine, MisalignedAndSharedDeviceMemory) {
  Context c = context();
  CallersMemory memory(4096);
  auto values = input(8, 1);
  // x is not aligned to the 16 bytes that kernels assume; y lies over it.
  char *x = memory.data() + 4, *y = memory.data() + 256,
       *z = memory.data() + 1024;
  std::memcpy(x, values.data(), 512);
  ASSERT_TRUE(
      c.setInput("x", {DType::Float32, {8, 16}, x, Memory::Device}).isOk());
  ASSERT_TRUE(c.setOutput("y", y, 512, Memory::Device).isOk());
  ASSERT_TRUE(c.setOutput("z", z, 512, Memory::Device).isOk());
  ASSERT_TRUE(c.run().isOk());
  expectOutputs(y, z, values);
  std::memcpy(memory.data(), values.data(), 512);
  x = memory.data();
  ASSERT_TRUE(
      c.setInput("x", {DType::Float32, {8, 16}, x, Memory::Device}).isOk());
  ASSERT_TRUE(c.run().isOk());
  expectOutputs(y, z, values);
}

TEST_F(CudaEngine, AsynchronousOnTheCallersStream) {
  Context c = context();
  auto device = cuda::CudaDevice::open(0);
  cuda::Stream stream = *cuda::Stream::create(*device);
  auto pinnedX = *cuda::PinnedMemory::allocate(*device, 512, "x");
  auto pinnedY = *cuda::PinnedMemory::allocate(*device, 512, "y");
  auto pinnedZ = *cuda::PinnedMemory::allocate(*device, 512, "z");
  ASSERT_TRUE(
      c.setInput("x", {DType::Float32, {8, 16}, pinnedX.data()}).isOk());
  ASSERT_TRUE(c.setOutput("y", pinnedY.data(), 512).isOk());
  ASSERT_TRUE(c.setOutput("z", pinnedZ.data(), 512).isOk());
  for (unsigned round = 0; round < 3; ++round) {
    std::memset(pinnedY.data(), 0, 512);
    auto values = input(8, round);
    std::memcpy(pinnedX.data(), values.data(), 512);
    ASSERT_TRUE(c.runAsync(stream.get()).isOk());
    EXPECT_TRUE(std::all_of(pinnedY.data(), pinnedY.data() + 512,
                            [](std::byte b) { return b == std::byte(0); }));
    if (round == 1) {
      ASSERT_TRUE(c.synchronize().isOk());
    } else {
      cuda::CudaDevice::Scope scope(**device);
      driver().streamSynchronize(stream.get());
    }
    expectOutputs(pinnedY.data(), pinnedZ.data(), values);
  }
}

TEST_F(CudaEngine, AsynchronousRunsFollowEachOtherAcrossStreams) {
  Context c = context();
  auto device = cuda::CudaDevice::open(0);
  cuda::Stream one = *cuda::Stream::create(*device);
  cuda::Stream two = *cuda::Stream::create(*device);
  CallersMemory x1(512), x2(512), y1(512), y2(512), z(512);
  auto v1 = input(8, 1), v2 = input(8, 2);
  std::memcpy(x1.data(), v1.data(), 512);
  std::memcpy(x2.data(), v2.data(), 512);
  auto enqueue = [&](CallersMemory &x, CallersMemory &y, cuda::Stream &stream) {
    ASSERT_TRUE(
        c.setInput("x", {DType::Float32, {8, 16}, x.data(), Memory::Device})
            .isOk());
    ASSERT_TRUE(c.setOutput("y", y.data(), 512, Memory::Device).isOk());
    ASSERT_TRUE(c.setOutput("z", z.data(), 512, Memory::Device).isOk());
    ASSERT_TRUE(c.runAsync(stream.get()).isOk());
  };
  enqueue(x1, y1, one);
  enqueue(x2, y2, two);
  // Waiting for the second is enough for both.
  ASSERT_TRUE(c.synchronize().isOk());
  expectOutputs(y2.data(), z.data(), v2);
  EXPECT_EQ(fake().count("cuStreamWaitEvent"), 1);
  for (size_t i = 1; i < v1.size(); ++i) {
    float got;
    std::memcpy(&got, y1.data() + 4 * i, 4);
    EXPECT_NEAR(got,
                std::max(0.f, v1[i] * weights[i % 16] + weights[16 + i % 16]),
                1e-6);
  }
}

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

//===----------------------------------------------------------------------===//
// Which code is taken
//===----------------------------------------------------------------------===//

TEST(CudaArch, Rules) {
  using cuda::Arch;
  for (const char *text : {"", "sm_", "sm_9", "sm_90x", "sm_90aa", "x86-64-v3"})
    EXPECT_FALSE(Arch::parse(text)) << text;
  Arch ampere = *Arch::parse("sm_80"), hopper = *Arch::parse("sm_90a"),
       family = *Arch::parse("sm_100f");
  EXPECT_TRUE(ampere.cubinRunsOn(80) && ampere.cubinRunsOn(86));
  EXPECT_FALSE(ampere.cubinRunsOn(75) || ampere.cubinRunsOn(90));
  EXPECT_TRUE(ampere.ptxRunsOn(90) && ampere.ptxRunsOn(120));
  EXPECT_FALSE(ampere.ptxRunsOn(75));
  EXPECT_TRUE(hopper.cubinRunsOn(90) && hopper.ptxRunsOn(90));
  EXPECT_FALSE(hopper.ptxRunsOn(100) || hopper.ptxRunsOn(89));
  EXPECT_TRUE(family.ptxRunsOn(103));
  EXPECT_FALSE(family.ptxRunsOn(120) || family.ptxRunsOn(90));
}

TEST_F(CudaEngine, MachineCodeForTheChipElsePtx) {
  struct Case {
    int capability;
    std::string arch;
    int cubins, ptx;
  };
  addVariant(manifest.programs[0], "sm_90a");
  addVariant(manifest.programs[0], "sm_90");
  for (const Case &c : {Case{80, "sm_80", 1, 0}, Case{86, "sm_80", 1, 0},
                        Case{90, "sm_90a", 1, 0}, Case{120, "sm_90", 0, 1}}) {
    fake() = FakeCuda();
    fake().capability = c.capability;
    EXPECT_EQ(context().description().substr(0, c.arch.size() + 4),
              c.arch + " on ");
    EXPECT_EQ(fake().cubinsLoaded, c.cubins) << c.capability;
    EXPECT_EQ(fake().ptxLoaded, c.ptx) << c.capability;
  }
}

TEST_F(CudaEngine, PtxWhereTheDriverRefusesMachineCode) {
  fake().capability = 80;
  fake().rejectCubins = true;
  context();
  EXPECT_EQ(fake().ptxLoaded, 1);
}

TEST_F(CudaEngine, LaunchAttributes) {
  Program &p = manifest.programs[0];
  p.variants[0].kernels[0].clusterSize = 4;
  p.variants[0].kernels[0].sharedBytes = 100 * 1024;
  p.variants[0].kernels[1].waitsForPrevious = true;
  Context c = context();
  auto x = input(8, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(c.run().isOk());
    expectOutputs(c.output("y")->data, c.output("z")->data, x);
  }
  EXPECT_EQ(fake().count("cuLaunchKernel"), 0);
  EXPECT_EQ(fake().count("cuLaunchKernelEx"), 4);
  EXPECT_EQ(fake().overlappedLaunches, 2);
  EXPECT_EQ(fake().lastClusterSize, 4u);
  EXPECT_EQ(fake().count("cuFuncSetAttribute"), 1);
}

TEST_F(CudaEngine, OnlyKernelsBehindKernelsOverlap) {
  auto overlapped = [&](const ContextOptions &options = {}) {
    fake().overlappedLaunches = 0;
    Context c = context(options);
    auto x = input(8, 1);
    EXPECT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
    for (int round = 0; round < 3; ++round)
      EXPECT_TRUE(c.run().isOk());
    expectOutputs(c.output("y")->data, c.output("z")->data, x);
    return fake().overlappedLaunches;
  };
  Program &p = manifest.programs[0];
  for (KernelCode &code : p.variants[0].kernels)
    code.waitsForPrevious = true;
  // Once launched and once recorded, the second of two kernels.
  EXPECT_EQ(overlapped(), 2);
  ContextOptions apart;
  apart.overlapKernels = false;
  EXPECT_EQ(overlapped(apart), 0);
  fake().driverVersion = 12020; // Knows no such edges in graphs.
  EXPECT_EQ(overlapped(), 0);
  fake().driverVersion = 13000;
  // A kernel whose code does not wait follows in full.
  p.variants[0].kernels[1].waitsForPrevious = false;
  EXPECT_EQ(overlapped(), 0);
  p.variants[0].kernels[1].waitsForPrevious = true;
  // So does one behind a copy or a fill.
  Step nothing;
  nothing.kind = Step::Kind::Fill;
  nothing.args = {p.steps[1].args.back()};
  nothing.bytes = 4;
  nothing.patternSize = 4;
  p.steps.insert(p.steps.begin() + 1, nothing);
  for (Buffer &buffer : p.buffers)
    buffer.firstStep = 0, buffer.lastStep = p.steps.size() - 1;
  EXPECT_EQ(overlapped(), 0);
}

TEST_F(CudaEngine, ProfileAndTimes) {
  Context c = context();
  auto x = input(8, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  auto rows = c.profile(5);
  ASSERT_TRUE(rows.isOk()) << rows.status().message();
  ASSERT_EQ(rows->size(), 4u);
  EXPECT_EQ((*rows)[0].name, "scale_add");
  EXPECT_EQ((*rows)[0].blockThreads, 128u);
  for (const StepProfile &row : *rows)
    EXPECT_NEAR(row.seconds, 0.25e-3, 1e-9); // The fake's clock.
  expectOutputs(c.output("y")->data, c.output("z")->data, x);
  for (int round = 0; round < 3; ++round) {
    auto seconds = c.runTimed();
    ASSERT_TRUE(seconds.isOk());
    EXPECT_NEAR(*seconds, 0.25e-3, 1e-9);
  }
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

class CudaTensorMaps : public CudaEngine {
protected:
  void SetUp() override {
    CudaEngine::SetUp();
    KernelCode &code = manifest.programs[0].variants[0].kernels[0];
    code.entry = "scale_add_map";
    code.maps = {rowsMap()};
  }
};

TEST_F(CudaTensorMaps, OfEveryShape) {
  Context c = context();
  for (int64_t batch : {4, 1, 64, 0, 37, 4, 4, 64, 64, 37, 37, 4}) {
    auto x = input(batch, batch);
    ASSERT_TRUE(
        c.setInput("x", {DType::Float32, {batch, 16}, x.data()}).isOk());
    Status status = c.run();
    ASSERT_TRUE(status.isOk()) << status.message();
    expectOutputs(c.output("y")->data, c.output("z")->data, x);
  }
  EXPECT_GT(fake().count("cuGraphLaunch"), 0);
}

TEST_F(CudaTensorMaps, GraphsHoldTheirAddresses) {
  // More sets of buffers than graphs are kept, so that graphs are updated.
  Context c = context();
  std::vector<CallersMemory> xs;
  for (unsigned i = 0; i < 6; ++i) {
    xs.emplace_back(512);
    auto values = input(8, i);
    std::memcpy(xs.back().data(), values.data(), 512);
  }
  ASSERT_TRUE(c.allocateOutput("y", Memory::Device).isOk());
  ASSERT_TRUE(c.allocateOutput("z", Memory::Device).isOk());
  for (int round = 0; round < 4; ++round)
    for (unsigned i = 0; i < 6; ++i) {
      ASSERT_TRUE(
          c.setInput("x",
                     {DType::Float32, {8, 16}, xs[i].data(), Memory::Device})
              .isOk());
      ASSERT_TRUE(c.run().isOk());
      expectOutputs(c.output("y")->data, c.output("z")->data, input(8, i));
    }
  EXPECT_GE(fake().count("cuGraphExecUpdate"), 2);
}

TEST_F(CudaTensorMaps, MisalignedMemoryIsCopied) {
  manifest.programs[0].buffers[0].alignment = 4;
  Context c = context();
  CallersMemory memory(1024);
  auto values = input(8, 1);
  char *x = memory.data() + 4;
  std::memcpy(x, values.data(), 512);
  ASSERT_TRUE(
      c.setInput("x", {DType::Float32, {8, 16}, x, Memory::Device}).isOk());
  Status status = c.run();
  ASSERT_TRUE(status.isOk()) << status.message();
  expectOutputs(c.output("y")->data, c.output("z")->data, values);
}

TEST_F(CudaTensorMaps, WhatTheDriverIsTold) {
  TensorMap &rows = manifest.programs[0].variants[0].kernels[0].maps[0];
  rows.steps = {1, 2};
  TensorMap windows = rows; // Four pixels of four channels a row.
  windows.extents = {4, 4, ShapeExpr::symbol(0)};
  windows.strides = {16, 64};
  windows.box = {4, 1024};
  windows.steps = {1, 2, 1};
  windows.lower = {-2}, windows.upper = {1};
  windows.swizzle = 128;
  TensorMap weights = rows;
  weights.argument = 1;
  weights.elementBytes = 1;
  weights.extents = {128}, weights.strides = {};
  weights.box = {32}, weights.steps = {1};
  auto &maps = manifest.programs[0].variants[0].kernels[0].maps;
  maps = {rows, windows, weights};
  for (uint32_t bytes : {2, 8}) {
    weights.elementBytes = bytes, weights.extents = {128 / bytes};
    maps.push_back(weights);
  }
  Context c = context();
  CallersMemory x(512);
  auto values = input(8, 1);
  std::memcpy(x.data(), values.data(), 512);
  ASSERT_TRUE(
      c.setInput("x", {DType::Float32, {8, 16}, x.data(), Memory::Device})
          .isOk());
  ASSERT_TRUE(c.run().isOk());
  expectOutputs(c.output("y")->data, c.output("z")->data, values);
  ASSERT_EQ(fake().maps.size(), 5u);
  const FakeMap &first = fake().maps[0], &second = fake().maps[1];
  auto address = reinterpret_cast<uint64_t>(x.data());
  EXPECT_FALSE(first.im2col);
  EXPECT_EQ(first.address, address);
  EXPECT_EQ(first.extents, (std::vector<uint64_t>{16, 8}));
  EXPECT_EQ(first.strides, (std::vector<uint64_t>{64}));
  EXPECT_EQ(first.box, (std::vector<uint32_t>{16, 8}));
  EXPECT_EQ(first.steps, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(first.kinds, (std::vector<int>{2, 0, 0, 3, 0}));
  EXPECT_TRUE(second.im2col);
  EXPECT_EQ(second.address, address);
  EXPECT_EQ(second.extents, (std::vector<uint64_t>{4, 4, 8}));
  EXPECT_EQ(second.strides, (std::vector<uint64_t>{16, 64}));
  EXPECT_EQ(second.corners, (std::vector<int>{-2, 1}));
  EXPECT_EQ(second.box, (std::vector<uint32_t>{4, 1024}));
  EXPECT_EQ(second.steps, (std::vector<uint32_t>{1, 2, 1}));
  EXPECT_EQ(second.kinds, (std::vector<int>{2, 0, 3, 3, 0}));
  for (auto [map, type] : {std::pair(2, 0), std::pair(3, 1), std::pair(4, 4)})
    EXPECT_EQ(fake().maps[map].kinds[0], type);
  EXPECT_NE(fake().maps[2].address, address);
}

TEST_F(CudaTensorMaps, FailingToEncode) {
  Context c = context();
  auto x = input(8, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  fake().encodeResult = 1;
  for (int round = 0; round < 3; ++round) { // In graphs, too.
    Status status = c.run();
    EXPECT_EQ(status.code(), StatusCode::DeviceError);
    EXPECT_EQ(status.message(),
              "CUDA failed while encoding tensor map 0 of the kernel "
              "'scale_add': fake (CUDA_ERROR_FAKE)");
  }
  fake().encodeResult = 0;
  EXPECT_TRUE(c.run().isOk());
  expectOutputs(c.output("y")->data, c.output("z")->data, x);
}

using CudaTensorMapsDeathTest = CudaTensorMaps;

TEST_F(CudaTensorMapsDeathTest, ADriverWithoutThem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto runOnOldDriver = [&] {
    setenv("CHARONIA_CUDA_DRIVER", CHARONIA_FAKE_OLD_CUDA, 1);
    Context c = context();
    auto x = input(8, 1);
    EXPECT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
    Status status = c.run();
    fprintf(stderr, "%s", status.message().c_str());
    std::filesystem::remove_all(dir / "");
    exit(status.code() != StatusCode::Unsupported);
  };
  EXPECT_EXIT(runOnOldDriver(), ::testing::ExitedWithCode(0),
              "the kernel 'scale_add' takes tensor maps, which the NVIDIA "
              "driver is too old for; a driver for CUDA 12.0 or newer");
}

//===----------------------------------------------------------------------===//
// What goes wrong
//===----------------------------------------------------------------------===//

TEST_F(CudaEngine, AnEngineForAnotherGpu) {
  fake().capability = 75;
  EXPECT_EQ(
      tryContext().status().message(),
      "no program of the engine runs on Fake GPU (cuda:0, sm_75); the file "
      "holds cuda fp16 (sm_80)");
  auto engine = charonia::Engine::load(write());
  EXPECT_EQ(
      engine->createContext().status().message(),
      "the engine has no program for cpu; the file holds cuda fp16 (sm_80)");
}

TEST_F(CudaEngine, NoGpu) {
  fake().initResult = 100;
  Status status = tryContext().status();
  EXPECT_EQ(status.code(), StatusCode::Unavailable);
  EXPECT_EQ(status.message(), "there is no NVIDIA GPU on this machine");
  fake().initResult = 0;
  fake().deviceCount = 0;
  EXPECT_EQ(tryContext().status().message(),
            "there is no NVIDIA GPU on this machine");
  fake().deviceCount = 2;
  EXPECT_EQ(
      tryContext({}, 7).status().message(),
      "there is no device cuda:7; this machine has 2 GPUs, cuda:0 to cuda:1");
  fake().initResult = 804;
  EXPECT_EQ(tryContext().status().code(), StatusCode::Unavailable);
}

TEST_F(CudaEngine, OutOfMemory) {
  fake().memory = 100;
  Status status = tryContext().status();
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_EQ(
      status.message(),
      "out of memory on Fake GPU (cuda:0, sm_90): cannot get 128 bytes for "
      "weights; 100 of 100 bytes are free");
  fake().memory = 300;
  Context c = context();
  auto x = input(64, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {64, 16}, x.data()}).isOk());
  EXPECT_EQ(
      c.run().message(),
      "out of memory on Fake GPU (cuda:0, sm_90): cannot get 4096 bytes for "
      "intermediate results; 172 of 300 bytes are free");
  // The context is as good as before.
  fake().memory = 1 << 20;
  ASSERT_TRUE(c.run().isOk());
  expectOutputs(c.output("y")->data, c.output("z")->data, x);
}

TEST_F(CudaEngine, BadCode) {
  ptx = ".version 7.0 syntax error";
  code = CodeSection(0);
  manifest.programs[0].variants.clear();
  addVariant(manifest.programs[0], "sm_80");
  EXPECT_EQ(tryContext().status().message(),
            "CUDA failed while compiling PTX for this GPU: fake "
            "(CUDA_ERROR_FAKE): ptxas: line 2");
  fake().capability = 80; // The machine code is good.
  EXPECT_TRUE(tryContext().isOk());
  manifest.programs[0].variants[0].kernels[1].entry = "gelu";
  EXPECT_EQ(tryContext().status().message(),
            "CUDA failed while looking for the kernel 'gelu': fake "
            "(CUDA_ERROR_FAKE)");
  manifest.programs[0].variants[0].kernels[1].entry = "relu";
  manifest.programs[0].variants[0].kernels[1].sharedBytes = 400 * 1024;
  EXPECT_EQ(
      tryContext().status().message(),
      "the kernel 'relu' needs 409600 bytes of shared memory, but Fake GPU "
      "(cuda:0, sm_80) has 232448");
}

TEST_F(CudaEngine, FailingLaunch) {
  Context c = context();
  auto x = input(8, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  fake().launchResult = 700;
  Status status = c.run();
  EXPECT_EQ(status.code(), StatusCode::DeviceError);
  EXPECT_EQ(status.message(),
            "CUDA failed while launching the kernel 'scale_add': an illegal "
            "memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)");
  fake().launchResult = 0;
  EXPECT_TRUE(c.run().isOk());
}

TEST_F(CudaEngine, ShapesOutOfRange) {
  Context c = context();
  auto x = input(65, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {65, 16}, x.data()}).isOk());
  EXPECT_EQ(c.run().message(),
            "the shape 65x16 of the input 'x' makes batch 65; the engine was "
            "built for batch in 0..64");
}

// The driver is opened once a process, so these run in processes of their own.
class CudaDriverDeathTest : public ::testing::Test {
protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static void openWith(const char *library) {
    setenv("CHARONIA_CUDA_DRIVER", library, 1);
    auto opened = cuda::Driver::get();
    fprintf(stderr, "%s",
            opened ? "opened" : opened.status().message().c_str());
    exit(opened.isOk());
  }
};

TEST_F(CudaDriverDeathTest, NoDriver) {
  EXPECT_EXIT(openWith("/no/such/libcuda.so.1"), ::testing::ExitedWithCode(0),
              "there is no NVIDIA driver on this machine: "
              "/no/such/libcuda.so.1: cannot open shared object file");
}

TEST_F(CudaDriverDeathTest, DriverTooOld) {
  EXPECT_EXIT(
      openWith("libm.so.6"), ::testing::ExitedWithCode(0),
      "the NVIDIA driver is too old: it has no cuInit; a driver for CUDA "
      "11.4 or newer is needed");
  // Without what is optional, it opens.
  EXPECT_EXIT(openWith(CHARONIA_FAKE_OLD_CUDA), ::testing::ExitedWithCode(1),
              "opened");
}

} // namespace
