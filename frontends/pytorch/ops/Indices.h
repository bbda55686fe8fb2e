// Index tensors, one a dimension: x[i, :, j].
#ifndef CHARONIA_FRONTENDS_PYTORCH_OPS_INDICES_H
#define CHARONIA_FRONTENDS_PYTORCH_OPS_INDICES_H

#include "frontends/pytorch/ops/Rows.h"

namespace charonia::frontend::pytorch {

/// Index tensors are spread to one shape, `common`. Where they index dimensions
/// that follow each other, the result has that shape's dimensions there, else
/// in front.
struct Indices {
  /// Dimensions that are indexed, and those that are not.
  SmallVector<int64_t> axes, others;
  Values positions;
  Exprs common;

  /// The indexed dimensions in front.
  SmallVector<int64_t> order() const;
  /// [common, indexed dimensions].
  Value tuples(Emitter &e) const;
  /// From [common, others] to the result's dimensions.
  SmallVector<int64_t> resultOrder() const;
};

/// Of argument `indices`; masks have to be known, positions are checked.
llvm::FailureOr<Indices> readIndices(Call &c, Value self);

} // namespace charonia::frontend::pytorch

#endif
