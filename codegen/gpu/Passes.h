// The steps from the tile dialect to the simt dialect as passes, for
// charonia-opt and tests. compileGpuKernel runs them itself.
#ifndef CHARONIA_CODEGEN_GPU_PASSES_H
#define CHARONIA_CODEGEN_GPU_PASSES_H

namespace charonia::gpu {

/// On functions with `tile.kernel`, in this order:
///   gpu-assign-layouts  see AssignLayouts.h; warps by `tile.warps`, else 4
///   gpu-pipeline        see Pipeline.h (option shared-bytes); stages by
///   `tile.stages` gpu-shared-memory   see SharedMemory.h: offsets, barriers;
///   sets gpu.shared_bytes
void registerGpuPasses();

} // namespace charonia::gpu

#endif
