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

  /// What data decides.
  static Duration unknown() { return {{}, false, false}; }
  bool isNever() const {
    return isExact && most && graph::constantOf(most) == 0;
  }
};

/// As long as both hold, or either.
Duration shorterOf(const Duration &a, const Duration &b, Symbols &symbols);
Duration longerOf(const Duration &a, const Duration &b, Symbols &symbols);

/// Of a condition that was built for the step that `counter` is one more than:
/// comparisons of what counts by a number each step with sizes, of which both
/// or either hold, or not, as operators or as branches choose them. What data
/// decides is not exact. Adds the values that it goes by to `compared`: that
/// none of them wraps in any step is for the caller to see to, who knows how
/// many there are.
Duration durationOf(mlir::Value condition, mlir::AffineExpr counter, Emitter &e,
                    Values &compared);

} // namespace charonia::frontend

#endif
