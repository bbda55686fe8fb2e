// The software pipeline of a loop over streams: the loop itself.
#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/LoopStreams.h"
#include "codegen/target/StepSums.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

class LoopPipeline : LoopStreams {
public:
  LoopPipeline(scf::ForOp loop, SmallVector<Stream> streams,
               const PipelineDepth &depth)
      : LoopStreams(loop, std::move(streams), depth),
        iterations(depth.iterations) {}

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

  std::optional<int64_t> iterations;
};

} // namespace

scf::ForOp charonia::gpu::pipelineLoop(scf::ForOp loop,
                                       SmallVector<Stream> streams,
                                       const PipelineDepth &depth) {
  return LoopPipeline(loop, std::move(streams), depth).run();
}
