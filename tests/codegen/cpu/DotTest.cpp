#include "CpuRunner.h"
#include <cmath>

using namespace charonia::cpu;

namespace {
using CpuDot = CpuKernels;

// C[M,N] = A[M,K] B[K,N] in tiles, K in blocks with checks where nothing
// divides.
TEST_P(CpuDot, AwkwardSizes) {
  for (int trial = 0; trial < 12; ++trial) {
    int64_t m = integer(1, 30), n = integer(1, 70), k = integer(1, 60);
    int64_t tm = integer(1, 8), tn = integer(1, 40), tk = integer(1, 9);
    int64_t gridM = (m + tm - 1) / tm, gridN = (n + tn - 1) / tn;
    std::string program = llvm::formatv(R"(
func.func @matmul(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>, %c: !tile.buffer<f32>, %m: index, %n: index, %k: index) attributes {{tile.kernel} {{
  %zero = arith.constant 0 : index
  %kb = arith.constant {2} : index
  %gn = arith.constant {3} : index
  %pid = tile.program_id : index
  %pm = arith.divui %pid, %gn : index
  %pn = arith.remui %pid, %gn : index
  %init = arith.constant dense<0.0> : tensor<{0}x{1}xf32>
  %sum = scf.for %i = %zero to %k step %kb iter_args(%acc = %init) -> (tensor<{0}x{1}xf32>) {{
    %x = tile.load %a[%pm, %i, %m, %k] {{map = affine_map<(d0, d1)[s0, s1, s2, s3] -> (s0 * {0} + d0, s1 + d1)>, shape = affine_map<()[s0, s1, s2, s3] -> (s2, s3)>, rank = 2 : i64, checks = array<i64: 0, 1>} : (!tile.buffer<f32>, index, index, index, index) -> tensor<{0}x{2}xf32>
    %y = tile.load %b[%pn, %i, %n, %k] {{map = affine_map<(d0, d1)[s0, s1, s2, s3] -> (s1 + d0, s0 * {1} + d1)>, shape = affine_map<()[s0, s1, s2, s3] -> (s3, s2)>, rank = 2 : i64, checks = array<i64: 0, 1>} : (!tile.buffer<f32>, index, index, index, index) -> tensor<{2}x{1}xf32>
    %next = tile.dot %x, %y, %acc : tensor<{0}x{2}xf32>, tensor<{2}x{1}xf32> -> tensor<{0}x{1}xf32>
    scf.yield %next : tensor<{0}x{1}xf32>
  }
  tile.store %sum, %c[%pm, %pn, %m, %n] {{map = affine_map<(d0, d1)[s0, s1, s2, s3] -> (s0 * {0} + d0, s1 * {1} + d1)>, shape = affine_map<()[s0, s1, s2, s3] -> (s2, s3)>, rank = 2 : i64, checks = array<i64: 0, 1>} : tensor<{0}x{1}xf32>, !tile.buffer<f32>, index, index, index, index
  return
})",
                                        tm, tn, tk, gridN)
                              .str();
    auto image = compile(program);
    ASSERT_TRUE(image);
    auto a = Buffer<float>::of(floats(m * k)),
         b = Buffer<float>::of(floats(k * n));
    Buffer<float> c(m * n, NAN);
    image->run({a.data(), b.data(), c.data()}, {m, n, k}, 0, gridM * gridN);
    ASSERT_TRUE(c.intact());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += double(a[i * k + l]) * b[l * n + j];
        ASSERT_NEAR(c[i * n + j], sum, 1e-5 * k)
            << m << "x" << n << "x" << k << " at " << i << ", " << j;
      }
  }
}

CHARONIA_CPU_SUITE(CpuDot);
} // namespace
