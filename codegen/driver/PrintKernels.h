// Kernels as text, for --print-kernel and --stop-after tiles.
#ifndef CHARONIA_CODEGEN_DRIVER_PRINTKERNELS_H
#define CHARONIA_CODEGEN_DRIVER_PRINTKERNELS_H

#include "codegen/driver/Kernels.h"

namespace charonia::driver {

/// The tile programs of all kernels. Fails with a diagnostic, as the next.
llvm::LogicalResult printTiles(const KernelSet &kernels, const Backend &backend,
                               llvm::raw_ostream &output);

/// Compiles the kernels of that name for all variants, and prints what they go
/// through: graph, tile programs and target code, not what lies between. Errors
/// that are of no kernel are at `location`.
llvm::LogicalResult
printKernel(const KernelSet &kernels, llvm::StringRef name,
            llvm::ArrayRef<std::unique_ptr<Backend>> variants,
            mlir::Location location, llvm::raw_ostream &output);

} // namespace charonia::driver

#endif
