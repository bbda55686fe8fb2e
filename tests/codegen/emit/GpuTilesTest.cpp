#include "codegen/emit/GpuTiles.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace charonia::emit;

TEST(GpuTiles, SmallProblemsGetSmallTiles) {
  // 128 x 768, K = 768: tiles of 64 would leave most multiprocessors idle.
  GpuTile tile = chooseGpuTile({128, 768, 768});
  EXPECT_LE(tile.m * tile.n, 32 * 64);
  // Large ones are bound by what comes from the cache.
  GpuTile large = chooseGpuTile({4096, 4096, 4096});
  EXPECT_GE(large.m * large.n, 128 * 128);
}

TEST(GpuTiles, WarpgroupsTakeWhatTheyCan) {
  using charonia::DotInstruction;
  using charonia::GpuTarget;
  GpuDot dot{4096, 4096, 4096};
  double ampere = estimate(dot, chooseGpuTile(dot));
  dot.chip = GpuTarget::get("sm_90a");
  GpuTile tile = chooseGpuTile(dot);
  EXPECT_EQ(tile.m * tile.n, 128 * 256);
  EXPECT_LT(estimate(dot, tile), 0.7 * ampere);
  auto form = [&](int64_t m, int64_t n, int64_t k, unsigned warps) {
    return dot.chip->dotFor(16, m, n, k, warps, false).form;
  };
  EXPECT_EQ(form(64, 64, 64, 4), DotInstruction::Form::WarpgroupMma);
  EXPECT_EQ(form(32, 64, 64, 4), DotInstruction::Form::Mma);
  EXPECT_EQ(form(64, 64, 32, 4), DotInstruction::Form::Mma);
  EXPECT_EQ(form(64, 64, 64, 2), DotInstruction::Form::Mma);
  EXPECT_EQ(dot.chip->dotFor(0, 64, 64, 64, 4, true).form,
            DotInstruction::Form::MultiplyAdd);
  EXPECT_EQ(GpuTarget::get("sm_7"), nullptr);
  EXPECT_EQ(GpuTarget::get("sm_80")->dotFor(16, 64, 64, 64, 4, true).form,
            DotInstruction::Form::Mma);
}

TEST(GpuTiles, WidthsFillTheChip) {
  // 96 tiles of 128 x 256 for 132 multiprocessors, or 128 of 128 x 192.
  GpuDot dot{4096, 768, 3072};
  dot.chip = charonia::GpuTarget::get("sm_90a");
  GpuTile tile = chooseGpuTile(dot);
  EXPECT_EQ(tile.m * tile.n, 128 * 192);
  EXPECT_EQ(tile.splits, 1);
  // mma.sync computes all columns of a tile.
  dot.chip = charonia::GpuTarget::get("sm_90");
  tile = chooseGpuTile(dot);
  EXPECT_EQ(tile.n & (tile.n - 1), 0);
}

TEST(GpuTiles, DoublesAreOfOnePart) {
  // What parts of a sum leave behind are floats of 32 bits.
  for (const char *chip : {"sm_80", "sm_90", "sm_90a"})
    for (int64_t bytes : {4, 8}) {
      GpuDot dot{1, 16, 4096, 1, bytes};
      dot.tensorCores = false;
      dot.chip = charonia::GpuTarget::get(chip);
      std::vector<GpuTile> ranked = rankGpuTiles(dot);
      EXPECT_EQ(llvm::any_of(ranked, [](auto &t) { return t.splits > 1; }),
                bytes == 4)
          << chip;
    }
}

TEST(GpuTiles, RowsOnEitherSideOfTheInstruction) {
  // Of 6272 rows 98 tiles of 128 x 128, or 132 of 96 rows by 128 columns.
  GpuDot dot{6272, 256, 1024};
  dot.chip = charonia::GpuTarget::get("sm_90a");
  GpuTile tile = chooseGpuTile(dot);
  EXPECT_TRUE(tile.swap);
  EXPECT_EQ(tile.m, 128);
  EXPECT_EQ(tile.n, 96);
  EXPECT_EQ(tile.warps, 8);
  EXPECT_EQ(estimate(dot.swapped(), {128, 96, 64, 8, 6}),
            estimate(dot, {128, 96, 64, 8, 6, 1, true}));
  // Long queues of tiles stay with powers of two.
  GpuTile queue = chooseGpuTile({8192, 8192, 8192, 1, 2, true, true, dot.chip});
  EXPECT_EQ(queue.m * queue.n, 128 * 256);
  // mma.sync takes either side alike.
  dot.chip = charonia::GpuTarget::get("sm_90");
  EXPECT_FALSE(chooseGpuTile(dot).swap);
}

TEST(GpuTiles, StoresAreCoveredByOtherInstances) {
  // ResNet's 1x1 convolutions of 64 images, 64 to 256 channels: one step, and
  // 128 MB. As measured on an H200: 50 us in tiles of 128 x 64, four to a
  // multiprocessor, 93 to 100 in one of 128 x 256.
  GpuDot dot{200704, 256, 64};
  dot.chip = charonia::GpuTarget::get("sm_90a");
  dot.operandBytes = 2.0 * (dot.m + dot.n) * dot.k;
  dot.resultBytes = 2.0 * dot.m * dot.n;
  GpuTile tile = chooseGpuTile(dot);
  EXPECT_EQ(tile.m * tile.n, 128 * 64);
  EXPECT_NEAR(estimate(dot, {128, 64, 64, 4, 4}), 50.2, 5);
  EXPECT_GT(estimate(dot, {128, 256, 64, 8, 4}),
            1.2 * estimate(dot, {128, 64, 64, 4, 4}));
  EXPECT_GT(estimate(dot, {128, 256, 32, 8, 4}),
            1.1 * estimate(dot, {128, 64, 64, 4, 4}));
  // Under a long loop the cache passes on what was stored.
  GpuDot deep{4096, 768, 3072};
  double time = estimate(deep, {128, 192, 64, 8, 4});
  deep.operandBytes = 2.0 * (deep.m + deep.n) * deep.k;
  deep.resultBytes = 2.0 * deep.m * deep.n;
  EXPECT_EQ(estimate(deep, {128, 192, 64, 8, 4}), time);
}

TEST(GpuTiles, StoresGoOnUnderTheNextLoop) {
  // GPT-2's vocabulary: 103 MB of f32 behind sums of 768 terms. As measured in
  // the model, one tile of 128 x 256 a multiprocessor is 15 us faster than two
  // of 128 x 128, as six rounds of stores have the next one's loops to go on.
  GpuDot dot{512, 50257, 768};
  dot.alongTerms = true;
  dot.chip = charonia::GpuTarget::get("sm_90a");
  dot.operandBytes = 2.0 * (dot.m + dot.n) * dot.k;
  dot.resultBytes = 4.0 * dot.m * dot.n;
  GpuTile tile = chooseGpuTile(dot);
  EXPECT_EQ(tile.m * tile.n, 128 * 256);
  EXPECT_GT(estimate(dot, {128, 128, 64, 8, 3}),
            estimate(dot, {128, 256, 64, 8, 4}) + 5);
}

TEST(GpuTiles, TilesAreNotMostlyEmpty) {
  for (int64_t m : {1, 3, 17, 49, 197, 3136})
    for (int64_t n : {8, 10, 64, 1000, 50257})
      for (int64_t k : {8, 27, 64, 768})
        for (int64_t bytes : {2, 4}) {
          GpuDot dot{m, n, k, 1, bytes};
          dot.tensorCores = bytes == 2;
          GpuTile tile = chooseGpuTile(dot);
          EXPECT_TRUE(tile.m == 16 || tile.m < 2 * m) << m << " " << tile.m;
          EXPECT_TRUE(tile.n == 32 || tile.n < 2 * n) << n << " " << tile.n;
          EXPECT_TRUE(tile.k == 16 || tile.k < 2 * k) << k << " " << tile.k;
        }
}

TEST(GpuTiles, TheChoiceIsTheFirstOfDistinctTiles) {
  for (const char *chip : {"sm_80", "sm_90a"})
    for (bool alongTerms : {false, true})
      for (auto [m, n, k] : {std::tuple(128, 768, 768),
                             {1568, 512, 4608},
                             {8192, 8192, 8192},
                             {7, 10, 64}}) {
        GpuDot dot{m, n, k};
        dot.alongTerms = alongTerms;
        dot.chip = charonia::GpuTarget::get(chip);
        std::vector<GpuTile> ranked = rankGpuTiles(dot);
        ASSERT_FALSE(ranked.empty());
        EXPECT_EQ(ranked.front(), chooseGpuTile(dot));
        for (size_t i = 0; i < ranked.size(); ++i)
          for (size_t j = 0; j < i; ++j)
            EXPECT_NE(ranked[i], ranked[j]) << m << " " << chip;
      }
}

TEST(GpuTiles, LongSumsOfFewTilesAreSplit) {
  // The last 3x3 convolutions of a ResNet: 7 x 7 x 512, K = 4608.
  GpuTile tile = chooseGpuTile({49, 512, 4608});
  EXPECT_GT(tile.splits, 1);
  EXPECT_GE(4608, 2 * tile.k * tile.splits);
  // Nothing is won where every multiprocessor has a tile, or a sum is short.
  EXPECT_EQ(chooseGpuTile({4096, 4096, 4096}).splits, 1);
  EXPECT_EQ(chooseGpuTile({49, 512, 256}).splits, 1);
}

static GpuDot forHopper(int64_t m, int64_t n, int64_t k) {
  GpuDot dot{m, n, k};
  dot.alongTerms = true;
  dot.chip = charonia::GpuTarget::get("sm_90a");
  return dot;
}

TEST(GpuTiles, LongSumsThatFillTheChipByBoxesAreWhole) {
  // As measured on an H100: 16.8 us, where two parts of 128 x 128 took 27.1;
  // 12.2 to 13.5 us, where two of 64 x 112 took 14.0.
  EXPECT_EQ(chooseGpuTile(forHopper(512, 2048, 5632)).splits, 1);
  EXPECT_EQ(chooseGpuTile(forHopper(784, 512, 4608)).splits, 1);
  // 4.8 us in four parts, a quarter of the chip's multiprocessors else.
  EXPECT_EQ(chooseGpuTile(forHopper(128, 768, 3072)).splits, 4);
}

TEST(GpuTiles, LongSumsOfFewTilesTakeAnyWidth) {
  // As measured on an H200: 18.2 us, where 64 x 128 took 19.6.
  GpuTile across{64, 112, 64, 4, 7, 1, true};
  EXPECT_EQ(chooseGpuTile(forHopper(1568, 512, 4608)), across);
}

TEST(GpuTiles, EstimateGrowsWithTheProblem) {
  GpuTile tile{64, 64, 64, 4, 4};
  double last = 0;
  for (int64_t k : {64, 256, 1024, 4096}) {
    double time = estimate({512, 512, k}, tile);
    EXPECT_GT(time, last);
    last = time;
  }
  EXPECT_NEAR(estimate({512, 768, 768}, tile), 5.3, 1.5); // measured
}

TEST(GpuTiles, ColumnsOfAGroupAreWholeTiles) {
  for (const char *chip : {"sm_80", "sm_90a"})
    for (int64_t run : {8, 24, 48, 56, 96, 112, 120, 168, 232, 320}) {
      GpuDot dot{25088, 2 * run, 576};
      dot.chip = charonia::GpuTarget::get(chip);
      dot.columnRun = run;
      GpuTile tile = chooseGpuTile(dot);
      EXPECT_EQ(run % (tile.swap ? tile.m : tile.n), 0) << chip << " " << run;
    }
  // No tile of eight columns or more divides a prime number of them.
  GpuDot prime{25088, 514, 576};
  GpuTile all = chooseGpuTile(prime);
  prime.columnRun = 257;
  EXPECT_EQ(chooseGpuTile(prime).n, all.n);
}

TEST(GpuTiles, ProductsOfBytesKeepSumsOfSteps) {
  constexpr int64_t registers = 255, others = 60;
  for (GpuDot dot : {GpuDot{4096, 4096, 4096}, GpuDot{16, 14336, 4096},
                     GpuDot{7, 512, 1024}, GpuDot{300, 200, 400}}) {
    dot.elementBytes = 1;
    dot.alongTerms = true;
    dot.chip = charonia::GpuTarget::get("sm_90a");
    auto hasShortSums = [&](const GpuTile &tile) {
      return dot.chip->dotFor(8, tile.m, tile.n, tile.k, tile.warps, true)
          .shortSums;
    };
    GpuTile tile = chooseGpuTile(dot);
    EXPECT_TRUE(hasShortSums(tile));
    EXPECT_EQ(tile.k, 128);
    for (const GpuTile &candidate : rankGpuTiles(dot))
      if (hasShortSums(candidate)) {
        EXPECT_LE(2 * candidate.m * candidate.n / (candidate.warps * 32),
                  registers - others);
      }
  }
  // Of a large product those of two steps take turns. As measured on an H200
  // without that: 152 us, in 64 x 128, two instances, 137, and 1020 of 8192^3
  // in 128 x 160, where registers hold one set still.
  GpuDot large{4096, 4096, 4096, 1,
               1,    true, true, charonia::GpuTarget::get("sm_90a")};
  GpuTile inTurns{128, 128, 128, 8, 6};
  EXPECT_EQ(chooseGpuTile(large), inTurns);
  EXPECT_NEAR(estimate(large, {64, 128, 128, 4, 4}), 137, 7);
  large.m = large.n = large.k = 8192;
  EXPECT_EQ(chooseGpuTile(large), inTurns);
  EXPECT_NEAR(estimate(large, {128, 160, 128, 8, 4}), 1020, 50);
  // Few rows are the columns of an instruction.
  GpuDot few{16, 14336, 4096};
  few.elementBytes = 1;
  few.alongTerms = true;
  few.chip = charonia::GpuTarget::get("sm_90a");
  EXPECT_TRUE(chooseGpuTile(few).swap);
  EXPECT_EQ(chooseGpuTile(few).n, 16);
}

// Of 512 x 2560 x 2048, 64 columns by 176 rows had an odd number of 16 rows, of
// which one half is converted beside a zero: ptxas serializes such dots.
TEST(GpuTiles, WideTilesOfOneGroupHavePairsOfSixteen) {
  for (GpuDot dot : {GpuDot{512, 2560, 2048}, GpuDot{4096, 320, 2880},
                     GpuDot{1576, 768, 3072}}) {
    dot.alongTerms = true;
    dot.chip = charonia::GpuTarget::get("sm_90a");
    for (const GpuTile &tile : rankGpuTiles(dot))
      if (tile.swap && tile.m == 64 && tile.n > 128)
        EXPECT_EQ(tile.n % 32, 0);
  }
}

// Each instance keeps 128 columns and walks along rows, as measured on an H200:
// 22.2 us before, 18.5 now.
TEST(GpuTiles, InstancesWalkAlongBlocksOfColumns) {
  GpuDot dot{25088, 512, 256};
  dot.alongTerms = true;
  dot.chip = charonia::GpuTarget::get("sm_90a");
  dot.operandBytes = 2.0 * (25088 + 512) * 256;
  dot.resultBytes = 2.0 * 25088 * 512;
  GpuTile tile = chooseGpuTile(dot);
  EXPECT_TRUE(staysInBlocks(dot, tile));
  EXPECT_NEAR(estimate(dot, tile), 18.5, 3);
  // One block of columns is no choice of the model's.
  dot.n = 64;
  EXPECT_FALSE(staysInBlocks(dot, {64, 64, 64, 4, 6}));
}
