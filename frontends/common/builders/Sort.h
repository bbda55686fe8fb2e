// Elements in order.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_SORT_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_SORT_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// The first `count` elements of `x` along `axis`, in descending order where
/// `largest` is set, else ascending.
struct Selection {
  mlir::Value x;
  int64_t axis;
  mlir::AffineExpr count;
  bool largest;
};

/// Where these elements are: positions (i64) along the axis. Equal elements
/// keep their order, NaN is larger than all others. Fails unless there are so
/// many elements, which is assumed of sizes that are open.
mlir::Value selectPositions(const Selection &selection, Emitter &e);

} // namespace charonia::frontend

#endif
