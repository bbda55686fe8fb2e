// The software pipeline of a loop over streams, with the means of sm_80.
//
//  1. Every stream gets a ring of slots in shared memory: `stages` for what is
//     copied asynchronously, 2 for what passes through registers.
//  2. Before the loop the copies of the first stages - 1 iterations are issued,
//     and what passes through registers is stored for the first iteration.
//  3. An iteration waits for its own copies and for all threads (one barrier
//     orders all rings): the slots it reads are full, those it overwrites have
//     been read.
//  4. It issues the copies of the iteration stages - 1 ahead and the loads of
//     the next one, computes, and stores what it has loaded.
//  5. Where a body is one chain of dots on streams, 3 moves under its last dot:
//     the loop carries the fragments that the first dot of the next iteration
//     takes, and 4 begins with the first dot.
//  6. Where each iteration's dots are a sum of their own, the sum is added to
//     the others under the dots of the next one, if registers hold two sets.
//  7. A short loop, of no more iterations than there are slots, issues all of
//     its copies in 2 and none in 4, if two instances have room.
//  8. Such a loop inside of one over tiles (PersistTiles.h) does 2 in front of
//     that, and behind its last product, under what is done with the result,
//     for the next tile.
#ifndef CHARONIA_CODEGEN_GPU_LOOPPIPELINE_H
#define CHARONIA_CODEGEN_GPU_LOOPPIPELINE_H

#include "codegen/gpu/Streams.h"

namespace charonia::gpu {

/// Of a loop whose body has several iterations (more of them would cost
/// registers): the registers that a thread needs.
constexpr llvm::StringLiteral kWrittenOutAttr = "simt.written_out";

struct PipelineDepth {
  /// At least 2.
  unsigned stages;
  /// The loop has so many iterations, and all of its streams are copied.
  bool whole;
  /// That a thread may have.
  unsigned registers;
  /// That the loop has, where that is known.
  std::optional<int64_t> iterations;
};

/// The wait of a dot, if the loop only hands its result on to the same dot.
simt::WaitDotsOp waitOf(mlir::scf::ForOp loop, simt::WarpgroupDotOp dot);

/// Replaces `loop`, which has at least one stream, and gives what is there
/// instead.
mlir::scf::ForOp pipelineLoop(mlir::scf::ForOp loop,
                              llvm::SmallVector<Stream> streams,
                              const PipelineDepth &depth);

} // namespace charonia::gpu

#endif
