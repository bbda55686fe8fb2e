// One kind of machine code: how a kernel's tile program becomes code.
#ifndef CHARONIA_CODEGEN_DRIVER_BACKEND_H
#define CHARONIA_CODEGEN_DRIVER_BACKEND_H

#include "charonia/types.h"
#include "codegen/emit/Emit.h"
#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/engine/Engine.h"
#include <memory>
#include <string>
#include <vector>

namespace charonia::driver {

/// The code of one kernel.
struct KernelBinary {
  std::vector<char> image; ///< CPU.
  std::string ptx;         ///< CUDA.
  std::vector<char> cubin; ///< CUDA, if there is a ptxas.
  std::string entry;       ///< CUDA: the function's name.
  uint64_t entryOffset = 0, scratchBytes = 0, sharedBytes = 0;
  uint32_t blockThreads = 1, clusterSize = 1, registers = 0, spillBytes = 0;
  /// CUDA: program instances, where they are fewer than the program's grid; 0:
  /// they are not.
  uint64_t instances = 0;
  /// CUDA; see engine::KernelCode.
  bool waitsForPrevious = false, waitsAtEnd = false;
  std::vector<engine::TensorMap> maps; ///< CUDA; see engine::KernelCode.
};

class Backend {
public:
  virtual ~Backend() = default;
  virtual DeviceKind device() const = 0;
  /// "x86-64-v4", "sm_90": a variant of the engine.
  virtual std::string arch() const = 0;
  /// All that the code depends on beside the tile program: for the cache.
  virtual std::string fingerprint() const { return arch(); }
  /// The instruction set that this one extends, whose tile programs are the
  /// same and whose code its kernels take where they gain nothing; empty: none.
  virtual std::string base() const { return {}; }
  virtual bool gains(graph::KernelOp) const { return true; }
  virtual const emit::EmitTarget &emitTarget() const = 0;
  /// Whether the device has room for the tiles of a function that `emitKernel`
  /// wrote.
  virtual bool fits(mlir::func::FuncOp) const { return true; }
  /// Compiles a function that `emitKernel` wrote. Called from several threads,
  /// each with a function in a module of its own, which it may change.
  /// `dumpDir`: folder for intermediate files, whose names tell the arch;
  /// empty: none.
  virtual mlir::FailureOr<KernelBinary> compile(mlir::func::FuncOp function,
                                                llvm::StringRef dumpDir) = 0;
};

/// Backends of the `--target` names: "cpu" has those of all CPUs, "x86-64-v3"
/// and "sm_80" ... one each; empty for a name that is none. What extends an
/// instruction set follows it. `precision` as of CompileOptions.
std::vector<std::unique_ptr<Backend>> createBackends(llvm::StringRef target,
                                                     llvm::StringRef precision);
/// "cpu, x86-64-v3, ...", for messages.
std::string listTargets();

/// The backend of the machine that compiles, for what runs at build time.
std::unique_ptr<Backend> createHostBackend();

} // namespace charonia::driver

#endif
