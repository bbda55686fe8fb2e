// The CUDA device on the fake driver: what goes wrong.

#include "CudaEngine.h"

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

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
