// What operations compute: against formulas, llvm::APFloat and plain loops.
#include "Simt.h"
#include "codegen/gpu/interpreter/Formats.h"
#include "llvm/ADT/APFloat.h"
#include <random>

using namespace charonia::interpreter;
using llvm::APFloat;

namespace {

uint16_t rounded(const llvm::fltSemantics &semantics, double value) {
  bool lost;
  APFloat number(value);
  number.convert(semantics, APFloat::rmNearestTiesToEven, &lost);
  return number.bitcastToAPInt().getZExtValue();
}

TEST(SimtOperations, HalvesAreRoundedRight) {
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    APFloat exact(APFloat::IEEEhalf(), llvm::APInt(16, bits));
    bool lost;
    exact.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
    float value = halfToFloat(bits);
    if (exact.isNaN()) {
      EXPECT_TRUE(std::isnan(value));
      continue;
    }
    EXPECT_EQ(value, exact.convertToFloat()) << bits;
    EXPECT_EQ(std::signbit(value), exact.isNegative());
    EXPECT_EQ(floatToHalf(value), bits);
    EXPECT_EQ(floatToBfloat(bfloatToFloat(bits)),
              std::isnan(bfloatToFloat(bits)) ? bits | 0x40 : bits);
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000000; ++i) {
    // Exponents around those of halves, and whatever else there is.
    uint32_t bits = random();
    if (i % 2)
      bits = (bits & 0x80ffffff) | (0x30 + random() % 0x19) << 24;
    float value = std::bit_cast<float>(bits);
    if (std::isnan(value))
      continue;
    ASSERT_EQ(floatToHalf(value), rounded(APFloat::IEEEhalf(), value)) << value;
    ASSERT_EQ(floatToBfloat(value), rounded(APFloat::BFloat(), value)) << value;
    double wide = double(value) * (1 + double(random() % 64) * 0x1p-40);
    ASSERT_EQ(Half::round(wide), rounded(APFloat::IEEEhalf(), wide)) << wide;
    ASSERT_EQ(Bfloat::round(wide), rounded(APFloat::BFloat(), wide)) << wide;
  }
}

TEST(SimtOperations, LoopsOfDifferentLength) {
  SimtRun run = simt(64, R"(
%one = llvm.mlir.constant(1.0 : f32) : f32
%sum = scf.for %i = %c0 to %tid step %c1 iter_args(%s = %zero) -> (f32) : i32 {
  %odd = llvm.and %i, %c1 : i32
  %isOdd = llvm.icmp "ne" %odd, %c0 : i32
  %next = scf.if %isOdd -> (f32) {
    %n = llvm.fadd %s, %one : f32
    scf.yield %n : f32
  } else {
    scf.yield %s : f32
  }
  scf.yield %next : f32
}
llvm.store %sum, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(run.out[i], i / 2);
}

TEST(SimtOperations, LoopsSwapWhatTheyCarry) {
  // Fibonacci numbers: each value is where the other one was.
  SimtRun run = simt(32, R"(
%one = llvm.mlir.constant(1.0 : f32) : f32
%r:2 = scf.for %i = %c0 to %tid step %c1 iter_args(%a = %zero, %b = %one) -> (f32, f32) : i32 {
  %n = llvm.fadd %a, %b : f32
  scf.yield %b, %n : f32, f32
}
llvm.store %r#0, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)");
  double a = 0, b = 1;
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(run.out[i], float(a));
    std::tie(a, b) = std::pair(b, a + b);
  }
}

TEST(SimtOperations, While) {
  // Collatz steps.
  SimtRun run = simt(32, R"(
%start = llvm.add %tid, %c1 : i32
%r:2 = scf.while (%n = %start, %k = %zero) : (i32, f32) -> (i32, f32) {
  %more = llvm.icmp "ne" %n, %c1 : i32
  scf.condition(%more) %n, %k : i32, f32
} do {
^bb0(%n: i32, %k: f32):
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %odd = llvm.and %n, %c1 : i32
  %isOdd = llvm.icmp "ne" %odd, %c0 : i32
  %half = llvm.lshr %n, %c1 : i32
  %triple = llvm.mul %n, %c3 : i32
  %more = llvm.add %triple, %c1 : i32
  %next = llvm.select %isOdd, %more, %half : i1, i32
  %steps = llvm.fadd %k, %one : f32
  scf.yield %next, %steps : i32, f32
}
llvm.store %r#1, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)");
  for (int i = 0; i < 32; ++i) {
    int steps = 0;
    for (int n = i + 1; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
      ++steps;
    EXPECT_EQ(run.out[i], steps);
  }
}

TEST(SimtOperations, Shuffles) {
  struct {
    const char *text;
    int (*source)(int);
  } cases[] = {
      {"bfly %all, %x, %c3, %c31", [](int i) { return i ^ 3; }},
      {"idx %all, %x, %c3, %c31", [](int) { return 3; }},
      {"down %all, %x, %c4, %c31", [](int i) { return i < 28 ? i + 4 : i; }},
      {"up %all, %x, %c4, %c0", [](int i) { return i >= 4 ? i - 4 : i; }},
  };
  for (auto &one : cases) {
    SimtRun run = simt(32, std::string(R"(
%x = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<1> -> f32
%y = nvvm.shfl.sync )") + one.text +
                               R"( : f32 -> f32
llvm.store %y, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)");
    EXPECT_EQ(run.text(), "");
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(run.out[i], one.source(i)) << one.text << " " << i;
  }
}

/// Division and shifts at their ends, as index arithmetic uses them.
TEST(SimtOperations, Integers) {
  SimtRun run = simt(32, R"(
%minus = llvm.mlir.constant(-7 : i32) : i32
%lowest = llvm.mlir.constant(-2147483648 : i32) : i32
%q = llvm.sdiv %minus, %c2 : i32
%r = llvm.srem %minus, %c2 : i32
%o = llvm.sdiv %lowest, %all : i32
%u = llvm.udiv %all, %c2 : i32
%s = llvm.ashr %minus, %c1 : i32
%t = llvm.shl %c1, %c32 : i32
%i8 = llvm.trunc %minus : i32 to i8
%back = llvm.sext %i8 : i8 to i32
%index = arith.index_cast %minus : i32 to index
%two = arith.constant 2 : index
%m = arith.remsi %index, %two : index
%mi = arith.index_cast %m : index to i32
%v0 = llvm.mlir.poison : vector<4xi32>
%v1 = llvm.insertelement %q, %v0[%c0 : i32] : vector<4xi32>
%v2 = llvm.insertelement %r, %v1[%c1 : i32] : vector<4xi32>
%v3 = llvm.insertelement %o, %v2[%c2 : i32] : vector<4xi32>
%v4 = llvm.insertelement %u, %v3[%c3 : i32] : vector<4xi32>
%w1 = llvm.insertelement %s, %v0[%c0 : i32] : vector<4xi32>
%w2 = llvm.insertelement %t, %w1[%c1 : i32] : vector<4xi32>
%w3 = llvm.insertelement %back, %w2[%c2 : i32] : vector<4xi32>
%w4 = llvm.insertelement %mi, %w3[%c3 : i32] : vector<4xi32>
%first = llvm.icmp "eq" %tid, %c0 : i32
scf.if %first {
  llvm.store %v4, %out {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  %next = llvm.getelementptr %out[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w4, %next {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
}
)");
  EXPECT_EQ(run.text(), "");
  std::vector<int32_t> got;
  for (int i = 0; i < 8; ++i)
    got.push_back(std::bit_cast<int32_t>(run.out[i]));
  EXPECT_THAT(
      got, testing::ElementsAre(-3, -1, INT32_MIN, INT32_MAX, -4, 0, -7, -1));
}

/// A 16x16 by 16x8 product: A through ldmatrix, B transposed by it.
TEST(SimtOperations, MatrixProduct) {
  SimtRun run;
  std::mt19937 random(1);
  // Small multiples of 1/4: all sums are exact.
  std::vector<float> a(256), b(128);
  for (float &x : a)
    x = (int(random() % 17) - 8) / 4.0f;
  for (float &x : b)
    x = (int(random() % 17) - 8) / 4.0f;
  std::vector<uint16_t> halves;
  for (float x : a)
    halves.push_back(floatToHalf(x));
  for (float x : b)
    halves.push_back(floatToHalf(x));
  run.in.resize(halves.size() / 2);
  memcpy(run.in.data(), halves.data(), halves.size() * 2);
  run.out.resize(128);
  run.launch.sharedBytes = 1024;
  // A is 16 rows of 32 bytes at 0, B 16 rows of 16 bytes at 512.
  runSimt(simtKernel(32, R"(
%c512 = llvm.mlir.constant(512 : i32) : i32
%at = llvm.mul %tid, %c16 : i32
%s0 = llvm.getelementptr %shared[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
%g0 = llvm.getelementptr %in[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
%s1 = llvm.getelementptr %s0[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
%g1 = llvm.getelementptr %g0[512] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
%low = llvm.icmp "ult" %tid, %c16 : i32
%bytes = llvm.select %low, %c16, %c0 : i1, i32
nvvm.cp.async.shared.global %s0, %g0, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
nvvm.cp.async.shared.global %s1, %g1, 16, cache = cg, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
nvvm.cp.async.commit.group
nvvm.cp.async.wait.group 0
nvvm.barrier0
%c15 = llvm.mlir.constant(15 : i32) : i32
%row = llvm.and %tid, %c15 : i32
%rowAt = llvm.mul %row, %c32 : i32
%side = llvm.lshr %tid, %c4 : i32
%sideAt = llvm.mul %side, %c16 : i32
%atA = llvm.add %rowAt, %sideAt : i32
%pA = llvm.getelementptr %shared[%atA] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
%A = nvvm.ldmatrix %pA {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
%rowB = llvm.mul %row, %c16 : i32
%atB = llvm.add %rowB, %c512 : i32
%pB = llvm.getelementptr %shared[%atB] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
%B = nvvm.ldmatrix %pB {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 2 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
%a0 = llvm.extractvalue %A[0] : !llvm.struct<(i32, i32, i32, i32)>
%a1 = llvm.extractvalue %A[1] : !llvm.struct<(i32, i32, i32, i32)>
%a2 = llvm.extractvalue %A[2] : !llvm.struct<(i32, i32, i32, i32)>
%a3 = llvm.extractvalue %A[3] : !llvm.struct<(i32, i32, i32, i32)>
%b0 = llvm.extractvalue %B[0] : !llvm.struct<(i32, i32)>
%b1 = llvm.extractvalue %B[1] : !llvm.struct<(i32, i32)>
%h0 = llvm.bitcast %a0 : i32 to vector<2xf16>
%h1 = llvm.bitcast %a1 : i32 to vector<2xf16>
%h2 = llvm.bitcast %a2 : i32 to vector<2xf16>
%h3 = llvm.bitcast %a3 : i32 to vector<2xf16>
%k0 = llvm.bitcast %b0 : i32 to vector<2xf16>
%k1 = llvm.bitcast %b1 : i32 to vector<2xf16>
%D = nvvm.mma.sync A[%h0, %h1, %h2, %h3] B[%k0, %k1] C[%zero, %zero, %zero, %zero] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
%d0 = llvm.extractvalue %D[0] : !llvm.struct<(f32, f32, f32, f32)>
%d1 = llvm.extractvalue %D[1] : !llvm.struct<(f32, f32, f32, f32)>
%d2 = llvm.extractvalue %D[2] : !llvm.struct<(f32, f32, f32, f32)>
%d3 = llvm.extractvalue %D[3] : !llvm.struct<(f32, f32, f32, f32)>
%place = llvm.mul %tid, %c2 : i32
%o0 = llvm.getelementptr %out[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
%o1 = llvm.getelementptr %o0[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
%o2 = llvm.getelementptr %o0[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
%o3 = llvm.getelementptr %o0[65] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
llvm.store %d0, %o0 {alignment = 4 : i64} : f32, !llvm.ptr<1>
llvm.store %d1, %o1 {alignment = 4 : i64} : f32, !llvm.ptr<1>
llvm.store %d2, %o2 {alignment = 4 : i64} : f32, !llvm.ptr<1>
llvm.store %d3, %o3 {alignment = 4 : i64} : f32, !llvm.ptr<1>
)"),
          run);
  EXPECT_EQ(run.error, "");
  // The upper half of the lanes copies zeros behind the 256 bytes of B.
  EXPECT_EQ(run.text(), "");
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += a[i * 16 + k] * b[k * 8 + j];
      EXPECT_EQ(run.out[i * 8 + j], sum) << i << " " << j;
    }
}

/// 65536 * 65536 of indices, halved, as a float: 0 in 32 bits.
TEST(SimtOperations, IndicesHaveTheBitsThatTheKernelSays) {
  std::string body = R"(
%a = arith.constant 65536 : index
%b = arith.muli %a, %a : index
%h = arith.shrui %b, %one : index
%i = arith.index_cast %h : index to i64
%f = llvm.sitofp %i : i64 to f32
llvm.store %f, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)";
  body = "%one = arith.constant 1 : index\n" + body;
  auto result = [&](llvm::StringRef attribute) {
    SimtRun run;
    run.in.resize(32);
    run.out.resize(32, -1);
    std::string kernel = simtKernel(32, body);
    kernel.insert(kernel.find("nvvm.kernel"), attribute.str());
    runSimt(kernel, run);
    return run.error.empty() ? std::to_string(int64_t(run.out[0])) : run.error;
  };
  EXPECT_EQ(result(""), "0");
  EXPECT_EQ(result("tile.index_bits = 32 : i64, "), "0");
  EXPECT_EQ(result("tile.index_bits = 64 : i64, "), "2147483648");
  EXPECT_EQ(result("tile.index_bits = 16 : i64, "),
            "has indices of 16 bits; 32 and 64 are known\n");
}

} // namespace
