// The state of one compile. Private to Compiler.h.
#ifndef CHARONIA_CODEGEN_DRIVER_COMPILATION_H
#define CHARONIA_CODEGEN_DRIVER_COMPILATION_H

#include "codegen/driver/Compiler.h"
#include "codegen/driver/Pipeline.h"
#include "codegen/driver/Prepare.h"
#include "codegen/driver/Program.h"
#include "codegen/driver/StageDump.h"
#include "runtime/engine/Writer.h"
#include <deque>

namespace charonia::driver {

/// Backends that write the same tile programs: the variants of one program.
using Variants = std::vector<std::unique_ptr<Backend>>;

/// The targets of one device, whose programs begin as the same module. The
/// instruction sets of a CPU share a program; a GPU's tiles, cuts and splits
/// depend on the chip, so each has its own.
struct TargetGroup {
  DeviceKind device;
  std::vector<Variants> programs;
};

/// Weights that a section of the engine holds, for other programs to share.
struct WeightSection {
  std::vector<PlacedWeight> weights;
  uint32_t section;
};

/// One module on its way to an engine.
class Compilation {
public:
  Compilation(mlir::ModuleOp module, const CompileOptions &options)
      : module(module), options(options), cache(options.cacheDir),
        dump(options.dumpDir),
        main(module.lookupSymbol<mlir::func::FuncOp>("main")),
        optimum(graph::getOptimum(module)) {}

  mlir::FailureOr<CompileReport> run(const std::string &path);

private:
  mlir::InFlightDiagnostic error() {
    return mlir::emitError(mlir::UnknownLoc::get(module.getContext()));
  }
  void progress(llvm::StringRef what, unsigned done = 0, unsigned total = 0);
  bool tunes() const { return options.timer || !options.tuningCache.empty(); }

  // --- Stages, programs: Compiler.cpp.
  mlir::FailureOr<std::vector<TargetGroup>> groupTargets();
  mlir::LogicalResult checkStage();
  mlir::LogicalResult readTuning();
  bool stopsAfter(llvm::StringRef stage, mlir::Operation *op);
  /// `program` is null in stages that all programs share.
  mlir::LogicalResult runStage(const Stage &stage, mlir::ModuleOp on,
                               const PipelineOptions *program);
  /// Compiles a device's programs; true where --stop-after or --print-kernel
  /// ended it.
  mlir::FailureOr<bool> addPrograms(TargetGroup &group);
  /// Compiles one program; true where --stop-after or --print-kernel ended it.
  mlir::FailureOr<bool> addProgram(mlir::ModuleOp copy, DeviceKind device,
                                   Variants &variants, Preparation *preparation,
                                   std::vector<WeightSection> &sections);
  /// True where --stop-after ended it.
  mlir::FailureOr<bool> runProgramStages(mlir::ModuleOp copy,
                                         const TargetGroup &group);
  mlir::FailureOr<CompileReport> write(const std::string &path);

  // --- Code: CompilationCode.cpp.
  /// Whether the program has the variant that a backend extends, right before
  /// its own.
  static bool extends(const Backend &backend, const Variants &variants);
  static bool anyGains(const KernelSet &kernels, const Backend &backend);
  /// Compiles the kernels for all variants into a section. A variant in which
  /// nothing would be other code than in the one it extends is left out.
  mlir::LogicalResult addCode(Variants &variants, KernelSet &kernels,
                              TilePrograms &programs, engine::Program &program,
                              ProgramReport &entry);
  /// Chooses the schedules of the kernels by the tuning cache and measurements,
  /// and notes them in the engine.
  mlir::LogicalResult tune(KernelSet &kernels, TilePrograms &programs,
                           Backend &backend, const engine::Program &program,
                           ProgramReport &entry);
  /// Those of one variant are not those of the next.
  static void forgetSchedules(KernelSet &kernels, const TuningReport &tuned);
  /// "cpu", "sm_90a-cuda".
  static std::string codeName(const Variants &variants, DeviceKind device);
  /// A program's steps give all its variants the same arguments.
  mlir::LogicalResult checkSameLaunches(llvm::ArrayRef<CompiledKernel> first,
                                        llvm::ArrayRef<CompiledKernel> others,
                                        const Backend &backend);

  // --- Weights, notes: CompilationWeights.cpp.
  /// What computes weights when the engine is written.
  mlir::FailureOr<Preparation *> prepare(mlir::ModuleOp staged);
  /// The program's section of weights: one that holds the same at the same
  /// places already, or a new one.
  void addWeights(ProgramLayout &layout, Preparation &preparation,
                  std::vector<WeightSection> &sections, ProgramReport &entry);
  /// The weights stream to the file: those of the model from where they are
  /// mapped, prepared ones one at a time.
  uint32_t writeWeights(const ProgramLayout &layout, Preparation &preparation,
                        llvm::StringRef device);
  /// Notes what was decided of kernels, with the microseconds that one kernel
  /// is estimated to save on a GPU: a step of a chain of launches takes one,
  /// and what is not stored nor read has memory's rate.
  void noteFusion(mlir::ModuleOp program, const std::string &name,
                  const Backend &backend);
  /// Plans the arena of the program of that name (see codeName) at the sizes to
  /// optimize for, for the reports.
  mlir::LogicalResult addArena(const engine::Program &program,
                               const std::string &name, ProgramReport &entry);

  mlir::ModuleOp module;
  const CompileOptions &options;
  KernelCache cache;
  TuningCache tuning;
  StageDump dump;
  mlir::func::FuncOp main;
  llvm::SmallVector<int64_t> optimum;
  engine::Manifest manifest;
  engine::Writer writer;
  CompileReport report;
  /// Leading stages of stageNames() that the module has behind it.
  unsigned stagesPassed = 0;
  std::deque<engine::CodeSection> codeSections;
  std::vector<std::unique_ptr<Preparation>> preparations;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> programModules;
};

} // namespace charonia::driver

#endif
