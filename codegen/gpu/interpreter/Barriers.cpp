// Barriers of some warps, and mbarriers: objects in shared memory whose phases
// end when enough threads have arrived and all bytes that they expect have
// come.
#include "codegen/gpu/interpreter/Machine.h"

using namespace charonia;
using namespace charonia::interpreter;

static std::string nameOf(uint32_t address) {
  return "the mbarrier at byte " + std::to_string(address);
}

//===----------------------------------------------------------------------===//
// Named barriers
//===----------------------------------------------------------------------===//

void Block::arriveAtNamed(Warp &warp, const Instruction &i) {
  llvm::SmallVector<Warp *, 32> there;
  for (Warp &other : warps)
    if (other.state == Warp::State::AtNamedBarrier &&
        other.barrierNumber == warp.barrierNumber)
      there.push_back(&other);
  for (Warp *other : there)
    if (other->barrierThreads != warp.barrierThreads)
      return machine.abort(
          FindingKind::DivergentBarrier, warp, i, 0,
          "waits at barrier " + llvm::Twine(warp.barrierNumber) + " for " +
              llvm::Twine(warp.barrierThreads) + " threads, others for " +
              llvm::Twine(other->barrierThreads),
          other->barrier->operation);
  if (there.size() * kWarpLanes < warp.barrierThreads)
    return;
  joinClocks(there);
  for (Warp *other : there) {
    other->barrier = nullptr;
    other->state = Warp::State::Ready;
  }
}

/// Lanes of a warp that wait for each other: an arrival of one of them at an
/// mbarrier tells of what the others did before.
void Block::meetLanes(Warp &warp, Mask lanes) {
  Clock all;
  Warp::each(lanes, [&](unsigned lane) { publish(warp.thread(lane), all); });
  Warp::each(lanes,
             [&](unsigned lane) { clocks[warp.thread(lane)].join(all); });
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

void Block::startBarrier(Warp &warp, const Instruction &i, unsigned lane,
                         uint32_t address, uint32_t count) {
  constexpr unsigned bytes = 8, mostArrivals = (1 << 20) - 1;
  if (count < 1 || count > mostArrivals)
    return machine.abort(FindingKind::BarrierMisuse, warp, i, lane,
                         "an mbarrier of " + llvm::Twine(count) + " arrivals");
  if (!access(warp, i, lane, address, bytes, AccessKind::Write, bytes))
    return;
  for (Cell &cell : cells(address, bytes))
    cell.isBarrier = true;
  unsigned thread = warp.thread(lane);
  Mbarrier barrier;
  barrier.address = address;
  barrier.agent = agentOfBarrier(mbarriers.size());
  barrier.count = barrier.pending = count;
  barrier.start = {thread, epochOf(thread), i.operation};
  mbarriers.emplace(address, barrier); // Another one there has been reported.
}

void Block::fenceBarriers(Warp &warp, Mask lanes) {
  for (auto &[address, barrier] : mbarriers) {
    uint32_t thread = barrier.start.agent;
    if (thread / kWarpLanes == warp.number && lanes >> thread % kWarpLanes & 1)
      barrier.isFenced = true;
  }
}

Mbarrier *Block::findBarrier(Warp &warp, const Instruction &i, unsigned lane,
                             uint32_t address) {
  auto found = mbarriers.find(address);
  if (found == mbarriers.end()) {
    machine.abort(FindingKind::BarrierMisuse, warp, i, lane,
                  "takes shared memory at byte " + llvm::Twine(address) +
                      " for an mbarrier, which none has been made of");
    return nullptr;
  }
  Mbarrier &barrier = found->second;
  if (!isKnown(warp.thread(lane), barrier.start.agent, barrier.start.epoch))
    machine.report(FindingKind::BarrierMisuse, warp, i, lane,
                   "uses " + nameOf(address) + ", which thread " +
                       llvm::Twine(barrier.start.agent) +
                       " initializes, and nothing orders the two",
                   barrier.start.operation);
  return &barrier;
}

void Block::arrive(Warp &warp, const Instruction &i, unsigned lane,
                   uint32_t address, int64_t bytes) {
  Mbarrier *barrier = findBarrier(warp, i, lane, address);
  if (!barrier)
    return;
  if (barrier->pending == 0)
    return machine.abort(FindingKind::BarrierMisuse, warp, i, lane,
                         "arrives at " + nameOf(address) + ", whose phase " +
                             llvm::Twine(barrier->phase) + " has all of its " +
                             llvm::Twine(barrier->count) +
                             " arrivals and waits for bytes");
  barrier->expected += bytes;
  --barrier->pending;
  publish(warp.thread(lane), barrier->arriving);
  completeIfDone(*barrier);
}

void Block::completeIfDone(Mbarrier &barrier) {
  if (barrier.pending || barrier.landed != barrier.expected)
    return;
  ++barrier.phase;
  barrier.published.join(barrier.arriving);
  barrier.published.raise(barrier.agent, barrier.phase);
  barrier.arriving = Clock();
  barrier.pending = barrier.count;
  barrier.expected = barrier.issued = barrier.landed = 0;
}

/// A wait's `a`: address; `b`: parity.
bool Block::isPhaseDone(Warp &warp, const Instruction &wait) {
  bool isDone = true;
  Warp::each(warp.mask, [&](unsigned lane) {
    auto found = mbarriers.find(warp.lanes<uint32_t>(wait.a)[lane]);
    isDone &= found != mbarriers.end() &&
              found->second.isDone(warp.lanes<uint32_t>(wait.b)[lane]);
  });
  return isDone;
}

void Block::passBarrier(Warp &warp, unsigned lane, Mbarrier &barrier) {
  clocks[warp.thread(lane)].join(barrier.published);
  if (barrier.waited == barrier.phase)
    return;
  barrier.waited = barrier.phase;
  finishTensorCopies(barrier);
}

//===----------------------------------------------------------------------===//
// Deadlocks
//===----------------------------------------------------------------------===//

static std::string describe(const Mbarrier &barrier, uint32_t parity) {
  return "waits for a phase of parity " + std::to_string(parity & 1) + " of " +
         nameOf(barrier.address) + " for ever: its phase " +
         std::to_string(barrier.phase) + " lacks " +
         std::to_string(barrier.pending) + " of " +
         std::to_string(barrier.count) + " arrivals and " +
         std::to_string(barrier.expected - barrier.landed) + " bytes";
}

std::string Block::describeWait(Warp &warp) {
  if (warp.state == Warp::State::AtNamedBarrier)
    return "waits for ever at barrier " + std::to_string(warp.barrierNumber) +
           ", where " + std::to_string(warp.barrierThreads) +
           " threads should come";
  if (warp.state == Warp::State::AtProducts)
    return "waits for ever for a product that not all warps of its warpgroup "
           "begin";
  std::string text;
  const Instruction &wait = *warp.waitsAt;
  Warp::each(warp.mask, [&](unsigned lane) {
    const Mbarrier &barrier =
        mbarriers.find(warp.lanes<uint32_t>(wait.a)[lane])->second;
    uint32_t parity = warp.lanes<uint32_t>(wait.b)[lane];
    if (text.empty() && !barrier.isDone(parity))
      text = describe(barrier, parity);
  });
  return text;
}

void Block::reportDeadlock() {
  for (Warp &warp : warps)
    if (warp.state == Warp::State::AtNamedBarrier)
      machine.abort(FindingKind::Deadlock, warp, *warp.barrier, 0,
                    describeWait(warp));
    else if (warp.state == Warp::State::AtPhase ||
             warp.state == Warp::State::AtProducts)
      machine.abort(FindingKind::Deadlock, warp, *warp.waitsAt,
                    unsigned(__builtin_ctz(warp.mask)), describeWait(warp));
}
