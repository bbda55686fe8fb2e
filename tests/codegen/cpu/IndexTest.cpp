// Random integer expressions over axes and sizes as compiled code computes
// them, against evaluation in 128 bits.
#include "CpuRunner.h"
#include "tests/graph/RandomExprs.h"

using namespace charonia::cpu;
using namespace charonia;

namespace {

class CpuIndex : public CpuKernels {
protected:
  static constexpr int64_t rows = 3, columns = 21;

  /// One kernel whose buffers take the values of these expressions.
  static std::string program(llvm::ArrayRef<mlir::AffineExpr> exprs,
                             int64_t columns = CpuIndex::columns) {
    std::string text = "func.func @kernel(", body;
    llvm::raw_string_ostream os(body);
    for (auto [i, e] : llvm::enumerate(exprs)) {
      mlir::AffineMap map = mlir::AffineMap::get(2, 3, e);
      text += llvm::formatv("%y{0}: !tile.buffer<i64>, ", i);
      os << llvm::formatv(
          "  %i{0} = tile.index [%a, %b, %c] {{map = affine_map<{1}>} : "
          "(index, index, index) -> tensor<3x{2}xindex>\n"
          "  %v{0} = arith.index_cast %i{0} : tensor<3x{2}xindex> to "
          "tensor<3x{2}xi64>\n"
          "  tile.store %v{0}, %y{0}[] {{map = affine_map<(d0, d1) -> (d0, "
          "d1)>, shape = affine_map<() -> (3, {2})>, rank = 2 : i64, checks = "
          "array<i64>} : tensor<3x{2}xi64>, !tile.buffer<i64>\n",
          i, map, columns);
    }
    return text +
           "%a: index {tile.divisor = 8 : i64}, %b: index, %c: index) "
           "attributes {tile.kernel} {\n" +
           body + "  return\n}\n";
  }
};

TEST_P(CpuIndex, RandomExpressions) {
  graph::RandomExprs make(context, 20261121);
  int compared = 0;
  for (int round = 0; round < 25; ++round) {
    bool large = round % 5 == 0;
    llvm::SmallVector<mlir::AffineExpr> exprs;
    for (int i = 0; i < 8; ++i)
      exprs.push_back(make.expression(make.pick(1, 4), {true, true, large}));
    std::unique_ptr<LoadedImage> image = compile(program(exprs));
    ASSERT_TRUE(image);
    for (int sample = 0; sample < 4; ++sample) {
      int64_t most = large && sample % 2 ? int64_t(1) << 58 : 50;
      llvm::SmallVector<int64_t> sizes{make.pick(0, most) * 8,
                                       make.pick(0, most), make.pick(1, most)};
      std::vector<Buffer<int64_t>> results;
      llvm::SmallVector<void *> buffers;
      for (size_t i = 0; i < exprs.size(); ++i) {
        results.emplace_back(rows * columns);
        buffers.push_back(results.back().data());
      }
      image->run(buffers, sizes, 0, 1);
      for (auto [e, got] : llvm::zip(exprs, results)) {
        EXPECT_TRUE(got.intact());
        for (int64_t i = 0; i < rows * columns; ++i) {
          int64_t dims[] = {i / columns, i % columns};
          bool fits = true;
          auto wanted = graph::evaluateWide(e, dims, sizes, &fits);
          if (!wanted || !fits)
            continue;
          ++compared;
          std::string text;
          llvm::raw_string_ostream(text) << e;
          ASSERT_EQ(got[i], int64_t(*wanted))
              << text << "\nat " << dims[0] << ", " << dims[1] << " for "
              << sizes[0] << ", " << sizes[1] << ", " << sizes[2];
        }
      }
    }
  }
  EXPECT_GT(compared, 25 * 8 * 4 * rows * columns / 2);
}

/// In some pieces all lanes are known not to be negative, though what they
/// share is.
TEST_P(CpuIndex, NegativeStartsOfPieces) {
  constexpr int64_t columns = 64;
  mlir::AffineExpr column = mlir::getAffineDimExpr(1, &context);
  llvm::SmallVector<mlir::AffineExpr> exprs;
  for (int64_t by : {16, 32})
    for (int64_t divisor : {3, 4}) {
      mlir::AffineExpr offset = column % by - by / 2;
      exprs.push_back(offset.floorDiv(divisor));
      exprs.push_back(offset % divisor);
      exprs.push_back((offset + offset).floorDiv(divisor + 2));
    }
  std::unique_ptr<LoadedImage> image = compile(program(exprs, columns));
  ASSERT_TRUE(image);
  std::vector<Buffer<int64_t>> results;
  llvm::SmallVector<void *> buffers;
  for (size_t i = 0; i < exprs.size(); ++i) {
    results.emplace_back(rows * columns);
    buffers.push_back(results.back().data());
  }
  image->run(buffers, llvm::SmallVector<int64_t>{8, 1, 1}, 0, 1);
  for (auto [e, got] : llvm::zip(exprs, results))
    for (int64_t i = 0; i < rows * columns; ++i) {
      std::string text;
      llvm::raw_string_ostream(text) << e;
      auto wanted = graph::evaluate(e, {i / columns, i % columns}, {});
      ASSERT_EQ(got[i], *wanted) << text << "\nat column " << i % columns;
    }
}

CHARONIA_CPU_SUITE(CpuIndex);

} // namespace
