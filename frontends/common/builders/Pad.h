// Padding and repetition.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_PAD_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_PAD_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// `value` with `lows` and `highs` more elements, one an axis of `axes`;
/// negative ones cut. `fill` is a scalar, used by mode constant. What a mode
/// needs of sizes is checked or assumed.
mlir::Value buildPad(graph::PadMode mode, mlir::Value value, mlir::Value fill,
                     llvm::ArrayRef<mlir::AffineExpr> lows,
                     llvm::ArrayRef<mlir::AffineExpr> highs,
                     llvm::ArrayRef<int64_t> axes, Emitter &e);

/// `value` repeated along each of its dimensions.
mlir::Value buildTile(mlir::Value value,
                      llvm::ArrayRef<mlir::AffineExpr> repeats, Emitter &e);

} // namespace charonia::frontend

#endif
