// Changing shapes, and keeping the elements.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_SHAPE_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_SHAPE_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// `value` as `dims`, of which one may be open, -1: it follows from the others.
mlir::Value buildReshape(mlir::Value value, Exprs dims, Emitter &e);

/// The dimensions of `value` that are 1, which all others have to be known not
/// to be.
llvm::FailureOr<llvm::SmallVector<int64_t>> unitAxes(mlir::Value value,
                                                     Emitter &e);
/// `value` without these dimensions, which have to be 1.
mlir::Value buildSqueeze(mlir::Value value, llvm::ArrayRef<int64_t> axes,
                         Emitter &e);

/// The product of sizes; null and a failure where it is absurdly large.
mlir::AffineExpr productOfSizes(llvm::ArrayRef<mlir::AffineExpr> sizes,
                                Emitter &e);

} // namespace charonia::frontend

#endif
