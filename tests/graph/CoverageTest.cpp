#include "graph/analysis/Coverage.h"

#include "gtest/gtest.h"
#include <random>

using namespace charonia::graph;

TEST(Coverage, IsThatOfItsIntervals) {
  std::mt19937 random(3);
  for (unsigned places : {1, 2, 7, 64, 100}) {
    Coverage coverage(places);
    std::vector<unsigned> counts(places);
    std::vector<std::pair<unsigned, unsigned>> intervals;
    auto add = [&](unsigned first, unsigned last, int change) {
      coverage.add(first, last, change);
      for (unsigned p = first; p <= last; ++p)
        counts[p] += change;
    };
    for (int round = 0; round < 400; ++round) {
      if (intervals.empty() || random() % 2) {
        unsigned first = 1 + random() % places, last = random() % places;
        intervals.push_back({first, last});
        add(first, last, 1);
      } else {
        std::swap(intervals[random() % intervals.size()], intervals.back());
        add(intervals.back().first, intervals.back().second, -1);
        intervals.pop_back();
      }
      unsigned place = random() % places, expected = place;
      while (expected > 0 && counts[expected] > 0)
        --expected;
      ASSERT_EQ(coverage.lastFree(place), expected);
    }
  }
}

// One place after the other these would be 10^12 steps.
TEST(Coverage, LongIntervals) {
  constexpr unsigned places = 2'000'000;
  Coverage coverage(places);
  for (unsigned i = 1; i <= places / 4; ++i) {
    coverage.add(i, places - i, 1);
    ASSERT_EQ(coverage.lastFree(places - i), i == 1 ? 0u : 1u);
    ASSERT_EQ(coverage.lastFree(places - 1), i == 1 ? 0u : places - 1);
    if (i % 2)
      coverage.add(i, places - i, -1);
  }
}
