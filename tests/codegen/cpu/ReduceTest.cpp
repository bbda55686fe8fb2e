#include "CpuRunner.h"

using namespace charonia::cpu;

namespace {
using CpuReduce = CpuKernels;

std::string combiner(llvm::StringRef op, llvm::StringRef type) {
  return llvm::formatv(R"({{
  ^bb0(%p: {1}, %q: {1}):
    %s = {0} %p, %q : {1}
    tile.yield %s : {1}
  })",
                       op, type)
      .str();
}

/// Reduces every axis of tiles of two and three axes.
TEST_P(CpuReduce, EveryAxis) {
  for (int trial = 0; trial < 30; ++trial) {
    int64_t rank = integer(1, 3);
    llvm::SmallVector<int64_t> shape;
    for (int64_t i = 0; i < rank; ++i)
      shape.push_back(integer(1, i + 1 == rank ? 70 : 20 / rank));
    int64_t axis = integer(0, rank - 1);
    std::string from, to, dims, results, dimsOut, resultsOut;
    int64_t count = 1, left = 1, out = 0;
    for (auto [i, extent] : llvm::enumerate(shape)) {
      from += std::to_string(extent) + "x";
      dims += llvm::formatv("{0}d{1}", i ? ", " : "", i);
      results += llvm::formatv(", {0}", extent);
      count *= extent;
      if ((int64_t)i == axis)
        continue;
      to += std::to_string(extent) + "x";
      dimsOut += llvm::formatv("{0}d{1}", out ? ", " : "", out);
      resultsOut += llvm::formatv(", {0}", extent);
      left *= extent;
      ++out;
    }
    struct Kind {
      llvm::StringRef op, type;
    } kinds[] = {{"arith.addf", "f32"}, {"arith.maximumf", "f32"},
                 {"arith.addf", "f64"}, {"arith.maxsi", "i32"},
                 {"arith.andi", "i1"},  {"arith.muli", "i64"},
                 {"arith.mulf", "f32"}};
    Kind kind = kinds[trial % std::size(kinds)];
    expectSame(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<{0}>, %y: !tile.buffer<{0}>) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {{map = affine_map<({3})[s0] -> (s0, {3})>, shape = affine_map<()[s0] -> (3{4})>, rank = {5} : i64, checks = array<i64>} : (!tile.buffer<{0}>, index) -> tensor<{1}{0}>
  %b = tile.reduce %a {{axis = {6} : i64} : (tensor<{1}{0}>) -> tensor<{2}{0}> {7}
  tile.store %b, %y[%pid] {{map = affine_map<({8})[s0] -> ({9})>, shape = affine_map<()[s0] -> (3{10})>, rank = {11} : i64, checks = array<i64>} : tensor<{2}{0}>, !tile.buffer<{0}>, index
  return
})",
                             kind.type, from, to, dims, results, rank + 1, axis,
                             combiner(kind.op, kind.type), dimsOut,
                             out ? "s0, " + dimsOut : "s0", resultsOut, rank)
                   .str(),
               {{size_t(3 * count)}, {size_t(3 * left)}}, {}, 3, 1e-4);
  }
}

TEST_P(CpuReduce, SoftmaxOfRows) {
  expectSame(R"(
func.func @kernel(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0, d1)[s0] -> (s0 * 5 + d0, d1)>, shape = affine_map<()[s0] -> (15, 43)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<5x43xf32>
  %m = tile.reduce %a {axis = 1 : i64} : (tensor<5x43xf32>) -> tensor<5xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.maximumf %p, %q : f32
    tile.yield %s : f32
  }
  %mb = tile.broadcast %m {axes = array<i64: 0>} : tensor<5xf32> -> tensor<5x43xf32>
  %d = arith.subf %a, %mb : tensor<5x43xf32>
  %e = math.exp %d : tensor<5x43xf32>
  %t = tile.reduce %e {axis = 1 : i64} : (tensor<5x43xf32>) -> tensor<5xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s : f32
  }
  %tb = tile.broadcast %t {axes = array<i64: 0>} : tensor<5xf32> -> tensor<5x43xf32>
  %r = arith.divf %e, %tb : tensor<5x43xf32>
  tile.store %r, %y[%pid] {map = affine_map<(d0, d1)[s0] -> (s0 * 5 + d0, d1)>, shape = affine_map<()[s0] -> (15, 43)>, rank = 2 : i64, checks = array<i64>} : tensor<5x43xf32>, !tile.buffer<f32>, index
  return
})",
             {{15 * 43, -10, 10}, {15 * 43}}, {}, 3, 1e-6);
}

TEST_P(CpuReduce, ArgMaxWithTwoOperands) {
  for (int64_t axis : {0, 1})
    expectSame(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<f32>, %y: !tile.buffer<index>) attributes {{tile.kernel} {{
  %a = tile.load %x[] {{map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (9, 27)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<9x27xf32>
  %i = tile.index [] {{map = affine_map<(d0, d1) -> (d{0})>} : () -> tensor<9x27xindex>
  %v, %j = tile.reduce %a, %i {{axis = {0} : i64} : (tensor<9x27xf32>, tensor<9x27xindex>) -> (tensor<{1}xf32>, tensor<{1}xindex>) {{
  ^bb0(%p: f32, %pi: index, %q: f32, %qi: index):
    %g = arith.cmpf ogt, %p, %q : f32
    %e = arith.cmpf oeq, %p, %q : f32
    %l = arith.cmpi slt, %pi, %qi : index
    %el = arith.andi %e, %l : i1
    %take = arith.ori %g, %el : i1
    %w = arith.select %take, %p, %q : f32
    %wi = arith.select %take, %pi, %qi : index
    tile.yield %w, %wi : f32, index
  }
  tile.store %j, %y[] {{map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> ({1})>, rank = 1 : i64, checks = array<i64>} : tensor<{1}xindex>, !tile.buffer<index>
  return
})",
                             axis, axis == 0 ? 27 : 9)
                   .str(),
               {{243}, {27}}, {}, 1, 0);
}

CHARONIA_CPU_SUITE(CpuReduce);
} // namespace
