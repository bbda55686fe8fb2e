// Matrix products from tile programs to thread code, run by the interpreter:
// right at awkward sizes in every order, and wrong without any of the
// operations that order them.
#include "Simt.h"
#include "codegen/gpu/GpuCodegen.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstring>
#include <random>

using namespace charonia;
using namespace charonia::interpreter;
using testing::Contains;

namespace {

/// C = A B of 16-bit numbers, or of f32 as tf32, B in memory as [N, K] or
/// [K, N].
struct Product {
  int m = 1, n = 1, k = 1;
  int tileM = 64, tileN = 64, tileK = 64, warps = 4, stages = 4;
  int own = 0; ///< Columns from tile to tile, where they are fewer than tileN.
  bool bfloat = false, lhsTransposed = false, rhsRows = false;
  bool computed = false; ///< A goes through registers.
  bool noLoop = false;   ///< K is one step.
  bool tf32 = false;
  const char *chip = "sm_90a";

  std::string type() const { return tf32 ? "f32" : bfloat ? "bf16" : "f16"; }
  size_t elementBytes() const { return tf32 ? 4 : 2; }
  int columnStep() const { return own ? own : tileN; }
};

std::string tile(int rows, int columns, llvm::StringRef type) {
  return ("tensor<" + llvm::Twine(rows) + "x" + llvm::Twine(columns) + "x" +
          type + ">")
      .str();
}

/// A load of rows `row` and columns `column` of a matrix, or of its transpose.
/// `own` of its columns are read, if that is not 0.
std::string load(llvm::StringRef buffer, const std::string &type, int rows,
                 int columns, std::string row, std::string column, int height,
                 int width, bool transposed, llvm::StringRef symbol,
                 int own = 0) {
  if (transposed) {
    std::swap(row, column);
    std::swap(height, width);
  }
  return "tile.load " + buffer.str() + "[" + symbol.str() +
         ", %k] {map = affine_map<(d0, d1)[s0, s1] -> (" + row + ", " + column +
         (own ? ", d1" : "") + ")>, shape = affine_map<()[s0, s1] -> (" +
         std::to_string(height) + ", " + std::to_string(width) +
         (own ? ", " + std::to_string(own) : "") +
         ")>, rank = 2 : i64, checks = array<i64: 0, 1" + (own ? ", 2" : "") +
         ">} : (!tile.buffer<" + type + ">, index, index) -> " +
         tile(rows, columns, type) + "\n";
}

std::string program(const Product &p) {
  std::string t = p.type(), bm = std::to_string(p.tileM),
              bn = std::to_string(p.columnStep()), bk = std::to_string(p.tileK);
  int rows = (p.m + p.tileM - 1) / p.tileM,
      columns = (p.n + p.columnStep() - 1) / p.columnStep(),
      steps = (p.k + p.tileK - 1) / p.tileK;
  std::string result = tile(p.tileM, p.tileN, "f32");
  std::string buffers = "!tile.buffer<" + t + ">";
  std::string body =
      "%a0 = " +
      load("%A", t, p.tileM, p.tileK, "s0 * " + bm + " + d0",
           "s1 * " + bk + " + d1", p.m, p.k, p.lhsTransposed, "%m") +
      "%b = " +
      load("%B", t, p.tileK, p.tileN, "s1 * " + bk + " + d0",
           "s0 * " + bn + " + d1", p.k, p.n, !p.rhsRows, "%n", p.own);
  if (p.computed)
    body += "%two = arith.constant dense<2.0> : " + tile(p.tileM, p.tileK, t) +
            "\n%a = arith.mulf %a0, %two : " + tile(p.tileM, p.tileK, t) + "\n";
  std::string a = p.computed ? "%a" : "%a0";
  auto dot = [&](llvm::StringRef sum) {
    return "%d = tile.dot " + a + ", %b, " + sum.str() +
           " {columns = " + std::to_string(p.own) + " : i64" +
           (p.tf32 ? ", tf32" : "") + "} : " + tile(p.tileM, p.tileK, t) +
           ", " + tile(p.tileK, p.tileN, t) + " -> " + result + "\n";
  };
  std::string sum =
      p.noLoop ? "%k = arith.constant 0 : index\n" + body + dot("%zero")
               : "%steps = arith.constant " + std::to_string(steps) +
                     " : index\n%d0 = scf.for %k = %c0 to %steps step %c1 "
                     "iter_args(%sum = %zero) -> (" +
                     result + ") {\n" + body + dot("%sum") +
                     "scf.yield %d : " + result + "\n}\n";
  return "func.func @product(%A: " + buffers + ", %B: " + buffers +
         ", %C: !tile.buffer<f32>) attributes {tile.kernel, tile.grid = "
         "affine_map<() -> (" +
         std::to_string(rows * columns) +
         ")>, tile.warps = " + std::to_string(p.warps) +
         " : i64, tile.stages = " + std::to_string(p.stages) +
         " : i64} {\n%pid = tile.program_id : index\n"
         "%columns = arith.constant " +
         std::to_string(columns) +
         " : index\n%m = arith.divui %pid, %columns : index\n"
         "%n = arith.remui %pid, %columns : index\n"
         "%zero = arith.constant dense<0.0> : " +
         result +
         "\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n" +
         sum + "tile.store " + (p.noLoop ? "%d" : "%d0") +
         ", %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * " + bm +
         " + d0, s1 * " + bn + " + d1" + (p.own ? ", d1" : "") +
         ")>, shape = affine_map<()[s0, s1] -> (" + std::to_string(p.m) + ", " +
         std::to_string(p.n) + (p.own ? ", " + std::to_string(p.own) : "") +
         ")>, rank = 2 : i64, checks = array<i64: 0, 1" + (p.own ? ", 2" : "") +
         ">} : " + result + ", !tile.buffer<f32>, index, index\nreturn\n}\n";
}

/// The thread code of a product, as text, and what a launch of it needs.
struct Compiled {
  std::string code;
  int64_t grid = 0, shared = 0;
  std::vector<TensorMap> maps;
};

/// Of a kernel whose sizes are known.
TensorMap mapOf(const gpu::TensorMap &map) {
  TensorMap result;
  result.buffer = map.argument;
  result.elementBytes = map.elementBytes;
  result.swizzle = map.swizzle;
  for (mlir::AffineExpr extent : map.extents)
    result.extents.push_back(
        llvm::cast<mlir::AffineConstantExpr>(extent).getValue());
  for (mlir::AffineExpr stride : map.strides)
    result.strides.push_back(
        llvm::cast<mlir::AffineConstantExpr>(stride).getValue());
  result.box.assign(map.box.begin(), map.box.end());
  result.steps.assign(map.steps.begin(), map.steps.end());
  return result;
}

/// `boxes`: operands by the copy engine, where it can.
Compiled compile(const Product &p, bool boxes = false) {
  mlir::DialectRegistry registry;
  gpu::registerGpuCodegen(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  gpu::loadGpuDialects(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(program(p), &context);
  EXPECT_TRUE(module);
  llvm::SmallString<128> folder;
  EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("products", folder));
  gpu::GpuOptions options;
  options.assemble = false;
  options.boxes = boxes;
  options.dumpPrefix = (folder + "/").str();
  auto kernel = *module->getOps<mlir::func::FuncOp>().begin();
  auto result = gpu::compileGpuKernel(kernel, *GpuTarget::get(p.chip), options);
  Compiled compiled;
  EXPECT_TRUE(succeeded(result));
  if (failed(result))
    return compiled;
  auto file = llvm::MemoryBuffer::getFile(folder + "/product.3-thread.mlir");
  EXPECT_TRUE(bool(file));
  compiled.code = (*file)->getBuffer().str();
  compiled.shared = result->sharedBytes;
  for (const gpu::TensorMap &map : result->maps)
    compiled.maps.push_back(mapOf(map));
  compiled.grid = int64_t((p.m + p.tileM - 1) / p.tileM) *
                  ((p.n + p.columnStep() - 1) / p.columnStep());
  llvm::sys::fs::remove_directories(folder);
  return compiled;
}

uint32_t bitsOf(float value, const Product &p) {
  llvm::APFloat x(value);
  bool lost;
  if (!p.tf32)
    x.convert(p.bfloat ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf(),
              llvm::APFloat::rmNearestTiesToEven, &lost);
  return uint32_t(x.bitcastToAPInt().getZExtValue());
}

/// Small integers: every sum is exact. Returns the findings; compares results
/// where `compares`.
Report run(const Product &p, const Compiled &compiled, Launch launch,
           bool compares = true) {
  std::mt19937 random(7);
  std::vector<int> x(p.m * p.k), y(p.n * p.k);
  size_t width = p.elementBytes();
  std::vector<uint8_t> a(x.size() * width), b(y.size() * width);
  auto fill = [&](std::vector<int> &numbers, std::vector<uint8_t> &bytes) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      uint32_t bits = bitsOf(numbers[i] = int(random() % 7) - 3, p);
      std::memcpy(&bytes[i * width], &bits, width);
    }
  };
  fill(x, a);
  fill(y, b);
  std::vector<float> c(size_t(p.m) * p.n, -1);
  Report report;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::arith::ArithDialect, mlir::math::MathDialect,
                      mlir::scf::SCFDialect, mlir::LLVM::LLVMDialect,
                      mlir::NVVM::NVVMDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(compiled.code, &context,
                                                        "product.mlir");
  EXPECT_TRUE(module);
  if (!module)
    return report;
  auto kernel =
      Kernel::decode(*module->getOps<mlir::LLVM::LLVMFuncOp>().begin());
  EXPECT_TRUE(succeeded(kernel));
  if (failed(kernel))
    return report;
  launch.grid = compiled.grid;
  launch.sharedBytes = compiled.shared;
  launch.maps.assign(compiled.maps.begin(), compiled.maps.end());
  launch.buffers = {{a.data(), a.size(), 0, true},
                    {b.data(), b.size(), 0, true},
                    {c.data(), c.size() * 4}};
  kernel->launch(launch, report);
  int wrong = 0;
  for (int row = 0; row < p.m && compares; ++row)
    for (int column = 0; column < p.n; ++column) {
      int sum = 0;
      for (int k = 0; k < p.k; ++k)
        sum += x[p.lhsTransposed ? k * p.m + row : row * p.k + k] *
               y[p.rhsRows ? k * p.n + column : column * p.k + k];
      wrong += c[row * p.n + column] != sum * (p.computed ? 2 : 1);
    }
  EXPECT_EQ(wrong, 0) << p.m << "x" << p.n << "x" << p.k << ", tiles "
                      << p.tileM << "x" << p.tileN;
  return report;
}

std::string textOf(const Report &report) {
  std::string text;
  for (const Finding &f : report.findings)
    text += findingName(f.kind).str() + ": " + f.operation + " [" + f.other +
            "] " + f.details + "\n";
  return text;
}

void expectRight(const Product &p, llvm::StringRef contains) {
  for (bool boxes : {false, true}) {
    Compiled compiled = compile(p, boxes);
    EXPECT_THAT(compiled.code, testing::HasSubstr(contains.str()));
    for (auto [seed, copies] : {std::pair(0, CopyTiming::Late),
                                {1, CopyTiming::Seeded},
                                {2, CopyTiming::Early}}) {
      Launch launch;
      launch.seed = seed;
      launch.copies = copies;
      EXPECT_EQ(textOf(run(p, compiled, launch)), "") << boxes;
    }
  }
}

constexpr const char *kWgmma = "nvvm.wgmma.mma_async";

TEST(SimtProducts, WarpgroupsAtAwkwardSizes) {
  int sizes[] = {1, 7, 63, 65, 127, 129};
  unsigned next = 0;
  for (int m : sizes)
    for (int n : {7, 64, 129}) {
      Product p{.m = m, .n = n, .k = sizes[next++ % 6] + 64};
      p.bfloat = next % 2;
      p.rhsRows = next % 3 == 0;
      expectRight(p, kWgmma);
    }
}

TEST(SimtProducts, EveryGridOfWarpgroups) {
  struct Tile {
    int m, n, warps;
  };
  for (Tile t : {Tile{64, 128, 4},
                 {128, 64, 4},
                 {64, 128, 8},
                 {128, 128, 8},
                 {256, 64, 8},
                 {128, 256, 8},
                 {64, 256, 4}})
    for (bool rhsRows : {false, true})
      for (bool lhsTransposed : {false, true}) {
        Product p{.m = t.m + 40, .n = t.n, .k = 200};
        p.tileM = t.m;
        p.tileN = t.n;
        p.warps = t.warps;
        p.rhsRows = rhsRows;
        p.lhsTransposed = lhsTransposed;
        expectRight(p, kWgmma);
      }
}

/// Widths that are not powers of two: the instruction computes the columns of
/// its own, and nothing brings others into shared memory.
TEST(SimtProducts, WarpgroupsOfOtherWidths) {
  struct Width {
    int m, n, own, warps;
  };
  for (Width w : {Width{64, 128, 96, 4},
                  {64, 256, 192, 4},
                  {128, 128, 72, 8},
                  {128, 256, 160, 8},
                  {128, 256, 192, 8},
                  {128, 256, 224, 8},
                  {256, 128, 96, 8}})
    for (bool rhsRows : {false, true}) {
      // Ragged ends, and one tile that ends where it should.
      Product p{.m = w.m + 7, .n = 2 * w.own - 25 + 25 * rhsRows, .k = 129};
      p.tileM = w.m;
      p.tileN = w.n;
      p.own = w.own;
      p.warps = w.warps;
      p.rhsRows = rhsRows;
      std::string shape = "n = " + std::to_string(w.own) + ", k = 16";
      expectRight(p, shape);
      p.computed = p.bfloat = true;
      expectRight(p, shape);
      p.noLoop = true;
      p.k = 63;
      expectRight(p, shape);
    }
  // Columns that two groups share, or no multiple of eight: all of them.
  Product p{.m = 65, .n = 190, .k = 130};
  p.tileN = 128;
  p.own = 96;
  p.warps = 8;
  expectRight(p, "n = 64, k = 16");
  p.warps = 4;
  p.own = 100;
  expectRight(p, "n = 128, k = 16");
  p.chip = "sm_90";
  expectRight(p, "nvvm.mma.sync");
}

TEST(SimtProducts, EveryWayOfStaging) {
  for (int stages : {2, 3, 4, 6})
    for (int k : {64, 128, 192, 648}) {
      Product p{.m = 64, .n = 64, .k = k};
      p.stages = stages;
      expectRight(p, kWgmma);
      p.computed = true;
      expectRight(p, kWgmma);
    }
  Product wide{.m = 64, .n = 64, .k = 256};
  wide.tileK = 128;
  expectRight(wide, kWgmma);
  wide.lhsTransposed = wide.rhsRows = true;
  expectRight(wide, kWgmma);
  Product single{.m = 70, .n = 64, .k = 61};
  single.noLoop = true;
  expectRight(single, kWgmma);
}

/// tf32: K has to lie along memory, in runs that are copied as they are.
TEST(SimtProducts, WarpgroupsOfTf32) {
  constexpr const char *shape = "k = 8";
  for (int m : {1, 65, 129})
    for (int n : {7, 64, 129})
      for (int k : {4, 32, 100, 132}) {
        Product p{.m = m, .n = n, .k = k, .tileK = 32, .tf32 = true};
        expectRight(p, shape);
      }
  Product p{.m = 300, .n = 250, .k = 164, .tileM = 128, .tileN = 256};
  p.tileK = 32;
  p.tf32 = true;
  p.warps = 8;
  expectRight(p, shape);
  p.own = 96;
  p.computed = true;
  expectRight(p, "n = 96, k = 8");
  p.tileK = 64;
  p.stages = 2;
  expectRight(p, "n = 96, k = 8");
  p.noLoop = true;
  p.k = 64;
  expectRight(p, "n = 96, k = 8");
  // Either operand across its terms, or a row of odd length: mma.sync.
  Product q{.m = 70, .n = 70, .k = 68, .tileK = 32, .tf32 = true};
  q.rhsRows = true;
  expectRight(q, "nvvm.mma.sync");
  q.rhsRows = false;
  q.lhsTransposed = true;
  expectRight(q, "nvvm.mma.sync");
  q.lhsTransposed = false;
  q.k = 67;
  expectRight(q, "nvvm.mma.sync");
}

TEST(SimtProducts, OtherChipsKeepTheirInstruction) {
  Product p{.m = 65, .n = 65, .k = 129};
  p.chip = "sm_90";
  expectRight(p, "nvvm.mma.sync");
  p.chip = "sm_80";
  expectRight(p, "nvvm.mma.sync");
  // Too few rows or columns for a warpgroup.
  p.chip = "sm_90a";
  p.tileN = 32;
  expectRight(p, "nvvm.mma.sync");
}

/// Without `what` (all of them, or the one of that number) every order finds
/// `kind`.
void expectFound(const Product &p, llvm::StringRef what, FindingKind kind,
                 int number = -1) {
  Compiled compiled = compile(p);
  size_t at = 0;
  int count = 0;
  while ((at = compiled.code.find(what, at)) != std::string::npos) {
    size_t start = compiled.code.rfind('\n', at) + 1,
           end = compiled.code.find('\n', at) + 1;
    if (number < 0 || count == number)
      compiled.code.erase(start, end - start), at = start;
    else
      at = end;
    ++count;
  }
  ASSERT_GT(count, std::max(number, 0)) << what.str();
  for (uint64_t seed : {0, 1, 2, 3}) {
    Launch launch;
    launch.seed = seed;
    launch.copies = CopyTiming::Late;
    Report report = run(p, compiled, launch, /*compares=*/false);
    std::vector<FindingKind> kinds;
    for (const Finding &finding : report.findings)
      kinds.push_back(finding.kind);
    EXPECT_THAT(kinds, Contains(kind)) << what.str() << "\n" << textOf(report);
  }
}

TEST(SimtProducts, WhatOrdersWarpgroupsIsMissed) {
  Product p{.m = 128, .n = 128, .k = 640};
  p.tileM = p.tileN = 128;
  p.warps = 8;
  expectFound(p, "nvvm.wgmma.fence", FindingKind::MissingFence);
  expectFound(p, "nvvm.fence.proxy", FindingKind::MissingFence);
  expectFound(p, "nvvm.barrier0", FindingKind::Race, 0);
  expectFound(p, "nvvm.wgmma.wait.group", FindingKind::Race);
  expectFound(p, "nvvm.cp.async.wait.group", FindingKind::UnfinishedCopy, 0);
  p.tileN = 256;
  p.own = 192;
  expectFound(p, "nvvm.fence.proxy", FindingKind::MissingFence);
  expectFound(p, "nvvm.barrier0", FindingKind::Race, 0);
  expectFound(p, "nvvm.wgmma.wait.group", FindingKind::Race);
  expectFound(p, "nvvm.cp.async.wait.group", FindingKind::UnfinishedCopy, 0);
  p.tileN = 128;
  p.own = 0;
  p.noLoop = true;
  p.k = 64;
  expectFound(p, "nvvm.fence.proxy", FindingKind::MissingFence);
  p.computed = true;
  expectFound(p, "nvvm.fence.proxy", FindingKind::MissingFence);
}

} // namespace
