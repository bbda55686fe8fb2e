// The state of a launch: blocks, their warps and memories.
//
// A block's warps stop at barriers; the scheduler lets them go on when all have
// come. The blocks of a cluster take turns, each up to where it waits for the
// others. What else a warp may wait for (the phase of an mbarrier, products of
// its warpgroup) is another state of it with a condition that the scheduler
// asks.
//
// A block's barriers cut its time into intervals, which order nearly all that
// kernels do. Those with barriers of single warps or mbarriers have clocks
// besides (Order.h), which order what happens within an interval.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_MACHINE_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_MACHINE_H

#include "codegen/gpu/interpreter/Interpreter.h"
#include "codegen/gpu/interpreter/Order.h"
#include "codegen/gpu/interpreter/Replicas.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include <array>
#include <map>
#include <random>

namespace charonia::interpreter {

constexpr unsigned kWarpLanes = 32;
using Mask = uint32_t;
/// A register of all lanes: 32 words of 32 bits; 64-bit values take two.
using Slot = uint32_t;
/// Never written; stands for operands that are absent.
constexpr Slot kNoSlot = 0;
constexpr uint32_t kNoOperation = UINT32_MAX;

class Warp;
struct Instruction;
using Handler = void (*)(Warp &, const Instruction &);

struct Instruction {
  Handler run = nullptr;
  Slot result = kNoSlot, a = kNoSlot, b = kNoSlot, c = kNoSlot;
  uint32_t list = 0;      ///< In Program::lists.
  uint32_t operation = 0; ///< In Program::operations.
  uint32_t bits = 0;      ///< Width of integers; bytes of an element in memory.
  uint32_t flags = 0;     ///< Of the handler.
  int64_t constant = 0;
};

/// A kernel as a flat list of instructions.
struct Program {
  struct Argument {
    enum class Kind { Buffer, Symbol, Map };
    Slot slot = kNoSlot;
    Kind kind = Kind::Symbol;
    bool isWritten = false;
    bool isBuffer() const { return kind == Kind::Buffer; }
  };
  size_t count(Argument::Kind kind) const {
    size_t result = 0;
    for (const Argument &argument : arguments)
      result += argument.kind == kind;
    return result;
  }
  std::string name;
  unsigned blockThreads = 0, indexBits = 32, clusterBlocks = 1;
  std::vector<Instruction> code;
  std::vector<std::vector<uint32_t>> lists;
  std::vector<std::string> operations;
  std::vector<Argument> arguments;
  Slot slots = 2;
  /// The smallest access: what shadow memory distinguishes, in bytes.
  unsigned sharedGranule = 16, globalGranule = 16;
  /// Whether more than barriers of whole blocks orders its threads.
  bool hasClocks = false;
};

/// Product: a read that goes on until the product is waited for. Engine: a
/// write that is seen by who has waited for the phase of its mbarrier.
enum class AccessKind { Read, Constant, Product, Write, Atomic, Engine };

/// Who touched a granule of shared memory last. A time is a block's interval
/// between two barriers, unique in the launch; 0 is before it.
struct Cell {
  static constexpr uint16_t kMany = UINT16_MAX;
  uint32_t writeTime = 0, readTime = 0;
  uint32_t writeOperation = 0, readOperation = 0;
  /// The asynchronous copy that is to write it, plus one.
  uint32_t pending = 0;
  /// Products that may still read it, and the last of them.
  uint32_t dots = 0, dotOperation = 0;
  /// Fences of the block before the last write of a thread, and which it was.
  uint32_t writeFences = 0;
  uint16_t lastWriter = 0;
  uint16_t writer = 0, reader = 0; ///< Threads of the block; kMany: several.
  bool isAtomic = false;
  bool isBarrier = false; ///< Of an mbarrier.
  /// Waits at the cluster's barrier that tell a peer of the last write, or the
  /// block of the last read by a peer.
  uint32_t writeStamp = 0, peerStamp = 0, peerOperation = 0;
};

/// The last time that an operation of a block read a granule of a buffer.
struct Read {
  uint32_t time = 0, operation = 0;
  uint16_t thread = 0; ///< The first of those that did.
};

/// The same of buffers, where blocks meet.
struct BufferCell {
  uint32_t writeTime = 0, writeOperation = 0;
  uint32_t writeEpoch = 0; ///< Of the writer's clock.
  uint16_t writer = 0;
  bool isAtomic = false, readConstant = false;
  bool hasMore = false; ///< Further reads are in Region::reads.
  Read read;
};

/// An asynchronous copy of one lane.
struct Copy {
  const Instruction *instruction;
  uint64_t from;
  uint32_t to;
  uint32_t group;
  uint8_t lane, bytes, sourceBytes;
  bool landed;
  std::array<uint8_t, 16> atIssue;
};

/// Of an element in a tensor, the innermost dimension first.
using Position = llvm::SmallVector<int64_t, 5>;

/// A copy of the copy engine.
struct TensorCopy {
  const Instruction *instruction = nullptr;
  Warp *warp = nullptr;
  unsigned lane = 0, swizzle = 0;
  uint32_t to = 0, bytes = 0;
  /// The mbarrier's address, and the phase that takes the bytes.
  uint32_t barrier = 0, phase = 0;
  /// What lies inside of the tensor; the rest of the box is zeros.
  struct Run {
    const uint8_t *from;
    uint32_t at, bytes;
  };
  std::vector<Run> runs;
  std::vector<uint8_t> atIssue;
  bool landed = false;

  std::vector<uint8_t> read() const;
  /// Where a 16-byte piece of the box goes.
  uint32_t placeOf(uint32_t offset) const {
    uint32_t address = to + offset;
    return swizzle ? address ^ ((address >> 7 & 7) << 4) : address;
  }
};

class Block;
class Machine;

class Warp {
public:
  enum class State {
    Ready,
    AtBarrier,
    AtNamedBarrier,
    AtCluster,
    AtPhase,    ///< Of an mbarrier; `waitsAt` is done again.
    AtProducts, ///< That other warps of its warpgroup have not begun.
    Ended
  };
  struct Frame {
    Mask saved, other;
  };

  Warp(Block &block, unsigned number, Mask lanes, Slot slots)
      : block(block), number(number), mask(lanes), alive(lanes),
        registers(size_t(slots) * kWarpLanes) {}

  template <typename T> T *lanes(Slot slot) {
    return reinterpret_cast<T *>(registers.data() + size_t(slot) * kWarpLanes);
  }
  /// The lanes that take part; `predicate` may be absent.
  Mask active(Slot predicate) {
    if (predicate == kNoSlot)
      return mask;
    Mask set = 0;
    const uint32_t *bits = lanes<uint32_t>(predicate);
    for (unsigned lane = 0; lane < kWarpLanes; ++lane)
      set |= (bits[lane] & 1) << lane;
    return mask & set;
  }
  unsigned thread(unsigned lane) const { return number * kWarpLanes + lane; }
  void exit(const Instruction &i, Mask lanes);
  /// Calls `what` with each lane of a mask.
  template <typename F> static void each(Mask lanes, F what) {
    for (; lanes; lanes &= lanes - 1)
      what(unsigned(__builtin_ctz(lanes)));
  }

  Block &block;
  const unsigned number;
  State state = State::Ready;
  bool leftByExit = false; ///< Ended: barriers do not wait for it.
  uint32_t pc = 0;
  Mask mask, alive;
  Mask waited = 0; ///< Lanes behind the end of the kernels before this one.
  /// Lanes behind a fence: they see what ended before this kernel began.
  Mask fenced = 0;
  llvm::SmallVector<Frame, 8> frames;
  std::vector<uint32_t> scratch; ///< Of copies between registers.

  /// At the barrier of its cluster.
  uint32_t clusterArrivals = 0, clusterWaits = 0;

  // At a barrier.
  const Instruction *barrier = nullptr;
  bool vote = false;
  uint32_t barrierNumber = 0, barrierThreads = 0; ///< Of a named one.
  /// At a phase or products: what is done again when that has come.
  const Instruction *waitsAt = nullptr;
  uint32_t dotsAwaited = 0;
  /// Waits until the scheduler finds that it can go on.
  void waitAt(const Instruction &i, State where) {
    --pc;
    waitsAt = &i;
    state = where;
  }

  std::vector<Copy> copies;
  uint32_t openGroup = 0;

  /// What a product is to write to a register.
  struct Unfinished {
    uint32_t group;
    std::array<uint32_t, kWarpLanes> values;
  };
  std::map<Slot, Unfinished> unfinished;
  /// Chunks of 16 bytes that products read.
  struct DotRead {
    const Instruction *instruction;
    uint32_t group, address;
  };
  std::vector<DotRead> dotReads;
  uint32_t openDots = 0;
  bool dotsFenced = false;
  /// Its last fence of shared memory: the interval, and its number.
  uint32_t fenceTime = 0, fenceNumber = 0;

private:
  std::vector<uint32_t> registers;
};

/// One program instance: warps and shared memory.
class Block {
public:
  Block(Machine &machine, int64_t number);
  enum class Stop { Failed, AtCluster, Ended };
  /// Up to where it waits for its cluster, or its end; Failed: the launch must
  /// end.
  Stop run();
  /// All blocks of a cluster that have not ended wait for each other: they go
  /// on, and know what each has done.
  static void meet(llvm::ArrayRef<Block *> blocks);

  /// Where a lane's access to shared memory goes; null after a finding that
  /// leaves no place. `value`: what is to be written, if that is known.
  uint8_t *access(Warp &warp, const Instruction &i, unsigned lane,
                  uint32_t address, unsigned bytes, AccessKind kind,
                  unsigned alignment, const uint8_t *value = nullptr);
  /// Where a lane reads in the cluster's shared memory.
  const uint8_t *readInCluster(Warp &warp, const Instruction &i, unsigned lane,
                               uint32_t address, unsigned bytes,
                               unsigned alignment);
  /// Counts conflicts of one access of all `lanes`.
  void countBanks(const Instruction &i, Mask lanes, const uint32_t *addresses,
                  unsigned bytes);
  /// Copies of `warp` of the groups before `group` are there.
  void finishCopies(Warp &warp, uint32_t group);
  /// A chunk of 16 bytes that a product reads from now until it is waited for;
  /// null after a finding that leaves no place.
  const uint8_t *readByDot(Warp &warp, const Instruction &i, uint32_t address);
  /// Products of `warp` of the groups before `group` are done.
  void finishDots(Warp &warp, uint32_t group);
  /// At the start of an asynchronous copy: what it may not meet.
  void startCopy(Warp &warp, Copy copy);

  // Barriers of warps, and mbarriers.
  /// A warp came to the named barrier; lets all go on if it was the last.
  void arriveAtNamed(Warp &warp, const Instruction &i);
  void meetLanes(Warp &warp, Mask lanes);
  void startBarrier(Warp &warp, const Instruction &i, unsigned lane,
                    uint32_t address, uint32_t count);
  /// fence.mbarrier.init by these lanes.
  void fenceBarriers(Warp &warp, Mask lanes);
  /// For a lane that uses it; null after a finding that ends the launch.
  Mbarrier *findBarrier(Warp &warp, const Instruction &i, unsigned lane,
                        uint32_t address);
  /// An arrival that expects so many bytes more.
  void arrive(Warp &warp, const Instruction &i, unsigned lane, uint32_t address,
              int64_t bytes);
  /// A lane goes on behind the last phase of the barrier.
  void passBarrier(Warp &warp, unsigned lane, Mbarrier &barrier);
  /// Whether all lanes that wait there find their phases done.
  bool isPhaseDone(Warp &warp, const Instruction &wait);
  /// Whether all warps of the warpgroup have begun the products.
  bool haveBegun(const Warp &warp, uint32_t group) const;
  /// The copy engine begins to fill a box.
  void startTensorCopy(TensorCopy copy, const TensorMap &map,
                       const Position &start, const Position &offsets);

  /// Whether what an agent did comes before what a thread does now.
  bool isKnown(unsigned thread, uint32_t agent, uint32_t epoch) const {
    return !clocks.empty() &&
           (agent == thread || clocks[thread][agent] >= epoch);
  }
  uint32_t epochOf(unsigned thread) const {
    return clocks.empty() ? 0 : clocks[thread][thread];
  }

  Machine &machine;
  const int64_t number;
  uint32_t firstTime, time;
  /// The interval before the last barrier.
  uint32_t previousTime = 0;
  uint32_t fences = 0; ///< Of shared memory, by all warps.
  std::vector<Warp> warps;
  /// What an acquire made visible: up to which time of which block.
  std::map<int64_t, uint32_t> acquired;
  /// Of the buffers, since the last barrier.
  Replicas replicas;

private:
  bool canGoOn(Warp &warp);
  bool isStuck() const;
  bool releaseBarrier();
  /// Its warps go on in a new interval.
  void goOn(bool vote);
  void land(Warp &warp, Copy &copy);
  void land(TensorCopy &copy);
  void landSome(unsigned one, unsigned in);
  /// One more copy of the copy engine; false if there is none under way.
  bool landNext();
  /// What copies into phases that are over wrote may be used.
  void finishTensorCopies(const Mbarrier &barrier);
  /// `reader`: of another block of the cluster.
  const uint8_t *readByPeer(Warp &reader, const Instruction &i, unsigned lane,
                            uint32_t address, unsigned bytes,
                            unsigned alignment);
  /// Reads by peers that the block does not wait for when it ends.
  void checkPeerReads();
  /// Copies that nobody waited for when the block ends.
  void checkTensorCopies();
  void completeIfDone(Mbarrier &barrier);
  void reportDeadlock();
  std::string describeWait(Warp &warp);
  void finishGroupDots(Warp &warp, uint32_t group);
  llvm::MutableArrayRef<Cell> cells(uint32_t address, unsigned bytes);
  void check(Warp &warp, const Instruction &i, unsigned lane, Cell &cell,
             AccessKind kind, uint32_t address, bool changesNothing);
  /// Notes an access in its granule. `joins`: it writes what another thread
  /// wrote before.
  void note(Cell &cell, const Instruction &i, unsigned thread, AccessKind kind,
            bool joins = false);

  // What happened at a granule, by clocks.
  Deeds &deedsOf(const Cell &cell) { return deeds[&cell - shadow.data()]; }
  bool isWrittenByEngine(const Cell &cell);
  bool knowsWrites(unsigned thread, const Cell &cell);
  bool knowsReads(unsigned thread, const Cell &cell);
  void noteRead(const Cell &cell, Deed deed);
  void noteWrite(const Cell &cell, Deed deed, bool joins);
  /// Clocks of warps that met.
  void joinClocks(llvm::ArrayRef<Warp *> warps);
  /// A thread's epoch ends: what it did may be known to who gets its clock.
  void publish(unsigned thread, Clock &to);
  /// Agents behind the threads.
  unsigned agentOfGroup(unsigned warp) const {
    return clocks.size() + warp / 4;
  }
  unsigned agentOfBarrier(size_t barrier) const {
    return agentOfGroup(warps.size() + 3) + barrier;
  }

  std::vector<uint8_t> shared;
  std::vector<Cell> shadow;
  bool hasEnded = false;
  /// That of peers which needs most waits to be known.
  struct PeerRead {
    uint32_t stamp = 0;
    Warp *warp = nullptr;
    const Instruction *instruction = nullptr;
    unsigned lane = 0;
  } lastPeerRead;
  // Empty where barriers of whole blocks are all there is.
  std::vector<Clock> clocks;              ///< By thread.
  std::vector<Deeds> deeds;               ///< By granule.
  std::map<uint32_t, Mbarrier> mbarriers; ///< By address.
  std::vector<TensorCopy> tensorCopies;
};

/// One launch.
class Machine {
public:
  Machine(const Program &program, const Launch &launch, Report &report);
  void run();

  /// Where a lane's access to a buffer goes; null after a finding. `value`:
  /// what is to be written, if that is known.
  uint8_t *access(Warp &warp, const Instruction &i, unsigned lane,
                  uint64_t address, unsigned bytes, AccessKind kind,
                  unsigned alignment, const uint8_t *value = nullptr);
  /// A store that the lane's predicate holds back; it may point anywhere.
  void noteHeldBack(Warp &warp, const Instruction &i, unsigned lane,
                    uint64_t address, unsigned bytes);
  /// At a barrier or the end of `block`: what replicas do not explain.
  void endInterval(Block &block);
  /// An atomic operation with acquire and release at `address`.
  void synchronize(Block &block, uint64_t address);

  void report(FindingKind kind, const Warp &warp, const Instruction &i,
              unsigned lane, const llvm::Twine &details,
              uint32_t other = kNoOperation);
  /// The same, and the launch ends.
  void abort(FindingKind kind, const Warp &warp, const Instruction &i,
             unsigned lane, const llvm::Twine &details,
             uint32_t other = kNoOperation) {
    report(kind, warp, i, lane, details, other);
    aborted = true;
  }

  const Program &program;
  const Launch &launch;
  std::mt19937_64 random;
  bool aborted = false;
  uint64_t instructions = 0;
  uint32_t clock = 0;
  std::vector<Block *> cluster; ///< Those that run, by rank.
  struct BankCount {
    uint64_t requests = 0, wavefronts = 0;
    unsigned maximum = 0;
  };
  std::map<uint32_t, BankCount> banks; ///< By operation.
  /// The block of each time.
  std::vector<int64_t> blockOfTime{-1};
  uint32_t newTime(int64_t block) {
    blockOfTime.push_back(block);
    return ++clock;
  }

private:
  /// Blocks from `first` on that are a cluster; false if the launch must end.
  bool runCluster(int64_t first);
  /// Bytes that arguments share, with their shadow if a kernel writes them.
  struct Region {
    uint8_t *begin, *end;
    bool isWritten = false;
    unsigned granule = 0; ///< Divides every access and every argument's start.
    std::vector<BufferCell> shadow;
    std::map<uint64_t, llvm::SmallVector<Read, 2>> reads; ///< By granule.
  };
  struct Argument {
    Buffer buffer;
    Region *region;
  };
  void check(Warp &warp, const Instruction &i, unsigned lane, Region &region,
             uint64_t granule, AccessKind kind, uint64_t address,
             bool changesNothing);
  void checkWrite(Warp &warp, const Instruction &i, unsigned lane,
                  Region &region, uint64_t granule, AccessKind kind,
                  uint64_t address);
  void note(const Warp &warp, const Instruction &i, unsigned lane,
            Region &region, uint64_t granule, AccessKind kind);
  /// What an operation of a block has read there; null if nothing.
  Read *findRead(Region &region, uint64_t granule, const Block &block,
                 uint32_t operation);
  /// Whether what happened at `time` comes before this block's present.
  bool isBefore(uint32_t time, const Block &block) const;

  Report &result;
  std::vector<Region> regions;
  std::vector<Argument> arguments;
  std::map<std::tuple<FindingKind, uint32_t, uint32_t>, size_t> known;
  /// What atomic operations with release published, by address.
  std::map<uint64_t, std::map<int64_t, uint32_t>> released;
};

/// Pointers to buffers: the argument's number in the high bits.
constexpr unsigned kOffsetBits = 40;
inline uint64_t bufferAddress(unsigned argument, uint64_t phase) {
  return (uint64_t(argument + 1) << kOffsetBits) + phase;
}

} // namespace charonia::interpreter

#endif
