// What a pipelined loop does when. Private to LoopPipeline.h.
#ifndef CHARONIA_CODEGEN_GPU_LOOPSCHEDULE_H
#define CHARONIA_CODEGEN_GPU_LOOPSCHEDULE_H

#include "codegen/gpu/LoopPipeline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace charonia::gpu {

/// What a loop does when.
struct LoopSchedule {
  /// Slots of the rings that copies fill; 0: nothing is copied.
  unsigned copySlots = 0;
  /// Some streams pass through registers.
  bool throughRegisters = false;
  /// These read what other streams copy, an iteration ahead of its dots.
  bool readsCopies = false;
  /// Before which operator of the body what comes next is issued; null: at its
  /// start, behind the barrier.
  mlir::Operation *issueAt = nullptr;
  /// Before which operator the rings advance and the barrier is; null: they
  /// advance at the end, and the barrier is at the start.
  mlir::Operation *advanceAt = nullptr;
  /// Loads of the body that are then done an iteration ahead.
  llvm::SmallVector<simt::LoadSharedOp> early;
  /// Dots that are under way from one iteration to the next, and how many of
  /// them; their waits move behind what is issued, and behind the loop.
  llvm::SmallVector<simt::WarpgroupDotOp> dots;
  unsigned dotsInFlight = 0;
  /// Where each of the dots begins a sum of its own: the operators that add it
  /// to what the loop carries, which they do under the next iteration's dots.
  llvm::SmallVector<mlir::arith::AddFOp> additions;
  /// Registers of a thread then.
  unsigned registers = 0;
  /// The body has dots of warpgroups.
  bool fences = false;
  /// Each iteration has a slot of its own, so that all copies are issued before
  /// the loop.
  bool whole = false;
};

LoopSchedule planLoop(mlir::scf::ForOp loop, llvm::ArrayRef<Stream> streams,
                      const PipelineDepth &depth);

} // namespace charonia::gpu

#endif
