// Zip files: what is read in place, what is refused.
#include "frontends/pytorch/Archive.h"
#include "tests/frontends/pytorch/Import.h"

using namespace charonia;
using namespace charonia::test;
using frontend::Problem;
using frontend::pytorch::Archive;
using ::testing::AllOf;
using ::testing::HasSubstr;

static std::unique_ptr<Archive> open(const std::string &bytes,
                                     Problem &problem) {
  return Archive::read({llvm::ArrayRef<char>(bytes.data(), bytes.size()), {}},
                       problem);
}
static std::string problemOf(const std::string &bytes) {
  Problem problem;
  EXPECT_FALSE(open(bytes, problem));
  return problem.what;
}

TEST(Archive, StoredEntriesLieInTheFile) {
  std::string file = zipFile({{"m/a", "first"}, {"m/b/c", "second"}});
  Problem problem;
  auto archive = open(file, problem);
  ASSERT_TRUE(archive) << problem.what;
  EXPECT_EQ(archive->list(""), (std::vector<std::string>{"a", "b/c"}));
  EXPECT_EQ(archive->list("b/"), std::vector<std::string>{"b/c"});
  auto bytes = archive->load("b/c", problem);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->text(), "second");
  EXPECT_EQ(bytes->bytes.data(), file.data() + file.find("second"));
  EXPECT_FALSE(archive->load("none", problem));
  EXPECT_EQ(problem.what, "has no entry 'none'");
}

TEST(Archive, FolderThatNotAllShareStays) {
  Problem problem;
  auto archive = open(zipFile({{"m/a", "1"}, {"b", "2"}}), problem);
  ASSERT_TRUE(archive);
  EXPECT_TRUE(archive->has("m/a") && archive->has("b"));
}

TEST(Archive, DeflatedEntries) {
  std::string text(100000, 'x');
  ZipEntry entry{"a", text};
  entry.deflate = true;
  std::string file = zipFile({entry});
  EXPECT_LT(file.size(), 1000u);
  Problem problem;
  auto archive = open(file, problem);
  ASSERT_TRUE(archive) << problem.what;
  auto bytes = archive->load("a", problem);
  ASSERT_TRUE(bytes) << problem.what;
  EXPECT_EQ(bytes->text(), text);
}

TEST(Archive, FlippedBits) {
  std::string file = zipFile({{"m/a", "first"}, {"m/b", "second"}});
  file[file.find("second")] ^= 4;
  Problem problem;
  auto archive = open(file, problem);
  ASSERT_TRUE(archive) << problem.what;
  EXPECT_TRUE(archive->load("a", problem));
  EXPECT_FALSE(archive->load("b", problem));
  EXPECT_EQ(problem.what, "entry 'b' is damaged: its checksum is another");
}

TEST(Archive, DeflatedEntriesAreInflatedOnce) {
  ZipEntry large{"m/a", std::string(1 << 20, 'x')};
  large.deflate = true;
  Problem problem;
  auto archive = open(zipFile({large, {"m/b", ""}}), problem);
  ASSERT_TRUE(archive) << problem.what;
  auto first = archive->load("a", problem);
  ASSERT_TRUE(first) << problem.what;
  // More often than the limit on all that is inflated would let it.
  for (int i = 0; i < 200; ++i) {
    auto again = archive->load("a", problem);
    ASSERT_TRUE(again) << problem.what;
    EXPECT_EQ(again->bytes.data(), first->bytes.data());
  }
}

TEST(Archive, Folders) {
  Problem problem;
  auto archive = open(zipFile({{"m/", ""}, {"m/a", "1"}}), problem);
  ASSERT_TRUE(archive) << problem.what;
  EXPECT_EQ(archive->list(""), std::vector<std::string>{"a"});
}

TEST(Archive, Zip64) {
  ZipEntry entry{"a", "content"};
  entry.zip64 = true;
  for (bool record : {false, true}) {
    std::string file = zipFile({entry}, record);
    Problem problem;
    auto archive = open(file, problem);
    ASSERT_TRUE(archive) << problem.what;
    EXPECT_EQ(archive->load("a", problem)->text(), "content");
  }
  std::string file = zipFile({entry}, true);
  file[file.find("PK\6\6")] = 'Q';
  EXPECT_THAT(problemOf(file), HasSubstr("there is no record of 64 bits"));
}

TEST(Archive, TruncatedAtEveryByte) {
  std::string file = zipFile({{"a", "first"}, {"b", "second"}});
  for (size_t size = 0; size < file.size(); ++size) {
    Problem problem;
    EXPECT_FALSE(open(file.substr(0, size), problem)) << size;
    EXPECT_FALSE(problem.what.empty());
  }
  EXPECT_EQ(problemOf(""), "not a zip file");
}

TEST(Archive, EveryByteChanged) {
  ZipEntry deflated{"c", std::string(300, 'z')};
  deflated.deflate = true;
  std::string good = zipFile({{"a", "first"}, {"b", "second"}, deflated});
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit : {0, 3, 7}) {
      std::string file = good;
      file[i] ^= 1 << bit;
      Problem problem;
      if (auto archive = open(file, problem))
        for (const std::string &name : archive->list(""))
          if (auto bytes = archive->load(name, problem))
            EXPECT_LE(bytes->bytes.size(), size_t(1) << 24);
    }
}

TEST(Archive, SizesThatLie) {
  ZipEntry behind{"b", "second"};
  behind.stored = behind.size = 4000;
  EXPECT_THAT(problemOf(zipFile({{"a", "first"}, behind})),
              HasSubstr("entry 'b' of 4000 bytes at "));
  ZipEntry unequal{"b", "second"};
  unequal.size = 7;
  EXPECT_EQ(problemOf(zipFile({unequal})),
            "the zip directory is damaged: entry 'b' is stored in 6 bytes but "
            "has 7");
  ZipEntry elsewhere{"b", "second"};
  elsewhere.offset = 10;
  EXPECT_THAT(problemOf(zipFile({{"a", "first"}, elsewhere})),
              HasSubstr("entry 'b' has no header where the directory says"));
}

TEST(Archive, Overlap) {
  // The second entry of the directory has the first one's data.
  ZipEntry again{"b", "first"};
  again.offset = 0;
  EXPECT_THAT(problemOf(zipFile({{"a", "first"}, again})),
              AllOf(HasSubstr("entries '"), HasSubstr("' overlap")));
}

TEST(Archive, Twice) {
  EXPECT_THAT(problemOf(zipFile({{"a", "1"}, {"a", "2"}})),
              HasSubstr("entry 'a' is there twice"));
}

TEST(Archive, EncryptedAndOtherMethods) {
  ZipEntry encrypted{"a", "first"};
  encrypted.flags |= 1;
  EXPECT_EQ(problemOf(zipFile({encrypted})),
            "entry 'a' is encrypted, which is not supported");
  ZipEntry lzma{"a", "first"};
  lzma.method = 14;
  EXPECT_THAT(problemOf(zipFile({lzma})),
              HasSubstr("entry 'a' is compressed by method 14"));
}

TEST(Archive, Bomb) {
  ZipEntry bomb{"a", std::string(size_t(80) << 20, 0)};
  bomb.deflate = true;
  std::string file = zipFile({bomb});
  Problem problem;
  auto archive = open(file, problem);
  ASSERT_TRUE(archive) << problem.what;
  EXPECT_FALSE(archive->load("a", problem));
  EXPECT_THAT(problem.what, HasSubstr("entry 'a' inflates to 83886080 bytes, "
                                      "too many for a file of "));
  // It inflates to more than it says.
  bomb.size = 100;
  file = zipFile({bomb});
  archive = open(file, problem);
  ASSERT_TRUE(archive) << problem.what;
  EXPECT_FALSE(archive->load("a", problem));
  EXPECT_EQ(problem.what, "entry 'a' cannot be inflated");
}
