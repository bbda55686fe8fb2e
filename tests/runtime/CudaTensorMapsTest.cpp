// The CUDA device on the fake driver: tensor maps.

#include "CudaEngine.h"

#include <cstring>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

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
  for (int64_t batch : {4, 1, 64, 0, 37, 4, 4, 64, 64, 37, 37, 4})
    expectRun(c, batch, batch);
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

} // namespace
