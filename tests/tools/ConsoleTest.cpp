// What the commands share: messages, names, element values.
#include "tools/charonia/Console.h"
#include "tools/charonia/Elements.h"
#include "tools/charonia/OutputFiles.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace charonia::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Guarded, ThrownIsAnInternalError) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(guarded([]() -> int { throw std::runtime_error("what it was"); }),
            Failed);
  EXPECT_EQ(guarded([]() -> int { throw 7; }), Failed);
  EXPECT_EQ(guarded([]() -> int { throw std::bad_alloc(); }), Failed);
  EXPECT_EQ(guarded([] { return int(Usage); }), Usage);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, StartsWith("error: internal error in charonia "));
  EXPECT_THAT(said, HasSubstr(": what it was; please report it"));
  EXPECT_THAT(said, HasSubstr("an exception of unknown type"));
  EXPECT_THAT(said, HasSubstr("error: out of memory\n"));
}

TEST(JsonName, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(jsonName("größe\n"), "größe\n");
  EXPECT_EQ(jsonName("o\xff"), "o\\xff");
  EXPECT_EQ(jsonName("o\xfe"), "o\\xfe");
  EXPECT_EQ(jsonName("o\\xff"), "o\\\\xff");
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  nlohmann::json value;
  value["a\xff"] = "b\xfe";
  EXPECT_EQ(jsonText(value), "{\"a\uFFFD\":\"b\uFFFD\"}");
}

TEST(Table, CountsCharacters) {
  Table table({"name", "n"});
  table.add({"größe", "1"});
  table.add({"x", "22"});
  EXPECT_EQ(table.str(), "name    n\ngröße   1\nx      22\n");
}

TEST(OutputFiles, NamesAreUnique) {
  EXPECT_THAT(outputFileNames({"a/b", "a_b", "a/b/", "a_b_2"}),
              ElementsAre("a_b_3.npy", "a_b.npy", "a_b_.npy", "a_b_2.npy"));
  EXPECT_THAT(outputFileNames({"..", ".", "", "_"}),
              ElementsAre("_...npy", "_..npy", "__2.npy", "_.npy"));
  EXPECT_THAT(outputFileNames({"\xff", "\xfe", "größe", "a\nb"}),
              ElementsAre("_.npy", "__2.npy", "größe.npy", "a_b.npy"));
  std::vector<std::string> files =
      outputFileNames({std::string(300, 'x'), std::string(400, 'x')});
  EXPECT_EQ(files[0], std::string(200, 'x') + ".npy");
  EXPECT_EQ(files[1], std::string(200, 'x') + "_2.npy");
}

TEST(Elements, EveryTypeIsRead) {
  auto read = [](DType dtype, std::initializer_list<int> bytes, int index = 0) {
    std::vector<uint8_t> data(bytes.begin(), bytes.end());
    return elementAsDouble(dtype, data.data(), index);
  };
  EXPECT_EQ(read(DType::Float32, {0, 0, 0xc0, 0xbf}), -1.5);
  EXPECT_EQ(read(DType::Float16, {0x01, 0x00}), std::ldexp(1, -24));
  EXPECT_EQ(read(DType::Float16, {0x00, 0xfc}), -INFINITY);
  EXPECT_TRUE(std::isnan(read(DType::Float16, {0x01, 0x7c})));
  EXPECT_EQ(read(DType::BFloat16, {0x80, 0x3f}), 1);
  EXPECT_EQ(read(DType::Float8E4M3, {0x38}), 1);
  EXPECT_EQ(read(DType::Float8E4M3, {0x7e}), 448);
  EXPECT_TRUE(std::isnan(read(DType::Float8E4M3, {0xff})));
  EXPECT_EQ(read(DType::Float8E5M2, {0x7b}), 57344);
  EXPECT_EQ(read(DType::Float8E5M2, {0xfc}), -INFINITY);
  EXPECT_EQ(read(DType::Float8E4M3FNUZ, {0x7f}), 240);
  EXPECT_EQ(read(DType::Float8E4M3FNUZ, {0x81}), std::ldexp(-1, -10));
  EXPECT_TRUE(std::isnan(read(DType::Float8E4M3FNUZ, {0x80})));
  EXPECT_EQ(read(DType::Float8E5M2FNUZ, {0x7f}), 57344);
  EXPECT_EQ(read(DType::Float8E5M2FNUZ, {0x01}), std::ldexp(1, -17));
  EXPECT_EQ(read(DType::Int8, {0x80}), -128);
  EXPECT_EQ(read(DType::UInt16, {0xff, 0xff}), 65535);
  EXPECT_EQ(read(DType::Int4, {0x8f}, 0), -1);
  EXPECT_EQ(read(DType::Int4, {0x8f}, 1), -8);
  EXPECT_EQ(read(DType::UInt4, {0x8f}, 1), 8);
}

TEST(Elements, SummaryLeavesNansOut) {
  float values[] = {NAN, 3, -1, NAN};
  Summary summary = summarize(DType::Float32, values, 4);
  EXPECT_EQ(summary.nans, 2u);
  EXPECT_EQ(summary.min, -1);
  EXPECT_EQ(summary.mean, 1);
  EXPECT_EQ(summary.max, 3);
  EXPECT_TRUE(std::isnan(summarize(DType::Float32, values, 1).mean));
  EXPECT_TRUE(std::isnan(summarize(DType::Float32, nullptr, 0).max));
}

TEST(Elements, RandomStaysInTheStatedRanges) {
  struct Range {
    DType dtype;
    double min, max;
  };
  for (auto [dtype, min, max] :
       {Range{DType::Float32, -2, 2}, Range{DType::Float64, -2, 2},
        Range{DType::Float16, -2, 2}, Range{DType::BFloat16, -2, 2},
        Range{DType::Float8E4M3, -2, 2}, Range{DType::Float8E5M2, -2, 2},
        Range{DType::Float8E4M3FNUZ, 0, 1}, Range{DType::Float8E5M2FNUZ, 0, 1},
        Range{DType::Int8, -128, 127}, Range{DType::UInt8, 0, 255},
        Range{DType::Int4, -8, 7}, Range{DType::UInt4, 0, 15},
        Range{DType::Int16, 0, 1}, Range{DType::UInt32, 0, 1},
        Range{DType::Int64, 0, 1}, Range{DType::Bool, 0, 1}}) {
    auto array = Array::allocate(dtype, {10000});
    ASSERT_TRUE(array);
    fillRandom(*array, 5);
    Summary summary = summarize(dtype, array->data.get(), 10000);
    SCOPED_TRACE(std::string(dtypeName(dtype)));
    EXPECT_EQ(summary.nans, 0u);
    EXPECT_GE(summary.min, min);
    EXPECT_LE(summary.max, max);
    // Most of the range is used.
    EXPECT_LE(summary.min, min + (max - min) / 8);
    EXPECT_GE(summary.max, max - (max - min) / 8);
    auto again = Array::allocate(dtype, {10000});
    fillRandom(*again, 5);
    EXPECT_EQ(std::memcmp(array->data.get(), again->data.get(), array->size),
              0);
    fillRandom(*again, 6);
    EXPECT_NE(std::memcmp(array->data.get(), again->data.get(), array->size),
              0);
  }
}

} // namespace
} // namespace charonia::tool
