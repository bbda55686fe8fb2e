// Functions of statistics, as compositions of elementwise operators in double,
// so that what is rounded to float is as good as exact.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_GAMMA_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_GAMMA_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

// Of float64.
/// log(|gamma(x)|), and its derivative.
mlir::Value buildLogGamma(mlir::Value x, Emitter &e);
mlir::Value buildDigamma(mlir::Value x, Emitter &e);
/// The number whose erf is x.
mlir::Value buildInverseErf(mlir::Value x, Emitter &e);

} // namespace charonia::frontend

#endif
