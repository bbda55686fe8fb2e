#include "charonia/signature.h"

#include <gtest/gtest.h>

using namespace charonia;

namespace {

using Shapes = std::vector<std::vector<int64_t>>;

Signature bertLike() {
  ShapeExpr batch = ShapeExpr::symbol(0), seq = ShapeExpr::symbol(1);
  Signature s;
  s.symbols = {{"batch", 1, 4, 8, 1}, {"seq", 1, 128, 512, 1}};
  s.inputs = {{"ids", DType::Int64, {batch, seq}},
              {"mask", DType::Int64, {batch, seq}},
              {"past", DType::Float32, {batch, 12, seq * 2 + 1}}};
  s.outputs = {{"hidden", DType::Float32, {batch, seq, 768}}};
  return s;
}

std::string messageOf(const Signature &s, const Shapes &shapes) {
  auto result = s.solveSymbols(shapes);
  EXPECT_FALSE(result.isOk());
  return result.isOk() ? "" : result.status().message();
}

TEST(Signature, SolvesSymbols) {
  Signature s = bertLike();
  auto v = s.solveSymbols(Shapes{{3, 37}, {3, 37}, {3, 12, 75}});
  ASSERT_TRUE(v.isOk()) << v.status().message();
  EXPECT_EQ(*v, (std::vector<int64_t>{3, 37}));
  auto shape = s.evaluateShape(s.outputs[0], *v);
  ASSERT_TRUE(shape.isOk());
  EXPECT_EQ(*shape, (std::vector<int64_t>{3, 37, 768}));
}

TEST(Signature, SolvesThroughExpressions) {
  ShapeExpr a = ShapeExpr::symbol(0), b = ShapeExpr::symbol(1);
  Signature s;
  s.symbols = {{"a", 0, 1, 100, 1}, {"b", 0, 1, 100, 1}, {"c", 5, 5, 5, 1}};
  // b follows from a, which the second input tells; c is fixed by its range.
  s.inputs = {{"p", DType::Float32, {a * 3 + b * 2}},
              {"q", DType::Float32, {ShapeExpr(100) - a}}};
  auto v = s.solveSymbols(Shapes{{3 * 7 + 2 * 11}, {93}});
  ASSERT_TRUE(v.isOk()) << v.status().message();
  EXPECT_EQ(*v, (std::vector<int64_t>{7, 11, 5}));
}

TEST(Signature, SizesThatNoInputHas) {
  ShapeExpr n = ShapeExpr::symbol(0), cut = ShapeExpr::symbol(1),
            half = ShapeExpr::symbol(2);
  Signature s;
  s.symbols = {
      {"n", 1, 128, 512, 1}, {"cut", 2, 100, 100, 1}, {"half", 0, 50, 50, 1}};
  s.inputs = {{"x", DType::Float32, {n}}};
  s.outputs = {{"y", DType::Float32, {cut, half}}};
  using Relation = Constraint::Relation;
  // In any order.
  s.constraints = {{Relation::Equal, half, floorDiv(cut, 2), ""},
                   {Relation::Equal, cut, min(n, 100), ""}};
  auto v = s.solveSymbols(Shapes{{37}});
  ASSERT_TRUE(v.isOk()) << v.status().message();
  EXPECT_EQ(*v, (std::vector<int64_t>{37, 37, 18}));
  EXPECT_EQ((*s.solveSymbols(Shapes{{500}}))[1], 100);
  EXPECT_EQ(messageOf(s, {{1}}),
            "the inputs' shapes make cut = min(n, 100) 1; the engine was built "
            "for cut in 2..100");
  using Op = ShapeExpr::Op;
  // Of a size out of range nothing is computed.
  s.constraints[1].right = ShapeExpr::binary(Op::Mul, n, ShapeExpr(1ll << 40));
  EXPECT_EQ(messageOf(s, {{1ll << 40}}),
            "the shape 1099511627776 of the input 'x' makes n 1099511627776; "
            "the engine was built for n in 1..512");
  s.constraints[1].right =
      ShapeExpr::binary(Op::TruncDiv, 100, ShapeExpr::binary(Op::Sub, n, 37));
  EXPECT_EQ(messageOf(s, {{37}}),
            "the inputs' shapes leave cut without a value: the shape "
            "expression truncdiv(100, (s0 - 37)) divides by 0");
  // Nor of what follows from itself.
  s.constraints[1].right = half * 2;
  EXPECT_EQ(messageOf(s, {{37}}),
            "no input's shape determines the shape symbol 'cut'");
  s.constraints.pop_back();
  EXPECT_EQ(messageOf(s, {{37}}),
            "no input's shape determines the shape symbol 'cut'");
}

TEST(Signature, Messages) {
  Signature s = bertLike();
  EXPECT_EQ(messageOf(s, {{9, 37}, {9, 37}, {9, 12, 75}}),
            "the shape 9x37 of the input 'ids' makes batch 9; the engine was "
            "built for batch in 1..8");
  EXPECT_EQ(messageOf(s, {{3, 37}, {4, 37}, {3, 12, 75}}),
            "the input 'mask' takes int64 [batch, seq] with batch in 1..8; seq "
            "in 1..512; dimension 0 of the shape 4x37 should be 3 = batch");
  EXPECT_EQ(messageOf(s, {{3, 37}, {3, 37}, {3, 13, 75}}),
            "the input 'past' takes float32 [batch, 12, ((seq * 2) + 1)] with "
            "batch in 1..8; seq in 1..512; dimension 1 of the shape 3x13x75 "
            "should be 12");
  EXPECT_EQ(messageOf(s, {{3, 37, 1}, {3, 37}, {3, 12, 75}}),
            "the input 'ids' takes int64 [batch, seq] with batch in 1..8; seq "
            "in 1..512, not the shape 3x37x1");
  EXPECT_EQ(messageOf(s, {{3, 37}}),
            "the engine has 3 inputs, but 1 shapes were given");
  auto found = s.findInput("idz");
  ASSERT_FALSE(found.isOk());
  EXPECT_EQ(found.status().message(),
            "no input is named 'idz'; the engine's inputs are 'ids', 'mask', "
            "'past'");
  EXPECT_EQ(s.findOutput("y").status().message(),
            "no output is named 'y'; the engine's outputs are 'hidden'");
}

TEST(Signature, Divisors) {
  Signature s;
  s.symbols = {{"n", 0, 8, 64, 8}};
  s.inputs = {{"x", DType::Float32, {ShapeExpr::symbol(0)}}};
  EXPECT_TRUE(s.solveSymbols(Shapes{{16}}).isOk());
  EXPECT_EQ(
      messageOf(s, {{12}}),
      "the shape 12 of the input 'x' makes n 12; the engine was built for "
      "n in 0..64, a multiple of 8");
}

TEST(Signature, UndeterminedSymbolIsAnError) {
  Signature s;
  s.symbols = {{"a", 1, 1, 9, 1}, {"b", 1, 1, 9, 1}};
  s.inputs = {
      {"x", DType::Float32, {ShapeExpr::symbol(0) * ShapeExpr::symbol(1)}}};
  EXPECT_EQ(messageOf(s, {{6}}),
            "no input's shape determines the shape symbol 'a'");
}

/// y = MatMul(a[4, m], b[n, 5]) and z = Reshape(c[k], [-1, 4]); positions of b
/// lie in a table of 512.
Signature related() {
  ShapeExpr m = ShapeExpr::symbol(0), n = ShapeExpr::symbol(1),
            k = ShapeExpr::symbol(2);
  using R = Constraint::Relation;
  Signature s;
  s.symbols = {{"m", 1, 1, 512, 1}, {"n", 1, 1, 512, 1}, {"k", 1, 1, 4096, 1}};
  s.inputs = {{"a", DType::Float32, {4, m}},
              {"b", DType::Float32, {n, 5}},
              {"c", DType::Float32, {k}}};
  s.constraints = {
      {R::Equal, m, n, "as MatMul 'fc1' multiplies over them"},
      {R::Divides, 4, k, "as Reshape 'r' keeps all elements"},
      {R::AtLeast, 512, n, "so that positions lie inside their table"},
      {R::AtLeast, k, m + n, ""}};
  return s;
}

TEST(Signature, Constraints) {
  Signature s = related();
  EXPECT_TRUE(s.solveSymbols(Shapes{{4, 3}, {3, 5}, {8}}).isOk());
  EXPECT_EQ(messageOf(s, {{4, 3}, {6, 5}, {8}}),
            "a is float32 [4, 3] and b is float32 [6, 5]: dimension 1 of a (m "
            "= 3) must equal dimension 0 of b (n = 6), as MatMul 'fc1' "
            "multiplies over them");
  EXPECT_EQ(messageOf(s, {{4, 3}, {3, 5}, {10}}),
            "c is float32 [10]: dimension 0 of c (k = 10) must be a multiple "
            "of 4, as Reshape 'r' keeps all elements");
  EXPECT_EQ(messageOf(s, {{4, 3}, {3, 5}, {4}}),
            "c is float32 [k = 4], a is float32 [4, m = 3] and b is float32 [n "
            "= 3, 5]: dimension 0 of c (k = 4) must be at least m + n = 6");
  // What a constraint says of a range comes before the range.
  EXPECT_EQ(messageOf(s, {{4, 600}, {600, 5}, {2000}}),
            "the shape 4x600 of the input 'a' makes m 600; the engine was "
            "built for m in 1..512");
  s.symbols[0].max = 4096;
  EXPECT_EQ(messageOf(s, {{4, 600}, {600, 5}, {2000}}),
            "b is float32 [600, 5]: dimension 0 of b (n = 600) must be at most "
            "512, so that positions lie inside their table");
  // Arithmetic that leaves 64 bits is an error, not a wrong answer.
  s.symbols[0].max = s.symbols[1].max = s.symbols[2].max = INT64_MAX;
  s.constraints.erase(s.constraints.begin() + 1, s.constraints.begin() + 3);
  EXPECT_EQ(messageOf(s, {{4, INT64_MAX}, {INT64_MAX, 5}, {4}}),
            "the shape expression m + n overflows 64 bits");
}

TEST(Signature, ConstraintsOfManyInputs) {
  Signature s;
  ShapeExpr sum = 0;
  Shapes shapes;
  for (unsigned i = 0; i < 1000; ++i) {
    s.symbols.push_back(
        {std::string(100, 'n') + std::to_string(i), 1, 8, 9, 1});
    s.inputs.push_back({"x" + std::to_string(i), DType::Int8,
                        std::vector<ShapeExpr>(16, ShapeExpr::symbol(i))});
    shapes.push_back(std::vector<int64_t>(16, 8));
    sum = sum + ShapeExpr::symbol(i);
  }
  s.constraints = {{Constraint::Relation::Equal, sum, 1, ""}};
  std::string text = messageOf(s, shapes);
  EXPECT_LT(text.size(), 20'000u);
  EXPECT_NE(text.find(" and 997 other inputs: "), std::string::npos) << text;
}

TEST(Signature, ConstraintOnAComputedSize) {
  // What is computed from inputs is told by these.
  ShapeExpr n = ShapeExpr::symbol(0), m = ShapeExpr::symbol(1),
            size = ShapeExpr::symbol(2), twice = ShapeExpr::symbol(3);
  using R = Constraint::Relation;
  Signature s;
  s.symbols = {{"n", 1, 1, 64, 1},
               {"m", 1, 1, 64, 1},
               {"size0", 1, 1, 128, 1},
               {"size1", 1, 1, 256, 1}};
  s.inputs = {{"a", DType::Float32, {n, 3}}, {"b", DType::Float32, {m}}};
  s.constraints = {{R::Equal, size, max(1, n + m - 4), ""},
                   {R::Equal, twice, size * 2, ""},
                   {R::AtLeast, twice, 4, "as it was exported"}};
  EXPECT_TRUE(s.solveSymbols(Shapes{{5, 3}, {1}}).isOk());
  EXPECT_EQ(
      messageOf(s, {{2, 3}, {1}}),
      "a is float32 [n = 2, 3] and b is float32 [m = 1]: (max(1, ((n + m) "
      "- 4)) * 2) = 2 must be at least 4, as it was exported");
}

TEST(Signature, ConstraintOnAFixedSize) {
  // A size that only one value is left of is still read from the shape.
  Signature s;
  s.symbols = {{"m", 768, 768, 768, 1}};
  s.inputs = {{"a", DType::Float16, {4, ShapeExpr::symbol(0)}}};
  s.constraints = {{Constraint::Relation::Equal, ShapeExpr::symbol(0), 768,
                    "as MatMul 'fc1' multiplies over them"}};
  EXPECT_TRUE(s.solveSymbols(Shapes{{4, 768}}).isOk());
  EXPECT_EQ(messageOf(s, {{4, 100}}),
            "a is float16 [4, 100]: dimension 1 of a (m = 100) must equal 768, "
            "as MatMul 'fc1' multiplies over them");
}

TEST(Signature, ConstraintText) {
  Signature s = related();
  EXPECT_EQ(s.constraintStrings(),
            (std::vector<std::string>{
                "dimension 1 of a (m) = dimension 0 of b (n), as MatMul 'fc1' "
                "multiplies over them",
                "dimension 0 of c (k) is a multiple of 4, as Reshape 'r' keeps "
                "all elements",
                "dimension 0 of b (n) <= 512, so that positions lie inside "
                "their table",
                "dimension 0 of c (k) >= m + n"}));
}

using SomeShapes = std::vector<std::optional<std::vector<int64_t>>>;

TEST(Signature, CompletedByConstraints) {
  Signature s = related();
  s.symbols[0].opt = s.symbols[1].opt = 128;
  s.symbols[2].opt = 256;
  using Values = std::vector<int64_t>;
  EXPECT_EQ(s.completeSymbols(SomeShapes(3)), (Values{128, 128, 256}));
  EXPECT_EQ(s.completeSymbols(SomeShapes{{{4, 3}}, {}, {}}),
            (Values{3, 3, 256}));
  EXPECT_EQ(s.completeSymbols(SomeShapes{{}, {{7, 5}}, {}}),
            (Values{7, 7, 256}));
  // What is given stands, right or not, and ranks that differ are no harm.
  EXPECT_EQ(s.completeSymbols(SomeShapes{{{4, 3}}, {{7, 5}}, {{8, 8}}}),
            (Values{3, 7, 8}));
  EXPECT_EQ(s.completeSymbols({}), (Values{128, 128, 256}));
  // One equation leads to the next, and so does a size that is chosen.
  s.constraints.push_back({Constraint::Relation::Equal, ShapeExpr::symbol(2),
                           ShapeExpr::symbol(1) * 2 + 4, ""});
  EXPECT_EQ(s.completeSymbols(SomeShapes{{{4, 3}}, {}, {}}),
            (Values{3, 3, 10}));
  EXPECT_EQ(s.completeSymbols(SomeShapes{{}, {}, {{10}}}), (Values{3, 3, 10}));
  EXPECT_EQ(s.completeSymbols(SomeShapes(3)), (Values{128, 128, 260}));
}

TEST(Signature, ConstraintsOfManyTerms) {
  // 4096 constraints over symbols that a million terms are searched for. Once
  // for each symbol of each would take some 10^12 steps.
  Signature s;
  ShapeExpr m = ShapeExpr::symbol(0), n = ShapeExpr::symbol(1),
            sum = ShapeExpr::symbol(2);
  s.symbols = {{"m", 0, 1, 9, 1}, {"n", 0, 1, 9, 1}, {"k", 0, 0, 9, 1}};
  for (int i = 0; i < 11; ++i)
    sum = sum + sum;
  s.inputs = {{"w", DType::Int8, std::vector<ShapeExpr>(250, sum)},
              {"a", DType::Int8, {m}},
              {"b", DType::Int8, {n, ShapeExpr::symbol(2)}}};
  s.constraints.assign(4096, {Constraint::Relation::Equal, m, n, ""});
  Shapes shapes{std::vector<int64_t>(250, 0), {3}, {4, 0}};
  for (int i = 0; i < 100; ++i) {
    std::vector<std::string> texts = s.constraintStrings();
    ASSERT_EQ(texts.size(), 4096u);
    EXPECT_EQ(texts.back(), "dimension 0 of a (m) = dimension 0 of b (n)");
  }
  EXPECT_EQ(messageOf(s, shapes),
            "a is int8 [3] and b is int8 [4, 0]: dimension 0 of a (m = 3) must "
            "equal dimension 0 of b (n = 4)");
}

TEST(Signature, RangesOfManySymbols) {
  // Each tensor's own: looking through all symbols would take 10^11 steps.
  constexpr unsigned n = 2'000'000;
  Signature s;
  s.symbols.assign(n, {"", 1, 1, 9, 1});
  s.symbols[n - 1].name = std::string(3000, 'a');
  s.symbols[n - 2].name = std::string(3000, 'b');
  s.symbols[n - 3].name = "c";
  TensorSpec spec{"x", DType::Int8, {ShapeExpr::symbol(n - 3)}};
  for (unsigned i = 0; i < 400'000; ++i)
    ASSERT_EQ(s.rangeString(spec), "c in 1..9");
  // Long lists are cut.
  s.symbols[0].name = "d";
  spec.dims = {ShapeExpr::symbol(0), ShapeExpr::symbol(n - 2),
               ShapeExpr::symbol(n - 1), ShapeExpr::symbol(0)};
  EXPECT_EQ(s.rangeString(spec), "d in 1..9; " + std::string(3000, 'b') +
                                     " in 1..9; " + std::string(3000, 'a') +
                                     " in 1..9");
  s.symbols[n - 3].name = std::string(3000, 'c');
  spec.dims.push_back(ShapeExpr::symbol(n - 3));
  std::string text = s.rangeString(spec);
  EXPECT_EQ(text.size(), 6034u);
  EXPECT_EQ(text.substr(text.size() - 5), "; ...");
}

TEST(Types, NamesAndSizes) {
  EXPECT_EQ(parseDType("float16"), DType::Float16);
  EXPECT_EQ(parseDType("half"), std::nullopt);
  EXPECT_EQ(dtypeName(DType::BFloat16), "bfloat16");
  EXPECT_EQ(*tensorBytes(DType::Int4, std::vector<int64_t>{3, 3}), 5u);
  EXPECT_EQ(*tensorBytes(DType::Float64, std::vector<int64_t>{}), 8u);
  EXPECT_EQ(*tensorBytes(DType::Float32, std::vector<int64_t>{INT64_MAX, 0}),
            0u);
  EXPECT_FALSE(
      tensorBytes(DType::Float32, std::vector<int64_t>{1 << 30, 1 << 30, 8})
          .isOk());
  EXPECT_FALSE(tensorBytes(DType::Float32, std::vector<int64_t>{-1}).isOk());
}

TEST(Types, Devices) {
  EXPECT_EQ(*parseDevice("cpu"), Device{});
  EXPECT_EQ(*parseDevice("cuda:2"), (Device{DeviceKind::Cuda, 2}));
  EXPECT_EQ(deviceString({DeviceKind::Cuda, 0}), "cuda:0");
  for (const char *text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cpu:1"})
    EXPECT_EQ(parseDevice(text).status().code(), StatusCode::InvalidArgument)
        << text;
}

TEST(Signature, LongChainsOfSymbols) {
  // Each input's size is the sum of two neighbours; the last is known first. As
  // many rounds as there are symbols would take a minute.
  constexpr unsigned n = 20'000;
  Signature signature;
  std::vector<std::vector<int64_t>> shapes;
  for (unsigned i = 0; i < n; ++i) {
    signature.symbols.push_back({"s" + std::to_string(i), 0, 1, 100, 1});
    ShapeExpr dim = ShapeExpr::symbol(i);
    if (i + 1 < n)
      dim = dim + ShapeExpr::symbol(i + 1);
    signature.inputs.push_back({"x" + std::to_string(i), DType::Int8, {dim}});
    shapes.push_back({i + 1 < n ? 6 : 3});
  }
  auto symbols = signature.solveSymbols(shapes);
  ASSERT_TRUE(symbols.isOk()) << symbols.status().message();
  EXPECT_EQ(*symbols, std::vector<int64_t>(n, 3));
}

} // namespace
