// The kernels of a program, each content once, and their code.
#ifndef CHARONIA_CODEGEN_DRIVER_KERNELS_H
#define CHARONIA_CODEGEN_DRIVER_KERNELS_H

#include "codegen/driver/Activity.h"
#include "codegen/driver/Backend.h"
#include "codegen/driver/KernelCache.h"
#include "codegen/driver/TileWork.h"
#include "codegen/emit/Schedule.h"
#include "graph/ir/Dialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include <mutex>

namespace charonia::driver {

/// Removes what the kernel may run beside, and says what it was.
llvm::SmallVector<llvm::StringRef, 2> takeMarks(graph::KernelOp kernel);

/// Kernels by content: equal regions on operands of equal types, weights in the
/// same places, sizes of equal ranges, are one kernel, whatever their names, if
/// they are alike in what they may run beside.
class KernelSet {
public:
  /// What runs a kernel of the set.
  struct Launch {
    unsigned kernel = 0; ///< Its number, new or known.
    /// The module's symbols that the kernel uses: symbol i of the set's kernel
    /// is symbol `symbols[i]` here.
    llvm::SmallVector<unsigned> symbols;
  };
  /// `isWeight` says of the kernel's operands whether their bytes are there
  /// before the program starts.
  Launch add(graph::KernelOp kernel,
             llvm::function_ref<bool(mlir::Value)> isWeight);
  unsigned size() const { return kernels.size(); }
  /// The kernel, alone in a module of its own, which has its symbols by the
  /// names that they have at its first launch.
  graph::KernelOp get(unsigned number) const { return kernels[number].kernel; }
  /// Equal for equal kernels, in other sets too.
  llvm::StringRef content(unsigned number) const {
    return kernels[number].content;
  }
  /// The same without what it may run beside, which is nothing to its schedule.
  llvm::StringRef contentAlone(unsigned number) const {
    return kernels[number].content.take_front(kernels[number].alone);
  }

private:
  struct Entry {
    mlir::OwningOpRef<mlir::ModuleOp> module;
    graph::KernelOp kernel;
    llvm::StringRef content; ///< A key of `numbers`.
    size_t alone = 0; ///< Characters of it in front of the marks of waves.
  };
  std::vector<Entry> kernels;
  llvm::StringMap<unsigned> numbers;
};

/// A tile program, alone in a module, and what it does at the sizes to optimize
/// for.
struct TileProgram {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// By which it is cut into tiles.
  emit::Schedule schedule;
  TileWork work;
  mlir::func::FuncOp function() const {
    return *(*module).getOps<mlir::func::FuncOp>().begin();
  }
};

/// Writes and counts the tile program of a kernel, by its own schedule or the
/// cost model's, or a narrower one where the device has no room for the tiles
/// of that. Fails with a diagnostic.
mlir::FailureOr<TileProgram> makeTileProgram(graph::KernelOp kernel,
                                             const Backend &backend);

/// Tile programs that are there before their kernels are compiled, since their
/// work was counted.
class TilePrograms {
public:
  void add(const KernelSet &kernels, unsigned number, const Backend &backend,
           TileProgram program);
  /// The program of an equal kernel of the same name, which is then no longer
  /// kept; else a new one. From any thread.
  mlir::FailureOr<TileProgram> take(const KernelSet &kernels, unsigned number,
                                    const Backend &backend);
  void forget(const KernelSet &kernels, unsigned number,
              const Backend &backend);

private:
  /// More than models have; of a model that has more, some are written twice.
  static constexpr unsigned most = 512;
  std::mutex mutex;
  llvm::StringMap<TileProgram> programs;
};

struct CompiledKernel {
  KernelBinary binary;
  /// Sizes that the code was optimized for: those of the kernel's symbols.
  llvm::SmallVector<int64_t> sizes;
  /// Program instances, over the kernel's symbols.
  mlir::AffineExpr grid;
  /// Bytes of scratch memory and counters that a launch needs in two more
  /// buffers; null where it takes none. See tile.split_sum.
  mlir::AffineExpr scratch, counters;
  /// What indices of 32 bits have to count; see tile.indexed.
  llvm::SmallVector<mlir::AffineExpr> indexed;
  /// Arguments that may be read before the kernels ahead have ended, and that
  /// nothing writes meanwhile: weights. See tile.load.
  llvm::SmallVector<unsigned> independent;
  bool cached = false;
  /// At the symbols' opt values: what its tile program does, and what its
  /// operators ask for, by themselves and in tiles of its schedule.
  TileWork work, needed, tiled;
};

/// Compiles the tile program of a kernel, or takes it from the cache (null:
/// none). `dumpDir`: folder for what it is made of; empty: none.
mlir::FailureOr<CompiledKernel> compileProgram(graph::KernelOp kernel,
                                               const TileProgram &program,
                                               Backend &backend,
                                               KernelCache *cache,
                                               const std::string &dumpDir = {});

struct KernelOptions {
  /// Null: no cache.
  KernelCache *cache = nullptr;
  /// Folder in which each kernel gets a folder of its own; empty: none.
  std::string dumpDir;
  /// Called after each kernel, from any thread, one at a time.
  std::function<void(unsigned done, unsigned total)> progress;
  /// Told of each kernel while it is compiled; null: nobody asks.
  Activity *activity = nullptr;
  /// Tile programs that are there already; null: none.
  TilePrograms *programs = nullptr;
  /// For Backend::base, if it was compiled for: what kernels that gain nothing
  /// take.
  const std::vector<CompiledKernel> *ofBase = nullptr;
};

/// Writes tile programs and compiles them, on all threads of the context.
mlir::FailureOr<std::vector<CompiledKernel>>
compileKernels(const KernelSet &kernels, Backend &backend,
               const KernelOptions &options);

/// Warns of kernels that do several times the work of their operators.
void warnOfRepeatedWork(const KernelSet &kernels,
                        llvm::ArrayRef<CompiledKernel> compiled,
                        const Backend &backend);

/// Where compileKernels leaves the files of a kernel: graph.mlir,
/// <arch>.tile.mlir and the backend's own.
std::string dumpFolder(llvm::StringRef folder, unsigned number,
                       graph::KernelOp kernel);

} // namespace charonia::driver

#endif
