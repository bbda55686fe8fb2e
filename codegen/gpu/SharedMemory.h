// Shared memory: where tiles lie, and the barriers between their accesses.
#ifndef CHARONIA_CODEGEN_GPU_SHAREDMEMORY_H
#define CHARONIA_CODEGEN_GPU_SHAREDMEMORY_H

#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// Small tiles go through shared memory together where they can: what one
/// thread leaves there for others is read where it is wanted, behind what it
/// leaves of other tiles, so that all threads meet once for several. Takes no
/// more memory than the function does anyway, but for some KB.
void readTogether(mlir::func::FuncOp function);

/// Gives every simt.alloc its offset; those alive at the same time do not
/// overlap. Returns the bytes needed.
int64_t allocateShared(mlir::func::FuncOp function);

/// Bytes at the end of shared memory in which a sort orders its elements; 0
/// where it does where they lie, as their number is not known or too large.
int64_t sharedBytesOf(tile::SortOp op);

/// Places simt.barrier between accesses to the same bytes of which one is a
/// write (read after write, write after read, write after write), along every
/// path. After allocation, because tiles that share bytes conflict too. An
/// asynchronous copy counts as a write when it is issued, against earlier
/// accesses, and when it is waited for, against later ones.
void insertBarriers(mlir::func::FuncOp function);

} // namespace charonia::gpu

#endif
