// The algebra of integer expressions against evaluation in 128 bits, and what
// divisors and large numbers do to it.
#include "RandomExprs.h"
#include "mlir/AsmParser/AsmParser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace charonia::graph;

namespace {

class Algebra : public testing::Test {
protected:
  MLIRContext context;
  AffineExpr d(unsigned i) { return getAffineDimExpr(i, &context); }
  AffineExpr s(unsigned i) { return getAffineSymbolExpr(i, &context); }
  AffineExpr c(int64_t v) { return getAffineConstantExpr(v, &context); }

  static std::string text(AffineExpr e) {
    std::string result;
    llvm::raw_string_ostream(result) << e;
    return result;
  }
};

/// One random expression with its facts and values that agree with them.
class RandomAlgebra : public Algebra, public testing::WithParamInterface<bool> {
protected:
  static constexpr int rounds = 3000, samples = 16;
  RandomExprs random{context, GetParam() ? 20261122u : 20261121u};
  bool large() const { return GetParam(); }
  RandomExprs::Kind kind() const { return {true, true, large()}; }
  std::string where(AffineExpr e, const Facts &facts, ArrayRef<int64_t> dims,
                    ArrayRef<int64_t> symbols) {
    std::string result = text(e);
    llvm::raw_string_ostream os(result);
    for (auto [i, v] : llvm::enumerate(dims))
      os << "\nd" << i << " = " << v << " in " << facts.dims[i].low << ".."
         << facts.dims[i].high << " % " << facts.dimDivisors[i];
    for (auto [i, v] : llvm::enumerate(symbols))
      os << "\ns" << i << " = " << v << " in " << facts.symbols[i].low << ".."
         << facts.symbols[i].high << " % " << facts.symbolDivisors[i];
    return result;
  }
};

TEST_P(RandomAlgebra, SimplifyKeepsValues) {
  int changed = 0, compared = 0;
  for (int round = 0; round < rounds; ++round) {
    Facts facts = random.facts(large());
    AffineExpr e = random.expression(random.pick(1, 4), kind()),
               simple = simplify(e, facts);
    changed += simple != e;
    Sum sum(simple);
    AffineExpr again = sum.toExpr(&context);
    for (int sample = 0; sample < samples; ++sample) {
      auto dims = random.dims(facts), symbols = random.symbols(facts);
      auto before = evaluateWide(e, dims, symbols);
      if (!before)
        continue;
      for (AffineExpr form : {simple, again}) {
        bool overflows = false;
        auto after = evaluateWide(form, dims, symbols, nullptr, &overflows);
        if (overflows)
          continue;
        ++compared;
        ASSERT_TRUE(after == before)
            << where(e, facts, dims, symbols) << "\nbecame " << text(form);
      }
    }
  }
  EXPECT_GT(changed, rounds / 4);
  EXPECT_GT(compared, rounds * samples);
}

TEST_P(RandomAlgebra, BoundsAndDivisorsHold) {
  int bounded = 0, divided = 0;
  for (int round = 0; round < rounds; ++round) {
    Facts facts = random.facts(large());
    AffineExpr e = random.expression(random.pick(1, 4), kind()),
               simple = simplify(e, facts);
    for (AffineExpr form : {e, simple}) {
      Interval bounds = boundsOf(form, facts);
      int64_t divisor = divisorOf(form, facts);
      bounded += bounds.isBounded();
      divided += divisor != 1;
      for (int sample = 0; sample < samples; ++sample) {
        auto dims = random.dims(facts), symbols = random.symbols(facts);
        auto value = evaluateWide(form, dims, symbols);
        if (!value)
          continue;
        ASSERT_TRUE(bounds.low == Interval::noLow || *value >= bounds.low)
            << where(form, facts, dims, symbols) << "\nlow " << bounds.low;
        ASSERT_TRUE(bounds.high == Interval::noHigh || *value <= bounds.high)
            << where(form, facts, dims, symbols) << "\nhigh " << bounds.high;
        ASSERT_TRUE(divisor ? *value % divisor == 0 : *value == 0)
            << where(form, facts, dims, symbols) << "\ndivisor " << divisor;
      }
    }
  }
  EXPECT_GT(bounded, rounds / 4);
  EXPECT_GT(divided, rounds / 8);
}

TEST_P(RandomAlgebra, ProofsAreTrue) {
  int notNegative = 0, within = 0;
  for (int round = 0; round < rounds; ++round) {
    Facts facts = random.facts(large());
    // Limits as tiles have them: dim 0 below a multiple of symbol 2.
    AffineExpr limit = s(2) * random.pick(1, 3) + random.pick(0, 1);
    if (random.pick(0, 1)) {
      facts.dims[0] = {0, Interval::noHigh};
      facts.dimLimits = {limit};
    }
    AffineExpr e = random.expression(random.pick(1, 3), kind()),
               high = random.pick(0, 1)
                          ? limit
                          : random.expression(random.pick(1, 2), kind());
    bool proved = isNonNegative(e, facts), inside = isWithin(e, high, facts);
    notNegative += proved;
    within += inside;
    if (!proved && !inside)
      continue;
    for (int sample = 0; sample < 4 * samples; ++sample) {
      auto symbols = random.symbols(facts);
      auto allowed = facts;
      if (!facts.dimLimits.empty()) {
        // One past the last multiple below the limit is out of reach.
        auto most = evaluateWide(limit, {}, symbols);
        if (!most || *most > Interval::noHigh)
          continue;
        int64_t by = facts.dimDivisors[0];
        allowed.dims[0] = {0, (int64_t(*most) - 1) / by * by};
      }
      auto dims = random.dims(allowed);
      auto value = evaluateWide(e, dims, symbols),
           end = evaluateWide(high, dims, symbols);
      if (!value || !end)
        continue;
      ASSERT_TRUE(!proved || *value >= 0)
          << where(e, allowed, dims, symbols) << "\nis negative";
      ASSERT_TRUE(!inside || (*value >= 0 && *value < *end))
          << where(e, allowed, dims, symbols) << "\nis not below "
          << text(high);
    }
  }
  EXPECT_GT(notNegative, rounds / 10);
  EXPECT_GT(within, rounds / 100);
}

/// The sums and products of the magnitudes of constants that meet in `expr`,
/// where dims have those of `dims`; nothing from 2^63 on.
std::optional<int64_t> magnitude(AffineExpr expr,
                                 ArrayRef<std::optional<int64_t>> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() == std::numeric_limits<int64_t>::min()
               ? std::nullopt
               : std::optional(std::abs(constant.getValue()));
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return 1;
  auto a = magnitude(binary.getLHS(), dims),
       b = magnitude(binary.getRHS(), dims);
  int64_t r;
  if (!a || !b)
    return std::nullopt;
  // Of a quotient, what is added to the dividend may come out.
  bool product = expr.getKind() == AffineExprKind::Mul;
  return (product ? llvm::MulOverflow(*a, std::max<int64_t>(*b, 1), r)
                  : llvm::AddOverflow(*a, *b, r))
             ? std::nullopt
             : std::optional(r);
}

/// What Algebra.h promises of composition: exact where constants fit.
TEST_P(RandomAlgebra, CompositionAgrees) {
  int compared = 0, huge = 0, refused = 0;
  for (int round = 0; round < rounds / 2; ++round) {
    Facts facts = random.facts(large());
    // Sizes, as composeMaps takes them.
    for (auto [range, divisor] :
         llvm::zip(facts.symbols, facts.symbolDivisors)) {
      range.low = std::max(range.low, divisor);
      range.high = std::max(range.high, range.low);
    }
    Exprs inner{random.expression(2, kind()), random.expression(2, kind())},
        outer{random.expression(2, kind()), random.expression(1, kind())};
    SmallVector<std::optional<int64_t>> ones(2, 1), constants;
    for (AffineExpr e : inner)
      constants.push_back(magnitude(e, ones));
    AffineMap in = mapOf(2, inner, &context), out = mapOf(2, outer, &context),
              both = composeMaps(out, in);
    for (int sample = 0; sample < samples; ++sample) {
      auto dims = random.dims(facts), symbols = random.symbols(facts);
      SmallVector<int64_t> middle;
      bool fits = true;
      for (AffineExpr e : inner) {
        auto value = evaluateWide(e, dims, symbols, &fits);
        middle.push_back(value ? int64_t(*value) : 0);
        fits &= value.has_value();
      }
      for (unsigned i = 0; fits && i < 2; ++i) {
        auto most = magnitude(outer[i], constants);
        refused += !most;
        if (auto wanted = evaluateWide(outer[i], middle, symbols);
            wanted && most) {
          ++compared;
          huge += *most > int64_t(1) << 60;
          ASSERT_TRUE(evaluateWide(both.getResult(i), dims, symbols) == wanted)
              << where(both.getResult(i), facts, dims, symbols) << "\nis "
              << text(outer[i]) << "\nof " << text(inner[0]) << "\nand "
              << text(inner[1]);
        }
      }
    }
  }
  EXPECT_GT(compared, rounds * samples / 4);
  EXPECT_EQ(huge > 1000, large());
  EXPECT_EQ(refused > 0, large());
}

/// A second look finds nothing more.
TEST_P(RandomAlgebra, SimplifiedStays) {
  int moved = 0;
  for (int round = 0; round < rounds; ++round) {
    Facts facts = random.facts(large());
    AffineExpr once = simplify(random.expression(3, kind()), facts),
               twice = simplify(once, facts);
    moved += once != twice;
  }
  EXPECT_EQ(moved, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranges, RandomAlgebra, testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "Large" : "Small";
                         });

TEST_F(Algebra, DivisorsAreUsed) {
  Facts facts;
  facts.symbols = {{16, 512}, {0, 7}, {1, 100}};
  facts.symbolDivisors = {16};
  auto is = [&](AffineExpr e, AffineExpr wanted) {
    EXPECT_EQ(text(simplify(e, facts)), text(wanted)) << text(e);
  };
  is(s(0) % 16, c(0));
  is(s(0) % 8, c(0));
  is(s(0).floorDiv(4) * 4, s(0));
  is(s(0).floorDiv(16) * 32, s(0) * 2);
  is(s(0).ceilDiv(16) * 16, s(0));
  is((s(0) + s(1)).floorDiv(8), s(0).floorDiv(8));
  is((s(0) + s(1)) % 8, s(1));
  // The rest of what the divisor does not reach is one operation.
  is((s(0) + s(1)) % 64, s(1) + s(0) % 64);
  is((s(0) + s(1)).floorDiv(64), s(0).floorDiv(64));
  is((s(0) * 3) % 48, c(0));
  is(s(0) % 5, s(0) % 5);
  is((s(0) * s(2)) % (s(2) * 16), c(0));
  EXPECT_EQ(divisorOf(s(0) * 3 + 8, facts), 8);
  EXPECT_EQ(divisorOf(s(0) * s(2) * 2, facts), 32);
  EXPECT_EQ(divisorOf(s(0).floorDiv(4), facts), 4);
  EXPECT_EQ(divisorOf(s(0) * 0, facts), 0);
  facts.symbols = {{3, 50}};
  EXPECT_EQ(boundsOf(s(0) % 5 + s(0), facts), (Interval{16, 52}));
}

TEST_F(Algebra, DimsHaveDivisorsToo) {
  Facts facts;
  facts.dims = {{0, 96}, {0, 31}};
  facts.dimDivisors = {32};
  EXPECT_EQ(simplify((d(0) + d(1)).floorDiv(32), facts), d(0).floorDiv(32));
  EXPECT_EQ(simplify((d(0) + d(1)) % 32, facts), d(1));
  // A counter that goes in steps of 32 below a size that is a multiple too
  // leaves room for a whole step.
  facts.dimLimits = {s(0)};
  facts.symbols = {{32, 4096}};
  facts.symbolDivisors = {32};
  EXPECT_TRUE(isWithin(d(0) + d(1), s(0), facts));
  facts.symbolDivisors = {1};
  EXPECT_FALSE(isWithin(d(0) + d(1), s(0), facts));
  EXPECT_TRUE(isWithin(d(0), s(0), facts));
}

TEST_F(Algebra, HalvesOfWholeStepsLieInside) {
  // The elements that a whole tile of twice as long a row is made of.
  Facts facts;
  facts.dims = {{0, 127}};
  facts.symbols = {{0, 1 << 20}, {1, 1 << 20}};
  facts.symbolDivisors = {128, 1};
  facts.symbolLimits = {s(1) * 2 - 127, AffineExpr()};
  AffineExpr place = d(0).floorDiv(2) + s(0).floorDiv(2);
  EXPECT_TRUE(isWithin(place, s(1), facts));
  EXPECT_FALSE(isWithin(place + 1, s(1), facts));
  facts.symbolLimits[0] = s(1) * 2 - 125;
  EXPECT_FALSE(isWithin(place, s(1), facts));
}

/// What leaves 64 bits is left as it is, and proves nothing.
TEST_F(Algebra, OverflowIsNotKnown) {
  constexpr int64_t big = int64_t(1) << 62;
  Facts facts;
  facts.symbols = {{1, big}, {1, big}, {big - 1, big}};
  facts.symbolDivisors = {1, 1, 1};
  auto stays = [&](AffineExpr e) {
    SmallVector<int64_t> values{big, big - 7, big - 1};
    EXPECT_TRUE(evaluateWide(simplify(e, facts), {}, values) ==
                evaluateWide(e, {}, values))
        << text(e);
  };
  stays((s(0) * big) * 4);
  stays((s(0) * big + s(1) * big).floorDiv(big));
  stays((s(0) + big) * 3 - s(0) * 3);
  stays((s(0) * 3 + big).floorDiv(3) * 3);
  stays((s(0) * big) % (c(big) * 4));
  stays((s(2) * s(2)).floorDiv(s(2)));
  stays((s(0) - Interval::noHigh) * -2);
  EXPECT_FALSE(isNonNegative(s(0) * -4 + big, facts));
  EXPECT_FALSE(isWithin(s(0) * 4, c(Interval::noHigh), facts));
  EXPECT_TRUE(isNonNegative(s(2) * 4 - s(0), facts));
  EXPECT_EQ(boundsOf(s(0) * 4, facts), (Interval{4, Interval::noHigh}));
  EXPECT_EQ(boundsOf((s(2) * s(2)).floorDiv(s(2)), facts),
            (Interval{Interval::noHigh / big, Interval::noHigh}));
  EXPECT_EQ(boundsOf(s(0) * -4, facts), (Interval{Interval::noLow, -4}));
  // The multiple of 3 below the smallest number is none of int64_t.
  EXPECT_EQ(evaluate(c(Interval::noLow) % 3, {}),
            1); // -2^63 = 3 * -3074457345618258603 + 1
  EXPECT_EQ(evaluate(c(Interval::noLow).floorDiv(3), {}), -3074457345618258603);
  EXPECT_EQ(divisorOf(c(Interval::noLow), facts), 1);
  Facts wide;
  wide.symbolDivisors = {int64_t(1) << 40, int64_t(1) << 40};
  EXPECT_EQ(simplify((s(0) * s(1)) % 1024, wide), (s(0) * s(1)) % 1024);
  EXPECT_EQ(divisorOf(s(0) * s(1), wide), int64_t(1) << 40);
}

} // namespace
