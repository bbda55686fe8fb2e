#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/PersistTiles.h"
#include "codegen/target/StepSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// What a loop does when.
struct LoopSchedule {
  /// Slots of the rings that copies fill; 0: nothing is copied.
  unsigned copySlots = 0;
  /// Some streams pass through registers.
  bool throughRegisters = false;
  /// These read what other streams copy, an iteration ahead of its dots.
  bool readsCopies = false;
  /// Before which operator of the body what comes next is issued; null: at its
  /// start, behind the barrier.
  Operation *issueAt = nullptr;
  /// Before which operator the rings advance and the barrier is; null: they
  /// advance at the end, and the barrier is at the start.
  Operation *advanceAt = nullptr;
  /// Loads of the body that are then done an iteration ahead.
  SmallVector<simt::LoadSharedOp> early;
  /// Dots that are under way from one iteration to the next, and how many of
  /// them; their waits move behind what is issued, and behind the loop.
  SmallVector<simt::WarpgroupDotOp> dots;
  unsigned dotsInFlight = 0;
  /// Where each of the dots begins a sum of its own: the operators that add it
  /// to what the loop carries, which they do under the next iteration's dots.
  SmallVector<arith::AddFOp> additions;
  /// Registers of a thread then.
  unsigned registers = 0;
  /// The body has dots of warpgroups.
  bool fences = false;
  /// Each iteration has a slot of its own, so that all copies are issued before
  /// the loop.
  bool whole = false;
};

/// Looks for a chain of dots on streams alone: under its last dot the first
/// fragments of the next iteration can be loaded.
void findEarlyFragments(scf::ForOp loop, ArrayRef<Stream> streams,
                        LoopSchedule &schedule) {
  SmallVector<simt::DotOp> dots;
  for (Operation &op : *loop.getBody()) {
    if (op.getNumRegions() &&
        !isa<tile::ReduceOp, tile::ScanOp, simt::WarpReduceOp>(op))
      return;
    if (auto dot = dyn_cast<simt::DotOp>(op))
      dots.push_back(dot);
  }
  if (dots.empty())
    return;
  for (size_t i = 1; i < dots.size(); ++i)
    if (dots[i].getAccumulator() != dots[i - 1].getResult())
      return;
  auto isStream = [&](simt::LoadSharedOp load) {
    return llvm::any_of(streams, [&](const Stream &s) {
      return simt::ToSharedOp(s.op).getMemory() == load.getMemory();
    });
  };
  for (auto load : loop.getBody()->getOps<simt::LoadSharedOp>())
    if (!isStream(load) || !load->isBeforeInBlock(dots.back()))
      return;
  for (Value operand : {dots[0].getLhs(), dots[0].getRhs()})
    if (auto load = operand.getDefiningOp<simt::LoadSharedOp>())
      if (load->getBlock() == loop.getBody())
        schedule.early.push_back(load);
  if (schedule.early.empty())
    return;
  // Behind the fragments of the second step: ptxas keeps shared memory accesses
  // in order, and these are what the next dot waits for.
  schedule.issueAt = dots.front();
  schedule.advanceAt = dots.back();
}

/// Where the results of a dot that begins at zero are added to what the loop
/// carries, if they are for nothing else.
arith::AddFOp additionOf(scf::ForOp loop, simt::WarpgroupDotOp dot) {
  if (!matchPattern(dot.getAccumulator(), m_PosZeroFloat()) ||
      !dot.getResult().hasOneUse())
    return nullptr;
  auto wait = dyn_cast<simt::WaitDotsOp>(*dot.getResult().user_begin());
  if (!wait || wait.getValues().size() != 1 || !wait.getResult(0).hasOneUse())
    return nullptr;
  auto add = dyn_cast<arith::AddFOp>(*wait.getResult(0).user_begin());
  if (!add || add->getBlock() != loop.getBody() || !add.getResult().hasOneUse())
    return nullptr;
  auto carried = dyn_cast<BlockArgument>(
      add.getLhs() == wait.getResult(0) ? add.getRhs() : add.getLhs());
  if (!carried || carried.getOwner() != loop.getBody() || !carried.hasOneUse())
    return nullptr;
  Operation *yield = loop.getBody()->getTerminator();
  return yield->getOperand(carried.getArgNumber() - 1) == add.getResult()
             ? add
             : nullptr;
}

/// Registers of a thread for a dot's results.
unsigned registersOf(simt::WarpgroupDotOp dot) {
  constexpr int64_t groupThreads = 128;
  return cast<RankedTensorType>(dot.getType()).getDimSize(0) *
         dot.getUsedColumns() /
         (dot.getRows() * dot.getColumns() * groupThreads);
}

/// Sums of single iterations are added up under the dots of the next one, where
/// registers hold two of them beside the total. ptxas follows what is under way
/// through straight code alone, so that many iterations are written one behind
/// another, and the last one's dots are waited for.
void findSumsOfSteps(scf::ForOp loop, const PipelineDepth &depth,
                     LoopSchedule &schedule) {
  if (depth.iterations.value_or(1) < 2 || schedule.throughRegisters ||
      !schedule.copySlots || depth.stages < 3 ||
      loop->getParentOp()->hasAttr(kTilesAttr))
    return;
  SmallVector<simt::WarpgroupDotOp> dots(
      loop.getBody()->getOps<simt::WarpgroupDotOp>());
  SmallVector<arith::AddFOp> additions;
  int64_t sums = 0;
  for (simt::WarpgroupDotOp dot : dots) {
    sums += registersOf(dot);
    additions.push_back(additionOf(loop, dot));
  }
  int64_t registers = SumsInTurns::registers(sums);
  if (dots.empty() || registers > depth.registers ||
      !llvm::all_of(additions, [](arith::AddFOp add) { return add; }))
    return;
  schedule.issueAt = *dots.back().getResult().user_begin();
  schedule.dotsInFlight = dots.size();
  schedule.dots = std::move(dots);
  schedule.additions = std::move(additions);
  schedule.registers = registers;
}

/// Dots that are accumulated over the iterations and nothing else need not be
/// done at the end of each, if they `mayOutlast` it.
void findDots(scf::ForOp loop, unsigned stages, bool mayOutlast,
              LoopSchedule &schedule) {
  auto dots = loop.getBody()->getOps<simt::WarpgroupDotOp>();
  schedule.fences = !dots.empty();
  if (schedule.advanceAt || !mayOutlast)
    return;
  for (simt::WarpgroupDotOp dot : dots)
    if (!waitOf(loop, dot))
      return schedule.dots.clear();
    else
      schedule.dots.push_back(dot);
  if (schedule.dots.empty())
    return;
  schedule.issueAt = waitOf(loop, schedule.dots.back());
  // What is copied into a slot then has to wait for the dots of the iteration
  // before; what passes through registers has no slot more for that.
  if ((stages >= 3 || schedule.whole) && schedule.copySlots &&
      !schedule.throughRegisters)
    schedule.dotsInFlight = schedule.dots.size();
}

/// Whether a dot under way may outlast its iteration: all that it reads of the
/// loop's own has slots, so that the next iteration writes over none of it.
bool readsSlots(scf::ForOp loop, ArrayRef<Stream> streams) {
  auto hasSlot = [&](Value memory) {
    auto shared = memory.getDefiningOp<simt::ToSharedOp>();
    return !shared || shared->getBlock() != loop.getBody() ||
           llvm::any_of(streams,
                        [&](const Stream &s) { return s.op == shared; });
  };
  return llvm::all_of(loop.getBody()->getOps<simt::WarpgroupDotOp>(),
                      [&](simt::WarpgroupDotOp dot) {
                        return llvm::all_of(dot.getMemories(), hasSlot);
                      });
}

LoopSchedule planLoop(scf::ForOp loop, ArrayRef<Stream> streams,
                      const PipelineDepth &depth) {
  LoopSchedule schedule;
  schedule.whole = depth.whole;
  for (const Stream &stream : streams) {
    if (stream.copy)
      schedule.copySlots = depth.stages;
    else
      schedule.throughRegisters = true;
    schedule.readsCopies |=
        llvm::any_of(stream.slice, llvm::IsaPred<simt::LoadSharedOp>);
  }
  findEarlyFragments(loop, streams, schedule);
  bool mayOutlast = readsSlots(loop, streams);
  findDots(loop, depth.stages, mayOutlast, schedule);
  if (mayOutlast && schedule.dots.empty() && !schedule.advanceAt)
    findSumsOfSteps(loop, depth, schedule);
  return schedule;
}

class LoopPipeline {
public:
  LoopPipeline(scf::ForOp loop, SmallVector<Stream> streams,
               const PipelineDepth &depth)
      : loop(loop), streams(std::move(streams)), stages(depth.stages),
        iterations(depth.iterations),
        schedule(planLoop(loop, this->streams, depth)), b(loop) {}

  scf::ForOp run() {
    findTileLoop();
    if (tiles)
      b.setInsertionPoint(tiles);
    createRings();
    startStreams();
    b.setInsertionPoint(loop);
    SmallVector<Value> fragments;
    if (!schedule.early.empty()) {
      synchronize();
      fragments = loadEarly([&](const Stream &) { return constant(0); });
    }
    return createLoop(fragments);
  }

private:
  Location loc() { return loop.getLoc(); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc(), value);
  }

  //===--- Tiles ----------------------------------------------------------===//

  /// The loop over tiles, if the instance has several: what is the same for all
  /// of them is copied in front of it, the rest for the first tile there, and
  /// for each next one behind the last product of a tile.
  void findTileLoop() {
    auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
    if (!outer || !outer->hasAttr(kTilesAttr))
      return;
    tiles = outer;
    for (const Stream &stream : streams) {
      resident.push_back(
          isResident(stream, loop, *outer.getBody(), outer.getInductionVar()));
      places.push_back(*placeOfTile(stream, loop, *outer.getBody()));
    }
  }

  /// Copies of all iterations for `tile`, or of what is the same for each tile.
  void issueTile(Value tile, bool ofAll) {
    for (unsigned s = 0; s < stages; ++s) {
      for (unsigned i = 0; i < streams.size(); ++i) {
        if (resident[i] != ofAll)
          continue;
        IRMapping mapping;
        mapping.map(tiles.getInductionVar(), tile);
        for (Operation *op : places[i])
          b.clone(*op, mapping);
        mapping.map(loop.getInductionVar(), constant(s));
        copyStream(streams[i], rings[i], mapping, constant(s));
      }
      if (!ofAll)
        simt::CommitAsyncOp::create(b, loc());
    }
    if (ofAll)
      simt::CommitAsyncOp::create(b, loc());
  }

  /// The copies of the next tile, if there is one: all warps are done with the
  /// slots.
  void issueNextTile() {
    if (!tiles)
      return;
    simt::BarrierOp::create(b, loc());
    Value next = arith::AddIOp::create(b, loc(), tiles.getInductionVar(),
                                       tiles.getStep());
    Value isOne = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt,
                                        next, tiles.getUpperBound());
    auto branch = scf::IfOp::create(b, loc(), isOne, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    issueTile(next, /*ofAll=*/false);
  }

  //===--- Rings ----------------------------------------------------------===//

  void createRings() {
    for (Stream &stream : streams)
      rings.push_back(
          simt::AllocOp::create(b, loc(), stream.op.getMemory().getType(),
                                stream.copy ? stages : 2, IntegerAttr(), true));
  }
  Value slotOf(Value ring, Value index) {
    return simt::SlotOp::create(b, loc(), ring.getType(), ring, index);
  }
  /// The slot after `slot` in a ring of `count`.
  Value wrap(Value slot, int64_t count) {
    Value next = arith::AddIOp::create(b, loc(), slot, constant(1));
    Value end = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::eq, next,
                                      constant(count));
    return arith::SelectOp::create(b, loc(), end, constant(0), next);
  }
  /// Iteration `first + ahead`, counted in steps.
  Value iteration(Value first, int64_t ahead) {
    if (ahead == 0)
      return first;
    Value steps =
        b.createOrFold<arith::MulIOp>(loc(), loop.getStep(), constant(ahead));
    return b.createOrFold<arith::AddIOp>(loc(), first, steps);
  }
  /// What an iteration reads is there, be it for the next one's operands: at
  /// most the copies of later ones are still under way.
  void synchronize() {
    if (schedule.copySlots)
      simt::WaitAsyncOp::create(b, loc(),
                                ahead() - (schedule.readsCopies ? 2 : 1));
    if (schedule.fences)
      simt::FenceSharedOp::create(b, loc());
    simt::BarrierOp::create(b, loc());
  }
  /// Iterations whose copies are under way before the loop: a slot is filled
  /// when the dots that read it are done, in all warps.
  unsigned ahead() const {
    return schedule.whole ? stages : stages - (schedule.dotsInFlight ? 2 : 1);
  }

  //===--- Streams --------------------------------------------------------===//

  /// The copy of a stream where `mapping` says; `end`: only in front of it.
  void copyStream(const Stream &stream, Value ring, IRMapping &mapping,
                  Value slot, Value end = {}) {
    tile::LoadOp load;
    for (Operation *op : stream.slice) {
      Operation *clone = b.clone(*op, mapping);
      if (op == stream.copy->load)
        load = cast<tile::LoadOp>(clone);
    }
    if (end)
      addGuard(load, mapping.lookup(loop.getInductionVar()), end);
    createCopy(b, load, *stream.copy, slotOf(ring, slot));
    load.erase();
  }

  /// Copies for the iteration at `index`, if there is one.
  void issueCopies(Value index, Value slot) {
    for (auto [stream, ring] : llvm::zip(streams, rings)) {
      if (!stream.copy)
        continue;
      IRMapping mapping;
      mapping.map(loop.getInductionVar(), index);
      copyStream(stream, ring, mapping, slot, loop.getUpperBound());
    }
    simt::CommitAsyncOp::create(b, loc());
  }

  /// What passes through registers: its loads and what they need.
  SmallVector<IRMapping> issueLoads(Value index) {
    SmallVector<IRMapping> mappings(streams.size());
    for (auto [stream, mapping] : llvm::zip(streams, mappings)) {
      if (stream.copy)
        continue;
      mapping.map(loop.getInductionVar(), index);
      llvm::SetVector<Operation *> early;
      for (Operation *op : llvm::reverse(stream.slice))
        if (isa<tile::LoadOp>(op) ||
            llvm::any_of(op->getUsers(), [&](Operation *user) {
              return early.contains(
                  loop.getBody()->findAncestorOpInBlock(*user));
            }))
          early.insert(op);
      for (Operation *op : stream.slice)
        if (early.contains(op)) {
          Operation *clone = b.clone(*op, mapping);
          if (auto load = dyn_cast<tile::LoadOp>(clone))
            addGuard(load, index, loop.getUpperBound());
        }
    }
    return mappings;
  }
  /// The rest of its computation, to shared memory; `copies`: the slot of what
  /// other streams have copied for it.
  void storeLoads(SmallVector<IRMapping> &mappings, Value slot, Value copies) {
    SmallVector<Value> copied;
    if (schedule.readsCopies)
      for (auto [stream, ring] : llvm::zip(streams, rings))
        copied.push_back(stream.copy ? slotOf(ring, copies) : Value());
    for (auto [stream, ring, mapping] : llvm::zip(streams, rings, mappings)) {
      if (stream.copy)
        continue;
      for (auto [other, memory] : llvm::zip_first(copied, streams))
        if (other)
          mapping.map(memory.op.getMemory(), other);
      for (Operation *op : stream.slice)
        if (!mapping.contains(op->getResult(0)))
          b.clone(*op, mapping);
      Value memory = slotOf(ring, slot);
      simt::StoreSharedOp::create(b, loc(),
                                  mapping.lookup(stream.op.getInput()), memory);
    }
  }

  void startStreams() {
    if (tiles) {
      issueTile(tiles.getLowerBound(), /*ofAll=*/true);
      issueTile(tiles.getLowerBound(), /*ofAll=*/false);
      return;
    }
    if (schedule.copySlots)
      for (unsigned s = 0; s < ahead(); ++s)
        issueCopies(iteration(loop.getLowerBound(), s), constant(s));
    if (schedule.throughRegisters) {
      SmallVector<IRMapping> loads = issueLoads(loop.getLowerBound());
      if (schedule.readsCopies) {
        simt::WaitAsyncOp::create(b, loc(), ahead() - 1);
        simt::BarrierOp::create(b, loc());
      }
      storeLoads(loads, constant(0), constant(0));
    }
  }

  SmallVector<Value> loadEarly(function_ref<Value(const Stream &)> slot) {
    SmallVector<Value> result;
    for (simt::LoadSharedOp fragment : schedule.early)
      for (auto [stream, ring] : llvm::zip(streams, rings))
        if (stream.op.getMemory() == fragment.getMemory()) {
          Value memory = slotOf(ring, slot(stream));
          result.push_back(simt::LoadSharedOp::create(
              b, loc(), fragment.getType(), memory, fragment.getStart()));
        }
    return result;
  }

  //===--- The loop -------------------------------------------------------===//

  /// Where an iteration stands, and what it hands to the next.
  struct Iteration {
    Value index;
    /// Slots of copies that are read and written; the slot through registers
    /// that is read.
    Value read, write, parity;
    /// The slot through registers that is written.
    Value other;
    Value nextRead, nextWrite;
    /// Of what passes through registers, loaded and not yet stored.
    SmallVector<IRMapping> loads;
    SmallVector<Value> nextFragments;
    /// Of dots that are added later, those of the iteration before, null where
    /// none are under way; then its own.
    SmallVector<Value> *sums;
    /// From the old body to the new one.
    IRMapping mapping;
  };

  void issue(Iteration &at) {
    // An empty group: what is waited for stays as far behind.
    if (schedule.whole)
      simt::CommitAsyncOp::create(b, loc());
    else if (schedule.copySlots)
      issueCopies(iteration(at.index, ahead()), at.write);
    if (schedule.throughRegisters) {
      at.loads = issueLoads(iteration(at.index, 1));
      at.other = arith::SubIOp::create(b, loc(), constant(1), at.parity);
    }
  }

  void advance(Iteration &at) {
    auto waitForDots = [&] {
      if (!schedule.dots.empty() && schedule.additions.empty())
        simt::WaitDotsOp::create(b, loc(), TypeRange(), ValueRange(),
                                 schedule.dotsInFlight);
    };
    if (!schedule.throughRegisters)
      waitForDots();
    at.nextRead = schedule.copySlots ? wrap(at.read, stages) : at.read;
    at.nextWrite = schedule.copySlots ? wrap(at.write, stages) : at.write;
    if (!schedule.throughRegisters)
      return;
    // Under this iteration's dots: those of the one before, which read that
    // slot, are done.
    storeLoads(at.loads, at.other, at.nextRead);
    waitForDots();
  }

  /// The old body, with what comes next where the schedule says.
  void writeBody(Iteration &at, ValueRange fragments) {
    if (!schedule.advanceAt)
      synchronize();
    if (!schedule.issueAt)
      issue(at);
    for (auto [stream, ring] : llvm::zip(streams, rings))
      at.mapping.map(stream.op.getMemory(),
                     slotOf(ring, stream.copy ? at.read : at.parity));
    for (auto [fragment, value] : llvm::zip(schedule.early, fragments))
      at.mapping.map(fragment.getResult(), value);
    for (Operation &op : loop.getBody()->without_terminator()) {
      bool isDone =
          llvm::any_of(streams, [&](Stream &s) { return s.op == &op; }) ||
          llvm::any_of(schedule.early, [&](auto load) { return load == &op; });
      if (isDone)
        continue;
      if (&op == schedule.issueAt)
        issue(at);
      if (&op == schedule.advanceAt) {
        advance(at);
        synchronize();
        at.nextFragments = loadEarly([&](const Stream &stream) {
          return stream.copy ? at.nextRead : at.other;
        });
      }
      auto wait = dyn_cast<simt::WaitDotsOp>(op);
      const auto *addition = llvm::find(schedule.additions, &op);
      if (addition != schedule.additions.end())
        addBefore(at, addition - schedule.additions.begin());
      else if (wait && !schedule.dots.empty())
        at.mapping.map(wait.getResult(0),
                       at.mapping.lookup(wait.getValues()[0]));
      else
        b.clone(op, at.mapping);
    }
    if (!schedule.advanceAt)
      advance(at);
  }

  /// The sums of the iteration before are done and added; those of this one
  /// stay under way.
  void addBefore(Iteration &at, size_t number) {
    arith::AddFOp add = schedule.additions[number];
    Value dot = schedule.dots[number], &sum = (*at.sums)[number];
    Value total = at.mapping.lookup(carriedOf(add));
    if (sum) {
      auto wait =
          simt::WaitDotsOp::create(b, loc(), TypeRange{sum.getType()},
                                   ValueRange{sum}, schedule.dotsInFlight);
      total = addTo(total, wait.getResult(0), add);
    }
    at.mapping.map(add.getResult(), total);
    sum = at.mapping.lookup(dot);
  }
  static BlockArgument carriedOf(arith::AddFOp add) {
    auto carried = dyn_cast<BlockArgument>(add.getLhs());
    return carried ? carried : cast<BlockArgument>(add.getRhs());
  }
  Value addTo(Value total, Value sum, arith::AddFOp add) {
    IRMapping mapping;
    for (Value operand : add.getOperands())
      mapping.map(operand, operand == carriedOf(add) ? total : sum);
    return b.clone(*add, mapping)->getResult(0);
  }

  /// The new loop carries what the old one does, then the three slots, then the
  /// first fragments.
  scf::ForOp createLoop(ValueRange fragments) {
    SmallVector<Value> values(loop.getInitArgs());
    values.append({constant(0), constant(ahead()), constant(0)});
    llvm::append_range(values, fragments);
    scf::ForOp fresh;
    if (schedule.additions.empty()) {
      fresh = createLoop(values, loop.getUpperBound(), 1);
    } else {
      int64_t count = llvm::divideCeil(
          *iterations, llvm::divideCeil(*iterations, SumsInTurns::mostSteps));
      int64_t rest = *iterations % count;
      Value end = iteration(loop.getLowerBound(), *iterations - rest);
      fresh = createLoop(values, end, count);
      writeIterations(end, rest, values);
    }
    if (schedule.copySlots)
      simt::WaitAsyncOp::create(b, loc(), 0);
    for (auto [old, with] : llvm::zip(loop.getResults(), values))
      old.replaceAllUsesWith(with);
    if (!schedule.dots.empty() && schedule.additions.empty())
      waitBehind(values);
    if (!schedule.additions.empty())
      eraseDead(loop->getPrevNode(), fresh);
    issueNextTile();
    loop.erase();
    return fresh;
  }

  /// What streams bring was cloned with the rest of the body. From `last` back
  /// to behind `stop`.
  static void eraseDead(Operation *last, Operation *stop) {
    while (last != stop) {
      Operation *op = std::exchange(last, last->getPrevNode());
      if (isOpTriviallyDead(op))
        op->erase();
    }
  }

  /// `values`: what it carries, then what it leaves. `count` iterations are one
  /// of the new loop.
  scf::ForOp createLoop(SmallVector<Value> &values, Value end, int64_t count) {
    Value step =
        b.createOrFold<arith::MulIOp>(loc(), loop.getStep(), constant(count));
    auto fresh =
        scf::ForOp::create(b, loc(), loop.getLowerBound(), end, step, values);
    if (count > 1)
      fresh->setAttr(kWrittenOutAttr, b.getI64IntegerAttr(schedule.registers));
    Block *body = fresh.getBody();
    if (!body->empty())
      body->getTerminator()->erase();
    b.setInsertionPointToEnd(body);
    values.assign(fresh.getRegionIterArgs().begin(),
                  fresh.getRegionIterArgs().end());
    writeIterations(fresh.getInductionVar(), count, values);
    scf::YieldOp::create(b, loc(), values);
    b.setInsertionPointAfter(fresh);
    values.assign(fresh.result_begin(), fresh.result_end());
    eraseDead(body->getTerminator(), nullptr);
    return fresh;
  }

  /// So many iterations from `first` on; what they leave under way to be added
  /// is added behind the last one.
  void writeIterations(Value first, int64_t count, SmallVector<Value> &values) {
    SmallVector<Value> sums(schedule.additions.size());
    for (int64_t i = 0; i < count; ++i)
      values = writeIteration(iteration(first, i), values, sums);
    if (sums.empty() || count == 0)
      return;
    auto wait = simt::WaitDotsOp::create(b, loc(), ValueRange(sums).getTypes(),
                                         sums, 0);
    for (auto [add, sum] : llvm::zip(schedule.additions, wait.getResults())) {
      Value &total = values[carriedOf(add).getArgNumber() - 1];
      total = addTo(total, sum, add);
    }
  }

  /// What the new loop carries behind the iteration at `index`, from what it
  /// has in front of it; `sums` as Iteration has them.
  SmallVector<Value> writeIteration(Value index, ArrayRef<Value> from,
                                    SmallVector<Value> &sums) {
    unsigned carried = loop.getInitArgs().size();
    Iteration at;
    at.index = index;
    at.read = from[carried];
    at.write = from[carried + 1];
    at.parity = from[carried + 2];
    ArrayRef<Value> fragments = from.slice(carried + 3, schedule.early.size());
    at.sums = &sums;
    at.mapping.map(loop.getInductionVar(), at.index);
    for (auto [old, with] : llvm::zip(loop.getRegionIterArgs(), from))
      at.mapping.map(old, with);
    writeBody(at, fragments);
    SmallVector<Value> values;
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      values.push_back(at.mapping.lookupOrDefault(value));
    values.append({at.nextRead, at.nextWrite,
                   schedule.throughRegisters ? at.other : at.parity});
    llvm::append_range(values, at.nextFragments);
    return values;
  }

  /// All dots are done, and nothing takes their results before.
  void waitBehind(ArrayRef<Value> carried) {
    SmallVector<Value> values;
    for (simt::WarpgroupDotOp dot : schedule.dots)
      values.push_back(
          carried[cast<BlockArgument>(dot.getAccumulator()).getArgNumber() -
                  1]);
    auto wait = simt::WaitDotsOp::create(
        b, loc(), ValueRange(values).getTypes(), values, 0);
    for (auto [value, result] : llvm::zip(values, wait.getResults()))
      value.replaceAllUsesExcept(result, wait);
  }

  scf::ForOp loop;
  SmallVector<Stream> streams;
  unsigned stages;
  std::optional<int64_t> iterations;
  LoopSchedule schedule;
  OpBuilder b;
  /// The shared memory of each stream.
  SmallVector<Value> rings;
  /// The loop over tiles around, if there is one; for each stream whether it is
  /// the same for all of them, and what says where it is of each.
  scf::ForOp tiles;
  SmallVector<bool> resident;
  SmallVector<llvm::SetVector<Operation *>> places;
};

} // namespace

simt::WaitDotsOp charonia::gpu::waitOf(scf::ForOp loop,
                                       simt::WarpgroupDotOp dot) {
  if (!dot.getResult().hasOneUse())
    return nullptr;
  auto wait = dyn_cast<simt::WaitDotsOp>(*dot.getResult().user_begin());
  auto carried = dyn_cast<BlockArgument>(dot.getAccumulator());
  if (!wait || !carried || carried.getOwner() != loop.getBody() ||
      !carried.hasOneUse() || !wait.getResult(0).hasOneUse())
    return nullptr;
  Operation *yield = loop.getBody()->getTerminator();
  return yield->getOperand(carried.getArgNumber() - 1) == wait.getResult(0)
             ? wait
             : nullptr;
}

scf::ForOp charonia::gpu::pipelineLoop(scf::ForOp loop,
                                       SmallVector<Stream> streams,
                                       const PipelineDepth &depth) {
  return LoopPipeline(loop, std::move(streams), depth).run();
}
