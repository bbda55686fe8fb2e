// Results that are written past the caches of a CPU.
#ifndef CHARONIA_CODEGEN_EMIT_STREAMED_H
#define CHARONIA_CODEGEN_EMIT_STREAMED_H

#include "codegen/emit/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::emit {

/// Marks the results among the arguments of a kernel's function where the
/// kernel touches more than caches hold, so that lines would be read only to be
/// written over; of open sizes with what tells it. Its tiles must be long runs
/// of memory: single lines here and there are slower so. What takes arithmetic
/// waits for no store.
void markStreamed(mlir::func::FuncOp function, graph::KernelOp kernel,
                  const EmitTarget &target, const Schedule &schedule);

} // namespace charonia::emit

#endif
