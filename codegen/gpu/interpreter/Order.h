// Who knows what of whom, where barriers of a whole block are not all that
// orders its threads: vector clocks.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_ORDER_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_ORDER_H

#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cstdint>
#include <vector>

namespace charonia::interpreter {

/// Up to which of its epochs each agent is known. Agents are a block's threads,
/// whose epochs end where they publish what they did; its warpgroups, whose
/// epochs are groups of products that are done; and its mbarriers, whose epochs
/// are phases that the copy engine has completed.
class Clock {
public:
  uint32_t operator[](unsigned agent) const {
    return agent < epochs.size() ? epochs[agent] : 0;
  }
  void raise(unsigned agent, uint32_t epoch) {
    if (agent >= epochs.size())
      epochs.resize(agent + 1);
    epochs[agent] = std::max(epochs[agent], epoch);
  }
  void join(const Clock &other) {
    if (other.epochs.size() > epochs.size())
      epochs.resize(other.epochs.size());
    for (size_t i = 0; i < other.epochs.size(); ++i)
      epochs[i] = std::max(epochs[i], other.epochs[i]);
  }

private:
  std::vector<uint32_t> epochs;
};

/// Something that an agent did in one of its epochs.
struct Deed {
  uint32_t agent = 0, epoch = 0, operation = 0;
};

/// The deeds at a granule of shared memory that nothing has followed yet:
/// several threads may write the same value there.
struct Deeds {
  llvm::SmallVector<Deed, 1> writes, reads;
};

/// An object of synchronization in shared memory.
struct Mbarrier {
  uint32_t address = 0;
  uint32_t agent = 0; ///< As which its completed phases are known.
  uint32_t count = 0; ///< Arrivals that a phase takes.
  uint32_t pending = 0, phase = 0;
  /// Bytes of this phase: that arrivals said, of copies that began, that came.
  int64_t expected = 0, issued = 0, landed = 0;
  Clock arriving;      ///< What those know that arrived in this phase.
  Clock published;     ///< What those know that wait for it.
  uint32_t waited = 0; ///< Phases that somebody has waited for.
  Deed start;          ///< Its initialization.
  bool isFenced = false;

  bool isDone(uint32_t parity) const { return (phase ^ parity) & 1; }
};

} // namespace charonia::interpreter

#endif
