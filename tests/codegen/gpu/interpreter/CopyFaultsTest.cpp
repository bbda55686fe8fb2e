// Faults of asynchronous copies, and conflicts of banks.
#include "Simt.h"

using namespace charonia::interpreter;
using testing::Contains;
using testing::ElementsAre;

namespace {

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

/// Each thread copies a number; all read each other's.
std::string copyKernel(llvm::StringRef between, llvm::StringRef before = "") {
  return before.str() + R"(
nvvm.cp.async.shared.global %own, %from, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
nvvm.cp.async.commit.group
)" + between.str() +
         readAcross.str();
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

} // namespace
