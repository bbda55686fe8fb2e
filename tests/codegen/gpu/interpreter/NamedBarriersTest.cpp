// Barriers of some warps, and warps that have left.
#include "Simt.h"

using namespace charonia::interpreter;
using testing::Contains;
using testing::HasSubstr;

namespace {

/// Two of three warps write, meet and read; the third is elsewhere.
std::string reversal(const std::string &meet) {
  return R"(
%id = llvm.mlir.constant(3 : i32) : i32
%mine = llvm.icmp "ult" %tid, %c64 : i32
scf.if %mine {
  %x = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<1> -> f32
  llvm.store %x, %own {alignment = 4 : i64} : f32, !llvm.ptr<3>
)" + meet +
         readAcross.str() + "}\n";
}

TEST(NamedBarriers, OrderTheirWarps) {
  std::string meet = "nvvm.barrier id = %id number_of_threads = %c64\n";
  expectClean(96, reversal(meet));
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = simt(96, reversal(meet), launch);
    EXPECT_EQ(run.out[0], 63);
    EXPECT_EQ(run.out[63], 0);
    // One of another number orders nothing, and is not for these.
    SimtRun other = simt(96,
                         reversal("%warp = llvm.lshr %tid, %c4 : i32\n"
                                  "nvvm.barrier id = %warp "
                                  "number_of_threads = %c32\n"),
                         launch);
    EXPECT_THAT(other.kinds(), Contains(FindingKind::Race)) << other.text();
  }
  expectAlways(96,
               reversal("nvvm.barrier id = %tid number_of_threads = %c64\n"),
               FindingKind::NotModelled);
}

/// The same of a buffer; and what all threads write, one value of one place.
TEST(NamedBarriers, OrderOtherAccesses) {
  std::string meet = "nvvm.barrier id = %c1 number_of_threads = %c64\n",
              other = R"(
%c63 = llvm.mlir.constant(63 : i32) : i32
%across = llvm.sub %c63, %tid : i32
%its = llvm.getelementptr %out[%across] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
)",
              write = "llvm.store %zero, %to {alignment = 4 : i64} : f32, "
                      "!llvm.ptr<1>\n",
              read = "%x = llvm.load %its {alignment = 4 : i64} : "
                     "!llvm.ptr<1> -> f32\n",
              all = "llvm.store %c1, %shared {alignment = 4 : i64} : i32, "
                    "!llvm.ptr<3>\n",
              use = "%u = llvm.load %shared {alignment = 4 : i64} : "
                    "!llvm.ptr<3> -> i32\n";
  auto mine = [](const std::string &body) {
    return "%mine = llvm.icmp \"ult\" %tid, %c64 : i32\nscf.if %mine {\n" +
           body + "}\n";
  };
  for (const auto &[first, second] :
       {std::pair(other + write, read), {other + read, write}, {all, use}}) {
    expectClean(96, mine(first + meet + second));
    // The same barrier elsewhere is none between the two.
    expectAlways(96, mine(meet + first + second), FindingKind::Race);
  }
}

TEST(NamedBarriers, AllOfThemCome) {
  std::string meet = "nvvm.barrier id = %c1 number_of_threads = %c64\n",
              alone = "%alone = llvm.icmp \"ult\" %tid, %c32 : i32\n";
  expectAlways(96, alone + "scf.if %alone {\n" + meet + "}\n",
               FindingKind::Deadlock);
  EXPECT_THAT(simt(96, alone + "scf.if %alone {\n" + meet + "}\n").text(),
              HasSubstr("waits for ever at barrier 1, where 64 threads should "
                        "come"));
  expectAlways(96,
               alone +
                   "%n = llvm.select %alone, %c64, %c32 : i1, i32\n"
                   "%first = llvm.icmp \"eq\" %n, %c64 : i32\n"
                   "scf.if %first {\n" +
                   meet +
                   "} else {\n"
                   "%m = llvm.add %c32, %c64 : i32\n"
                   "nvvm.barrier id = %c1 number_of_threads = %m\n}\n",
               FindingKind::DivergentBarrier);
}

/// Barriers wait for the threads that live.
TEST(NamedBarriers, WarpsThatHaveLeft) {
  auto kernel = [](const std::string &leave) {
    return "%third = llvm.icmp \"uge\" %tid, %c64 : i32\n"
           "scf.if %third {\n" +
           leave + "}\n" + reversal("nvvm.barrier0\n");
  };
  // In a branch the third warp does not come, and ends as others do.
  expectAlways(96, kernel(""), FindingKind::DivergentBarrier);
  std::string left =
      kernel("llvm.inline_asm has_side_effects \"exit;\", \"\" : () -> ()\n");
  expectClean(96, left);
  for (const Launch &launch : manyLaunches())
    EXPECT_EQ(simt(96, left, launch).out[0], 63);
}

} // namespace
