#include "CpuRunner.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "tests/codegen/interpreter/TileInterpreter.h"
#include <cmath>
#include <sys/mman.h>

using namespace charonia::cpu;

LoadedImage::LoadedImage(CpuImage given) : image(std::move(given)) {
  size_t size = image.bytes.size();
  memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  memcpy(memory, image.bytes.data(), size);
  EXPECT_EQ(mprotect(memory, size, PROT_READ | PROT_EXEC), 0);
}

LoadedImage::~LoadedImage() { munmap(memory, image.bytes.size()); }

// Generated code has no type in front of it, which the sanitizer would read.
__attribute__((no_sanitize("function"))) void
LoadedImage::run(llvm::ArrayRef<void *> buffers,
                 llvm::ArrayRef<int64_t> symbols, int64_t begin, int64_t end,
                 size_t kernel) const {
  using Function =
      void(void *const *, const int64_t *, int64_t, int64_t, void *);
  auto *function = reinterpret_cast<Function *>(static_cast<char *>(memory) +
                                                image.kernels[kernel].entry);
  Buffer<uint8_t> scratch(image.kernels[kernel].scratchBytes);
  function(buffers.data(), symbols.data(), begin, end, scratch.data());
  EXPECT_TRUE(scratch.intact());
}

mlir::OwningOpRef<mlir::ModuleOp>
charonia::cpu::parseKernels(mlir::MLIRContext &context, llvm::StringRef text) {
  context.loadDialect<tile::TileDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect, mlir::scf::SCFDialect,
                      mlir::func::FuncDialect>();
  return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
}

bool charonia::cpu::hostRuns(CpuIsa isa) {
  if (isa == CpuIsa::V3)
    return __builtin_cpu_supports("x86-64-v3");
  return __builtin_cpu_supports("x86-64-v4") &&
         (isa == CpuIsa::V4 || __builtin_cpu_supports("avx512vnni"));
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
  llvm::SmallVector<mlir::func::FuncOp> kernels(
      module->getOps<mlir::func::FuncOp>());
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

namespace {
/// Bytes of an element in memory.
size_t bytesOf(mlir::Type type) {
  return type.isIndex() ? 8 : std::max(type.getIntOrFloatBitWidth() / 8, 1u);
}

template <typename T> T readAs(const uint8_t *address) {
  T value;
  memcpy(&value, address, sizeof(T));
  return value;
}

double readFloat(mlir::Type type, const uint8_t *address) {
  if (type.isF64())
    return readAs<double>(address);
  if (type.isF32())
    return readAs<float>(address);
  uint16_t bits = readAs<uint16_t>(address);
  return type.isF16() ? charonia::tile::halfToFloat(bits)
                      : charonia::tile::bfloatToFloat(bits);
}

void writeRandom(mlir::Type type, uint8_t *address, double value) {
  auto put = [&](auto number) { memcpy(address, &number, sizeof(number)); };
  if (type.isF64())
    return put(value);
  if (type.isF32())
    return put(float(value));
  if (type.isF16())
    return put(charonia::tile::floatToHalf(value));
  if (type.isBF16())
    return put(charonia::tile::floatToBfloat(value));
  int64_t whole = std::floor(value);
  memcpy(address, &whole, bytesOf(type));
}
} // namespace

void CpuKernels::expectSame(llvm::StringRef program,
                            llvm::ArrayRef<Contents> contents,
                            llvm::ArrayRef<int64_t> symbols, int64_t instances,
                            double tolerance) {
  SCOPED_TRACE(program.str());
  auto image = compile(program);
  auto module = parseKernels(context, program);
  ASSERT_TRUE(image && module);
  auto kernel = *module->getOps<mlir::func::FuncOp>().begin();
  llvm::SmallVector<mlir::Type> types;
  for (mlir::Type type : kernel.getArgumentTypes())
    if (auto buffer = llvm::dyn_cast<tile::BufferType>(type))
      types.push_back(buffer.getElementType());
  ASSERT_EQ(types.size(), contents.size());

  std::vector<Buffer<uint8_t>> ours, theirs;
  for (auto [type, content] : llvm::zip_equal(types, contents)) {
    size_t bytes = bytesOf(type);
    Buffer<uint8_t> buffer(content.elements * bytes);
    bool isFloat = llvm::isa<mlir::FloatType>(type);
    double low = content.low,
           high = isFloat ? content.high : content.high + 0.999;
    if (type.isInteger(1))
      low = 0, high = 1.999;
    for (size_t i = 0; i < content.elements; ++i)
      writeRandom(type, &buffer[i * bytes],
                  std::uniform_real_distribution<double>(low, high)(random));
    theirs.push_back(Buffer<uint8_t>::of(
        std::vector<uint8_t>(buffer.data(), buffer.data() + buffer.size())));
    ours.push_back(std::move(buffer));
  }
  llvm::SmallVector<void *> addresses;
  llvm::SmallVector<tile::InterpreterBuffer> reference;
  for (auto [buffer, other, content] :
       llvm::zip_equal(ours, theirs, contents)) {
    addresses.push_back(buffer.data());
    reference.push_back({other.data(), content.elements});
  }
  ASSERT_EQ(tile::interpret(kernel, reference, symbols, 0, instances), "");
  int64_t middle = integer(0, instances);
  image->run(addresses, symbols, middle, instances);
  image->run(addresses, symbols, 0, middle);
  image->run(addresses, symbols, middle, middle);

  for (auto [index, type] : llvm::enumerate(types)) {
    ASSERT_TRUE(ours[index].intact()) << "buffer " << index;
    size_t bytes = bytesOf(type);
    for (size_t i = 0; i < contents[index].elements; ++i) {
      const uint8_t *a = &ours[index][i * bytes],
                    *e = &theirs[index][i * bytes];
      if (!llvm::isa<mlir::FloatType>(type)) {
        ASSERT_EQ(memcmp(a, e, bytes), 0)
            << "buffer " << index << ", element " << i << ": " << int(*a)
            << " is not " << int(*e);
        continue;
      }
      double got = readFloat(type, a), expected = readFloat(type, e);
      if (std::isnan(expected) || std::isinf(expected)) {
        ASSERT_TRUE(got == expected ||
                    (std::isnan(got) && std::isnan(expected)))
            << "buffer " << index << ", element " << i << ": " << got
            << " is not " << expected;
        continue;
      }
      double allowed = tolerance * std::max(1.0, std::fabs(expected));
      if (type.isF16())
        allowed += std::fabs(expected) * 0x1p-10 * (tolerance > 0);
      if (type.isBF16())
        allowed += std::fabs(expected) * 0x1p-7 * (tolerance > 0);
      ASSERT_LE(std::fabs(got - expected), allowed)
          << "buffer " << index << ", element " << i << ": " << got
          << " is not " << expected;
    }
  }
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
