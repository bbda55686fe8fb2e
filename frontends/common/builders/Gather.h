// Elements chosen by index tensors.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_GATHER_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_GATHER_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// Fails where positions that are known, or follow from sizes or from the
/// number of a step that is repeated, leave dimension `axis` of the table; of
/// sizes that are open it is assumed that they do not: a table limits a
/// sequence's length. Of positions that are written in the model it is checked,
/// where declared ranges have sizes that are too small. In a branch that may
/// not be taken nothing is assumed.
llvm::LogicalResult checkPositions(mlir::Value table, mlir::Value positions,
                                   int64_t axis, Emitter &e);
/// The same of tuples of positions, which the last dimension of `tuples` lists,
/// and of the dimensions of the table from `firstAxis` on.
llvm::LogicalResult checkTuples(mlir::Value table, mlir::Value tuples,
                                int64_t firstAxis, Emitter &e);
/// The same of positions along `axis` that stand for elements of their own
/// place in the others, in which they may not leave x either.
llvm::LogicalResult checkPlaces(mlir::Value x, mlir::Value positions,
                                int64_t axis, Emitter &e);
/// x with `updates` put at, or combined with what is at, `positions` along
/// `axis`; all three have one rank.
mlir::Value buildScatterElements(mlir::Value x, mlir::Value positions,
                                 mlir::Value updates, int64_t axis,
                                 graph::ScatterReduction reduction, Emitter &e);

} // namespace charonia::frontend

#endif
