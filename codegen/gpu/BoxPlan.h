// Whether and how the copy engine brings the streams of a loop.
#ifndef CHARONIA_CODEGEN_GPU_BOXPLAN_H
#define CHARONIA_CODEGEN_GPU_BOXPLAN_H

#include "codegen/gpu/Boxes.h"
#include "codegen/gpu/DeferredDot.h"
#include "codegen/gpu/Pipeline.h"
#include "codegen/gpu/Streams.h"

namespace charonia::gpu {

/// Warps that copy, each its share of the streams, and the registers that they
/// leave to the others.
struct CopyWarps {
  int64_t warps = 1, given = 0;
};

/// What instances that stay walk along: a tile's number, up to so many.
struct Walk {
  tile::ProgramIdOp id;
  int64_t tiles, instances;
};

struct BoxPlan {
  /// In front of the loop, of operands of its dots that a tile brings once.
  llvm::SmallVector<simt::ToSharedOp> held;
  /// Of each stream, then of what is held.
  llvm::SmallVector<BoxCopy> boxes;
  /// What copies need of the function's body, in order.
  llvm::SetVector<mlir::Operation *> places;
  /// Slots of a ring.
  int64_t stages;
  std::optional<Walk> walk;
  CopyWarps copyWarps;
  /// The dot that runs under the next iteration.
  std::optional<DeferredDot> deferred;
};

/// Nothing where the engine cannot bring all streams, or two slots have no
/// room; `otherBytes`: as pipelineBoxes has them.
std::optional<BoxPlan> planBoxes(mlir::scf::ForOp loop,
                                 llvm::ArrayRef<Stream> streams,
                                 const PipelineOptions &options,
                                 int64_t otherBytes);

} // namespace charonia::gpu

#endif
