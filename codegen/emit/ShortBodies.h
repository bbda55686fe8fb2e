// Bodies of a kernel for few elements along a dimension of open size.
#ifndef CHARONIA_CODEGEN_EMIT_SHORTBODIES_H
#define CHARONIA_CODEGEN_EMIT_SHORTBODIES_H

#include "codegen/emit/Schedule.h"
#include "graph/ir/Dialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace charonia::emit {

/// Where shape symbol `symbol` is at most `most`, which may be the only such
/// size.
struct ShortBody {
  unsigned symbol;
  int64_t most;
  bool isOnly = false;
};

/// What a kernel that is computed element by element on a CPU should have other
/// tiles for, the shortest first: where rows that a program instance has one of
/// are a few elements, each takes as long as some registers would. Of the least
/// size there may be the kernel is one of a known size.
llvm::SmallVector<ShortBody> shortBodiesOf(graph::KernelOp kernel,
                                           const EmitTarget &target,
                                           const Schedule &schedule);

/// A module with the kernel as it is where `body` is chosen, whose schedule is
/// then the cost model's.
mlir::OwningOpRef<mlir::ModuleOp> moduleOf(graph::KernelOp kernel,
                                           const ShortBody &body);

/// Makes what `of` does a side of `function`, which runs where `body` says so;
/// what is left of `of` is empty.
void addBody(mlir::func::FuncOp function, mlir::func::FuncOp of,
             graph::KernelOp kernel, const ShortBody &body);

} // namespace charonia::emit

#endif
