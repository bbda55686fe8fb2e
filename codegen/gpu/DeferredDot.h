// The last dot of an iteration, done in the next one.
//
// Of a loop as attention's, whose first dot's results become the left operand
// of the last one, the dots have to wait for what is between them, and it for
// them. Where the last dot of an iteration is issued behind the first of the
// next one, it runs under what is done with that one's results
// (FlashAttention-3, Shah et al. 2024, "intra-warpgroup overlap").
#ifndef CHARONIA_CODEGEN_GPU_DEFERREDDOT_H
#define CHARONIA_CODEGEN_GPU_DEFERREDDOT_H

#include "codegen/gpu/ir/SimtDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <optional>

namespace charonia::gpu {

struct DeferredDot {
  /// The dot that has nothing to do with the loop's last one, and its wait.
  simt::WarpgroupDotOp first;
  simt::WaitDotsOp firstWait;
  simt::WarpgroupDotOp last;
  simt::WaitDotsOp lastWait;
  /// What rounds the last dot's left operand; its own operand is in registers
  /// before the dot of the iteration before has to be done.
  mlir::arith::TruncFOp rounded;
  /// The last dot's sum of the iteration before, and what takes it first.
  mlir::BlockArgument total;
  mlir::Operation *firstUse;
  /// The loop may have no iteration.
  bool mayBeEmpty;
};

/// The wait for this dot alone.
simt::WaitDotsOp onlyWaitOf(simt::WarpgroupDotOp dot);

std::optional<DeferredDot> findDeferredDot(mlir::scf::ForOp loop);

/// Registers of a thread that such a loop's dots take: both sums, and the left
/// operand that is read meanwhile.
int64_t registersOf(DeferredDot dot);

} // namespace charonia::gpu

#endif
