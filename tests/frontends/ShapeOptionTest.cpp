#include "frontends/common/ShapeOption.h"
#include "gtest/gtest.h"

using namespace charonia::frontend;

namespace {
/// What is wrong with one option, without the option itself and the hint.
std::string errorOf(const std::string &text) {
  ShapeOptions shapes;
  std::string error = parseShapeOption(text, shapes);
  std::string head = "--shape " + text + ": ",
              tail = "; write it as x=1..8..64x3x224x224";
  if (error.empty())
    return "";
  EXPECT_TRUE(error.starts_with(head) && error.ends_with(tail)) << error;
  return error.substr(head.size(), error.size() - head.size() - tail.size());
}
} // namespace

TEST(ShapeOption, RangesAndSizes) {
  ShapeOptions shapes;
  ASSERT_EQ(parseShapeOption("x=1..8..64x3x2..4x?", shapes), "");
  auto &x = shapes["x"];
  ASSERT_EQ(x.size(), 4u);
  EXPECT_EQ(x[0].range, (DimRange{1, 8, 64, 1}));
  EXPECT_EQ(x[1].range, (DimRange{3, 3, 3, 1}));
  EXPECT_EQ(x[2].range, (DimRange{2, 4, 4, 1}));
  EXPECT_FALSE(x[3].range);
  EXPECT_TRUE(x[3].name.empty());
}

TEST(ShapeOption, NamesAndDivisors) {
  ShapeOptions shapes;
  ASSERT_EQ(parseShapeOption("a=b=[batch:8..16..64%8, seq, 3]", shapes), "");
  auto &x = shapes["a=b"];
  ASSERT_EQ(x.size(), 3u);
  EXPECT_EQ(x[0].name, "batch");
  EXPECT_EQ(x[0].range, (DimRange{8, 16, 64, 8}));
  EXPECT_EQ(x[1].name, "seq");
  EXPECT_FALSE(x[1].range);
  EXPECT_EQ(x[2].range, (DimRange{3, 3, 3, 1}));
  ASSERT_EQ(parseShapeOption("scalar=[]", shapes), "");
  EXPECT_TRUE(shapes["scalar"].empty());
}

TEST(ShapeOption, Errors) {
  EXPECT_EQ(errorOf("x"), "an input name and '=' are missing");
  EXPECT_EQ(errorOf("=3"), "an input name and '=' are missing");
  EXPECT_EQ(errorOf("x="), "dimensions are missing ('[]' is a scalar)");
  EXPECT_EQ(errorOf("x=3x"), "a dimension is empty");
  EXPECT_EQ(errorOf("x=[3"), "']' is missing");
  EXPECT_EQ(errorOf("x=-3"), "'-3' is not a size");
  EXPECT_EQ(errorOf("x=3.5"), "'3.5' is not a size");
  EXPECT_EQ(errorOf("x=8..1"), "'8..1' is not ascending: write min..opt..max");
  EXPECT_EQ(errorOf("x=1..9..8"),
            "'1..9..8' is not ascending: write min..opt..max");
  EXPECT_EQ(errorOf("x=1..2..3..4"),
            "'1..2..3..4' has more than min..opt..max");
  EXPECT_EQ(errorOf("x=0..4"),
            "'0..4' starts at 0; only a fixed size may be 0");
  EXPECT_EQ(errorOf("x=1..8%4"), "sizes in '1..8%4' are not multiples of 4");
  EXPECT_EQ(errorOf("x=4..8%"), "'4..8%' lacks a divisor after %");
  EXPECT_EQ(errorOf("x=4..8%0"), "sizes in '4..8%0' are not multiples of 0");
  EXPECT_EQ(errorOf("x=99999999999999"),
            "size 99999999999999 is over the limit of 1099511627776");
  EXPECT_EQ(errorOf("x=[a b]"),
            "'a b' is not a name of letters, digits, '_' and '.'");
  EXPECT_EQ(errorOf("x=[:1..4,8]"),
            "'' is not a name of letters, digits, '_' and '.'");
  ShapeOptions shapes;
  ASSERT_EQ(parseShapeOption("x=3", shapes), "");
  EXPECT_EQ(parseShapeOption("x=3", shapes),
            "--shape x=3: the shape of 'x' is given twice; write it as "
            "x=1..8..64x3x224x224");
}
