// Each fault of a kernel is found, in every order of its warps, and the same
// kernel without it is clean.
#include "Simt.h"

using namespace charonia::interpreter;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::string reversal(llvm::StringRef between) {
  return R"(
%x = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<1> -> f32
llvm.store %x, %own {alignment = 4 : i64} : f32, !llvm.ptr<3>
)" + between.str() +
         readAcross.str();
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
