// Operands of dots that the copy engine (sm_90 and later) can bring: boxes of a
// tensor, each asked for by one instruction of one thread.
#ifndef CHARONIA_CODEGEN_GPU_BOXES_H
#define CHARONIA_CODEGEN_GPU_BOXES_H

#include "codegen/gpu/ir/SimtDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace charonia::gpu {

/// A load to shared memory as boxes (simt.copy_box has what the fields are).
struct BoxCopy {
  tile::LoadOp load;
  simt::TensorMapAttr tensor;
  /// Over the symbols of the load.
  mlir::AffineMap at, offsets;
  int64_t count, advance, bytes;

  int64_t allBytes() const;
};

/// The boxes of an operand that dots of warpgroups alone read; nothing where
/// the engine cannot bring exactly what the load gives. A row of shared memory
/// is 128 bytes of the dimension that is contiguous in the buffer.
std::optional<BoxCopy> asBoxCopy(simt::ToSharedOp op);

/// Where the boxes lie: coordinates, then offsets. `symbols`: of the load, at
/// the builder.
llvm::SmallVector<mlir::Value>
placeBoxes(mlir::OpBuilder &b, const BoxCopy &copy, mlir::ValueRange symbols);
void createBoxes(mlir::OpBuilder &b, const BoxCopy &copy,
                 mlir::ValueRange place, mlir::Value memory,
                 mlir::Value barrier);

} // namespace charonia::gpu

#endif
