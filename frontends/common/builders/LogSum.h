// Sums of exponentials, in logarithms.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_LOGSUM_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_LOGSUM_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// log of the sum of exp of the floats up to each one along `axis`.
mlir::Value buildLogSums(mlir::Value x, int64_t axis, Emitter &e);

} // namespace charonia::frontend

#endif
