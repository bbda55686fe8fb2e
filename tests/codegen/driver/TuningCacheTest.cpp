// The file of what was measured: round trips, and what is no such file.
#include "codegen/driver/TuningCache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"
#include <fstream>
#include <gmock/gmock.h>
#include <random>

using namespace charonia;
using namespace charonia::driver;
using testing::EndsWith;
using testing::HasSubstr;

namespace {

std::string keyOf(char digit) {
  return std::string(TuningCache::keyDigits, digit);
}

TuningCache makeCache() {
  TuningCache cache;
  cache.set("sm_90a", keyOf('a'),
            {"tiles 0:64 1:128/96, axes 0 1, across", "NVIDIA H200", 8123, 9011,
             3, 16});
  cache.set("sm_80", keyOf('a'),
            {"tiles 0:64", "NVIDIA A100-SXM4-80GB", 1, 1, 1, 2});
  cache.set("x86-64-v4", keyOf('0'),
            {"tiles 0:7 1:32", "this CPU, 2 threads", 120, 121, 2, 6});
  return cache;
}

/// Lines with the checksum that belongs to them.
std::string sealed(std::string lines) {
  std::string text = "charonia tuning 1\n" + lines;
  return text + "sum " +
         llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16) +
         "\n";
}

std::string whyNot(const std::string &text) {
  Result<TuningCache> cache = TuningCache::parse(text);
  return cache ? "it is read" : cache.status().message();
}

TEST(TuningCache, IsReadAsItWasWritten) {
  TuningCache cache = makeCache();
  std::string text = cache.text();
  Result<TuningCache> read = TuningCache::parse(text);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->text(), text);
  EXPECT_EQ(read->size(), 3u);
  ASSERT_TRUE(read->find("sm_90a", keyOf('a')));
  EXPECT_EQ(*read->find("sm_90a", keyOf('a')),
            *cache.find("sm_90a", keyOf('a')));
  EXPECT_EQ(read->find("sm_90a", keyOf('0')), nullptr);
  EXPECT_EQ(read->find("sm_90", keyOf('a')), nullptr);
  EXPECT_EQ(TuningCache().text(), sealed(""));
  EXPECT_TRUE(TuningCache::parse(sealed("")));
}

TEST(TuningCache, NoDamagedFileIsRead) {
  std::string text = makeCache().text();
  for (size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] ^= 1 << bit;
      EXPECT_FALSE(TuningCache::parse(damaged)) << at << " " << bit;
    }
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(TuningCache::parse(text.substr(0, size))) << size;
  EXPECT_FALSE(TuningCache::parse(text + "\n"));
  EXPECT_THAT(whyNot("charonia tuning 2\n"), HasSubstr("of this version"));
  EXPECT_THAT(whyNot(text.substr(0, text.size() - 40)),
              HasSubstr("damaged: its checksum"));
}

TEST(TuningCache, EveryValueIsChecked) {
  std::string key = keyOf('a'), end = "\ttiles 0:64\n",
              good = "sm_90a\t" + key + "\tH200\t8\t9\t1\t2" + end;
  EXPECT_EQ(whyNot(sealed(good)), "it is read");
  EXPECT_EQ(whyNot(sealed(good + good)),
            "line 3: is a second entry for one kernel");
  EXPECT_EQ(whyNot(sealed("sm_90a\t" + key + "\tH200\t8\t9\t1" + end)),
            "line 2: has 7 fields, not 8");
  EXPECT_EQ(whyNot(sealed("\n")), "line 2: has 1 fields, not 8");
  for (std::string numbers :
       {"0\t9\t1\t2", "8\t0\t1\t2", "8\t9\t0\t2", "8\t9\t3\t2", "8\t9\t1\t5000",
        "-8\t9\t1\t2", "+8\t9\t1\t2", "8\t9\t1\t", "0x8\t9\t1\t2",
        "8\t1000000000001\t1\t2", "8\t18446744073709551617\t1\t2"})
    EXPECT_EQ(whyNot(sealed("sm_90a\t" + key + "\tH200\t" + numbers + end)),
              "line 2: has a number that cannot be")
        << numbers;
  for (std::string wrong :
       {std::string(), key.substr(1), key + "a", keyOf('A'), keyOf('g')})
    EXPECT_EQ(whyNot(sealed("sm_90a\t" + wrong + "\tH200\t8\t9\t1\t2" + end)),
              "line 2: does not name a target and a kernel");
  for (std::string wrong : {std::string(), std::string("a\x1b[2Jb"),
                            std::string("a\0b", 3), std::string(257, 'x')}) {
    EXPECT_EQ(
        whyNot(sealed("sm_90a\t" + key + "\t" + wrong + "\t8\t9\t1\t2" + end)),
        "line 2: does not name a device and a schedule");
    EXPECT_EQ(whyNot(sealed("sm_90a\t" + key + "\tH200\t8\t9\t1\t2\t" + wrong +
                            "\n")),
              "line 2: does not name a device and a schedule");
  }
}

TEST(TuningCache, RandomLinesAreReadOrRefused) {
  std::mt19937 random(7);
  std::string lines = makeCache().text();
  lines = lines.substr(lines.find('\n') + 1);
  lines.resize(lines.rfind("sum "));
  for (int i = 0; i < 20000; ++i) {
    std::string changed = lines;
    for (unsigned n = random() % 4; n < 4; ++n) {
      size_t at = random() % changed.size();
      switch (random() % 3) {
      case 0:
        changed[at] = "\t\n0aA9 \xff"[random() % 8];
        break;
      case 1:
        changed.erase(at, random() % 8);
        break;
      default:
        changed.insert(at, changed, random() % changed.size(), random() % 90);
      }
      if (changed.empty())
        changed = "\t";
    }
    if (Result<TuningCache> read = TuningCache::parse(sealed(changed)))
      EXPECT_TRUE(TuningCache::parse(read->text()));
  }
}

TEST(TuningCache, IsAFile) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("tuning", folder));
  std::string path = (folder + "/cache").str();
  Result<TuningCache> none = TuningCache::read(path);
  ASSERT_TRUE(none) << none.status().message();
  EXPECT_EQ(none->size(), 0u);
  ASSERT_TRUE(makeCache().write(path));
  Result<TuningCache> read = TuningCache::read(path);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->text(), makeCache().text());
  std::ofstream(path) << "something else";
  EXPECT_EQ(TuningCache::read(path).status().message(),
            path + ": is no tuning cache of this version of the format");
  EXPECT_THAT(TuningCache::read(folder.str().str()).status().message(),
              EndsWith("is not a regular file"));
  EXPECT_FALSE(makeCache().write((folder + "/no/cache").str()));
  llvm::sys::fs::remove_directories(folder);
}

} // namespace
