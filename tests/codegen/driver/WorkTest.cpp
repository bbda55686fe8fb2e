// What a kernel has to do, beside what its tiles make it do; and what it may be
// cut into.
#include "codegen/driver/Work.h"
#include "codegen/driver/CutWork.h"
#include "graph/analysis/VerifyKernel.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace charonia;
using namespace charonia::driver;
using namespace mlir;

namespace {

class Work : public testing::Test {
protected:
  Work() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, graph::GraphDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The last kernel of a module.
  graph::KernelOp parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    graph::KernelOp last;
    if (module)
      module->walk([&](graph::KernelOp kernel) { last = kernel; });
    EXPECT_TRUE(last) << text.str();
    return last;
  }

  /// Groups of one dimension each.
  static emit::Schedule tiles(ArrayRef<int64_t> sizes) {
    emit::Schedule schedule;
    for (auto [d, size] : llvm::enumerate(sizes)) {
      schedule.groups.push_back({{unsigned(d)}, size});
      schedule.axes.push_back(d);
    }
    return schedule;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr StringRef narrow = R"(
func.func @main(%x: tensor<64x512xf32>, %w: tensor<512x3xf32>) -> tensor<64x3xf32> {
  %0 = graph.kernel "k"(%x, %w) : (tensor<64x512xf32>, tensor<512x3xf32>) -> tensor<64x3xf32> {
  ^bb0(%a: tensor<64x512xf32>, %b: tensor<512x3xf32>):
    %1 = graph.exp %a : (tensor<64x512xf32>) -> tensor<64x512xf32>
    %2 = graph.matmul %1, %b : (tensor<64x512xf32>, tensor<512x3xf32>) -> tensor<64x3xf32>
    graph.yield %2 : tensor<64x3xf32>
  }
  return %0 : tensor<64x3xf32>
})";

TEST_F(Work, OfTilesGrowsAlongWhatTheyOverhang) {
  graph::KernelOp kernel = parse(narrow);
  int64_t rows = 64, terms = 512, columns = 3;
  // exp, and its operand: not along the columns. The product and the rest are.
  auto exponential =
      cast<graph::GraphOpInterface>(kernel.getBody().front().front());
  int64_t along = (exponential.getCodeSize() + 1) * rows * terms,
          across =
              2 * rows * terms * columns + terms * columns + rows * columns;
  EXPECT_EQ(neededWork(kernel, {}).operations, along + across);
  EXPECT_EQ(tiledWork(kernel, {}, tiles({32, 1})).operations, along + across);
  EXPECT_EQ(tiledWork(kernel, {}, tiles({32, 32})).operations,
            along + across / columns * 32);
  // Tiles of 128 rows of which 96 are there: the weights have no rows.
  EXPECT_EQ(tiledWork(kernel, {}, tiles({128, 1})).operations,
            2 * along + 2 * (across - terms * columns) + terms * columns);
}

/// What the one operator of a kernel is asked for beside its operands and
/// result.
int64_t operationsOf(graph::KernelOp kernel) {
  Operation &op = kernel.getBody().front().front();
  auto elements = [](Value v) {
    return cast<RankedTensorType>(v.getType()).getNumElements();
  };
  return neededWork(kernel, {}).operations - elements(op.getOperand(0)) -
         elements(op.getResult(0));
}

TEST_F(Work, APlaceTakesMoreThanAComparison) {
  auto of = [&](StringRef element) {
    std::string row = ("tensor<16x100x" + element + ">").str(),
                one = "tensor<16xi64>";
    return operationsOf(parse(
        "func.func @main(%x: " + row + ") -> " + one +
        " { %0 = graph.kernel \"k\"(%x) : (" + row + ") -> " + one +
        " { ^bb0(%a: " + row +
        "): %1 = graph.arg_reduce %a {axis = 1 : i64} : (" + row + ") -> " +
        one + " graph.yield %1 : " + one + " } return %0 : " + one + " }"));
  };
  EXPECT_EQ(of("f32"), 7 * 16 * 100);
  EXPECT_EQ(of("i32"), 4 * 16 * 100);
}

TEST_F(Work, AResizeTakesEachPointAround) {
  auto of = [&](StringRef mode) {
    std::string from = "tensor<2x4x6xf32>", to = "tensor<2x8x12xf32>";
    return operationsOf(
        parse("func.func @main(%x: " + from + ") -> " + to +
              " { %0 = graph.kernel \"k\"(%x) : (" + from + ") -> " + to +
              " { ^bb0(%a: " + from + "): %1 = graph.resize " + mode.str() +
              " %a {axes = array<i64: 1, 2>, scales = array<f64: 2.0, 2.0>, "
              "coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = -0.75 : "
              "f64} : (" +
              from + ") -> " + to + " graph.yield %1 : " + to +
              " } return %0 : " + to + " }"));
  };
  EXPECT_EQ(of("nearest"), 4 * 192);
  EXPECT_EQ(of("linear"), 3 * 4 * 192);
  EXPECT_EQ(of("cubic"), 3 * 16 * 192);
}

TEST_F(Work, WhatIsDoneAgainIsNotHiddenByPadding) {
  graph::KernelOp kernel = parse(narrow);
  // A product of three columns in tiles of 256 does 85 times what it is asked
  // for, and cannot do less.
  TileWork tiled = tiledWork(kernel, {}, tiles({64, 256}));
  EXPECT_GT(tiled.operations, 1 << 22);
  EXPECT_FALSE(repeatsWork(tiled, tiled));
  // A hundred times the exponentials can be left.
  int64_t exponentials = 17 * 64 * 512;
  TileWork done{tiled.operations + 110 * exponentials, 0};
  EXPECT_TRUE(repeatsWork(done, tiled));
}

TEST_F(Work, AKernelReadsWhatIndexingTakes) {
  graph::KernelOp kernel = parse(R"(
func.func @main(%x: tensor<30000x64xf32>, %i: tensor<8xi64>) -> tensor<8x64xf32> {
  %0 = graph.kernel "k"(%x, %i) : (tensor<30000x64xf32>, tensor<8xi64>) -> tensor<8x64xf32> {
  ^bb0(%a: tensor<30000x64xf32>, %b: tensor<8xi64>):
    %1 = graph.gather %a, %b {axis = 0 : i64} : (tensor<30000x64xf32>, tensor<8xi64>) -> tensor<8x64xf32>
    graph.yield %1 : tensor<8x64xf32>
  }
  return %0 : tensor<8x64xf32>
})");
  int64_t bytes = 8 * 64 * 4 + 8 * 8 + 8 * 64 * 4;
  EXPECT_EQ(neededWork(kernel, {}).bytes, bytes);
  EXPECT_EQ(measureWork(kernel, {}).bytes.evaluate({}).value(), bytes);
}

/// A kernel that stands in for another that is still there.
TEST_F(Work, MemoryOfAKernelThatIsReplacedIsFree) {
  graph::KernelOp kernel = parse(R"(
func.func @main(%x: tensor<9xf32>, %i: tensor<40x1xi64>, %u: tensor<40xf32>) -> tensor<9xf32> {
  %0 = graph.kernel "copy"(%x) : (tensor<9xf32>) -> tensor<9xf32> {
  ^bb0(%a: tensor<9xf32>):
    %1 = graph.neg %a : (tensor<9xf32>) -> tensor<9xf32>
    graph.yield %1 : tensor<9xf32>
  }
  %2 = graph.kernel "scatter"(%0, %i, %u) : (tensor<9xf32>, tensor<40x1xi64>, tensor<40xf32>) -> tensor<9xf32> {
  ^bb0(%a: tensor<9xf32>, %b: tensor<40x1xi64>, %c: tensor<40xf32>):
    %3 = graph.exp %c : (tensor<40xf32>) -> tensor<40xf32>
    %4 = graph.scatter_nd add %a, %b, %3 {in_place} : (tensor<9xf32>, tensor<40x1xi64>, tensor<40xf32>) -> tensor<9xf32>
    graph.yield %4 : tensor<9xf32>
  }
  return %2 : tensor<9xf32>
})");
  EXPECT_TRUE(succeeded(graph::verifyKernel(kernel)));
  OpBuilder builder(kernel);
  auto other = cast<graph::KernelOp>(builder.clone(*kernel));
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  EXPECT_TRUE(failed(graph::verifyKernel(kernel)));
  EXPECT_TRUE(failed(graph::verifyKernel(other)));
  EXPECT_TRUE(succeeded(graph::verifyKernel(other, /*replaced=*/kernel)));
}

} // namespace
