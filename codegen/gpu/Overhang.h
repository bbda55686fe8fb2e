// Tiles that reach past the end of what they are cut from: rows of operands
// that belong to results which nobody stores.
#ifndef CHARONIA_CODEGEN_GPU_OVERHANG_H
#define CHARONIA_CODEGEN_GPU_OVERHANG_H

#include "codegen/gpu/ir/SimtDialect.h"
#include "mlir/IR/AffineExpr.h"
#include <optional>

namespace charonia::gpu {

/// The number of a row, over the dim that is a tile's rows and over symbols
/// that are `values`.
struct RowNumber {
  mlir::AffineExpr number;
  unsigned dim;
  mlir::ValueRange values;
};

/// How many rows there are of which anything is stored that products of
/// `operand` take part in, which dots alone read: others may hold anything.
/// Nothing where that is not a constant, or rows take part in each other's
/// results.
std::optional<int64_t> storedRows(simt::ToSharedOp operand,
                                  const RowNumber &rows);

} // namespace charonia::gpu

#endif
