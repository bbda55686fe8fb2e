// The tile dialect.
#ifndef CHARONIA_CODEGEN_TILE_IR_TILEDIALECT_H
#define CHARONIA_CODEGEN_TILE_IR_TILEDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "codegen/tile/ir/TileDialect.h.inc"
#include "codegen/tile/ir/TileEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "codegen/tile/ir/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "codegen/tile/ir/TileOps.h.inc"

namespace charonia::tile {

/// Unit attribute of a kernel function.
inline constexpr llvm::StringLiteral kKernelAttr = "tile.kernel";
/// AffineMap ()[shape symbols] -> (program instances).
inline constexpr llvm::StringLiteral kGridAttr = "tile.grid";
/// Integer attribute of a GPU kernel whose grid depends on sizes: program
/// instances at those to optimize for.
inline constexpr llvm::StringLiteral kUsualInstancesAttr =
    "tile.usual_instances";
/// Integer attribute of an index argument: what divides its value.
inline constexpr llvm::StringLiteral kDivisorAttr = "tile.divisor";
/// Attribute of a buffer of results that a CPU writes past its caches: always,
/// where it is a unit, else where no result of an AffineMap ()[shape symbols]
/// is negative.
inline constexpr llvm::StringLiteral kStreamedAttr = "tile.streamed";
/// Integer attribute of a GPU kernel: warps of a program instance.
inline constexpr llvm::StringLiteral kWarpsAttr = "tile.warps";
/// Integer attribute of a GPU kernel: stages of the K loop's pipeline.
inline constexpr llvm::StringLiteral kStagesAttr = "tile.stages";
/// Integer attribute of a GPU kernel: program instances for which a
/// multiprocessor should have registers.
inline constexpr llvm::StringLiteral kResidentsAttr = "tile.residents";
/// Unit attributes of a GPU kernel: it waits for the kernels before it when it
/// has done all else, as it may run beside them; it lets the next one start at
/// once, as that may run beside it.
inline constexpr llvm::StringLiteral kWaitsAtEndAttr = "tile.waits_at_end";
inline constexpr llvm::StringLiteral kStartsNextAttr = "tile.starts_next";
/// AffineMaps ()[shape symbols] -> (bytes) and -> (integers): what a kernel
/// with a tile.split_sum needs beside its operands and results.
inline constexpr llvm::StringLiteral kScratchAttr = "tile.scratch";
inline constexpr llvm::StringLiteral kCountersAttr = "tile.counters";
/// Type of an operator's result in the model, where it is computed in f32: what
/// is kept of it may be rounded to that, as it would be if it were stored.
inline constexpr llvm::StringLiteral kMayBeRoundedAttr = "tile.may_be_rounded";

/// Program instances of a cluster, at most.
inline constexpr uint64_t kMostInCluster = 16;

/// Tiles are the tensors of a kernel; everything else is a scalar or a buffer.
inline bool isTile(mlir::Value value) {
  return llvm::isa<mlir::RankedTensorType>(value.getType());
}
/// The extents of a tile.
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tile) {
  return llvm::cast<mlir::RankedTensorType>(tile.getType()).getShape();
}

} // namespace charonia::tile

#endif
