// Program instances that compute several tiles, one after the other.
#ifndef CHARONIA_CODEGEN_GPU_PERSISTTILES_H
#define CHARONIA_CODEGEN_GPU_PERSISTTILES_H

#include "codegen/gpu/Streams.h"
#include "codegen/target/GpuTarget.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// Of a loop over an instance's tiles, which has the loop over terms inside.
inline constexpr llvm::StringLiteral kTilesAttr = "simt.tiles";

/// On a function with layouts, before pipelining. A product of few terms has a
/// start and an end for each tile that nothing covers, and reads one operand,
/// all of it, again and again. Where that operand is the same for all tiles, or
/// for all of a block of columns, and stays in shared memory beside a ring for
/// all terms of the other, twice on a multiprocessor, and there are several
/// rounds of tiles: the chip gets just as many instances as it runs at once, as
/// many for each block, each walks through its tiles, and the copies of the
/// next tile are under way while this one is stored.
void persistTiles(mlir::func::FuncOp function, const GpuTarget &target,
                  unsigned warps, unsigned stages);

/// Moves what a function's body does of each `tile`, its first number an
/// instance's own, into a loop over every so manieth of `count`, one for each
/// of `instances`. What is the same for all, and no kernel writes, stays in
/// front as far as registers hold it. The loop carries `inits`, which its body
/// leaves as they are.
mlir::scf::ForOp loopOverTiles(mlir::Value tile, int64_t count,
                               int64_t instances, mlir::ValueRange inits = {});

/// What the copies of a stream need of the body of the loop over tiles, in
/// order; nothing where that is more than arithmetic.
std::optional<llvm::SetVector<mlir::Operation *>>
placeOfTile(const Stream &stream, mlir::scf::ForOp inner, mlir::Block &body);

/// Whether a stream is the same for each `tile` of the body.
bool isResident(const Stream &stream, mlir::scf::ForOp inner, mlir::Block &body,
                mlir::Value tile);

} // namespace charonia::gpu

#endif
