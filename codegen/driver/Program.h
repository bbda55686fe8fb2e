// The engine's program from a function of kernels: buffers, lifetimes, steps.
#ifndef CHARONIA_CODEGEN_DRIVER_PROGRAM_H
#define CHARONIA_CODEGEN_DRIVER_PROGRAM_H

#include "codegen/driver/Kernels.h"
#include "runtime/engine/Engine.h"

namespace charonia::driver {

/// A weight that a program reads, and where in its section it lies.
struct PlacedWeight {
  std::string name;
  uint64_t offset = 0, size = 0;
  bool operator==(const PlacedWeight &) const = default;
};

struct ProgramLayout {
  /// Without variants and the section of weights.
  engine::Program program;
  std::vector<PlacedWeight> weights; ///< By offset.
  uint64_t weightBytes = 0;
};

/// Of buffers in the arena and of those that callers give.
inline uint32_t bufferAlignment(DeviceKind device) {
  return device == DeviceKind::Cpu ? 64 : 256;
}

/// Lays out `function`, which verify-kernels accepts. Adds its kernels to
/// `kernels`; kernel i of the program is kernel i of the set. `waves`: kernels
/// that need nothing of one another may run side by side (see formWaves).
ProgramLayout layOutProgram(mlir::func::FuncOp function, DeviceKind device,
                            KernelSet &kernels, bool waves = false);

/// Whether every launch passes weights where its kernel reads ahead of its turn
/// (CompiledKernel::independent); an error at `location` where one does not.
llvm::LogicalResult checkIndependent(const engine::Program &program,
                                     llvm::ArrayRef<CompiledKernel> kernels,
                                     mlir::Location location);

/// Whether no kernel of a wave writes what another one of it reads or writes,
/// as Step::besidePrevious says; an error at `location` where one does. Before
/// addScratch.
llvm::LogicalResult checkWaves(const engine::Program &program,
                               const KernelSet &kernels,
                               mlir::Location location);

/// Gives the launches of kernels that ask for it scratch memory of their own,
/// and counters in one buffer that the program's first step clears.
void addScratch(engine::Program &program,
                llvm::ArrayRef<CompiledKernel> kernels);

/// One variant of a program from the code of its kernels; pieces of code go to
/// `code`.
engine::Variant
makeVariant(const Backend &backend, const engine::Program &program,
            llvm::ArrayRef<CompiledKernel> kernels,
            llvm::function_ref<engine::Range(llvm::ArrayRef<char>)> addImage,
            llvm::function_ref<engine::Range(llvm::StringRef)> addText);

} // namespace charonia::driver

#endif
