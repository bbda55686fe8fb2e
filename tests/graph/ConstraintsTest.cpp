// Proofs about sizes from ranges, divisors and constraints.
#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace charonia::graph;

namespace {

using Relation = Constraint::Relation;

class ConstraintsTest : public ::testing::Test {
protected:
  ConstraintsTest() {
    context.loadDialect<GraphDialect, func::FuncDialect>();
    for (unsigned i = 0; i < 3; ++i)
      s[i] = getAffineSymbolExpr(i, &context);
  }
  AffineExpr number(int64_t value) {
    return getAffineConstantExpr(value, &context);
  }
  SizeFacts facts() { return {symbols, constraints}; }

  MLIRContext context;
  AffineExpr s[3];
  SmallVector<Symbol> symbols = {
      {"a", 1, 1, 8, 1}, {"b", 4, 4, 64, 4}, {"c", 10, 10, 20, 1}};
  SmallVector<Constraint> constraints;
};

TEST_F(ConstraintsTest, Equations) {
  Equation e = toEquation(s[0] * 4 - s[1] * 8 + 12);
  EXPECT_EQ(e.left, s[0] + 3);
  EXPECT_EQ(e.right, s[1] * 2);
  EXPECT_EQ(e, toEquation(s[1] * 2 - s[0] - 3));
  EXPECT_EQ(toEquation(number(0)).left, number(0));
}

TEST_F(ConstraintsTest, ExactDivisions) {
  // [n, 6] as [n * 6 / 4, 4].
  AffineExpr total = s[0] * 6;
  auto exact = findExactDivision(total - total.floorDiv(4) * 4);
  ASSERT_TRUE(exact);
  EXPECT_EQ(facts().isMultiple(exact->dividend, exact->divisor), std::nullopt);
  EXPECT_TRUE(findExactDivision(s[0] % 3));
  // Products with what is not divided.
  AffineExpr area = s[0] * s[1];
  exact = findExactDivision(area * s[2] - s[2] * area.floorDiv(32) * 32);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->divisor, 32);
  EXPECT_FALSE(findExactDivision(s[0] - s[1].floorDiv(2)));
  EXPECT_FALSE(findExactDivision(s[0].floorDiv(2) - 3));
}

/// What says more than that a division is exact.
TEST_F(ConstraintsTest, DivisionsThatAreNotAllOfTheEquation) {
  AffineExpr half = s[0].floorDiv(2), odd = s[0] - half * 2;
  EXPECT_TRUE(findExactDivision(odd));
  // Its last term is 0 where the quotient is 0, 1 and 2.
  EXPECT_FALSE(findExactDivision(odd + (half * 3).floorDiv(700)));
  // The quotient is a factor of nothing, or of what may be 0.
  EXPECT_FALSE(findExactDivision(half * 0 + s[0] - s[1]));
  EXPECT_FALSE(findExactDivision(half * half - s[0]));
  // Inside of another division.
  EXPECT_FALSE(findExactDivision(s[0] - half.floorDiv(3) * 2));
  auto nested = findExactDivision(half - half.floorDiv(3) * 3);
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->divisor % 3, 0);
}

TEST_F(ConstraintsTest, Multiples) {
  EXPECT_EQ(facts().isMultiple(s[1] * 3, 12), true);
  EXPECT_EQ(facts().isMultiple(s[1] + 2, 4), false);
  EXPECT_EQ(facts().isMultiple(s[0], 2), std::nullopt);
  constraints.push_back({Relation::Divides, number(6), s[0], ""});
  EXPECT_EQ(facts().isMultiple(s[0], 2), true);
  EXPECT_EQ(facts().isMultiple(s[0] + 2, 4), std::nullopt);
}

TEST_F(ConstraintsTest, Equality) {
  EXPECT_EQ(facts().areEqual(s[0] * 2 + s[0], s[0] * 3), true);
  EXPECT_EQ(facts().areEqual(s[0], s[2]), false); // 1..8 and 10..20
  EXPECT_EQ(facts().areEqual(s[0], s[1]), std::nullopt);
  EXPECT_EQ(facts().areEqual(s[1].floorDiv(4) * 4, s[1]), true);
  EXPECT_EQ(facts().areEqual((s[1] + 1).floorDiv(4) * 4, s[1] + 1), false);
  constraints.push_back({Relation::Equal, s[0] * 3, s[1], ""});
  EXPECT_EQ(facts().areEqual(s[1] * 2, s[0] * 6), true);
  EXPECT_EQ(facts().areEqual(s[1], s[0]), std::nullopt);
}

TEST_F(ConstraintsTest, AtLeast) {
  EXPECT_TRUE(facts().isNonNegative(s[2] - s[0]));
  EXPECT_FALSE(facts().isNonNegative(s[1] - s[0]));
  constraints.push_back({Relation::AtLeast, s[1], s[0] + 2, ""});
  EXPECT_TRUE(facts().isNonNegative(s[1] - s[0]));
  EXPECT_FALSE(facts().isNonNegative(s[1] - s[0] - 3));
}

/// n >= n / 2 holds for all sizes.
TEST_F(ConstraintsTest, Quotients) {
  AffineExpr n = s[0];
  for (AffineExpr size : {n - n.floorDiv(2), (n + 1).floorDiv(2) * 2 - n,
                          n - n.floorDiv(3) - n.floorDiv(2),
                          n * 2 - (n.floorDiv(2) * 3).floorDiv(2) * 2})
    EXPECT_TRUE(facts().isNonNegative(size));
  for (AffineExpr size :
       {n.floorDiv(2) * 2 - n, n - n.floorDiv(2) - n.floorDiv(2) - 1})
    EXPECT_FALSE(facts().isNonNegative(size));
}

/// By a size: they lie below it, and are no more than their dividend.
TEST_F(ConstraintsTest, Remainders) {
  AffineExpr rest = s[1] % s[0];
  EXPECT_TRUE(facts().isNonNegative(s[0] - 1 - rest));
  EXPECT_TRUE(facts().isNonNegative(s[0] * 2 - 2 - rest * 2));
  EXPECT_TRUE(facts().isNonNegative(s[1] - rest));
  EXPECT_TRUE(facts().isNonNegative(s[0] - 1 - number(5) % s[0]));
  EXPECT_TRUE(facts().isNonNegative(s[1] - rest % s[2]));
  EXPECT_FALSE(facts().isNonNegative(s[0] - 2 - rest));
  EXPECT_FALSE(facts().isNonNegative(rest - 1));
  EXPECT_FALSE(facts().isNonNegative(s[1] - 1 - rest));
}

/// Of many constraints on a size each may be what proves something.
TEST_F(ConstraintsTest, OneOfMany) {
  for (unsigned i = 3; i < 40; ++i) {
    symbols.push_back({("m" + llvm::Twine(i)).str(), 1, 1, 64, 1});
    AffineExpr other = getAffineSymbolExpr(i, &context);
    constraints.push_back({Relation::AtLeast, s[1], other + 2, ""});
  }
  SizeFacts known = facts();
  for (unsigned i = 3; i < 40; ++i) {
    AffineExpr other = getAffineSymbolExpr(i, &context);
    EXPECT_TRUE(known.isNonNegative(s[1] - other - 2));
    EXPECT_TRUE(known.isNonNegative(s[1] * 2 - other - 3));
    EXPECT_FALSE(known.isNonNegative(s[1] - other - 3));
  }
}

TEST_F(ConstraintsTest, ConstraintsThatAlwaysHold) {
  auto isProved = [&](Relation relation, AffineExpr left, AffineExpr right) {
    return facts().isProved({relation, left, right, ""});
  };
  EXPECT_TRUE(isProved(Relation::Divides, number(2), number(4)));
  EXPECT_TRUE(isProved(Relation::Divides, number(2), s[1]));
  EXPECT_FALSE(isProved(Relation::Divides, number(2), s[0]));
  EXPECT_FALSE(isProved(Relation::Divides, s[0], s[1]));
  EXPECT_TRUE(isProved(Relation::AtLeast, number(8), s[0]));
  EXPECT_FALSE(isProved(Relation::AtLeast, number(7), s[0]));
  EXPECT_TRUE(isProved(Relation::Equal, s[1].floorDiv(4) * 4, s[1]));
  EXPECT_FALSE(isProved(Relation::Equal, s[0], s[1]));
}

/// A symbol that is added or narrowed later.
TEST_F(ConstraintsTest, FactsGrow) {
  SizeFacts facts;
  facts.set(0, {"a", 1, 1, 8, 1});
  facts.set(1, {"b", 1, 1, 8, 1});
  facts.add({Relation::AtLeast, s[0], s[1] * 2, ""});
  EXPECT_TRUE(facts.isNonNegative(s[0] - s[1]));
  EXPECT_FALSE(facts.isNonNegative(s[0] - 4));
  EXPECT_FALSE(facts.areEqual(s[0], number(2)).has_value());
  facts.set(1, {"b", 2, 2, 8, 1});
  EXPECT_TRUE(facts.isNonNegative(s[0] - 4));
  facts.set(0, {"a", 5, 5, 8, 1});
  EXPECT_EQ(facts.areEqual(s[0], number(2)), false);
}

TEST_F(ConstraintsTest, Text) {
  EXPECT_EQ(toString({Relation::Equal, s[0] + s[1], s[2], ""}, symbols),
            "a + b = c");
  EXPECT_EQ(toString({Relation::Divides, number(2), s[2], ""}, symbols),
            "c is a multiple of 2");
  EXPECT_EQ(toString({Relation::AtLeast, number(9), s[2], ""}, symbols),
            "c <= 9");
  EXPECT_EQ(toString({Relation::AtLeast, s[1], s[0], ""}, symbols), "b >= a");
}

/// A size that an operator takes for equal needs a proof or a constraint.
TEST_F(ConstraintsTest, NothingIsAcceptedWithoutAProof) {
  const char *text = R"(
    module attributes {graph.symbols = [
        {name = "m", min = 1, opt = 2, max = 8, divisor = 1},
        {name = "n", min = 1, opt = 2, max = 8, divisor = 1}]} {
      func.func @main(%a: tensor<4x?xf32, affine_map<()[s0] -> (4, s0)>>,
                      %b: tensor<?x5xf32, affine_map<()[s0, s1] -> (s1, 5)>>)
          -> tensor<4x5xf32> {
        %0 = graph.matmul %a, %b
          : (tensor<4x?xf32, affine_map<()[s0] -> (4, s0)>>,
             tensor<?x5xf32, affine_map<()[s0, s1] -> (s1, 5)>>)
          -> tensor<4x5xf32>
        return %0 : tensor<4x5xf32>
      }
    })";
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
    messages += d.str() + "\n";
    return success();
  });
  EXPECT_TRUE(failed(verifySizes(*module)));
  EXPECT_NE(messages.find("matmul of [4, s0] and [s1, 5]: inner dimensions "
                          "differ"),
            std::string::npos)
      << messages;
  setConstraints(*module, Constraint{Relation::Equal, s[0], s[1], "as it is"});
  EXPECT_TRUE(succeeded(verifySizes(*module)));
  auto list = getConstraints(*module);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].reason, "as it is");
}

} // namespace
