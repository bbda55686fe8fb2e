// Values made of sizes alone, as tile programs compute them: random expressions
// against evaluation in 128 bits.
#include "tests/codegen/emit/EmitContext.h"
#include "tests/codegen/interpreter/TileInterpreter.h"
#include "tests/graph/RandomExprs.h"
#include <gtest/gtest.h>

using namespace charonia;
using namespace mlir;

namespace {

class DimsTest : public testing::Test, protected EmitContext {
protected:
  /// A kernel whose result holds these expressions over the module's symbols.
  func::FuncOp emit(ArrayRef<AffineExpr> values,
                    ArrayRef<graph::Symbol> symbols) {
    std::string text;
    llvm::raw_string_ostream os(text);
    std::string type = llvm::formatv("tensor<{0}xi64>", values.size());
    AffineMap map = AffineMap::get(0, symbols.size(), values, &context);
    os << "func.func @main() -> " << type << " {\n"
       << "  %0 = graph.kernel \"k\" () : () -> " << type << " {\n"
       << "    %1 = graph.dims affine_map<" << map << "> : " << type << "\n"
       << "    graph.yield %1 : " << type << "\n  }\n"
       << "  return %0 : " << type << "\n}";
    graph::KernelOp kernel = parseKernel(text);
    graph::setSymbols(*module, symbols);
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto function = emit::emitKernel(kernel, emit::EmitTarget::gpu(), builder);
    EXPECT_TRUE(succeeded(function));
    return *function;
  }
  std::vector<int64_t> run(func::FuncOp function, size_t count,
                           ArrayRef<int64_t> symbols) {
    std::vector<int64_t> result(count, -77);
    EXPECT_EQ(
        tile::interpret(function, {{result.data(), count}}, symbols, 0, 1), "");
    return result;
  }
  AffineExpr s(unsigned i) { return getAffineSymbolExpr(i, &context); }
};

TEST_F(DimsTest, NegativeOperands) {
  AffineExpr values[] = {(-s(0)) % 32, (-s(0)).floorDiv(32),
                         (-s(0)).ceilDiv(32), (s(0) - 40) % s(1),
                         (s(0) - 40).floorDiv(s(1))};
  func::FuncOp function =
      emit(values, {{"a", 1, 8, 100, 1}, {"b", 1, 8, 100, 1}});
  for (int64_t a : {1, 5, 31, 32, 33, 64, 100})
    for (int64_t b : {1, 7, 32, 100}) {
      std::vector<int64_t> got = run(function, 5, {a, b});
      for (unsigned i = 0; i < 5; ++i)
        EXPECT_EQ(got[i], graph::evaluate(values[i], {a, b}))
            << i << " for " << a << ", " << b;
    }
}

TEST_F(DimsTest, RandomExpressions) {
  graph::RandomExprs random(context, 20261121);
  int compared = 0;
  for (int round = 0; round < 150; ++round) {
    graph::Facts facts = random.facts(round % 4 == 0);
    SmallVector<graph::Symbol> symbols;
    for (auto [i, range] : llvm::enumerate(facts.symbols)) {
      // Sizes are not negative.
      range.low = std::max<int64_t>(range.low, i == 2 ? range.low : 0);
      range.high = std::max(range.high, range.low);
      symbols.push_back({"n" + std::to_string(i), range.low, range.low,
                         range.high, facts.symbolDivisors[i]});
    }
    SmallVector<AffineExpr> values;
    for (int i = 0; i < 6; ++i)
      values.push_back(
          random.expression(random.pick(1, 4), {false, true, round % 4 == 0}));
    func::FuncOp function = emit(values, symbols);
    for (int sample = 0; sample < 8; ++sample) {
      SmallVector<int64_t> sizes = random.symbols(facts);
      std::vector<int64_t> got = run(function, values.size(), sizes);
      for (auto [value, e] : llvm::zip(got, values)) {
        bool fits = true;
        auto wanted = graph::evaluateWide(e, {}, sizes, &fits);
        if (!wanted || !fits)
          continue;
        ++compared;
        std::string text;
        llvm::raw_string_ostream(text) << e;
        ASSERT_EQ(value, int64_t(*wanted))
            << text << " for " << sizes[0] << ", " << sizes[1] << ", "
            << sizes[2];
      }
    }
  }
  EXPECT_GT(compared, 4000);
}

} // namespace
