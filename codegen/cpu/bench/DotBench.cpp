// Speed of a product of matrices, A [M, K] row-major, B packed as [N /
// NR][K][NR], for tiles of MR x NR in steps of KB, on one thread, beside the
// machine's peak.
//
//   cpu_dot_bench <v3|v4> M N K [MR NR KB]...
#include "codegen/cpu/CpuCodegen.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sys/mman.h>
#include <time.h>

using namespace charonia::cpu;

namespace {
using Kernel = void(void *const *, const int64_t *, int64_t, int64_t, void *);

struct Program {
  int64_t m, n, k, mr, nr, kb;

  std::string text() const {
    int64_t whole = k / kb * kb, tail = k - whole;
    std::string step =
        llvm::formatv(R"(
    %x = tile.load %a[%pm, %i] {{map = affine_map<(d0, d1)[s0, s1] -> (s0 * {0} + d0, s1 + d1)>, shape = affine_map<()[s0, s1] -> ({3}, {4})>, rank = 2 : i64, checks = array<i64{5}>} : (!tile.buffer<f32>, index, index) -> tensor<{0}x{2}xf32>
    %y = tile.load %b[%pn, %i] {{map = affine_map<(d0, d1)[s0, s1] -> (s0, s1 + d0, d1)>, shape = affine_map<()[s0, s1] -> ({6}, {4}, {1})>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f32>, index, index) -> tensor<{2}x{1}xf32>
)",
                      mr, nr, kb, m, k, m % mr ? ": 0" : "", n / nr);
    std::string rest =
        llvm::formatv(R"(
    %tx = tile.load %a[%pm, %whole] {{map = affine_map<(d0, d1)[s0, s1] -> (s0 * {0} + d0, s1 + d1)>, shape = affine_map<()[s0, s1] -> ({3}, {4})>, rank = 2 : i64, checks = array<i64{5}>} : (!tile.buffer<f32>, index, index) -> tensor<{0}x{2}xf32>
    %ty = tile.load %b[%pn, %whole] {{map = affine_map<(d0, d1)[s0, s1] -> (s0, s1 + d0, d1)>, shape = affine_map<()[s0, s1] -> ({6}, {4}, {1})>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f32>, index, index) -> tensor<{2}x{1}xf32>
    %last = tile.dot %tx, %ty, %sum : tensor<{0}x{2}xf32>, tensor<{2}x{1}xf32> -> tensor<{0}x{1}xf32>
)",
                      mr, nr, tail, m, k, m % mr ? ": 0" : "", n / nr);
    return llvm::formatv(R"(
func.func @matmul(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>, %c: !tile.buffer<f32>) attributes {{tile.kernel} {{
  %zero = arith.constant 0 : index
  %whole = arith.constant {0} : index
  %kb = arith.constant {1} : index
  %gm = arith.constant {2} : index
  %pid = tile.program_id : index
  %pn = arith.divui %pid, %gm : index
  %pm = arith.remui %pid, %gm : index
  %init = arith.constant dense<0.0> : tensor<{3}x{4}xf32>
  %sum = scf.for %i = %zero to %whole step %kb iter_args(%acc = %init) -> (tensor<{3}x{4}xf32>) {{
    {5}
    %next = tile.dot %x, %y, %acc : tensor<{3}x{1}xf32>, tensor<{1}x{4}xf32> -> tensor<{3}x{4}xf32>
    scf.yield %next : tensor<{3}x{4}xf32>
  }
  {6}
  tile.store {7}, %c[%pm, %pn] {{map = affine_map<(d0, d1)[s0, s1] -> (s0 * {3} + d0, s1 * {4} + d1)>, shape = affine_map<()[s0, s1] -> ({8}, {9})>, rank = 2 : i64, checks = array<i64{10}>} : tensor<{3}x{4}xf32>, !tile.buffer<f32>, index, index
  return
})",
                         whole, kb, gridM(), mr, nr, step, tail ? rest : "",
                         tail ? "%last" : "%sum", m, n, m % mr ? ": 0" : "");
  }
  int64_t gridM() const { return (m + mr - 1) / mr; }
  int64_t instances() const { return gridM() * (n / nr); }
};

/// Of this thread's running, so that other load matters less.
double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

float *allocate(size_t count, unsigned seed) {
  auto *data = static_cast<float *>(
      aligned_alloc(4096, (count * 4 + 4095) / 4096 * 4096));
  std::mt19937 random(seed);
  for (size_t i = 0; i < count; ++i)
    data[i] = std::uniform_real_distribution<float>(-1, 1)(random);
  return data;
}

/// Cycles a second of the core under scalar load, by a chain of
/// multiplications.
double clockRate() {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    uint64_t n = 300'000, x = 3, left = n;
    double start = seconds();
    asm volatile("1: .rept 100\n imul %0, %0\n .endr\n sub $1, %1\n jnz 1b"
                 : "+r"(x), "+r"(left));
    best = std::max(best, n * 300 / (seconds() - start)); // three cycles each
  }
  return best;
}

void measure(const Program &p, CpuIsa isa) {
  mlir::MLIRContext context;
  context.loadDialect<charonia::tile::TileDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect, mlir::scf::SCFDialect,
                      mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(p.text(), &context);
  if (!module)
    exit(1);
  llvm::SmallVector<mlir::func::FuncOp> kernels(
      module->getOps<mlir::func::FuncOp>());
  CpuOptions options;
  if (const char *folder = getenv("CHARONIA_DUMP_DIR"))
    options.dumpDir = folder;
  double start = seconds();
  auto image = compileCpuKernels(kernels, isa, options);
  double compileTime = seconds() - start;
  if (failed(image))
    exit(1);
  void *memory = mmap(nullptr, image->bytes.size(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(memory, image->bytes.data(), image->bytes.size());
  mprotect(memory, image->bytes.size(), PROT_READ | PROT_EXEC);
  auto *kernel = reinterpret_cast<Kernel *>(static_cast<char *>(memory) +
                                            image->kernels[0].entry);

  float *a = allocate(p.m * p.k, 1), *b = allocate(p.n * p.k, 2),
        *c = allocate(p.m * p.n, 3);
  void *scratch =
      aligned_alloc(4096, image->kernels[0].scratchBytes / 4096 * 4096 + 4096);
  void *buffers[] = {a, b, c};
  kernel(buffers, nullptr, 0, p.instances(), scratch);
  double worst = 0;
  for (int i = 0; i < 200; ++i) {
    int64_t row = i * 7919 % p.m, column = i * 104729 % p.n;
    double sum = 0;
    for (int64_t l = 0; l < p.k; ++l)
      sum += double(a[row * p.k + l]) *
             b[(column / p.nr * p.k + l) * p.nr + column % p.nr];
    worst = std::max(worst, std::fabs(sum - c[row * p.n + column]));
  }
  double flops = 2.0 * p.m * p.n * p.k;
  int repeats = std::max(1.0, 2e9 / flops);
  double best = 1e9;
  for (int round = 0; round < 15; ++round) {
    start = seconds();
    for (int i = 0; i < repeats; ++i)
      kernel(buffers, nullptr, 0, p.instances(), scratch);
    best = std::min(best, (seconds() - start) / repeats);
  }
  double clock = clockRate(), peak = clock * (isa == CpuIsa::V4 ? 64 : 32);
  printf("%2ldx%-3ld kb %2ld  %7.1f GFLOP/s  %3.0f%% of %.0f (%.2f GHz)  %5zu "
         "bytes of code, %3.0f ms to compile%s\n",
         p.mr, p.nr, p.kb, flops / best * 1e-9, flops / best / peak * 100,
         peak * 1e-9, clock * 1e-9, image->bytes.size(), compileTime * 1e3,
         worst > 1e-4 * p.k ? "  WRONG" : "");
  fflush(stdout);
  free(a), free(b), free(c), free(scratch);
  munmap(memory, image->bytes.size());
}
} // namespace

int main(int argc, char **argv) {
  if (argc < 5)
    return fprintf(stderr,
                   "usage: cpu_dot_bench <v3|v4> M N K [MR NR KB]...\n"),
           1;
  CpuIsa isa = argv[1] == std::string("v3") ? CpuIsa::V3 : CpuIsa::V4;
  for (int i = 5; i + 2 < argc; i += 3)
    measure({atol(argv[2]), atol(argv[3]), atol(argv[4]), atol(argv[i]),
             atol(argv[i + 1]), atol(argv[i + 2])},
            isa);
}
