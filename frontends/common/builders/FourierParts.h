// What transforms of known and of open lengths share. Private to the builders.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_FOURIERPARTS_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_FOURIERPARTS_H

#include "frontends/common/builders/Fourier.h"

namespace charonia::frontend {

/// A part of the last dimension, which goes, with the axis moved to the end.
mlir::Value componentOf(mlir::Value x, int64_t part, int64_t axis, Emitter &e);

/// The permutation that brings the last dimension of `rank` to `axis`.
llvm::SmallVector<int64_t> fromEndTo(int64_t axis, int64_t rank);

/// Parts, permuted by `back`, side by side in a new last dimension.
mlir::Value joinParts(Values parts, llvm::ArrayRef<int64_t> back, Emitter &e);

/// The first `extent` elements along the axis; zeros are put behind those that
/// are there.
mlir::Value fitTo(mlir::Value x, int64_t axis, mlir::AffineExpr extent,
                  Emitter &e);

/// The transform of x, of `parts` parts, of a length that is known at run time
/// alone.
mlir::Value openTransform(mlir::Value x, int64_t parts, const Fourier &how,
                          Emitter &e);

} // namespace charonia::frontend

#endif
