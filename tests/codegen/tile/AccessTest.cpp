// What analyzeAxis claims, against the addresses and checks of every element.
#include "codegen/tile/analysis/Access.h"
#include "codegen/tile/analysis/Values.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace charonia::tile;

namespace {

/// Value of an expression, none of whose divisors is below 1.
int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> dims,
                 ArrayRef<int64_t> symbols) {
  return charonia::graph::evaluate(expr, dims, symbols).value();
}

class TileAccess : public ::testing::Test {
protected:
  TileAccess() {
    context.loadDialect<TileDialect, func::FuncDialect, arith::ArithDialect>();
  }

  /// A kernel that loads one tile; its symbols are arguments with these
  /// divisors, or tiles where `symbolShapes` has a shape.
  LoadOp build(ArrayRef<int64_t> tile, AffineMap map, AffineMap shape,
               int64_t rank, ArrayRef<int64_t> checks,
               ArrayRef<int64_t> divisors,
               ArrayRef<SmallVector<int64_t>> symbolShapes = {}) {
    OpBuilder b(&context);
    Location loc = b.getUnknownLoc();
    module = ModuleOp::create(loc);
    b.setInsertionPointToStart(module->getBody());
    SmallVector<Type> types{BufferType::get(&context, b.getF32Type())};
    for (size_t i = 0; i < divisors.size(); ++i)
      types.push_back(
          i < symbolShapes.size() && !symbolShapes[i].empty()
              ? Type(RankedTensorType::get(symbolShapes[i], b.getIndexType()))
              : b.getIndexType());
    auto function =
        func::FuncOp::create(b, loc, "kernel", b.getFunctionType(types, {}));
    for (auto [i, divisor] : llvm::enumerate(divisors))
      function.setArgAttr(i + 1, kDivisorAttr, b.getI64IntegerAttr(divisor));
    Block *block = function.addEntryBlock();
    b.setInsertionPointToStart(block);
    auto load = LoadOp::create(
        b, loc, RankedTensorType::get(tile, b.getF32Type()),
        block->getArgument(0), block->getArguments().drop_front(),
        AffineMapAttr::get(map), AffineMapAttr::get(shape),
        b.getI64IntegerAttr(rank), b.getDenseI64ArrayAttr(checks), UnitAttr());
    func::ReturnOp::create(b, loc);
    EXPECT_TRUE(succeeded(verify(*module)));
    return load;
  }

  AffineMap parse(StringRef text) {
    return cast<AffineMapAttr>(
               parseAttribute(("affine_map<" + text + ">").str(), &context))
        .getValue();
  }

  /// Analysis of one axis of a load given as text, no checks.
  AxisAccess analyze(ArrayRef<int64_t> tile, StringRef map, StringRef shape,
                     unsigned axis, ArrayRef<int64_t> divisors = {},
                     ArrayRef<int64_t> checks = {}) {
    AffineMap parsed = parse(map);
    LoadOp load = build(tile, parsed, parse(shape), parsed.getNumResults(),
                        checks, divisors);
    return analyzeAxis(AccessOp::get(load), axis);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// What rangeOf and divisorOf claim of numbers that are negative.
TEST_F(TileAccess, DivisorsOfUnsignedQuotients) {
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  auto function = func::FuncOp::create(
      b, loc, "kernel",
      b.getFunctionType({b.getIndexType(), b.getI32Type()}, {}));
  function.setArgAttr(0, kDivisorAttr, b.getI64IntegerAttr(48));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value size = function.getArgument(0);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value three = constant(3),
        negative = arith::SubIOp::create(b, loc, size, constant(96));
  EXPECT_EQ(divisorOf(negative), 48);
  // (2^64 - 48) / 3 is no multiple of 16.
  uint64_t quotient = uint64_t(-48) / 3;
  ASSERT_NE(quotient % 16, 0u);
  EXPECT_EQ(divisorOf(arith::DivUIOp::create(b, loc, negative, three)), 1);
  EXPECT_EQ(divisorOf(arith::CeilDivUIOp::create(b, loc, negative, three)), 1);
  EXPECT_EQ(divisorOf(arith::DivSIOp::create(b, loc, negative, three)), 16);
  EXPECT_EQ(divisorOf(arith::FloorDivSIOp::create(b, loc, negative, three)),
            16);
  EXPECT_EQ(divisorOf(arith::DivUIOp::create(b, loc, size, three)), 16);
  // Narrow numbers wrap: 3 * 2^31 is 2^31 there.
  Value narrow = arith::MulIOp::create(
      b, loc, function.getArgument(1),
      arith::ConstantIntOp::create(b, loc, b.getI32Type(), 3));
  EXPECT_EQ(divisorOf(narrow), 1);
}

TEST_F(TileAccess, RowMajorTile) {
  auto inner = analyze({8, 32}, "(d0, d1)[s0] -> (d0 + s0 * 8, d1)",
                       "()[s0] -> (100, 64)", 1, {1});
  EXPECT_EQ(inner.stride, 1);
  EXPECT_EQ(inner.contiguous, 32);
  EXPECT_EQ(inner.alignment, 64);
  EXPECT_EQ(inner.uniformChecks, 32);
  auto outer = analyze({8, 32}, "(d0, d1)[s0] -> (d0 + s0 * 8, d1)",
                       "()[s0] -> (100, 64)", 0, {1});
  EXPECT_EQ(outer.stride, 64);
  EXPECT_EQ(outer.contiguous, 1);
}

TEST_F(TileAccess, DynamicRowLength) {
  auto inner = analyze({4, 16}, "(d0, d1)[s0] -> (d0, d1)", "()[s0] -> (4, s0)",
                       1, {8}, {1});
  EXPECT_EQ(inner.stride, 1);
  EXPECT_EQ(inner.contiguous, 16);
  EXPECT_EQ(inner.alignment, 8);
  EXPECT_EQ(inner.uniformChecks, 8);
  EXPECT_EQ(
      analyze({4, 16}, "(d0, d1)[s0] -> (d0, d1)", "()[s0] -> (4, s0)", 0, {8})
          .stride,
      std::nullopt);
}

TEST_F(TileAccess, ChecksThatStep) {
  // A row of 1001 that begins in the middle of a block of 8.
  StringRef row = "(d0)[s0] -> (s0, d0 + s0 * 1001 floordiv 8 * 8 - s0 * 1001)";
  auto aligned = analyze({64}, row, "()[s0] -> (9, 1001)", 0, {1}, {1});
  EXPECT_EQ(aligned.contiguous, 64);
  EXPECT_EQ(aligned.alignment, 8);
  EXPECT_EQ(aligned.uniformChecks, 1);
  EXPECT_EQ(aligned.steppedChecks, 64);
  // A row shorter than the block could lie inside of it, both ends out.
  auto narrow = analyze({64}, "(d0)[s0] -> (s0, d0 - s0)", "()[s0] -> (9, 31)",
                        0, {1}, {1});
  EXPECT_EQ(narrow.steppedChecks, 16);
  // So could what two checks leave.
  auto twice = analyze({64}, "(d0)[s0] -> (d0 - s0, d0 + s0)",
                       "()[s0] -> (99, 98)", 0, {1}, {0, 1});
  EXPECT_EQ(twice.steppedChecks, 1);
  // Blocks that agree may be shorter than those that step.
  auto uniform = analyze({64}, "(d0)[s0] -> (s0, d0 + s0 * 32)",
                         "()[s0] -> (9, 96)", 0, {1}, {1});
  EXPECT_EQ(uniform.uniformChecks, 32);
  EXPECT_EQ(uniform.steppedChecks, 64);
}

TEST_F(TileAccess, ImplicitConvolution) {
  // k = (ky * 3 + kx) * 64 + c, read in blocks of 32 channels.
  StringRef map = "(d0, d1)[s0] -> (((d1 + s0) floordiv 192) + d0, ((d1 + s0) "
                  "floordiv 64) mod 3, "
                  "(d1 + s0) mod 64)";
  auto inner =
      analyze({16, 32}, map, "()[s0] -> (58, 58, 64)", 1, {32}, {0, 1});
  EXPECT_EQ(inner.stride, 1);
  EXPECT_EQ(inner.contiguous, 32);
  EXPECT_EQ(inner.alignment, 32);
  EXPECT_EQ(inner.uniformChecks, 32);
  // Blocks that cross a tap: runs of 16 only.
  auto crossing =
      analyze({16, 32}, map, "()[s0] -> (58, 58, 64)", 1, {16}, {0, 1});
  EXPECT_EQ(crossing.stride, std::nullopt);
  EXPECT_EQ(crossing.contiguous, 16);
  EXPECT_EQ(crossing.uniformChecks, 16);
}

TEST_F(TileAccess, ExtentsThatAreNoPowersOfTwo) {
  auto inner = analyze({6, 24}, "(d0, d1) -> (d0, d1)", "() -> (6, 24)", 1);
  EXPECT_EQ(inner.stride, 1);
  EXPECT_EQ(inner.contiguous, 16);
  EXPECT_EQ(inner.alignment, 8);
  EXPECT_EQ(inner.uniformChecks, 32);
}

TEST_F(TileAccess, FlattenedAxes) {
  // A tile over the flattened last two axes of a tensor whose row is dense.
  auto whole = analyze(
      {64}, "(d0)[s0] -> ((d0 + s0 * 64) floordiv 48, (d0 + s0 * 64) mod 48)",
      "()[s0] -> (100, 48)", 0, {1});
  EXPECT_EQ(whole.contiguous, 64);
  EXPECT_EQ(whole.alignment, 64);
  // The same where rows have a gap.
  auto inner = analyze(
      {64}, "(d0)[s0] -> ((d0 + s0 * 64) floordiv 48, (d0 + s0 * 64) mod 48)",
      "()[s0] -> (100, 80)", 0, {1});
  EXPECT_EQ(inner.contiguous, 16); // what blocks of 64 share with 48
  EXPECT_EQ(inner.alignment, 16);
}

TEST_F(TileAccess, TileSymbol) {
  AffineMap map = parse("(d0, d1)[s0] -> (s0, d1)"),
            shape = parse("()[s0] -> (1000, 64)");
  LoadOp load =
      build({8, 64}, map, shape, 2, {0}, {1}, {SmallVector<int64_t>{8, 1}});
  auto inner = analyzeAxis(AccessOp::get(load), 1);
  EXPECT_EQ(inner.stride, 1);
  EXPECT_EQ(inner.contiguous, 64);
  EXPECT_EQ(inner.alignment, 64);
  EXPECT_EQ(inner.uniformChecks, 64);
  auto outer = analyzeAxis(AccessOp::get(load), 0);
  EXPECT_EQ(outer.stride, std::nullopt);
  EXPECT_EQ(outer.uniformChecks, 1);
}

TEST_F(TileAccess, Broadcast) {
  auto outer = analyze({8, 16}, "(d0, d1) -> (d1)", "() -> (16)", 0);
  EXPECT_EQ(outer.stride, 0);
  EXPECT_EQ(outer.contiguous, 1);
  EXPECT_EQ(analyze({8, 1}, "(d0, d1) -> (d1)", "() -> (16)", 1).stride, 0);
}

/// Two numbers of a byte, 32 of a scale.
TEST_F(TileAccess, Repeated) {
  StringRef bytes =
      "(d0, d1)[s0] -> (d0, d1 floordiv 32, d1 floordiv 2 mod 16)";
  auto packed = analyze({8, 64}, bytes, "()[s0] -> (8, s0, 16)", 1, {1}, {1});
  EXPECT_EQ(packed.stride, std::nullopt);
  EXPECT_EQ(packed.repeat, 2);
  EXPECT_EQ(packed.contiguous, 32);
  EXPECT_EQ(packed.alignment, 16);
  EXPECT_EQ(packed.uniformChecks, 32);
  auto scale = analyze({8, 64}, "(d0, d1)[s0] -> (d0, d1 floordiv 32)",
                       "()[s0] -> (8, s0)", 1, {4});
  EXPECT_EQ(scale.repeat, 32);
  EXPECT_EQ(scale.contiguous, 2);
  EXPECT_EQ(scale.alignment, 4);
  // Bytes that begin anywhere.
  auto shifted = analyze({64}, "(d0)[s0] -> ((d0 + s0) floordiv 2)",
                         "()[s0] -> (100)", 0, {1});
  EXPECT_EQ(shifted.repeat, 1);
  EXPECT_EQ(shifted.contiguous, 1);
}

//===----------------------------------------------------------------------===//
// Random maps
//===----------------------------------------------------------------------===//

struct RandomExpr {
  std::mt19937 &random;
  MLIRContext *context;
  unsigned dims, symbols;

  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  }
  AffineExpr operator()(unsigned depth) {
    unsigned kind = random() % (depth == 0 ? 3 : 8);
    switch (kind) {
    case 0:
      return getAffineDimExpr(random() % dims, context);
    case 1:
      return getAffineSymbolExpr(random() % symbols, context);
    case 2:
      return getAffineConstantExpr(pick({0, 1, -1, 3, 8, 16}), context);
    case 3:
    case 4:
      return (*this)(depth - 1) + (*this)(depth - 1);
    case 5:
      return (*this)(depth - 1) * pick({1, 2, 3, 4, 6, 8, 16, -1});
    case 6:
      return (*this)(depth - 1).floorDiv(pick({1, 2, 3, 4, 6, 8, 16}));
    default:
      return (*this)(depth - 1) % pick({1, 2, 3, 4, 6, 8, 16});
    }
  }
};

TEST_F(TileAccess, ClaimsHoldForRandomMaps) {
  std::mt19937 random(20261121);
  RandomExpr expr{random, &context, 2, 3};
  int64_t strides = 0, runs = 0, uniform = 0, repeats = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    SmallVector<int64_t> tile{expr.pick({1, 2, 3, 4, 5, 8, 16}),
                              expr.pick({1, 2, 4, 6, 8, 16, 24})};
    SmallVector<int64_t> divisors{expr.pick({1, 2, 4, 8, 16}),
                                  expr.pick({1, 3, 8, 12}), 1};
    SmallVector<SmallVector<int64_t>> symbolShapes(3);
    bool tiled = random() % 2; // the last symbol is a tile
    if (tiled)
      symbolShapes[2] = {random() % 2 ? 1 : tile[0],
                         random() % 2 ? 1 : tile[1]};
    SmallVector<AffineExpr> coordinates, extents;
    for (int i = 0; i < 3; ++i)
      coordinates.push_back(expr(3));
    // The usual shape of accesses, so that runs do occur.
    if (random() % 2)
      coordinates[1] = getAffineDimExpr(1, &context) +
                       getAffineSymbolExpr(random() % 2, &context);
    for (int i = 0; i < 3; ++i)
      extents.push_back(
          random() % 3
              ? getAffineConstantExpr(expr.pick({4, 7, 8, 24, 64}), &context)
              : getAffineSymbolExpr(random() % 2, &context) +
                    expr.pick({0, 8, 16}));
    AffineMap map = AffineMap::get(2, 3, coordinates, &context);
    AffineMap shape = AffineMap::get(0, 3, extents, &context);
    LoadOp load = build(tile, map, shape, 2, {1, 2}, divisors, symbolShapes);
    AccessOp access = AccessOp::get(load);
    AffineExpr linear = linearOffset(access, factsOf(access));
    SCOPED_TRACE(testing::Message() << "trial " << trial << [&] {
      std::string text;
      llvm::raw_string_ostream(text) << "\n" << *load;
      return text;
    }());
    AxisAccess claims[2] = {analyzeAxis(access, 0), analyzeAxis(access, 1)};

    for (int values = 0; values < 6; ++values) {
      SmallVector<int64_t> symbols;
      for (int64_t divisor : divisors) // sizes
        symbols.push_back(int64_t(random() % 13) * divisor);
      std::vector<int64_t> tileSymbol(tile[0] * tile[1]);
      for (int64_t &value : tileSymbol)
        value = int64_t(random() % 40) - 10;
      auto at = [&](int64_t i, int64_t j, int64_t &offset, bool &inside) {
        SmallVector<int64_t> own = symbols;
        if (tiled)
          own[2] = tileSymbol[(symbolShapes[2][0] == 1 ? 0 : i) * tile[1] +
                              (symbolShapes[2][1] == 1 ? 0 : j)];
        int64_t c[3], e[3];
        for (int k = 0; k < 3; ++k) {
          c[k] = evaluate(coordinates[k], {i, j}, own);
          e[k] = evaluate(extents[k], {}, own);
        }
        offset = c[0] * e[1] + c[1];
        inside = c[1] >= 0 && c[1] < e[1] && c[2] >= 0 && c[2] < e[2];
        ASSERT_EQ(offset, evaluate(linear, {i, j}, own));
      };
      for (unsigned axis = 0; axis < 2; ++axis) {
        const AxisAccess &claim = claims[axis];
        ASSERT_LE(claim.contiguous * claim.repeat, tile[axis]);
        repeats += claim.repeat > 1;
        for (int64_t other = 0; other < tile[1 - axis]; ++other) {
          std::vector<int64_t> offsets(tile[axis]);
          std::vector<bool> inside(tile[axis]);
          for (int64_t i = 0; i < tile[axis]; ++i) {
            int64_t offset;
            bool in;
            axis ? at(other, i, offset, in) : at(i, other, offset, in);
            offsets[i] = offset, inside[i] = in;
          }
          for (int64_t i = 0; i < tile[axis]; ++i) {
            if (claim.stride && i)
              ASSERT_EQ(offsets[i] - offsets[i - 1], *claim.stride)
                  << "axis " << axis;
            int64_t block = claim.contiguous * claim.repeat,
                    start = i / block * block;
            ASSERT_EQ(offsets[i] - offsets[start], (i - start) / claim.repeat)
                << "axis " << axis;
            ASSERT_EQ(offsets[start] % claim.alignment, 0) << "axis " << axis;
            ASSERT_EQ(inside[i],
                      inside[i / claim.uniformChecks * claim.uniformChecks])
                << "axis " << axis << " uniform " << claim.uniformChecks;
          }
        }
        strides += claim.stride.has_value();
        runs += claim.contiguous > 1;
        uniform += claim.uniformChecks > 1;
      }
    }
  }
  // The claims are not empty.
  EXPECT_GT(strides, 1000);
  EXPECT_GT(runs, 1000);
  EXPECT_GT(uniform, 1000);
  EXPECT_GT(repeats, 100);
}

} // namespace
