// For how many steps the condition of a loop holds.
#ifndef CHARONIA_FRONTENDS_COMMON_LOOPCONDITIONS_H
#define CHARONIA_FRONTENDS_COMMON_LOOPCONDITIONS_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// For how many steps in a row a condition holds.
struct Duration {
  /// Null: for ever, as far as that is told.
  mlir::AffineExpr most;
  /// Whether it holds as long as that, and not only no longer.
  bool isExact = true;
  /// Whether it does not hold again behind that.
  bool isForGood = true;

  bool isNever() const {
    return isExact && most && graph::constantOf(most) == 0;
  }
};

/// As long as both hold.
Duration shorterOf(const Duration &a, const Duration &b, Symbols &symbols);

/// Of a condition that was built for the step that `counter` is one more than:
/// comparisons of what counts by a number each step with sizes, of which both
/// or either hold, or not, as operators or as branches choose them. What data
/// decides is not exact.
Duration durationOf(mlir::Value condition, mlir::AffineExpr counter,
                    Emitter &e);

} // namespace charonia::frontend

#endif
