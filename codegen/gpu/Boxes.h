// Operands of dots that the copy engine (sm_90 and later) can bring: boxes of a
// tensor, each asked for by one instruction of one thread.
#ifndef CHARONIA_CODEGEN_GPU_BOXES_H
#define CHARONIA_CODEGEN_GPU_BOXES_H

#include "codegen/gpu/ir/SimtDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include <optional>

namespace charonia::gpu {

/// A load to shared memory as boxes (simt.copy_box has what the fields are).
struct BoxCopy {
  tile::LoadOp load;
  simt::TensorMapAttr tensor;
  /// Over the symbols of the load.
  mlir::AffineMap at, offsets;
  int64_t count, advance, bytes;

  /// What the last tile along the rows has: the engine takes several times as
  /// long for a row outside of the tensor as for one inside, so these are not
  /// asked for, and hold anything.
  struct Rest {
    /// The tile's first row, over the symbols of the load; of a last tile it is
    /// more than `mostWhole`.
    mlir::AffineMap row;
    int64_t mostWhole;
    simt::TensorMapAttr tensor;
    int64_t count;
  };
  std::optional<Rest> rest;

  int64_t allBytes() const;
  int64_t restBytes() const;
};

/// The boxes of an operand that dots of warpgroups alone read; nothing where
/// the engine cannot bring exactly what the load gives. A row of shared memory
/// is 128 bytes of the dimension that is contiguous in the buffer.
std::optional<BoxCopy> asBoxCopy(simt::ToSharedOp op);

/// A condition: whether the tile is the last one along the rows; null where
/// all are whole. `mapping`: of the load's symbols.
mlir::Value createIsLast(mlir::OpBuilder &b, const BoxCopy &copy,
                         const mlir::IRMapping &mapping);

/// Where the boxes lie: coordinates, then offsets. `symbols`: of the load, at
/// the builder.
llvm::SmallVector<mlir::Value>
placeBoxes(mlir::OpBuilder &b, const BoxCopy &copy, mlir::ValueRange symbols);
/// `isLast`: of createIsLast.
void createBoxes(mlir::OpBuilder &b, const BoxCopy &copy,
                 mlir::ValueRange place, mlir::Value memory,
                 mlir::Value barrier, mlir::Value isLast);

} // namespace charonia::gpu

#endif
