// Steps that were built to be repeated: what more is known of them once they
// are written out, and those that are dropped.
#ifndef CHARONIA_FRONTENDS_COMMON_STEPVALUES_H
#define CHARONIA_FRONTENDS_COMMON_STEPVALUES_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// Those states of which all elements are known in each step that is written
/// out, and so may be sizes. `firsts` are what they are in the first step,
/// `carried` and `next` what a step finds and gives; null where that is none.
llvm::BitVector statesThatFollow(llvm::ArrayRef<mlir::Value> firsts,
                                 llvm::ArrayRef<mlir::Value> carried,
                                 llvm::ArrayRef<mlir::Value> next, Emitter &e);

/// Whether all elements of `value` are known in each step that is written out,
/// where those of the states `known` are.
bool followsFrom(mlir::Value value, llvm::ArrayRef<mlir::Value> carried,
                 const llvm::BitVector &known, Emitter &e);

/// Whether operators behind `last` multiply by what the model stores for their
/// step alone, or states are that `follow`. Written out these are weights of
/// their own, which are laid out for their products beforehand: of 100 of
/// 256x256 and one row these take 0.6 of the time.
bool hasWeightsOfSteps(mlir::Operation *last, mlir::Block &block,
                       llvm::ArrayRef<mlir::Value> carried,
                       const llvm::BitVector &follow, Emitter &e);

/// Whether operators behind `last` read or write at positions that are computed
/// of states that `follow`. Written out these are known, and have to lie
/// inside.
bool hasPositionsOfStates(mlir::Operation *last, mlir::Block &block,
                          llvm::ArrayRef<mlir::Value> carried,
                          const llvm::BitVector &follow, Emitter &e);

} // namespace charonia::frontend

#endif
