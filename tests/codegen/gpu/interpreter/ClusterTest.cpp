// Blocks of a cluster that read each other's shared memory.
#include "tests/codegen/gpu/interpreter/Simt.h"

using namespace charonia::interpreter;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr unsigned kThreads = 64;

// What a thread leaves for others: 64 * block + tid.
const std::string write = R"(
%first = llvm.mul %block, %c64 : i32
%at = llvm.add %first, %tid : i32
%mine = llvm.sitofp %at : i32 to f32
llvm.store %mine, %own : f32, !llvm.ptr<3>
)";
const std::string arrive = "nvvm.cluster.arrive {aligned}\n",
                  wait = "nvvm.cluster.wait {aligned}\n";

/// Reads what part `rank` has and keeps it, as result number `rank` of `parts`.
std::string read(unsigned rank, unsigned parts) {
  std::string n = std::to_string(rank);
  return "%rank" + n + " = llvm.mlir.constant(" + n + " : i32) : i32\n" +
         "%peer" + n + " = nvvm.mapa %own, %rank" + n +
         " : !llvm.ptr<3> -> !llvm.ptr<7>\n" + "%its" + n +
         " = llvm.load %peer" + n + " : !llvm.ptr<7> -> f32\n" + "%row" + n +
         " = llvm.mlir.constant(" + std::to_string(parts * kThreads) +
         " : i32) : i32\n" + "%base" + n + " = llvm.mul %block, %row" + n +
         " : i32\n" + "%moved" + n + " = llvm.mlir.constant(" +
         std::to_string(rank * kThreads) + " : i32) : i32\n" + "%place" + n +
         " = llvm.add %base" + n + ", %moved" + n + " : i32\n" + "%element" +
         n + " = llvm.add %place" + n + ", %tid : i32\n" + "%result" + n +
         " = llvm.getelementptr %out[%element" + n +
         "] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32\n" + "llvm.store %its" +
         n + ", %result" + n + " : f32, !llvm.ptr<1>\n";
}

SimtRun runCluster(const std::string &body, unsigned parts, uint64_t seed,
                   unsigned clusters = 1) {
  SimtRun run;
  run.launch.grid = parts * clusters;
  run.launch.seed = seed;
  run.launch.sharedBytes = 1024;
  run.out.resize(run.launch.grid * parts * kThreads, -1);
  run.in.resize(kThreads);
  std::string source = simtKernel(kThreads, body), attribute = "nvvm.kernel,";
  source.insert(source.find(attribute) + attribute.size(),
                " tile.cluster = " + std::to_string(parts) + " : i64,");
  runSimt(source, run);
  return run;
}

TEST(SimtCluster, BlocksReadEachOther) {
  for (unsigned parts : {2, 6, 8, 12, 16})
    for (uint64_t seed : {0, 1, 2}) {
      std::string reads;
      for (unsigned rank = 0; rank < parts; ++rank)
        reads += read(rank, parts);
      SimtRun run = runCluster(write + arrive + wait + reads + arrive + wait,
                               parts, seed, /*clusters=*/2);
      ASSERT_EQ(run.error + run.text(), "");
      for (unsigned block = 0; block < 2 * parts; ++block)
        for (unsigned i = 0; i < parts * kThreads; ++i)
          ASSERT_EQ(run.out[block * parts * kThreads + i],
                    float(block / parts * parts * kThreads + i));
    }
}

TEST(SimtCluster, WritesNeedTheBarrier) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    // Nothing between, a barrier of each block alone, an arrival that nobody
    // waits for, and a write behind the arrival.
    for (auto [between, end] : {std::pair(std::string(), arrive + wait),
                                {"nvvm.barrier0\n", arrive + wait},
                                {arrive, wait}})
      EXPECT_THAT(
          runCluster(write + between + read(1, 2) + end, 2, seed).kinds(),
          testing::AnyOf(Contains(FindingKind::Race),
                         Contains(FindingKind::UnwrittenRead)));
    SimtRun late =
        runCluster(arrive + write + wait + read(1, 2) + arrive + wait, 2, seed);
    EXPECT_THAT(late.kinds(), ElementsAre(FindingKind::Race));
    EXPECT_THAT(late.text(),
                HasSubstr("wrote without the cluster's barrier between"));
  }
}

TEST(SimtCluster, PlacesMayNotChangeUnderReads) {
  std::string again = "llvm.store %zero, %own : f32, !llvm.ptr<3>\n";
  for (uint64_t seed : {0, 1, 2, 3}) {
    std::string first = write + arrive + wait + read(1, 2);
    EXPECT_THAT(runCluster(first + again + arrive + wait, 2, seed).kinds(),
                Contains(FindingKind::Race));
    EXPECT_THAT(runCluster(first + arrive + again + wait, 2, seed).kinds(),
                Contains(FindingKind::Race));
    EXPECT_EQ(runCluster(first + arrive + wait + again, 2, seed).text(), "");
  }
}

TEST(SimtCluster, BlocksOutlastReads) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    std::string most = write + arrive + wait + read(1, 2);
    for (std::string end : {std::string(), arrive}) {
      SimtRun run = runCluster(most + end, 2, seed);
      EXPECT_THAT(run.kinds(), ElementsAre(FindingKind::EndedBlock));
      EXPECT_THAT(run.text(), HasSubstr("reads shared memory of block 1"));
    }
  }
}

TEST(SimtCluster, WarpsThatHaveEndedAreNotAwaited) {
  std::string leave = R"(
%copies = llvm.icmp "uge" %tid, %c32 : i32
scf.if %copies {
  llvm.inline_asm has_side_effects "exit;", "" : () -> ()
}
)";
  for (uint64_t seed : {0, 1, 2, 3}) {
    SimtRun run = runCluster(leave + write + arrive + wait + read(0, 2) +
                                 read(1, 2) + arrive + wait,
                             2, seed);
    EXPECT_EQ(run.error + run.text(), "");
    EXPECT_EQ(run.out[kThreads + 3], float(kThreads + 3));
    EXPECT_EQ(run.out[kThreads + 35], -1.f);
  }
}

TEST(SimtCluster, ArrivalsAndWaitsTakeTurns) {
  EXPECT_THAT(runCluster(write + wait, 2, 0).kinds(),
              ElementsAre(FindingKind::BarrierMisuse));
  EXPECT_THAT(runCluster(write + arrive + arrive, 2, 0).kinds(),
              ElementsAre(FindingKind::BarrierMisuse));
  EXPECT_THAT(
      runCluster(write + arrive + wait + read(2, 2) + arrive + wait, 2, 0)
          .kinds(),
      Contains(FindingKind::OutOfBounds));
}

TEST(SimtCluster, PeersAreOnlyRead) {
  EXPECT_NE(runCluster("%p = nvvm.mapa %own, %c1 : !llvm.ptr<3> -> "
                       "!llvm.ptr<7>\n"
                       "llvm.store %zero, %p : f32, !llvm.ptr<7>\n",
                       2, 0)
                .error,
            "");
}

} // namespace
