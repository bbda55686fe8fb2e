// GPU code generation: tile kernels to PTX and machine code.
#ifndef CHARONIA_CODEGEN_GPU_GPUCODEGEN_H
#define CHARONIA_CODEGEN_GPU_GPUCODEGEN_H

#include "codegen/target/GpuTarget.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include <string>
#include <vector>

namespace charonia::gpu {

struct GpuOptions {
  /// Kernels compiled at the same time; 0: as many as the machine has
  /// processors.
  unsigned threads = 0;
  /// Run ptxas where it is found; PTX is made in any case.
  bool assemble = true;
  /// Let the chip's copy engine bring operands, where it has one
  /// (BoxPipeline.h).
  bool boxes = true;
  /// The ptxas program; empty: looked for on PATH and in /usr/local/cuda/bin.
  std::string ptxas;
  /// Where to write what each kernel is at each stage:
  /// <dumpPrefix><entry>.<n>-<stage>.<extension>; empty: nowhere. Folders have
  /// to exist.
  std::string dumpPrefix;
};

/// A tensor map that a kernel takes by value; see engine::TensorMap.
/// Expressions are over the kernel's shape symbols.
struct TensorMap {
  unsigned argument = 0, elementBytes = 2, swizzle = 0;
  std::vector<mlir::AffineExpr> extents, strides;
  std::vector<int64_t> box, steps, lower, upper;
};

/// A compiled kernel. `entry` is the function's name with what PTX does not
/// allow replaced. Parameters: a 64-bit pointer for each buffer, then a 64-bit
/// integer for each shape symbol, then the tensor maps; a one-dimensional grid
/// of program instances.
struct GpuKernel {
  std::string entry;
  std::string ptx;
  std::string cubin; ///< empty without ptxas
  unsigned blockThreads = 0;
  unsigned clusterSize = 1; ///< Program instances that run together.
  /// Program instances, where they are fewer than the function's grid has.
  std::optional<int64_t> instances;
  int64_t sharedBytes = 0; ///< dynamic shared memory to ask for
  /// See engine::KernelCode; where the chip has dependent launch.
  bool waitsForPrevious = false, waitsAtEnd = false;
  std::vector<TensorMap> maps;
  // From ptxas; -1 without it.
  int registers = -1, spillStores = -1, spillLoads = -1;
  std::vector<std::string> remarks; ///< what ptxas warned of
};

/// Dialects and translations that compileGpuKernels needs in the module's
/// context.
void registerGpuCodegen(mlir::DialectRegistry &registry);

/// Loads them; once, before kernels are compiled on several threads.
void loadGpuDialects(mlir::MLIRContext &context);

/// Compiles one tile kernel, which stays as it is. Thread-safe.
mlir::FailureOr<GpuKernel> compileGpuKernel(mlir::func::FuncOp kernel,
                                            const GpuTarget &target,
                                            const GpuOptions &options = {});

/// Whether shared memory holds what a program instance of a tile kernel keeps
/// there at least, where nothing is brought in ahead of its use. Where it does
/// not, tiles are too large. Reports what else is wrong.
bool fitsSharedMemory(mlir::func::FuncOp kernel, const GpuTarget &target);

/// Compiles every function with `tile.kernel` in `kernels`, in their order; the
/// module stays as it is. The result does not depend on the number of threads.
/// Fails with diagnostics at the kernels' locations. Thread-safe for modules of
/// different contexts.
mlir::FailureOr<std::vector<GpuKernel>>
compileGpuKernels(mlir::ModuleOp kernels, const GpuTarget &target,
                  const GpuOptions &options = {});

/// Where ptxas is; empty if it is not installed.
std::string findPtxas();

} // namespace charonia::gpu

#endif
