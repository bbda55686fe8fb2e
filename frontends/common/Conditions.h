// What the conditions of loops are made of.
#ifndef CHARONIA_FRONTENDS_COMMON_CONDITIONS_H
#define CHARONIA_FRONTENDS_COMMON_CONDITIONS_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// A truth value in terms of comparisons and of what data decides. Negations
/// are at the leaves.
struct Condition {
  enum class Kind { Known, Both, Either, Other };
  Kind kind = Kind::Other;
  /// Of what is no Both or Either. Of Other `isNegated` says that the condition
  /// is that `value` is false.
  mlir::Value value;
  bool isNegated = false;
  /// Of Known.
  bool truth = false;
  /// Two, of Both and Either.
  std::vector<Condition> parts;

  graph::CompareOp compare() const;
};

/// Sees through what operators or branches make of `and`, `or`, `not` and
/// `break`, whichever operand comes first.
Condition readCondition(mlir::Value value, Emitter &e);

/// Whether a comparison in it that is not known is one with an open size.
bool isOpenBySizes(const Condition &condition, Emitter &e);

} // namespace charonia::frontend

#endif
