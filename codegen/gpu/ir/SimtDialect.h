// The simt dialect: tiles spread over the threads of a GPU program instance.
#ifndef CHARONIA_CODEGEN_GPU_IR_SIMTDIALECT_H
#define CHARONIA_CODEGEN_GPU_IR_SIMTDIALECT_H

#include "codegen/layout/LinearLayout.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/IR/TensorEncoding.h"

#include "codegen/gpu/ir/SimtDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "codegen/gpu/ir/SimtAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "codegen/gpu/ir/SimtTypes.h.inc"
#define GET_OP_CLASSES
#include "codegen/gpu/ir/SimtOps.h.inc"

namespace charonia::simt {

/// The layout of a tensor that has one.
const LinearLayout &layoutOf(mlir::Type tensor);
inline const LinearLayout &layoutOf(mlir::Value value) {
  return layoutOf(value.getType());
}

/// `type` with a layout as its encoding.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  const LinearLayout &layout);

/// Bits of an element in registers and memory; i1 takes a byte in memory.
unsigned elementBits(mlir::Type element);

} // namespace charonia::simt

#endif
