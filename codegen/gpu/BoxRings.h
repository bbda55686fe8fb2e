// The slots that the copy engine fills, and their barriers. Private to
// BoxPipeline.h.
#ifndef CHARONIA_CODEGEN_GPU_BOXRINGS_H
#define CHARONIA_CODEGEN_GPU_BOXRINGS_H

#include "codegen/gpu/DeferredDot.h"
#include "codegen/gpu/Streams.h"

namespace charonia::gpu {

struct BoxRings {
  /// A slot and the parity of its barriers' phase.
  struct Place {
    mlir::Value slot, parity;
  };
  /// Streams whose slots become full together, and empty.
  struct Group {
    llvm::SmallVector<unsigned> streams;
    /// What reads them; null: the body as a whole.
    simt::WarpgroupDotOp dot;
    /// Barriers; no `empty` where each slot is filled once.
    mlir::Value full, empty;
  };

  /// What a tile reads as a whole, in a slot of its own; no `empty` where an
  /// instance has one tile.
  struct Held {
    mlir::Value memory, full, empty;
  };

  /// Slots of a ring.
  int64_t stages;
  /// Of each stream.
  llvm::SmallVector<mlir::Value> memories;
  llvm::SmallVector<Group> groups;
  llvm::SmallVector<Held> held;

  static mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc,
                              int64_t value);
  static mlir::Value slotOf(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value ring, mlir::Value index);
  static Place begin(mlir::OpBuilder &b, mlir::Location loc);
  Place next(mlir::OpBuilder &b, mlir::Location loc, Place at) const;
};

/// What is there in a loop's place.
struct BoxLoop {
  /// Behind which all dots but the last one are done, and all of them.
  mlir::Operation *almostDone, *done;
  /// The slot behind the last iteration's, and that one's.
  BoxRings::Place end;
  mlir::Value last;
};
/// Puts a loop that reads the slots in `loop`'s place. `dots`: those that the
/// loop just adds up, if there is nothing else; they stay under way for one
/// iteration more. `start`: the slot that the first iteration reads.
BoxLoop createBoxLoop(mlir::scf::ForOp loop, llvm::ArrayRef<Stream> streams,
                      const BoxRings &rings,
                      llvm::ArrayRef<simt::WarpgroupDotOp> dots,
                      const std::optional<DeferredDot> &deferred,
                      BoxRings::Place start);

} // namespace charonia::gpu

#endif
