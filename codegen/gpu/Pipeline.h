// Operands of dots in shared memory: how they get there, and ahead of time.
#ifndef CHARONIA_CODEGEN_GPU_PIPELINE_H
#define CHARONIA_CODEGEN_GPU_PIPELINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

struct PipelineOptions {
  /// Iterations of a K loop that may be under way; 1: each brings its own.
  unsigned stages = 3;
  /// Shared memory of a program instance, in bytes.
  int64_t sharedBytes = 100 * 1024;
  /// Of a program instance.
  unsigned warps = 4;
  /// That a thread may have.
  unsigned registers = 255;
  /// The chip has a copy engine for boxes (BoxPipeline.h).
  bool boxes = false;
  /// Of the chip; where there are more instances than these, one of a
  /// multiprocessor may stay and compute several tiles. 0: none may.
  int64_t multiprocessors = 0;
  /// The kernel begins before the one in front of it has ended.
  bool overlaps = false;
};

/// Before: simt.to_shared. After: shared memory that is written by asynchronous
/// copies (operands that are loads) or from registers (operands that are
/// computed).
///
/// In a loop, operands that depend on nothing the loop carries are brought in
/// ahead (LoopPipeline.h), as far as those of two iterations have room.
void pipelineSharedOperands(mlir::func::FuncOp function,
                            const PipelineOptions &options);

} // namespace charonia::gpu

#endif
