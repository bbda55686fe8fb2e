#include "CpuRunner.h"
#include "llvm/ADT/STLExtras.h"

using namespace charonia::cpu;

namespace {
using CpuScan = CpuKernels;

/// Scans along every axis of tiles of one to three axes; the total of the first
/// instance's tile is carried into a second scan.
TEST_P(CpuScan, EveryAxis) {
  for (int trial = 0; trial < 24; ++trial) {
    int64_t rank = integer(1, 3);
    llvm::SmallVector<int64_t> shape;
    for (int64_t i = 0; i < rank; ++i)
      shape.push_back(integer(1, i + 1 == rank ? 70 : 20 / rank));
    int64_t axis = integer(0, rank - 1);
    std::string tile, outer, dims, results, outerDims, outerResults;
    int64_t count = 1, left = 1;
    for (auto [i, extent] : llvm::enumerate(shape)) {
      tile += std::to_string(extent) + "x";
      dims += llvm::formatv("{0}d{1}", i ? ", " : "", i);
      results += llvm::formatv("{0}{1}", i ? ", " : "", extent);
      count *= extent;
      if ((int64_t)i == axis)
        continue;
      outer += std::to_string(extent) + "x";
      const char *comma = outerDims.empty() ? "" : ", ";
      outerDims +=
          llvm::formatv("{0}d{1}", comma, (int64_t)i > axis ? i - 1 : i);
      outerResults += llvm::formatv("{0}{1}", comma, extent);
      left *= extent;
    }
    struct Kind {
      llvm::StringRef op, type;
    } kinds[] = {{"arith.addf", "f32"},     {"arith.mulf", "f64"},
                 {"arith.maximumf", "f32"}, {"arith.addi", "i64"},
                 {"arith.muli", "i32"},     {"arith.minsi", "i16"}};
    Kind kind = kinds[trial % std::size(kinds)];
    std::string body = llvm::formatv(R"({{
  ^bb0(%p: {1}, %q: {1}):
    %s = {0} %p, %q : {1}
    tile.yield %s : {1}
  })",
                                     kind.op, kind.type);
    expectSame(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<{0}>, %c: !tile.buffer<{0}>, %y: !tile.buffer<{0}>, %t: !tile.buffer<{0}>) attributes {{tile.kernel} {{
  %a = tile.load %x[] {{map = affine_map<({3}) -> ({3})>, shape = affine_map<() -> ({4})>, rank = {5} : i64, checks = array<i64>} : (!tile.buffer<{0}>) -> tensor<{1}{0}>
  %b = tile.load %c[] {{map = affine_map<({6}) -> ({6})>, shape = affine_map<() -> ({7})>, rank = {8} : i64, checks = array<i64>} : (!tile.buffer<{0}>) -> tensor<{2}{0}>
  %r, %u = tile.scan %a, %b {{axis = {9} : i64} : tensor<{1}{0}>, tensor<{2}{0}> {10}
  tile.store %r, %y[] {{map = affine_map<({3}) -> ({3})>, shape = affine_map<() -> ({4})>, rank = {5} : i64, checks = array<i64>} : tensor<{1}{0}>, !tile.buffer<{0}>
  %v, %w = tile.scan %a, %u {{axis = {9} : i64} : tensor<{1}{0}>, tensor<{2}{0}> {10}
  tile.store %w, %t[] {{map = affine_map<({6}) -> ({6})>, shape = affine_map<() -> ({7})>, rank = {8} : i64, checks = array<i64>} : tensor<{2}{0}>, !tile.buffer<{0}>
  return
})",
                             kind.type, tile, outer, dims, results, rank,
                             outerDims, outerResults, rank - 1, axis, body)
                   .str(),
               {{size_t(count), -1, 1},
                {size_t(left), -1, 1},
                {size_t(count)},
                {size_t(left)}},
               {}, 1, 1e-4);
  }
}

/// What a run in a buffer becomes, for all lengths and numbers kept.
TEST_P(CpuScan, SortsRunsInMemory) {
  for (int64_t count : {0, 1, 2, 3, 16, 17, 100, 1000})
    for (int64_t kept : {int64_t(0), int64_t(1), count / 3, count}) {
      if (kept > count)
        continue;
      auto image = compile(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<i64>) attributes {{tile.kernel} {{
  %first = arith.constant 5 : index
  %count = arith.constant {0} : index
  %kept = arith.constant {1} : index
  tile.sort %x[%first, %count, %kept] : !tile.buffer<i64>
  return
})",
                                         count, kept)
                               .str());
      std::vector<int64_t> data(count + 10);
      for (int64_t &e : data)
        e = integer(-1000, 1000);
      std::vector<int64_t> before = data,
                           sorted(before.begin() + 5, before.end() - 5);
      std::ranges::sort(sorted);
      image->run({data.data()}, {}, 0, 1);
      for (int64_t i = 0; i < kept; ++i)
        EXPECT_EQ(data[5 + i], sorted[i]) << count << " " << kept << " " << i;
      std::vector<int64_t> after(data.begin() + 5, data.end() - 5);
      std::ranges::sort(after);
      EXPECT_EQ(after, sorted);
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(data[i], before[i]);
        EXPECT_EQ(data[count + 5 + i], before[count + 5 + i]);
      }
    }
}

CHARONIA_CPU_SUITE(CpuScan);
} // namespace
