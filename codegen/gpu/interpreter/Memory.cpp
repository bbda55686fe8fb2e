// Shared memory and buffers: bounds, alignment, who touched what and when.
#include "codegen/gpu/interpreter/Machine.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace charonia;
using namespace charonia::interpreter;

namespace {

std::string at(llvm::StringRef space, uint64_t address) {
  return (space + " at byte " + llvm::Twine(address)).str();
}

const char *verb(AccessKind kind) {
  switch (kind) {
  case AccessKind::Read:
  case AccessKind::Constant:
  case AccessKind::Product:
    return "reads ";
  case AccessKind::Write:
  case AccessKind::Engine:
    return "writes ";
  case AccessKind::Atomic:
    return "changes ";
  }
  return "";
}

std::string writerText(const Cell &cell) {
  return cell.writer == Cell::kMany ? "several threads"
                                    : "thread " + std::to_string(cell.writer);
}

bool isRead(AccessKind kind) {
  return kind == AccessKind::Read || kind == AccessKind::Constant ||
         kind == AccessKind::Product;
}

} // namespace

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

llvm::MutableArrayRef<Cell> Block::cells(uint32_t address, unsigned bytes) {
  unsigned granule = machine.program.sharedGranule;
  unsigned first = address / granule,
           last = (address + std::max(bytes, 1u) - 1) / granule;
  return llvm::MutableArrayRef<Cell>(shadow).slice(first, last - first + 1);
}

void Block::check(Warp &warp, const Instruction &i, unsigned lane, Cell &cell,
                  AccessKind kind, uint32_t address, bool changesNothing) {
  unsigned thread = warp.thread(lane);
  auto text = [&](llvm::StringRef what) {
    return verb(kind) + at("shared memory", address) + what.str();
  };
  if (cell.isBarrier)
    return machine.report(FindingKind::BarrierMisuse, warp, i, lane,
                          text(", which belongs to an mbarrier"),
                          cell.writeOperation);
  if (cell.pending)
    machine.report(FindingKind::UnfinishedCopy, warp, i, lane,
                   text(", which an asynchronous copy is still to write"),
                   cell.pending - 1);
  bool written = cell.writeTime >= firstTime;
  // Products also read rows whose results nobody needs; they are no numbers.
  if (isRead(kind) && kind != AccessKind::Product && !written && !cell.pending)
    machine.report(FindingKind::UnwrittenRead, warp, i, lane,
                   text(", which nothing was written to"));
  bool isKnown = knowsWrites(thread, cell);
  if (isWrittenByEngine(cell)) {
    if (!isKnown)
      machine.report(FindingKind::UnfinishedCopy, warp, i, lane,
                     text(", which the copy engine writes, without having "
                          "waited for its mbarrier"),
                     cell.writeOperation);
  } else if (written && cell.writeTime == time && cell.writer != thread &&
             !changesNothing && !isKnown &&
             !(kind == AccessKind::Atomic && cell.isAtomic))
    machine.report(
        FindingKind::Race, warp, i, lane,
        text(", which " + writerText(cell) + " wrote since the last barrier"),
        cell.writeOperation);
  if (!isRead(kind) && cell.dots)
    machine.report(FindingKind::Race, warp, i, lane,
                   text(", which a product under way may still read"),
                   cell.dotOperation);
  if (!isRead(kind) && cell.readTime == time && cell.reader != thread &&
      !knowsReads(thread, cell))
    machine.report(FindingKind::Race, warp, i, lane,
                   text(", which another thread read since the last barrier"),
                   cell.readOperation);
  if (!isRead(kind) && cell.peerStamp > warp.clusterWaits)
    machine.report(FindingKind::Race, warp, i, lane,
                   text(", which another block read without the cluster's "
                        "barrier between"),
                   cell.peerOperation);
}

uint8_t *Block::access(Warp &warp, const Instruction &i, unsigned lane,
                       uint32_t address, unsigned bytes, AccessKind kind,
                       unsigned alignment, const uint8_t *value) {
  if (address > shared.size() || bytes > shared.size() - address) {
    machine.report(FindingKind::OutOfBounds, warp, i, lane,
                   verb(kind) + std::to_string(bytes) + " bytes of " +
                       at("shared memory", address) + " of " +
                       std::to_string(shared.size()));
    return nullptr;
  }
  if (address % alignment != 0) {
    machine.report(FindingKind::Misaligned, warp, i, lane,
                   verb(kind) + at("shared memory", address) +
                       ", which is no multiple of " +
                       std::to_string(alignment));
    return nullptr;
  }
  uint8_t *place = shared.data() + address;
  bool isSame = value && std::memcmp(place, value, bytes) == 0;
  for (Cell &cell : cells(address, bytes)) {
    // Several threads may hold the element that an operation writes.
    bool changesNothing = isSame && cell.writeOperation == i.operation;
    check(warp, i, lane, cell, kind, address, changesNothing);
    bool isShared = changesNothing && cell.writeTime == time &&
                    cell.writer != warp.thread(lane);
    note(cell, i, warp.thread(lane), kind, isShared);
  }
  return place;
}

void Block::note(Cell &cell, const Instruction &i, unsigned thread,
                 AccessKind kind, bool joins) {
  if (kind == AccessKind::Product)
    return; // When it is waited for.
  if (isRead(kind)) {
    noteRead(cell, {thread, epochOf(thread), i.operation});
    cell.reader = cell.readTime == time && cell.reader != thread
                      ? Cell::kMany
                      : uint16_t(thread);
    cell.readTime = time;
    cell.readOperation = i.operation;
    return;
  }
  if (kind != AccessKind::Engine)
    noteWrite(cell, {thread, epochOf(thread), i.operation}, joins);
  uint32_t stamp = warps[thread / kWarpLanes].clusterArrivals + 1;
  cell.writeStamp = joins ? std::max(cell.writeStamp, stamp) : stamp;
  cell.lastWriter = thread;
  cell.writer = joins ? Cell::kMany : uint16_t(thread);
  cell.writeTime = time;
  cell.writeFences = fences;
  cell.writeOperation = i.operation;
  cell.isAtomic = kind == AccessKind::Atomic;
}

void Block::countBanks(const Instruction &i, Mask lanes,
                       const uint32_t *addresses, unsigned bytes) {
  // 32 banks of 4 bytes; wide accesses are served in parts of 128 bytes.
  unsigned together = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  unsigned words = std::max(1u, std::min(bytes, 16u) / 4);
  Machine::BankCount &count = machine.banks[i.operation];
  for (unsigned first = 0; first < kWarpLanes; first += together) {
    Mask part = lanes >> first &
                (together == 32 ? ~Mask(0) : (Mask(1) << together) - 1);
    if (!part)
      continue;
    llvm::SmallVector<uint32_t, 32> seen[32];
    unsigned degree = 0;
    Warp::each(part, [&](unsigned lane) {
      for (unsigned w = 0; w < words; ++w) {
        uint32_t word = addresses[first + lane] / 4 + w;
        auto &bank = seen[word % 32];
        if (!llvm::is_contained(bank, word))
          bank.push_back(word);
        degree = std::max<unsigned>(degree, bank.size());
      }
    });
    ++count.requests;
    count.wavefronts += degree;
    count.maximum = std::max(count.maximum, degree);
  }
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

/// From its issue to its end a copy may write at any moment: it is checked as a
/// write at both, and whoever touches the place between is told.
void Block::startCopy(Warp &warp, Copy copy) {
  const Instruction &i = *copy.instruction;
  if (copy.sourceBytes) {
    uint8_t *from =
        machine.access(warp, i, copy.lane, copy.from, copy.sourceBytes,
                       AccessKind::Read, copy.bytes);
    if (!from)
      return;
    std::memcpy(copy.atIssue.data(), from, copy.sourceBytes);
  }
  if (!access(warp, i, copy.lane, copy.to, copy.bytes, AccessKind::Write,
              copy.bytes))
    return;
  for (Cell &cell : cells(copy.to, copy.bytes))
    cell.pending = i.operation + 1;
  CopyTiming timing = machine.launch.copies;
  warp.copies.push_back(copy);
  if (timing == CopyTiming::Early ||
      (timing == CopyTiming::Seeded && machine.random() % 4 == 0))
    land(warp, warp.copies.back());
}

void Block::land(Warp &warp, Copy &copy) {
  if (copy.landed)
    return;
  copy.landed = true;
  uint8_t *to = shared.data() + copy.to;
  std::memset(to, 0, copy.bytes);
  if (!copy.sourceBytes)
    return;
  if (uint8_t *from =
          machine.access(warp, *copy.instruction, copy.lane, copy.from,
                         copy.sourceBytes, AccessKind::Read, copy.bytes))
    std::memcpy(to, from, copy.sourceBytes);
}

void Block::landSome(unsigned one, unsigned in) {
  if (machine.launch.copies != CopyTiming::Seeded)
    return;
  for (TensorCopy &copy : tensorCopies)
    if (!copy.landed && machine.random() % in < one)
      land(copy);
  for (Warp &warp : warps)
    for (Copy &copy : warp.copies)
      if (!copy.landed && machine.random() % in < one)
        land(warp, copy);
}

void Block::finishCopies(Warp &warp, uint32_t group) {
  llvm::erase_if(warp.copies, [&](Copy &copy) {
    if (copy.group >= group)
      return false;
    land(warp, copy);
    const Instruction &i = *copy.instruction;
    if (copy.sourceBytes) {
      uint8_t *from =
          machine.access(warp, i, copy.lane, copy.from, copy.sourceBytes,
                         AccessKind::Read, copy.bytes);
      if (from && std::memcmp(from, copy.atIssue.data(), copy.sourceBytes) != 0)
        machine.report(FindingKind::ChangedSource, warp, i, copy.lane,
                       "what it copies from changed before it was done");
    }
    for (Cell &cell : cells(copy.to, copy.bytes)) {
      cell.pending = 0;
      note(cell, i, warp.thread(copy.lane), AccessKind::Write);
    }
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

const uint8_t *Block::readByDot(Warp &warp, const Instruction &i,
                                uint32_t address) {
  constexpr unsigned bytes = 16;
  const uint8_t *place =
      access(warp, i, 0, address, bytes, AccessKind::Product, bytes);
  if (!place)
    return nullptr;
  for (Cell &cell : cells(address, bytes)) {
    const Warp &writer = warps[cell.lastWriter / kWarpLanes];
    // By a reader it comes behind a barrier: of the block, or one of those that
    // clocks know of.
    bool isFenced = writer.fenceNumber > cell.writeFences ||
                    warp.fenceTime > cell.writeTime ||
                    (!clocks.empty() && warp.fenceNumber > cell.writeFences);
    if (cell.writeTime >= firstTime && !isFenced && !isWrittenByEngine(cell))
      machine.report(FindingKind::MissingFence, warp, i, 0,
                     "reads " + at("shared memory", address) +
                         ", which thread " + std::to_string(cell.lastWriter) +
                         " wrote, without a fence between",
                     cell.writeOperation);
    ++cell.dots;
    cell.dotOperation = i.operation;
  }
  warp.dotReads.push_back({&i, warp.openDots, address});
  return place;
}

void Block::finishDots(Warp &warp, uint32_t group) {
  if (!clocks.empty())
    return finishGroupDots(warp, group);
  llvm::erase_if(warp.dotReads, [&](const Warp::DotRead &read) {
    if (read.group >= group)
      return false;
    for (Cell &cell : cells(read.address, 16)) {
      --cell.dots;
      note(cell, *read.instruction, warp.thread(0), AccessKind::Read);
    }
    return true;
  });
}

/// Products belong to the warpgroup: who has waited for one, any of its
/// threads, knows that all four warps' operands have been read.
void Block::finishGroupDots(Warp &warp, uint32_t group) {
  uint32_t agent = agentOfGroup(warp.number);
  for (Warp &other : warps) {
    if (other.number / 4 != warp.number / 4)
      continue;
    llvm::erase_if(other.dotReads, [&](const Warp::DotRead &read) {
      if (read.group >= group)
        return false;
      for (Cell &cell : cells(read.address, 16)) {
        --cell.dots;
        noteRead(cell, {agent, read.group + 1, read.instruction->operation});
        cell.reader = Cell::kMany;
        cell.readTime = time;
        cell.readOperation = read.instruction->operation;
      }
      return true;
    });
  }
  Warp::each(warp.alive, [&](unsigned lane) {
    clocks[warp.thread(lane)].raise(agent, group);
  });
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

bool Machine::isBefore(uint32_t time, const Block &block) const {
  int64_t other = blockOfTime[time];
  if (other == block.number)
    return time < block.time;
  auto known = block.acquired.find(other);
  return known != block.acquired.end() && time <= known->second;
}

static std::string describe(AccessKind kind, uint64_t address) {
  return verb(kind) +
         at("buffer " + std::to_string((address >> kOffsetBits) - 1),
            address & ((uint64_t(1) << kOffsetBits) - 1));
}

/// `did`: what a thread did there before.
static std::string raceText(AccessKind kind, uint64_t address, unsigned thread,
                            int64_t block, const char *did) {
  return describe(kind, address) + ", which thread " + std::to_string(thread) +
         " of block " + std::to_string(block) + " " + did +
         ", and nothing orders the two";
}

Read *Machine::findRead(Region &region, uint64_t granule, const Block &block,
                        uint32_t operation) {
  auto matches = [&](const Read &read) {
    return read.time && read.operation == operation &&
           blockOfTime[read.time] == block.number;
  };
  BufferCell &cell = region.shadow[granule];
  if (matches(cell.read))
    return &cell.read;
  if (cell.hasMore)
    for (Read &read : region.reads[granule])
      if (matches(read))
        return &read;
  return nullptr;
}

/// A write: against every read that is not before it.
void Machine::checkWrite(Warp &warp, const Instruction &i, unsigned lane,
                         Region &region, uint64_t granule, AccessKind kind,
                         uint64_t address) {
  Block &block = warp.block;
  BufferCell &cell = region.shadow[granule];
  auto ofOthers = [&](const Read &read) {
    int64_t other = blockOfTime[read.time];
    if (read.time && other != block.number && !isBefore(read.time, block))
      report(FindingKind::Race, warp, i, lane,
             raceText(kind, address, read.thread, other, "read"),
             read.operation);
  };
  ofOthers(cell.read);
  if (cell.hasMore)
    for (const Read &read : region.reads[granule])
      ofOthers(read);
  unsigned writer = warp.thread(lane);
  block.replicas.eachRead(&cell, [&](uint32_t operation, uint16_t thread,
                                     uint32_t epoch) {
    if (thread == writer || block.isKnown(writer, thread, epoch))
      return;
    if (kind == AccessKind::Write &&
        block.replicas.hasRead(&cell, operation, writer))
      block.replicas.suspect({&cell, i.operation, thread, &warp, &i, lane, kind,
                              address, operation, thread});
    else
      report(FindingKind::Race, warp, i, lane,
             raceText(kind, address, thread, block.number, "read"), operation);
  });
  if (cell.readConstant)
    report(FindingKind::NonCoherentRead, warp, i, lane,
           describe(AccessKind::Write, address) + ", which is read as constant",
           cell.read.operation);
}

void Machine::check(Warp &warp, const Instruction &i, unsigned lane,
                    Region &region, uint64_t granule, AccessKind kind,
                    uint64_t address, bool changesNothing) {
  BufferCell &cell = region.shadow[granule];
  Block &block = warp.block;
  bool inBlock = cell.writeTime && blockOfTime[cell.writeTime] == block.number;
  bool unordered = cell.writeTime && !isBefore(cell.writeTime, block) &&
                   !(inBlock && (cell.writer == warp.thread(lane) ||
                                 block.isKnown(warp.thread(lane), cell.writer,
                                               cell.writeEpoch)));
  if (unordered && isRead(kind) && inBlock && !cell.isAtomic &&
      block.replicas.hasRead(&cell, i.operation, cell.writer)) {
    // The writer has read it by the same operation: this may be a copy's read.
    block.replicas.suspect({&cell, cell.writeOperation,
                            uint16_t(warp.thread(lane)), &warp, &i, lane, kind,
                            address, cell.writeOperation, cell.writer});
    unordered = false;
  }
  // Several threads may hold the element that an operation writes.
  bool isCopy = changesNothing && inBlock && cell.writeOperation == i.operation;
  if (unordered && !(kind == AccessKind::Atomic && cell.isAtomic) && !isCopy)
    report(FindingKind::Race, warp, i, lane,
           raceText(kind, address, cell.writer, blockOfTime[cell.writeTime],
                    "wrote"),
           cell.writeOperation);
  if (kind == AccessKind::Constant && cell.writeTime)
    report(FindingKind::NonCoherentRead, warp, i, lane,
           describe(kind, address) + " as constant, which is also written",
           cell.writeOperation);
  if (!isRead(kind))
    checkWrite(warp, i, lane, region, granule, kind, address);
}

void Machine::note(const Warp &warp, const Instruction &i, unsigned lane,
                   Region &region, uint64_t granule, AccessKind kind) {
  Block &block = warp.block;
  BufferCell &cell = region.shadow[granule];
  uint16_t thread = warp.thread(lane);
  if (kind == AccessKind::Write && cell.read.time)
    block.replicas.noteStore(&cell, i.operation, thread);
  if (!isRead(kind)) {
    cell.writer = thread;
    cell.writeTime = block.time;
    cell.writeEpoch = block.epochOf(thread);
    cell.writeOperation = i.operation;
    cell.isAtomic = kind == AccessKind::Atomic;
    return;
  }
  block.replicas.noteRead(&cell, i.operation, thread, block.epochOf(thread));
  cell.readConstant |= kind == AccessKind::Constant;
  Read now{block.time, i.operation, thread};
  if (Read *read = findRead(region, granule, block, i.operation)) {
    if (read->time == block.time)
      now.thread = std::min(read->thread, thread);
    *read = now;
  } else if (!cell.read.time) {
    cell.read = now;
  } else {
    cell.hasMore = true;
    region.reads[granule].push_back(now);
  }
}

uint8_t *Machine::access(Warp &warp, const Instruction &i, unsigned lane,
                         uint64_t address, unsigned bytes, AccessKind kind,
                         unsigned alignment, const uint8_t *value) {
  uint64_t number = (address >> kOffsetBits) - 1;
  uint64_t within = address & ((uint64_t(1) << kOffsetBits) - 1);
  if (number >= arguments.size()) {
    report(FindingKind::OutOfBounds, warp, i, lane,
           verb(kind) + ("the address 0x" + llvm::utohexstr(address)) +
               ", which is in no buffer");
    return nullptr;
  }
  const Argument &argument = arguments[number];
  const Buffer &buffer = argument.buffer;
  uint64_t offset = within - buffer.phase;
  if (within < buffer.phase || offset > buffer.bytes ||
      bytes > buffer.bytes - offset) {
    report(FindingKind::OutOfBounds, warp, i, lane,
           verb(kind) + std::to_string(bytes) + " bytes of buffer " +
               std::to_string(number) + " at byte " +
               std::to_string(int64_t(offset)) + " of " +
               std::to_string(buffer.bytes));
    return nullptr;
  }
  if (address % alignment != 0) {
    report(FindingKind::Misaligned, warp, i, lane,
           verb(kind) + at("buffer " + std::to_string(number), offset) +
               ", whose address is no multiple of " +
               std::to_string(alignment));
    return nullptr;
  }
  if (buffer.isConstant && !isRead(kind)) {
    report(FindingKind::ConstantWrite, warp, i, lane,
           verb(kind) + at("buffer " + std::to_string(number), offset) +
               ", which may only be read");
    return nullptr;
  }
  Mask ready = launch.waitsAtEnd ? warp.waited | warp.fenced : warp.waited;
  if (launch.overlapsPrevious && !(ready >> lane & 1) &&
      !(buffer.isWeight && isRead(kind)))
    report(FindingKind::EarlyAccess, warp, i, lane,
           verb(kind) + at("buffer " + std::to_string(number), offset) +
               " before it has waited for the kernels before this one");
  uint8_t *place = static_cast<uint8_t *>(buffer.data) + offset;
  Region &region = *argument.region;
  if (!region.shadow.empty()) {
    unsigned granule = region.granule;
    uint64_t from = place - region.begin;
    bool changesNothing = value && std::memcmp(place, value, bytes) == 0;
    for (uint64_t g = from / granule; g <= (from + bytes - 1) / granule; ++g) {
      check(warp, i, lane, region, g, kind, address, changesNothing);
      note(warp, i, lane, region, g, kind);
    }
  }
  return place;
}

void Machine::noteHeldBack(Warp &warp, const Instruction &i, unsigned lane,
                           uint64_t address, unsigned bytes) {
  uint64_t number = (address >> kOffsetBits) - 1;
  if (number >= arguments.size())
    return;
  const Buffer &buffer = arguments[number].buffer;
  Region &region = *arguments[number].region;
  uint64_t offset =
      (address & ((uint64_t(1) << kOffsetBits) - 1)) - buffer.phase;
  if (region.shadow.empty() || offset > buffer.bytes ||
      bytes > buffer.bytes - offset)
    return;
  uint64_t from = static_cast<uint8_t *>(buffer.data) + offset - region.begin;
  for (uint64_t g = from / region.granule;
       g <= (from + bytes - 1) / region.granule; ++g)
    if (BufferCell &cell = region.shadow[g]; cell.read.time)
      warp.block.replicas.noteStore(&cell, i.operation, warp.thread(lane));
}

void Machine::endInterval(Block &block) {
  block.replicas.endInterval([&](const Replicas::Suspect &s) {
    report(FindingKind::Race, *s.warp, *s.instruction, s.lane,
           raceText(s.kind, s.address, s.otherThread, block.number,
                    isRead(s.kind) ? "wrote" : "read"),
           s.other);
  });
}

void Machine::synchronize(Block &block, uint64_t address) {
  std::map<int64_t, uint32_t> &clocks = released[address];
  for (auto [other, time] : clocks) {
    uint32_t &known = block.acquired[other];
    known = std::max(known, time);
  }
  // What came before the last barrier is published for the whole block.
  for (auto [other, time] : block.acquired) {
    uint32_t &known = clocks[other];
    known = std::max(known, time);
  }
  clocks[block.number] = block.previousTime;
}
