// The CUDA device on the fake driver: which code is taken, and how it is
// launched.

#include "CudaEngine.h"

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

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

} // namespace
