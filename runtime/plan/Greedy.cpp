//===- Greedy.cpp - Packing group by group in a chosen order --------------===//
//
// Greedy packers place the groups one after the other, each group in the lowest
// or the tightest gap between the placed groups whose lifetimes overlap its
// own. They differ in the order of the groups. A local search then changes the
// best order around the groups that pass the goal.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/Packing.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace charonia::plan {

namespace {

/// Groups by their first step.
Order byBirth(const std::vector<Group> &groups) {
  return orderBy(groups.size(), [&](uint32_t g) { return groups[g].first; });
}

/// For every group, the groups whose lifetimes overlap its own.
class Conflicts {
public:
  /// Nothing if there are more than `most` of them (each pair counts twice).
  static std::optional<Conflicts> find(const std::vector<Group> &groups,
                                       uint64_t most) {
    Order order = byBirth(groups);
    if (count(groups, order) > most)
      return std::nullopt;
    Conflicts unsorted;
    unsorted.collect(groups, order);
    return unsorted.transposed();
  }
  std::span<const uint32_t> of(uint32_t group) const {
    return std::span(list).subspan(starts[group],
                                   starts[group + 1] - starts[group]);
  }
  size_t total() const { return list.size(); }

private:
  /// A group meets those that were born before it and have not died.
  static uint64_t count(const std::vector<Group> &groups, const Order &order) {
    std::vector<uint32_t> deaths;
    for (const Group &group : groups)
      deaths.push_back(group.last);
    std::ranges::sort(deaths);
    uint64_t pairs = 0, dead = 0, born = 0;
    for (uint32_t g : order) {
      while (dead < deaths.size() && deaths[dead] < groups[g].first)
        ++dead;
      pairs += born++ - dead;
    }
    return 2 * pairs;
  }

  void collect(const std::vector<Group> &groups, const Order &order) {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    std::vector<uint32_t> live;
    for (uint32_t g : order) {
      std::erase_if(live, [&](uint32_t other) {
        return groups[other].last < groups[g].first;
      });
      for (uint32_t other : live)
        pairs.emplace_back(g, other);
      live.push_back(g);
    }
    starts.assign(groups.size() + 1, 0);
    for (auto [a, b] : pairs)
      ++starts[a + 1], ++starts[b + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<size_t> next(starts.begin(), starts.end() - 1);
    list.resize(starts.back());
    for (auto [a, b] : pairs)
      list[next[a]++] = b, list[next[b]++] = a;
  }

  /// The same relation, which is symmetric, with every list in order.
  Conflicts transposed() const {
    Conflicts result;
    result.starts = starts;
    result.list.resize(list.size());
    std::vector<size_t> next(starts.begin(), starts.end() - 1);
    for (uint32_t g = 0; g + 1 < starts.size(); ++g)
      for (uint32_t other : of(g))
        result.list[next[other]++] = g;
    return result;
  }

  std::vector<size_t> starts;
  std::vector<uint32_t> list;
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
      looks += 1 + conflicts.of(g).size();
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

  uint64_t looks = 0; ///< Of all packings.

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

/// The greedy orders, made when they are asked for.
class Orders {
public:
  explicit Orders(const std::vector<Group> &groups) : groups(groups) {}
  static constexpr int count = 7;

  Order make(int which) const {
    auto span = [](const Group &g) { return uint64_t(g.last) - g.first + 1; };
    switch (which) {
    case 0:
      return byLane(); // The one that most models need.
    case 1:
      return sorted([&](const Group &g) { return Pair(g.size, span(g)); });
    case 2:
      return sorted([&](const Group &g) {
        return static_cast<unsigned __int128>(g.size) * span(g);
      });
    case 3:
      return sorted([&](const Group &g) { return Pair(span(g), g.size); });
    case 4:
      return sorted(
          [&](const Group &g) { return Pair(~uint64_t(g.first), g.size); });
    case 5:
      return sorted([&](const Group &g) { return Pair(g.last, g.size); });
    default:
      return byPressure();
    }
  }

private:
  using Pair = std::pair<uint64_t, uint64_t>;

  /// The largest key first.
  template <typename Key> Order sorted(Key key) const {
    return orderBy(groups.size(),
                   [&](uint32_t g) { return inverted(key(groups[g])); });
  }
  static Pair inverted(Pair key) { return {~key.first, ~key.second}; }
  static unsigned __int128 inverted(unsigned __int128 key) { return ~key; }

  /// Lane by lane of a partition into lanes whose groups follow each other in
  /// time. It packs chains perfectly: every second buffer at the bottom.
  Order byLane() const {
    std::vector<uint32_t> lane(groups.size());
    std::vector<uint64_t> laneEnd;
    for (uint32_t g : byBirth(groups)) {
      size_t l = 0;
      while (l < laneEnd.size() && laneEnd[l] > groups[g].first)
        ++l;
      if (l == laneEnd.size())
        laneEnd.push_back(0);
      laneEnd[l] = uint64_t(groups[g].last) + 1;
      lane[g] = static_cast<uint32_t>(l);
    }
    return sorted([&](const Group &g) {
      return Pair(~uint64_t(lane[&g - groups.data()]), g.size);
    });
  }

  /// By the pressure of the busiest step that a group is live at: what is
  /// needed at the worst moment is packed first.
  Order byPressure() const {
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
    std::vector<uint64_t> worst;
    for (const Group &group : groups) {
      auto [begin, end] = range(group);
      worst.push_back(
          *std::max_element(pressure.begin() + begin, pressure.begin() + end));
    }
    return sorted([&](const Group &g) {
      return Pair(worst[&g - groups.data()], g.size);
    });
  }

  const std::vector<Group> &groups;
};

// Looks at pairs of groups that live together: what the greedy packers may
// take, what one packing may, and what the search may. A look takes some
// nanoseconds.
constexpr uint64_t greedyBudget = 300'000;
constexpr uint64_t mostConflicts = 500'000;
constexpr uint64_t searchBudget = 2'000'000;
/// Where there are more groups, a search has too few rounds to find anything.
constexpr size_t mostSearched = 2048;

/// Where a search goes on from; may have a higher peak than the best packing.
struct Candidate {
  Packing packing;
  Order order;
  bool bestFit = false;
};

/// Local search; leaves the best packing it has seen in `best`.
void search(const std::vector<Group> &groups, const Conflicts &conflicts,
            Packer &packer, uint64_t goal, Candidate current, Packing &best) {
  uint64_t rounds = std::min<uint64_t>(
      3000, searchBudget / (groups.size() + conflicts.total() + 1));
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
      if (current.packing.offsets[g] + groups[g].size > goal)
        beyond.push_back(g);
    uint32_t mover = beyond[next(beyond.size())];
    auto rivals = conflicts.of(mover);
    if (rivals.empty())
      return; // One group alone passes the goal: only by its alignment.
    uint32_t other = rivals[next(rivals.size())];
    if (next(2))
      std::swap(mover, other);
    Order order = current.order;
    auto from = std::ranges::find(order, mover);
    auto to = std::ranges::find(order, other);
    if (to < from)
      std::rotate(to, from, from + 1);
    else
      std::rotate(from, from + 1, to + 1);
    bool bestFit = next(16) == 0 ? !current.bestFit : current.bestFit;
    Packing packing = packer.pack(order, bestFit);
    if (packing.peak < best.peak)
      best = packing;
    if (best.peak <= goal)
      return;
    if (packing.excess <= current.packing.excess) {
      if (packing.excess < current.packing.excess)
        since = 0;
      current = {std::move(packing), std::move(order), bestFit};
    }
  }
}

} // namespace

uint64_t packGreedily(const std::vector<Group> &groups, uint64_t goal,
                      Packing &best) {
  std::optional<Conflicts> conflicts = Conflicts::find(groups, mostConflicts);
  if (!conflicts)
    return 0;
  Packer packer(groups, *conflicts, goal);
  Orders orders(groups);
  Candidate current;
  for (int i = 0; i < 2 * Orders::count && packer.looks < greedyBudget; ++i) {
    bool bestFit = i >= Orders::count;
    Order order = orders.make(i % Orders::count);
    Packing packing = packer.pack(order, bestFit);
    if (packing.peak < best.peak)
      best = packing;
    if (best.peak <= goal)
      return packer.looks;
    if (packing.excess < current.packing.excess)
      current = {std::move(packing), std::move(order), bestFit};
  }
  if (groups.size() <= mostSearched)
    search(groups, *conflicts, packer, goal, std::move(current), best);
  return packer.looks;
}

} // namespace charonia::plan
