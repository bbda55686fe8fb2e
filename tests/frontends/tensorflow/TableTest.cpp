// Tables of variables.
#include "tests/frontends/tensorflow/Import.h"
#include "llvm/Support/Endian.h"

using namespace charonia;
using namespace charonia::test;
using ::testing::HasSubstr;

static std::string problemOfTable(const std::string &bytes) {
  frontend::Problem problem;
  EXPECT_FALSE(tf::readTable(bytes, problem));
  return problem.what;
}

TEST(TensorFlowTable, KeysThatShareTheirBeginning) {
  std::map<std::string, std::string> entries;
  for (int i = 0; i < 300; ++i)
    entries["layer/" + std::to_string(i) + "/kernel"] =
        std::string(i, static_cast<char>(i));
  frontend::Problem problem;
  std::string file = tableFile(entries, 16);
  auto table = tf::readTable(file, problem);
  ASSERT_TRUE(table) << problem.what;
  ASSERT_EQ(table->size(), entries.size());
  for (const auto &[key, value] : entries)
    EXPECT_EQ(table->at(key), value);
}

TEST(TensorFlowTable, KnownChecksum) {
  // RFC 3720, B.4.
  EXPECT_EQ(tf::crc32c(std::string(32, 0)), 0x8a9136aau);
  EXPECT_EQ(tf::crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(tf::crc32c("56789", tf::crc32c("1234")), 0xe3069283u);
}

TEST(TensorFlowTable, CompressedBlocks) {
  std::string file = tableFile({{"a", "1"}, {"b", "2"}});
  // Behind the first block: two entries of 5 bytes, a restart and their number.
  constexpr size_t kind = 2 * 5 + 8;
  file[kind] = 1;
  EXPECT_THAT(problemOfTable(file), HasSubstr("checksum differs"));
  uint32_t crc = tf::maskCrc(tf::crc32c(file.substr(0, kind + 1)));
  llvm::support::endian::write32le(&file[kind + 1], crc);
  EXPECT_THAT(problemOfTable(file), HasSubstr("is compressed"));
}

TEST(TensorFlowTable, DamageIsFound) {
  std::string file = tableFile({{"a", "1"}, {"b", "2"}});
  EXPECT_THAT(problemOfTable(""), HasSubstr("does not end as one does"));
  EXPECT_THAT(problemOfTable(file.substr(0, file.size() - 1)),
              HasSubstr("does not end as one does"));
  std::string flipped = file;
  flipped[4] ^= 1;
  EXPECT_THAT(problemOfTable(flipped), HasSubstr("checksum differs"));
  std::string outside = file;
  // Behind the place of the block that nothing is read of.
  outside.replace(file.size() - 46, 2, "\xff\x7f");
  EXPECT_THAT(problemOfTable(outside), HasSubstr("outside of itself"));
  // Any one byte: an error or the same table, never a crash.
  for (size_t i = 0; i < file.size(); ++i)
    for (char bit : {1, 64, -128}) {
      std::string damaged = file;
      damaged[i] ^= bit;
      frontend::Problem problem;
      if (auto table = tf::readTable(damaged, problem))
        EXPECT_EQ(*table, *tf::readTable(file, problem)) << i;
      else
        EXPECT_FALSE(problem.what.empty()) << i;
    }
}
