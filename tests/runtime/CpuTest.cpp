// Load, bind and run on the CPU, with machine code built from kernels.c.

#include "CpuEngine.h"

#include <cstring>
#include <thread>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

TEST_F(CpuEngine, RunsAtEveryShape) {
  for (int threads : {1, 2, 5}) {
    ContextOptions options;
    options.threads = threads;
    Context c = context(options);
    for (int64_t batch : {4, 1, 64, 0, 37, 4}) {
      auto x = input(batch, batch);
      ASSERT_TRUE(
          c.setInput("x", {DType::Float32, {batch, 16}, x.data()}).isOk());
      Status status = c.run();
      ASSERT_TRUE(status.isOk()) << status.message();
      auto y = c.output("y"), z = c.output("z");
      ASSERT_TRUE(y.isOk() && z.isOk());
      EXPECT_EQ(y->shape, (std::vector<int64_t>{batch, 16}));
      EXPECT_EQ(z->shape, (std::vector<int64_t>{batch * 16}));
      expectOutputs(floats(*y), floats(*z), x);
    }
  }
}

TEST_F(CpuEngine, ReadsAndWritesTheCallersMemory) {
  Context c = context();
  auto x = input(8, 1);
  std::vector<float> y(8 * 16 + 7, -7), z(8 * 16);
  // z at an odd address and x at one that is not aligned as the kernels assume.
  std::vector<char> odd(8 * 64 + 4);
  std::vector<float> shifted(8 * 16 + 1);
  std::ranges::copy(x, shifted.begin() + 1);
  for (const float *source : {x.data(), shifted.data() + 1}) {
    ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, source}).isOk());
    ASSERT_TRUE(c.setOutput("y", y.data(), y.size() * 4).isOk());
    ASSERT_TRUE(c.setOutput("z", odd.data() + 1, 8 * 64).isOk());
    ASSERT_TRUE(c.run().isOk());
    EXPECT_EQ(c.output("y")->data, y.data());
    std::memcpy(z.data(), odd.data() + 1, 8 * 64);
    expectOutputs(y.data(), z.data(), x);
    EXPECT_EQ(y[8 * 16], -7); // Nothing past the output.
  }
}

TEST_F(CpuEngine, InputAndOutputMayShareMemory) {
  Context c = context();
  auto x = input(8, 1), z = x;
  std::vector<float> memory = x;
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, memory.data()}).isOk());
  ASSERT_TRUE(c.setOutput("y", memory.data(), memory.size() * 4).isOk());
  ASSERT_TRUE(c.setOutput("z", z.data(), z.size() * 4).isOk());
  ASSERT_TRUE(c.run().isOk());
  expectOutputs(memory.data(), z.data(), x);
}

TEST_F(CpuEngine, ManyContextsShareAnEngine) {
  auto engine = charonia::Engine::load(write());
  ASSERT_TRUE(engine.isOk());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      ContextOptions options;
      options.threads = 1 + t % 3;
      auto c = engine->createContext({}, options);
      for (int round = 0; c && round < 50; ++round) {
        int64_t batch = 1 + (t * 13 + round) % 64;
        auto x = input(batch, t * 100 + round);
        failures +=
            !c->setInput("x", {DType::Float32, {batch, 16}, x.data()}) ||
            !c->run();
        const float *y = floats(*c->output("y"));
        for (size_t i = 0; i < x.size(); ++i)
          failures +=
              std::abs(y[i] - std::max(0.f, x[i] * weights[i % 16] +
                                                weights[16 + i % 16])) > 1e-6f;
      }
      failures += !c;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(CpuEngine, EngineMayGoBeforeTheContext) {
  std::optional<Context> c;
  {
    auto engine = charonia::Engine::load(write());
    c.emplace(*engine->createContext());
  }
  auto x = input(2, 2);
  ASSERT_TRUE(c->setInput(0, {DType::Float32, {2, 16}, x.data()}).isOk());
  ASSERT_TRUE(c->run().isOk());
  expectOutputs(floats(*c->output(0)), floats(*c->output(1)), x);
}

TEST_F(CpuEngine, EveryInstanceRunsOnceWithItsOwnScratch) {
  ShapeExpr n = ShapeExpr::symbol(0);
  manifest = Manifest();
  manifest.signature.symbols = {{"n", 1, 1, 100000, 1}};
  manifest.signature.inputs = {{"shape", DType::UInt8, {n}}};
  manifest.signature.outputs = {{"counts", DType::Int32, {n}},
                                {"sums", DType::Int64, {n}}};
  Program p;
  p.kernels = {{"count", {}, 0, 0, 1}, {"private_scratch", {}, 0, 0, 1}};
  Buffer counts, sums;
  counts.kind = sums.kind = Buffer::Kind::Output;
  counts.size = n * 4, counts.lastStep = 1;
  sums.size = n * 8, sums.index = 1, sums.lastStep = 2;
  p.buffers = {counts, sums};
  Step zero, count, scratch;
  zero.kind = Step::Kind::Fill, zero.args = {{0, 0}}, zero.bytes = n * 4;
  count.args = {{0, 0}};
  count.symbols = scratch.symbols = {0};
  scratch.kernel = 1, scratch.args = {{1, 0}};
  p.steps = {zero, count, scratch};
  p.variants = {variant("x86-64-v3", {Count, PrivateScratch}, n)};
  p.variants[0].kernels[0].grain = 7;
  p.variants[0].kernels[1].scratchBytes = 1024;
  manifest.programs = {p};

  ContextOptions options;
  options.threads = 4;
  Context c = context(options);
  for (int64_t size : {1, 6, 8, 1000, 77777}) {
    std::vector<uint8_t> shape(size);
    ASSERT_TRUE(
        c.setInput("shape", {DType::UInt8, {size}, shape.data()}).isOk());
    ASSERT_TRUE(c.run().isOk());
    auto *ran = static_cast<const int32_t *>(c.output("counts")->data);
    auto *sum = static_cast<const int64_t *>(c.output("sums")->data);
    for (int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(ran[i], 1) << i << " of " << size;
      ASSERT_EQ(sum[i], 128 * i * size) << i << " of " << size;
    }
  }
}

TEST_F(CpuEngine, LaunchesOfOneKernelGetTheirOwnSizes) {
  ShapeExpr n = ShapeExpr::symbol(0), m = ShapeExpr::symbol(2);
  manifest = Manifest();
  manifest.signature.symbols = {
      {"n", 1, 1, 100, 1}, {"unused", 3, 3, 3, 1}, {"m", 1, 1, 100, 1}};
  manifest.signature.inputs = {{"shape", DType::UInt8, {n, m}}};
  manifest.signature.outputs = {{"first", DType::Int64, {n}},
                                {"second", DType::Int64, {m}}};
  Program p;
  // One number: the kernel's own first size.
  p.kernels = {{"private_scratch", {}, n * 10, n * 8, 1}};
  Buffer first, second;
  first.kind = second.kind = Buffer::Kind::Output;
  first.size = n * 8, second.size = m * 8;
  first.lastStep = second.lastStep = 1, second.index = 1;
  p.buffers = {first, second};
  Step one, two;
  one.args = {{0, 0}}, one.symbols = {0};
  two.args = {{1, 0}}, two.symbols = {2};
  p.steps = {one, two};
  p.variants = {variant("x86-64-v3", {PrivateScratch}, n)};
  p.variants[0].kernels[0].scratchBytes = 1024;
  manifest.programs = {p};

  Context c = context();
  std::vector<uint8_t> shape(5 * 9);
  ASSERT_TRUE(c.setInput("shape", {DType::UInt8, {5, 9}, shape.data()}).isOk());
  ASSERT_TRUE(c.run().isOk());
  for (auto [output, size] : {std::pair("first", 5), {"second", 9}}) {
    auto *sums = static_cast<const int64_t *>(c.output(output)->data);
    for (int64_t i = 0; i < size; ++i)
      EXPECT_EQ(sums[i], 128 * i * size) << output;
  }
  auto rows = c.profile(1);
  ASSERT_TRUE(rows.isOk()) << rows.status().message();
  EXPECT_EQ((*rows)[0].grid, 5);
  EXPECT_EQ((*rows)[1].grid, 9);
  EXPECT_EQ((*rows)[1].flops, 90);
  EXPECT_EQ((*rows)[1].bytes, 72);
}

/// Rows are copied in a loop, the last one first.
TEST_F(CpuEngine, StepsAreRepeatedAsOftenAsASizeSays) {
  ShapeExpr batch = ShapeExpr::symbol(0), counter = ShapeExpr::symbol(1),
            step = counter - 1;
  manifest.signature.symbols.push_back({"step", 1, 1, 64, 1});
  manifest.signature.constraints.push_back(
      {Constraint::Relation::Equal, counter, 1, ""});
  Program &p = manifest.programs[0];
  p.steps[2].args = {{4, step * 64}, {3, (batch - 1 - step) * 64}};
  p.steps[2].bytes = 64;
  p.repeats = {{2, 3, 1, batch}};
  Context c = context();
  for (int64_t rows : {3, 0, 1, 64}) {
    auto x = input(rows, 7);
    ASSERT_TRUE(c.setInput("x", {DType::Float32, {rows, 16}, x.data()}).isOk());
    Status done = c.run();
    ASSERT_TRUE(done.isOk()) << done.message();
    auto *y = static_cast<const float *>(c.output("y")->data);
    auto *z = static_cast<const float *>(c.output("z")->data);
    for (int64_t i = 1; i < rows * 16; ++i)
      ASSERT_EQ(z[i], y[(rows - 1 - i / 16) * 16 + i % 16]) << rows;
    auto profile = c.profile(1);
    ASSERT_TRUE(profile.isOk());
    EXPECT_EQ((int64_t)profile->size(), 3 + rows);
  }
}

TEST_F(CpuEngine, ALoopThatIsTooLong) {
  auto message = [&] {
    Context c = context();
    auto x = input(1, 1);
    Status set = c.setInput("x", {DType::Float32, {1, 16}, x.data()});
    return set ? c.run().message() : set.message();
  };
  manifest.programs[0].repeats = {{2, 4, 0, ShapeExpr((1 << 19) + 1)}};
  std::string tooLong = " times: more than 1048576 steps in all loops, or too "
                        "much to plan; split the sequence";
  EXPECT_EQ(message(), "a loop of 2 steps runs 524289" + tooLong);
  manifest.programs[0].repeats = {{0, 1, 0, ShapeExpr(1 << 19)},
                                  {2, 4, 0, ShapeExpr((1 << 18) + 1)}};
  EXPECT_EQ(message(), "a loop of 2 steps runs 262145" + tooLong);
  manifest.programs[0].repeats = {{2, 4, 0, ShapeExpr(-1)}};
  EXPECT_EQ(message(),
            "the engine's program does not fit this shape: the size -1 is "
            "negative");
}

TEST_F(CpuEngine, ChoosesTheBestVariant) {
  // The others are v3's code under other names: enough to see the choice.
  auto &variants = manifest.programs[0].variants;
  variants.resize(3, variants[0]);
  variants[1].arch = "x86-64-v4-vnni";
  variants[2].arch = "x86-64-v4";
  ContextOptions options;
  options.threads = 2;
  std::string best = cpu::archOfLevel(cpu::detectLevel());
  EXPECT_EQ(context(options).description(), best + " on 2 threads");
  EXPECT_EQ(context(options).threads(), 2u);
  options.isa = "x86-64-v3";
  options.threads = 1;
  EXPECT_EQ(context(options).description(), "x86-64-v3 on 1 thread");
}

TEST_F(CpuEngine, Profile) {
  Context c = context();
  auto x = input(8, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x.data()}).isOk());
  auto rows = c.profile(3);
  ASSERT_TRUE(rows.isOk()) << rows.status().message();
  ASSERT_EQ(rows->size(), 4u);
  EXPECT_EQ((*rows)[0].name, "scale_add");
  EXPECT_EQ((*rows)[0].ops, (std::vector<std::string>{"mul", "add"}));
  EXPECT_EQ((*rows)[0].nodes, (std::vector<std::string>{"/mul", "/add"}));
  EXPECT_EQ((*rows)[0].flops, 8 * 32);
  EXPECT_EQ((*rows)[0].bytes, 8 * 128);
  EXPECT_EQ((*rows)[0].grid, 8);
  EXPECT_EQ((*rows)[2].name, "copy");
  EXPECT_EQ((*rows)[2].bytes, 2 * 8 * 64);
  EXPECT_EQ((*rows)[3].name, "fill");
  for (const StepProfile &row : *rows) {
    EXPECT_GT(row.meanSeconds, 0);
    EXPECT_LE(row.seconds, row.meanSeconds);
  }
  auto seconds = c.runTimed();
  ASSERT_TRUE(seconds.isOk());
  EXPECT_GT(*seconds, 0);
  auto memory = c.memory();
  ASSERT_TRUE(memory.isOk());
  EXPECT_EQ(memory->arenaBytes, 8u * 64);
  EXPECT_EQ(memory->arenaLowerBound, 8u * 64);
  EXPECT_EQ(memory->weightBytes, 128u);
}

//===----------------------------------------------------------------------===//
// What goes wrong, and what is said about it
//===----------------------------------------------------------------------===//

TEST_F(CpuEngine, BindingErrors) {
  Context c = context();
  std::vector<float> x(65 * 16);
  auto set = [&](std::string_view name, DType dtype, std::vector<int64_t> shape,
                 Memory memory = Memory::Host) {
    return c.setInput(name, {dtype, shape, x.data(), memory}).message();
  };
  EXPECT_EQ(c.output("y").status().message(),
            "there is no output before a run");
  EXPECT_EQ(c.run().message(),
            "these inputs are not set: 'x' (float32 [batch, 16])");
  EXPECT_EQ(set("input", DType::Float32, {1, 16}),
            "no input is named 'input'; the engine's inputs are 'x'");
  EXPECT_EQ(set("x", DType::Float16, {1, 16}),
            "the input 'x' takes float32 [batch, 16], not float16");
  EXPECT_EQ(set("x", DType::Float32, {16}),
            "the input 'x' takes float32 [batch, 16], not the shape 16");
  EXPECT_EQ(
      set("x", DType::Float32, {1, 16}, Memory::Device),
      "the input 'x' is in device memory, but the context runs on the CPU");
  EXPECT_EQ(c.setInput("x", {DType::Float32, {1, 16}, nullptr}).message(),
            "the data of the input 'x' is null");
  EXPECT_EQ(c.setInput(1, {}).message(), "no input 1; the engine has 1");
  EXPECT_EQ(set("x", DType::Float32, {65, 16}), "");
  EXPECT_EQ(c.run().message(),
            "the shape 65x16 of the input 'x' makes batch 65; the engine was "
            "built for batch in 0..64");
  EXPECT_EQ(c.run().code(), StatusCode::OutOfRange);
  EXPECT_EQ(set("x", DType::Float32, {4, 17}), "");
  EXPECT_EQ(c.run().message(),
            "the input 'x' takes float32 [batch, 16] with batch in 0..64; "
            "dimension 1 of the shape 4x17 should be 16");
  EXPECT_EQ(set("x", DType::Float32, {4, 16}), "");
  EXPECT_EQ(*c.outputShape("z"), std::vector<int64_t>{64});
  EXPECT_EQ(c.outputShape("w").status().message(),
            "no output is named 'w'; the engine's outputs are 'y', 'z'");
  std::vector<float> y(16);
  EXPECT_EQ(c.setOutput("y", y.data(), 64).message(), "");
  EXPECT_EQ(c.run().message(),
            "the output 'y' has the shape 4x16 and needs 256 "
            "bytes, but 64 were given");
  EXPECT_TRUE(c.allocateOutput("y").isOk());
  EXPECT_TRUE(c.run().isOk());
}

TEST_F(CpuEngine, NoProgramForTheDevice) {
  manifest.programs[0].variants.push_back(manifest.programs[0].variants[0]);
  manifest.programs[0].variants[0].arch = "x86-64-v9";
  manifest.programs[0].variants[1].arch = "armv9";
  auto engine = charonia::Engine::load(write());
  ASSERT_TRUE(engine.isOk());
  EXPECT_EQ(engine->createContext().status().message(),
            "no program of the engine runs on this CPU (" +
                cpu::archOfLevel(cpu::detectLevel()) +
                "); the file holds cpu fp32 (x86-64-v9, armv9)");
  EXPECT_EQ(engine->createContext({DeviceKind::Cuda}).status().message(),
            "the engine has no program for cuda; the file holds cpu fp32 "
            "(x86-64-v9, armv9)");
  ContextOptions options;
  options.precision = "fp16";
  EXPECT_EQ(engine->createContext({}, options).status().message(),
            "the engine has no fp16 program for cpu; the file holds cpu fp32 "
            "(x86-64-v9, armv9)");
}

TEST_F(CpuEngine, DamagedCodeIsNotRun) {
  std::string path = write();
  auto bytes = readBytes(path);
  auto clean = charonia::Engine::load(bytes);
  ASSERT_TRUE(clean.isOk());
  EXPECT_TRUE(clean->createContext().isOk());
  // The code section starts at the third page.
  ASSERT_TRUE(std::equal(code.begin(), code.end(), bytes.begin() + 8192));
  bytes[8192 + 70] ^= std::byte(1);
  auto engine = charonia::Engine::load(bytes);
  ASSERT_TRUE(engine.isOk());
  EXPECT_EQ(engine->createContext().status().message(),
            "the engine in memory cannot be used: it is damaged: the checksum "
            "of the section 'code' does not match");
  // Not even where weights are trusted.
  LoadOptions options;
  options.verifyWeights = false;
  engine = charonia::Engine::load(bytes, options);
  ASSERT_TRUE(engine.isOk());
  EXPECT_EQ(engine->createContext().status().code(), StatusCode::Corrupt);
}

TEST_F(CpuEngine, SizesThatContradictTheSignature) {
  manifest.programs[0].buffers[0].size = 4096;
  Context c = context();
  auto x = input(1, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {1, 16}, x.data()}).isOk());
  EXPECT_EQ(c.run().message(),
            "the engine's program does not fit this shape: a buffer of 4096 "
            "bytes stands for a tensor of 64");
}

/// What is found when a shape is bound: the manifest's rules cannot see it.
TEST_F(CpuEngine, StepsThatAreMisalignedOrOverlap) {
  auto message = [&](auto change) {
    Manifest original = manifest;
    change(manifest.programs[0]);
    Context c = context();
    manifest = original;
    auto x = input(2, 1);
    Status set = c.setInput("x", {DType::Float32, {2, 16}, x.data()});
    return set ? c.run().message() : set.message();
  };
  std::string prefix = "the engine's program does not fit this shape: ";
  // An alias inside of the input, an output and a weight.
  for (uint32_t root : {0u, 3u, 1u})
    EXPECT_EQ(message([&](Program &p) {
                Buffer alias;
                alias.alias = root, alias.aliasOffset = 32, alias.size = 32;
                alias.lastStep = 3;
                p.buffers.push_back(alias);
              }),
              prefix +
                  "buffer 5 is not aligned inside the buffer that it is an "
                  "alias of");
  EXPECT_EQ(message([](Program &p) {
              p.steps[2].args = {{4, 4}, {4, 0}};
              p.steps[2].bytes = 64;
            }),
            prefix + "a copy's source and destination overlap");
  EXPECT_EQ(message([](Program &p) {
              p.steps[2].args = {{4, 64}, {4, 0}};
              p.steps[2].bytes = 64;
            }),
            "");
  EXPECT_EQ(message([](Program &p) { p.steps[3].args[0].offset = 2; }),
            prefix + "a fill is not aligned to its pattern");
}

TEST_F(CpuEngine, AnAliasOfTheCallersMemoryIsAsAlignedAsItSays) {
  // The kernel reads x through an alias of 64 bytes' alignment.
  Buffer alias;
  alias.alias = 0, alias.size = ShapeExpr::symbol(0) * 64, alias.lastStep = 1;
  Program &p = manifest.programs[0];
  p.buffers.push_back(alias);
  p.steps[0].args[0].buffer = 5;
  Context c = context();
  std::vector<float> memory(64 * 17);
  auto *x = memory.data();
  while (reinterpret_cast<uintptr_t>(x) % 64 != 16)
    ++x;
  auto values = input(8, 1);
  std::ranges::copy(values, x);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {8, 16}, x}).isOk());
  ASSERT_TRUE(c.run().isOk());
  expectOutputs(floats(*c.output("y")), floats(*c.output("z")), values);
}

TEST_F(CpuEngine, StepsThatLeaveTheirBuffers) {
  manifest.programs[0].steps[2].bytes = 128;
  Context c = context();
  auto x = input(1, 1);
  ASSERT_TRUE(c.setInput("x", {DType::Float32, {1, 16}, x.data()}).isOk());
  EXPECT_EQ(c.run().message(), "the engine's program does not fit this shape: "
                               "a step leaves buffer 4");
}

} // namespace
