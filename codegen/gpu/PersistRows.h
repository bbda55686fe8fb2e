// Program instances that walk along several rows, one after the other.
#ifndef CHARONIA_CODEGEN_GPU_PERSISTROWS_H
#define CHARONIA_CODEGEN_GPU_PERSISTROWS_H

#include "codegen/target/GpuTarget.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace charonia::gpu {

/// Behind keepRows. A row that is kept is waited for at its start, by all
/// instances of a multiprocessor in much the same moment, and nothing is read
/// while it is written. Where there are more rows than `residents` instances of
/// each multiprocessor, just as many instances are started, each takes several
/// rows, and what the last walk along one has read gives its place to the same
/// tile of the next row.
/// Says how many instances these are; nothing where it is not done.
std::optional<int64_t> persistRows(mlir::func::FuncOp function,
                                   const GpuTarget &target, int64_t residents);

} // namespace charonia::gpu

#endif
