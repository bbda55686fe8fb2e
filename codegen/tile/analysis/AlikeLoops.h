// What two loops over the same numbers both compute.
#ifndef CHARONIA_CODEGEN_TILE_ANALYSIS_ALIKELOOPS_H
#define CHARONIA_CODEGEN_TILE_ANALYSIS_ALIKELOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace charonia::tile {

/// The buffers that a kernel writes: what it reads of them may differ from one
/// loop to the next.
llvm::SmallPtrSet<mlir::Value, 4> writtenBuffers(mlir::func::FuncOp function);

/// What values of two loops' bodies have in common.
class LoopComparison {
public:
  LoopComparison(mlir::scf::ForOp first, mlir::scf::ForOp second,
                 const llvm::SmallPtrSetImpl<mlir::Value> &written)
      : first(first), second(second), written(written) {}

  /// Whether `x`, of the first loop or around it, is `y` of the second in the
  /// iteration of the same number.
  bool areAlike(mlir::Value x, mlir::Value y);

private:
  bool isCarried(mlir::Value value);
  bool doAlike(mlir::Operation *a, mlir::Operation *b);

  mlir::scf::ForOp first, second;
  const llvm::SmallPtrSetImpl<mlir::Value> &written;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, bool> known;
};

} // namespace charonia::tile

#endif
