// The CUDA device on the fake driver (FakeCuda.h): memory, graphs, streams.

#include "CudaEngine.h"

#include <cstring>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

TEST_F(CudaEngine, HostMemoryAtEveryShape) {
  Context c = context();
  EXPECT_EQ(c.description(), "sm_80 on Fake GPU (cuda:0, sm_90)");
  EXPECT_EQ(c.threads(), 0u);
  for (int64_t batch : {4, 1, 64, 0, 37, 4, 64, 64, 4})
    expectRun(c, batch, batch);
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
  auto run = [&](int64_t batch) { expectRun(c, batch, 3); };
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

} // namespace
