// Kernels whose program instances share the terms of a tile, run by the
// interpreter and compared with plain loops.
#include "codegen/emit/Schedule.h"
#include "tests/codegen/emit/EmitContext.h"
#include "tests/codegen/interpreter/TileInterpreter.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace charonia;

namespace {

class SplitTest : public testing::TestWithParam<int64_t>,
                  protected EmitContext {
protected:
  /// Emits the only kernel of `text` in tiles of 16 x 32 and steps of 32.
  mlir::func::FuncOp emit(llvm::StringRef text, llvm::ArrayRef<unsigned> rows,
                          unsigned column) {
    emit::Schedule schedule;
    schedule.groups = {{{column}, 32}, {llvm::SmallVector<unsigned>(rows), 16}};
    schedule.axes = {1, 0};
    schedule.kTile = 32;
    return emit(text, schedule, GetParam() > 1 ? 1 : 0);
  }

  /// Emits it so, in the test's parts, which meet `meetings` times.
  mlir::func::FuncOp emit(llvm::StringRef text, emit::Schedule schedule,
                          unsigned meetings) {
    graph::KernelOp kernel = parseKernel(text);
    schedule.splits = GetParam();
    kernel.setScheduleAttr(schedule.toAttribute(&context));
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
    auto function = emit::emitKernel(kernel, emit::EmitTarget::gpu(), builder);
    EXPECT_TRUE(succeeded(function));
    unsigned sums = 0;
    function->walk([&](tile::SplitSumOp) { ++sums; });
    EXPECT_EQ(sums, meetings);
    return *function;
  }

  static int64_t value(mlir::func::FuncOp function, llvm::StringRef attribute) {
    auto map = function->getAttrOfType<mlir::AffineMapAttr>(attribute);
    return map ? map.getValue().getSingleConstantResult() : 0;
  }

  /// Runs all program instances on these buffers; counters have to be zero
  /// again.
  void run(mlir::func::FuncOp function,
           std::vector<std::vector<float>> &buffers) {
    std::vector<float> scratch(value(function, tile::kScratchAttr) / 4);
    std::vector<int32_t> counters(value(function, tile::kCountersAttr));
    std::vector<tile::InterpreterBuffer> all;
    for (std::vector<float> &buffer : buffers)
      all.push_back({buffer.data(), buffer.size()});
    if (GetParam() > 1) {
      all.push_back({scratch.data(), scratch.size()});
      all.push_back({counters.data(), counters.size()});
    }
    EXPECT_EQ(
        tile::interpret(function, all, {}, 0, value(function, tile::kGridAttr)),
        "");
    for (int32_t counter : counters)
      EXPECT_EQ(counter, 0);
  }

  std::vector<float> random(size_t size) {
    std::vector<float> values(size);
    for (float &v : values)
      v = std::uniform_real_distribution<float>(-1, 1)(engine);
    return values;
  }

  std::mt19937 engine{1};
};

/// Three rows of two blocks and a ragged third, and what comes behind the sum.
TEST_P(SplitTest, LongRows) {
  constexpr int64_t rows = 3, terms = 20011;
  emit::Schedule schedule;
  schedule.groups = {{{0}, 1}};
  schedule.axes = {0};
  auto text = [](const char *kind) {
    return llvm::formatv(R"(
    func.func @main(%x: tensor<3x20011xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
      %0 = graph.kernel "k" (%x, %b) : (tensor<3x20011xf32>, tensor<3xf32>) -> tensor<3xf32> {
      ^bb0(%a: tensor<3x20011xf32>, %c: tensor<3xf32>):
        %1 = graph.reduce {0} %a {{axes = array<i64: 1>} : (tensor<3x20011xf32>) -> tensor<3xf32>
        %2 = graph.add %1, %c : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
        graph.yield %2 : tensor<3xf32>
      }
      return %0 : tensor<3xf32>
    })",
                         kind)
        .str();
  };
  std::vector<std::vector<float>> buffers{random(rows * terms), random(rows),
                                          std::vector<float>(rows)};
  run(emit(text("sum"), schedule, GetParam() > 1 ? 1 : 0), buffers);
  for (int64_t i = 0; i < rows; ++i) {
    double want = buffers[1][i];
    for (int64_t t = 0; t < terms; ++t)
      want += buffers[0][i * terms + t];
    EXPECT_NEAR(buffers[2][i], want, 1e-2);
  }
  // Parts of a maximum have no place to meet: nothing is split.
  mlir::func::FuncOp whole = emit(text("max"), schedule, 0);
  EXPECT_EQ(value(whole, tile::kGridAttr), rows);
  EXPECT_EQ(value(whole, tile::kScratchAttr), 0);
}

/// Runs and sections change the order of tiles, not which there are: 5 tiles of
/// rows in runs of 2 by 7 of columns in sections of 3.
TEST_P(SplitTest, RunsAndSections) {
  constexpr int64_t m = 70, n = 200, k = 33;
  emit::Schedule schedule;
  schedule.groups = {{{1}, 32}, {{0}, 16}};
  schedule.axes = {1, 0};
  schedule.kTile = 32;
  schedule.run = 2;
  schedule.section = 3;
  std::vector<std::vector<float>> buffers{random(m * k), random(k * n),
                                          std::vector<float>(m * n)};
  run(emit(R"(
    func.func @main(%x: tensor<70x33xf32>, %w: tensor<33x200xf32>) -> tensor<70x200xf32> {
      %0 = graph.kernel "k" (%x, %w) : (tensor<70x33xf32>, tensor<33x200xf32>) -> tensor<70x200xf32> {
      ^bb0(%a: tensor<70x33xf32>, %b: tensor<33x200xf32>):
        %1 = graph.matmul %a, %b : (tensor<70x33xf32>, tensor<33x200xf32>) -> tensor<70x200xf32>
        graph.yield %1 : tensor<70x200xf32>
      }
      return %0 : tensor<70x200xf32>
    })",
           schedule, GetParam() > 1 ? 1 : 0),
      buffers);
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      double want = 0;
      for (int64_t i = 0; i < k; ++i)
        want += double(buffers[0][row * k + i]) * buffers[1][i * n + column];
      EXPECT_NEAR(buffers[2][row * n + column], want, 1e-4);
    }
}

/// Six steps, the last of them ragged; in four parts the last has nothing to
/// do.
TEST_P(SplitTest, Matmul) {
  constexpr int64_t m = 19, n = 45, k = 165;
  mlir::func::FuncOp function = emit(R"(
    func.func @main(%x: tensor<19x165xf32>, %w: tensor<165x45xf32>, %b: tensor<45xf32>) -> tensor<19x45xf32> {
      %0 = graph.kernel "k" (%x, %w, %b) : (tensor<19x165xf32>, tensor<165x45xf32>, tensor<45xf32>) -> tensor<19x45xf32> {
      ^bb0(%a: tensor<19x165xf32>, %c: tensor<165x45xf32>, %d: tensor<45xf32>):
        %1 = graph.matmul %a, %c : (tensor<19x165xf32>, tensor<165x45xf32>) -> tensor<19x45xf32>
        %2 = graph.add %1, %d : (tensor<19x45xf32>, tensor<45xf32>) -> tensor<19x45xf32>
        graph.yield %2 : tensor<19x45xf32>
      }
      return %0 : tensor<19x45xf32>
    })",
                                     {0}, 1);
  std::vector<std::vector<float>> buffers{random(m * k), random(k * n),
                                          random(n), std::vector<float>(m * n)};
  run(function, buffers);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double want = buffers[2][j];
      for (int64_t t = 0; t < k; ++t)
        want += double(buffers[0][i * k + t]) * buffers[1][t * n + j];
      ASSERT_NEAR(buffers[3][i * n + j], want, 1e-4) << i << " " << j;
    }
}

/// The window is part of the terms, its padding a check.
TEST_P(SplitTest, Convolution) {
  constexpr int64_t size = 5, channels = 24, filters = 33;
  mlir::func::FuncOp function = emit(R"(
    func.func @main(%x: tensor<1x5x5x24xf32>, %w: tensor<33x3x3x24xf32>) -> tensor<1x5x5x33xf32> {
      %0 = graph.kernel "k" (%x, %w) : (tensor<1x5x5x24xf32>, tensor<33x3x3x24xf32>) -> tensor<1x5x5x33xf32> {
      ^bb0(%a: tensor<1x5x5x24xf32>, %c: tensor<33x3x3x24xf32>):
        %1 = graph.conv %a, %c {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1, channels_last} : (tensor<1x5x5x24xf32>, tensor<33x3x3x24xf32>) -> tensor<1x5x5x33xf32>
        graph.yield %1 : tensor<1x5x5x33xf32>
      }
      return %0 : tensor<1x5x5x33xf32>
    })",
                                     {1, 2}, 3);
  std::vector<std::vector<float>> buffers{
      random(size * size * channels), random(filters * 9 * channels),
      std::vector<float>(size * size * filters)};
  run(function, buffers);
  for (int64_t y = 0; y < size; ++y)
    for (int64_t x = 0; x < size; ++x)
      for (int64_t f = 0; f < filters; ++f) {
        double want = 0;
        for (int64_t r = 0; r < 3; ++r)
          for (int64_t s = 0; s < 3; ++s) {
            int64_t v = y + r - 1, u = x + s - 1;
            if (v < 0 || v >= size || u < 0 || u >= size)
              continue;
            for (int64_t c = 0; c < channels; ++c)
              want += double(buffers[0][(v * size + u) * channels + c]) *
                      buffers[1][((f * 3 + r) * 3 + s) * channels + c];
          }
        ASSERT_NEAR(buffers[2][(y * size + x) * filters + f], want, 1e-4)
            << y << " " << x;
      }
}

INSTANTIATE_TEST_SUITE_P(Parts, SplitTest, testing::Values(1, 2, 3, 4, 6));

} // namespace
