//===- Packing.h - The planner's parts --------------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_PLAN_PACKING_H
#define CHARONIA_RUNTIME_PLAN_PACKING_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace charonia::plan {

/// A request that is not empty.
struct Group {
  uint64_t size = 0;
  uint64_t alignment = 1;
  uint32_t first = 0;
  uint32_t last = 0;
};

inline uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// Offsets, and how far they are from the goal: the bytes by which groups pass
/// it, summed, so that a search sees progress before the peak itself sinks.
struct Packing {
  uint64_t peak = UINT64_MAX;
  uint64_t excess = UINT64_MAX;
  std::vector<uint64_t> offsets;
};

using Order = std::vector<uint32_t>;

/// The numbers below `count` by their keys; ties end in the number, so that
/// results never depend on the sort. Keys lie beside each other, as they are
/// compared many times.
template <typename Key> Order orderBy(size_t count, Key key) {
  std::vector<std::pair<decltype(key(0)), uint32_t>> keys;
  keys.reserve(count);
  for (uint32_t i = 0; i < count; ++i)
    keys.emplace_back(key(i), i);
  // As births are: a program's buffers come in the order of its steps.
  if (!std::ranges::is_sorted(keys))
    std::ranges::sort(keys);
  Order order;
  order.reserve(count);
  for (const auto &[k, i] : keys)
    order.push_back(i);
  return order;
}

/// A sweep over time, or back, that gives each group the tightest gap that is
/// free when it is born: n log n, whatever the lifetimes. Leaves `excess` at 0.
Packing sweep(const std::vector<Group> &groups, bool backward);

/// Sets `best` to a packing that reaches `goal` or is the best that a budget
/// allows, and gives the number of looks at pairs of groups that it took. Does
/// nothing and gives 0 where too many groups live together.
uint64_t packGreedily(const std::vector<Group> &groups, uint64_t goal,
                      Packing &best);

} // namespace charonia::plan

#endif // CHARONIA_RUNTIME_PLAN_PACKING_H
