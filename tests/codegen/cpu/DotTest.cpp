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

// Sums of sums: what the outer loop carries waits outside of registers, also
// through a second outer loop, beside a tile that the inner loop starts from.
// Integers of 16 bits in pairs of terms, an odd one alone; columns fewer than
// the instruction has; the left side in place, transposed, and computed. Sums
// wrap.
TEST_P(CpuDot, PairsOfTerms) {
  for (int64_t depth : {1, 2, 7, 8})
    for (int64_t columns : {1, 2, 3, 21, 32})
      for (const char *left :
           {"(d0, d1)[s0] -> (d0, d1)", "(d0, d1)[s0] -> (d1, d0)"})
        for (const char *added : {"dense<0>", "dense<-32768>"}) {
          bool across = llvm::StringRef(left).ends_with("(d1, d0)");
          std::string program =
              llvm::formatv(R"(
func.func @kernel(%a: !tile.buffer<i16>, %b: !tile.buffer<i16>, %c: !tile.buffer<i32>) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
  %x = tile.load %a[%pid] {{map = affine_map<{2}>, shape = affine_map<()[s0] -> ({3})>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<i16>, index) -> tensor<5x{0}xi16>
  %d = arith.constant {4} : tensor<5x{0}xi16>
  %l = arith.addi %x, %d : tensor<5x{0}xi16>
  %y = tile.load %b[%pid] {{map = affine_map<(d0, d1)[s0] -> (d0, d1)>, shape = affine_map<()[s0] -> ({0}, {1})>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<i16>, index) -> tensor<{0}x{1}xi16>
  %zero = arith.constant dense<7> : tensor<5x{1}xi32>
  %next = tile.dot {5}, %y, %zero : tensor<5x{0}xi16>, tensor<{0}x{1}xi16> -> tensor<5x{1}xi32>
  tile.store %next, %c[%pid] {{map = affine_map<(d0, d1)[s0] -> (d0, d1)>, shape = affine_map<()[s0] -> (5, {1})>, rank = 2 : i64, checks = array<i64>} : tensor<5x{1}xi32>, !tile.buffer<i32>, index
  return
})",
                            depth, columns, left,
                            across ? std::to_string(depth) + ", 5"
                                   : "5, " + std::to_string(depth),
                            added, added[6] == '0' ? "%x" : "%l");
          auto image = compile(program);
          ASSERT_TRUE(image);
          auto a = Buffer<int16_t>(5 * depth),
               b = Buffer<int16_t>(depth * columns);
          for (Buffer<int16_t> *buffer : {&a, &b})
            for (size_t i = 0; i < buffer->size(); ++i)
              (*buffer)[i] = integer(0, 3) ? integer(-32768, 32767) : -32768;
          auto c = Buffer<int32_t>(5 * columns);
          image->run({a.data(), b.data(), c.data()}, {}, 0, 1);
          for (int64_t m = 0; m < 5; ++m)
            for (int64_t n = 0; n < columns; ++n) {
              uint32_t sum = 7;
              for (int64_t k = 0; k < depth; ++k) {
                int16_t l = a[across ? k * 5 + m : m * depth + k];
                if (added[6] != '0')
                  l = int16_t(l + -32768);
                sum += uint32_t(int32_t(l) * int32_t(b[k * columns + n]));
              }
              ASSERT_EQ(c[m * columns + n], int32_t(sum))
                  << depth << " " << columns << " " << left << " " << added;
            }
          EXPECT_TRUE(c.intact());
        }
}

// Bytes, of which one side has a sign and the other none, as all have extreme
// values often: columns that are few, many, and packed by fours; the left side
// in place, transposed, and computed. The side with a sign has few values where
// pairs of products fit 16 bits.
TEST_P(CpuDot, Bytes) {
  for (int64_t depth : {1, 3, 4, 6, 8})
    for (int64_t columns : {1, 2, 3, 21, 32})
      for (bool packed : {false, true})
        for (bool hasSign : {false, true})
          for (int form : {0, 1, 2, 4, 5, 6}) {
            if (packed && depth % 4 != 0)
              continue;
            bool across = form % 4 == 1, computed = form % 4 == 2,
                 fits = form >= 4;
            std::string place =
                packed ? llvm::formatv("d0 floordiv 4, d1, d0 mod 4").str()
                       : "d0, d1";
            std::string shape =
                packed ? llvm::formatv("{0}, {1}, 4", depth / 4, columns).str()
                       : llvm::formatv("{0}, {1}", depth, columns).str();
            std::string program = llvm::formatv(
                R"(
func.func @kernel(%a: !tile.buffer<i8>, %b: !tile.buffer<i8>, %c: !tile.buffer<i32>) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
  %x = tile.load %a[%pid] {{map = affine_map<(d0, d1)[s0] -> ({2})>, shape = affine_map<()[s0] -> ({3})>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<i8>, index) -> tensor<5x{0}xi8>
  %d = arith.constant dense<-128> : tensor<5x{0}xi8>
  %l = arith.xori %x, %d : tensor<5x{0}xi8>
  %y = tile.load %b[%pid] {{map = affine_map<(d0, d1)[s0] -> ({4})>, shape = affine_map<()[s0] -> ({5})>, rank = {6} : i64, checks = array<i64>} : (!tile.buffer<i8>, index) -> tensor<{0}x{1}xi8>
  %zero = arith.constant dense<7> : tensor<5x{1}xi32>
  %next = tile.dot {7}, %y, %zero {8} : tensor<5x{0}xi8>, tensor<{0}x{1}xi8> -> tensor<5x{1}xi32>
  tile.store %next, %c[%pid] {{map = affine_map<(d0, d1)[s0] -> (d0, d1)>, shape = affine_map<()[s0] -> (5, {1})>, rank = 2 : i64, checks = array<i64>} : tensor<5x{1}xi32>, !tile.buffer<i32>, index
  return
})",
                depth, columns, across ? "d1, d0" : "d0, d1",
                across ? std::to_string(depth) + ", 5"
                       : "5, " + std::to_string(depth),
                place, shape, packed ? 3 : 2, computed ? "%l" : "%x",
                fits ? hasSign ? "{pairs_fit, signed_lhs}" : "{pairs_fit}"
                : hasSign ? "{signed_lhs}"
                          : "");
            auto image = compile(program);
            ASSERT_TRUE(image) << program;
            auto a = Buffer<uint8_t>(5 * depth),
                 b = Buffer<uint8_t>(depth * columns);
            for (Buffer<uint8_t> *buffer : {&a, &b})
              for (size_t i = 0; i < buffer->size(); ++i)
                (*buffer)[i] =
                    integer(0, 3) ? integer(0, 255) : 127 + 128 * integer(0, 1);
            // Of 128 with a sign, or of 255 without; often the largest.
            if (fits)
              for (size_t i = 0; i < b.size(); ++i)
                b[i] = hasSign ? std::min<int>(b[i], 127)
                               : std::clamp<int>(int8_t(b[i]), -64, 64);
            auto c = Buffer<int32_t>(5 * columns);
            image->run({a.data(), b.data(), c.data()}, {}, 0, 1);
            for (int64_t m = 0; m < 5; ++m)
              for (int64_t n = 0; n < columns; ++n) {
                int32_t sum = 7;
                for (int64_t k = 0; k < depth; ++k) {
                  uint8_t l = a[across ? k * 5 + m : m * depth + k] ^
                              (computed ? 128 : 0),
                          r = packed ? b[(k / 4 * columns + n) * 4 + k % 4]
                                     : b[k * columns + n];
                  sum +=
                      hasSign ? int8_t(l) * int32_t(r) : int32_t(l) * int8_t(r);
                }
                ASSERT_EQ(c[m * columns + n], sum) << program;
              }
            EXPECT_TRUE(c.intact());
          }
}

TEST_P(CpuDot, SumsInBlocks) {
  auto image = compile(R"(
func.func @kernel(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>, %c: !tile.buffer<f32>, %d: !tile.buffer<f32>, %blocks: index) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %five = arith.constant 5 : index
  %pid = tile.program_id : index
  %none = arith.constant dense<0.0> : tensor<13x21xf32>
  %all:2 = scf.for %w = %zero to %two step %one iter_args(%s = %none, %o = %none) -> (tensor<13x21xf32>, tensor<13x21xf32>) {
    %total:2 = scf.for %i = %zero to %blocks step %one iter_args(%t = %s, %u = %o) -> (tensor<13x21xf32>, tensor<13x21xf32>) {
      %sum = scf.for %j = %zero to %five step %one iter_args(%acc = %none) -> (tensor<13x21xf32>) {
        %x = tile.load %a[%w, %i, %j] {map = affine_map<(d0, d1)[s0, s1, s2] -> (d0, s0 * 60 + s1 * 20 + s2 * 4 + d1)>, shape = affine_map<()[s0, s1, s2] -> (13, 120)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index, index, index) -> tensor<13x4xf32>
        %y = tile.load %b[%w, %i, %j, %pid] {map = affine_map<(d0, d1)[s0, s1, s2, s3] -> (s0 * 60 + s1 * 20 + s2 * 4 + d0, s3 * 21 + d1)>, shape = affine_map<()[s0, s1, s2, s3] -> (120, 42)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index, index, index, index) -> tensor<4x21xf32>
        %next = tile.dot %x, %y, %acc : tensor<13x4xf32>, tensor<4x21xf32> -> tensor<13x21xf32>
        scf.yield %next : tensor<13x21xf32>
      }
      %more = arith.addf %t, %sum : tensor<13x21xf32>
      scf.yield %more, %t : tensor<13x21xf32>, tensor<13x21xf32>
    }
    scf.yield %total#0, %total#1 : tensor<13x21xf32>, tensor<13x21xf32>
  }
  tile.store %all#0, %c[%pid] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 21 + d1)>, shape = affine_map<()[s0] -> (13, 42)>, rank = 2 : i64, checks = array<i64>} : tensor<13x21xf32>, !tile.buffer<f32>, index
  tile.store %all#1, %d[%pid] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 21 + d1)>, shape = affine_map<()[s0] -> (13, 42)>, rank = 2 : i64, checks = array<i64>} : tensor<13x21xf32>, !tile.buffer<f32>, index
  return
})");
  ASSERT_TRUE(image);
  auto a = Buffer<float>::of(floats(13 * 120)),
       b = Buffer<float>::of(floats(120 * 42));
  for (int64_t blocks : {0, 1, 3}) {
    Buffer<float> c(13 * 42, NAN), d(13 * 42, NAN);
    image->run({a.data(), b.data(), c.data(), d.data()}, {blocks}, 0, 2);
    ASSERT_TRUE(c.intact() && d.intact());
    for (int64_t i = 0; i < 13; ++i)
      for (int64_t j = 0; j < 42; ++j) {
        double sum = 0, before = 0;
        for (int64_t w = 0; w < 2; ++w)
          for (int64_t block = 0; block < blocks; ++block) {
            before = sum;
            for (int64_t k = w * 60 + block * 20, end = k + 20; k < end; ++k)
              sum += double(a[i * 120 + k]) * b[k * 42 + j];
          }
        ASSERT_NEAR(c[i * 42 + j], sum, 1e-3) << blocks << " blocks";
        ASSERT_NEAR(d[i * 42 + j], before, 1e-3) << blocks << " blocks";
      }
  }
}

/// Sums that wait in memory in front of a loop are read again by each of its
/// steps, so no step may add to them there; those that a loop carries, scaled
/// first, are added to where they wait.
TEST_P(CpuDot, StagedSumsOfLoops) {
  const char *program = R"(
func.func @kernel(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>, %x: !tile.buffer<f32>, %c: !tile.buffer<f32>, %d: !tile.buffer<f32>) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 3 : index
  %half = arith.constant dense<0.5> : tensor<28x16xf32>
  %init = arith.constant dense<0.0> : tensor<28x16xf32>
  %l = tile.load %a[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (28, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<28x64xf32>
  %q = tile.load %b[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 16)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<64x16xf32>
  %y = arith.addf %q, %q : tensor<64x16xf32>
  %d1 = tile.dot %l, %y, %init : tensor<28x64xf32>, tensor<64x16xf32> -> tensor<28x16xf32>
  %all = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> (tensor<28x16xf32>) {
    %r = tile.load %x[%i] {map = affine_map<(d0, d1)[s0] -> (s0, d0, d1)>, shape = affine_map<()[s0] -> (3, 64, 16)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<64x16xf32>
    %r2 = arith.addf %r, %r : tensor<64x16xf32>
    %d2 = tile.dot %l, %r2, %d1 : tensor<28x64xf32>, tensor<64x16xf32> -> tensor<28x16xf32>
    tile.store %d2, %c[%i] {map = affine_map<(d0, d1)[s0] -> (s0, d0, d1)>, shape = affine_map<()[s0] -> (3, 28, 16)>, rank = 3 : i64, checks = array<i64>} : tensor<28x16xf32>, !tile.buffer<f32>, index
    %scaled = arith.mulf %sum, %half : tensor<28x16xf32>
    %next = tile.dot %l, %y, %scaled : tensor<28x64xf32>, tensor<64x16xf32> -> tensor<28x16xf32>
    scf.yield %next : tensor<28x16xf32>
  }
  tile.store %all, %d[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (28, 16)>, rank = 2 : i64, checks = array<i64>} : tensor<28x16xf32>, !tile.buffer<f32>
  return
})";
  expectSame(program,
             {{28 * 64}, {64 * 16}, {3 * 64 * 16}, {3 * 28 * 16}, {28 * 16}},
             {}, 1, 2e-5);
}

CHARONIA_CPU_SUITE(CpuDot);
} // namespace
