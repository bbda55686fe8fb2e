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

/// A tensor outside of a kernel that it reads or writes.
struct KernelAccess {
  mlir::Type element;
  /// Elements of the tensor, and those that are taken out of it where only
  /// indexing reads it (else null): the kernel needs the smaller number.
  mlir::AffineExpr all, taken;
};
/// What one launch of `kernel` reads and writes, each tensor once. Of memory
/// that is updated, what meets it.
llvm::SmallVector<KernelAccess> accessesOf(graph::KernelOp kernel);

/// Of one launch of `kernel`. What an engine cannot hold as an expression is
/// given as its value at the optimal sizes of `symbols`, so no kernel is too
/// large to be measured.
KernelWork measureWork(graph::KernelOp kernel,
                       llvm::ArrayRef<graph::Symbol> symbols);

/// The same as numbers, at the sizes to optimize for; 0 where there is none.
struct OptimalWork {
  double flops, bytes;
};
OptimalWork workAtOptimum(graph::KernelOp kernel);

/// About how long a launch takes beside others: operations, of which a byte is
/// worth some.
double costOf(graph::KernelOp kernel);

/// Says where kernels compute in every run what follows from weights alone, as
/// that was too much work for `@prepare`.
void warnOfRepeatedWork(mlir::func::FuncOp function,
                        llvm::ArrayRef<graph::Symbol> symbols);

} // namespace charonia::driver

#endif
