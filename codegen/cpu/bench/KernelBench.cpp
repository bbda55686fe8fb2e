// Time of the kernels in a file of tile programs, on one thread, with random
// buffers.
//
//   cpu_kernel_bench <v3|v4> kernels.mlir [symbol values...]
//
// Environment: CHARONIA_DUMP_DIR for the code; FLOPS, operations of one run.
#include "codegen/cpu/CpuCodegen.h"
#include "codegen/tile/analysis/Access.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sys/mman.h>
#include <time.h>

using namespace mlir;
using namespace charonia;

namespace {

double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

/// Elements of the buffers, from the shapes of the accesses to them.
struct Sizes {
  func::FuncOp function;
  ArrayRef<int64_t> symbols;
  std::map<unsigned, int64_t> elements;

  void add(const tile::AccessOp &access) {
    SmallVector<AffineExpr> values;
    for (Value symbol : access.symbols) {
      int64_t value = 1;
      APInt constant;
      if (matchPattern(symbol, m_ConstantInt(&constant)))
        value = constant.getSExtValue();
      else if (auto argument = dyn_cast<BlockArgument>(symbol);
               argument &&
               isa<func::FuncOp>(argument.getOwner()->getParentOp())) {
        unsigned buffers = function.getNumArguments() - symbols.size();
        value = symbols[argument.getArgNumber() - buffers];
      }
      values.push_back(getAffineConstantExpr(value, function.getContext()));
    }
    int64_t count = 1;
    for (int64_t i = 0; i < access.rank; ++i) {
      AffineExpr extent = simplifyAffineExpr(
          access.shape.getResult(i).replaceSymbols(values), 0, 0);
      if (auto constant = dyn_cast<AffineConstantExpr>(extent))
        count *= constant.getValue();
    }
    int64_t &size = elements[cast<BlockArgument>(access.buffer).getArgNumber()];
    size = std::max(size, count);
  }
};

using Kernel = void(void *const *, const int64_t *, int64_t, int64_t, void *);

void measure(func::FuncOp function, Kernel *kernel, uint64_t scratchBytes,
             ArrayRef<int64_t> symbols) {
  Sizes sizes{function, symbols, {}};
  function.walk([&](tile::LoadOp op) { sizes.add(tile::AccessOp::get(op)); });
  function.walk([&](tile::StoreOp op) { sizes.add(tile::AccessOp::get(op)); });
  std::vector<void *> buffers;
  for (Type type : function.getArgumentTypes()) {
    auto buffer = dyn_cast<tile::BufferType>(type);
    if (!buffer)
      break;
    int64_t count = sizes.elements[buffers.size()];
    int64_t bytes =
        std::max(buffer.getElementType().getIntOrFloatBitWidth() / 8, 1u);
    auto *data = static_cast<char *>(
        aligned_alloc(4096, (count * bytes + 8191) / 4096 * 4096));
    memset(data, 0, count * bytes);
    if (buffer.getElementType().isF32()) {
      std::mt19937 random(7);
      for (int64_t i = 0; i < count; ++i)
        reinterpret_cast<float *>(data)[i] = float(random() % 2001) * 1e-3f - 1;
    }
    buffers.push_back(data);
  }
  SmallVector<AffineExpr> values;
  for (int64_t value : symbols)
    values.push_back(getAffineConstantExpr(value, function.getContext()));
  auto grid =
      function->getAttrOfType<AffineMapAttr>(tile::kGridAttr).getValue();
  int64_t instances =
      cast<AffineConstantExpr>(
          simplifyAffineExpr(grid.getResult(0).replaceSymbols(values), 0, 0))
          .getValue();
  void *scratch = aligned_alloc(4096, scratchBytes / 4096 * 4096 + 4096);
  kernel(buffers.data(), symbols.data(), 0, instances, scratch);
  double once = 1e9;
  for (int round = 0; round < 3; ++round) {
    double start = seconds();
    kernel(buffers.data(), symbols.data(), 0, instances, scratch);
    once = std::min(once, seconds() - start);
  }
  int repeats = std::max(1.0, 0.01 / once);
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    double start = seconds();
    for (int i = 0; i < repeats; ++i)
      kernel(buffers.data(), symbols.data(), 0, instances, scratch);
    best = std::min(best, (seconds() - start) / repeats);
  }
  printf("%-32s %6ld instances  %10.3f us  %8.1f ns an instance",
         function.getSymName().str().c_str(), instances, best * 1e6,
         best / instances * 1e9);
  if (const char *flops = getenv("FLOPS"))
    printf("  %7.1f GFLOP/s", atof(flops) / best * 1e-9);
  puts("");
  for (void *buffer : buffers)
    free(buffer);
  free(scratch);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3)
    return fprintf(
               stderr,
               "usage: cpu_kernel_bench <v3|v4> kernels.mlir [symbols...]\n"),
           1;
  cpu::CpuIsa isa =
      argv[1] == std::string("v3") ? cpu::CpuIsa::V3 : cpu::CpuIsa::V4;
  MLIRContext context;
  context.allowUnregisteredDialects();
  context.loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect,
                      scf::SCFDialect, func::FuncDialect>();
  auto module = parseSourceFile<ModuleOp>(argv[2], &context);
  if (!module)
    return 1;
  SmallVector<func::FuncOp> kernels(module->getOps<func::FuncOp>());
  cpu::CpuOptions options;
  if (const char *folder = getenv("CHARONIA_DUMP_DIR"))
    options.dumpDir = folder;
  auto image = cpu::compileCpuKernels(kernels, isa, options);
  if (failed(image))
    return 1;
  void *memory = mmap(nullptr, image->bytes.size(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(memory, image->bytes.data(), image->bytes.size());
  mprotect(memory, image->bytes.size(), PROT_READ | PROT_EXEC);
  SmallVector<int64_t> symbols;
  for (int i = 3; i < argc; ++i)
    symbols.push_back(atol(argv[i]));
  for (auto [function, compiled] : llvm::zip_equal(kernels, image->kernels))
    measure(function,
            reinterpret_cast<Kernel *>(static_cast<char *>(memory) +
                                       compiled.entry),
            compiled.scratchBytes, symbols);
}
