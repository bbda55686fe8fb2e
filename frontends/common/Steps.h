// Loops that are written out step by step: what their conditions are known to
// be.
#ifndef CHARONIA_FRONTENDS_COMMON_STEPS_H
#define CHARONIA_FRONTENDS_COMMON_STEPS_H

#include "frontends/common/Emitter.h"
#include <functional>
#include <set>

namespace charonia::frontend {

/// How many steps a loop has: no more, or, as data never ends it before, just
/// so many, of which the condition need not be asked.
struct StepCount {
  int64_t most;
  bool isExact = false;
};

/// A loop, whose states the frontend keeps. Each function may fail, after which
/// nothing more is asked.
struct StepLoop {
  /// The condition of what the states are, before step `step`; null where there
  /// is none.
  std::function<llvm::FailureOr<mlir::Value>(int64_t step)> test;
  /// Makes the states what they are after that step.
  std::function<llvm::LogicalResult(int64_t step)> take;
  /// Where given, data may end the loop before steps that are known do: all of
  /// these are taken, and this is asked to keep apart what the states were when
  /// it ended. With null before the first step that may not be: what they are.
  /// Then after each step: what they are if `runs`, else what was kept.
  std::function<llvm::LogicalResult(mlir::Value runs)> keep;
  /// Whether the condition is a choice: as long as what decides it is known to
  /// hold, only the side that data computes is seen of it.
  bool isChoice = false;
  /// How many steps there are, if that is known.
  std::optional<StepCount> count;
  /// What to do about a number of steps that follows from data, and one that is
  /// too large.
  const char *dataRemedy, *lengthRemedy;
  /// The option that fixes an open size; empty for a general one.
  std::function<std::string(const std::string &size)> fixSize;
};

/// `state` if the loop runs, else `kept`; null and a failure where steps change
/// its type.
mlir::Value keepState(mlir::Value runs, mlir::Value state, mlir::Value kept,
                      Emitter &e);

/// Writes the loop out, step by step: each has to be known, but as `keep` says.
/// Fails where that is not, or the steps are too many.
llvm::LogicalResult writeOutSteps(const StepLoop &loop, Emitter &e);

/// The integer or truth value (0 or 1) that a tensor of one element is known to
/// be; none where that depends on data or on open sizes.
std::optional<int64_t> knownInteger(mlir::Value value, Emitter &e);

/// The same, also where data is behind it and cannot make it another: of
/// min(8, max(n, 8)).
std::optional<int64_t> boundedInteger(mlir::Value value, Emitter &e);

/// The open sizes that a value which is not known follows from, as far as that
/// can be told; empty where it depends on data alone.
std::set<std::string> openSizesBehind(mlir::Value value, Emitter &e);

} // namespace charonia::frontend

#endif
