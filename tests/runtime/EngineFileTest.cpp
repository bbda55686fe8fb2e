#include "TestEngine.h"

#include "runtime/engine/Format.h"
#include "runtime/engine/Reader.h"
#include "runtime/engine/Writer.h"

#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

struct Sample {
  std::vector<std::byte> code = randomBytes(600, 1);
  std::vector<std::byte> weights = randomBytes(5000, 2);
  Manifest manifest = sampleManifest();

  Writer writer() const {
    Writer w;
    w.addSection(SectionKind::Code, "code", code);
    w.addSection(SectionKind::Weights, "weights", weights);
    return w;
  }
};

TEST(EngineFile, RoundTrip) {
  TempDir dir;
  Sample sample;
  makeWave(sample.manifest.programs[1]);
  Status status = sample.writer().write(sample.manifest, dir / "a.engine");
  ASSERT_TRUE(status.isOk()) << status.message();
  auto reader = Reader::open(dir / "a.engine");
  ASSERT_TRUE(reader.isOk()) << reader.status().message();
  EXPECT_EQ((*reader)->manifest(), sample.manifest);
  ASSERT_EQ((*reader)->sections().size(), 2u);
  EXPECT_TRUE(std::ranges::equal((*reader)->section(0), sample.code));
  EXPECT_TRUE(std::ranges::equal((*reader)->section(1), sample.weights));
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*reader)->section(1).data()) % 4096,
            0u);
  EXPECT_TRUE((*reader)->verifyAll().isOk());
  EXPECT_EQ((*reader)->range({1, 100, 50}).data(),
            (*reader)->section(1).data() + 100);
  EXPECT_EQ(dir.count(), 1u);
}

TEST(EngineFile, SameInputSameBytes) {
  TempDir dir;
  Sample sample;
  ASSERT_TRUE(sample.writer().write(sample.manifest, dir / "a.engine").isOk());
  // Streamed in odd pieces: still the same bytes.
  Writer streamed;
  auto stream = [](std::span<const std::byte> bytes) {
    return [bytes](SectionSink &sink) {
      for (size_t i = 0; i < bytes.size(); i += 77)
        CHARONIA_RETURN_IF_ERROR(sink.write(
            bytes.subspan(i, std::min<size_t>(77, bytes.size() - i))));
      return Status::ok();
    };
  };
  streamed.addSection(SectionKind::Code, "code", sample.code.size(),
                      stream(sample.code));
  streamed.addSection(SectionKind::Weights, "weights", sample.weights.size(),
                      stream(sample.weights));
  ASSERT_TRUE(streamed.write(sample.manifest, dir / "b.engine").isOk());
  EXPECT_EQ(readBytes(dir / "a.engine"), readBytes(dir / "b.engine"));
  // And in memory.
  std::vector<std::byte> bytes;
  ASSERT_TRUE(sample.writer().write(sample.manifest, bytes).isOk());
  EXPECT_EQ(readBytes(dir / "a.engine"), bytes);
}

TEST(EngineFile, FromMemory) {
  TempDir dir;
  Sample sample;
  ASSERT_TRUE(sample.writer().write(sample.manifest, dir / "a.engine").isOk());
  auto bytes = readBytes(dir / "a.engine");
  auto copied = Reader::fromMemory(bytes, /*borrow=*/false);
  ASSERT_TRUE(copied.isOk()) << copied.status().message();
  EXPECT_TRUE((*copied)->verifyAll().isOk());
  auto *page = static_cast<std::byte *>(std::aligned_alloc(4096, 1 << 16));
  ASSERT_LE(bytes.size(), size_t(1) << 16);
  std::ranges::copy(bytes, page);
  auto borrowed = Reader::fromMemory({page, bytes.size()}, /*borrow=*/true);
  ASSERT_TRUE(borrowed.isOk()) << borrowed.status().message();
  EXPECT_EQ((*borrowed)->section(0).data(),
            page + (*borrowed)->sections()[0].offset);
  EXPECT_FALSE(Reader::fromMemory({page + 1, bytes.size() - 1}, true).isOk());
  borrowed = Status(StatusCode::NotFound, "");
  std::free(page);
}

TEST(EngineFile, CodeSectionSharesEqualPieces) {
  CodeSection code(3);
  auto a = randomBytes(100, 1), b = randomBytes(100, 2);
  Range first = code.add(a);
  Range second = code.add(b);
  EXPECT_EQ(code.add(a), first);
  EXPECT_EQ(first, (Range{3, 0, 100}));
  EXPECT_EQ(second, (Range{3, 128, 100}));
  Range text = code.addText("ptx");
  EXPECT_EQ(text.size, 3u);
  EXPECT_EQ(code.bytes()[text.offset + 3], std::byte(0));
  EXPECT_EQ(code.addText("ptx"), text);
}

TEST(EngineFile, FailingProducerLeavesTheOldFile) {
  TempDir dir;
  Sample sample;
  ASSERT_TRUE(sample.writer().write(sample.manifest, dir / "a.engine").isOk());
  auto before = readBytes(dir / "a.engine");
  auto attempt = [&](SectionProducer producer) {
    Writer w;
    w.addSection(SectionKind::Code, "code", sample.code);
    w.addSection(SectionKind::Weights, "weights", 5000, std::move(producer));
    Status status = w.write(sample.manifest, dir / "a.engine");
    EXPECT_FALSE(status.isOk());
    EXPECT_EQ(readBytes(dir / "a.engine"), before);
    EXPECT_EQ(dir.count(), 1u);
    return status.message();
  };
  EXPECT_EQ(attempt([](SectionSink &) {
              return Status(StatusCode::Internal, "prepare failed");
            }),
            "prepare failed");
  EXPECT_EQ(attempt([](SectionSink &sink) { return sink.write("abc", 3); }),
            "the section 'weights' has fewer bytes than announced");
  EXPECT_EQ(attempt([](SectionSink &sink) {
              std::vector<char> bytes(5001);
              return sink.write(bytes.data(), bytes.size());
            }),
            "the section 'weights' has more bytes than announced");
}

TEST(EngineFile, NoSpaceLeavesNothing) {
  TempDir dir;
  Sample sample;
  // A limit on the size of files stands for a full disk: write() fails midway.
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{8192, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  Status status = sample.writer().write(sample.manifest, dir / "a.engine");
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.isOk());
  EXPECT_EQ(status.code(), StatusCode::Io);
  EXPECT_EQ(status.message(),
            "cannot write '" + (dir / "a.engine") + "': File too large");
  EXPECT_EQ(dir.count(), 0u);
}

TEST(EngineFile, FullDiskLeavesNothing) {
  TempDir dir;
  Sample sample;
  constexpr int skipped = 77;
  int code = inChild([&] {
    // A file system of 16 KiB, seen by this process alone.
    if (geteuid() != 0 && unshare(CLONE_NEWUSER) != 0)
      return skipped;
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", (dir / "").c_str(), "tmpfs", 0, "size=16k") != 0)
      return skipped;
    Writer w = sample.writer();
    std::vector<std::byte> large(1 << 20);
    w.addSection(SectionKind::Other, "large", large);
    Status status = w.write(sample.manifest, dir / "a.engine");
    if (status.message() !=
        "cannot write '" + (dir / "a.engine") + "': No space left on device")
      return 1;
    if (dir.count() != 0)
      return 2;
    return 0;
  });
  if (code == skipped)
    GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(code, 0);
}

TEST(EngineFile, AKilledWriterLeavesNothing) {
  TempDir dir;
  int probe = open((dir / "").c_str(), O_TMPFILE | O_RDWR, 0600);
  if (probe < 0)
    GTEST_SKIP() << "this file system has no files without names";
  close(probe);
  Sample sample;
  EXPECT_EQ(inChild([&] {
              Writer w;
              w.addSection(SectionKind::Code, "code", sample.code);
              w.addSection(SectionKind::Weights, "weights", 5000,
                           [&](SectionSink &sink) {
                             Status status = sink.write(sample.weights);
                             raise(SIGKILL);
                             return status;
                           });
              return w.write(sample.manifest, dir / "a.engine").isOk();
            }),
            -1);
  EXPECT_EQ(dir.count(), 0u);
}

TEST(EngineFile, WhereOneCannotWrite) {
  TempDir dir;
  Sample sample;
  Writer w = sample.writer();
  auto message = [&](const std::string &path) {
    return w.write(sample.manifest, path).message();
  };
  EXPECT_EQ(message(dir / "no/a.engine"), "cannot write '" +
                                              (dir / "no/a.engine") +
                                              "': No such file or directory");
  EXPECT_EQ(message(dir / ""),
            "cannot write '" + (dir / "") + "': it is a directory");
  EXPECT_EQ(message("/dev/null"),
            "cannot write '/dev/null': it is not a regular file");
}

TEST(EngineFile, FollowsSymbolicLinks) {
  TempDir dir;
  Sample sample;
  std::ofstream(dir / "real.engine") << "old";
  std::filesystem::create_symlink("real.engine", dir / "link.engine");
  ASSERT_TRUE(
      sample.writer().write(sample.manifest, dir / "link.engine").isOk());
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link.engine"));
  EXPECT_TRUE(Reader::open(dir / "real.engine").isOk());
}

TEST(EngineFile, OpenErrors) {
  TempDir dir;
  auto message = [&](const std::string &path) {
    auto reader = Reader::open(path);
    EXPECT_FALSE(reader.isOk());
    return reader.status().message();
  };
  EXPECT_EQ(message(dir / "none.engine"), "cannot open the engine '" +
                                              (dir / "none.engine") +
                                              "': No such file or directory");
  EXPECT_EQ(message(dir / ""),
            "cannot open the engine '" + (dir / "") + "': Is a directory");
  std::ofstream(dir / "empty.engine");
  EXPECT_EQ(message(dir / "empty.engine"),
            "the engine '" + (dir / "empty.engine") +
                "' cannot be used: it is not a Charonia engine");
  std::ofstream(dir / "text.engine") << std::string(500, 'x');
  EXPECT_EQ(message(dir / "text.engine"),
            "the engine '" + (dir / "text.engine") +
                "' cannot be used: it is not a Charonia engine");
  ASSERT_EQ(mkfifo((dir / "fifo.engine").c_str(), 0600), 0);
  EXPECT_NE(message(dir / "fifo.engine").find("cannot open"),
            std::string::npos);
}

TEST(EngineFile, NewerVersionIsToldApart) {
  TempDir dir;
  Sample sample;
  ASSERT_TRUE(sample.writer().write(sample.manifest, dir / "a.engine").isOk());
  auto bytes = readBytes(dir / "a.engine");
  bytes[8] = std::byte(formatVersion + 1);
  auto reader = Reader::fromMemory(bytes, false);
  ASSERT_FALSE(reader.isOk());
  EXPECT_EQ(reader.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(reader.status().message(),
            "the engine in memory cannot be used: it has format version 9, but "
            "this runtime reads version 8; compile the model again with the "
            "matching compiler");
}

//===----------------------------------------------------------------------===//
// What the manifest must satisfy
//===----------------------------------------------------------------------===//

class ManifestRules : public ::testing::Test {
protected:
  template <typename Change> std::string rejected(Change change) {
    Sample sample;
    change(sample.manifest);
    TempDir dir;
    Status status = sample.writer().write(sample.manifest, dir / "a.engine");
    EXPECT_FALSE(status.isOk());
    EXPECT_EQ(dir.count(), 0u);
    std::string prefix = "the engine's manifest is wrong: ";
    EXPECT_EQ(status.message().substr(0, prefix.size()), prefix);
    return status.message().substr(
        std::min(prefix.size(), status.message().size()));
  }
};

TEST(EngineFile, IsWholeBeforeItHasAName) {
  Sample sample;
  TempDir dir;
  unsigned calls = 0;
  Status status = sample.writer().write(sample.manifest, dir / "a.engine", [&] {
    ++calls;
    EXPECT_FALSE(std::filesystem::exists(dir / "a.engine"));
  });
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(calls, 1u);
  EXPECT_TRUE(Reader::open(dir / "a.engine").isOk());
  // Nothing is about to be written where something is wrong.
  sample.manifest.signature.inputs[0].name = "";
  EXPECT_FALSE(sample.writer()
                   .write(sample.manifest, dir / "b.engine", [&] { ++calls; })
                   .isOk());
  EXPECT_EQ(calls, 1u);
}

TEST_F(ManifestRules, Messages) {
  using M = Manifest &;
  EXPECT_EQ(rejected([](M m) { m.signature.inputs[0].name = ""; }),
            "input 0 has no name");
  EXPECT_EQ(rejected([](M m) {
              m.signature.outputs.push_back(m.signature.outputs[0]);
            }),
            "two outputs are named 'y'");
  EXPECT_EQ(rejected([](M m) { m.signature.symbols[0].min = 5; }),
            "shape symbol 0 has the range 5..4..64");
  EXPECT_EQ(rejected([](M m) { m.signature.symbols[0].divisor = 0; }),
            "shape symbol 0 has the divisor 0");
  using Relation = Constraint::Relation;
  EXPECT_EQ(rejected([](M m) {
              m.signature.constraints[0].relation = static_cast<Relation>(5);
            }),
            "constraint 0 has an unknown relation");
  EXPECT_EQ(rejected([](M m) { m.signature.constraints[0].left = 0; }),
            "constraint 0 has the divisor 0");
  EXPECT_EQ(rejected([](M m) {
              m.signature.constraints[0].right = ShapeExpr::symbol(1);
            }),
            "constraint 0: a shape expression names a symbol that does not "
            "exist");
  EXPECT_EQ(rejected([](M m) {
              m.signature.constraints[0].left =
                  ShapeExpr::fromTerms({{ShapeExpr::Op::Add, 0}});
            }),
            "constraint 0: a shape expression lacks an operand");
  EXPECT_EQ(rejected([](M m) {
              m.signature.constraints[0].right = ShapeExpr::fromTerms(
                  {{ShapeExpr::Op::Symbol, 0}, {ShapeExpr::Op::ToFloat, 0}});
            }),
            "constraint 0: a shape expression gives a float");
  EXPECT_EQ(rejected([](M m) {
              m.signature.outputs[0].dims[0] = ShapeExpr::fromTerms(
                  {{ShapeExpr::Op::Symbol, 0}, {ShapeExpr::Op::Sqrt, 0}});
            }),
            "output 0: a shape expression mixes integers and floats up");
  EXPECT_EQ(rejected([](M m) {
              m.signature.constraints.assign(4097, m.signature.constraints[0]);
            }),
            "there are 4097 constraints");
  EXPECT_EQ(rejected([](M m) {
              m.signature.constraints[0].reason = std::string(4097, 'r');
            }),
            "the reason of constraint 0 has more than 4096 bytes");
  EXPECT_EQ(rejected([](M m) {
              m.signature.inputs[0].dims[0] = ShapeExpr::symbol(9);
            }),
            "input 0: a shape expression names a symbol that does not exist");
  auto p = [](M m) -> Program & { return m.programs[0]; };
  EXPECT_EQ(rejected([&](M m) { p(m).variants.clear(); }),
            "program 0: there is no code for it");
  EXPECT_EQ(rejected([&](M m) { p(m).buffers[1].weightOffset = 5056; }),
            "program 0: buffer 1: a range leaves section 1");
  EXPECT_EQ(rejected([&](M m) { p(m).buffers[1].weightOffset = 8; }),
            "program 0: buffer 1: the weight is not aligned as declared");
  EXPECT_EQ(rejected([&](M m) { p(m).buffers[2].alignment = 24; }),
            "program 0: buffer 2: the alignment 24 is not a power of two up to "
            "4096");
  EXPECT_EQ(
      rejected([](M m) { m.programs[1].buffers[2].alignment = 512; }),
      "program 1: buffer 2: the alignment 512 is not a power of two up to "
      "256");
  EXPECT_EQ(rejected([&](M m) { p(m).buffers[2].alias = 3; }),
            "program 0: buffer 2 is an alias of itself");
  EXPECT_EQ(rejected([&](M m) { p(m).buffers[0].index = 1; }),
            "program 0: buffer 0: input 1 does not exist");
  EXPECT_EQ(rejected([&](M m) { p(m).buffers[4].kind = Buffer::Kind::Arena; }),
            "program 0: no buffer stands for the output 'y'");
  EXPECT_EQ(rejected([&](M m) { p(m).buffers[2].lastStep = 0; }),
            "program 0: step 1: buffer 2 is used outside its lifetime");
  EXPECT_EQ(
      rejected([&](M m) { p(m).buffers[2].lastStep = 9; }),
      "program 0: buffer 2: the lifetime is not inside the program's steps");
  EXPECT_EQ(rejected([&](M m) { p(m).steps[0].kernel = 7; }),
            "program 0: step 0: kernel 7 does not exist");
  // What a launch gives its kernel, and what that says it takes.
  EXPECT_EQ(rejected([&](M m) { p(m).steps[0].symbols = {1}; }),
            "program 0: step 0: shape symbol 1 does not exist");
  EXPECT_EQ(rejected([&](M m) { p(m).steps[0].symbols = {noIndex}; }),
            "program 0: step 0: shape symbol 4294967295 does not exist");
  EXPECT_EQ(rejected([&](M m) { p(m).steps[1].symbols = {}; }),
            "program 0: step 1: it gives 0 sizes to kernel 1, which takes 1");
  EXPECT_EQ(rejected([&](M m) { p(m).steps[1].symbols = {0, 0}; }),
            "program 0: step 1: it gives 2 sizes to kernel 1, which takes 1");
  EXPECT_EQ(rejected([&](M m) { p(m).kernels[0].numSymbols = noIndex; }),
            "program 0: kernel 0 takes 4294967295 sizes, of which 1 exist");
  EXPECT_EQ(rejected([&](M m) {
              m.signature.symbols.push_back(m.signature.symbols[0]);
              p(m).kernels[0].numSymbols = 2;
            }),
            "program 0: step 0: it gives 1 sizes to kernel 0, which takes 2");
  std::string notBehind = " has no step, is not behind the one before, or not "
                          "inside the program's steps";
  // Waves.
  std::string noWave = "it runs beside the step before it, and not both are "
                       "launches";
  for (size_t step : {0, 2, 3})
    EXPECT_EQ(rejected([&](M m) {
                p(m).steps[step].besidePrevious = true;
                p(m).buffers[3].alias = noIndex;
                for (Buffer &buffer : p(m).buffers)
                  buffer.lastStep = 3;
              }),
              "program 0: step " + std::to_string(step) + ": " + noWave);
  EXPECT_EQ(rejected([&](M m) {
              makeWave(p(m));
              p(m).buffers[1].lastStep = 0;
            }),
            "program 0: step 0: buffer 1 does not live until the end of the "
            "wave, step 1");
  EXPECT_EQ(rejected([&](M m) {
              makeWave(p(m));
              p(m).buffers[3].alias = 2;
            }),
            "program 0: step 1: buffers 2 and 3 lie in one place, and what "
            "runs side by side uses both");
  for (auto [first, last] : {std::pair(0, 1), std::pair(1, 2)})
    EXPECT_EQ(rejected([&](M m) {
                makeWave(p(m));
                p(m).repeats = {{uint32_t(first), uint32_t(last), 0, 1}};
              }),
              "program 0: repeat 0 begins or ends among steps that run beside "
              "each other");
  EXPECT_EQ(rejected([&](M m) { p(m).repeats = {{0, 9, 0, 1}}; }),
            "program 0: repeat 0" + notBehind);
  EXPECT_EQ(rejected([&](M m) {
              p(m).repeats = {{1, 1, 0, ShapeExpr(int64_t(1) << 36)}};
            }),
            "program 0: repeat 0" + notBehind);
  EXPECT_EQ(rejected([&](M m) { p(m).repeats = {{0, 2, 0, 1}, {1, 3, 0, 1}}; }),
            "program 0: repeat 1" + notBehind);
  EXPECT_EQ(rejected([&](M m) { p(m).repeats = {{0, 1, 1, 1}}; }),
            "program 0: repeat 0 counts by shape symbol 1, which does not "
            "exist");
  EXPECT_EQ(
      rejected([&](M m) { p(m).repeats = {{0, 1, 0, ShapeExpr::symbol(1)}}; }),
      "program 0: repeat 0: a shape expression names a symbol that does "
      "not exist");
  EXPECT_EQ(rejected([&](M m) { p(m).steps[2].symbols = {0}; }),
            "program 0: step 2: only launches take sizes");
  const std::string missing =
      "a shape expression names a symbol that does not exist";
  EXPECT_EQ(rejected([&](M m) { p(m).kernels[1].numSymbols = 0; }),
            "program 0: kernel 1: " + missing);
  EXPECT_EQ(
      rejected([&](M m) { p(m).kernels[1].bytes = ShapeExpr::symbol(1); }),
      "program 0: kernel 1: " + missing);
  EXPECT_EQ(rejected([&](M m) {
              p(m).variants[0].kernels[1].grid = ShapeExpr::symbol(1);
            }),
            "program 0: variant 0: kernel 1: " + missing);
  EXPECT_EQ(rejected([&](M m) {
              m.programs[1].variants[0].kernels[1].indexed =
                  ShapeExpr::symbol(1);
            }),
            "program 1: variant 0: kernel 1: " + missing);
  EXPECT_EQ(rejected([&](M m) { p(m).variants[0].kernels[1].indexed = 5; }),
            "program 0: variant 0: kernel 1: it says what its indices count, "
            "which have 64 bits");
  EXPECT_EQ(rejected([&](M m) { p(m).steps[0].args[0].buffer = 7; }),
            "program 0: step 0: buffer 7 does not exist");
  EXPECT_EQ(rejected([&](M m) { p(m).steps[2].args.pop_back(); }),
            "program 0: step 2: a copy takes two arguments");
  EXPECT_EQ(rejected([&](M m) {
              p(m).buffers[1].lastStep = 3;
              p(m).steps[2].args[0].buffer = 1;
            }),
            "program 0: step 2: it writes an input or a weight");
  // The same through an alias, and through an alias of an alias.
  for (uint32_t target : {0u, 1u})
    for (bool fill : {false, true})
      EXPECT_EQ(rejected([&](M m) {
                  Buffer inner, outer;
                  inner.size = outer.size = 64;
                  inner.lastStep = outer.lastStep = 3;
                  inner.alias = 6, outer.alias = target;
                  p(m).buffers.push_back(inner); // 5
                  p(m).buffers.push_back(outer); // 6
                  p(m).steps[fill ? 3 : 2].args[0] = {5, 0};
                }),
                std::string("program 0: step ") + (fill ? "3" : "2") +
                    ": it writes an input or a weight");
  EXPECT_EQ(rejected([&](M m) {
              m.signature.inputs.resize(4097, m.signature.inputs[0]);
            }),
            "there are more than 4096 inputs");
  EXPECT_EQ(rejected([&](M m) { p(m).steps[3].patternSize = 3; }),
            "program 0: step 3: a fill's pattern has 1, 2 or 4 bytes");
  EXPECT_EQ(rejected([&](M m) { p(m).variants[0].kernels.pop_back(); }),
            "program 0: variant 0: it implements 1 of 2 kernels");
  EXPECT_EQ(
      rejected([&](M m) { p(m).variants[0].kernels[1].entryOffset = 256; }),
      "program 0: variant 0: kernel 1: the entry lies outside the image");
  EXPECT_EQ(
      rejected([&](M m) { p(m).variants[0].modules[0].image.size = 700; }),
      "program 0: variant 0: a range leaves section 0");
  EXPECT_EQ(
      rejected([&](M m) { p(m).variants[0].modules[0].image.section = 1; }),
      "program 0: variant 0: section 1 is of the wrong kind");
  EXPECT_EQ(rejected([](M m) {
              m.programs[1].variants[0].kernels[0].blockThreads = 2048;
            }),
            "program 1: variant 0: kernel 0: the block has 2048 threads");
  EXPECT_EQ(rejected([&](M m) { p(m).weightsSection = noIndex; }),
            "program 0: buffer 1: the program has no weights section");
}

TEST_F(ManifestRules, TensorMaps) {
  // The first of the sample is tiled, the second for im2col.
  auto wrong = [&](size_t number, auto change) {
    std::string message = rejected([&](Manifest &m) {
      change(m.programs[1].variants[0].kernels[0].maps[number]);
    });
    std::string prefix =
        "program 1: variant 0: kernel 0: map " + std::to_string(number);
    EXPECT_EQ(message.substr(0, prefix.size()), prefix);
    return message.substr(std::min(prefix.size(), message.size()));
  };
  using Map = TensorMap &;
  EXPECT_EQ(wrong(0, [](Map t) { t.extents.clear(); }),
            ": it has 0 dimensions");
  EXPECT_EQ(wrong(0, [](Map t) { t.extents.resize(6, 1); }),
            ": it has 6 dimensions");
  EXPECT_EQ(wrong(1, [](Map t) { t.extents.resize(2); }),
            ": it is one for im2col and has 2 dimensions");
  EXPECT_EQ(wrong(0, [](Map t) { t.strides.push_back(64); }),
            ": it has 2 strides for 2 dimensions");
  EXPECT_EQ(wrong(0, [](Map t) { t.steps.pop_back(); }),
            ": it has 1 step for 2 dimensions");
  EXPECT_EQ(wrong(0, [](Map t) { t.box.push_back(1); }),
            ": it has 3 box sizes for 2 dimensions");
  EXPECT_EQ(wrong(1, [](Map t) { t.box.push_back(1); }),
            ": it has 3 box sizes for 4 dimensions");
  EXPECT_EQ(wrong(1, [](Map t) { t.lower.pop_back(); }),
            ": it has 1 lower corner for 4 dimensions");
  EXPECT_EQ(wrong(1, [](Map t) { t.lower.clear(); }),
            ": it has 0 lower corners for 4 dimensions");
  EXPECT_EQ(wrong(1, [](Map t) { t.upper.push_back(0); }),
            ": it has 3 upper corners for 4 dimensions");
  const std::string missing =
      ": a shape expression names a symbol that does not exist";
  EXPECT_EQ(wrong(0, [](Map t) { t.extents[0] = ShapeExpr::symbol(1); }),
            missing);
  EXPECT_EQ(wrong(0, [](Map t) { t.strides[0] = ShapeExpr::symbol(1); }),
            missing);
  for (uint32_t bytes : {0u, 3u, 16u})
    EXPECT_EQ(wrong(0, [&](Map t) { t.elementBytes = bytes; }),
              ": its elements have " + std::to_string(bytes) + " bytes");
  EXPECT_EQ(wrong(0, [](Map t) { t.swizzle = 64; }),
            ": its pieces trade places after 64 bytes");
  EXPECT_EQ(wrong(0, [](Map t) { t.box[1] = 0; }),
            ": its box has 0 elements along dimension 1, not 1 to 256");
  EXPECT_EQ(wrong(0, [](Map t) { t.box[1] = 257; }),
            ": its box has 257 elements along dimension 1, not 1 to 256");
  EXPECT_EQ(wrong(1, [](Map t) { t.box[0] = 257; }),
            ": its box has 257 elements along dimension 0, not 1 to 256");
  EXPECT_EQ(wrong(1, [](Map t) { t.box[1] = 1025; }),
            ": its box has 1025 elements along dimension 1, not 1 to 1024");
  EXPECT_EQ(wrong(0, [](Map t) { t.box[0] = 3; }),
            ": a row of its box has 12 bytes, not a multiple of 16");
  EXPECT_EQ(wrong(1, [](Map t) { t.box[0] = 72; }),
            ": a row of its box has 144 bytes, more than 128, after which "
            "pieces trade places");
  for (uint32_t step : {0u, 9u})
    EXPECT_EQ(wrong(0, [&](Map t) { t.steps[1] = step; }),
              ": it has a step of " + std::to_string(step) + ", not 1 to 8");
  for (int32_t corner : {-129, 128, INT32_MIN})
    EXPECT_EQ(wrong(1, [&](Map t) { t.lower[1] = corner; }),
              ": it has a corner at " + std::to_string(corner) +
                  ", not -128 to 127");
  EXPECT_EQ(wrong(1, [](Map t) { t.argument = 3; }),
            " is of argument 3, which not every launch has");
}

TEST_F(ManifestRules, CornersHaveTheBitsThatDimensionsLeave) {
  auto withRank = [&](size_t rank, int32_t corner) {
    return [=](Manifest &m) {
      TensorMap &map = m.programs[1].variants[0].kernels[0].maps[1];
      map.extents.resize(rank, 1);
      map.strides.resize(rank - 1, 16);
      map.steps.resize(rank, 1);
      map.lower.assign(rank - 2, 0);
      map.upper.assign(rank - 2, 0);
      map.upper.back() = corner;
    };
  };
  for (auto [rank, end] :
       {std::pair(3, 32768), std::pair(4, 128), std::pair(5, 16)}) {
    for (int32_t corner : {-end - 1, end})
      EXPECT_EQ(rejected(withRank(rank, corner)),
                "program 1: variant 0: kernel 0: map 1: it has a corner at " +
                    std::to_string(corner) + ", not " + std::to_string(-end) +
                    " to " + std::to_string(end - 1));
    Sample sample;
    TempDir dir;
    for (int32_t corner : {-end, end - 1}) {
      withRank(rank, corner)(sample.manifest);
      EXPECT_TRUE(
          sample.writer().write(sample.manifest, dir / "a.engine").isOk());
    }
  }
}

TEST_F(ManifestRules, TensorMapsAndLaunches) {
  auto code = [](Manifest &m) -> KernelCode & {
    return m.programs[1].variants[0].kernels[0];
  };
  EXPECT_EQ(rejected([](Manifest &m) {
              m.programs[0].variants[0].kernels[0].maps = {rowsMap()};
            }),
            "program 0: variant 0: kernel 0: it has tensor maps, which only "
            "GPUs take");
  EXPECT_EQ(rejected([&](Manifest &m) { code(m).maps.resize(17, rowsMap()); }),
            "program 1: variant 0: kernel 0: it has 17 tensor maps, more than "
            "16");
  // A second launch of the kernel, with fewer arguments.
  EXPECT_EQ(rejected([](Manifest &m) {
              Program &p = m.programs[1];
              p.steps[1].kernel = 0;
              p.steps[1].args.resize(1);
            }),
            "program 1: variant 0: kernel 0: map 1 is of argument 1, which not "
            "every launch has");
  // Three terms a launch: an extent, another and a stride.
  auto launches = [&](Manifest &m, size_t count) {
    Program &p = m.programs[1];
    code(m).maps = {rowsMap()};
    for (Buffer &buffer : p.buffers)
      buffer.firstStep = 0, buffer.lastStep = count + 2;
    p.steps.insert(p.steps.begin(), count - 1, p.steps[0]);
  };
  constexpr size_t most = (1 << 20) / 3;
  Sample sample;
  launches(sample.manifest, most);
  TempDir dir;
  EXPECT_TRUE(sample.writer().write(sample.manifest, dir / "a.engine").isOk());
  EXPECT_EQ(rejected([&](Manifest &m) { launches(m, most + 1); }),
            "program 1: variant 0: its launches take tensor maps with 1048578 "
            "terms or more");
}

} // namespace
