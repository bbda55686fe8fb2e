#include "codegen/gpu/interpreter/Machine.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <list>
#include <numeric>

using namespace charonia;
using namespace charonia::interpreter;

llvm::StringRef charonia::interpreter::findingName(FindingKind kind) {
  switch (kind) {
  case FindingKind::Race:
    return "race";
  case FindingKind::UnwrittenRead:
    return "unwritten read";
  case FindingKind::OutOfBounds:
    return "out of bounds";
  case FindingKind::Misaligned:
    return "misaligned";
  case FindingKind::DivergentBarrier:
    return "divergent barrier";
  case FindingKind::UnfinishedCopy:
    return "unfinished copy";
  case FindingKind::UnfinishedDot:
    return "unfinished product";
  case FindingKind::MissingFence:
    return "missing fence";
  case FindingKind::ChangedSource:
    return "changed source";
  case FindingKind::ConstantWrite:
    return "constant write";
  case FindingKind::NonCoherentRead:
    return "non-coherent read";
  case FindingKind::EarlyAccess:
    return "early access";
  case FindingKind::NeverWaited:
    return "never waited";
  case FindingKind::EarlyStart:
    return "early start";
  case FindingKind::InactiveLane:
    return "inactive lane";
  case FindingKind::UnexpectedBytes:
    return "unexpected bytes";
  case FindingKind::BarrierMisuse:
    return "barrier misuse";
  case FindingKind::EndedBlock:
    return "ended block";
  case FindingKind::Deadlock:
    return "deadlock";
  case FindingKind::NotModelled:
    return "not modelled";
  case FindingKind::StepLimit:
    return "step limit";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

Kernel::Kernel(std::unique_ptr<Program> program)
    : program(std::move(program)) {}
Kernel::Kernel(Kernel &&) = default;
Kernel &Kernel::operator=(Kernel &&) = default;
Kernel::~Kernel() = default;

const std::string &Kernel::name() const { return program->name; }
unsigned Kernel::blockThreads() const { return program->blockThreads; }
unsigned Kernel::clusterBlocks() const { return program->clusterBlocks; }
size_t Kernel::numBuffers() const {
  return program->count(Program::Argument::Kind::Buffer);
}
size_t Kernel::numSymbols() const {
  return program->count(Program::Argument::Kind::Symbol);
}
size_t Kernel::numMaps() const {
  return program->count(Program::Argument::Kind::Map);
}
void Kernel::launch(const Launch &launch, Report &report) const {
  assert(launch.buffers.size() == numBuffers() &&
         launch.symbols.size() == numSymbols() &&
         launch.maps.size() == numMaps() && "wrong arguments");
  Machine(*program, launch, report).run();
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

Machine::Machine(const Program &program, const Launch &launch, Report &report)
    : program(program), launch(launch), random(launch.seed), result(report) {
  // Arguments that overlap are one region.
  struct Range {
    uint8_t *begin, *end;
    uint64_t phase;
    bool isWritten;
  };
  std::vector<Range> ranges;
  unsigned next = 0;
  for (const Program::Argument &argument : program.arguments) {
    if (!argument.isBuffer())
      continue;
    const Buffer &buffer = launch.buffers[next++];
    auto *begin = static_cast<uint8_t *>(buffer.data);
    ranges.push_back(
        {begin, begin + buffer.bytes, buffer.phase, argument.isWritten});
  }
  std::vector<Range> sorted = ranges;
  llvm::sort(sorted, [](const Range &a, const Range &b) {
    return std::tuple(a.begin, a.end) < std::tuple(b.begin, b.end);
  });
  for (const Range &range : sorted) {
    if (regions.empty() || range.begin >= regions.back().end)
      regions.push_back(
          {range.begin, range.end, false, program.globalGranule, {}, {}});
    Region &region = regions.back();
    region.end = std::max(region.end, range.end);
    region.isWritten |= range.isWritten;
    // Addresses are multiples of an access, places are them less the phase.
    region.granule =
        std::gcd(region.granule,
                 unsigned(range.begin - region.begin - range.phase) % 16);
  }
  for (Region &region : regions)
    if (region.isWritten)
      region.shadow.resize((region.end - region.begin) / region.granule + 1);
  for (auto [i, range] : llvm::enumerate(ranges)) {
    auto region = llvm::find_if(regions, [&](const Region &r) {
      return r.begin <= range.begin && range.end <= r.end;
    });
    arguments.push_back({launch.buffers[i], &*region});
  }
}

void Machine::run() {
  int64_t blocks = std::max<int64_t>(launch.grid, 0);
  if (blocks % program.clusterBlocks != 0) {
    result.findings.push_back({FindingKind::NotModelled, program.name, "", "",
                               "the grid is no multiple of the cluster"});
    return;
  }
  std::vector<int64_t> order(blocks / program.clusterBlocks);
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i * program.clusterBlocks;
  if (launch.seed)
    std::shuffle(order.begin(), order.end(), random);
  for (int64_t first : order)
    if (!runCluster(first))
      break;
  result.instructions += instructions;
  for (auto &[operation, count] : banks) {
    const std::string &text = program.operations[operation];
    auto known = llvm::find_if(result.banks, [&](const BankStatistic &b) {
      return b.kernel == program.name && b.operation == text;
    });
    if (known == result.banks.end()) {
      result.banks.push_back({program.name, text});
      known = std::prev(result.banks.end());
    }
    known->requests += count.requests;
    known->wavefronts += count.wavefronts;
    known->maximum = std::max(known->maximum, count.maximum);
  }
}

bool Machine::runCluster(int64_t first) {
  std::list<Block> blocks;
  llvm::SmallVector<Block *> running;
  for (unsigned i = 0; i < program.clusterBlocks; ++i)
    running.push_back(&blocks.emplace_back(*this, first + i));
  cluster.assign(running.begin(), running.end());
  for (;;) {
    if (launch.seed)
      std::shuffle(running.begin(), running.end(), random);
    llvm::SmallVector<Block *> waiting;
    for (Block *block : running) {
      Block::Stop stop = block->run();
      if (stop == Block::Stop::Failed)
        return false;
      if (stop == Block::Stop::AtCluster)
        waiting.push_back(block);
    }
    if (waiting.empty())
      return true;
    Block::meet(waiting);
    running = waiting;
  }
}

void Machine::report(FindingKind kind, const Warp &warp, const Instruction &i,
                     unsigned lane, const llvm::Twine &details,
                     uint32_t other) {
  auto [it, isNew] =
      known.try_emplace({kind, i.operation, other}, result.findings.size());
  if (!isNew) {
    ++result.findings[it->second].count;
    return;
  }
  Finding finding;
  finding.kind = kind;
  finding.kernel = program.name;
  finding.operation = program.operations[i.operation];
  if (other != kNoOperation)
    finding.other = program.operations[other];
  finding.details = ("block " + llvm::Twine(warp.block.number) + ", thread " +
                     llvm::Twine(warp.thread(lane)) + ": " + details)
                        .str();
  result.findings.push_back(std::move(finding));
}

void Warp::exit(const Instruction &i, Mask lanes) {
  Machine &machine = block.machine;
  // A kernel that ends early would let the next one pass those before it.
  if (Mask early = lanes & alive & ~waited;
      early && machine.launch.overlapsPrevious)
    machine.report(FindingKind::NeverWaited, *this, i,
                   unsigned(__builtin_ctz(early)),
                   "ends without having waited for the kernels before this "
                   "one");
  alive &= ~lanes;
  mask &= alive;
  if (!alive)
    state = State::Ended;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// What the kernel's arguments are in registers; a map is its number.
static void setArguments(Warp &warp, const Program &program,
                         const Launch &launch) {
  using Kind = Program::Argument::Kind;
  unsigned buffer = 0, symbol = 0, map = 0;
  for (const Program::Argument &argument : program.arguments) {
    uint64_t value;
    if (argument.kind == Kind::Buffer) {
      value = bufferAddress(buffer, launch.buffers[buffer].phase);
      ++buffer;
    } else {
      value = argument.kind == Kind::Map ? map++ : launch.symbols[symbol++];
    }
    std::fill_n(warp.lanes<uint64_t>(argument.slot), kWarpLanes, value);
  }
}

Block::Block(Machine &machine, int64_t number)
    : machine(machine), number(number), firstTime(machine.newTime(number)),
      time(firstTime),
      // Of floats these bits are no number.
      shared(machine.launch.sharedBytes, 0xFF),
      shadow(machine.launch.sharedBytes / machine.program.sharedGranule + 1) {
  const Program &program = machine.program;
  unsigned threads = program.blockThreads;
  warps.reserve((threads + kWarpLanes - 1) / kWarpLanes);
  for (unsigned first = 0; first < threads; first += kWarpLanes) {
    unsigned count = std::min(threads - first, kWarpLanes);
    Mask lanes = count == kWarpLanes ? ~Mask(0) : (Mask(1) << count) - 1;
    warps.emplace_back(*this, first / kWarpLanes, lanes, program.slots);
    setArguments(warps.back(), program, machine.launch);
  }
  if (!program.hasClocks)
    return;
  deeds.resize(shadow.size());
  clocks.resize(threads);
  for (unsigned thread = 0; thread < threads; ++thread)
    clocks[thread].raise(thread, 1);
}

Block::Stop Block::run() {
  const std::vector<Instruction> &code = machine.program.code;
  bool isRandom = machine.launch.seed != 0;
  size_t turn = 0;
  for (;;) {
    llvm::SmallVector<Warp *, 32> ready;
    for (Warp &warp : warps)
      if (canGoOn(warp))
        ready.push_back(&warp);
    if (ready.empty()) {
      if (llvm::all_of(warps, [](const Warp &warp) {
            return warp.state == Warp::State::Ended;
          })) {
        checkTensorCopies();
        checkPeerReads();
        machine.endInterval(*this);
        return Stop::Ended;
      }
      if (llvm::all_of(warps, [](const Warp &warp) {
            return warp.state == Warp::State::Ended ||
                   warp.state == Warp::State::AtCluster;
          }))
        return Stop::AtCluster;
      if (isStuck()) {
        if (landNext())
          continue;
        reportDeadlock();
        return Stop::Failed;
      }
      if (!releaseBarrier())
        return Stop::Failed;
      continue;
    }
    Warp &warp = *ready[isRandom ? machine.random() % ready.size()
                                 : turn++ % ready.size()];
    warp.state = Warp::State::Ready;
    uint64_t quantum = isRandom ? 1 + machine.random() % 512 : UINT64_MAX;
    uint64_t steps = 0;
    while (warp.state == Warp::State::Ready && steps < quantum &&
           !machine.aborted) {
      const Instruction &i = code[warp.pc++];
      i.run(warp, i);
      ++steps;
      // Without a barrier in a loop this is the only way out of it.
      if ((steps & 0xffff) == 0 &&
          machine.instructions + steps > machine.launch.instructionLimit)
        machine.abort(FindingKind::StepLimit, warp, i, 0,
                      "more instructions than the launch may take");
    }
    machine.instructions += steps;
    if (machine.aborted)
      return Stop::Failed;
    if (machine.instructions > machine.launch.instructionLimit) {
      machine.abort(FindingKind::StepLimit, warp, code[warp.pc - 1], 0,
                    "more instructions than the launch may take");
      return Stop::Failed;
    }
    landSome(1, 4);
  }
}

bool Block::canGoOn(Warp &warp) {
  switch (warp.state) {
  case Warp::State::Ready:
    return true;
  case Warp::State::AtPhase:
    return isPhaseDone(warp, *warp.waitsAt);
  case Warp::State::AtProducts:
    return haveBegun(warp, warp.dotsAwaited);
  default:
    return false;
  }
}

/// Whether a warp waits for more than the block's barrier.
bool Block::isStuck() const {
  return llvm::any_of(warps, [](const Warp &warp) {
    return warp.state == Warp::State::AtPhase ||
           warp.state == Warp::State::AtProducts ||
           warp.state == Warp::State::AtNamedBarrier;
  });
}

/// Lets the warps go on; false if not all of them came to the same barrier.
bool Block::releaseBarrier() {
  Warp *first = nullptr;
  bool vote = false;
  for (Warp &warp : warps) {
    if (warp.state == Warp::State::Ended)
      continue;
    if (!first)
      first = &warp;
    vote |= warp.vote;
    if (warp.barrier->operation != first->barrier->operation ||
        warp.barrier != first->barrier) {
      machine.abort(FindingKind::DivergentBarrier, warp, *warp.barrier, 0,
                    "warps wait at different barriers",
                    first->barrier->operation);
      return false;
    }
  }
  for (Warp &warp : warps)
    if (warp.state == Warp::State::Ended && !warp.leftByExit) {
      machine.abort(FindingKind::DivergentBarrier, *first, *first->barrier, 0,
                    "waits for warp " + llvm::Twine(warp.number) +
                        ", which has ended");
      return false;
    }
  goOn(vote);
  return true;
}

void Block::meet(llvm::ArrayRef<Block *> blocks) {
  // What one has done, or has seen, comes before what any does from now on.
  std::map<int64_t, uint32_t> done;
  for (Block *block : blocks) {
    done[block->number] = std::max(done[block->number], block->time);
    for (auto [other, time] : block->acquired)
      done[other] = std::max(done[other], time);
  }
  for (Block *block : blocks) {
    block->acquired = done;
    block->acquired.erase(block->number);
    block->goOn(/*vote=*/false);
  }
}

void Block::goOn(bool vote) {
  machine.endInterval(*this);
  previousTime = time;
  time = machine.newTime(number);
  llvm::SmallVector<Warp *, 32> going;
  for (Warp &warp : warps)
    if (warp.state != Warp::State::Ended)
      going.push_back(&warp);
  joinClocks(going);
  for (Warp *one : going) {
    Warp &warp = *one;
    if (warp.barrier->result != kNoSlot)
      std::fill_n(warp.lanes<uint32_t>(warp.barrier->result), kWarpLanes,
                  uint32_t(vote));
    warp.vote = false;
    warp.barrier = nullptr;
    if (warp.state == Warp::State::AtCluster)
      warp.clusterWaits = warp.clusterArrivals;
    warp.state = Warp::State::Ready;
  }
}
