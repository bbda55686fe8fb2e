// Tiles of a row that lie inside of it as a whole.
#ifndef CHARONIA_CODEGEN_GPU_INSIDETILES_H
#define CHARONIA_CODEGEN_GPU_INSIDETILES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace charonia::gpu {

/// Iterations [first, end) of a loop.
struct Iterations {
  int64_t first = 0, end = 0;
};

/// Of `count` iterations from 0 on, those whose tiles lie inside as a whole:
/// all but one at either end at most. None where nothing depends on the
/// iteration, or where more do not.
Iterations wholeIterations(mlir::scf::ForOp loop, int64_t count);

/// Of a load that is done in pairs of aligned vectors: both lie inside.
inline constexpr llvm::StringLiteral kAmidAttr = "simt.amid";

/// On a function with layouts: the first and the last iteration of such loops
/// become loops of their own, and what lies inside no longer looks at the place
/// of each element.
void dropCertainBounds(mlir::func::FuncOp function);

} // namespace charonia::gpu

#endif
