// A ring between a warp that copies and a warpgroup that multiplies, and each
// way of getting its order wrong.
#include "TensorCopies.h"
#include "codegen/gpu/interpreter/Formats.h"
#include <cstring>

using namespace charonia::interpreter;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;

namespace {

constexpr int kSteps = 5;

/// Steps of 64 rows (A) and 8 columns (B) of 64 halves, in stages of 9216 bytes
/// behind 1024 bytes of mbarriers. Warp 4 copies, the others multiply.
std::string ring(const std::string &release, const std::string &wait,
                 const std::string &full, const std::string &expected = "9216",
                 const std::string &awaitEmpty =
                     "nvvm.mbarrier.try_wait.parity %empty, %flipped, %ticks : "
                     "!llvm.ptr<3>, i32, i32\n") {
  const std::string ring = R"(
  %slot = llvm.and %k, %c1 : i32
  %round = llvm.lshr %k, %c1 : i32
  %parity = llvm.and %round, %c1 : i32
  %flipped = llvm.xor %parity, %c1 : i32
  %full = llvm.getelementptr %shared[%slot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  %beyond = llvm.add %slot, %c2 : i32
  %empty = llvm.getelementptr %shared[%beyond] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  %place = llvm.mul %slot, %stage : i32
  %start = llvm.add %place, %c1024 : i32
)";
  std::string dots;
  for (int step = 0; step < 4; ++step) {
    std::string n = std::to_string(step), next = std::to_string(step + 1);
    dots += "%by" + n + " = llvm.mlir.constant(" + std::to_string(2 * step) +
            " : i64) : i64\n%a" + n + " = llvm.add %lhs, %by" + n +
            " : i64\n%b" + n + " = llvm.add %rhs, %by" + n + " : i64\n%acc" +
            next + " = nvvm.wgmma.mma_async %a" + n + ", %b" + n + ", %acc" +
            n +
            ", <m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<f16>, <one>, "
            "<row>], B [<f16>, <one>, <col>] : !llvm.struct<(f32, f32, f32, "
            "f32)> -> !llvm.struct<(f32, f32, f32, f32)>\n";
  }
  return R"(
%c5 = llvm.mlir.constant(5 : i32) : i32
%c1024 = llvm.mlir.constant(1024 : i32) : i32
%stage = llvm.mlir.constant(9216 : i32) : i32
%bytes = llvm.mlir.constant()" +
         expected + R"( : i32) : i32
%ticks = llvm.mlir.constant(10000000 : i32) : i32
%isInit = llvm.icmp "eq" %tid, %c0 : i32
scf.if %isInit {
  scf.for %k = %c0 to %c2 step %c1 : i32 {
    %full = llvm.getelementptr %shared[%k] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
    %beyond = llvm.add %k, %c2 : i32
    %empty = llvm.getelementptr %shared[%beyond] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
    nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
    nvvm.mbarrier.init %empty, %c4 : !llvm.ptr<3>, i32
  }
}
nvvm.fence.mbarrier.init
nvvm.barrier0
%isProducer = llvm.icmp "uge" %tid, %c128 : i32
%isIssuer = llvm.icmp "eq" %tid, %c128 : i32
scf.if %isProducer {
  scf.if %isIssuer {
    scf.for %k = %c0 to %c5 step %c1 : i32 {
)" + ring +
         awaitEmpty +
         R"(
      nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
      %target = llvm.getelementptr %shared[%start] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %box = llvm.addrspacecast %target : !llvm.ptr<3> to !llvm.ptr<7>
      %column = llvm.mul %k, %c64 : i32
      nvvm.cp.async.bulk.tensor.shared.cluster.global %box, %map0, %full, box[%column, %c0] : !llvm.ptr<7>, !llvm.ptr
    }
  }
  llvm.inline_asm has_side_effects "exit;", "" : () -> ()
}
%lane = llvm.and %tid, %c31 : i32
%isReleasing = llvm.icmp "eq" %lane, %c3 : i32
%c7 = llvm.mlir.constant(7 : i32) : i32
%high = llvm.mlir.constant(4611686293305294848 : i64) : i64
%d0, %d1, %d2, %d3 = scf.for %k = %c0 to %c5 step %c1 iter_args(%x0 = %zero, %x1 = %zero, %x2 = %zero, %x3 = %zero) -> (f32, f32, f32, f32) : i32 {
)" + ring +
         full +
         R"(
  %chunk = llvm.lshr %start, %c4 : i32
  %wide = llvm.zext %chunk : i32 to i64
  %lhs = llvm.or %wide, %high : i64
  %columns = llvm.mlir.constant(512 : i64) : i64
  %rhs = llvm.add %lhs, %columns : i64
  %u0 = llvm.mlir.poison : !llvm.struct<(f32, f32, f32, f32)>
  %u1 = llvm.insertvalue %x0, %u0[0] : !llvm.struct<(f32, f32, f32, f32)>
  %u2 = llvm.insertvalue %x1, %u1[1] : !llvm.struct<(f32, f32, f32, f32)>
  %u3 = llvm.insertvalue %x2, %u2[2] : !llvm.struct<(f32, f32, f32, f32)>
  %acc0 = llvm.insertvalue %x3, %u3[3] : !llvm.struct<(f32, f32, f32, f32)>
  nvvm.wgmma.fence.aligned
)" + dots +
         "nvvm.wgmma.commit.group.sync.aligned\n" + wait + release + R"(
  %y0 = llvm.extractvalue %acc4[0] : !llvm.struct<(f32, f32, f32, f32)>
  %y1 = llvm.extractvalue %acc4[1] : !llvm.struct<(f32, f32, f32, f32)>
  %y2 = llvm.extractvalue %acc4[2] : !llvm.struct<(f32, f32, f32, f32)>
  %y3 = llvm.extractvalue %acc4[3] : !llvm.struct<(f32, f32, f32, f32)>
  scf.yield %y0, %y1, %y2, %y3 : f32, f32, f32, f32
}
nvvm.wgmma.wait.group.sync.aligned 0
// Lane l of warp w has rows 16 w + l / 4 and 8 below, columns l % 4 * 2 and next.
nvvm.barrier0
%quad = llvm.lshr %lane, %c2 : i32
%member = llvm.and %lane, %c3 : i32
%warp5 = llvm.lshr %tid, %c5 : i32
%top = llvm.mul %warp5, %c128 : i32
%down = llvm.shl %quad, %c3 : i32
%right = llvm.shl %member, %c1 : i32
%o0 = llvm.add %top, %down : i32
%o1 = llvm.add %o0, %right : i32
%r = llvm.getelementptr %out[%o1] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
llvm.store %d0, %r {alignment = 4 : i64} : f32, !llvm.ptr<1>
%r1 = llvm.getelementptr %r[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
llvm.store %d1, %r1 {alignment = 4 : i64} : f32, !llvm.ptr<1>
%r2 = llvm.getelementptr %r[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
llvm.store %d2, %r2 {alignment = 4 : i64} : f32, !llvm.ptr<1>
%r3 = llvm.getelementptr %r[65] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
llvm.store %d3, %r3 {alignment = 4 : i64} : f32, !llvm.ptr<1>
)";
}

const std::string kRelease = arriveAt("empty", "isReleasing"),
                  kWaitDots = "nvvm.wgmma.wait.group.sync.aligned 0\n",
                  kWaitFull =
                      "nvvm.mbarrier.try_wait.parity %full, %parity, %ticks : "
                      "!llvm.ptr<3>, i32, i32\n";

/// What one of the ring's rows holds: 64 of A, then 8 of B.
int ringNumber(int row, int k) { return (row * 7 + k * 3) % 11 - 5; }

SimtRun runRing(const std::string &body, Launch launch) {
  constexpr int depth = 64 * kSteps, rows = 72;
  SimtRun run;
  run.in.resize(rows * depth / 2);
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < depth; ++k) {
      auto bits = uint16_t(Half::round(float(ringNumber(row, k))));
      std::memcpy(reinterpret_cast<char *>(run.in.data()) +
                      2 * (row * depth + k),
                  &bits, 2);
    }
  run.out.resize(64 * 8, -1);
  TensorMap map;
  map.elementBytes = 2;
  map.swizzle = 128;
  map.extents = {depth, rows};
  map.strides = {2 * depth};
  map.box = {64, rows};
  map.steps = {1, 1};
  run.launch = launch;
  run.launch.maps = {map};
  run.launch.sharedBytes = 1024 + 2 * 9216;
  runSimt(simtKernel(160, body, 1), run);
  EXPECT_EQ(run.error, "");
  return run;
}

/// Gives back the stage of the product before the one under way.
const std::string kReleaseOther = R"(
%before = llvm.sub %k, %c1 : i32
%otherSlot = llvm.and %before, %c1 : i32
%otherBeyond = llvm.add %otherSlot, %c2 : i32
%other = llvm.getelementptr %shared[%otherBeyond] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
%isLater = llvm.icmp "ne" %k, %c0 : i32
%when = llvm.and %isReleasing, %isLater : i1
)" + arriveAt("other", "when"),
                  kWaitBefore = "nvvm.wgmma.wait.group.sync.aligned 1\n";

TEST(TensorCopies, Ring) {
  for (const std::string &body : {ring(kRelease, kWaitDots, kWaitFull),
                                  ring(kReleaseOther, kWaitBefore, kWaitFull)})
    for (const Launch &launch : manyLaunches()) {
      SimtRun run = runRing(body, launch);
      EXPECT_EQ(run.text(), "");
      for (int row = 0; row < 64; ++row)
        for (int column = 0; column < 8; ++column) {
          int sum = 0;
          for (int k = 0; k < 64 * kSteps; ++k)
            sum += ringNumber(row, k) * ringNumber(64 + column, k);
          ASSERT_EQ(run.out[row * 8 + column], sum) << row << ", " << column;
        }
    }
}

TEST(TensorCopies, RingsWithoutOrder) {
  for (Launch launch : manyLaunches()) {
    // A stage is given back while a product may still read it.
    SimtRun early = runRing(ring("", kRelease + kWaitDots, kWaitFull), launch);
    EXPECT_THAT(early.kinds(), Contains(FindingKind::Race)) << early.text();
    SimtRun other = runRing(ring(kRelease, kWaitBefore, kWaitFull), launch);
    EXPECT_THAT(other.kinds(), Contains(FindingKind::Race)) << other.text();
    EXPECT_THAT(other.text(),
                HasSubstr("[nvvm.wgmma.mma_async at kernel.mlir:"));
    // It is filled again before it is given back: some orders get as far as
    // expecting the bytes twice.
    SimtRun unasked =
        runRing(ring(kRelease, kWaitDots, kWaitFull, "9216", ""), launch);
    EXPECT_THAT(unasked.kinds(), AnyOf(Contains(FindingKind::Race),
                                       Contains(FindingKind::UnfinishedCopy),
                                       Contains(FindingKind::BarrierMisuse)))
        << unasked.text();
    // It is never given back.
    SimtRun kept = runRing(ring("", kWaitDots, kWaitFull), launch);
    EXPECT_THAT(kept.kinds(), Contains(FindingKind::Deadlock));
    EXPECT_THAT(kept.text(),
                HasSubstr("thread 128: waits for a phase of parity 0 of the "
                          "mbarrier at byte 16 for ever: its phase 0 lacks 4 "
                          "of 4 arrivals and 0 bytes"));
    SimtRun unwaited = runRing(ring(kRelease, kWaitDots, ""), launch);
    EXPECT_THAT(unwaited.kinds(), AnyOf(Contains(FindingKind::UnwrittenRead),
                                        Contains(FindingKind::UnfinishedCopy)))
        << unwaited.text();
  }
}

} // namespace
