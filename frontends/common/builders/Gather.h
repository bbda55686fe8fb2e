// Elements chosen by index tensors.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_GATHER_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_GATHER_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// Fails where positions that are known, or follow from sizes, run out of
/// dimension `axis` of the table; of sizes that are open it is assumed that
/// they do not: a table limits a sequence's length. Of positions that are
/// written in the model it is checked, where declared ranges have sizes that
/// are too small.
llvm::LogicalResult checkPositions(mlir::Value table, mlir::Value positions,
                                   int64_t axis, Emitter &e);
/// The same of tuples of positions that are written in the model, and of the
/// dimensions of the table from `firstAxis` on: the last dimension of `tuples`
/// lists them. In a branch that may not be taken it is but assumed, where
/// ranges allow it.
llvm::LogicalResult checkTuples(mlir::Value table, mlir::Value tuples,
                                int64_t firstAxis, Emitter &e);
/// Fails unless positions lie inside of x in all dimensions but `axis`, where
/// they stand for elements of the same place.
llvm::LogicalResult checkPlaces(mlir::Value x, mlir::Value positions,
                                int64_t axis, Emitter &e);
/// x with `updates` put at, or combined with what is at, `positions` along
/// `axis`; all three have one rank.
mlir::Value buildScatterElements(mlir::Value x, mlir::Value positions,
                                 mlir::Value updates, int64_t axis,
                                 graph::ScatterReduction reduction, Emitter &e);

} // namespace charonia::frontend

#endif
