// Conversions to floats of 8 bits.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_FLOAT8_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_FLOAT8_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// `x` converted to `element`; to another float of 8 bits as the finite number
/// nearest to it, infinities too, where a cast gives infinity or NaN.
mlir::Value buildSaturated(mlir::Value x, mlir::Type element, Emitter &e);

} // namespace charonia::frontend

#endif
