// Sums of parts of rows, and what is made of them, run by the interpreter and
// compared with double precision.
#include "codegen/emit/Schedule.h"
#include "tests/codegen/emit/EmitContext.h"
#include "tests/codegen/interpreter/TileInterpreter.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace charonia;

namespace {

using Buffers = std::vector<std::vector<float>>;

/// The mean and the variance of numbers.
struct Moments {
  double mean = 0, variance = 0;
  Moments(const float *row, int64_t terms) {
    for (int64_t k = 0; k < terms; ++k)
      mean += row[k] / double(terms);
    for (int64_t k = 0; k < terms; ++k)
      variance += std::pow(row[k] - mean, 2) / double(terms);
  }
};

class RowPartsTest : public testing::TestWithParam<bool>,
                     protected EmitContext {
protected:
  static bool isGpu() { return GetParam(); }

  /// Runs the only kernel of `text`, on a GPU or a CPU.
  void run(const std::string &text, Buffers &buffers,
           std::optional<emit::Schedule> schedule = {}) {
    std::vector<tile::InterpreterBuffer> all;
    for (std::vector<float> &buffer : buffers)
      all.push_back({buffer.data(), buffer.size()});
    run(text, all, schedule);
  }
  void run(const std::string &text,
           const std::vector<tile::InterpreterBuffer> &buffers,
           std::optional<emit::Schedule> schedule = {}) {
    graph::KernelOp kernel = parseKernel(text);
    if (schedule)
      kernel.setScheduleAttr(schedule->toAttribute(&context));
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
    emit::EmitTarget target;
    if (isGpu())
      target = emit::EmitTarget::gpu();
    auto function = emit::emitKernel(kernel, target, builder);
    EXPECT_TRUE(succeeded(function));
    auto grid =
        (*function)->getAttrOfType<mlir::AffineMapAttr>(tile::kGridAttr);
    EXPECT_EQ(tile::interpret(*function, buffers, {}, 0,
                              grid.getValue().getSingleConstantResult()),
              "");
  }

  /// Numbers of 11 bits around a mean.
  std::vector<float> around(double mean, double deviation, size_t size) {
    std::vector<float> values(size);
    std::normal_distribution<double> normal(mean, deviation);
    for (float &v : values)
      v = tile::halfToFloat(tile::floatToHalf(normal(engine)));
    return values;
  }

  /// Of parts of rows: sums, and squared distances from their means.
  static void expectParts(const std::vector<float> &values, int64_t part,
                          const std::vector<float> &sums,
                          const std::vector<float> &squares) {
    for (size_t i = 0; i < sums.size(); ++i) {
      Moments own(&values[i * part], part);
      EXPECT_NEAR(sums[i], own.mean * part, 1e-6 * std::abs(own.mean * part));
      EXPECT_NEAR(squares[i], own.variance * part, 1e-4 * own.variance * part);
    }
  }

  /// Rows of f16, normalized.
  std::vector<float> normalized(const std::vector<float> &x, Buffers &parts,
                                int64_t terms, int64_t count, double epsilon) {
    std::vector<uint16_t> rows, result(x.size());
    for (float v : x)
      rows.push_back(tile::floatToHalf(v));
    std::string text = llvm::formatv(R"(
      func.func @main(%x: tensor<3x{0}xf16>, %q: tensor<3x{1}xf32>, %s: tensor<3x{1}xf32>) -> tensor<3x{0}xf16> {{
        %0 = graph.kernel "k" (%x, %q, %s) : (tensor<3x{0}xf16>, tensor<3x{1}xf32>, tensor<3x{1}xf32>) -> tensor<3x{0}xf16> {{
        ^bb0(%a: tensor<3x{0}xf16>, %b: tensor<3x{1}xf32>, %c: tensor<3x{1}xf32>):
          %1 = graph.normalize_rows %a, %b terms %c {{epsilon = {2:e} : f64} : (tensor<3x{0}xf16>, tensor<3x{1}xf32>, tensor<3x{1}xf32>) -> tensor<3x{0}xf16>
          graph.yield %1 : tensor<3x{0}xf16>
        }
        return %0 : tensor<3x{0}xf16>
      })",
                                     terms, count, epsilon);
    // Of 16 rows 512 parts are taken at once.
    std::optional<emit::Schedule> schedule;
    if (isGpu()) {
      schedule.emplace();
      schedule->groups = {{{1}, 32}, {{0}, 16}};
      schedule->axes = {1, 0};
    }
    run(text,
        {{rows.data(), rows.size()},
         {parts[0].data(), parts[0].size()},
         {parts[1].data(), parts[1].size()},
         {result.data(), result.size()}},
        schedule);
    std::vector<float> values;
    for (uint16_t bits : result)
      values.push_back(tile::halfToFloat(bits));
    return values;
  }

  std::mt19937 engine{7};
};

/// Runs that nothing in front of them has begun to add up.
TEST_P(RowPartsTest, RunsByThemselves) {
  constexpr int64_t rows = 5, terms = 96, run = 32;
  for (double mean : {0, 300, -1000}) {
    Buffers buffers{around(mean, 1, rows * terms),
                    std::vector<float>(rows * terms / run),
                    std::vector<float>(rows * terms / run)};
    for (auto [result, attribute] :
         {std::pair(1, ""), {2, ", squared_distances"}}) {
      Buffers own{buffers[0], buffers[result]};
      this->run(llvm::formatv(R"(
        func.func @main(%x: tensor<5x96xf32>) -> tensor<5x3xf32> {{
          %0 = graph.kernel "k" (%x) : (tensor<5x96xf32>) -> tensor<5x3xf32> {{
          ^bb0(%a: tensor<5x96xf32>):
            %1 = graph.sum_runs %a {{run = 32 : i64{0}} : (tensor<5x96xf32>) -> tensor<5x3xf32>
            graph.yield %1 : tensor<5x3xf32>
          }
          return %0 : tensor<5x3xf32>
        })",
                              attribute),
                own);
      buffers[result] = own[1];
    }
    expectParts(buffers[0], run, buffers[1], buffers[2]);
  }
}

/// Runs of a product's columns, one or some of them in a tile of its own, whose
/// last rows are nobody's.
TEST_P(RowPartsTest, RunsBesideProduct) {
  constexpr int64_t rows = 19, terms = 8, columns = 128, run = 32;
  if (!isGpu())
    GTEST_SKIP() << "tiles of a CPU have no cells";
  for (int64_t tile : {32, 64}) {
    std::vector<float> x(rows * terms), w = around(300, 1, terms * columns);
    for (int64_t i = 0; i < rows; ++i) // rows of w
      x[i * terms + i % terms] = 1;
    Buffers buffers{x, w, std::vector<float>(rows * columns),
                    std::vector<float>(rows * columns / run),
                    std::vector<float>(rows * columns / run)};
    emit::Schedule schedule;
    schedule.groups = {{{1}, tile}, {{0}, 16}};
    schedule.axes = {1, 0};
    schedule.kTile = 32;
    this->run(R"(
      func.func @main(%x: tensor<19x8xf32>, %w: tensor<8x128xf32>) -> (tensor<19x128xf32>, tensor<19x4xf32>, tensor<19x4xf32>) {
        %0:3 = graph.kernel "k" (%x, %w) : (tensor<19x8xf32>, tensor<8x128xf32>) -> (tensor<19x128xf32>, tensor<19x4xf32>, tensor<19x4xf32>) {
        ^bb0(%a: tensor<19x8xf32>, %b: tensor<8x128xf32>):
          %1 = graph.matmul %a, %b : (tensor<19x8xf32>, tensor<8x128xf32>) -> tensor<19x128xf32>
          %2 = graph.sum_runs %1 {run = 32 : i64} : (tensor<19x128xf32>) -> tensor<19x4xf32>
          %3 = graph.sum_runs %1 {run = 32 : i64, squared_distances} : (tensor<19x128xf32>) -> tensor<19x4xf32>
          graph.yield %1, %2, %3 : tensor<19x128xf32>, tensor<19x4xf32>, tensor<19x4xf32>
        }
        return %0#0, %0#1, %0#2 : tensor<19x128xf32>, tensor<19x4xf32>, tensor<19x4xf32>
      })",
              buffers, schedule);
    expectParts(buffers[2], run, buffers[3], buffers[4]);
  }
}

/// Rows of f16 that are normalized by what is there of their parts: few, and so
/// many that they are walked.
TEST_P(RowPartsTest, Normalized) {
  constexpr int64_t rows = 3;
  for (auto [terms, parts] :
       {std::pair(96, 3), {768, 24}, {800, 100}, {1200, 600}})
    for (auto [mean, deviation] :
         {std::pair(0.0, 1.0), {300, 1}, {-1000, .5}, {300, 0}})
      for (double epsilon : {1e-5, 1e-12}) {
        std::vector<float> x = around(mean, deviation, rows * terms);
        x[0] += 2 * deviation;
        std::vector<float> want;
        Buffers own(2);
        for (int64_t i = 0; i < rows; ++i) {
          Moments row(&x[i * terms], terms);
          for (int64_t k = 0; k < terms; ++k)
            want.push_back((x[i * terms + k] - row.mean) /
                           std::sqrt(row.variance + epsilon));
        }
        for (int64_t i = 0; i < rows * parts; ++i) {
          int64_t part = terms / parts;
          Moments moments(&x[i * part], part);
          own[0].push_back(moments.variance * part);
          own[1].push_back(moments.mean * part);
        }
        std::vector<float> got = normalized(x, own, terms, parts, epsilon);
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(got[i], want[i], 1e-3 * std::max(1.f, std::abs(want[i])))
              << mean << " +- " << deviation << ", " << parts << " parts";
      }
}

INSTANTIATE_TEST_SUITE_P(Targets, RowPartsTest, testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "gpu" : "cpu";
                         });

} // namespace
