// The software pipeline of a loop over streams, with the means of sm_90: the
// copy engine and mbarriers.
//
//  1. Every stream gets a ring of slots in shared memory. A slot has two
//     barriers: `full` is complete when the copies to it have arrived, `empty`
//     when every warp has read it. Where dots wait for each other's results,
//     the streams of each have barriers of their own (BoxRings.h), and the last
//     dot may run under the next iteration (DeferredDot.h).
//  2. One thread of an additional warp asks for the copies of a stream (of all,
//     where more warps would cost registers): of the first slots at once, what
//     no kernel writes (weights) even before the kernels in front have ended;
//     then each slot's next ones as soon as it is empty. Rows of a last tile
//     that nobody stores are not asked for, and hold anything (Overhang.h).
//  3. The other warps wait for a full slot, multiply, and tell that the slot is
//     empty. Where the loop just adds up products, one iteration's stay under
//     way while the next begins, its slot is told to be empty then, and no warp
//     waits for another.
//  4. A loop of no more iterations than there are slots fills each once, and
//     tells nothing.
//  5. Where one instance has room on a multiprocessor and there are several
//     rounds of tiles, the chip gets as many as it has multiprocessors. Each
//     walks through its tiles, and the copying warps go on with the next one's
//     slots while a tile ends.
//  6. What the loop's dots read of one tile alone, such as queries, comes in
//     front of it in the same way, into a slot of its own.
#ifndef CHARONIA_CODEGEN_GPU_BOXPIPELINE_H
#define CHARONIA_CODEGEN_GPU_BOXPIPELINE_H

#include "codegen/gpu/Pipeline.h"
#include "codegen/gpu/Streams.h"

namespace charonia::gpu {

/// Replaces the loop if the copy engine can bring all of its streams, and two
/// slots have room; `otherBytes`: of shared memory that the kernel needs beside
/// them.
bool pipelineBoxes(mlir::scf::ForOp loop, llvm::ArrayRef<Stream> streams,
                   const PipelineOptions &options, int64_t otherBytes);

} // namespace charonia::gpu

#endif
