//===- Planner.cpp - Packing buffers into one arena -----------------------===//
//
// 1. Aliases are merged into groups, each with one size and the hull of
// lifetimes.
// 2. Several greedy packers place the groups one after the other, each group in
// the
//    lowest or the tightest gap between the placed groups whose lifetimes
//    overlap its own. They differ in the order of the groups.
// 3. If none reaches the lower bound, a local search changes the best order
// around
//    the groups that pass it, within a fixed budget.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/Planner.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace charonia::plan {

namespace {

struct Group {
  uint64_t size = 0;
  uint64_t alignment = 1;
  uint32_t first = 0;
  uint32_t last = 0;
};

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// Largest sum of sizes that are live at one step.
uint64_t largestLiveSum(const std::vector<Group> &groups, bool aligned) {
  struct Event {
    uint64_t step;
    bool starts;
    uint64_t size;
  };
  std::vector<Event> events;
  events.reserve(groups.size() * 2);
  for (const Group &group : groups) {
    uint64_t size = aligned ? alignUp(group.size, group.alignment) : group.size;
    events.push_back({group.first, true, size});
    events.push_back({uint64_t(group.last) + 1, false, size});
  }
  std::ranges::sort(events, [](const Event &a, const Event &b) {
    return a.step != b.step ? a.step < b.step : a.starts < b.starts;
  });
  uint64_t live = 0, most = 0;
  for (const Event &event : events) {
    live = event.starts ? live + event.size : live - event.size;
    most = std::max(most, live);
  }
  return most;
}

using Order = std::vector<uint32_t>;

/// For every group, the groups whose lifetimes overlap its own.
class Conflicts {
public:
  explicit Conflicts(const std::vector<Group> &groups) : starts(1, 0) {
    for (const Group &a : groups) {
      for (uint32_t b = 0; b < groups.size(); ++b)
        if (&groups[b] != &a && a.first <= groups[b].last &&
            groups[b].first <= a.last)
          list.push_back(b);
      starts.push_back(list.size());
    }
  }
  std::span<const uint32_t> of(uint32_t group) const {
    return std::span(list).subspan(starts[group],
                                   starts[group + 1] - starts[group]);
  }
  size_t total() const { return list.size(); }

private:
  std::vector<size_t> starts;
  std::vector<uint32_t> list;
};

/// Offsets, and how far they are from the goal: the bytes by which groups pass
/// it, summed, so that a search sees progress before the peak itself sinks.
struct Packing {
  uint64_t peak = UINT64_MAX;
  uint64_t excess = UINT64_MAX;
  std::vector<uint64_t> offsets;
};

/// Places groups in a given order.
class Packer {
public:
  Packer(const std::vector<Group> &groups, const Conflicts &conflicts,
         uint64_t goal)
      : groups(groups), conflicts(conflicts), goal(goal) {}

  Packing pack(const Order &order, bool bestFit) {
    Packing result{0, 0, std::vector<uint64_t>(groups.size(), unplaced)};
    for (uint32_t g : order) {
      around.clear();
      for (uint32_t other : conflicts.of(g))
        if (uint64_t begin = result.offsets[other]; begin != unplaced)
          around.push_back({begin, begin + groups[other].size});
      std::ranges::sort(around);
      uint64_t offset = place(groups[g], bestFit);
      uint64_t end = offset + groups[g].size;
      result.offsets[g] = offset;
      result.peak = std::max(result.peak, end);
      if (end > goal)
        result.excess += std::min(end - goal, groups[g].size);
    }
    return result;
  }

private:
  static constexpr uint64_t unplaced = UINT64_MAX;

  uint64_t place(const Group &group, bool bestFit) const {
    uint64_t cursor = 0, best = unplaced, bestGap = UINT64_MAX;
    for (auto [begin, end] : around) {
      uint64_t offset = alignUp(cursor, group.alignment);
      if (offset + group.size <= begin) {
        if (!bestFit)
          return offset;
        if (begin - cursor < bestGap) {
          bestGap = begin - cursor;
          best = offset;
        }
      }
      cursor = std::max(cursor, end);
    }
    return best != unplaced ? best : alignUp(cursor, group.alignment);
  }

  const std::vector<Group> &groups;
  const Conflicts &conflicts;
  uint64_t goal;
  std::vector<std::pair<uint64_t, uint64_t>> around; ///< Scratch of pack().
};

/// The greedy orders. Ties end in the index, so that results never depend on
/// the sort.
std::vector<Order> makeOrders(const std::vector<Group> &groups) {
  Order identity(groups.size());
  std::iota(identity.begin(), identity.end(), 0);
  std::vector<Order> orders;
  auto add = [&](auto key) {
    Order order = identity;
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
      auto keyA = key(groups[a]), keyB = key(groups[b]);
      return keyA != keyB ? keyA > keyB : a < b;
    });
    orders.push_back(std::move(order));
  };
  auto span = [](const Group &g) { return uint64_t(g.last) - g.first + 1; };
  using Pair = std::pair<uint64_t, uint64_t>;
  add([&](const Group &g) { return Pair(g.size, span(g)); });
  add([&](const Group &g) {
    return static_cast<unsigned __int128>(g.size) * span(g);
  });
  add([&](const Group &g) { return Pair(span(g), g.size); });
  add([&](const Group &g) { return Pair(~uint64_t(g.first), g.size); });
  add([&](const Group &g) { return Pair(g.last, g.size); });

  // Lane by lane of a partition into lanes whose groups follow each other in
  // time. It packs chains perfectly: every second buffer at the bottom.
  std::vector<uint32_t> lane(groups.size());
  std::vector<uint64_t> laneEnd;
  Order byStart = identity;
  std::ranges::sort(byStart, [&](uint32_t a, uint32_t b) {
    return std::pair(groups[a].first, a) < std::pair(groups[b].first, b);
  });
  for (uint32_t g : byStart) {
    size_t l = 0;
    while (l < laneEnd.size() && laneEnd[l] > groups[g].first)
      ++l;
    if (l == laneEnd.size())
      laneEnd.push_back(0);
    laneEnd[l] = uint64_t(groups[g].last) + 1;
    lane[g] = static_cast<uint32_t>(l);
  }
  add([&](const Group &g) {
    return Pair(~uint64_t(lane[&g - groups.data()]), g.size);
  });

  // By the pressure of the busiest step that a group is live at: what is needed
  // at the worst moment is packed first.
  std::vector<uint32_t> steps;
  for (const Group &group : groups)
    steps.push_back(group.first);
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::vector<uint64_t> pressure(steps.size());
  auto range = [&](const Group &g) {
    auto begin = std::ranges::lower_bound(steps, g.first) - steps.begin();
    auto end = std::ranges::upper_bound(steps, g.last) - steps.begin();
    return std::pair(begin, end);
  };
  for (const Group &group : groups)
    for (auto [i, end] = range(group); i < end; ++i)
      pressure[i] += group.size;
  auto worst = [&](const Group &g) {
    auto [begin, end] = range(g);
    return *std::max_element(pressure.begin() + begin, pressure.begin() + end);
  };
  add([&](const Group &g) { return Pair(worst(g), g.size); });
  return orders;
}

Packing packGroups(const std::vector<Group> &groups, uint64_t goal) {
  Conflicts conflicts(groups);
  Packer packer(groups, conflicts, goal);
  Packing best;
  // Where the search continues from; may have a higher peak than `best`.
  Packing current;
  Order currentOrder;
  bool currentFit = false;
  for (const Order &order : makeOrders(groups))
    for (bool bestFit : {false, true}) {
      Packing packing = packer.pack(order, bestFit);
      if (packing.excess < current.excess) {
        current = packing;
        currentOrder = order;
        currentFit = bestFit;
      }
      if (packing.peak < best.peak)
        best = std::move(packing);
      if (best.peak <= goal)
        return best;
    }

  // The budget keeps a thousand groups below some tens of milliseconds.
  uint64_t rounds = std::min<uint64_t>(
      3000, 2'000'000 / (groups.size() + conflicts.total() + 1));
  uint64_t random = 0x9e3779b97f4a7c15;
  auto next = [&](uint64_t bound) {
    random = random * 6364136223846793005 + 1442695040888963407;
    return (random >> 33) % bound;
  };
  constexpr uint64_t patience = 600;
  std::vector<uint32_t> beyond;
  for (uint64_t round = 0, since = 0; round < rounds && since < patience;
       ++round, ++since) {
    // A group beyond the goal moves before one of those it conflicts with, or
    // one of these moves before another: that changes who gets the low places.
    beyond.clear();
    for (uint32_t g = 0; g < groups.size(); ++g)
      if (current.offsets[g] + groups[g].size > goal)
        beyond.push_back(g);
    uint32_t mover = beyond[next(beyond.size())];
    auto rivals = conflicts.of(mover);
    if (rivals.empty())
      break; // One group alone passes the goal: only by its alignment.
    uint32_t other = rivals[next(rivals.size())];
    if (next(2))
      std::swap(mover, other);
    Order order = currentOrder;
    auto from = std::ranges::find(order, mover);
    auto to = std::ranges::find(order, other);
    if (to < from)
      std::rotate(to, from, from + 1);
    else
      std::rotate(from, from + 1, to + 1);
    bool bestFit = next(16) == 0 ? !currentFit : currentFit;
    Packing packing = packer.pack(order, bestFit);
    if (packing.peak < best.peak)
      best = packing;
    if (best.peak <= goal)
      break;
    if (packing.excess <= current.excess) {
      if (packing.excess < current.excess)
        since = 0;
      current = std::move(packing);
      currentOrder = std::move(order);
      currentFit = bestFit;
    }
  }
  return best;
}

Status wrong(size_t index, const char *what) {
  return Status(StatusCode::InvalidArgument,
                "memory planner: buffer " + std::to_string(index) + " " + what);
}

} // namespace

Result<ArenaPlan> planArena(std::span<const BufferRequest> requests) {
  // The outermost buffer of each chain of aliases, and the place inside it.
  struct Root {
    uint32_t index;
    uint64_t offset;
  };
  std::vector<Root> roots(requests.size());
  uint64_t total = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const BufferRequest &request = requests[i];
    if (request.firstStep > request.lastStep)
      return wrong(i, "dies before it is born");
    if (request.alignment == 0 ||
        (request.alignment & (request.alignment - 1)) != 0)
      return wrong(i, "has an alignment that is no power of two");
    // Leaves room for aligning every buffer up.
    if (request.size > INT64_MAX / 2 ||
        __builtin_add_overflow(total, request.size + request.alignment,
                               &total) ||
        total > INT64_MAX / 2)
      return Status(StatusCode::OutOfRange,
                    "memory planner: the buffers' sizes overflow");
    uint32_t root = static_cast<uint32_t>(i);
    uint64_t offset = 0;
    for (size_t hops = 0; requests[root].alias != noAlias; ++hops) {
      const BufferRequest &inner = requests[root];
      if (inner.alias >= requests.size() || hops == requests.size())
        return wrong(i, "has an alias that is missing or its own");
      const BufferRequest &outer = requests[inner.alias];
      if (inner.aliasOffset > outer.size ||
          inner.size > outer.size - inner.aliasOffset)
        return wrong(i, "leaves the buffer that it is an alias of");
      offset += inner.aliasOffset;
      root = inner.alias;
    }
    if (offset % request.alignment != 0)
      return wrong(i,
                   "is not aligned inside the buffer that it is an alias of");
    roots[i] = {root, offset};
  }

  std::vector<uint32_t> groupOf(requests.size(), noAlias);
  std::vector<Group> groups;
  ArenaPlan plan;
  for (size_t i = 0; i < requests.size(); ++i) {
    uint32_t root = roots[i].index;
    // Nothing is placed for empty buffers.
    if (requests[root].size == 0)
      continue;
    const BufferRequest &request = requests[i];
    if (groupOf[root] == noAlias) {
      groupOf[root] = static_cast<uint32_t>(groups.size());
      groups.push_back({requests[root].size, request.alignment,
                        request.firstStep, request.lastStep});
    }
    Group &group = groups[groupOf[root]];
    group.alignment = std::max<uint64_t>(group.alignment, request.alignment);
    group.first = std::min(group.first, request.firstStep);
    group.last = std::max(group.last, request.lastStep);
    plan.alignment = std::max(plan.alignment, group.alignment);
  }

  plan.offsets.resize(requests.size());
  plan.lowerBound = largestLiveSum(groups, false);
  if (groups.empty())
    return plan;
  Packing packing = packGroups(groups, largestLiveSum(groups, true));
  plan.peak = packing.peak;
  for (size_t i = 0; i < requests.size(); ++i)
    if (uint32_t group = groupOf[roots[i].index]; group != noAlias)
      plan.offsets[i] = packing.offsets[group] + roots[i].offset;
  return plan;
}

} // namespace charonia::plan
