// Faults among program instances, and among kernels that overlap.
#include "Simt.h"

using namespace charonia::interpreter;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

//===----------------------------------------------------------------------===//
// The meeting of split sums
//===----------------------------------------------------------------------===//

std::string meeting(llvm::StringRef order, llvm::StringRef barrier) {
  return R"(
%part = llvm.mul %block, %c64 : i32
%mine = llvm.add %part, %tid : i32
%p = llvm.getelementptr %in[%mine] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
%c1f = llvm.mlir.constant(1.0 : f32) : f32
llvm.store %c1f, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>
%counter = llvm.getelementptr %out[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
llvm.inline_asm has_side_effects "{\0A.reg .pred first, last;\0A.reg .u32 arrived;\0Afence.acq_rel.gpu;\0A)" +
         barrier.str() +
         R"(setp.eq.u32 first, $1, 0;\0Amov.u32 arrived, 0;\0A@first )" +
         order.str() +
         R"( arrived, [$0], 2;\0Asetp.eq.and.u32 last, arrived, 2, first;\0Abarrier.red.or.pred last, 0, last;\0A@!last exit;\0Afence.acq_rel.gpu;\0A}", "l,r,~{memory}" %counter, %tid : (!llvm.ptr<1>, i32) -> ()
%a = llvm.getelementptr %in[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
%b = llvm.getelementptr %a[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
%c = llvm.getelementptr %a[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
%x = llvm.load %a {alignment = 4 : i64} : !llvm.ptr<1> -> f32
%y = llvm.load %b {alignment = 4 : i64} : !llvm.ptr<1> -> f32
%z = llvm.load %c {alignment = 4 : i64} : !llvm.ptr<1> -> f32
%s = llvm.fadd %x, %y : f32
%t = llvm.fadd %s, %z : f32
llvm.store %t, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)";
}

TEST(SimtFaults, PartsMeet) {
  std::string atom = "atom.acq_rel.gpu.global.inc.u32",
              barrier = "barrier.sync 0;\\0A";
  for (Launch launch : manyLaunches()) {
    launch.grid = 3;
    SimtRun run;
    run.in.resize(192);
    run.out.resize(65);
    run.launch = launch;
    runSimt(simtKernel(64, meeting(atom, barrier)), run);
    EXPECT_EQ(run.error, "");
    EXPECT_EQ(run.text(), "");
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(run.out[i], 3);
    // The counter is ready for the next run.
    EXPECT_EQ(run.out[64], 0);

    // Without the barrier the other threads' parts may still be missing.
    SimtRun bad;
    bad.in.resize(192);
    bad.out.resize(65);
    bad.launch = launch;
    runSimt(simtKernel(64, meeting(atom, "")), bad);
    EXPECT_THAT(bad.kinds(), Contains(FindingKind::Race)) << bad.text();

    // What every part read before it came may be written by the last.
    std::string read = "%early = llvm.load %to {alignment = 4 : i64} : "
                       "!llvm.ptr<1> -> f32\n";
    SimtRun early;
    early.in.resize(192);
    early.out.resize(65);
    early.launch = launch;
    runSimt(simtKernel(64, read + meeting(atom, barrier)), early);
    EXPECT_EQ(early.text(), "");
  }
}

//===----------------------------------------------------------------------===//
// Kernels that overlap
//===----------------------------------------------------------------------===//

constexpr char waitForPrevious[] = "nvvm.griddepcontrol wait\n";
constexpr char fence[] = "llvm.inline_asm has_side_effects "
                         "\"fence.acq_rel.gpu;\", \"~{memory}\" : () -> ()\n";
constexpr char readIn[] = "%x = llvm.load %from {alignment = 4 : i64} : "
                          "!llvm.ptr<1> -> f32\n";
constexpr char writeOut[] =
    "llvm.store %x, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>\n";

/// A kernel that begins while others run.
SimtRun overlapping(const std::string &body, bool inIsWeight) {
  SimtRun run;
  run.in.resize(64, 3);
  run.out.resize(64, -1);
  run.inIsConstant = run.inIsWeight = inIsWeight;
  run.launch.overlapsPrevious = true;
  run.launch.sharedBytes = 16384;
  runSimt(simtKernel(64, body), run);
  EXPECT_EQ(run.error, "");
  return run;
}

TEST(SimtFaults, WeightsAloneAreReadEarly) {
  std::string right = std::string(waitForPrevious) + readIn + writeOut,
              early = std::string(readIn) + waitForPrevious + writeOut;
  for (bool isWeight : {false, true}) {
    EXPECT_EQ(overlapping(right, isWeight).text(), "");
    SimtRun run = overlapping(early, isWeight);
    EXPECT_EQ(run.out, run.in);
    if (isWeight)
      EXPECT_EQ(run.text(), "");
    else
      EXPECT_THAT(run.kinds(), ElementsAre(FindingKind::EarlyAccess));
  }
  // Where kernels do not overlap nothing has to wait.
  EXPECT_EQ(simt(64, early).text(), "");
}

TEST(SimtFaults, EarlyCopiesStoresAndAtomics) {
  auto copy = [](const std::string &before, const std::string &behind) {
    return before +
           "nvvm.cp.async.shared.global %own, %from, 4, cache = ca : "
           "!llvm.ptr<3>, !llvm.ptr<1>\n" +
           behind + "nvvm.cp.async.commit.group\nnvvm.cp.async.wait.group 0\n";
  };
  EXPECT_EQ(overlapping(copy(waitForPrevious, ""), false).text(), "");
  EXPECT_EQ(overlapping(copy("", waitForPrevious), true).text(), "");
  EXPECT_THAT(overlapping(copy("", waitForPrevious), false).kinds(),
              ElementsAre(FindingKind::EarlyAccess));
  // A store is early even though nothing that it needs is.
  SimtRun store =
      overlapping(std::string(readIn) + writeOut + waitForPrevious, true);
  ASSERT_THAT(store.kinds(), ElementsAre(FindingKind::EarlyAccess));
  EXPECT_EQ(store.report.findings[0].count, 64u);
  EXPECT_THAT(store.report.findings[0].details,
              HasSubstr("writes buffer 1 at byte 0 before it has waited for "
                        "the kernels before this one"));
  std::string atomic = "%y = llvm.atomicrmw add %to, %c1 monotonic : "
                       "!llvm.ptr<1>, i32\n";
  EXPECT_EQ(overlapping(waitForPrevious + atomic, true).text(), "");
  EXPECT_THAT(overlapping(atomic + waitForPrevious, true).kinds(),
              ElementsAre(FindingKind::EarlyAccess));
}

/// One that may run beside what is before it, and has to wait at its end.
SimtRun beside(const std::string &body) {
  SimtRun run;
  run.in.resize(64, 3);
  run.out.resize(64, -1);
  run.launch.overlapsPrevious = run.launch.waitsAtEnd = true;
  runSimt(simtKernel(64, body), run);
  EXPECT_EQ(run.error, "");
  return run;
}

TEST(SimtFaults, WhatRunsBesideOthersWaitsAtItsEnd) {
  std::string work = std::string(fence) + readIn + writeOut;
  SimtRun run = beside(work + waitForPrevious);
  EXPECT_EQ(run.text(), "");
  EXPECT_EQ(run.out, run.in);
  EXPECT_THAT(beside(work).kinds(), ElementsAre(FindingKind::NeverWaited));
  EXPECT_THAT(beside(std::string(readIn) + writeOut + waitForPrevious).kinds(),
              ElementsAre(FindingKind::EarlyAccess, FindingKind::EarlyAccess));
}

TEST(SimtFaults, TheNextStartsBehindTheWait) {
  std::string start = "nvvm.griddepcontrol launch_dependents\n",
              work = std::string(readIn) + writeOut;
  EXPECT_EQ(overlapping(waitForPrevious + start + work, true).text(), "");
  SimtRun early = overlapping(start + waitForPrevious + work, true);
  ASSERT_THAT(early.kinds(), ElementsAre(FindingKind::EarlyStart));
  EXPECT_THAT(early.report.findings[0].details,
              HasSubstr("lets the next kernel start before it has waited for "
                        "the kernels before this one"));
  // What a wave's first kernel has waited for has ended for all of them.
  EXPECT_EQ(beside(start + fence + work + waitForPrevious).text(), "");
}

TEST(SimtFaults, RelaxedStoresAndExchanges) {
  Launch two;
  two.grid = 2;
  std::string store = "llvm.store %zero, %to atomic syncscope(\"device\") "
                      "monotonic {alignment = 4 : i64} : f32, !llvm.ptr<1>\n",
              exchange = "%x = llvm.cmpxchg %to, %c0, %c1 monotonic monotonic "
                         ": !llvm.ptr<1>, i32\n",
              plain = "llvm.store %zero, %to {alignment = 4 : i64} : f32, "
                      "!llvm.ptr<1>\n",
              load = "%y = llvm.load %to {alignment = 4 : i64} : "
                     "!llvm.ptr<1> -> f32\n";
  expectClean(32, store, two);
  expectClean(32, exchange, two);
  expectClean(32, exchange + store, two);
  // They are no order for what is plain.
  for (const std::string &atomic : {store, exchange}) {
    expectAlways(32, atomic + plain, FindingKind::Race, two);
    expectAlways(32, plain + atomic, FindingKind::Race, two);
    expectAlways(32, atomic + load, FindingKind::Race, two);
  }
}

/// When the next kernel may start is no concern of the one that says so.
TEST(SimtFaults, LaunchingDependents) {
  SimtRun run = overlapping(std::string(waitForPrevious) + R"(
%blocks = nvvm.read.ptx.sreg.nctaid.x : i32
%next = llvm.add %block, %c1 : i32
%last = llvm.icmp "uge" %next, %blocks : i32
scf.if %last {
  nvvm.griddepcontrol launch_dependents
}
%x = llvm.sitofp %blocks : i32 to f32
)" + writeOut,
                            true);
  EXPECT_EQ(run.text(), "");
  EXPECT_THAT(run.out, Each(1.0f));
}

TEST(SimtFaults, EveryThreadWaits) {
  EXPECT_THAT(overlapping("", true).kinds(),
              ElementsAre(FindingKind::NeverWaited));
  // Half of a warp leaves before.
  auto leave = [](const std::string &before, const std::string &behind) {
    return "%first = llvm.icmp \"ult\" %tid, %c16 : i32\n" + before +
           "llvm.inline_asm has_side_effects \"@$0 exit;\", \"b\" %first : "
           "(i1) -> ()\n" +
           behind;
  };
  EXPECT_EQ(overlapping(leave(waitForPrevious, ""), true).text(), "");
  SimtRun run = overlapping(leave("", waitForPrevious), true);
  ASSERT_THAT(run.kinds(), ElementsAre(FindingKind::NeverWaited));
  EXPECT_THAT(run.report.findings[0].details,
              HasSubstr("block 0, thread 0: ends without having waited"));
  // Those that wait in a branch are not those that go on.
  SimtRun branch =
      overlapping("%first = llvm.icmp \"ult\" %tid, %c16 : i32\n"
                  "scf.if %first {\n" +
                      std::string(waitForPrevious) + "}\n" + readIn,
                  false);
  EXPECT_THAT(branch.kinds(),
              ElementsAre(FindingKind::EarlyAccess, FindingKind::NeverWaited));
}

TEST(SimtFaults, BlocksOfAClusterMeet) {
  // Each block writes 64 places and reads those of its neighbour.
  std::string write = R"(
%first = llvm.mul %block, %c64 : i32
%at = llvm.add %first, %tid : i32
%mine = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
%x = llvm.sitofp %at : i32 to f32
llvm.store %x, %mine : f32, !llvm.ptr<1>
)",
              meet = R"(
nvvm.cluster.arrive {aligned}
nvvm.cluster.wait {aligned}
)",
              read = R"(
%other = llvm.xor %at, %c64 : i32
%its = llvm.getelementptr %out[%other] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
%y = llvm.load %its : !llvm.ptr<1> -> f32
)",
              keep = R"(
%behind = llvm.add %at, %c128 : i32
%result = llvm.getelementptr %out[%behind] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
llvm.store %y, %result : f32, !llvm.ptr<1>
)";
  auto run = [](const std::string &body, unsigned cluster, uint64_t seed) {
    SimtRun run;
    run.out.resize(256, -1);
    run.in = run.out;
    run.launch.grid = 2;
    run.launch.seed = seed;
    std::string source = simtKernel(64, body), attribute = "nvvm.kernel,";
    source.insert(source.find(attribute) + attribute.size(),
                  " tile.cluster = " + std::to_string(cluster) + " : i64,");
    runSimt(source, run);
    return run;
  };
  for (uint64_t seed : {0, 1, 2, 3}) {
    SimtRun together = run(write + meet + read + keep, 2, seed);
    EXPECT_EQ(together.error + together.text(), "");
    for (unsigned i = 0; i < 128; ++i)
      EXPECT_EQ(together.out[128 + i], float(i ^ 64));
    EXPECT_THAT(run(write + read + keep, 2, seed).kinds(),
                Contains(FindingKind::Race));
    // Each alone waits for nobody.
    EXPECT_THAT(run(write + meet + read + keep, 1, seed).kinds(),
                Contains(FindingKind::Race));
  }
  EXPECT_THAT(run(write + meet, 3, 0).kinds(),
              ElementsAre(FindingKind::NotModelled));
  EXPECT_NE(run(write + meet, 17, 0).error, "");
}

} // namespace
