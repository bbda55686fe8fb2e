// The loop that reads what the copy engine brings.
#include "codegen/gpu/BoxRings.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using Place = BoxRings::Place;
using Group = BoxRings::Group;

Value BoxRings::constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value BoxRings::slotOf(OpBuilder &b, Location loc, Value ring, Value index) {
  return simt::SlotOp::create(b, loc, ring.getType(), ring, index);
}

Place BoxRings::begin(OpBuilder &b, Location loc) {
  return {constant(b, loc, 0), constant(b, loc, 0)};
}

Place BoxRings::next(OpBuilder &b, Location loc, Place at) const {
  Value one = constant(b, loc, 1);
  Value slot = arith::AddIOp::create(b, loc, at.slot, one);
  Value end = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, slot,
                                    constant(b, loc, stages));
  Value other = arith::SubIOp::create(b, loc, one, at.parity);
  return {arith::SelectOp::create(b, loc, end, constant(b, loc, 0), slot),
          arith::SelectOp::create(b, loc, end, other, at.parity)};
}

namespace {

class BoxLoopBuilder {
public:
  BoxLoopBuilder(scf::ForOp loop, ArrayRef<Stream> streams,
                 const BoxRings &rings, ArrayRef<simt::WarpgroupDotOp> dots,
                 const std::optional<DeferredDot> &deferred)
      : loop(loop), streams(streams), rings(rings), dots(dots),
        deferred(deferred), b(loop) {}

  BoxLoop run(Place start) {
    carried = loop.getNumResults();
    return deferred ? createDeferring(start) : createPlain(start);
  }

private:
  Location loc() { return loop.getLoc(); }
  Value slotOf(Value ring, Value index) {
    return BoxRings::slotOf(b, loc(), ring, index);
  }

  //===--- Slots ----------------------------------------------------------===//

  /// Waits for the group's slot, which stands for its streams from here on.
  void enter(const Group &group, IRMapping &mapping, Place at) {
    simt::WaitBarrierOp::create(b, loc(), slotOf(group.full, at.slot),
                                at.parity);
    for (unsigned i : group.streams)
      mapping.map(simt::ToSharedOp(streams[i].op).getMemory(),
                  slotOf(rings.memories[i], at.slot));
  }
  void leave(const Group &group, Value slot, Value when = Value()) {
    if (group.empty)
      simt::ArriveOp::create(b, loc(), slotOf(group.empty, slot), when);
  }
  const Group *groupOf(Operation *dot) const {
    const Group *found = llvm::find_if(
        rings.groups, [&](const Group &group) { return group.dot == dot; });
    return found == rings.groups.end() ? nullptr : found;
  }
  bool isStream(Operation &op) const {
    return llvm::any_of(streams, [&](const Stream &s) { return s.op == &op; });
  }
  Operation *readBy(simt::WaitDotsOp wait) const {
    return wait.getValues().size() == 1 ? wait.getValues()[0].getDefiningOp()
                                        : nullptr;
  }

  /// An operator of the body, at this slot: a dot with streams of its own waits
  /// for them, and tells when it has read them.
  void clone(Operation &op, IRMapping &mapping, Place at) {
    if (isStream(op))
      return;
    if (isa<simt::WarpgroupDotOp>(op))
      if (const Group *group = groupOf(&op))
        enter(*group, mapping, at);
    cloned.push_back(b.clone(op, mapping));
    if (auto wait = dyn_cast<simt::WaitDotsOp>(op))
      if (Operation *dot = readBy(wait))
        if (const Group *group = groupOf(dot))
          leave(*group, at.slot);
  }

  //===--- Each iteration by itself ---------------------------------------===//

  BoxLoop createPlain(Place start) {
    SmallVector<Value> values(loop.getInitArgs());
    // The slot that is read, and its parity; the slot before.
    values.append({start.slot, start.parity, BoxRings::constant(b, loc(), 0)});
    scf::ForOp fresh = createLoop(loop.getLowerBound(), values);
    b.setInsertionPointToEnd(fresh.getBody());
    IRMapping mapping = mappingOf(fresh);
    Place at = placeIn(fresh);
    if (!rings.groups.front().dot)
      enter(rings.groups.front(), mapping, at);
    for (Operation &op : loop.getBody()->without_terminator()) {
      auto wait = dyn_cast<simt::WaitDotsOp>(op);
      if (wait && !dots.empty())
        mapping.map(wait.getResult(0), mapping.lookup(wait.getValues()[0]));
      else
        clone(op, mapping, at);
    }
    endIteration(at, fresh.getRegionIterArg(carried + 2),
                 fresh.getInductionVar());
    SmallVector<Value> yields;
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      yields.push_back(mapping.lookupOrDefault(value));
    Place after = rings.next(b, loc(), at);
    yields.append({after.slot, after.parity, at.slot});
    scf::YieldOp::create(b, loc(), yields);
    b.setInsertionPointAfter(fresh);
    SmallVector<Value> results(fresh.getResults().take_front(carried));
    for (auto [old, with] : llvm::zip(loop.getResults(), results))
      old.replaceAllUsesWith(with);
    waitBehind(fresh);
    return finish(fresh);
  }

  void endIteration(Place at, Value before, Value index) {
    const Group &group = rings.groups.front();
    if (!group.empty || group.dot)
      return;
    if (dots.empty())
      return leave(group, at.slot);
    simt::WaitDotsOp::create(b, loc(), TypeRange(), ValueRange(), dots.size());
    Value isLater = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::sgt,
                                          index, loop.getLowerBound());
    leave(group, before, isLater);
  }

  /// All dots are done, and nothing takes their results before.
  void waitBehind(scf::ForOp fresh) {
    if (dots.empty())
      return;
    SmallVector<Value> values;
    for (simt::WarpgroupDotOp dot : dots)
      values.push_back(fresh.getResult(
          cast<BlockArgument>(dot.getAccumulator()).getArgNumber() - 1));
    auto wait = simt::WaitDotsOp::create(
        b, loc(), ValueRange(values).getTypes(), values, 0);
    for (auto [value, result] : llvm::zip(values, wait.getResults()))
      value.replaceAllUsesExcept(result, wait);
  }

  //===--- The last dot in the next iteration -----------------------------===//

  /// What an iteration leaves for the dot that it has not done.
  struct Pending {
    Value lhs, total;
    Place at;
  };

  simt::WarpgroupDotOp createLast(const Pending &pending) {
    IRMapping mapping;
    enter(*groupOf(deferred->last), mapping, pending.at);
    mapping.map(deferred->last.getLhs(), pending.lhs);
    mapping.map(deferred->last.getAccumulator(), pending.total);
    return cast<simt::WarpgroupDotOp>(b.clone(*deferred->last, mapping));
  }

  /// The first iteration has no dot before it, and all others have.
  Pending writeIteration(IRMapping &mapping, Place at,
                         std::optional<Pending> before) {
    simt::WarpgroupDotOp last;
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (&op == deferred->last || &op == deferred->lastWait)
        continue;
      if (&op == deferred->firstUse && before)
        waitForLast(last, mapping, before->at);
      // Behind that wait, which covers what reads the registers it goes to.
      if (&op == deferred->rounded)
        continue;
      clone(op, mapping, at);
      if (&op == deferred->first && before)
        last = createLast(*before);
      if (&op == deferred->firstWait && before)
        mapping.lookup(deferred->firstWait.getResult(0))
            .getDefiningOp<simt::WaitDotsOp>()
            .setPending(1);
    }
    b.clone(*deferred->rounded, mapping);
    return {mapping.lookup(deferred->rounded.getOut()),
            mapping.lookupOrDefault(deferred->last.getAccumulator()), at};
  }

  /// The values that are rounded then pass through the wait, too: ptxas would
  /// round them into registers that the dot still reads.
  void waitForLast(simt::WarpgroupDotOp last, IRMapping &mapping,
                   Place before) {
    Value exact = deferred->rounded.getIn();
    SmallVector<Value> values{last.getResult(), mapping.lookup(exact)};
    auto wait = simt::WaitDotsOp::create(
        b, loc(), ValueRange(values).getTypes(), values, 0);
    leave(*groupOf(deferred->last), before.slot);
    mapping.map(deferred->total, wait.getResult(0));
    mapping.map(exact, wait.getResult(1));
  }

  BoxLoop createDeferring(Place start) {
    if (deferred->mayBeEmpty)
      return createGuarded(start);
    auto [fresh, results] = createChain(start);
    for (auto [old, with] : llvm::zip(loop.getResults(), results))
      old.replaceAllUsesWith(with);
    return finish(fresh);
  }

  /// Where the loop may have no iteration.
  BoxLoop createGuarded(Place start) {
    Value any =
        arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt,
                              loop.getLowerBound(), loop.getUpperBound());
    auto branch = scf::IfOp::create(b, loc(), loop.getResultTypes(), any,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc(), loop.getInitArgs());
    b.setInsertionPointToStart(branch.thenBlock());
    auto [fresh, results] = createChain(start);
    scf::YieldOp::create(b, loc(), results);
    for (auto [old, with] : llvm::zip(loop.getResults(), branch.getResults()))
      old.replaceAllUsesWith(with);
    return finish(fresh);
  }

  /// The first iteration, all others, the last dot: the loop's results.
  std::pair<scf::ForOp, SmallVector<Value>> createChain(Place start) {
    IRMapping first;
    first.map(loop.getInductionVar(), loop.getLowerBound());
    for (auto [old, with] :
         llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs()))
      first.map(old, with);
    Pending pending = writeIteration(first, start, std::nullopt);
    Value second =
        arith::AddIOp::create(b, loc(), loop.getLowerBound(), loop.getStep());
    scf::ForOp fresh = createLoop(second, carriedBehind(first, pending, start));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(fresh.getBody());
      IRMapping mapping = mappingOf(fresh);
      Place at = placeIn(fresh);
      pending =
          writeIteration(mapping, at, pendingIn(fresh.getRegionIterArgs()));
      scf::YieldOp::create(b, loc(), carriedBehind(mapping, pending, at));
    }
    Pending left = pendingIn(fresh.getResults());
    simt::WarpgroupDotOp last = createLast(left);
    auto wait =
        simt::WaitDotsOp::create(b, loc(), last.getType(), last.getResult(), 0);
    leave(*groupOf(deferred->last), left.at.slot);
    SmallVector<Value> results(fresh.getResults().take_front(carried));
    results[totalIndex()] = wait.getResult(0);
    return {fresh, results};
  }

  /// Of what carriedBehind leaves.
  Pending pendingIn(ValueRange values) {
    return {values[carried + 3],
            values[totalIndex()],
            {values[carried + 2], values[carried + 4]}};
  }

  unsigned totalIndex() { return deferred->total.getArgNumber() - 1; }

  /// The loop's own values, of which the sum lacks an iteration; the next slot
  /// and its parity, this one, the left operand for it, its parity.
  SmallVector<Value> carriedBehind(IRMapping &mapping, const Pending &pending,
                                   Place at) {
    SmallVector<Value> values;
    for (auto [i, value] :
         llvm::enumerate(loop.getBody()->getTerminator()->getOperands()))
      values.push_back(i == totalIndex() ? pending.total
                                         : mapping.lookupOrDefault(value));
    Place after = rings.next(b, loc(), at);
    values.append({after.slot, after.parity, at.slot, pending.lhs, at.parity});
    return values;
  }

  //===--- Both -----------------------------------------------------------===//

  /// With an empty body.
  scf::ForOp createLoop(Value first, ValueRange values) {
    auto fresh = scf::ForOp::create(b, loc(), first, loop.getUpperBound(),
                                    loop.getStep(), values);
    if (!fresh.getBody()->empty())
      fresh.getBody()->getTerminator()->erase();
    return fresh;
  }
  IRMapping mappingOf(scf::ForOp fresh) {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), fresh.getInductionVar());
    for (auto [old, with] :
         llvm::zip(loop.getRegionIterArgs(), fresh.getRegionIterArgs()))
      mapping.map(old, with);
    return mapping;
  }
  Place placeIn(scf::ForOp fresh) {
    return {fresh.getRegionIterArg(carried),
            fresh.getRegionIterArg(carried + 1)};
  }

  BoxLoop finish(scf::ForOp fresh) {
    Operation *done = &*std::prev(b.getInsertionPoint());
    BoxLoop result{deferred ? fresh.getOperation() : done,
                   done,
                   {fresh.getResult(carried), fresh.getResult(carried + 1)},
                   fresh.getResult(carried + 2)};
    // What the loads needed was cloned with the rest of the body.
    for (Operation *op : llvm::reverse(cloned))
      if (isOpTriviallyDead(op))
        op->erase();
    loop.erase();
    return result;
  }

  scf::ForOp loop;
  ArrayRef<Stream> streams;
  const BoxRings &rings;
  ArrayRef<simt::WarpgroupDotOp> dots;
  std::optional<DeferredDot> deferred;
  OpBuilder b;
  unsigned carried = 0; ///< Values of the loop's own.
  SmallVector<Operation *> cloned;
};

} // namespace

BoxLoop charonia::gpu::createBoxLoop(scf::ForOp loop, ArrayRef<Stream> streams,
                                     const BoxRings &rings,
                                     ArrayRef<simt::WarpgroupDotOp> dots,
                                     const std::optional<DeferredDot> &deferred,
                                     Place start) {
  return BoxLoopBuilder(loop, streams, rings, dots, deferred).run(start);
}
