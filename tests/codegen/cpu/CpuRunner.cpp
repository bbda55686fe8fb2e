#include "CpuRunner.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include <sys/mman.h>

using namespace charonia::cpu;

LoadedImage::LoadedImage(CpuImage given) : image(std::move(given)) {
  size_t size = image.bytes.size();
  memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  memcpy(memory, image.bytes.data(), size);
  EXPECT_EQ(mprotect(memory, size, PROT_READ | PROT_EXEC), 0);
}

LoadedImage::~LoadedImage() { munmap(memory, image.bytes.size()); }

void LoadedImage::run(llvm::ArrayRef<void *> buffers, llvm::ArrayRef<int64_t> symbols,
                      int64_t begin, int64_t end, size_t kernel) const {
  using Function = void(void *const *, const int64_t *, int64_t, int64_t, void *);
  auto *function =
      reinterpret_cast<Function *>(static_cast<char *>(memory) + image.kernels[kernel].entry);
  Buffer<uint8_t> scratch(image.kernels[kernel].scratchBytes);
  function(buffers.data(), symbols.data(), begin, end, scratch.data());
  EXPECT_TRUE(scratch.intact());
}

mlir::OwningOpRef<mlir::ModuleOp> charonia::cpu::parseKernels(mlir::MLIRContext &context,
                                                              llvm::StringRef text) {
  context.loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                      mlir::scf::SCFDialect, mlir::func::FuncDialect>();
  return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
}

bool charonia::cpu::hostRuns(CpuIsa isa) {
  return isa == CpuIsa::V4 ? __builtin_cpu_supports("x86-64-v4")
                           : __builtin_cpu_supports("x86-64-v3");
}

CpuKernels::CpuKernels() = default;

void CpuKernels::SetUp() {
  if (!hostRuns(GetParam()))
    GTEST_SKIP() << "this machine does not run " << isaName(GetParam()).str();
}

std::unique_ptr<LoadedImage> CpuKernels::compile(llvm::StringRef program) {
  auto module = parseKernels(context, program);
  if (!module) {
    ADD_FAILURE() << "program does not parse:\n" << program.str();
    return nullptr;
  }
  llvm::SmallVector<mlir::func::FuncOp> kernels(module->getOps<mlir::func::FuncOp>());
  CpuOptions options;
  options.threads = 1;
  if (const char *folder = getenv("CHARONIA_DUMP_DIR"))
    options.dumpDir = folder;
  auto image = compileCpuKernels(kernels, GetParam(), options);
  if (failed(image)) {
    ADD_FAILURE() << "program does not compile:\n" << program.str();
    return nullptr;
  }
  return std::make_unique<LoadedImage>(std::move(*image));
}

std::vector<float> CpuKernels::floats(size_t count, float low, float high) {
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(random);
  return values;
}

int64_t CpuKernels::integer(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
