// Tile kernels to x86-64 machine code: one flat image for all kernels of a
// program.
#ifndef CHARONIA_CODEGEN_CPU_CPUCODEGEN_H
#define CHARONIA_CODEGEN_CPU_CPUCODEGEN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/LLVM.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace charonia::cpu {

/// Levels of the x86-64 psABI. V3: AVX2, FMA, F16C. V4: AVX-512 F/BW/CD/DQ/VL.
/// V4Vnni is no level of the psABI: V4 and AVX-512 VNNI, sums of products of
/// bytes in one instruction.
enum class CpuIsa { V3, V4, V4Vnni };

/// "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni".
llvm::StringRef isaName(CpuIsa isa);
/// None for a name of no level.
std::optional<CpuIsa> isaOf(llvm::StringRef name);

inline bool hasAvx512(CpuIsa isa) { return isa != CpuIsa::V3; }

/// Lanes of the vectors that tiles are cut into, whatever the element type:
/// those of f32 in one register.
inline unsigned vectorLanes(CpuIsa isa) { return hasAvx512(isa) ? 16 : 8; }

struct CpuOptions {
  /// Threads that compile; 0 is one for each core. The image does not depend on
  /// it.
  unsigned threads = 0;
  /// Folder for <kernel>.<isa>.ll, .opt.ll and .s of each kernel; empty: none.
  std::string dumpDir;
};

struct CpuKernel {
  std::string name;
  uint64_t entry = 0;        ///< Offset of the code in the image.
  uint64_t scratchBytes = 0; ///< Scratch memory of each calling thread.
};

/// Position-independent and read-only: to be mapped readable and executable,
/// aligned to a page; it needs nothing outside itself. Kernels are
///   void kernel(void *const *buffers, const int64_t *symbols, int64_t begin,
///               int64_t end, void *scratch)
/// and run the program instances [begin, end). Buffers are aligned as their
/// elements are, scratch to 64 bytes; bool elements are bytes, 0 or 1.
struct CpuImage {
  std::vector<uint8_t> bytes;
  std::vector<CpuKernel> kernels; ///< In the order of the functions given.
};

/// Compiles kernels (func.func with `tile.kernel`); their functions are not
/// changed. Reports what it cannot compile as a diagnostic at the operation.
/// The same kernels give the same bytes.
mlir::FailureOr<CpuImage>
compileCpuKernels(llvm::ArrayRef<mlir::func::FuncOp> kernels, CpuIsa isa,
                  const CpuOptions &options = {});

/// What one kernel looks like on its way.
enum class CpuStage { Ir, OptimizedIr, Assembly };
mlir::FailureOr<std::string> printCpuKernel(mlir::func::FuncOp kernel,
                                            CpuIsa isa, CpuStage stage);

/// Registers the passes `print-cpu-code` (options `isa`, `stage`: ir,
/// optimized-ir, assembly), which prints the code of each kernel to the
/// standard output, and `expand-math`. For charonia-opt and tests.
void registerCpuPasses();

} // namespace charonia::cpu

#endif
