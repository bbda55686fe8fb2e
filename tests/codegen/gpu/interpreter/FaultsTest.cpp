// Each fault of a kernel is found, in every order of its warps, and the same
// kernel without it is clean.
#include "Simt.h"

using namespace charonia::interpreter;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// The kinds that every order of the kernel is found to have.
void expectAlways(unsigned threads, llvm::StringRef body, FindingKind kind,
                  Launch like = {}, size_t size = 0) {
  for (Launch launch : manyLaunches()) {
    launch.grid = like.grid;
    launch.sharedBytes = like.sharedBytes;
    SimtRun run = simt(threads, body, launch, size);
    EXPECT_THAT(run.kinds(), Contains(kind)) << run.text();
    EXPECT_THAT(run.kinds(), Each(kind)) << run.text();
  }
}

void expectClean(unsigned threads, llvm::StringRef body, Launch like = {},
                 size_t size = 0) {
  for (Launch launch : manyLaunches()) {
    launch.grid = like.grid;
    launch.sharedBytes = like.sharedBytes;
    SimtRun run = simt(threads, body, launch, size);
    EXPECT_EQ(run.text(), "");
  }
}

std::string reversal(llvm::StringRef between) {
  return R"(
%x = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<1> -> f32
llvm.store %x, %own {alignment = 4 : i64} : f32, !llvm.ptr<3>
)" + between.str() +
         R"(
%c63 = llvm.mlir.constant(63 : i32) : i32
%other = llvm.sub %c63, %tid : i32
%place = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%y = llvm.load %place {alignment = 4 : i64} : !llvm.ptr<3> -> f32
llvm.store %y, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)";
}

TEST(SimtFaults, MissingBarrier) {
  expectClean(64, reversal("nvvm.barrier0"));
  SimtRun run = simt(64, reversal("nvvm.barrier0"));
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(run.out[i], 63 - i);
  // Depending on the order the second half is unwritten or a race.
  for (Launch launch : manyLaunches()) {
    SimtRun bad = simt(64, reversal(""), launch);
    ASSERT_THAT(bad.kinds(), Contains(FindingKind::Race)) << bad.text();
    for (const Finding &finding : bad.report.findings) {
      if (finding.kind != FindingKind::Race)
        continue;
      EXPECT_THAT(finding.operation, HasSubstr("at kernel.mlir:"));
      EXPECT_THAT(finding.other, HasSubstr("at kernel.mlir:"));
      EXPECT_EQ(finding.kernel, "kernel");
      EXPECT_THAT(finding.details, HasSubstr("block 0, thread "));
    }
  }
}

TEST(SimtFaults, WriteAfterRead) {
  auto kernel = [](llvm::StringRef between) {
    return reversal("nvvm.barrier0") + between.str() +
           "\nllvm.store %y, %own {alignment = 4 : i64} : f32, !llvm.ptr<3>";
  };
  expectClean(64, kernel("nvvm.barrier0"));
  expectAlways(64, kernel(""), FindingKind::Race);
}

TEST(SimtFaults, TwoWriters) {
  auto store = [](llvm::StringRef value) {
    return "llvm.store " + value.str() +
           ", %shared {alignment = 4 : i64} : i32, !llvm.ptr<3>\n";
  };
  expectAlways(64, store("%tid"), FindingKind::Race);
  // The same value of all threads may be written by each, by one operation.
  expectClean(64, store("%c1"));
  expectAlways(64, store("%c1") + store("%c1"), FindingKind::Race);
  expectAlways(64, store("%c1") + store("%tid"), FindingKind::Race);
  expectAlways(64,
               store("%c1") + "%x = llvm.load %shared {alignment = 4 : i64} : "
                              "!llvm.ptr<3> -> i32",
               FindingKind::Race);
}

TEST(SimtFaults, UnwrittenShared) {
  expectAlways(32, R"(
%y = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32
llvm.store %y, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)",
               FindingKind::UnwrittenRead);
}

TEST(SimtFaults, SharedOfAnotherBlockIsUnwritten) {
  Launch two;
  two.grid = 2;
  // The first block writes, both read.
  expectAlways(32, R"(
%first = llvm.icmp "eq" %block, %c0 : i32
scf.if %first {
  llvm.store %zero, %own {alignment = 4 : i64} : f32, !llvm.ptr<3>
}
%y = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32
)",
               FindingKind::UnwrittenRead, two);
}

TEST(SimtFaults, OutOfBounds) {
  auto load = [](llvm::StringRef pointer, llvm::StringRef type) {
    return ("%x = llvm.load " + pointer + " {alignment = 4 : i64} : " + type +
            " -> f32")
        .str();
  };
  std::string next = "%p = llvm.getelementptr %from[1] : (!llvm.ptr<1>) -> "
                     "!llvm.ptr<1>, f32\n",
              before = "%p = llvm.getelementptr %from[-1] : (!llvm.ptr<1>) -> "
                       "!llvm.ptr<1>, f32\n";
  expectClean(32, load("%from", "!llvm.ptr<1>"));
  expectAlways(32, next + load("%p", "!llvm.ptr<1>"), FindingKind::OutOfBounds);
  expectAlways(32, before + load("%p", "!llvm.ptr<1>"),
               FindingKind::OutOfBounds);
  Launch small;
  small.sharedBytes = 31 * 4;
  expectAlways(32,
               "llvm.store %zero, %own {alignment = 4 : i64} : f32, "
               "!llvm.ptr<3>",
               FindingKind::OutOfBounds, small);
  SimtRun run = simt(32, next + load("%p", "!llvm.ptr<1>"));
  ASSERT_EQ(run.report.findings.size(), 1u);
  EXPECT_EQ(run.report.findings[0].count, 1u);
  EXPECT_EQ(run.report.findings[0].details,
            "block 0, thread 31: reads 4 bytes of buffer 0 at byte 128 of 128");
}

TEST(SimtFaults, PredicatedLoadReadsNothing) {
  auto kernel = [](int limit) {
    return "%limit = llvm.mlir.constant(" + std::to_string(limit) +
           R"( : i32) : i32
%inside = llvm.icmp "ult" %tid, %limit : i32
%x = llvm.inline_asm has_side_effects "{\0Amov.b32 $0, 0;\0A@$2 ld.global.b32 $0, [$1+4];\0A}", "=r,l,b" %from, %inside : (!llvm.ptr<1>, i1) -> i32
llvm.inline_asm has_side_effects "@$0 st.global.b32 [$1], $2;", "b,l,r" %inside, %to, %x : (i1, !llvm.ptr<1>, i32) -> ()
)";
  };
  expectClean(32, kernel(31));
  expectAlways(32, kernel(32), FindingKind::OutOfBounds);
  SimtRun run = simt(32, kernel(31));
  EXPECT_EQ(run.out[30], 31);
  EXPECT_EQ(run.out[31], -1);
}

TEST(SimtFaults, Misaligned) {
  std::string load = "%x = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> "
                     "-> vector<4xf32>";
  auto at = [](int index) {
    return "%p = llvm.getelementptr %in[" + std::to_string(index) +
           "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\n";
  };
  expectClean(32, at(4) + load);
  expectAlways(32, at(5) + load, FindingKind::Misaligned);
}

TEST(SimtFaults, DivergentBarrier) {
  auto kernel = [](int limit) {
    return "%limit = llvm.mlir.constant(" + std::to_string(limit) +
           R"( : i32) : i32
%inside = llvm.icmp "ult" %tid, %limit : i32
scf.if %inside {
  nvvm.barrier0
}
)";
  };
  expectClean(64, kernel(64));
  expectClean(64, kernel(0));
  expectAlways(64, kernel(16), FindingKind::DivergentBarrier);
  expectAlways(64, kernel(32), FindingKind::DivergentBarrier);
  // As many barriers, but different ones.
  expectAlways(64, R"(
%first = llvm.icmp "ult" %tid, %c32 : i32
scf.if %first {
  nvvm.barrier0
} else {
  nvvm.barrier0
}
)",
               FindingKind::DivergentBarrier);
}

TEST(SimtFaults, ShuffleWithoutAll) {
  auto shuffle = [](llvm::StringRef condition) {
    return R"(
%inside = llvm.icmp "ult" %tid, )" +
           condition.str() + R"( : i32
scf.if %inside {
  %x = nvvm.shfl.sync bfly %all, %zero, %c1, %c31 : f32 -> f32
}
)";
  };
  expectClean(32, shuffle("%c32"));
  expectAlways(32, shuffle("%c16"), FindingKind::InactiveLane);
}

TEST(SimtFaults, BlocksRace) {
  Launch two;
  two.grid = 2;
  expectAlways(32,
               "llvm.store %zero, %to {alignment = 4 : i64} : f32, "
               "!llvm.ptr<1>",
               FindingKind::Race, two);
  expectClean(32,
              "%x = llvm.atomicrmw fadd %to, %zero monotonic : !llvm.ptr<1>, "
              "f32",
              two);
  // What one reads another writes, whoever comes first.
  expectAlways(32, R"(
%first = llvm.icmp "eq" %block, %c0 : i32
scf.if %first {
  %x = llvm.load %to {alignment = 4 : i64} : !llvm.ptr<1> -> f32
} else {
  llvm.store %zero, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
}
)",
               FindingKind::Race, two);
}

/// The same in buffers: equal bytes of two operations are no copies.
TEST(SimtFaults, TwoWritersOfABuffer) {
  auto store = [](llvm::StringRef value) {
    return "llvm.store " + value.str() +
           ", %out {alignment = 4 : i64} : i32, !llvm.ptr<1>\n";
  };
  expectAlways(64, store("%tid"), FindingKind::Race);
  expectClean(64, store("%c1"));
  expectAlways(64,
               R"(
%first = llvm.icmp "ult" %tid, %c32 : i32
scf.if %first {
)" + store("%c1") + "} else {\n" +
                   store("%c1") + "}",
               FindingKind::Race);
}

/// Results over an operand: of its own element, of which other threads hold
/// copies, and of a neighbour's.
TEST(SimtFaults, InPlace) {
  auto kernel = [](int mask, int shift) {
    return "%mask = llvm.mlir.constant(" + std::to_string(mask) +
           " : i32) : i32\n%shift = llvm.mlir.constant(" +
           std::to_string(shift) + R"( : i32) : i32
%element = llvm.and %tid, %mask : i32
%other = llvm.add %tid, %shift : i32
%read = llvm.and %other, %mask : i32
%p = llvm.getelementptr %out[%read] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
%x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> f32
%first = llvm.icmp "eq" %element, %tid : i32
%q = llvm.getelementptr %out[%element] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
llvm.inline_asm has_side_effects "@$0 st.global.b32 [$1], $2;", "b,l,r" %first, %q, %x : (i1, !llvm.ptr<1>, f32) -> ()
)";
  };
  expectClean(64, kernel(15, 0));
  expectClean(64, kernel(63, 0));
  expectAlways(64, kernel(15, 1), FindingKind::Race);
  expectAlways(64, kernel(63, 32), FindingKind::Race);
}

/// All threads read one element, but only one of them stores over it: the
/// others make something else of what they read.
TEST(SimtFaults, InPlaceOfAnotherElement) {
  auto kernel = [](llvm::StringRef between) {
    return R"(
%x = llvm.load %out {alignment = 4 : i64} : !llvm.ptr<1> -> f32
%one = llvm.mlir.constant(1.0 : f32) : f32
%y = llvm.fadd %x, %one : f32
)" + between.str() +
           "\nllvm.store %y, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>";
  };
  expectClean(64, kernel("nvvm.barrier0"));
  expectAlways(64, kernel(""), FindingKind::Race);
  // A thread that leaves the store to another by a branch takes no part in it.
  expectAlways(64, R"(
%x = llvm.load %out {alignment = 4 : i64} : !llvm.ptr<1> -> f32
%first = llvm.icmp "eq" %tid, %c0 : i32
scf.if %first {
  llvm.store %x, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
}
)",
               FindingKind::Race);
}

TEST(SimtFaults, WritesAnInput) {
  SimtRun run;
  run.in.resize(32);
  run.out.resize(32);
  run.inIsConstant = true;
  runSimt(simtKernel(32, "llvm.store %zero, %from {alignment = 4 : i64} : f32, "
                         "!llvm.ptr<1>"),
          run);
  EXPECT_THAT(run.kinds(), ElementsAre(FindingKind::ConstantWrite));
}

/// What a buffer's own address promises: 16 bytes, but no more.
TEST(SimtFaults, MisalignedBuffer) {
  for (uint64_t phase : {16, 8}) {
    SimtRun run;
    run.in.resize(32);
    run.out.resize(32);
    run.inPhase = phase;
    runSimt(simtKernel(32, "%x = llvm.load %in {alignment = 16 : i64} : "
                           "!llvm.ptr<1> -> vector<4xf32>"),
            run);
    EXPECT_EQ(run.kinds().size(), phase == 16 ? 0u : 1u) << run.text();
    EXPECT_THAT(run.kinds(), Each(FindingKind::Misaligned));
  }
}

TEST(SimtFaults, ReadAsConstantAndWritten) {
  expectAlways(32, R"(
%x = llvm.load %to invariant {alignment = 4 : i64} : !llvm.ptr<1> -> f32
llvm.store %x, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)",
               FindingKind::NonCoherentRead);
  expectClean(32, R"(
%x = llvm.load %to {alignment = 4 : i64} : !llvm.ptr<1> -> f32
llvm.store %x, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)");
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

/// Each thread copies a number; all read each other's.
std::string copyKernel(llvm::StringRef between, llvm::StringRef before = "") {
  return before.str() + R"(
nvvm.cp.async.shared.global %own, %from, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
nvvm.cp.async.commit.group
)" + between.str() +
         R"(
%c63 = llvm.mlir.constant(63 : i32) : i32
%other = llvm.sub %c63, %tid : i32
%place = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%y = llvm.load %place {alignment = 4 : i64} : !llvm.ptr<3> -> f32
llvm.store %y, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)";
}

TEST(SimtFaults, CopyIsWaitedFor) {
  std::string good = "nvvm.cp.async.wait.group 0\nnvvm.barrier0";
  expectClean(64, copyKernel(good));
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = simt(64, copyKernel(good), launch);
    EXPECT_EQ(run.out[0], 63);
    EXPECT_EQ(run.out[63], 0);
  }
}

TEST(SimtFaults, CopyIsNotWaitedFor) {
  for (llvm::StringRef wait : {"", "nvvm.cp.async.wait.group 1\n"})
    expectAlways(64, copyKernel(wait.str() + "nvvm.barrier0"),
                 FindingKind::UnfinishedCopy);
  // Without its commit the group is still open.
  std::string open = copyKernel("nvvm.cp.async.wait.group 0\nnvvm.barrier0");
  open.replace(open.find("nvvm.cp.async.commit.group"), 26, "");
  expectAlways(64, open, FindingKind::UnfinishedCopy);
}

TEST(SimtFaults, CopyWithoutBarrier) {
  // A thread waits for its own copies only.
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = simt(64, copyKernel("nvvm.cp.async.wait.group 0"), launch);
    EXPECT_THAT(run.kinds(),
                testing::AnyOf(Contains(FindingKind::Race),
                               Contains(FindingKind::UnfinishedCopy)))
        << run.text();
  }
}

TEST(SimtFaults, CopyOverWhatIsRead) {
  // The second round fills what the first may still be reading.
  auto kernel = [](llvm::StringRef between) {
    return copyKernel("nvvm.cp.async.wait.group 0\nnvvm.barrier0") +
           between.str() + R"(
nvvm.cp.async.shared.global %own, %from, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
nvvm.cp.async.commit.group
nvvm.cp.async.wait.group 0
)";
  };
  expectClean(64, kernel("nvvm.barrier0"));
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = simt(64, kernel(""), launch);
    EXPECT_THAT(run.kinds(), Contains(FindingKind::Race)) << run.text();
  }
}

TEST(SimtFaults, CopyFromWhatChanges) {
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = simt(32, R"(
nvvm.cp.async.shared.global %own, %to, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
nvvm.cp.async.commit.group
llvm.store %zero, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
nvvm.cp.async.wait.group 0
)",
                       launch);
    EXPECT_THAT(run.kinds(), ElementsAre(FindingKind::ChangedSource))
        << run.text();
  }
}

TEST(SimtFaults, CopyOfNothingIsZeros) {
  SimtRun run = simt(64, R"(
%odd = llvm.and %tid, %c1 : i32
%far = llvm.getelementptr %in[1000000] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
%isOdd = llvm.icmp "ne" %odd, %c0 : i32
%bytes = llvm.select %isOdd, %c4, %c0 : i1, i32
%source = llvm.select %isOdd, %from, %far : i1, !llvm.ptr<1>
nvvm.cp.async.shared.global %own, %source, 4, cache = ca, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
nvvm.cp.async.commit.group
nvvm.cp.async.wait.group 0
%y = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32
llvm.store %y, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)");
  EXPECT_EQ(run.text(), "");
  EXPECT_EQ(run.out[8], 0);
  EXPECT_EQ(run.out[9], 9);
}

//===----------------------------------------------------------------------===//
// Bank conflicts
//===----------------------------------------------------------------------===//

TEST(SimtFaults, BankConflicts) {
  auto store = [](llvm::StringRef stride) {
    return R"(
%i = llvm.mul %tid, )" +
           stride.str() + R"( : i32
%p = llvm.getelementptr %shared[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
llvm.store %zero, %p {alignment = 4 : i64} : f32, !llvm.ptr<3>
)";
  };
  for (auto [stride, degree] : {std::pair("%c1", 1u),
                                {"%c2", 2u},
                                {"%c16", 16u},
                                {"%c32", 32u},
                                {"%c31", 1u}}) {
    SimtRun run = simt(32, store(stride));
    const BankStatistic *banks = run.banks("llvm.store");
    ASSERT_TRUE(banks);
    EXPECT_EQ(banks->maximum, degree) << stride;
    EXPECT_EQ(banks->mean(), degree);
    EXPECT_EQ(banks->requests, 1u);
  }
}

/// Rows of 128 bytes, their 16-byte pieces flipped by the row or not.
TEST(SimtFaults, BankConflictsOfMatrices) {
  for (bool swizzled : {false, true}) {
    Launch launch;
    launch.sharedBytes = 4096;
    std::string piece = swizzled ? "%row" : "%c0";
    SimtRun run = simt(256, R"(
%offset = llvm.mul %tid, %c16 : i32
%own16 = llvm.getelementptr %shared[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
%v = llvm.mlir.poison : vector<4xf32>
llvm.store %v, %own16 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
nvvm.barrier0
%c7 = llvm.mlir.constant(7 : i32) : i32
%row = llvm.and %tid, %c7 : i32
%start = llvm.mul %row, %c128 : i32
%shift = llvm.mul )" + piece + R"(, %c16 : i32
%at = llvm.add %start, %shift : i32
%p = llvm.getelementptr %shared[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
%x = nvvm.ldmatrix %p {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
)",
                       launch);
    EXPECT_EQ(run.text(), "");
    const BankStatistic *banks = run.banks("nvvm.ldmatrix");
    ASSERT_TRUE(banks);
    EXPECT_EQ(banks->maximum, swizzled ? 1u : 8u);
    EXPECT_EQ(run.banks("llvm.store")->maximum, 1u);
  }
}

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

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

TEST(SimtFaults, UnknownOperationsAreNamed) {
  auto error = [](llvm::StringRef body) {
    SimtRun run;
    runSimt(simtKernel(32, body), run);
    return run.error;
  };
  EXPECT_THAT(error("%x = llvm.bitcast %tid : i32 to f32\n"
                    "%y = llvm.intr.ctpop(%tid) : (i32) -> i32"),
              HasSubstr("the interpreter does not know 'llvm.intr.ctpop'"));
  EXPECT_THAT(error("%x = llvm.call_intrinsic \"llvm.nvvm.sin.approx.ftz.f\"("
                    "%zero) : (f32) -> f32"),
              HasSubstr("does not know the intrinsic "
                        "'llvm.nvvm.sin.approx.ftz.f'"));
  EXPECT_THAT(
      error("%x = llvm.inline_asm \"mov.b32 $0, 0;\\0Abrev.b32 $0, $1;\", "
            "\"=r,r\" %tid : (i32) -> i32"),
      HasSubstr("does not know the inline PTX 'brev.b32 $0, $1;'"));
}

/// What is atomic for its own program instance only would pass every run.
TEST(SimtFaults, ScopesThatLeaveOthersOut) {
  auto error = [](const std::string &scope, const std::string &space) {
    std::string to = space == "1" ? "%to" : "%own", all;
    std::string type = "!llvm.ptr<" + space + ">";
    for (const std::string &body :
         {"llvm.store %zero, " + to + " atomic " + scope +
              " monotonic {alignment = 4 : i64} : f32, " + type,
          "%x = llvm.atomicrmw fadd " + to + ", %zero " + scope +
              " monotonic : " + type + ", f32",
          "%x = llvm.cmpxchg " + to + ", %c0, %c1 " + scope +
              " monotonic monotonic : " + type + ", i32"}) {
      SimtRun run;
      runSimt(simtKernel(32, body), run);
      all += run.error;
    }
    return all;
  };
  for (std::string wide : {"", "syncscope(\"device\")"})
    EXPECT_EQ(error(wide, "1"), "");
  EXPECT_EQ(error("syncscope(\"block\")", "3"), "");
  for (std::string narrow : {"block", "cluster"}) {
    std::string expected = "is atomic for the scope '" + narrow +
                           "' alone, and other program instances share its "
                           "memory\n";
    EXPECT_EQ(error("syncscope(\"" + narrow + "\")", "1"),
              expected + expected + expected);
  }
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
  EXPECT_NE(run("nvvm.cluster.arrive {aligned}\n" + write, 2, 0).error, "");
  EXPECT_NE(run("nvvm.cluster.wait {aligned}\n" + write, 2, 0).error, "");
}

TEST(SimtFaults, EndlessLoopsEnd) {
  Launch launch;
  launch.instructionLimit = 1 << 20;
  SimtRun run = simt(32, R"(
scf.for %i = %c0 to %c1 step %c0 : i32 {
}
)",
                     launch);
  EXPECT_THAT(run.kinds(), ElementsAre(FindingKind::StepLimit));
}

} // namespace
