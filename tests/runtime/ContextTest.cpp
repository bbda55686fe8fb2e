// What is left of a context after a failure or a new binding; how engines are
// trusted.

#include "CpuEngine.h"

#include "runtime/engine/Sha256.h"
#include "runtime/exec/ExecutionPlan.h"

#include <cctype>

#include <cstring>
#include <malloc.h>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

constexpr const char *failed =
    "there is no output 'y', since the last run failed; run the context again";
constexpr const char *boundAnew =
    "the output 'y' was bound anew after the last "
    "run; run the context to have it";

class ContextState : public CpuEngine {
protected:
  Status bind(Context &c, int64_t batch) {
    x = input(batch, 1);
    return c.setInput("x", {DType::Float32, {batch, 16}, x.data()});
  }
  static std::string outputError(const Context &c) {
    auto y = c.output("y");
    return y ? "ok" : y.status().message();
  }
  std::vector<float> x;
};

TEST_F(ContextState, AfterAFailedRunThereAreNoOutputs) {
  Context c = context();
  ASSERT_TRUE(bind(c, 4).isOk() && c.run().isOk());
  EXPECT_EQ(outputError(c), "ok");
  ASSERT_TRUE(bind(c, 65).isOk()); // Out of range: found when it runs.
  EXPECT_EQ(outputError(c), "ok");
  EXPECT_FALSE(c.run().isOk());
  EXPECT_EQ(outputError(c), failed);
  ASSERT_TRUE(bind(c, 3).isOk() && c.run().isOk());
  EXPECT_EQ(c.output("y")->shape, (std::vector<int64_t>{3, 16}));
}

TEST_F(ContextState, MemoryThatIsTooSmallIsNeverAnOutput) {
  Context c = context();
  ASSERT_TRUE(bind(c, 4).isOk() && c.run().isOk());
  float small[1];
  ASSERT_TRUE(c.setOutput("y", small, sizeof(small)).isOk());
  EXPECT_EQ(outputError(c), boundAnew);
  EXPECT_EQ(c.run().message(),
            "the output 'y' has the shape 4x16 and needs 256 "
            "bytes, but 4 were given");
  EXPECT_EQ(outputError(c), failed);
  // Other outputs are those of the run that failed, too.
  EXPECT_FALSE(c.output("z").isOk());
}

TEST_F(ContextState, BindingAnewInvalidatesThatOutput) {
  Context c = context();
  EXPECT_EQ(outputError(c), "there is no output before a run");
  ASSERT_TRUE(c.allocateOutput("y").isOk());
  EXPECT_EQ(outputError(c), "there is no output before a run");
  ASSERT_TRUE(bind(c, 4).isOk() && c.run().isOk());
  ASSERT_TRUE(c.allocateOutput("y").isOk());
  EXPECT_EQ(outputError(c), boundAnew);
  EXPECT_TRUE(c.output("z").isOk());
  ASSERT_TRUE(c.run().isOk());
  expectOutputs(floats(*c.output("y")), floats(*c.output("z")), x);
}

TEST_F(ContextState, OutputsOutliveTheirPlan) {
  Context c = context();
  ASSERT_TRUE(bind(c, 4).isOk() && c.run().isOk());
  // More shapes than plans are kept, none of them run.
  std::vector<float> data(64 * 16);
  for (int64_t round : {0, 1})
    for (int64_t batch = round ? 0 : 5; batch <= 64; ++batch) {
      ASSERT_TRUE(
          c.setInput("x", {DType::Float32, {batch, 16}, data.data()}).isOk());
      ASSERT_TRUE(c.outputShape("y").isOk());
    }
  EXPECT_EQ(c.output("y")->shape, (std::vector<int64_t>{4, 16}));
  expectOutputs(floats(*c.output("y")), floats(*c.output("z")), x);
}

/// y has 4 bytes for n = 1 and more than there are addresses for n = 2.
class HugeEngine : public CpuEngine {
protected:
  enum What { AnOutput, TheArena };
  Context make(What what) {
    ShapeExpr n = ShapeExpr::symbol(0);
    ShapeExpr bytes = max(4, (n - 1) * (int64_t(1) << 56));
    manifest = Manifest();
    manifest.signature.symbols = {{"n", 1, 1, 2, 1}};
    manifest.signature.inputs = {{"x", DType::UInt8, {n}}};
    manifest.signature.outputs = {
        {"y", DType::UInt8, {what == AnOutput ? bytes : ShapeExpr(4)}}};
    Program p;
    Buffer y, t;
    y.kind = Buffer::Kind::Output;
    y.size = what == AnOutput ? bytes : ShapeExpr(4);
    t.size = bytes;
    p.buffers = {y};
    if (what == TheArena)
      p.buffers.push_back(t);
    Step fill;
    fill.kind = Step::Kind::Fill, fill.args = {{0, 0}}, fill.bytes = 4;
    fill.pattern = 7;
    p.steps = {fill};
    p.variants = {variant("x86-64-v3", {}, 1)};
    manifest.programs = {p};
    return context();
  }
  static Status runWith(Context &c, int64_t n) {
    static const uint8_t data[2] = {};
    Status set = c.setInput("x", {DType::UInt8, {n}, data});
    return set ? c.run() : set;
  }
};

TEST_F(HugeEngine, AllocationsThatFail) {
  for (What what : {AnOutput, TheArena}) {
    Context c = make(what);
    ASSERT_TRUE(runWith(c, 1).isOk());
    EXPECT_EQ(static_cast<const uint8_t *>(c.output("y")->data)[3], 7);
    Status status = runWith(c, 2);
    EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
    EXPECT_EQ(status.message(),
              std::string("out of memory: cannot get 72057594037927936 bytes "
                          "for ") +
                  (what == AnOutput ? "an output" : "intermediate results"));
    EXPECT_EQ(c.output("y").status().message(), failed);
    // The context is as good as before.
    ASSERT_TRUE(runWith(c, 1).isOk());
    EXPECT_EQ(static_cast<const uint8_t *>(c.output("y")->data)[3], 7);
  }
}

TEST_F(ContextState, MemoryDoesNotGrow) {
  Context c = context();
  auto all = [&] {
    for (int64_t batch = 0; batch <= 64; ++batch)
      ASSERT_TRUE(bind(c, batch).isOk() && c.run().isOk());
  };
  all(), all();
  struct mallinfo2 before = mallinfo2();
  for (int round = 0; round < 30; ++round)
    all();
  struct mallinfo2 after = mallinfo2();
  EXPECT_LE(after.uordblks, before.uordblks + 4096);
  EXPECT_LE(after.hblkhd, before.hblkhd);
}

TEST_F(ContextState, OutputsMustNotOverlap) {
  Context c = context();
  ASSERT_TRUE(bind(c, 4).isOk());
  std::vector<float> memory(4 * 16 * 2);
  ASSERT_TRUE(c.setOutput("y", memory.data(), 4 * 64).isOk());
  ASSERT_TRUE(c.setOutput("z", memory.data() + 60, 4 * 64).isOk());
  EXPECT_EQ(c.run().message(),
            "the memory that was given for the outputs 'y' and 'z' overlaps");
  ASSERT_TRUE(c.setOutput("z", memory.data() + 64, 4 * 64).isOk());
  ASSERT_TRUE(c.run().isOk());
  expectOutputs(memory.data(), memory.data() + 64, x);
}

TEST_F(ContextState, NumbersThatAreNoEnumerators) {
  Context c = context();
  float data[16] = {};
  // 257 is float32 in its lowest eight bits.
  EXPECT_EQ(c.setInput("x", {static_cast<DType>(257), {1, 16}, data}).message(),
            "the input 'x' takes float32 [batch, 16], not a type of the number "
            "257");
  EXPECT_EQ(
      c.setInput("x", {DType::Float32, {1, 16}, data, static_cast<Memory>(256)})
          .message(),
      "the input 'x' is in memory of the kind 256; there are 0, the "
      "host's, and 1, the device's");
  EXPECT_FALSE(c.setOutput("y", data, 64, static_cast<Memory>(7)).isOk());
  EXPECT_FALSE(c.allocateOutput("y", static_cast<Memory>(-1)).isOk());
  auto engine = charonia::Engine::load(write());
  EXPECT_EQ(
      engine->createContext({static_cast<DeviceKind>(257)}).status().message(),
      "there is no kind of device with the number 257");
  EXPECT_EQ(engine->createContext({DeviceKind::Cpu, 7}).status().message(),
            "there is no CPU 7: all processors are one device, of index 0");
  EXPECT_FALSE(isValidDType(257));
  EXPECT_EQ(dtypeBits(static_cast<DType>(257)), 0u);
}

class MovedDeathTest : public ContextState {
protected:
  void SetUp() override {
    CpuEngine::SetUp();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(MovedDeathTest, WhatWasMovedFromIsNotUsed) {
  const char *message =
      "charonia: the Context that was used had been moved from";
  Context c = context();
  Context taken = std::move(c);
  EXPECT_DEATH((void)c.run(), message);
  EXPECT_DEATH((void)c.signature(), message);
  EXPECT_DEATH((void)bind(c, 4), message);
  c = std::move(taken);
  ASSERT_TRUE(bind(c, 4).isOk() && c.run().isOk());
  auto engine = *charonia::Engine::load(write());
  auto other = std::move(engine);
  EXPECT_DEATH((void)engine.createContext(),
               "charonia: the Engine that was used had been moved from");
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

TEST_F(ContextState, DamagedWeightsAreNotUsed) {
  auto bytes = readBytes(write());
  bytes.back() ^= std::byte(1);
  auto engine = charonia::Engine::load(bytes);
  ASSERT_TRUE(engine.isOk());
  EXPECT_EQ(engine->createContext().status().message(),
            "the engine in memory cannot be used: it is damaged: the checksum "
            "of the section 'weights' does not match");
  LoadOptions options;
  options.verifyWeights = false;
  engine = charonia::Engine::load(bytes, options);
  ASSERT_TRUE(engine.isOk());
  EXPECT_TRUE(engine->createContext().isOk());
}

TEST_F(ContextState, HostCodeCanBeRefused) {
  LoadOptions options;
  options.allowHostCode = false;
  auto engine = charonia::Engine::load(write(), options);
  ASSERT_TRUE(engine.isOk());
  Status status = engine->createContext().status();
  EXPECT_EQ(status.code(), StatusCode::FailedPrecondition);
  EXPECT_EQ(status.message(),
            "the engine was loaded with LoadOptions::allowHostCode = false, so "
            "its code is not run on the CPU; load it without, or make the "
            "context on a GPU");
}

TEST_F(ContextState, PinnedByDigest) {
  std::string path = write();
  auto engine = charonia::Engine::load(path);
  ASSERT_TRUE(engine.isOk());
  std::string digest = *engine->digest();
  // The tool that everyone has.
  FILE *pipe = popen(("sha256sum < " + path).c_str(), "r");
  char printed[65] = {};
  ASSERT_EQ(fread(printed, 1, 64, pipe), 64u);
  pclose(pipe);
  EXPECT_EQ(digest, printed);

  LoadOptions options;
  options.digest = digest;
  for (char &c : options.digest)
    c = static_cast<char>(std::toupper(c));
  auto pinned = charonia::Engine::load(path, options);
  ASSERT_TRUE(pinned.isOk()) << pinned.status().message();
  Context c = *pinned->createContext();
  // What happens to the file no longer matters.
  auto bytes = readBytes(path);
  {
    std::ofstream(path, std::ios::binary) << "gone";
  }
  ASSERT_TRUE(bind(c, 4).isOk() && c.run().isOk());
  expectOutputs(floats(*c.output("y")), floats(*c.output("z")), x);

  EXPECT_TRUE(charonia::Engine::load(bytes, options).isOk());
  // Damage that the engine's own checksums would never show: its author's.
  bytes.back() ^= std::byte(1);
  std::string other = sha256(bytes);
  EXPECT_EQ(
      charonia::Engine::load(bytes, options).status().message(),
      "the engine in memory cannot be used: it is not the pinned file: its "
      "SHA-256 is " +
          other + ", expected was " + digest);
  for (std::string bad : {std::string("abc"), std::string(64, 'g')}) {
    options.digest = bad;
    EXPECT_EQ(charonia::Engine::load(bytes, options).status().message(),
              "the engine in memory cannot be used: the expected digest '" +
                  bad + "' is not a SHA-256 of 64 hexadecimal digits");
  }
}

TEST_F(ContextState, PinnedBorrowedMemoryIsCopied) {
  auto bytes = readBytes(write());
  std::byte *page = static_cast<std::byte *>(
      std::aligned_alloc(4096, (bytes.size() + 4095) / 4096 * 4096));
  std::memcpy(page, bytes.data(), bytes.size());
  LoadOptions options;
  options.borrowMemory = true;
  options.digest = sha256(bytes);
  auto engine = charonia::Engine::load({page, bytes.size()}, options);
  // What happens to the caller's bytes no longer matters, nor that they go.
  std::memset(page, 0xee, bytes.size());
  std::free(page);
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  EXPECT_EQ(*engine->digest(), options.digest);
  Context c = *engine->createContext();
  ASSERT_TRUE(bind(c, 4).isOk() && c.run().isOk());
  expectOutputs(floats(*c.output("y")), floats(*c.output("z")), x);
}

TEST_F(ContextState, OnlyAnEngineIsReadForItsDigest) {
  std::string path = write();
  LoadOptions options;
  options.digest = std::string(64, '0');
  auto error = [&] {
    return charonia::Engine::load(path, options).status().message();
  };
  std::string refused = "the engine '" + path + "' cannot be used: ";
  auto size = std::filesystem::file_size(path);
  // More than there is memory, and nothing of it on the disk.
  std::filesystem::resize_file(path, uint64_t(1) << 40);
  EXPECT_EQ(error(), refused + "it is damaged: the header tells of " +
                         std::to_string(size) +
                         " bytes, but there are 1099511627776");
  std::filesystem::resize_file(path, 0);
  std::filesystem::resize_file(path, uint64_t(1) << 40);
  EXPECT_EQ(error(), refused + "it is not a Charonia engine");
  options.digest = "abc";
  EXPECT_EQ(error(), refused + "the expected digest 'abc' is not a SHA-256 of "
                               "64 hexadecimal digits");
}

TEST(Sha256, KnownDigests) {
  auto of = [](const std::string &text) {
    return sha256(std::as_bytes(std::span(text)));
  };
  // FIPS 180-4's examples, and lengths around the padding's two forms.
  EXPECT_EQ(of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(of(std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

Result<std::unique_ptr<exec::ExecutionPlan>> planAt(const Manifest &m,
                                                    int64_t batch) {
  return exec::makeExecutionPlan(m.signature, m.programs[1],
                                 m.programs[1].variants[0], {{batch}});
}

TEST(ExecutionPlan, IndicesOfHalfTheBitsCountSoFar) {
  Manifest m = sampleManifest();
  ShapeExpr batch = ShapeExpr::symbol(0);
  ShapeExpr &indexed = m.programs[1].variants[0].kernels[1].indexed;
  indexed = batch * (int64_t(1) << 26);
  EXPECT_TRUE(planAt(m, 31).isOk());
  Status status = planAt(m, 32).status();
  EXPECT_EQ(status.code(), StatusCode::OutOfRange);
  EXPECT_EQ(status.message(),
            "kernel 'relu' has to tell 2147483648 elements apart at batch = 32 "
            "(its largest tensor is 't'), and was compiled to tell 2146435072; "
            "compile with a --shape whose optimum is that large");
  indexed = batch * 2146435072;
  EXPECT_TRUE(planAt(m, 1).isOk());
  indexed = batch * 2146435072 + 1;
  EXPECT_EQ(planAt(m, 1).status().code(), StatusCode::OutOfRange);
  indexed = batch * (int64_t(1) << 60);
  EXPECT_NE(planAt(m, 64).status().message().find("2^63 or more elements"),
            std::string::npos);
}

/// Of program 1, a message without what all of them begin with.
std::string mapError(const Manifest &m, int64_t batch) {
  Status status = planAt(m, batch).status();
  EXPECT_EQ(status.code(), StatusCode::Corrupt);
  std::string prefix = "the engine's program does not fit this shape: tensor ";
  EXPECT_EQ(status.message().substr(0, prefix.size()), prefix);
  return status.message().substr(
      std::min(prefix.size(), status.message().size()));
}

TEST(ExecutionPlan, TensorMapsAreEvaluated) {
  Manifest m = sampleManifest();
  const KernelCode &code = m.programs[1].variants[0].kernels[0];
  for (int64_t batch : {1, 64}) {
    auto plan = planAt(m, batch);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    const auto &maps = (*plan)->steps[0].maps;
    ASSERT_EQ(maps.size(), 2u);
    EXPECT_EQ(maps[0].map, &code.maps[0]);
    EXPECT_EQ(maps[0].extents, (std::vector<int64_t>{16, batch}));
    EXPECT_EQ(maps[0].strides, (std::vector<int64_t>{64}));
    EXPECT_EQ(maps[1].extents, (std::vector<int64_t>{16, 4, 2, 2}));
    EXPECT_EQ(maps[1].strides, (std::vector<int64_t>{32, 128, 256}));
    EXPECT_TRUE((*plan)->steps[1].maps.empty());
  }
}

TEST(ExecutionPlan, SizesOfTensorMaps) {
  Manifest m = sampleManifest();
  ShapeExpr batch = ShapeExpr::symbol(0);
  KernelCode &code = m.programs[1].variants[0].kernels[0];
  const KernelCode good = code;
  TensorMap &map = code.maps[0], &pixels = code.maps[1];
  const std::string of = "map 0 of kernel 'gemm_bias': ";
  map.extents[1] = batch - 4;
  EXPECT_EQ(mapError(m, 4), of + "extent 1 is 0, not 1 to 2147482624");
  EXPECT_EQ(mapError(m, 3), of + "extent 1 is -1, not 1 to 2147482624");
  // Nothing is launched, nothing is encoded.
  code.grid = batch - 4;
  EXPECT_TRUE((*planAt(m, 4))->steps[0].maps.empty());
  code = good;
  map.extents[1] = batch + (int64_t(1) << 32);
  EXPECT_EQ(mapError(m, 1), of + "extent 1 is 4294967297, not 1 to 2147482624");
  map.extents[1] = batch + INT64_MAX;
  EXPECT_EQ(planAt(m, 1).status().code(), StatusCode::Corrupt);
  code = good;
  const std::string strides =
      ", not a multiple of 16 from 0 to below 1099511627776";
  map.strides[0] = batch * 8;
  EXPECT_EQ(mapError(m, 3), of + "stride 0 is 24" + strides);
  EXPECT_TRUE(planAt(m, 4).isOk());
  map.strides[0] = batch * -16;
  EXPECT_EQ(mapError(m, 3), of + "stride 0 is -48" + strides);
  map.strides[0] = int64_t(1) << 40;
  EXPECT_EQ(mapError(m, 3), of + "stride 0 is 1099511627776" + strides);
  code = good;
  pixels.extents[2] = 1, pixels.lower[1] = 1, pixels.upper[1] = 0;
  EXPECT_EQ(mapError(m, 3), "map 1 of kernel 'gemm_bias': there is no base "
                            "pixel along dimension 2");
  pixels.upper[1] = 1;
  EXPECT_TRUE(planAt(m, 3).isOk());
}

TEST(ExecutionPlan, TensorMapsStayInTheirBuffers) {
  Manifest m = sampleManifest();
  ShapeExpr batch = ShapeExpr::symbol(0);
  Program &p = m.programs[1];
  KernelCode &code = p.variants[0].kernels[0];
  const Manifest good = m;
  const std::string of = "map 0 of kernel 'gemm_bias': ";
  // The last row may be shorter than the rows are apart, and the last byte is
  // the buffer's.
  code.maps[0].extents[1] = batch + 1;
  EXPECT_EQ(mapError(m, 4),
            of + "it takes 320 bytes from byte 0 of buffer 0, which has 256");
  code.maps[0].strides[0] = 48;
  EXPECT_TRUE(planAt(m, 4).isOk());
  code.maps[0].strides[0] = 0; // The same row again and again.
  EXPECT_TRUE(planAt(m, 4).isOk());
  m = good;
  p.steps[0].args[0].offset = 16;
  EXPECT_EQ(mapError(m, 4),
            of + "it takes 256 bytes from byte 16 of buffer 0, which has 256");
  code.maps[0].extents[1] = batch - 1;
  EXPECT_TRUE(planAt(m, 4).isOk());
  p.steps[0].args[0].offset = 8;
  EXPECT_EQ(mapError(m, 4),
            of + "byte 8 of buffer 0, where it begins, is not aligned to 16");
  // A weight's own place counts, too.
  m = good;
  p.buffers[1].weightOffset = 8, p.buffers[1].alignment = 8;
  EXPECT_EQ(mapError(m, 4),
            "map 1 of kernel 'gemm_bias': byte 0 of buffer 1, where it begins, "
            "is not aligned to 16");
  // Neither a product nor the sum of products that have no 64 bits is small.
  m = good;
  constexpr int64_t extent = (int64_t(1) << 31) - 1024,
                    stride = (int64_t(1) << 40) - 16;
  TensorMap &map = code.maps[0];
  map.extents[1] = extent, map.strides[0] = stride;
  EXPECT_EQ(mapError(m, 4), of + "it takes 2^64 bytes or more from byte 0 of "
                                 "buffer 0, which has 256");
  map.extents[1] = (int64_t(1) << 24) + 1;
  EXPECT_NE(mapError(m, 4).find("it takes 18446744073441116224 bytes from"),
            std::string::npos)
      << mapError(m, 4);
  map.extents.assign(5, (int64_t(1) << 24) + 1);
  map.strides.assign(4, stride);
  EXPECT_NE(mapError(m, 4).find("it takes 2^64 bytes or more"),
            std::string::npos);
}

TEST(ExecutionPlan, TensorMapsAlignTheCallersMemory) {
  Manifest m = sampleManifest();
  Program &p = m.programs[1];
  p.buffers[0].alignment = p.buffers[4].alignment = 4;
  // y instead of t: an output that the kernel knows by a map.
  p.buffers[4].firstStep = 0;
  p.steps[0].args[2].buffer = 4;
  TensorMap rows = rowsMap();
  rows.argument = 2;
  p.variants[0].kernels[0].maps.push_back(rows);
  auto plan = planAt(m, 4);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ((*plan)->inputs[0].alignment, 16u);
  EXPECT_EQ((*plan)->outputs[0].alignment, 16u);
  p.variants[0].kernels[0].maps.clear();
  EXPECT_EQ((*planAt(m, 4))->inputs[0].alignment, 4u);
}

TEST(ExecutionPlan, CountsWhatStepsHold) {
  Manifest m = sampleManifest();
  size_t before = (*planAt(m, 4))->bytes();
  Step &launch = m.programs[1].steps[0];
  launch.args.resize(launch.args.size() + 1000, launch.args[0]);
  size_t more = (*planAt(m, 4))->bytes();
  EXPECT_EQ(more, before + 1000 * sizeof(exec::Location));
  launch.symbols.resize(launch.symbols.size() + 1000, 0);
  EXPECT_EQ((*planAt(m, 4))->bytes(), more + 1000 * sizeof(int64_t));
  more = (*planAt(m, 4))->bytes();
  auto &maps = m.programs[1].variants[0].kernels[0].maps;
  maps.resize(10, rowsMap());
  EXPECT_EQ((*planAt(m, 4))->bytes(),
            more + 8 * (sizeof(exec::PlannedMap) + 3 * sizeof(int64_t)));
}

} // namespace
