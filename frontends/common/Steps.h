// Loops that are written out step by step: what their conditions are known to
// be.
#ifndef CHARONIA_FRONTENDS_COMMON_STEPS_H
#define CHARONIA_FRONTENDS_COMMON_STEPS_H

#include "frontends/common/Emitter.h"
#include <set>

namespace charonia::frontend {

/// The integer or truth value (0 or 1) that a tensor of one element is known to
/// be; none where that depends on data or on open sizes.
std::optional<int64_t> knownInteger(mlir::Value value, Emitter &e);

/// What is known of a loop's condition that data decides: whether it is false
/// whatever the data is, and whether steps that are known bring that about, as
/// where a counter is compared, too.
struct StepBound {
  bool isFalse = false, isBounded = false;
};
StepBound boundOf(mlir::Value condition, Emitter &e);

/// The open sizes that a value which is not known follows from, as far as that
/// can be told; empty where it depends on data alone.
std::set<std::string> openSizesBehind(mlir::Value value, Emitter &e);

} // namespace charonia::frontend

#endif
