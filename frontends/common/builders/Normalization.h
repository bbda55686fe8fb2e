// Normalizations. Scale and shift are operators beside graph.normalize.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_NORMALIZATION_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_NORMALIZATION_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// (x - mean) / sqrt(variance + epsilon) over `axes`, or x / rms.
mlir::Value buildNormalize(mlir::Value x, llvm::ArrayRef<int64_t> axes,
                           double epsilon, bool rms, Emitter &e);

/// Batch normalization of x, [N, C, ...], by vectors of C: x * (scale /
/// sqrt(variance + epsilon)) + (shift - mean * scale / sqrt(...)). The
/// parenthesized parts, in the type of `variance`, depend on weights alone.
/// Scale and shift may be null.
mlir::Value buildBatchNorm(mlir::Value x, mlir::Value scale, mlir::Value shift,
                           mlir::Value mean, mlir::Value variance,
                           double epsilon, Emitter &e);

/// x, [N, C, ...], with its channels in groups: [N, groups, C / groups, ...].
mlir::Value groupChannels(mlir::Value x, int64_t groups, Emitter &e);

} // namespace charonia::frontend

#endif
