// From a module of the graph dialect to an engine file.
#ifndef CHARONIA_CODEGEN_DRIVER_COMPILER_H
#define CHARONIA_CODEGEN_DRIVER_COMPILER_H

#include "charonia/types.h"
#include "codegen/driver/Activity.h"
#include "codegen/driver/Tuner.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/engine/Engine.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>
#include <string>
#include <vector>

namespace charonia::driver {

struct CompileOptions {
  /// Names as in listTargets(). CPU and CUDA targets make a program each, with
  /// a variant for each target.
  std::vector<std::string> targets = {"cpu"};
  /// fp32, tf32, fp16 or bf16.
  std::string precision = "fp32";
  /// On GPUs that can, kernels that need nothing of one another run side by
  /// side (see formWaves).
  bool waves = true;
  /// Folder of the kernel cache; empty: none.
  std::string cacheDir;
  /// Measures schedules where the tuning cache has none; null: the rest is as
  /// the cost model has it.
  KernelTimer *timer = nullptr;
  /// After so long no further kernel is measured; nothing: all are.
  std::optional<double> tuningSeconds;
  /// File of the tuning cache, written after each kernel that was measured;
  /// empty: none.
  std::string tuningCache;
  /// Folder for the module after each stage and for the kernels' code; empty:
  /// none.
  std::string dumpDir;
  /// Name of the stage after which to print the module to `output` and stop: no
  /// engine is written.
  std::string stopAfter;
  /// Name of a kernel to print to `output`, from its graph to its code.
  std::string printKernel;
  llvm::raw_ostream *output = nullptr;
  /// What is being done; `total` is 0 where it cannot be counted.
  std::function<void(llvm::StringRef what, unsigned done, unsigned total)>
      progress;
  /// Told what is being done; null: nobody asks.
  Activity *activity = nullptr;
  /// Called once the engine is written, right before it gets its name: whoever
  /// would give up must have done so.
  std::function<void()> beforeCommit;
  /// Model name, source hash and options; the compiler fills in the rest.
  engine::BuildRecord record;
};

/// What became of one program.
struct ProgramReport {
  DeviceKind device;
  std::vector<std::string> archs;
  unsigned launches = 0, kernels = 0, prepareKernels = 0, cachedKernels = 0;
  uint64_t weightBytes = 0;
  /// Of the arena, at the optimal values of the shape symbols.
  uint64_t arenaPeak = 0, arenaLowerBound = 0;
  /// Of each variant, where there is a timer or a tuning cache.
  std::vector<TuningReport> tuning;
};

struct CompileReport {
  /// False where --stop-after ended the work.
  bool written = false;
  std::vector<ProgramReport> programs;
};

/// The dialects and rules that a context needs, to be appended before it is
/// made.
void registerCompiler(mlir::DialectRegistry &registry);
/// Loads them, which compiling on several threads needs.
void loadDialects(mlir::MLIRContext &context);

/// Names of all stages, in order, for --stop-after.
std::vector<std::string> stageNames();

/// Compiles `module` (which is changed) and writes the engine to `path`. What
/// is wrong comes as diagnostics of the context.
mlir::FailureOr<CompileReport> compile(mlir::ModuleOp module,
                                       const CompileOptions &options,
                                       const std::string &path);

} // namespace charonia::driver

#endif
