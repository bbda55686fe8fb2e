// Simplified expressions have the value of the original for every assignment
// within the stated ranges.
#include "graph/ir/Shape.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace charonia;

namespace {

class SimplifyWithFacts : public testing::Test {
protected:
  SimplifyWithFacts() : rng(seed) { RecordProperty("seed", seed); }

  int64_t draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  }

  AffineExpr expression(unsigned depth) {
    if (depth == 0) {
      switch (draw(0, 3)) {
      case 0:
        return getAffineDimExpr(draw(0, 1), &context);
      case 1:
        return getAffineSymbolExpr(draw(0, 1), &context);
      default:
        return getAffineConstantExpr(draw(0, 20), &context);
      }
    }
    AffineExpr a = expression(depth - 1), b = expression(draw(0, depth - 1));
    AffineExpr divisor = draw(0, 3)
                             ? getAffineConstantExpr(draw(1, 12), &context)
                             : getAffineSymbolExpr(2, &context) * draw(1, 3);
    switch (draw(0, 4)) {
    case 0:
      return a + b;
    case 1:
      return a * draw(-3, 12);
    case 2:
      return a.floorDiv(divisor);
    case 3:
      return a % divisor;
    default:
      return a + b * draw(1, 8);
    }
  }

  unsigned seed = std::random_device{}();
  std::mt19937 rng;
  MLIRContext context;
};

TEST_F(SimplifyWithFacts, KeepsValues) {
  graph::Facts facts;
  facts.dims = {{0, 7}, {0, 31}};
  facts.symbols = {{0, 9}, {0, 100}, {1, 6}};
  for (int trial = 0; trial < 3000; ++trial) {
    AffineExpr e = expression(draw(1, 4));
    AffineExpr s = graph::simplify(e, facts);
    for (int sample = 0; sample < 20; ++sample) {
      int64_t dims[] = {draw(0, 7), draw(0, 31)};
      int64_t symbols[] = {draw(0, 9), draw(0, 100), draw(1, 6)};
      std::optional<int64_t> before = graph::evaluate(e, dims, symbols);
      std::optional<int64_t> after = graph::evaluate(s, dims, symbols);
      std::string text;
      llvm::raw_string_ostream(text) << e << "  became  " << s;
      ASSERT_EQ(before, after) << text << " (seed " << seed << ")";
    }
  }
}

TEST_F(SimplifyWithFacts, JoinsQuotientsAndRemainders) {
  AffineExpr m =
      getAffineDimExpr(0, &context) + getAffineSymbolExpr(0, &context) * 12;
  graph::Facts facts;
  facts.dims = {{0, 11}};
  facts.symbols = {{0, 1000}};
  AffineExpr nested = (m.floorDiv(49) * 7 + m.floorDiv(7) % 7) * 7 + m % 7;
  EXPECT_EQ(graph::simplify(nested, facts), graph::simplify(m, facts));
  AffineExpr inner = (m % 49).floorDiv(7) * 7 + m % 7;
  EXPECT_EQ(graph::simplify(inner, facts), graph::simplify(m % 49, facts));
}

TEST_F(SimplifyWithFacts, UsesLimitsOfSymbols) {
  AffineExpr size = getAffineSymbolExpr(0, &context),
             id = getAffineSymbolExpr(1, &context);
  graph::Facts facts;
  facts.symbols = {{1, 1 << 20}, {0, (1 << 20) - 1}};
  facts.symbolLimits = {{}, size};
  EXPECT_TRUE(graph::isWithin(id, size, facts));
  EXPECT_EQ(graph::simplify(id % size, facts), id);
  EXPECT_FALSE(graph::isWithin(id + 1, size, facts));
}

} // namespace
