// The ptxas program.
#ifndef CHARONIA_CODEGEN_GPU_PTXAS_H
#define CHARONIA_CODEGEN_GPU_PTXAS_H

#include "codegen/gpu/GpuCodegen.h"
#include "llvm/Support/Error.h"

namespace charonia::gpu {

/// Assembles kernel.ptx for `chip` with the program at `ptxas`; fills in cubin,
/// registers, spills and remarks.
llvm::Error assemble(GpuKernel &kernel, llvm::StringRef chip,
                     llvm::StringRef ptxas);

} // namespace charonia::gpu

#endif
