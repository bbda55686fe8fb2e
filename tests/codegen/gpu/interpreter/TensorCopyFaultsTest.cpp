// The copy engine: each way of getting the order wrong, bytes and places that
// do not fit.
#include "TensorCopies.h"

using namespace charonia::interpreter;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

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
