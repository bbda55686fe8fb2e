//===- Sweep.cpp - Packing by one pass over time --------------------------===//

#include "runtime/plan/Packing.h"

#include <algorithm>
#include <map>
#include <set>

namespace charonia::plan {

namespace {

/// The free gaps of an arena at one moment of a sweep.
class FreeGaps {
public:
  uint64_t allocate(uint64_t size, uint64_t alignment) {
    // The tightest gaps may be spoiled by their alignment; one that has room
    // for the worst alignment never is.
    auto gap = bySize.lower_bound({size, 0});
    for (int tries = 0; tries < 4 && gap != bySize.end(); ++tries, ++gap)
      if (fits(*gap, size, alignment))
        return take(*gap, size, alignment);
    gap = bySize.lower_bound({size + alignment - 1, 0});
    return gap != bySize.end() ? take(*gap, size, alignment)
                               : extend(size, alignment);
  }

  void release(uint64_t offset, uint64_t size) {
    auto after = byOffset.lower_bound(offset);
    if (after != byOffset.end() && after->first == offset + size) {
      size += after->second;
      after = erase(after);
    }
    if (after != byOffset.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        erase(before);
      }
    }
    insert(offset, size);
  }

private:
  using Gaps = std::map<uint64_t, uint64_t>;
  using Gap = std::pair<uint64_t, uint64_t>; ///< Size, offset.

  static bool fits(Gap gap, uint64_t size, uint64_t alignment) {
    return alignUp(gap.second, alignment) + size <= gap.second + gap.first;
  }

  void insert(uint64_t offset, uint64_t size) {
    if (size == 0)
      return;
    byOffset[offset] = size;
    bySize.insert({size, offset});
  }
  Gaps::iterator erase(Gaps::iterator gap) {
    bySize.erase({gap->second, gap->first});
    return byOffset.erase(gap);
  }
  uint64_t take(Gap gap, uint64_t size, uint64_t alignment) {
    auto [bytes, begin] = gap;
    uint64_t offset = alignUp(begin, alignment);
    erase(byOffset.find(begin));
    insert(begin, offset - begin);
    insert(offset + size, begin + bytes - offset - size);
    return offset;
  }
  /// At the end, which moves up; a gap that reaches it is used.
  uint64_t extend(uint64_t size, uint64_t alignment) {
    uint64_t begin = end;
    if (!byOffset.empty()) {
      auto last = std::prev(byOffset.end());
      if (last->first + last->second == end) {
        begin = last->first;
        erase(last);
      }
    }
    uint64_t offset = alignUp(begin, alignment);
    insert(begin, offset - begin);
    end = offset + size;
    return offset;
  }

  Gaps byOffset; ///< Offset to size.
  std::set<Gap> bySize;
  uint64_t end = 0;
};

} // namespace

Packing sweep(const std::vector<Group> &groups, bool backward) {
  auto born = [&](uint32_t g) -> int64_t {
    return backward ? -int64_t(groups[g].last) : int64_t(groups[g].first);
  };
  auto dies = [&](uint32_t g) -> int64_t {
    return backward ? -int64_t(groups[g].first) : int64_t(groups[g].last);
  };
  // The largest of those that are born together first.
  Order births = orderBy(groups.size(), [&](uint32_t g) {
    return std::pair(born(g), ~groups[g].size);
  });
  Order deaths = orderBy(groups.size(), dies);
  Packing result{0, 0, std::vector<uint64_t>(groups.size())};
  FreeGaps gaps;
  auto next = deaths.begin();
  for (uint32_t g : births) {
    for (; dies(*next) < born(g); ++next)
      gaps.release(result.offsets[*next], groups[*next].size);
    result.offsets[g] = gaps.allocate(groups[g].size, groups[g].alignment);
    result.peak = std::max(result.peak, result.offsets[g] + groups[g].size);
  }
  return result;
}

} // namespace charonia::plan
