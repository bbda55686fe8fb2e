// What operands of dots are computed from, in shared memory ahead of time.
#ifndef CHARONIA_CODEGEN_GPU_STAGELOADS_H
#define CHARONIA_CODEGEN_GPU_STAGELOADS_H

#include "codegen/gpu/Streams.h"

namespace charonia::gpu {

/// The layout of what is left of a tile of which each `repeat` neighbours along
/// `axis` are one element.
LinearLayout withoutRepeats(const LinearLayout &layout, unsigned axis,
                            int64_t repeat);

/// Loads that pass through registers to shared memory are copied as they lie in
/// memory, each element once, to shared memory of their own first, so that as
/// many of them are under way as of other operands. Before: tile.load in the
/// slice of a stream. After: a stream of its own, and simt.load_shared of its
/// memory. `bytes`: what the copies of one iteration may take. Returns whether
/// there are such loads.
bool stageLoads(llvm::ArrayRef<Stream> streams, unsigned warps, int64_t bytes);

} // namespace charonia::gpu

#endif
