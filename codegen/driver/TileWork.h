// How much a tile program computes and fetches, beside what its operators ask
// for.
#ifndef CHARONIA_CODEGEN_DRIVER_TILEWORK_H
#define CHARONIA_CODEGEN_DRIVER_TILEWORK_H

#include "codegen/emit/Schedule.h"
#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::driver {

/// Operations on elements, and bytes. A simple operation (a sum, a comparison,
/// a load or a store) counts as one, a division as four, an elementary function
/// as sixteen. Saturates.
struct TileWork {
  int64_t operations = 0, bytes = 0;
};

/// Of one launch of `function`, a tile program, at these sizes: every operation
/// as often as the program executes it, so with whatever it computes again, and
/// every load, be it from a cache or not.
TileWork countWork(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> sizes);

/// Of the operators of `kernel`, every element of each computed once, and every
/// operand and result of the kernel read or written once.
TileWork neededWork(graph::KernelOp kernel, llvm::ArrayRef<int64_t> sizes);

/// The same where results end with whole tiles of `schedule`: what no tiles can
/// do without. What does not lie along a dimension does not grow with it.
TileWork tiledWork(graph::KernelOp kernel, llvm::ArrayRef<int64_t> sizes,
                   const emit::Schedule &schedule);

} // namespace charonia::driver

#endif
