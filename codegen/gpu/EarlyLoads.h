// Loads behind a loop of products, such as a bias and what a residual
// connection adds: issued in front of it, so that they come while the loop
// runs. In kernels without products loads go ahead of where threads first wait
// for each other.
#ifndef CHARONIA_CODEGEN_GPU_EARLYLOADS_H
#define CHARONIA_CODEGEN_GPU_EARLYLOADS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace charonia::gpu {

/// Words that a thread may hold for later.
constexpr unsigned kMostEarlyWords = 40;

/// Words of a tile that a thread holds.
unsigned wordsOf(mlir::Value tile);

/// Collects `op` and what it needs of its block behind `start`, in order; false
/// if that has an operation with regions or one that `canMove` refuses.
bool collectSlice(mlir::Operation *op, mlir::Operation *start,
                  llvm::function_ref<bool(mlir::Operation *)> canMove,
                  llvm::SetVector<mlir::Operation *> &slice);

/// On a function without layouts. Moves tiles that are wanted behind its first
/// products alone to where they are: which operand of a sum was written first
/// says nothing of when it is to be loaded, and what is made of it would be
/// waited for and held in front of all products.
void sinkBehindProducts(mlir::func::FuncOp function);

/// On a function with layouts, before pipelining. Moves loads that do not
/// depend on the loop, as long as the registers of a thread hold them beside
/// the accumulators.
void issueLoadsEarly(mlir::func::FuncOp function);

/// What is loaded behind a loop and adds up to a few numbers of each row, ahead
/// of the loop: where other warps copy what the loop reads, its own would only
/// wait for these.
void reduceEarly(mlir::scf::ForOp loop);

} // namespace charonia::gpu

#endif
