// Loops, conditions, transposes, the order of memory accesses, several kernels.
#include "CpuRunner.h"

using namespace charonia::cpu;

namespace {
using CpuControl = CpuKernels;

TEST_P(CpuControl, LoopCarriesTilesAndScalars) {
  expectSame(R"(
func.func @kernel(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %z: !tile.buffer<index>, %n: index) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %pid = tile.program_id : index
  %first = arith.constant dense<1.0> : tensor<3x18xf32>
  %small = arith.constant dense<0.0> : tensor<1xf32>
  %start = arith.addi %pid, %one : index
  %r:3 = scf.for %i = %start to %n step %two iter_args(%a = %first, %b = %small, %c = %zero) -> (tensor<3x18xf32>, tensor<1xf32>, index) {
    %t = tile.load %x[%i] {map = affine_map<(d0, d1)[s0] -> (s0, d1)>, shape = affine_map<()[s0] -> (20, 18)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<3x18xf32>
    %u = arith.mulf %a, %t : tensor<3x18xf32>
    %w = tile.broadcast %b {axes = array<i64: 1>} : tensor<1xf32> -> tensor<3x18xf32>
    %v = arith.addf %u, %w : tensor<3x18xf32>
    %s = tile.load %x[%i] {map = affine_map<(d0)[s0] -> (s0, d0 + 3)>, shape = affine_map<()[s0] -> (20, 18)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<1xf32>
    %d = arith.addi %c, %i : index
    scf.yield %v, %s, %d : tensor<3x18xf32>, tensor<1xf32>, index
  }
  %count = tile.splat %r#2 : index -> tensor<1xindex>
  tile.store %r#0, %y[%pid] {map = affine_map<(d0, d1)[s0] -> (s0, d0, d1)>, shape = affine_map<()[s0] -> (25, 3, 18)>, rank = 3 : i64, checks = array<i64>} : tensor<3x18xf32>, !tile.buffer<f32>, index
  tile.store %count, %z[%pid] {map = affine_map<(d0)[s0] -> (s0)>, shape = affine_map<()[s0] -> (25)>, rank = 1 : i64, checks = array<i64>} : tensor<1xindex>, !tile.buffer<index>, index
  return
})",
             {{360}, {25 * 54}, {25}}, {20}, 25);
}

TEST_P(CpuControl, NestedLoopsAndConditions) {
  expectSame(R"(
func.func @kernel(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %pid = tile.program_id : index
  %bias = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (8, 21)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<21xf32>
  %init = arith.constant dense<0.0> : tensor<21xf32>
  %odd = arith.andi %pid, %one : index
  %isodd = arith.cmpi eq, %odd, %one : index
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %init) -> (tensor<21xf32>) {
    %q = scf.for %j = %zero to %i step %three iter_args(%c = %a) -> (tensor<21xf32>) {
      %t = tile.load %x[%j] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (8, 21)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<21xf32>
      %k = arith.addf %c, %t : tensor<21xf32>
      %l = arith.mulf %k, %bias : tensor<21xf32>
      scf.yield %l : tensor<21xf32>
    }
    %u = scf.if %isodd -> (tensor<21xf32>) {
      %v = arith.addf %q, %bias : tensor<21xf32>
      scf.yield %v : tensor<21xf32>
    } else {
      %v = arith.subf %q, %bias : tensor<21xf32>
      %w = math.tanh %v : tensor<21xf32>
      scf.yield %w : tensor<21xf32>
    }
    scf.yield %u : tensor<21xf32>
  }
  scf.if %isodd {
    tile.store %r, %y[%pid] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (8, 21)>, rank = 2 : i64, checks = array<i64>} : tensor<21xf32>, !tile.buffer<f32>, index
  }
  return
})",
             {{168, -0.9, 0.9}, {168}}, {5}, 8, 1e-5);
}

TEST_P(CpuControl, StoresInLoops) {
  expectSame(R"(
func.func @kernel(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %step = arith.constant 20 : index
  %pid = tile.program_id : index
  %s = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0 * 51)>, shape = affine_map<()[s0] -> (153)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<1xf32>
  %b = tile.broadcast %s {axes = array<i64: 0>} : tensor<1xf32> -> tensor<20xf32>
  scf.for %i = %zero to %n step %step {
    %t = tile.load %x[%pid, %i, %n] {map = affine_map<(d0)[s0, s1, s2] -> (s0, s1 + d0)>, shape = affine_map<()[s0, s1, s2] -> (3, s2)>, rank = 2 : i64, checks = array<i64: 1>} : (!tile.buffer<f32>, index, index, index) -> tensor<20xf32>
    %u = arith.mulf %t, %b : tensor<20xf32>
    tile.store %u, %y[%pid, %i, %n] {map = affine_map<(d0)[s0, s1, s2] -> (s0, s1 + d0)>, shape = affine_map<()[s0, s1, s2] -> (3, s2)>, rank = 2 : i64, checks = array<i64: 1>} : tensor<20xf32>, !tile.buffer<f32>, index, index, index
  }
  return
})",
             {{153}, {153}}, {51}, 3, 0);
}

TEST_P(CpuControl, Transposes) {
  for (int trial = 0; trial < 12; ++trial) {
    int64_t a = integer(1, 4), b = integer(1, 20), c = integer(1, 35);
    static const int permutations[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const int *p = permutations[trial % 6];
    int64_t shape[] = {a, b, c};
    llvm::StringRef type = trial % 3 == 0   ? "i8"
                           : trial % 3 == 1 ? "f32"
                                            : "f64";
    expectSame(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<{9}>, %y: !tile.buffer<{9}>) attributes {{tile.kernel} {{
  %a = tile.load %x[] {{map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>, shape = affine_map<() -> ({0}, {1}, {2})>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<{9}>) -> tensor<{0}x{1}x{2}x{9}>
  %b = tile.transpose %a {{permutation = array<i64: {3}, {4}, {5}>} : tensor<{0}x{1}x{2}x{9}> -> tensor<{6}x{7}x{8}x{9}>
  tile.store %b, %y[] {{map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>, shape = affine_map<() -> ({6}, {7}, {8})>, rank = 3 : i64, checks = array<i64>} : tensor<{6}x{7}x{8}x{9}>, !tile.buffer<{9}>
  return
})",
                             a, b, c, p[0], p[1], p[2], shape[p[0]],
                             shape[p[1]], shape[p[2]], type)
                   .str(),
               {{size_t(a * b * c)}, {size_t(a * b * c)}}, {}, 1, 0);
  }
}

TEST_P(CpuControl, SeveralResultsShareTheirInput) {
  expectSame(R"(
func.func @kernel(%x: !tile.buffer<f32>, %w: !tile.buffer<f32>, %y: !tile.buffer<f32>, %z: !tile.buffer<f16>) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0 * 50 + d0)>, shape = affine_map<()[s0] -> (150)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<50xf32>
  %b = tile.load %w[%pid] {map = affine_map<(d0)[s0] -> (s0 * 50 + d0)>, shape = affine_map<()[s0] -> (150)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<50xf32>
  %c = arith.mulf %a, %a : tensor<50xf32>
  %d = arith.addf %a, %b : tensor<50xf32>
  %e = arith.truncf %d : tensor<50xf32> to tensor<50xf16>
  tile.store %c, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 * 50 + d0)>, shape = affine_map<()[s0] -> (150)>, rank = 1 : i64, checks = array<i64>} : tensor<50xf32>, !tile.buffer<f32>, index
  tile.store %e, %z[%pid] {map = affine_map<(d0)[s0] -> (s0 * 50 + d0)>, shape = affine_map<()[s0] -> (150)>, rank = 1 : i64, checks = array<i64>} : tensor<50xf16>, !tile.buffer<f16>, index
  return
})",
             {{150}, {150}, {150}, {150}}, {}, 3, 1e-6);
}

TEST_P(CpuControl, ResultsInPlace) {
  // y lies over x, z over w: every element is read before it is written, also
  // the ones that only the second store needs.
  auto image = compile(R"(
func.func @kernel(%x: !tile.buffer<f32>, %w: !tile.buffer<f32>, %y: !tile.buffer<f32>, %z: !tile.buffer<f32>) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0 * 50 + d0)>, shape = affine_map<()[s0] -> (150)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<50xf32>
  %b = tile.load %w[%pid] {map = affine_map<(d0)[s0] -> (s0 * 50 + d0)>, shape = affine_map<()[s0] -> (150)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<50xf32>
  %c = arith.addf %b, %b : tensor<50xf32>
  %d = arith.addf %a, %a : tensor<50xf32>
  tile.store %c, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 * 50 + d0)>, shape = affine_map<()[s0] -> (150)>, rank = 1 : i64, checks = array<i64>} : tensor<50xf32>, !tile.buffer<f32>, index
  tile.store %d, %z[%pid] {map = affine_map<(d0)[s0] -> (s0 * 50 + d0)>, shape = affine_map<()[s0] -> (150)>, rank = 1 : i64, checks = array<i64>} : tensor<50xf32>, !tile.buffer<f32>, index
  return
})");
  ASSERT_TRUE(image);
  std::vector<float> first = floats(150), second = floats(150);
  auto x = Buffer<float>::of(first), w = Buffer<float>::of(second);
  image->run({x.data(), w.data(), x.data(), w.data()}, {}, 0, 3);
  for (int i = 0; i < 150; ++i) {
    ASSERT_EQ(x[i], 2 * second[i]) << i;
    ASSERT_EQ(w[i], 2 * first[i]) << i;
  }
}

TEST_P(CpuControl, ImagesAreDeterministicAndParallel) {
  std::string program;
  for (int i = 1; i <= 9; ++i)
    program += llvm::formatv(R"(
func.func @kernel{0}(%x: !tile.buffer<f32>) attributes {{tile.kernel} {{
  %a = tile.load %x[] {{map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> ({1})>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<{1}xf32>
  %b = math.exp %a : tensor<{1}xf32>
  tile.store %b, %x[] {{map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> ({1})>, rank = 1 : i64, checks = array<i64>} : tensor<{1}xf32>, !tile.buffer<f32>
  return
})",
                             i, i * 7)
                   .str();
  auto module = parseKernels(context, program);
  llvm::SmallVector<mlir::func::FuncOp> kernels(
      module->getOps<mlir::func::FuncOp>());
  CpuOptions one, four;
  one.threads = 1;
  four.threads = 4;
  auto a = compileCpuKernels(kernels, GetParam(), one),
       b = compileCpuKernels(kernels, GetParam(), four);
  ASSERT_TRUE(succeeded(a) && succeeded(b));
  EXPECT_EQ(a->bytes, b->bytes);
  ASSERT_EQ(a->kernels.size(), 9u);
  LoadedImage image(std::move(*a));
  for (int i = 1; i <= 9; ++i) {
    EXPECT_EQ(image.image.kernels[i - 1].name, "kernel" + std::to_string(i));
    EXPECT_EQ(image.image.kernels[i - 1].entry, b->kernels[i - 1].entry);
    Buffer<float> x(i * 7, 1.0f);
    image.run({x.data()}, {}, 0, 1, i - 1);
    EXPECT_TRUE(x.intact());
    for (size_t j = 0; j < x.size(); ++j)
      ASSERT_NEAR(x[j], 2.7182818f, 1e-6);
  }
}

CHARONIA_CPU_SUITE(CpuControl);
} // namespace
