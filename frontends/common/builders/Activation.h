// Activation functions, as compositions of elementwise operators. Those with
// numbers that a half type has no exact form of are computed in float.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_ACTIVATION_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_ACTIVATION_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

mlir::Value buildRelu(mlir::Value x, Emitter &e);
/// x, times `slope` below zero; the slope may be a tensor.
mlir::Value buildLeakyRelu(mlir::Value x, mlir::Value slope, Emitter &e);
mlir::Value buildLeakyRelu(mlir::Value x, double slope, Emitter &e);
/// x, and alpha * (exp(x) - 1) below zero.
mlir::Value buildElu(mlir::Value x, double alpha, Emitter &e);
/// The same times `scale`.
mlir::Value buildSelu(mlir::Value x, double alpha, double scale, Emitter &e);
mlir::Value buildCelu(mlir::Value x, double alpha, Emitter &e);
/// alpha * x + beta, cut to 0 .. 1.
mlir::Value buildHardSigmoid(mlir::Value x, double alpha, double beta,
                             Emitter &e);
mlir::Value buildHardSwish(mlir::Value x, Emitter &e);
/// log(1 + exp(x)), written so that exp cannot overflow.
mlir::Value buildSoftplus(mlir::Value x, Emitter &e);
mlir::Value buildMish(mlir::Value x, Emitter &e);
mlir::Value buildSoftsign(mlir::Value x, Emitter &e);
/// x * sigmoid(alpha * x).
mlir::Value buildSwish(mlir::Value x, double alpha, Emitter &e);
/// `approximate` is "none" or "tanh".
mlir::Value buildGelu(mlir::Value x, llvm::StringRef approximate, Emitter &e);
/// softmax along `axis`, or its logarithm.
mlir::Value buildSoftmax(mlir::Value x, int64_t axis, bool log, Emitter &e);

} // namespace charonia::frontend

#endif
