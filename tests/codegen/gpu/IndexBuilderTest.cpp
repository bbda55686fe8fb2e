// The integer code that GPU kernels compute with, run by the interpreter:
// random expressions against evaluation in 128 bits.
#include "codegen/gpu/lower/IndexBuilder.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tests/codegen/interpreter/TileInterpreter.h"
#include "tests/graph/RandomExprs.h"
#include <gtest/gtest.h>

using namespace charonia;
using namespace mlir;

namespace {

class IndexBuilderTest : public testing::Test {
protected:
  IndexBuilderTest() {
    context.loadDialect<tile::TileDialect, func::FuncDialect,
                        arith::ArithDialect>();
  }

  /// A function of the dims and symbols that stores the expression's value.
  func::FuncOp build(AffineExpr expr, const graph::Facts &facts,
                     ArrayRef<bool> isConstant, ArrayRef<int64_t> values) {
    OpBuilder b(&context);
    Location loc = b.getUnknownLoc();
    module = ModuleOp::create(loc);
    b.setInsertionPointToStart(module->getBody());
    auto buffer = tile::BufferType::get(&context, b.getI64Type());
    SmallVector<Type> types{buffer};
    types.append(values.size(), b.getIndexType());
    auto function = func::FuncOp::create(b, loc, "kernel",
                                         b.getFunctionType(types, TypeRange()));
    function->setAttr("tile.kernel", b.getUnitAttr());
    Block *entry = function.addEntryBlock();
    b.setInsertionPointToStart(entry);
    charonia::gpu::IndexBuilder index(b, loc, entry);
    SmallVector<charonia::gpu::IndexSum> all;
    for (unsigned i = 0; i < values.size(); ++i)
      all.push_back(isConstant[i] ? charonia::gpu::IndexSum{{}, values[i]}
                                  : charonia::gpu::IndexSum{
                                        function.getArgument(i + 1), 0});
    unsigned numDims = graph::RandomExprs::numDims;
    Value value = index.materialize(
        index.evaluate(expr, ArrayRef(all).take_front(numDims),
                       ArrayRef(all).drop_front(numDims), facts));
    Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    auto tile = RankedTensorType::get({}, b.getI64Type());
    Value splat = tile::SplatOp::create(b, loc, tile, number);
    AffineMap none = AffineMap::get(0, 0, {}, &context);
    tile::StoreOp::create(b, loc, splat, function.getArgument(0), ValueRange(),
                          none, none, 0, ArrayRef<int64_t>(),
                          tile::UpdateAttr());
    func::ReturnOp::create(b, loc);
    return function;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(IndexBuilderTest, RandomExpressions) {
  graph::RandomExprs random(context, 20261121);
  int compared = 0;
  for (int round = 0; round < 1500; ++round) {
    bool large = round % 4 == 0;
    graph::Facts facts = random.facts(large);
    AffineExpr e = random.expression(random.pick(1, 4), {true, true, large});
    if (round % 2)
      e = graph::simplify(e, facts);
    for (int sample = 0; sample < 4; ++sample) {
      SmallVector<int64_t> dims = random.dims(facts),
                           symbols = random.symbols(facts), values(dims);
      values.append(symbols);
      bool fits = true;
      auto wanted = graph::evaluateWide(e, dims, symbols, &fits);
      if (!wanted || !fits)
        continue;
      SmallVector<bool> isConstant;
      for (unsigned i = 0; i < values.size(); ++i)
        isConstant.push_back(random.pick(0, 3) == 0);
      func::FuncOp function = build(e, facts, isConstant, values);
      int64_t got = -77;
      ASSERT_EQ(tile::interpret(function, {{&got, 1}}, values, 0, 1), "");
      ++compared;
      std::string text;
      llvm::raw_string_ostream(text) << e << "\n" << function;
      ASSERT_EQ(got, int64_t(*wanted)) << text;
    }
  }
  EXPECT_GT(compared, 3000);
}

/// Nobody uses what is divided by the size of something empty, but a machine
/// may not be asked for it.
TEST_F(IndexBuilderTest, ADivisorThatMayBeZero) {
  unsigned numDims = graph::RandomExprs::numDims;
  graph::Facts facts;
  facts.dims.assign(numDims, {0, 100});
  facts.symbols.push_back({0, 9});
  AffineExpr dim = getAffineDimExpr(0, &context),
             size = getAffineSymbolExpr(0, &context);
  for (AffineExpr e : {dim.floorDiv(size), dim % size})
    for (int64_t divisor : {0, 1, 7}) {
      SmallVector<int64_t> values(numDims, 52);
      values.push_back(divisor);
      SmallVector<bool> isConstant(values.size(), false);
      func::FuncOp function = build(e, facts, isConstant, values);
      int64_t got = -77;
      ASSERT_EQ(tile::interpret(function, {{&got, 1}}, values, 0, 1), "");
      int64_t by = std::max<int64_t>(divisor, 1);
      EXPECT_EQ(got, e.getKind() == AffineExprKind::Mod ? 52 % by : 52 / by);
    }
}

} // namespace
