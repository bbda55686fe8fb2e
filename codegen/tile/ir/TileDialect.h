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
#define GET_TYPEDEF_CLASSES
#include "codegen/tile/ir/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "codegen/tile/ir/TileOps.h.inc"

namespace charonia::tile {

/// Unit attribute of a kernel function.
inline constexpr llvm::StringLiteral kKernelAttr = "tile.kernel";
/// AffineMap ()[shape symbols] -> (program instances).
inline constexpr llvm::StringLiteral kGridAttr = "tile.grid";
/// Integer attribute of an index argument: what divides its value.
inline constexpr llvm::StringLiteral kDivisorAttr = "tile.divisor";
/// Integer attribute of a GPU kernel: warps of a program instance.
inline constexpr llvm::StringLiteral kWarpsAttr = "tile.warps";
/// Integer attribute of a GPU kernel: stages of the K loop's pipeline.
inline constexpr llvm::StringLiteral kStagesAttr = "tile.stages";
/// AffineMaps ()[shape symbols] -> (bytes) and -> (integers): what a kernel
/// with a tile.split_sum needs beside its operands and results.
inline constexpr llvm::StringLiteral kScratchAttr = "tile.scratch";
inline constexpr llvm::StringLiteral kCountersAttr = "tile.counters";

} // namespace charonia::tile

#endif
