// Operands of dots that a loop brings into shared memory ahead of time.
#ifndef CHARONIA_CODEGEN_GPU_STREAMS_H
#define CHARONIA_CODEGEN_GPU_STREAMS_H

#include "codegen/gpu/ir/SimtDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace charonia::gpu {

/// A load that cp.async can do: `vector` elements along `axis` at once, of
/// which the first may be inside of the load's checks and the rest zeros.
struct AsyncCopy {
  tile::LoadOp load;
  unsigned axis, vector;
};
std::optional<AsyncCopy> asAsyncCopy(simt::ToSharedOp op);
/// The same of a load to `memory`. `mayEnd`: vectors may begin inside of the
/// load's checks as well.
std::optional<AsyncCopy> asAsyncCopy(tile::LoadOp load, simt::MemoryType memory,
                                     bool mayEnd);
void createCopy(mlir::OpBuilder &b, tile::LoadOp load, const AsyncCopy &copy,
                mlir::Value memory);

/// Appends the guard `index < end` to the bounds checks of a load.
void addGuard(tile::LoadOp load, mlir::Value index, mlir::Value end);

/// An operand whose value depends on the number of the iteration alone.
struct Stream {
  simt::ToSharedOp op;
  /// What computes it, within the body, in order; what another stream copies is
  /// read from there.
  llvm::SetVector<mlir::Operation *> slice;
  /// Copied if it is a load that cp.async can do, else through registers.
  std::optional<AsyncCopy> copy;
};

/// Collects what `value` is computed from in `body`, in order; false if that is
/// more than arithmetic.
bool collectArithmetic(mlir::Value value, mlir::Block &body,
                       llvm::SetVector<mlir::Operation *> &slice);

/// The streams of a loop.
llvm::SmallVector<Stream> findStreams(mlir::scf::ForOp loop);

} // namespace charonia::gpu

#endif
