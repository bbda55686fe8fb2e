// Compiles tile programs written as text and runs them in this process.
#ifndef CHARONIA_TESTS_CODEGEN_CPU_CPURUNNER_H
#define CHARONIA_TESTS_CODEGEN_CPU_CPURUNNER_H

#include "codegen/cpu/CpuCodegen.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <random>

namespace charonia::cpu {

/// An image in executable memory.
class LoadedImage {
public:
  explicit LoadedImage(CpuImage image);
  ~LoadedImage();
  LoadedImage(const LoadedImage &) = delete;

  /// Runs the instances [begin, end) of a kernel.
  void run(llvm::ArrayRef<void *> buffers, llvm::ArrayRef<int64_t> symbols,
           int64_t begin, int64_t end, size_t kernel = 0) const;

  CpuImage image;

private:
  void *memory;
};

/// Parses a module of kernels; the text's location names appear in diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> parseKernels(mlir::MLIRContext &context,
                                               llvm::StringRef text);

bool hostRuns(CpuIsa isa);

/// A test for each instruction set that this machine runs.
class CpuKernels : public ::testing::TestWithParam<CpuIsa> {
protected:
  CpuKernels();
  void SetUp() override;

  /// The kernel of a program, compiled; one instance is `body`'s text between
  /// func.func's braces, with `arguments`.
  std::unique_ptr<LoadedImage> compile(llvm::StringRef program);

  /// What a buffer holds at the start: random numbers, integers in [low, high].
  struct Contents {
    size_t elements;
    double low = -2, high = 2;
  };
  /// Runs `program` here and in the interpreter from the same memory and
  /// expects the same memory afterwards: floats within `tolerance` (absolute
  /// below 1, relative above), the rest exactly. The instances run in several
  /// calls.
  void expectSame(llvm::StringRef program, llvm::ArrayRef<Contents> buffers,
                  llvm::ArrayRef<int64_t> symbols, int64_t instances,
                  double tolerance = 2e-6);

  /// Random numbers.
  std::vector<float> floats(size_t count, float low = -1, float high = 1);
  int64_t integer(int64_t low, int64_t high);

  mlir::MLIRContext context;
  std::mt19937 random{20261121};
};

/// Memory of a kernel's buffer with guards on both sides that notice stray
/// writes.
template <typename T> class Buffer {
public:
  explicit Buffer(size_t count, T fill = T()) : count(count) {
    storage.assign(count * sizeof(T) + 3 * guard, 0xa5);
    std::fill(data(), data() + count, fill);
  }
  template <typename Container> static Buffer of(const Container &values) {
    Buffer buffer(values.size());
    std::copy(values.begin(), values.end(), buffer.data());
    return buffer;
  }
  T *data() {
    auto address = reinterpret_cast<uintptr_t>(storage.data()) + guard;
    return reinterpret_cast<T *>((address + guard - 1) / guard * guard);
  }
  T &operator[](size_t i) { return data()[i]; }
  size_t size() const { return count; }
  bool intact() {
    auto *first = storage.data(), *last = first + storage.size();
    auto *from = reinterpret_cast<uint8_t *>(data()),
         *to = from + count * sizeof(T);
    auto clean = [](uint8_t byte) { return byte == 0xa5; };
    return std::all_of(first, from, clean) && std::all_of(to, last, clean);
  }

private:
  static constexpr size_t guard = 256;
  size_t count;
  std::vector<uint8_t> storage;
};

#define CHARONIA_CPU_SUITE(Suite)                                              \
  INSTANTIATE_TEST_SUITE_P(Isa, Suite,                                         \
                           ::testing::Values(::charonia::cpu::CpuIsa::V3,      \
                                             ::charonia::cpu::CpuIsa::V4,      \
                                             ::charonia::cpu::CpuIsa::V4Vnni), \
                           [](const auto &info) {                              \
                             using ::charonia::cpu::CpuIsa;                    \
                             return info.param == CpuIsa::V3   ? "v3"          \
                                    : info.param == CpuIsa::V4 ? "v4"          \
                                                               : "v4vnni";     \
                           })

} // namespace charonia::cpu

#endif
