// Damaged and hostile engine files: every one gets a Status, none a crash. The
// random tests run for a bounded time and print their seed;
// CHARONIA_FUZZ_SECONDS and CHARONIA_FUZZ_SEED set them.

#include "TestEngine.h"

#include "charonia/runtime.h"
#include "runtime/engine/Encoding.h"
#include "runtime/engine/Writer.h"
#include "runtime/fuzz/ExerciseRun.h"
#include "runtime/fuzz/Mutate.h"

#include <chrono>
#include <set>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::engine::fuzz;
using namespace charonia::test;

namespace {

using Bytes = std::vector<std::byte>;

Bytes sampleFile() {
  TempDir dir;
  Bytes code = randomBytes(600, 1), weights = randomBytes(5000, 2);
  Writer w;
  w.addSection(SectionKind::Code, "code", code);
  w.addSection(SectionKind::Weights, "weights", weights);
  Status status = w.write(sampleManifest(), dir / "a.engine");
  EXPECT_TRUE(status.isOk()) << status.message();
  return readBytes(dir / "a.engine");
}

/// The error of opening, which must be one; through the public API.
Status openError(std::span<const std::byte> bytes) {
  auto engine = charonia::Engine::load(bytes);
  EXPECT_FALSE(engine.isOk());
  return engine.isOk() ? Status() : engine.status();
}

TEST(BadInput, TheSampleIsGood) {
  Bytes file = sampleFile();
  EXPECT_TRUE(tryFile(file));
  EXPECT_TRUE(charonia::Engine::load(file).isOk());
  std::string manifest = *encodeManifest(sampleManifest());
  auto sealed = seal(std::as_bytes(std::span(manifest)));
  EXPECT_TRUE(tryFile(*sealed));
  EXPECT_TRUE(exerciseContext(*sealed));
}

TEST(BadInput, LongNames) {
  auto reader = Reader::fromMemory(sampleFile(), /*borrow=*/false);
  ASSERT_TRUE(reader.isOk());
  auto check = [&](const char *where, auto name) {
    Manifest manifest = sampleManifest();
    name(manifest.signature) = std::string(4096, 'n');
    EXPECT_TRUE(verify(manifest, (*reader)->sections()).isOk());
    name(manifest.signature) += 'n';
    EXPECT_EQ(verify(manifest, (*reader)->sections()).message(),
              std::string(where) + " 0: its name has more than 4096 bytes");
  };
  check("shape symbol",
        [](Signature &s) -> auto & { return s.symbols[0].name; });
  check("input", [](Signature &s) -> auto & { return s.inputs[0].name; });
  check("output", [](Signature &s) -> auto & { return s.outputs[0].name; });
}

TEST(BadInput, TruncatedAnywhere) {
  Bytes file = sampleFile();
  std::set<size_t> cuts;
  // Every place in header and table, around every section's edges, and others.
  for (size_t i = 0; i < 300; ++i)
    cuts.insert(i);
  auto reader = Reader::fromMemory(file, false);
  ASSERT_TRUE(reader.isOk());
  std::vector<SectionInfo> sections((*reader)->sections().begin(),
                                    (*reader)->sections().end());
  sections.push_back((*reader)->manifestSection());
  for (const SectionInfo &section : sections)
    for (uint64_t edge : {section.offset, section.offset + section.size})
      for (int64_t near : {-1, 0, 1})
        cuts.insert(edge + near);
  for (size_t i = 0; i < file.size(); i += 97)
    cuts.insert(i);
  for (size_t cut : cuts) {
    if (cut >= file.size())
      continue;
    Status status = openError(std::span(file).first(cut));
    EXPECT_EQ(status.code(), StatusCode::Corrupt) << cut;
    EXPECT_NE(status.message().find(cut == 0 ? "it is not a Charonia engine"
                                             : "it is truncated: "),
              std::string::npos)
        << cut << ": " << status.message();
    // The same with a header that tells of the shorter file.
    Bytes shorter(file.begin(), file.begin() + cut);
    if (cut >= sizeof(FileHeader)) {
      uint64_t size = cut;
      std::memcpy(shorter.data() + offsetof(FileHeader, fileSize), &size, 8);
      reseal(shorter);
      EXPECT_FALSE(tryFile(shorter)) << cut;
    }
  }
}

TEST(BadInput, LongerThanItSays) {
  Bytes file = sampleFile();
  size_t size = file.size();
  file.resize(size + 10);
  EXPECT_EQ(openError(file).message(),
            "the engine in memory cannot be used: it is damaged: the header "
            "tells of " +
                std::to_string(size) + " bytes, but there are " +
                std::to_string(size + 10));
}

TEST(BadInput, EveryBitOfTheHeaderFlipped) {
  const Bytes file = sampleFile();
  size_t head = sizeof(FileHeader) + 3 * sizeof(SectionEntry);
  for (size_t i = 0; i < head; ++i)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes changed = file;
      changed[i] ^= std::byte(1 << bit);
      Status status = openError(changed);
      EXPECT_TRUE(status.code() == StatusCode::Corrupt ||
                  status.code() == StatusCode::Unsupported)
          << i << ": " << status.message();
      // What a hostile file can do: the checksum is right again.
      reseal(changed);
      tryFile(changed);
    }
}

TEST(BadInput, EveryByteOfTheManifestChanged) {
  const Bytes file = sampleFile();
  auto reader = Reader::fromMemory(file, false);
  ASSERT_TRUE(reader.isOk());
  const SectionInfo &manifest = (*reader)->manifestSection();
  for (size_t i = 0; i < manifest.size; ++i) {
    Bytes changed = file;
    changed[manifest.offset + i] ^= std::byte(0x41);
    Status status = openError(changed);
    EXPECT_EQ(
        status.message(),
        "the engine in memory cannot be used: it is damaged: the checksum "
        "of the section 'manifest' does not match");
  }
}

TEST(BadInput, DamagedWeightsAreFoundOnDemand) {
  Bytes file = sampleFile();
  file[file.size() - 1] ^= std::byte(1);
  auto reader = Reader::fromMemory(file, false);
  ASSERT_TRUE(reader.isOk());
  EXPECT_TRUE((*reader)->verifySection(0).isOk());
  EXPECT_EQ((*reader)->verifySection(1).message(),
            "the engine in memory cannot be used: it is damaged: the checksum "
            "of the section 'weights' does not match");
  EXPECT_FALSE((*reader)->verifyAll().isOk());
}

TEST(BadInput, GapsBetweenSectionsAreZero) {
  Bytes file = sampleFile();
  file[4095] = std::byte(1);
  auto reader = Reader::fromMemory(file, false);
  ASSERT_TRUE(reader.isOk());
  EXPECT_EQ((*reader)->verifyAll().message(),
            "the engine in memory is damaged: bytes between sections are not "
            "zero");
}

//===----------------------------------------------------------------------===//
// Random changes
//===----------------------------------------------------------------------===//

class RandomInput : public ::testing::Test {
protected:
  void SetUp() override {
    const char *given = std::getenv("CHARONIA_FUZZ_SEED");
    seed = given ? std::strtoull(given, nullptr, 10) : 1;
    random = Random(seed);
    const char *limit = std::getenv("CHARONIA_FUZZ_SECONDS");
    end = std::chrono::steady_clock::now() +
          std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::duration<double>(limit ? std::atof(limit) : 1.0));
    printf("CHARONIA_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
    fflush(stdout); // Before a crash, if there is one.
  }
  bool more() { return std::chrono::steady_clock::now() < end; }

  uint64_t seed;
  Random random{0};
  std::chrono::steady_clock::time_point end;
};

TEST_F(RandomInput, BytesOfTheManifest) {
  std::string original = *encodeManifest(sampleManifest());
  size_t accepted = 0, tried = 0;
  while (more()) {
    std::string bytes = original;
    for (uint64_t n = 1 + random.below(6); n-- > 0;) {
      size_t at = random.below(bytes.size());
      switch (random.below(4)) {
      case 0:
        bytes[at] = static_cast<char>(random.bits());
        break;
      case 1:
        bytes.insert(at, 1 + random.below(4), static_cast<char>(random.bits()));
        break;
      case 2:
        bytes.erase(at, 1 + random.below(8));
        break;
      case 3:
        bytes.insert(
            at, bytes.substr(random.below(bytes.size()), random.below(64)));
        break;
      }
      if (bytes.empty())
        bytes = "x";
    }
    accepted += tryFile(*seal(std::as_bytes(std::span(bytes))));
    ++tried;
  }
  EXPECT_GT(tried, 10u);
  EXPECT_LT(accepted, tried);
}

TEST_F(RandomInput, FieldsOfTheManifest) {
  size_t accepted = 0, tried = 0, made = 0;
  while (more()) {
    Manifest m = sampleManifest();
    for (uint64_t n = 1 + random.below(3); n-- > 0;)
      mutateField(m, random);
    auto bytes = encodeManifest(m);
    ASSERT_TRUE(bytes.isOk());
    auto file = seal(std::as_bytes(std::span(*bytes)));
    if (tryFile(*file)) {
      ++accepted;
      made += exerciseContext(*file);
    }
    ++tried;
  }
  // Some changes are harmless and reach a run; most are refused.
  EXPECT_GT(made, 0u);
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, tried);
}

} // namespace
