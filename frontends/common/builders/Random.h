// Numbers that look random.
//
// An engine has no state, so numbers are a function of a stream and of an
// element's place: each run of an engine gives the same ones, whatever device
// or thread computes them, and a seed gives the same ones in every engine.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_RANDOM_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_RANDOM_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// The stream of one more operator of the model: no two have one in common.
/// Without a seed it follows from the operator's place among those that draw,
/// and the user is told that runs do not differ.
uint64_t drawStream(std::optional<double> seed, Emitter &e);

/// Floats in [0, 1), of as many bits as an `element` holds, 24 at most: none is
/// rounded to 1.
mlir::Value buildUniform(llvm::ArrayRef<mlir::AffineExpr> dims, uint64_t stream,
                         mlir::FloatType element, Emitter &e);
/// Floats of mean 0 and deviation 1; none is beyond 5.8.
mlir::Value buildNormal(llvm::ArrayRef<mlir::AffineExpr> dims, uint64_t stream,
                        Emitter &e);
/// For each row of x, [rows, classes], the numbers of `samples` classes, drawn
/// with the probabilities softmax(row): [rows, samples] of `element`.
mlir::Value buildMultinomial(mlir::Value x, int64_t samples, uint64_t stream,
                             mlir::Type element, Emitter &e);

} // namespace charonia::frontend

#endif
