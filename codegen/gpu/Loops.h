// How often loops run, where that is known.
#ifndef CHARONIA_CODEGEN_GPU_LOOPS_H
#define CHARONIA_CODEGEN_GPU_LOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include <optional>

namespace charonia::gpu {

/// The iterations of a loop, where its bounds say.
std::optional<int64_t> tripCount(mlir::scf::ForOp loop);

/// The same of a loop that counts from 0 in ones; none of others.
std::optional<int64_t> countOf(mlir::scf::ForOp loop);

} // namespace charonia::gpu

#endif
