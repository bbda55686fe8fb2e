// Bands against all places of a tensor: what is found holds just there, and
// bands that places are drawn from are found.
#include "graph/passes/Bands.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace charonia::graph;

namespace {

using Shape = llvm::SmallVector<int64_t>;

Shape placeOf(const Shape &shape, int64_t number) {
  Shape place(shape.size());
  for (size_t d = shape.size(); d-- > 0; number /= shape[d])
    place[d] = number % shape[d];
  return place;
}

bool isWithin(llvm::ArrayRef<Band> bands, const Shape &place) {
  return llvm::all_of(bands, [&](const Band &band) {
    int64_t value = place[band.to] - (band.from < 0 ? 0 : place[band.from]);
    return value >= band.low.value_or(value) &&
           value <= band.high.value_or(value);
  });
}

std::vector<bool> placesWithin(llvm::ArrayRef<Band> bands, const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  std::vector<bool> holds;
  for (int64_t i = 0; i < count; ++i)
    holds.push_back(isWithin(bands, placeOf(shape, i)));
  return holds;
}

auto bandsIn(const Shape &shape, const std::vector<bool> &holds) {
  return bandsOf(shape, [&](int64_t i) { return bool(holds[i]); });
}

TEST(Bands, FindsThoseThatPlacesAreDrawnFrom) {
  std::mt19937 random(11);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  unsigned some = 0;
  for (int round = 0; round < 500; ++round) {
    Shape shape;
    for (int64_t rank = draw(2, 3); rank > 0; --rank)
      shape.push_back(draw(2, 7));
    if (draw(0, 1))
      shape.insert(shape.begin() + draw(0, shape.size()), 1);
    llvm::SmallVector<Band> drawn;
    for (int64_t to = 0; to < (int64_t)shape.size(); ++to)
      for (int64_t from = -1; from < to; ++from)
        if (draw(0, 2) == 0) {
          Band band{from, to, {}, {}};
          if (draw(0, 1))
            band.low = draw(-2, 1);
          if (draw(0, 1))
            band.high = draw(0, 4);
          drawn.push_back(band);
        }
    std::vector<bool> holds = placesWithin(drawn, shape);
    auto found = bandsIn(shape, holds);
    if (!llvm::is_contained(holds, true)) {
      EXPECT_FALSE(found);
      continue;
    }
    ++some;
    ASSERT_TRUE(found) << "round " << round;
    EXPECT_EQ(placesWithin(*found, shape), holds) << "round " << round;
  }
  EXPECT_GT(some, 200u);
}

TEST(Bands, FindsNoneWhereAPlaceIsAnother) {
  std::mt19937 random(12);
  Shape shape{9, 9};
  unsigned none = 0;
  for (int64_t changed = 0; changed < 81; ++changed) {
    std::vector<bool> holds = placesWithin({{0, 1, -2, 1}}, shape);
    holds[changed] = !holds[changed];
    auto found = bandsIn(shape, holds);
    none += !found;
    if (found)
      EXPECT_EQ(placesWithin(*found, shape), holds) << "changed " << changed;
  }
  EXPECT_GT(none, 70u);
}

TEST(Bands, NeedsTwoOrThreeDimensions) {
  auto all = [](int64_t) { return true; };
  EXPECT_FALSE(bandsOf({1, 8, 1}, all));
  EXPECT_FALSE(bandsOf({2, 2, 2, 2}, all));
  EXPECT_FALSE(bandsOf({4, 0}, all));
  auto found = bandsOf({4, 1, 3}, all);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());
}

} // namespace
