// What a block's clocks say of accesses to its shared memory.
#include "codegen/gpu/interpreter/Order.h"
#include "codegen/gpu/interpreter/Machine.h"

using namespace charonia;
using namespace charonia::interpreter;

bool Block::isWrittenByEngine(const Cell &cell) {
  if (clocks.empty())
    return false;
  const Deeds &here = deedsOf(cell);
  return !here.writes.empty() && here.writes[0].agent >= agentOfBarrier(0);
}

bool Block::knowsWrites(unsigned thread, const Cell &cell) {
  return !clocks.empty() &&
         llvm::all_of(deedsOf(cell).writes, [&](const Deed &deed) {
           return isKnown(thread, deed.agent, deed.epoch);
         });
}

bool Block::knowsReads(unsigned thread, const Cell &cell) {
  return !clocks.empty() &&
         llvm::all_of(deedsOf(cell).reads, [&](const Deed &deed) {
           return isKnown(thread, deed.agent, deed.epoch);
         });
}

/// Before the cell is told when it was read last.
void Block::noteRead(const Cell &cell, Deed deed) {
  if (clocks.empty())
    return;
  auto &reads = deedsOf(cell).reads;
  if (cell.readTime != time)
    reads.clear();
  // Who knows the new one knows what came before it.
  llvm::erase_if(reads, [&](const Deed &old) {
    return deed.agent < clocks.size()
               ? isKnown(deed.agent, old.agent, old.epoch)
               : deed.agent == old.agent;
  });
  reads.push_back(deed);
}

void Block::noteWrite(const Cell &cell, Deed deed, bool joins) {
  if (clocks.empty())
    return;
  Deeds &here = deedsOf(cell);
  llvm::erase_if(here.writes, [&](const Deed &old) {
    return !joins || isKnown(deed.agent, old.agent, old.epoch);
  });
  here.writes.push_back(deed);
  // A write that is none of the readers' business has been reported.
  here.reads.clear();
}

void Block::publish(unsigned thread, Clock &to) {
  Clock &clock = clocks[thread];
  to.join(clock);
  clock.raise(thread, clock[thread] + 1);
}

void Block::joinClocks(llvm::ArrayRef<Warp *> warps) {
  if (clocks.empty())
    return;
  Clock all;
  auto each = [&](auto what) {
    for (Warp *warp : warps)
      Warp::each(warp->alive, [&](unsigned lane) { what(warp->thread(lane)); });
  };
  each([&](unsigned thread) { publish(thread, all); });
  each([&](unsigned thread) { clocks[thread].join(all); });
}

/// Products wait for all of their warpgroup. Only clocks tell a difference.
bool Block::haveBegun(const Warp &warp, uint32_t group) const {
  return clocks.empty() || llvm::all_of(warps, [&](const Warp &other) {
           return other.number / 4 != warp.number / 4 ||
                  other.state == Warp::State::Ended || other.openDots >= group;
         });
}
