#include "graph/ir/Dialect.h"
#include "mlir/AsmParser/AsmParser.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace charonia::graph;

namespace {

class Shapes : public testing::Test {
protected:
  MLIRContext context;
  AffineExpr s(unsigned i) { return getAffineSymbolExpr(i, &context); }
  AffineExpr c(int64_t v) { return getAffineConstantExpr(v, &context); }
  Exprs shape(std::initializer_list<AffineExpr> dims) { return Exprs(dims); }
  Exprs constants(ArrayRef<int64_t> sizes) {
    Exprs dims;
    for (int64_t size : sizes)
      dims.push_back(c(size));
    return dims;
  }
};

TEST_F(Shapes, TypesRoundTrip) {
  Type f16 = Float16Type::get(&context);
  RankedTensorType type = makeType({s(1) * 2 + s(1), c(768)}, f16);
  EXPECT_EQ(getShape(type)[0], s(1) * 3);
  EXPECT_TRUE(hasSymbolicShape(type));
  EXPECT_EQ(makeType(getShape(type), f16), type);
  EXPECT_EQ(type, parseType("tensor<?x768xf16, affine_map<()[s0, s1] -> (s1 * "
                            "3, 768)>>",
                            &context));
  EXPECT_EQ(makeType({c(2), c(3)}, f16), RankedTensorType::get({2, 3}, f16));
  EXPECT_FALSE(hasSymbolicShape(parseType("tensor<?xf16>", &context)));
  EXPECT_FALSE(hasSymbolicShape(parseType("tensor<*xf16>", &context)));
  EXPECT_FALSE(hasSymbolicShape(
      parseType("tensor<?xf16, affine_map<()[s0] -> (s0, 3)>>", &context)));
  EXPECT_EQ(typeToString(type, {Symbol{"batch"}, Symbol{"seq"}}),
            "float16[seq*3, 768]");
}

TEST_F(Shapes, SymbolsRoundTrip) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  setSymbols(*module, {{"batch", 1, 8, 64, 1}, {"seq", 8, 128, 512, 8}});
  auto symbols = getSymbols(*module);
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[1].name, "seq");
  EXPECT_EQ(symbols[1].max, 512);
  EXPECT_EQ(symbols[1].divisor, 8);
}

TEST_F(Shapes, Broadcast) {
  EXPECT_EQ(*broadcastShapes(shape({s(0), c(1), c(4)}), shape({c(7), c(1)})),
            shape({s(0), c(7), c(4)}));
  EXPECT_EQ(*broadcastShapes(shape({c(1)}), shape({s(0)})), shape({s(0)}));
  EXPECT_FALSE(broadcastShapes(shape({c(3)}), shape({c(4)})));
  // Without rules sizes agree that may.
  EXPECT_EQ(*broadcastShapes(shape({s(0)}), shape({s(1)})), shape({s(0)}));
  EXPECT_EQ(*broadcastShapes(shape({s(0)}), shape({c(4)})), shape({c(4)}));
  EXPECT_FALSE(broadcastShapes(shape({s(0)}), shape({s(0) + 1})));
}

TEST_F(Shapes, Evaluate) {
  EXPECT_EQ(evaluate((s(0) + 3).floorDiv(4), {6}), 2);
  EXPECT_EQ(evaluate(s(0).floorDiv(s(1)), {6, 0}), std::nullopt);
  EXPECT_EQ(evaluate(s(0) * s(0), {int64_t(1) << 40}), std::nullopt);
  EXPECT_EQ(evaluate(s(3), {1}), std::nullopt);
  EXPECT_EQ(evaluate((-s(0)).floorDiv(4), {5}), -2);
  EXPECT_EQ(evaluate((-s(0)).ceilDiv(4), {5}), -1);
  EXPECT_EQ(evaluate((-s(0)) % 4, {5}), 3);
}

TEST_F(Shapes, ReshapeOfGroups) {
  // A head split touches the last dimension only.
  AffineMap split = reshapeMap(shape({s(0), s(1), c(768)}),
                               shape({s(0), s(1), c(12), c(64)}), &context);
  auto d = [&](unsigned i) { return getAffineDimExpr(i, &context); };
  EXPECT_EQ(Exprs(split.getResults()), shape({d(0), d(1), d(2) * 64 + d(3)}));
  AffineMap merge = reshapeMap(shape({s(0), s(1), c(12), c(64)}),
                               shape({s(0) * s(1), c(768)}), &context);
  EXPECT_EQ(Exprs(merge.getResults()), shape({d(0).floorDiv(s(1)), d(0) % s(1),
                                              d(1).floorDiv(64), d(1) % 64}));
  // Unit dimensions hold no coordinate.
  AffineMap unit = reshapeMap(shape({c(1), s(0), c(1), c(5)}),
                              shape({s(0), c(1), c(1), c(5), c(1)}), &context);
  EXPECT_EQ(Exprs(unit.getResults()), shape({c(0), d(0), c(0), d(3)}));
  AffineMap scalar = reshapeMap({}, shape({c(1), c(1)}), &context);
  EXPECT_EQ(scalar.getNumResults(), 0u);
  AffineMap fromScalar = reshapeMap(shape({c(1)}), {}, &context);
  EXPECT_EQ(Exprs(fromScalar.getResults()), shape({c(0)}));
  AffineMap empty =
      reshapeMap(shape({c(0), c(3)}), shape({c(3), c(0)}), &context);
  EXPECT_EQ(Exprs(empty.getResults()), shape({c(0), c(0)}));
}

TEST_F(Shapes, RandomReshapes) {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 500; ++round) {
    // Both sides group the same factors, some of them symbols.
    Exprs factors;
    SmallVector<int64_t> values{pick(1, 5), pick(1, 5)};
    for (int64_t i = 0, n = pick(1, 5); i < n; ++i)
      factors.push_back(pick(0, 2) ? c(pick(1, 6)) : s(pick(0, 1)));
    auto group = [&] {
      Exprs dims;
      AffineExpr product = c(1);
      for (AffineExpr f : factors) {
        product = product * f;
        if (pick(0, 1)) {
          dims.push_back(simplify(product));
          product = c(1);
        }
        if (!pick(0, 4))
          dims.push_back(c(1));
      }
      dims.push_back(simplify(product));
      return dims;
    };
    Exprs from = group(), to = group();
    AffineMap map = reshapeMap(from, to, &context);
    SmallVector<int64_t> fromSizes, toSizes;
    for (AffineExpr e : from)
      fromSizes.push_back(*evaluate(e, values));
    for (AffineExpr e : to)
      toSizes.push_back(*evaluate(e, values));
    int64_t count = 1;
    for (int64_t size : toSizes)
      count *= size;
    for (int64_t i = 0; i < count; ++i) {
      SmallVector<int64_t> at(toSizes.size());
      for (int64_t d = toSizes.size(), rest = i; d-- > 0; rest /= toSizes[d])
        at[d] = rest % toSizes[d];
      int64_t linear = 0;
      for (auto [e, size] : llvm::zip_equal(map.getResults(), fromSizes)) {
        int64_t coordinate = *evaluate(e, at, values);
        ASSERT_GE(coordinate, 0);
        ASSERT_LT(coordinate, size);
        linear = linear * size + coordinate;
      }
      ASSERT_EQ(linear, i);
    }
  }
}

} // namespace
