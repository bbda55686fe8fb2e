// Rows that are read more than once.
#ifndef CHARONIA_CODEGEN_GPU_KEEPROWS_H
#define CHARONIA_CODEGEN_GPU_KEEPROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::gpu {

/// What each program instance may have of a multiprocessor's shared memory
/// where so many share it and one alone may have `sharedBytes`: of each the
/// chip takes 1 KB itself.
inline int64_t sharedBytesOf(int64_t sharedBytes, int64_t instances) {
  return (sharedBytes + 1024) / instances - 1024;
}

/// Loads that several loops, one behind the other, do alike come from shared
/// memory (of `sharedBytes`) if all of their tiles fit there: asynchronous
/// copies bring them, issued all at once before the first loop, so that memory
/// is read once and early. A thread copies what it will read itself. What the
/// first loop makes of a row and another one, and later loops would make again,
/// such as their sum, takes the row's place, rounded to its type where that may
/// be (tile::kMayBeRoundedAttr). What is left to load is asked for before it is
/// needed.
/// Says how many program instances a multiprocessor should have: two where what
/// is kept leaves room for that.
int64_t keepRows(mlir::func::FuncOp function, int64_t sharedBytes);

} // namespace charonia::gpu

#endif
