//===- Planner.h - Packing buffers into one arena ---------------*- C++ -*-===//
//
// Buffers live for an interval of steps; two that are live at one step must not
// share bytes. The planner places them in one arena so that its size comes
// close to the lower bound, the largest number of bytes that are live at one
// step.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_PLAN_PLANNER_H
#define CHARONIA_RUNTIME_PLAN_PLANNER_H

#include "charonia/status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace charonia::plan {

constexpr uint64_t maxLooks = 4'000'000;

/// Buffers that share memory make one request, live as long as any of them is.
struct BufferRequest {
  uint64_t size = 0;       ///< Bytes.
  uint32_t firstStep = 0;  ///< Live from its start
  uint32_t lastStep = 0;   ///< to its end; both inclusive.
  uint32_t alignment = 64; ///< Power of two.
};

struct ArenaPlan {
  std::vector<uint64_t> offsets; ///< One per request.
  uint64_t peak = 0;             ///< Bytes that the arena needs.
  uint64_t lowerBound = 0;       ///< Largest sum of live bytes at one step.
  uint64_t alignment = 1;        ///< Of the arena's start.
  /// Looks at pairs of buffers that live together: what planning takes beyond
  /// n log n. Never more than maxLooks.
  uint64_t looks = 0;
};

/// Deterministic. Fails on an alignment that is no power of two, a lifetime
/// that ends before it starts, or sizes whose sum passes 63 bits.
Result<ArenaPlan> planArena(std::span<const BufferRequest> requests);

} // namespace charonia::plan

#endif // CHARONIA_RUNTIME_PLAN_PLANNER_H
