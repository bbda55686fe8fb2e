#include "graph/ir/Shape.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace charonia::graph;

namespace {

std::string toString(AffineMap map) {
  std::string text;
  llvm::raw_string_ostream(text) << map;
  return text;
}

class Simplify : public testing::Test {
protected:
  MLIRContext context;

  AffineMap parse(StringRef text) {
    auto attribute =
        parseAttribute(("affine_map<" + text + ">").str(), &context);
    EXPECT_TRUE(attribute) << text.str();
    return cast<AffineMapAttr>(attribute).getValue();
  }
  /// The simplified form of `map` where `extents` bound its dims.
  std::string simplified(StringRef map, StringRef extents = "") {
    Exprs bounds;
    if (!extents.empty())
      bounds = Exprs(parse(extents).getResults());
    return toString(simplify(parse(map), bounds));
  }
  std::string canonical(StringRef map) { return toString(parse(map)); }
};

#define EXPECT_FORM(map, extents, expected)                                    \
  EXPECT_EQ(simplified(map, extents), canonical(expected))

TEST_F(Simplify, SumsAndProducts) {
  EXPECT_FORM("()[s0, s1] -> (s0 + s1 + s0)", "",
              "()[s0, s1] -> (s0 * 2 + s1)");
  EXPECT_FORM("()[s0] -> (s0 * 3 - s0 - s0 * 2)", "", "()[s0] -> (0)");
  EXPECT_FORM("()[s0, s1] -> ((s0 + 1) * (s1 + 1) - s0 * s1 - 1)", "",
              "()[s0, s1] -> (s0 + s1)");
  EXPECT_EQ(simplified("()[s0, s1] -> (s0 * s1 * 4)"),
            simplified("()[s0, s1] -> (4 * s1 * s0)"));
}

TEST_F(Simplify, DivisionsOfSymbols) {
  EXPECT_FORM("()[s0] -> ((s0 * 12) floordiv 4)", "", "()[s0] -> (s0 * 3)");
  EXPECT_FORM("()[s0, s1] -> ((s0 * s1) floordiv s1)", "",
              "()[s0, s1] -> (s0)");
  EXPECT_FORM("()[s0, s1] -> ((s0 * s1) mod s0)", "", "()[s0, s1] -> (0)");
  EXPECT_FORM("()[s0, s1] -> ((s0 * s1 * 6 + s0 * 3) floordiv (s0 * 3))", "",
              "()[s0, s1] -> (s1 * 2 + 1)");
  EXPECT_FORM("()[s0] -> ((s0 * s0 + s0) floordiv (s0 + 1))", "",
              "()[s0] -> (s0)");
  EXPECT_FORM("()[s0] -> (s0 ceildiv 4)", "",
              "()[s0] -> ((s0 + 3) floordiv 4)");
  // An output extent of a strided convolution.
  EXPECT_FORM("()[s0] -> ((s0 + 6 - 7) floordiv 2 + 1)", "",
              "()[s0] -> ((s0 + 1) floordiv 2)");
  EXPECT_FORM("()[s0] -> ((s0 floordiv 3) floordiv 5)", "",
              "()[s0] -> (s0 floordiv 15)");
  EXPECT_FORM("()[s0] -> ((s0 mod 12) mod 4)", "", "()[s0] -> (s0 mod 4)");
  EXPECT_FORM("()[s0] -> ((s0 mod 12) floordiv 4)", "",
              "()[s0] -> ((s0 floordiv 4) mod 3)");
}

TEST_F(Simplify, QuotientAndRemainderJoin) {
  EXPECT_FORM("(d0) -> (d0 floordiv 7 * 7 + d0 mod 7)", "", "(d0) -> (d0)");
  EXPECT_FORM("(d0)[s0] -> (d0 floordiv s0 * s0 + d0 mod s0)", "",
              "(d0)[s0] -> (d0)");
  EXPECT_FORM("(d0)[s0] -> ((d0 floordiv s0) * s0 * 5 + (d0 mod s0) * 5)", "",
              "(d0)[s0] -> (d0 * 5)");
  EXPECT_FORM("(d0) -> (((d0 floordiv 4) mod 3) * 4 + d0 mod 4)", "",
              "(d0) -> (d0 mod 12)");
  EXPECT_FORM("()[s0] -> (s0 - (s0 floordiv 4) * 4)", "",
              "()[s0] -> (s0 mod 4)");
  // Divisors that are sums, as extents of what is cut out.
  EXPECT_FORM("(d0)[s0] -> ((d0 floordiv (s0 + 3)) * (s0 + 3) + d0 mod (s0 + "
              "3))",
              "", "(d0)[s0] -> (d0)");
  EXPECT_FORM("(d0)[s0] -> (((d0 floordiv (s0 + 3)) mod 5) * (s0 + 3) + d0 mod "
              "(s0 + 3))",
              "", "(d0)[s0] -> (d0 mod (s0 * 5 + 15))");
  EXPECT_FORM("(d0)[s0, s1] -> (((d0 floordiv (s1 + 3)) mod (s0 + 1)) * (s1 + "
              "3) * 2 + (d0 mod (s1 + 3)) * 2)",
              "", "(d0)[s0, s1] -> ((d0 mod (s0 * s1 + s0 * 3 + s1 + 3)) * 2)");
  // Not where a term of the sum is another.
  EXPECT_FORM(
      "(d0)[s0] -> (((d0 floordiv (s0 + 3)) mod 5) * (s0 + 2) + d0 mod "
      "(s0 + 3))",
      "",
      "(d0)[s0] -> (((d0 floordiv (s0 + 3)) mod 5) * s0 + d0 mod (s0 + 3) + "
      "((d0 floordiv (s0 + 3)) mod 5) * 2)");
}

TEST_F(Simplify, ExtentsDecide) {
  EXPECT_FORM("(d0, d1) -> ((d0 * 64 + d1) floordiv 64, (d0 * 64 + d1) mod 64)",
              "() -> (12, 64)", "(d0, d1) -> (d0, d1)");
  // Without extents nothing may be dropped.
  EXPECT_FORM("(d0, d1) -> ((d0 * 64 + d1) floordiv 64)", "",
              "(d0, d1) -> (d0 + d1 floordiv 64)");
  EXPECT_FORM("(d0, d1)[s0] -> ((d0 * s0 + d1) floordiv s0, (d0 * s0 + d1) mod "
              "s0)",
              "()[s0] -> (12, s0)", "(d0, d1)[s0] -> (d0, d1)");
  // A head split: only the last dimension is touched.
  EXPECT_FORM("(d0, d1, d2, d3)[s0] -> (((d0 * s0 + d1) * 12 + d2) * 64 + d3)",
              "()[s0] -> (2, s0, 12, 64)",
              "(d0, d1, d2, d3)[s0] -> (d0 * (s0 * 768) + d1 * 768 + d2 * 64 + "
              "d3)");
  EXPECT_FORM(
      "(d0, d1, d2)[s0, s1] -> (((d0 * s0 + d1) * s1 + d2) floordiv (s0 "
      "* s1), (((d0 * s0 + d1) * s1 + d2) floordiv s1) mod s0, ((d0 * s0 "
      "+ d1) * s1 + d2) mod s1)",
      "()[s0, s1] -> (7, s0, s1)", "(d0, d1, d2)[s0, s1] -> (d0, d1, d2)");
  EXPECT_FORM("(d0, d1) -> ((d0 * 3 + d1) floordiv 6, (d0 * 3 + d1) mod 6)",
              "() -> (8, 3)",
              "(d0, d1) -> (d0 floordiv 2, d1 + (d0 mod 2) * 3)");
  EXPECT_FORM("(d0, d1)[s0] -> ((d0 * 3 * s0 + d1) floordiv (s0 * 6))",
              "()[s0] -> (8, s0 * 3)", "(d0, d1)[s0] -> (d0 floordiv 2)");
  EXPECT_FORM("(d0)[s0] -> (d0 floordiv s0)", "()[s0] -> (s0)",
              "(d0)[s0] -> (0)");
  EXPECT_FORM("(d0)[s0] -> ((d0 + s0) floordiv s0)", "()[s0] -> (s0)",
              "(d0)[s0] -> (1)");
  EXPECT_FORM("(d0)[s0] -> ((d0 floordiv 4) mod s0)", "()[s0] -> (s0 * 4)",
              "(d0)[s0] -> (d0 floordiv 4)");
}

/// Rows of one length read as rows of another: attention's positions relative
/// to a query are padded by a column, read in other rows and cut.
TEST_F(Simplify, RowsOfNearlyTheSameLength) {
  EXPECT_FORM("(d0, d1) -> ((d0 * 495 + d1 + 248) floordiv 496, "
              "(d0 * 495 + d1 + 248) mod 496)",
              "() -> (248, 248)", "(d0, d1) -> (d0, -d0 + d1 + 248)");
  EXPECT_FORM("(d0, d1) -> (((d0 * 495 + d1) floordiv 248 + 1) floordiv 2)",
              "() -> (248, 248)", "(d0, d1) -> (d0)");
  EXPECT_FORM("(d0, d1) -> ((((d0 * 495 + d1) floordiv 248 + 1) mod 2) * 248 + "
              "(d0 * 495 + d1) mod 248)",
              "() -> (248, 248)", "(d0, d1) -> (-d0 + d1 + 248)");
  EXPECT_FORM("(d0, d1) -> ((d0 * 497 + d1) floordiv 496)", "() -> (200, 200)",
              "(d0, d1) -> (d0)");
  // Where what is left may reach a whole row, the division stays.
  EXPECT_FORM("(d0, d1) -> ((d0 * 5 + d1) floordiv 4)", "() -> (3, 3)",
              "(d0, d1) -> ((d0 * 5 + d1) floordiv 4)");
}

TEST_F(Simplify, RemaindersOfLargeMultiples) {
  EXPECT_FORM("()[s0] -> (((s0 * 1024) mod 11 * 2) mod 11)", "",
              "()[s0] -> ((s0 * 2048) mod 11)");
  // A multiple of a size might leave 64 bits.
  EXPECT_FORM("()[s0] -> (((s0 * 4194304) mod 11 * 2) mod 11)", "",
              "()[s0] -> (((s0 * 4194304) mod 11 * 2) mod 11)");
  EXPECT_FORM("(d0) -> (((d0 * 4194304) mod 11 * 2) mod 11)", "() -> (1000)",
              "(d0) -> ((d0 * 8388608) mod 11)");
}

TEST_F(Simplify, OddInput) {
  // Division by zero is nobody's to fold, and must not crash.
  EXPECT_FORM("(d0) -> (d0 floordiv (3 - 3))", "", "(d0) -> (d0 floordiv 0)");
  EXPECT_FORM("(d0) -> (d0 floordiv 4)", "() -> (0)", "(d0) -> (0)");
  EXPECT_FORM("()[s0] -> (s0 * 9223372036854775807 * 2)", "",
              "()[s0] -> (s0 * 9223372036854775807 * 2)");
}

TEST_F(Simplify, NonNegative) {
  auto prove = [&](StringRef text, StringRef extents = "") {
    Exprs bounds;
    if (!extents.empty())
      bounds = Exprs(parse(extents).getResults());
    return isNonNegative(parse(text).getResult(0), bounds);
  };
  EXPECT_TRUE(prove("()[s0] -> (s0 - 1)"));
  EXPECT_FALSE(prove("()[s0] -> (s0 - 2)"));
  EXPECT_TRUE(prove("()[s0, s1] -> (s0 * s1 - s0)"));
  EXPECT_TRUE(prove("(d0, d1)[s0, s1] -> (s0 * s1 - 1 - d0 * s1 - d1)",
                    "()[s0, s1] -> (s0, s1)"));
  EXPECT_FALSE(prove("(d0)[s0] -> (s0 - 2 - d0)", "()[s0] -> (s0)"));
  Facts facts;
  facts.symbols = {{5, 10}};
  EXPECT_TRUE(isNonNegative(parse("()[s0] -> (s0 - 5)").getResult(0), facts));
  // A symbol that may be 0 or negative proves less.
  facts.symbols = {{-1, 10}};
  EXPECT_FALSE(isNonNegative(parse("()[s0] -> (s0)").getResult(0), facts));
}

/// Random expressions over two dims and two symbols; divisors are positive for
/// positive symbols.
class RandomMaps : public Simplify {
protected:
  std::mt19937 random{20240607};
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  AffineExpr divisor() {
    AffineExpr s = getAffineSymbolExpr(pick(0, 1), &context);
    switch (pick(0, 4)) {
    case 0:
      return s;
    case 1:
      return s * pick(1, 4);
    case 2:
      return s + pick(0, 3);
    default:
      return getAffineConstantExpr(pick(1, 12), &context);
    }
  }
  AffineExpr expression(int depth) {
    if (depth == 0 || pick(0, 6) == 0)
      switch (pick(0, 3)) {
      case 0:
        return getAffineConstantExpr(pick(-6, 6), &context);
      case 1:
        return getAffineSymbolExpr(pick(0, 1), &context);
      default:
        return getAffineDimExpr(pick(0, 1), &context);
      }
    AffineExpr a = expression(depth - 1);
    switch (pick(0, 6)) {
    case 0:
    case 1:
      return a + expression(depth - 1);
    case 2:
      return a - expression(depth - 1);
    case 3:
      return a * (pick(0, 1) ? getAffineConstantExpr(pick(-5, 8), &context)
                             : getAffineSymbolExpr(pick(0, 1), &context));
    case 4:
      return a.floorDiv(divisor());
    case 5:
      return a % divisor();
    default:
      return a.ceilDiv(divisor());
    }
  }
};

TEST_F(RandomMaps, KeepTheirValues) {
  int resolved = 0;
  for (int round = 0; round < 4000; ++round) {
    AffineExpr e = expression(pick(1, 4));
    AffineMap map = AffineMap::get(2, 2, e);
    Exprs extents;
    for (int i = 0; i < 2; ++i)
      switch (pick(0, 3)) {
      case 0:
        extents.push_back({});
        break;
      case 1:
        extents.push_back(getAffineConstantExpr(pick(1, 12), &context));
        break;
      default:
        extents.push_back(getAffineSymbolExpr(pick(0, 1), &context) *
                          pick(1, 3));
      }
    AffineMap simple = simplify(map, extents);
    resolved += simple != map;
    for (int trial = 0; trial < 24; ++trial) {
      SmallVector<int64_t> symbols{pick(1, 9), pick(1, 9)}, dims;
      for (AffineExpr extent : extents) {
        int64_t size = extent ? *evaluate(extent, symbols) : 0;
        dims.push_back(extent ? pick(0, size - 1) : pick(-20, 20));
      }
      auto before = evaluate(e, dims, symbols),
           after = evaluate(simple.getResult(0), dims, symbols);
      ASSERT_EQ(before, after)
          << toString(map) << "\nbecame\n"
          << toString(simple) << "\ndims " << dims[0] << ", " << dims[1]
          << " symbols " << symbols[0] << ", " << symbols[1];
      // What can be proved must be true.
      if (trial == 0 && isNonNegative(e, extents))
        for (int more = 0; more < 10; ++more)
          ASSERT_GE(*before, 0) << toString(map);
    }
    // Interval bounds must hold as well.
    Facts facts;
    facts.dims = {{-20, 36}, {-20, 36}};
    facts.symbols = {{1, 9}, {1, 9}};
    Interval bounds = boundsOf(e, facts);
    for (int trial = 0; trial < 8; ++trial)
      if (auto value = evaluate(e, {pick(-20, 36), pick(-20, 36)},
                                {pick(1, 9), pick(1, 9)})) {
        ASSERT_GE(*value, bounds.low) << toString(map);
        ASSERT_LE(*value, bounds.high) << toString(map);
      }
  }
  EXPECT_GT(resolved, 1000);
}

TEST_F(RandomMaps, SimplifiedStays) {
  int moved = 0;
  for (int round = 0; round < 2000; ++round) {
    AffineMap map = AffineMap::get(2, 2, expression(3));
    AffineMap once = simplify(map), twice = simplify(once);
    moved += once != twice;
  }
  EXPECT_EQ(moved, 0);
}

} // namespace
