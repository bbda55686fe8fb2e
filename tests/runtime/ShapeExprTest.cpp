#include "charonia/signature.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace charonia;
using Op = ShapeExpr::Op;

namespace {

int64_t eval(const ShapeExpr &expr, std::vector<int64_t> symbols = {}) {
  auto result = expr.evaluate(symbols);
  EXPECT_TRUE(result.isOk()) << result.status().message();
  return result ? *result : INT64_MIN;
}

TEST(ShapeExpr, Arithmetic) {
  ShapeExpr n = ShapeExpr::symbol(0), s = ShapeExpr::symbol(1);
  std::vector<int64_t> v{7, 128};
  EXPECT_EQ(eval(n * s * 4, v), 7 * 128 * 4);
  EXPECT_EQ(eval(ceilDiv(n, 4) + floorDiv(s, 3) - mod(s, 5), v), 2 + 42 - 3);
  EXPECT_EQ(eval(max(n, 16) * min(s, 100), v), 1600);
  EXPECT_EQ(eval(floorDiv(n - 10, 4), v), -1); // Rounds down,
  EXPECT_EQ(eval(ceilDiv(n - 10, 4), v), 0);   // up,
  EXPECT_EQ(eval(mod(n - 10, 4), v), 1);       // and stays positive.
}

TEST(ShapeExpr, FoldsConstantsAndNeutralElements) {
  ShapeExpr n = ShapeExpr::symbol(0);
  EXPECT_EQ((ShapeExpr(6) * 7).constantValue(), 42);
  EXPECT_EQ(n * 1, n);
  EXPECT_EQ(ShapeExpr(0) + n, n);
  EXPECT_EQ((n * 0).constantValue(), 0);
  EXPECT_EQ(max(n, n), n);
  EXPECT_EQ(ceilDiv(n, 1), n);
}

TEST(ShapeExpr, Text) {
  std::vector<Symbol> symbols{{"batch", 1, 1, 8, 1}};
  ShapeExpr e = ceilDiv(ShapeExpr::symbol(0) * 768, 64) + ShapeExpr::symbol(1);
  EXPECT_EQ(e.str(symbols), "(ceildiv((batch * 768), 64) + s1)");
  // What is subtracted from below 0 is added.
  ShapeExpr minus(-3), n = ShapeExpr::symbol(0);
  EXPECT_EQ((n + minus).str(symbols), "(batch - 3)");
  EXPECT_EQ(ShapeExpr::binary(Op::Sub, n + minus, minus).str(symbols),
            "((batch - 3) + 3)");
  EXPECT_EQ(ShapeExpr::binary(Op::Sub, minus, n).str(symbols), "(-3 - batch)");
}

TEST(ShapeExpr, OverflowIsAnError) {
  ShapeExpr big = ShapeExpr::symbol(0);
  for (ShapeExpr e : {big * big, big + big, ShapeExpr(-2) - big - big}) {
    auto result = e.evaluate(std::vector<int64_t>{INT64_MAX});
    ASSERT_FALSE(result.isOk());
    EXPECT_EQ(result.status().code(), StatusCode::OutOfRange);
    EXPECT_NE(result.status().message().find("overflows 64 bits"),
              std::string::npos);
  }
}

TEST(ShapeExpr, DivisionByLessThanOneIsAnError) {
  ShapeExpr n = ShapeExpr::symbol(0);
  for (ShapeExpr e : {floorDiv(64, n), ceilDiv(64, n), mod(64, n)})
    for (int64_t divisor : {0, -1})
      EXPECT_FALSE(e.evaluate(std::vector<int64_t>{divisor}).isOk());
  EXPECT_EQ(eval(floorDiv(INT64_MIN, 1)), INT64_MIN);
}

TEST(ShapeExpr, ZeroHasOneForm) {
  ShapeExpr zero;
  for (ShapeExpr same :
       {ShapeExpr(0), ShapeExpr::fromTerms({}),
        ShapeExpr::fromTerms({{Op::Const, 0}}), ShapeExpr::symbol(0) * 0}) {
    EXPECT_EQ(same, zero);
    ASSERT_EQ(same.terms().size(), 1u);
    EXPECT_EQ(same.terms()[0], ShapeExpr::Term());
    EXPECT_EQ(same.constantValue(), 0);
    EXPECT_TRUE(same.check(0).isOk());
    EXPECT_EQ(*same.evaluate({}), 0);
    EXPECT_EQ(same.str(), "0");
  }
  EXPECT_EQ(*(zero - ShapeExpr::symbol(0)).evaluate({{5}}), -5);
}

TEST(ShapeExpr, MalformedProgramsAreErrors) {
  using Terms = std::vector<ShapeExpr::Term>;
  const Terms cases[] = {
      {{Op::Add, 0}},
      {{Op::Const, 1}, {Op::Add, 0}},
      {{Op::Const, 1}, {Op::Const, 2}},
      {{Op::Symbol, 3}},
      {{Op::Symbol, -1}},
      {{static_cast<Op>(77), 0}},
      {{Op::Const, 1}, {Op::Const, 2}, {static_cast<Op>(255), 0}},
      Terms(5000, {Op::Const, 1}),
  };
  for (const Terms &terms : cases) {
    ShapeExpr expr = ShapeExpr::fromTerms(terms);
    EXPECT_FALSE(expr.check(2).isOk());
    EXPECT_FALSE(expr.evaluate(std::vector<int64_t>{1, 2}).isOk());
    expr.str(); // Must not crash.
  }
}

TEST(ShapeExpr, TextIsBounded) {
  // s0 + s0 + ..., to the left and to the right: doubling a name of 4 KiB.
  const std::vector<Symbol> symbols = {{std::string(4096, 'n'), 1, 4, 64, 1}};
  std::vector<ShapeExpr::Term> left = {{Op::Symbol, 0}}, right;
  for (int i = 0; i < 255; ++i)
    right.push_back({Op::Symbol, 0});
  for (int i = 0; i < 2000; ++i)
    left.insert(left.end(), {{Op::Symbol, 0}, {Op::Add, 0}});
  right.resize(2 * right.size() - 1, {Op::Add, 0});
  for (const auto &terms : {left, right}) {
    ShapeExpr expr = ShapeExpr::fromTerms(terms);
    ASSERT_TRUE(expr.check(1).isOk());
    std::string text = expr.str(symbols);
    EXPECT_LT(text.size(), 4200u);
    EXPECT_TRUE(text.starts_with("(")) << text.substr(0, 20);
    EXPECT_TRUE(text.ends_with("...")) << text.substr(text.size() - 20);
    // Short names go further.
    text = expr.str();
    EXPECT_TRUE(text.find("s0 + ") != std::string::npos);
    EXPECT_LT(text.size(), 4200u);
  }
  EXPECT_EQ(ShapeExpr::symbol(0).str(symbols), symbols[0].name);
  Signature signature;
  signature.symbols = symbols;
  TensorSpec spec = {"x", DType::Float32, {64, ShapeExpr::symbol(0)}};
  EXPECT_EQ(signature.typeString(spec),
            "float32 [64, " + symbols[0].name + "]");
  spec.dims.assign(64, ShapeExpr::symbol(0));
  EXPECT_EQ(signature.typeString(spec),
            "float32 [" + symbols[0].name + ", ...]");
}

TEST(ShapeExpr, TextOfOtherOperators) {
  ShapeExpr a = ShapeExpr::symbol(0), b = ShapeExpr::symbol(1);
  auto text = [&](Op op) {
    return ShapeExpr::binary(Op::Sub, ShapeExpr::binary(op, a, b), b).str();
  };
  EXPECT_EQ(text(Op::Sub), "((s0 - s1) - s1)");
  EXPECT_EQ(text(Op::FloorDiv), "((s0 / s1) - s1)");
  EXPECT_EQ(text(Op::CeilDiv), "(ceildiv(s0, s1) - s1)");
  EXPECT_EQ(text(Op::Mod), "((s0 % s1) - s1)");
  EXPECT_EQ(text(Op::Max), "(max(s0, s1) - s1)");
  EXPECT_EQ(text(Op::Min), "(min(s0, s1) - s1)");
  for (std::vector<ShapeExpr::Term> bad :
       {std::vector<ShapeExpr::Term>{{Op::Add, 0}},
        {{Op::Const, 1}, {Op::Add, 0}},
        {{Op::Const, 1}, {Op::Const, 1}},
        {{Op(255), 0}},
        {{Op::Const, 1}, {Op::Const, 1}, {Op(255), 0}}})
    EXPECT_EQ(ShapeExpr::fromTerms(bad).str(), "<malformed>");
}

} // namespace

/// int(floor(single(single(float(s0)) * 0.7f))), as a model computes it.
ShapeExpr scaled(double scale) {
  int64_t bits = std::bit_cast<int64_t>(scale);
  return ShapeExpr::fromTerms({{Op::Symbol, 0},
                               {Op::ToFloat, 0},
                               {Op::ToSingle, 0},
                               {Op::FloatConst, bits},
                               {Op::FloatMul, 0},
                               {Op::ToSingle, 0},
                               {Op::Floor, 0},
                               {Op::Truncate, 0}});
}

TEST(ShapeExpr, FloatsRoundAsModelsDo) {
  // In double precision 10 * 0.7f is below 7, in single precision it is 7.
  ShapeExpr seven = scaled(0.7f);
  ASSERT_TRUE(seven.check(1).isOk());
  EXPECT_LT(10 * double(0.7f), 7);
  EXPECT_EQ(eval(seven, {10}), 7);
  EXPECT_EQ(eval(seven, {11}), 7);
  EXPECT_EQ(seven.str({}), "int(floor(single((single(float(s0)) * "
                           "0.699999988079071))))");
  EXPECT_FALSE(scaled(1e30).evaluate({{3}}));
  EXPECT_FALSE(scaled(std::nan("")).evaluate({{3}}));
}

TEST(ShapeExpr, TruncatedDivision) {
  ShapeExpr n = ShapeExpr::symbol(0), d = ShapeExpr::symbol(1);
  ShapeExpr q = ShapeExpr::binary(Op::TruncDiv, n, d);
  EXPECT_EQ(eval(q, {-7, 2}), -3);
  EXPECT_EQ(eval(q, {7, -2}), -3);
  EXPECT_FALSE(q.evaluate({{7, 0}}));
  EXPECT_FALSE(q.evaluate({{std::numeric_limits<int64_t>::min(), -1}}));
}

TEST(ShapeExpr, MixedUpFloatsAreMalformed) {
  auto check = [](std::vector<ShapeExpr::Term> terms) {
    Status status = ShapeExpr::fromTerms(std::move(terms)).check(1);
    return std::string(status.message());
  };
  EXPECT_NE(check({{Op::Symbol, 0}, {Op::Floor, 0}}).find("mixes"),
            std::string::npos);
  EXPECT_NE(check({{Op::Symbol, 0}, {Op::ToFloat, 0}}).find("gives a float"),
            std::string::npos);
  EXPECT_NE(
      check({{Op::Symbol, 0}, {Op::Symbol, 0}, {Op::ToFloat, 0}, {Op::Add, 0}})
          .find("mixes"),
      std::string::npos);
  EXPECT_NE(check({{Op::Truncate, 0}}).find("lacks"), std::string::npos);
}
