// The copy engine: what lands where, at edges, with pieces that trade places
// and as im2col; a ring between a warp that copies and a warpgroup that
// multiplies; and each way of getting the order wrong.
#include "Simt.h"
#include "codegen/gpu/interpreter/Formats.h"
#include <cstring>

using namespace charonia::interpreter;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// An mbarrier of one arrival at byte 8192.
constexpr llvm::StringLiteral kNames = R"(
%full = llvm.getelementptr %shared[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
%empty = llvm.getelementptr %shared[8200] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
%first = llvm.icmp "eq" %tid, %c0 : i32
%true = llvm.icmp "eq" %c0, %c0 : i32
%ticks = llvm.mlir.constant(10000000 : i32) : i32
%box = llvm.addrspacecast %shared : !llvm.ptr<3> to !llvm.ptr<7>
)",
                              kInit = R"(
scf.if %first {
  nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
  nvvm.mbarrier.init %empty, %c64 : !llvm.ptr<3>, i32
}
)",
                              kFence = "nvvm.fence.mbarrier.init\n",
                              kBarrier = "nvvm.barrier0\n";

const std::string kReady = (kNames + kInit + kFence + kBarrier).str();

std::string expect(int bytes) {
  return "%bytes = llvm.mlir.constant(" + std::to_string(bytes) +
         " : i32) : i32\n"
         "nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32\n";
}

std::string copyBox(llvm::ArrayRef<int> coordinates,
                    llvm::ArrayRef<int> offsets = {}) {
  std::string constants;
  auto list = [&](llvm::ArrayRef<int> values, const std::string &name,
                  const std::string &type) {
    std::vector<std::string> names;
    for (auto [i, value] : llvm::enumerate(values)) {
      names.push_back("%" + name + std::to_string(i));
      constants += names.back() + " = llvm.mlir.constant(" +
                   std::to_string(value) + " : " + type + ") : " + type + "\n";
    }
    return "[" + llvm::join(names, ", ") + "]";
  };
  std::string box = "box" + list(coordinates, "at", "i32");
  if (!offsets.empty())
    box += " im2col" + list(offsets, "offset", "i16") +
           " {mode = #nvvm.tma_load_mode<im2col>}";
  return constants +
         "nvvm.cp.async.bulk.tensor.shared.cluster.global %box, %map0, "
         "%full, " +
         box + " : !llvm.ptr<7>, !llvm.ptr\n";
}

std::string byFirst(const std::string &body) {
  return "scf.if %first {\n" + body + "}\n";
}

std::string waitFor(const std::string &barrier, int parity = 0) {
  return "nvvm.mbarrier.try_wait.parity %" + barrier + ", %c" +
         std::to_string(parity) + ", %ticks : !llvm.ptr<3>, i32, i32\n";
}

std::string arriveAt(const std::string &barrier, const std::string &predicate) {
  return "llvm.inline_asm has_side_effects \"@$0 "
         "mbarrier.arrive.shared::cta.b64 _, [$1];\", \"b,r,~{memory}\" %" +
         predicate + ", %" + barrier + " : (i1, !llvm.ptr<3>) -> ()\n";
}

/// 64 threads write what lies in shared memory.
std::string writeShared(int words) {
  return "%words = llvm.mlir.constant(" + std::to_string(words) +
         R"( : i32) : i32
scf.for %i = %tid to %words step %c64 : i32 {
  %p = llvm.getelementptr %shared[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %y = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<3> -> f32
  %q = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %y, %q {alignment = 4 : i64} : f32, !llvm.ptr<1>
}
)";
}

/// Reads one word of the box a thread.
constexpr llvm::StringLiteral kRead =
    "%word = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32\n";

/// 10 rows of 40 floats; boxes of 8 by 32.
TensorMap matrixMap() {
  TensorMap map;
  map.elementBytes = 4;
  map.extents = {40, 10};
  map.strides = {160};
  map.box = {32, 8};
  map.steps = {1, 1};
  return map;
}
constexpr int kBoxBytes = 1024;

/// Of a tensor of 1, 2, 3, ...
SimtRun runMap(const TensorMap &map, const std::string &body, size_t inputs,
               size_t outputs, Launch launch) {
  SimtRun run;
  for (size_t i = 0; i < inputs; ++i)
    run.in.push_back(float(i + 1));
  run.out.resize(outputs, -1);
  run.launch = launch;
  run.launch.maps = {map};
  run.launch.sharedBytes = 16384;
  runSimt(simtKernel(64, body, 1), run);
  EXPECT_EQ(run.error, "");
  return run;
}

void expectFound(const std::string &body, FindingKind kind,
                 const std::string &text, const TensorMap &map = matrixMap()) {
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = runMap(map, body, 400, 400, launch);
    EXPECT_THAT(run.kinds(), Contains(kind)) << run.text();
    EXPECT_THAT(run.kinds(), Each(kind)) << run.text();
    EXPECT_THAT(run.text(), HasSubstr(text));
    EXPECT_THAT(run.text(), HasSubstr("at kernel.mlir:"));
  }
}

void expectRight(const std::string &body, const TensorMap &map = matrixMap()) {
  for (const Launch &launch : manyLaunches())
    EXPECT_EQ(runMap(map, body, 400, 400, launch).text(), "");
}

//===----------------------------------------------------------------------===//
// What lands where
//===----------------------------------------------------------------------===//

/// The word of a box that lies in a word of shared memory.
int unswizzled(int word, unsigned swizzle) {
  return swizzle ? word ^ ((word >> 5 & 7) << 2) : word;
}

TEST(TensorCopies, TiledBoxes) {
  for (unsigned swizzle : {0, 128})
    for (int step : {1, 2})
      for (auto [x, y] : {std::pair(0, 0),
                          {8, 2},
                          {-4, -3},
                          {20, 6},
                          {40, 0},
                          {-32, -8},
                          {0, 12}}) {
        TensorMap map = matrixMap();
        map.swizzle = swizzle;
        map.steps[1] = step;
        int rows = 8 / step; // The box spans what is stepped over, too.
        std::string body = kReady +
                           byFirst(expect(rows * 128) + copyBox({x, y})) +
                           waitFor("full") + writeShared(rows * 32);
        for (const Launch &launch : manyLaunches()) {
          SimtRun run = runMap(map, body, 400, rows * 32, launch);
          EXPECT_EQ(run.text(), "");
          for (int word = 0; word < rows * 32; ++word) {
            int at = unswizzled(word, swizzle);
            int column = x + at % 32, row = y + at / 32 * step;
            bool inside = column >= 0 && column < 40 && row >= 0 && row < 10;
            ASSERT_EQ(run.out[word], inside ? row * 40 + column + 1 : 0)
                << x << ", " << y << ": word " << word;
          }
        }
      }
}

/// A filter of 3x3 with padding 1: output pixels from `pixel` on, of images of
/// 5 by 4 pixels of 32 channels.
void checkIm2col(int stride, int pixel, int r, int s, int channel) {
  constexpr int channels = 32, width = 5, height = 4, images = 2, pixels = 16;
  TensorMap map;
  map.elementBytes = 4;
  map.swizzle = 128;
  map.extents = {channels, width, height, images};
  map.strides = {4 * channels, 4 * channels * width,
                 4 * channels * width * height};
  map.box = {32, pixels};
  map.steps = {1, stride, stride, 1};
  map.lower = {-1, -1};
  map.upper = {-1, -1};
  int q = (width - 1) / stride + 1, p = (height - 1) / stride + 1;
  int image = pixel / (p * q), row = pixel / q % p, column = pixel % q;
  std::string body =
      kReady +
      byFirst(expect(pixels * 128) +
              copyBox({channel, column * stride - 1, row * stride - 1, image},
                      {s, r})) +
      waitFor("full") + writeShared(pixels * 32);
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = runMap(map, body, channels * width * height * images,
                         pixels * 32, launch);
    EXPECT_EQ(run.text(), "");
    for (int word = 0; word < pixels * 32; ++word) {
      int at = unswizzled(word, 128), number = pixel + at / 32;
      int n = number / (p * q), y = number / q % p * stride - 1 + r,
          x = number % q * stride - 1 + s, c = channel + at % 32;
      bool inside = n < images && y >= 0 && y < height && x >= 0 && x < width &&
                    c < channels;
      int expected = ((n * height + y) * width + x) * channels + c + 1;
      ASSERT_EQ(run.out[word], inside ? expected : 0)
          << "stride " << stride << ", pixel " << pixel << ", tap " << r << ", "
          << s << ": word " << word;
    }
  }
}

TEST(TensorCopies, Im2col) {
  for (int r = 0; r < 3; ++r)
    for (int s = 0; s < 3; ++s) {
      checkIm2col(1, 0, r, s, 0);
      checkIm2col(1, 33, r, s, 0);
      checkIm2col(2, 0, r, s, 0);
      checkIm2col(2, 4, r, s, 0);
      checkIm2col(2, 5, r, s, 16); // The last channels are not there.
    }
}

//===----------------------------------------------------------------------===//
// A ring
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

TEST(TensorCopies, IsWaitedFor) {
  std::string copy = kReady + byFirst(expect(kBoxBytes) + copyBox({0, 0}));
  expectRight(copy + waitFor("full") + kRead.str());
  // Who has waited may tell others.
  std::string tells = copy + byFirst(waitFor("full")) + kBarrier.str();
  expectRight(tells + kRead.str());
  expectFound(copy + kBarrier.str() + kRead.str(), FindingKind::UnfinishedCopy,
              ", which the copy engine writes, without having waited for its "
              "mbarrier");
  expectFound(copy + kBarrier.str() + byFirst(waitFor("full")) + kRead.str(),
              FindingKind::UnfinishedCopy, "without having waited");
  expectFound(copy, FindingKind::UnfinishedCopy,
              "may still be under way when its block ends: nobody has waited "
              "for the mbarrier at byte 8192");
  // The phase before this one was over all the time; the one behind it never
  // is.
  for (const Launch &launch : manyLaunches())
    EXPECT_THAT(runMap(matrixMap(),
                       copy + kBarrier.str() + waitFor("full", 1) + kRead.str(),
                       400, 400, launch)
                    .kinds(),
                AnyOf(Contains(FindingKind::UnfinishedCopy),
                      Contains(FindingKind::Deadlock)));
}

TEST(TensorCopies, OverWhatIsRead) {
  auto again = [](const std::string &arrive, const std::string &wait) {
    return kReady + byFirst(expect(kBoxBytes) + copyBox({0, 0})) +
           waitFor("full") + kRead.str() + arrive +
           byFirst(wait + expect(kBoxBytes) + copyBox({0, 0})) +
           waitFor("full", 1);
  };
  expectRight(again(arriveAt("empty", "true"), waitFor("empty")));
  expectRight(again(kBarrier.str(), ""));
  auto expectRace = [](const std::string &body) {
    for (const Launch &launch : manyLaunches()) {
      SimtRun run = runMap(matrixMap(), body, 400, 400, launch);
      EXPECT_THAT(run.kinds(), Contains(FindingKind::Race)) << run.text();
      EXPECT_THAT(run.text(),
                  HasSubstr("race: nvvm.cp.async.bulk.tensor.shared.cluster."
                            "global at kernel.mlir:"));
    }
  };
  expectRace(again("", ""));
  expectRace(again(arriveAt("empty", "true"), ""));
}

/// One lane of each warp arrives for it: where its lanes have met before.
TEST(TensorCopies, LanesArriveForOthers) {
  auto kernel = [](const std::string &meet) {
    std::string init = kInit.str();
    init.replace(init.find("%c64"), 4, "%c2");
    return kNames.str() + init + (kFence + kBarrier).str() +
           byFirst(expect(kBoxBytes) + copyBox({0, 0})) + waitFor("full") +
           kRead.str() + meet +
           "%lane = llvm.and %tid, %c31 : i32\n"
           "%isFirst = llvm.icmp \"eq\" %lane, %c0 : i32\n" +
           arriveAt("empty", "isFirst") +
           byFirst(waitFor("empty") + expect(kBoxBytes) + copyBox({0, 0})) +
           waitFor("full", 1);
  };
  expectRight(kernel("nvvm.bar.warp.sync %all : i32\n"));
  expectFound(kernel(""), FindingKind::Race,
              "which another thread read since the last barrier");
}

TEST(TensorCopies, OverWhatIsWritten) {
  std::string write = "llvm.store %zero, %own {alignment = 4 : i64} : f32, "
                      "!llvm.ptr<3>\n",
              copy = byFirst(expect(kBoxBytes) + copyBox({0, 0})) +
                     waitFor("full");
  expectRight(kReady + write + kBarrier.str() + copy);
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = runMap(matrixMap(), kReady + write + copy, 400, 400, launch);
    EXPECT_THAT(run.kinds(), Contains(FindingKind::Race)) << run.text();
  }
}

TEST(TensorCopies, BytesThatDoNotMatch) {
  auto kernel = [](int bytes) {
    return kReady + byFirst(expect(bytes) + copyBox({0, 0})) + waitFor("full");
  };
  expectRight(kernel(kBoxBytes));
  expectFound(kernel(kBoxBytes + 128), FindingKind::Deadlock,
              "waits for a phase of parity 0 of the mbarrier at byte 8192 for "
              "ever: its phase 0 lacks 0 of 1 arrivals and 128 bytes");
  expectFound(kernel(kBoxBytes - 128), FindingKind::UnexpectedBytes,
              "brings 1024 bytes to the mbarrier at byte 8192, whose phase 0 "
              "expects 896 more");
  // Where the first of them end the phase the next one expects none.
  std::string copy = copyBox({0, 0}), second = copy;
  for (size_t at; (at = second.find("%at")) != std::string::npos;)
    second.replace(at, 3, "%too");
  expectFound(kReady + byFirst(expect(kBoxBytes) + copy + second) +
                  waitFor("full"),
              FindingKind::UnexpectedBytes, "brings 1024 bytes");
}

TEST(TensorCopies, Arrivals) {
  // Nobody arrives, or too many do.
  expectFound(kReady + waitFor("full"), FindingKind::Deadlock,
              "its phase 0 lacks 1 of 1 arrivals and 0 bytes");
  expectFound(kReady + byFirst(expect(kBoxBytes) + arriveAt("full", "true")),
              FindingKind::BarrierMisuse,
              "arrives at the mbarrier at byte 8192, whose phase 0 has all of "
              "its 1 arrivals and waits for bytes");
  expectRight(kReady + arriveAt("empty", "true") + waitFor("empty"));
  expectFound(kReady + arriveAt("empty", "first") + waitFor("empty"),
              FindingKind::Deadlock,
              "its phase 0 lacks 63 of 64 arrivals and 0 bytes");
}

TEST(TensorCopies, MemoryOfBarriers) {
  std::string touch = "llvm.store %c0, %full {alignment = 4 : i64} : i32, "
                      "!llvm.ptr<3>\n",
              meet = arriveAt("empty", "true") + waitFor("empty");
  expectFound(
      kReady + byFirst(touch), FindingKind::BarrierMisuse,
      "writes shared memory at byte 8192, which belongs to an mbarrier");
  expectFound(kNames.str() + meet, FindingKind::BarrierMisuse,
              "takes shared memory at byte 8200 for an mbarrier, which none "
              "has been made of");
  expectRight((kNames + kInit + kFence + kBarrier).str() + meet);
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = runMap(matrixMap(), (kNames + kInit + kFence).str() + meet,
                         400, 400, launch);
    EXPECT_THAT(run.kinds(), Contains(FindingKind::BarrierMisuse));
    EXPECT_THAT(run.kinds(), Each(FindingKind::BarrierMisuse));
  }
  expectFound((kNames + kInit + kBarrier).str() +
                  byFirst(expect(kBoxBytes) + copyBox({0, 0})) +
                  waitFor("full"),
              FindingKind::MissingFence,
              "gives the copy engine the mbarrier at byte 8192, which was "
              "initialized without fence.mbarrier.init");
}

TEST(TensorCopies, SourcesThatChange) {
  auto kernel = [](const std::string &wait) {
    return kReady +
           byFirst(expect(kBoxBytes) + copyBox({0, 0}) + wait +
                   "llvm.store %zero, %in {alignment = 4 : i64} : f32, "
                   "!llvm.ptr<1>\n") +
           waitFor("full");
  };
  expectRight(kernel(waitFor("full")));
  expectFound(kernel(""), FindingKind::ChangedSource,
              "what it copies from changed before it was done");
}

TEST(TensorCopies, BeforeTheKernelsBefore) {
  std::string wait = "nvvm.griddepcontrol wait\n",
              copy = kReady + byFirst(expect(kBoxBytes) + copyBox({0, 0})) +
                     waitFor("full");
  Launch launch;
  launch.overlapsPrevious = true;
  EXPECT_EQ(runMap(matrixMap(), wait + copy, 400, 1, launch).text(), "");
  SimtRun run = runMap(matrixMap(), copy + wait, 400, 1, launch);
  EXPECT_THAT(run.kinds(), ElementsAre(FindingKind::EarlyAccess));
  EXPECT_THAT(run.text(), HasSubstr("thread 0: reads buffer 0 at byte 0 before "
                                    "it has waited for the kernels before"));
}

TEST(TensorCopies, PlacesAndMaps) {
  std::string copy =
      kReady + byFirst(expect(kBoxBytes) + copyBox({0, 0})) + waitFor("full");
  auto moved = [&](int bytes) {
    std::string body = copy;
    std::string cast = "llvm.addrspacecast %shared",
                to = "llvm.getelementptr %shared[" + std::to_string(bytes) +
                     "] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n";
    body.replace(body.find(cast), cast.size(), "llvm.addrspacecast %place");
    return "%place = " + to + body;
  };
  expectRight(moved(128));
  expectFound(moved(64), FindingKind::Misaligned,
              "fills shared memory from byte 64 on, which is no multiple of "
              "128");
  expectFound(moved(16384 - 512), FindingKind::OutOfBounds,
              "writes 16 bytes of shared memory at byte 16384 of 16384");
  TensorMap map = matrixMap();
  map.extents[1] = 20;
  std::string below =
      kReady + byFirst(expect(kBoxBytes) + copyBox({0, 8})) + waitFor("full");
  expectFound(below, FindingKind::OutOfBounds,
              "reads 128 bytes of buffer 0 at byte 1600 of 1600", map);
  map.swizzle = 64;
  expectFound(copy, FindingKind::NotModelled, "pieces that trade places", map);
  map = matrixMap();
  map.lower = map.upper = {0};
  expectFound(copy, FindingKind::NotModelled, "do not go together", map);
  map = matrixMap();
  map.extents.push_back(1);
  map.strides.push_back(1600);
  map.box.push_back(1);
  map.steps.push_back(1);
  expectFound(copy, FindingKind::NotModelled, "of another mode or rank", map);
}

//===----------------------------------------------------------------------===//
// Warps that meet
//===----------------------------------------------------------------------===//

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

TEST(TensorCopies, UnknownFormsAreNamed) {
  auto error = [](const std::string &text) {
    SimtRun run;
    runSimt(simtKernel(64, kReady + text, 1), run);
    return run.error;
  };
  std::string copy = "nvvm.cp.async.bulk.tensor.shared.cluster.global %box, "
                     "%map0, %full, box[%c0, %c0] ";
  EXPECT_THAT(error("%mask = llvm.mlir.constant(3 : i16) : i16\n" + copy +
                    "multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr\n"),
              HasSubstr("knows boxes and im2col for one block without "
                        "predicate"));
  EXPECT_THAT(error("nvvm.barrier id = %c1\n"),
              HasSubstr("barriers with number and threads, or neither"));
}

} // namespace
