#include "codegen/gpu/BoxPipeline.h"
#include "codegen/gpu/BoxPlan.h"
#include "codegen/gpu/DependentLaunch.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/Loops.h"
#include "codegen/gpu/PersistTiles.h"
#include "codegen/layout/Layouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

class BoxPipeline {
public:
  BoxPipeline(scf::ForOp loop, ArrayRef<Stream> streams, BoxPlan plan,
              const PipelineOptions &options)
      : loop(loop), streams(streams), boxes(std::move(plan.boxes)),
        places(std::move(plan.places)), stages(plan.stages), walk(plan.walk),
        warps(options.warps), copyWarps(plan.copyWarps), trips(tripCount(loop)),
        function(loop->getParentOfType<func::FuncOp>()), b(loop->getContext()) {
    waits = options.overlaps && !function->hasAttr(tile::kWaitsAtEndAttr);
  }

  void run() {
    findDots();
    reduceEarly(loop);
    if (walk)
      createWalk();
    createRings();
    createCopyWarps();
    b.setInsertionPoint(loop);
    createLoop();
  }

private:
  Location loc() { return loop.getLoc(); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc(), value);
  }
  Value slotOf(Value ring, Value index) {
    return simt::SlotOp::create(b, loc(), ring.getType(), ring, index);
  }
  /// Warps that have something to copy: each has streams of its own.
  unsigned numParts() const {
    return std::min<size_t>(streams.size(), copyWarps.warps);
  }
  /// Slots are filled again, so it has to be told when they are empty.
  bool refills() const { return walk || !trips || *trips > stages; }

  /// A slot and the parity of its barrier's phase.
  struct Place {
    Value slot, parity;
  };
  Place begin() { return {constant(0), constant(0)}; }
  Place next(Place at) {
    Value slot = arith::AddIOp::create(b, loc(), at.slot, constant(1));
    Value end = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::eq, slot,
                                      constant(stages));
    Value other = arith::SubIOp::create(b, loc(), constant(1), at.parity);
    return {arith::SelectOp::create(b, loc(), end, constant(0), slot),
            arith::SelectOp::create(b, loc(), end, other, at.parity)};
  }

  /// Dots that are accumulated over the iterations and nothing else stay under
  /// way for one more.
  void findDots() {
    for (auto dot : loop.getBody()->getOps<simt::WarpgroupDotOp>()) {
      if (!waitOf(loop, dot))
        return dots.clear();
      dots.push_back(dot);
    }
  }

  /// The loop over tiles carries the slot that is read, and its parity.
  void createWalk() {
    b.setInsertionPoint(walk->id);
    Place at = begin();
    tiles = loopOverTiles(walk->id, walk->tiles, walk->instances,
                          {at.slot, at.parity});
    AffineMap grid = AffineMap::getConstantMap(walk->instances, b.getContext());
    function->setAttr(tile::kGridAttr, AffineMapAttr::get(grid));
  }

  Value createBarriers(int64_t arrivals) {
    auto layout = simt::LayoutAttr::get(
        b.getContext(),
        LinearLayout({{Dim::Offset, 0}}, {{axisDim(0), 0}}, {}));
    auto type =
        simt::MemoryType::get(b.getContext(), {1}, b.getI64Type(), layout);
    Value ring =
        simt::AllocOp::create(b, loc(), type, stages, IntegerAttr(), true);
    simt::InitBarriersOp::create(b, loc(), ring, arrivals);
    return ring;
  }

  void createRings() {
    b.setInsertionPointToStart(&function.getBody().front());
    for (const Stream &stream : streams)
      rings.push_back(simt::AllocOp::create(
          b, loc(), simt::ToSharedOp(stream.op).getMemory().getType(), stages,
          IntegerAttr(), true));
    full = createBarriers(numParts());
    if (refills())
      empty = createBarriers(warps);
    simt::BarrierOp::create(b, loc(), /*all=*/true);
  }

  //===--- The warps that copy --------------------------------------------===//

  using Chosen = SmallVector<unsigned>;

  /// Where the copies of the iteration at `index` lie, of each chosen stream.
  SmallVector<SmallVector<Value>> place(IRMapping mapping, Value index,
                                        const Chosen &chosen) {
    mapping.map(loop.getInductionVar(), index);
    SmallVector<SmallVector<Value>> places;
    for (unsigned i : chosen) {
      tile::LoadOp load = boxes[i].load;
      for (Operation *op : streams[i].slice)
        if (op != load)
          b.clone(*op, mapping);
      SmallVector<Value> symbols;
      for (Value symbol : load.getSymbols())
        symbols.push_back(mapping.lookupOrDefault(symbol));
      places.push_back(placeBoxes(b, boxes[i], symbols));
    }
    return places;
  }

  /// The iterations from `first` on to before `end`, slot after slot, from
  /// `start` to where the next ones go; `bytes`: what the slot's barrier has to
  /// wait for; null: it knows.
  Place copyAll(const IRMapping &mapping, Value first, Value end,
                const Chosen &chosen, Value bytes, Place start, bool isRefill) {
    Value step = mapping.lookupOrDefault(loop.getStep());
    auto fill = scf::ForOp::create(b, loc(), first, end, step,
                                   ValueRange{start.slot, start.parity});
    OpBuilder::InsertionGuard guard(b);
    Block *body = fill.getBody();
    if (!body->empty())
      body->getTerminator()->erase();
    b.setInsertionPointToEnd(body);
    Place at{fill.getRegionIterArg(0), fill.getRegionIterArg(1)};
    // Found while the slot is still read.
    SmallVector<SmallVector<Value>> places =
        place(mapping, fill.getInductionVar(), chosen);
    if (isRefill)
      simt::WaitBarrierOp::create(b, loc(), slotOf(empty, at.slot), at.parity);
    Value barrier = slotOf(full, at.slot);
    if (bytes)
      simt::ExpectBytesOp::create(b, loc(), barrier, bytes);
    for (auto [i, place] : llvm::zip(chosen, places))
      createBoxes(b, boxes[i], place, slotOf(rings[i], at.slot), barrier,
                  isLast[i]);
    Place after = next(at);
    scf::YieldOp::create(b, loc(), ValueRange{after.slot, after.parity});
    return {fill.getResult(0), fill.getResult(1)};
  }

  /// What the copies of one iteration bring.
  Value bytesOf(const Chosen &part) {
    Value sum;
    for (unsigned i : part) {
      Value bytes = constant(boxes[i].allBytes());
      if (isLast[i])
        bytes = arith::SelectOp::create(b, loc(), isLast[i],
                                        constant(boxes[i].restBytes()), bytes);
      sum = sum ? arith::AddIOp::create(b, loc(), sum, bytes) : bytes;
    }
    return sum;
  }

  /// What copies need, of a tile of that number where instances walk.
  IRMapping clonePlaces(Value number) {
    IRMapping mapping;
    if (walk) {
      mapping.map(walk->id.getResult(), number);
      mapping.map(tiles.getInductionVar(), number);
    }
    for (Operation *op : places)
      if (!walk || op != walk->id)
        b.clone(*op, mapping);
    return mapping;
  }

  /// What one warp copies: weights ahead of the kernels before.
  void copyPart(const Chosen &part) {
    IRMapping mapping =
        clonePlaces(walk ? b.clone(*walk->id)->getResult(0) : Value());
    Value first = mapping.lookupOrDefault(loop.getLowerBound()),
          end = mapping.lookupOrDefault(loop.getUpperBound()), ahead = end;
    if (refills()) {
      Value steps = arith::MulIOp::create(
          b, loc(), mapping.lookupOrDefault(loop.getStep()), constant(stages));
      ahead = arith::AddIOp::create(b, loc(), first, steps);
      ahead = arith::MinSIOp::create(b, loc(), ahead, end);
    }
    Chosen weights, others;
    for (unsigned i : part) {
      isLast[i] = createIsLast(b, boxes[i], mapping);
      (boxes[i].load.getIndependent() ? weights : others).push_back(i);
    }
    Value bytes = bytesOf(part);
    if (!weights.empty())
      copyAll(mapping, first, ahead, weights, bytes, begin(), false);
    if (waits && !others.empty()) {
      simt::WaitDependenciesOp::create(b, loc());
      if (startsNextAtOnce(function))
        simt::LaunchDependentsOp::create(b, loc());
    }
    if (!others.empty())
      copyAll(mapping, first, ahead, others, weights.empty() ? bytes : Value(),
              begin(), false);
    if (walk)
      return copyWalk(mapping, ahead, end, part, bytes);
    if (refills())
      copyAll(mapping, ahead, end, part, bytes, begin(), true);
  }

  /// What is left of the first tile, then all others. A slot that nobody has
  /// filled yet counts as one whose phase of parity 1 is over.
  void copyWalk(const IRMapping &ofFirst, Value ahead, Value end,
                const Chosen &part, Value bytes) {
    bool isFull = *trips >= stages;
    Place at{constant(isFull ? 0 : *trips), constant(isFull ? 0 : 1)};
    at = copyAll(ofFirst, ahead, end, part, bytes, at, true);
    Value each = constant(walk->instances),
          first = ofFirst.lookup(walk->id.getResult()),
          next = arith::AddIOp::create(b, loc(), first, each);
    auto others = scf::ForOp::create(b, loc(), next, constant(walk->tiles),
                                     each, ValueRange{at.slot, at.parity});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(others.getBody());
    IRMapping mapping = clonePlaces(others.getInductionVar());
    for (unsigned i : part)
      isLast[i] = createIsLast(b, boxes[i], mapping);
    at = copyAll(
        mapping, mapping.lookupOrDefault(loop.getLowerBound()),
        mapping.lookupOrDefault(loop.getUpperBound()), part, bytesOf(part),
        {others.getRegionIterArg(0), others.getRegionIterArg(1)}, true);
    scf::YieldOp::create(b, loc(), ValueRange{at.slot, at.parity});
  }

  void createCopyWarps() {
    auto op =
        simt::CopyWarpOp::create(b, loc(), copyWarps.warps, copyWarps.given,
                                 /*partsCount=*/numParts());
    isLast.resize(streams.size());
    OpBuilder::InsertionGuard guard(b);
    for (unsigned part = 0; part < numParts(); ++part) {
      b.setInsertionPointToStart(&op.getParts()[part].emplaceBlock());
      Chosen chosen;
      for (unsigned i = part; i < streams.size(); i += numParts())
        chosen.push_back(i);
      copyPart(chosen);
    }
  }

  //===--- The loop -------------------------------------------------------===//

  void createLoop() {
    SmallVector<Value> values(loop.getInitArgs());
    unsigned carried = values.size();
    // The slot that is read, and its parity; the slot before.
    Place start =
        walk ? Place{tiles.getRegionIterArg(0), tiles.getRegionIterArg(1)}
             : begin();
    values.append({start.slot, start.parity, constant(0)});
    auto fresh =
        scf::ForOp::create(b, loc(), loop.getLowerBound(), loop.getUpperBound(),
                           loop.getStep(), values);
    Block *body = fresh.getBody();
    if (!body->empty())
      body->getTerminator()->erase();
    b.setInsertionPointToEnd(body);
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), fresh.getInductionVar());
    for (auto [old, with] :
         llvm::zip(loop.getRegionIterArgs(), fresh.getRegionIterArgs()))
      mapping.map(old, with);
    Place at{fresh.getRegionIterArg(carried),
             fresh.getRegionIterArg(carried + 1)};
    writeBody(mapping, at, fresh.getRegionIterArg(carried + 2),
              fresh.getInductionVar());
    SmallVector<Value> yields;
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      yields.push_back(mapping.lookupOrDefault(value));
    Place after = next(at);
    yields.append({after.slot, after.parity, at.slot});
    scf::YieldOp::create(b, loc(), yields);
    b.setInsertionPointAfter(fresh);
    for (auto [old, with] : llvm::zip(loop.getResults(), fresh.getResults()))
      old.replaceAllUsesWith(with);
    waitBehind(fresh);
    if (walk)
      leaveLoop(fresh, carried);
    eraseDead(body);
    loop.erase();
  }

  /// The next tile is read from where this one ends, whose last slot is empty.
  void leaveLoop(scf::ForOp fresh, unsigned carried) {
    if (!dots.empty())
      simt::ArriveOp::create(
          b, loc(), slotOf(empty, fresh.getResult(carried + 2)), Value());
    tiles.getBody()->getTerminator()->setOperands(
        {fresh.getResult(carried), fresh.getResult(carried + 1)});
  }

  void writeBody(IRMapping &mapping, Place at, Value before, Value index) {
    simt::WaitBarrierOp::create(b, loc(), slotOf(full, at.slot), at.parity);
    for (auto [stream, ring] : llvm::zip(streams, rings))
      mapping.map(simt::ToSharedOp(stream.op).getMemory(),
                  slotOf(ring, at.slot));
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (llvm::any_of(streams, [&](const Stream &s) { return s.op == &op; }))
        continue;
      auto wait = dyn_cast<simt::WaitDotsOp>(op);
      if (wait && !dots.empty())
        mapping.map(wait.getResult(0), mapping.lookup(wait.getValues()[0]));
      else
        b.clone(op, mapping);
    }
    if (!refills())
      return;
    if (dots.empty()) {
      simt::ArriveOp::create(b, loc(), slotOf(empty, at.slot), Value());
      return;
    }
    simt::WaitDotsOp::create(b, loc(), TypeRange(), ValueRange(), dots.size());
    Value isLater = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::sgt,
                                          index, loop.getLowerBound());
    simt::ArriveOp::create(b, loc(), slotOf(empty, before), isLater);
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

  /// What the loads needed was cloned with the rest of the body.
  static void eraseDead(Block *body) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  scf::ForOp loop;
  ArrayRef<Stream> streams;
  SmallVector<BoxCopy> boxes;
  /// What copies need of the function's body, in order.
  llvm::SetVector<Operation *> places;
  int64_t stages;
  std::optional<Walk> walk;
  unsigned warps;
  CopyWarps copyWarps;
  bool waits; ///< For the kernels before this one, ahead of its first copy.
  std::optional<int64_t> trips;
  func::FuncOp function;
  OpBuilder b;
  SmallVector<simt::WarpgroupDotOp> dots;
  /// The loop over the tiles of an instance that stays.
  scf::ForOp tiles;
  SmallVector<Value> rings;
  /// Of each stream whether its tile is a last one, in the part that copies it.
  SmallVector<Value> isLast;
  /// Barriers of the slots.
  Value full, empty;
};

} // namespace

bool charonia::gpu::pipelineBoxes(scf::ForOp loop, ArrayRef<Stream> streams,
                                  const PipelineOptions &options,
                                  int64_t otherBytes) {
  std::optional<BoxPlan> plan = planBoxes(loop, streams, options, otherBytes);
  if (!plan)
    return false;
  BoxPipeline(loop, streams, std::move(*plan), options).run();
  return true;
}
