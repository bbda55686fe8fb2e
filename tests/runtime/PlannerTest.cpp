#include "PlannerGraphs.h"

#include <gtest/gtest.h>

using namespace charonia;
using namespace charonia::plan;
using namespace charonia::test;

namespace {

/// Checks offsets against the definition, one pair and one step at a time.
void checkPlan(const std::vector<BufferRequest> &requests,
               const ArenaPlan &plan) {
  ASSERT_EQ(plan.offsets.size(), requests.size());
  uint64_t end = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const BufferRequest &a = requests[i];
    if (a.size == 0)
      continue;
    EXPECT_EQ(plan.offsets[i] % a.alignment, 0u);
    end = std::max(end, plan.offsets[i] + a.size);
    for (size_t j = 0; j < i; ++j) {
      const BufferRequest &b = requests[j];
      if (b.size == 0)
        continue;
      bool together = a.firstStep <= b.lastStep && b.firstStep <= a.lastStep;
      bool apart = plan.offsets[i] + a.size <= plan.offsets[j] ||
                   plan.offsets[j] + b.size <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " overlaps " << j;
    }
  }
  EXPECT_EQ(plan.peak, end);
  EXPECT_GE(plan.peak, plan.lowerBound);
}

ArenaPlan planned(const std::vector<BufferRequest> &requests) {
  auto plan = planArena(requests);
  EXPECT_TRUE(plan.isOk()) << plan.status().message();
  if (!plan)
    return {};
  checkPlan(requests, *plan);
  return *plan;
}

TEST(Planner, ChainUsesTheTwoLargestNeighbours) {
  std::vector<BufferRequest> requests;
  for (uint32_t i = 0; i < 100; ++i)
    requests.push_back({1024u * (1 + i * 37 % 11), i, i + 1});
  ArenaPlan plan = planned(requests);
  EXPECT_EQ(plan.peak, plan.lowerBound);
}

TEST(Planner, Empty) {
  EXPECT_EQ(planned({}).peak, 0u);
  EXPECT_EQ(planned({{0, 0, 3}}).peak, 0u);
}

TEST(Planner, Errors) {
  auto fails = [](std::vector<BufferRequest> requests, const char *text) {
    auto plan = planArena(requests);
    ASSERT_FALSE(plan.isOk());
    EXPECT_NE(plan.status().message().find(text), std::string::npos)
        << plan.status().message();
  };
  fails({{64, 3, 2}}, "dies before it is born");
  fails({{64, 0, 1, 48}}, "alignment that is no power of two");
  fails({{64, 0, 1, 0}}, "alignment that is no power of two");
  fails({{UINT64_MAX, 0, 1}}, "overflow");
  fails(std::vector<BufferRequest>(4, {INT64_MAX / 4, 0, 1}), "overflow");
}

TEST(Planner, ModelsStayNearTheLowerBound) {
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    ArenaPlan plan = planned(residualGraph(random, 4 + i));
    EXPECT_LE(plan.peak, plan.lowerBound * 1.05) << "residual graph " << i;
  }
  for (uint64_t seq : {1, 37, 128, 512}) {
    ArenaPlan plan = planned(transformerGraph(12, seq));
    EXPECT_LE(plan.peak, plan.lowerBound * 1.05) << "sequence " << seq;
  }
}

TEST(Planner, RandomGraphsDoNotOverlap) {
  double worst = 0, sum = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    uint32_t n = 1 + random() % 120;
    std::vector<BufferRequest> requests;
    for (uint32_t i = 0; i < n; ++i) {
      BufferRequest r;
      r.size = random() % 5 ? random() % 100000 : 0;
      r.firstStep = random() % n;
      r.lastStep = r.firstStep + random() % 12;
      r.alignment = 1u << random() % 9;
      requests.push_back(r);
    }
    ArenaPlan plan = planned(requests);
    if (HasFailure())
      FAIL() << "seed " << seed;
    if (plan.lowerBound) {
      double ratio = double(plan.peak) / plan.lowerBound;
      worst = std::max(worst, ratio);
      sum += ratio;
    }
  }
  // Random intervals are harder than models.
  EXPECT_LT(worst, 1.25);
  EXPECT_LT(sum / 60, 1.05);
}

TEST(Planner, Deterministic) {
  std::mt19937 a(3), b(3);
  EXPECT_EQ(planned(residualGraph(a, 200)).offsets,
            planned(residualGraph(b, 200)).offsets);
}

TEST(Planner, AThousandBuffers) {
  std::mt19937 random(11);
  std::vector<BufferRequest> requests = randomGraph(random, 1000, 20);
  ArenaPlan plan = planned(requests);
  EXPECT_LE(plan.peak, plan.lowerBound * 1.2);
}

/// Only what is cheap to check: checkPlan() looks at all pairs.
ArenaPlan plannedQuickly(const std::vector<BufferRequest> &requests) {
  auto plan = planArena(requests);
  EXPECT_TRUE(plan.isOk()) << plan.status().message();
  return plan ? *plan : ArenaPlan();
}

TEST(Planner, WorkIsBounded) {
  // All live at once: 5e9 pairs. A list of them would not fit into memory.
  std::vector<BufferRequest> requests(100'000, {100, 0, 7, 4});
  ArenaPlan plan = plannedQuickly(requests);
  EXPECT_EQ(plan.peak, 100'000u * 100);
  EXPECT_EQ(plan.looks, 0u);
  // No shape of lifetimes spends more than the budget.
  std::mt19937 random(5);
  for (uint32_t span : {2, 10, 100, 1000, 20000}) {
    plan = plannedQuickly(randomGraph(random, 20'000, span));
    EXPECT_LE(plan.looks, maxLooks) << span;
    EXPECT_LE(plan.peak, plan.lowerBound * 1.3) << span;
  }
}

TEST(Planner, ASweepThatReachesTheBoundIsEnough) {
  // Long lifetimes over a chain, thousands of pairs each.
  std::vector<BufferRequest> requests;
  for (uint32_t i = 0; i < 3000; ++i)
    requests.push_back({4096, i, i + 1000});
  ArenaPlan plan = planned(requests);
  EXPECT_EQ(plan.peak, plan.lowerBound);
  EXPECT_EQ(plan.looks, 0u);
}

} // namespace
