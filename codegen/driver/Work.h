// What a kernel computes and moves: figures for reports, not for programs.
#ifndef CHARONIA_CODEGEN_DRIVER_WORK_H
#define CHARONIA_CODEGEN_DRIVER_WORK_H

#include "charonia/signature.h"
#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::driver {

struct KernelWork {
  /// Floating-point operations, and bytes that have to be read and written, at
  /// least once each; the largest integer where they are more.
  ShapeExpr flops, bytes;
};

/// Of one launch of `kernel`. What an engine cannot hold as an expression is
/// given as its value at the optimal sizes of `symbols`, so no kernel is too
/// large to be measured.
KernelWork measureWork(graph::KernelOp kernel,
                       llvm::ArrayRef<graph::Symbol> symbols);

/// Says where kernels compute in every run what follows from weights alone, as
/// that was too much work for `@prepare`.
void warnOfRepeatedWork(mlir::func::FuncOp function,
                        llvm::ArrayRef<graph::Symbol> symbols);

} // namespace charonia::driver

#endif
