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
  static std::string program(llvm::ArrayRef<mlir::AffineExpr> exprs) {
    std::string text = "func.func @kernel(", body;
    llvm::raw_string_ostream os(body);
    for (auto [i, e] : llvm::enumerate(exprs)) {
      mlir::AffineMap map = mlir::AffineMap::get(2, 3, e);
      text += llvm::formatv("%y{0}: !tile.buffer<i64>, ", i);
      os << "  %i" << i << " = tile.index [%a, %b, %c] {map = affine_map<"
         << map << ">} : (index, index, index) -> tensor<3x21xindex>\n"
         << "  %v" << i << " = arith.index_cast %i" << i
         << " : tensor<3x21xindex> to tensor<3x21xi64>\n"
         << "  tile.store %v" << i << ", %y" << i
         << "[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = "
            "affine_map<() -> (3, 21)>, rank = 2 : i64, checks = array<i64>} "
            ": tensor<3x21xi64>, !tile.buffer<i64>\n";
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

CHARONIA_CPU_SUITE(CpuIndex);

} // namespace
