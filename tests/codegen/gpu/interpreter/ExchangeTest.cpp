// Tile programs whose instances exchange tiles, from the tile dialect to what
// their threads compute.
#include "codegen/gpu/GpuCodegen.h"
#include "tests/codegen/gpu/interpreter/Simt.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace charonia;
using namespace charonia::interpreter;

namespace {

struct Program {
  unsigned parts, warps;
  int64_t rows, columns; ///< Of an instance's tile.
  unsigned clusters = 2;
  unsigned instances() const { return parts * clusters; }
};

/// Each instance adds up its rows and exchanges the sums and their squares; the
/// result of a row is the sum of (p + 1) times the sum of part p, and of all
/// squares.
std::string sourceOf(const Program &p) {
  std::string rows = std::to_string(p.rows),
              columns = std::to_string(p.columns),
              instances = std::to_string(p.instances()),
              parts = std::to_string(p.parts),
              tile = "tensor<" + rows + "xf32>",
              whole = "tensor<" + rows + "x" + columns + "xf32>";
  std::string text =
      "func.func @exchange(%X: !tile.buffer<f32>, %Y: !tile.buffer<f32>) "
      "attributes {tile.kernel, tile.grid = affine_map<() -> (" +
      instances + ")>, tile.warps = " + std::to_string(p.warps) +
      " : i64} {\n" + "%id = tile.program_id : index\n" +
      "%x = tile.load %X[%id] {map = affine_map<(d0, d1)[s0] -> (s0, d0, d1)>, "
      "shape = affine_map<()[s0] -> (" +
      instances + ", " + rows + ", " + columns +
      ")>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) "
      "-> " +
      whole + "\n" + "%sum = tile.reduce %x {axis = 1 : i64} : (" + whole +
      ") -> " + tile +
      " {\n^bb0(%a: f32, %b: f32):\n%c = arith.addf %a, %b : f32\ntile.yield "
      "%c : f32\n}\n" +
      "%square = arith.mulf %sum, %sum : " + tile + "\n" +
      "%r:" + std::to_string(2 * p.parts) +
      " = tile.exchange %sum, %square {parts = " + parts + " : i64} : " + tile +
      ", " + tile + "\n%t0 = arith.constant dense<0.0> : " + tile + "\n";
  for (unsigned part = 0; part < p.parts; ++part) {
    std::string n = std::to_string(part), next = std::to_string(part + 1);
    text += "%w" + n + " = arith.constant dense<" + next + ".0> : " + tile +
            "\n%m" + n + " = arith.mulf %r#" + std::to_string(2 * part) +
            ", %w" + n + " : " + tile + "\n%u" + n + " = arith.addf %t" + n +
            ", %m" + n + " : " + tile + "\n%t" + next + " = arith.addf %u" + n +
            ", %r#" + std::to_string(2 * part + 1) + " : " + tile + "\n";
  }
  return text + "tile.store %t" + parts +
         ", %Y[%id] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = "
         "affine_map<()[s0] -> (" +
         instances + ", " + rows +
         ")>, rank = 2 : i64, checks = array<i64>} : " + tile +
         ", !tile.buffer<f32>, index\nreturn\n}\n";
}

/// What a thread of the kernel does, as text; the kernel beside it.
std::string lower(const std::string &source, gpu::GpuKernel &kernel) {
  mlir::DialectRegistry registry;
  gpu::registerGpuCodegen(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  gpu::loadGpuDialects(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  llvm::SmallString<128> folder;
  if (!module || llvm::sys::fs::createUniqueDirectory("exchange", folder))
    return "";
  gpu::GpuOptions options;
  options.threads = 1;
  options.assemble = false;
  options.dumpPrefix = (folder + "/").str();
  auto kernels =
      gpu::compileGpuKernels(*module, *GpuTarget::get("sm_90a"), options);
  std::string text;
  if (succeeded(kernels)) {
    kernel = kernels->front();
    if (auto file =
            llvm::MemoryBuffer::getFile(folder + "/exchange.3-thread.mlir"))
      text = (*file)->getBuffer().str();
  }
  llvm::sys::fs::remove_directories(folder);
  return text;
}

float inputAt(int64_t instance, int64_t row, int64_t column) {
  return float((instance * 5 + row * 3 + column) % 7);
}

float expected(const Program &p, int64_t instance, int64_t row) {
  float total = 0;
  for (unsigned part = 0; part < p.parts; ++part) {
    float sum = 0;
    for (int64_t column = 0; column < p.columns; ++column)
      sum += inputAt(instance / p.parts * p.parts + part, row, column);
    total += sum * float(part + 1) + sum * sum;
  }
  return total;
}

void check(const Program &p) {
  gpu::GpuKernel kernel;
  std::string text = lower(sourceOf(p), kernel);
  ASSERT_NE(text, "");
  EXPECT_EQ(kernel.clusterSize, p.parts);
  for (uint64_t seed : {0, 1}) {
    SimtRun run;
    run.launch.grid = p.instances();
    run.launch.seed = seed;
    run.launch.sharedBytes = kernel.sharedBytes;
    for (int64_t i = 0; i < p.instances(); ++i)
      for (int64_t row = 0; row < p.rows; ++row)
        for (int64_t column = 0; column < p.columns; ++column)
          run.in.push_back(inputAt(i, row, column));
    run.out.resize(p.instances() * p.rows, -1);
    runSimt(text, run);
    ASSERT_EQ(run.error + run.text(), "");
    for (int64_t i = 0; i < p.instances(); ++i)
      for (int64_t row = 0; row < p.rows; ++row)
        ASSERT_EQ(run.out[i * p.rows + row], expected(p, i, row))
            << "instance " << i << ", row " << row;
  }
}

TEST(SimtExchange, AllGetWhatEachGives) {
  for (unsigned parts : {2, 6, 8, 12, 16}) {
    check({parts, /*warps=*/1, /*rows=*/64, /*columns=*/4});
    check({parts, /*warps=*/4, /*rows=*/64, /*columns=*/32});
    // More threads than rows, and more rows than threads.
    check({parts, /*warps=*/4, /*rows=*/16, /*columns=*/8});
    check({parts, /*warps=*/4, /*rows=*/512, /*columns=*/2});
  }
}

TEST(SimtExchange, FaultsOfTheLoweredKernelAreFound) {
  Program p{/*parts=*/2, /*warps=*/4, /*rows=*/64, /*columns=*/8};
  gpu::GpuKernel kernel;
  std::string text = lower(sourceOf(p), kernel);
  auto without = [&](size_t at) {
    std::string changed = text;
    changed.erase(at, changed.find('\n', at) - at);
    SimtRun run;
    run.launch.grid = p.instances();
    run.launch.sharedBytes = kernel.sharedBytes;
    run.in.resize(p.instances() * p.rows * p.columns, 1);
    run.out.resize(p.instances() * p.rows, -1);
    runSimt(changed, run);
    return run.kinds();
  };
  // The wait at the end, and both of the meeting.
  EXPECT_THAT(without(text.rfind("nvvm.cluster.wait")),
              testing::Contains(FindingKind::EndedBlock));
  EXPECT_FALSE(without(text.find("nvvm.cluster.wait")).empty());
  EXPECT_FALSE(without(text.find("nvvm.cluster.arrive")).empty());
}

} // namespace
