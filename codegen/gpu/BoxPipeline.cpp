#include "codegen/gpu/BoxPipeline.h"
#include "codegen/gpu/BoxPlan.h"
#include "codegen/gpu/BoxRings.h"
#include "codegen/gpu/DependentLaunch.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/Loops.h"
#include "codegen/gpu/PersistTiles.h"
#include "codegen/layout/Layouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

using Place = BoxRings::Place;

class BoxPipeline {
public:
  BoxPipeline(scf::ForOp loop, ArrayRef<Stream> streams, BoxPlan plan,
              const PipelineOptions &options)
      : loop(loop), location(loop.getLoc()), streams(streams),
        held(std::move(plan.held)), boxes(std::move(plan.boxes)),
        places(std::move(plan.places)), walk(plan.walk), warps(options.warps),
        copyWarps(plan.copyWarps), trips(tripCount(loop)),
        function(loop->getParentOfType<func::FuncOp>()), b(loop->getContext()),
        deferred(plan.deferred) {
    rings.stages = plan.stages;
    waits = options.overlaps && !function->hasAttr(tile::kWaitsAtEndAttr);
  }

  void run() {
    findDots();
    reduceEarly(loop);
    if (walk)
      createWalk();
    findGroups();
    keepDeferred();
    createRings();
    createCopyWarps();
    b.setInsertionPoint(loop);
    createLoop();
  }

private:
  Location loc() const { return location; }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc(), value);
  }
  Value slotOf(Value ring, Value index) {
    return BoxRings::slotOf(b, loc(), ring, index);
  }
  /// Warps that have something to copy: each has operands of its own.
  unsigned numParts() const {
    return std::min<size_t>(boxes.size(), copyWarps.warps);
  }
  /// Slots are filled again, so it has to be told when they are empty.
  bool refills() const { return walk || !trips || *trips > rings.stages; }

  /// Dots that are accumulated over the iterations and nothing else stay under
  /// way for one more.
  void findDots() {
    for (auto dot : loop.getBody()->getOps<simt::WarpgroupDotOp>()) {
      if (!waitOf(loop, dot))
        return dots.clear();
      dots.push_back(dot);
    }
  }

  /// What loops over tiles carry: the slot that is next, and its parity; that
  /// of what is held.
  SmallVector<Value> carriedBy(Place at, Value parity) const {
    SmallVector<Value> values{at.slot, at.parity};
    if (!held.empty())
      values.push_back(parity);
    return values;
  }
  Value heldParity(scf::ForOp tiles) const {
    return held.empty() ? Value() : tiles.getRegionIterArg(2);
  }
  Value otherParity(Value parity) {
    return parity ? arith::SubIOp::create(b, loc(), constant(1), parity)
                        .getResult()
                  : Value();
  }

  void createWalk() {
    b.setInsertionPoint(walk->id);
    Place at = BoxRings::begin(b, loc());
    Value parity = held.empty() ? Value() : constant(0);
    tiles = loopOverTiles(walk->id, walk->tiles, walk->instances,
                          carriedBy(at, parity));
    AffineMap grid = AffineMap::getConstantMap(walk->instances, b.getContext());
    function->setAttr(tile::kGridAttr, AffineMapAttr::get(grid));
  }

  Value createBarriers(int64_t slots, int64_t arrivals) {
    auto layout = simt::LayoutAttr::get(
        b.getContext(),
        LinearLayout({{Dim::Offset, 0}}, {{axisDim(0), 0}}, {}));
    auto type =
        simt::MemoryType::get(b.getContext(), {1}, b.getI64Type(), layout);
    Value ring =
        simt::AllocOp::create(b, loc(), type, slots, IntegerAttr(), true);
    simt::InitBarriersOp::create(b, loc(), ring, arrivals);
    return ring;
  }

  /// Where dots wait for each other's results their operands come and go one by
  /// one; otherwise a slot is one iteration's.
  void findGroups() {
    if (dots.empty())
      for (auto dot : loop.getBody()->getOps<simt::WarpgroupDotOp>()) {
        BoxRings::Group group;
        group.dot = dot;
        for (auto [i, stream] : llvm::enumerate(streams))
          if (onlyReaderOf(stream) == dot)
            group.streams.push_back(i);
        if (!group.streams.empty())
          rings.groups.push_back(std::move(group));
      }
    size_t found = 0;
    for (const BoxRings::Group &group : rings.groups)
      found += group.streams.size();
    if (found == streams.size())
      return;
    BoxRings::Group all;
    for (unsigned i = 0; i < streams.size(); ++i)
      all.streams.push_back(i);
    rings.groups = {all};
  }

  /// The slot of what a deferred dot reads is left when that is done, and no
  /// other is read by it.
  void keepDeferred() {
    if (deferred && llvm::none_of(rings.groups, [&](const auto &group) {
          return group.dot == deferred->last;
        }))
      deferred.reset();
  }

  /// The dot that alone reads a stream, and is waited for by itself.
  static Operation *onlyReaderOf(const Stream &stream) {
    Value memory = simt::ToSharedOp(stream.op).getMemory();
    if (!memory.hasOneUse())
      return nullptr;
    auto dot = dyn_cast<simt::WarpgroupDotOp>(*memory.user_begin());
    return dot && onlyWaitOf(dot) ? dot : nullptr;
  }

  void createRings() {
    b.setInsertionPointToStart(&function.getBody().front());
    for (const Stream &stream : streams)
      rings.memories.push_back(simt::AllocOp::create(
          b, loc(), simt::ToSharedOp(stream.op).getMemory().getType(),
          rings.stages, IntegerAttr(), true));
    for (BoxRings::Group &group : rings.groups) {
      llvm::SmallSet<unsigned, 4> parts;
      for (unsigned i : group.streams)
        parts.insert(i % numParts());
      group.full = createBarriers(rings.stages, parts.size());
      if (refills())
        group.empty = createBarriers(rings.stages, warps);
    }
    for (simt::ToSharedOp op : held) {
      BoxRings::Held &own = rings.held.emplace_back();
      own.memory = simt::AllocOp::create(b, loc(), op.getMemory().getType(), 1,
                                         IntegerAttr(), true);
      own.full = createBarriers(1, 1);
      if (walk)
        own.empty = createBarriers(1, warps);
    }
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
      places.push_back(place(mapping, i));
    }
    return places;
  }
  SmallVector<Value> place(const IRMapping &mapping, unsigned i) {
    SmallVector<Value> symbols;
    for (Value symbol : tile::LoadOp(boxes[i].load).getSymbols())
      symbols.push_back(mapping.lookupOrDefault(symbol));
    return placeBoxes(b, boxes[i], symbols);
  }

  /// What a tile holds; `parity`: of the phase in which the one before is read,
  /// if there is one.
  void copyHeld(const IRMapping &mapping, const Chosen &part, Value parity) {
    for (unsigned i : part) {
      if (i < streams.size())
        continue;
      const BoxRings::Held &own = rings.held[i - streams.size()];
      SmallVector<Value> at = place(mapping, i);
      Value slot = constant(0), barrier = slotOf(own.full, slot);
      if (parity)
        simt::WaitBarrierOp::create(b, loc(), slotOf(own.empty, slot), parity);
      simt::ExpectBytesOp::create(b, loc(), barrier, bytesOf(i));
      createBoxes(b, boxes[i], at, slotOf(own.memory, slot), barrier,
                  isLast[i]);
    }
  }

  Chosen ofGroup(const BoxRings::Group &group, const Chosen &chosen) const {
    Chosen both;
    for (unsigned i : chosen)
      if (llvm::is_contained(group.streams, i))
        both.push_back(i);
    return both;
  }

  /// The iterations from `first` on to before `end`, slot after slot, from
  /// `start` to where the next ones go; `bytes`: what each group's barrier has
  /// to wait for; null: it knows.
  Place copyAll(const IRMapping &mapping, Value first, Value end,
                const Chosen &chosen, ArrayRef<Value> bytes, Place start,
                bool isRefill) {
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
    for (auto [group, sum] : llvm::zip(rings.groups, bytes)) {
      Chosen own = ofGroup(group, chosen);
      if (own.empty())
        continue;
      if (isRefill)
        simt::WaitBarrierOp::create(b, loc(), slotOf(group.empty, at.slot),
                                    at.parity);
      Value barrier = slotOf(group.full, at.slot);
      if (sum)
        simt::ExpectBytesOp::create(b, loc(), barrier, sum);
      for (unsigned i : own)
        createBoxes(b, boxes[i], places[llvm::find(chosen, i) - chosen.begin()],
                    slotOf(rings.memories[i], at.slot), barrier, isLast[i]);
    }
    Place after = rings.next(b, loc(), at);
    scf::YieldOp::create(b, loc(), ValueRange{after.slot, after.parity});
    return {fill.getResult(0), fill.getResult(1)};
  }

  Value bytesOf(unsigned i) {
    Value bytes = constant(boxes[i].allBytes());
    if (isLast[i])
      bytes = arith::SelectOp::create(b, loc(), isLast[i],
                                      constant(boxes[i].restBytes()), bytes);
    return bytes;
  }

  /// What the copies of one iteration bring, of each group.
  SmallVector<Value> bytesOf(const Chosen &part) {
    SmallVector<Value> sums;
    for (const BoxRings::Group &group : rings.groups) {
      Value &sum = sums.emplace_back();
      for (unsigned i : ofGroup(group, part)) {
        Value bytes = bytesOf(i);
        sum = sum ? arith::AddIOp::create(b, loc(), sum, bytes) : bytes;
      }
    }
    return sums;
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
          b, loc(), mapping.lookupOrDefault(loop.getStep()),
          constant(rings.stages));
      ahead = arith::AddIOp::create(b, loc(), first, steps);
      ahead = arith::MinSIOp::create(b, loc(), ahead, end);
    }
    Chosen weights, others, streaming;
    for (unsigned i : part) {
      isLast[i] = createIsLast(b, boxes[i], mapping);
      if (i >= streams.size())
        continue;
      streaming.push_back(i);
      (boxes[i].load.getIndependent() ? weights : others).push_back(i);
    }
    SmallVector<Value> bytes = bytesOf(part), untold = bytes;
    Place start = BoxRings::begin(b, loc());
    if (!weights.empty())
      copyAll(mapping, first, ahead, weights, bytes, start, false);
    for (auto [group, sum] : llvm::zip(rings.groups, untold))
      if (!ofGroup(group, weights).empty())
        sum = Value();
    bool holds = streaming.size() < part.size();
    if (waits && (holds || !others.empty())) {
      simt::WaitDependenciesOp::create(b, loc());
      if (startsNextAtOnce(function))
        simt::LaunchDependentsOp::create(b, loc());
    }
    copyHeld(mapping, part, Value());
    if (!others.empty())
      copyAll(mapping, first, ahead, others, untold, start, false);
    if (walk)
      return copyWalk(mapping, ahead, end, part, streaming, bytes);
    if (refills() && !streaming.empty())
      copyAll(mapping, ahead, end, streaming, bytes, start, true);
  }

  /// What is left of the first tile, then all others. A slot that nobody has
  /// filled yet counts as one whose phase of parity 1 is over.
  void copyWalk(const IRMapping &ofFirst, Value ahead, Value end,
                const Chosen &part, const Chosen &streaming,
                ArrayRef<Value> bytes) {
    bool isFull = *trips >= rings.stages;
    Place at{constant(isFull ? 0 : *trips), constant(isFull ? 0 : 1)};
    if (!streaming.empty())
      at = copyAll(ofFirst, ahead, end, streaming, bytes, at, true);
    Value each = constant(walk->instances),
          first = ofFirst.lookup(walk->id.getResult()),
          next = arith::AddIOp::create(b, loc(), first, each);
    auto others =
        scf::ForOp::create(b, loc(), next, constant(walk->tiles), each,
                           carriedBy(at, held.empty() ? Value() : constant(0)));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(others.getBody());
    IRMapping mapping = clonePlaces(others.getInductionVar());
    for (unsigned i : part)
      isLast[i] = createIsLast(b, boxes[i], mapping);
    at = {others.getRegionIterArg(0), others.getRegionIterArg(1)};
    copyHeld(mapping, part, heldParity(others));
    if (!streaming.empty())
      at = copyAll(mapping, mapping.lookupOrDefault(loop.getLowerBound()),
                   mapping.lookupOrDefault(loop.getUpperBound()), streaming,
                   bytesOf(streaming), at, true);
    scf::YieldOp::create(b, loc(),
                         carriedBy(at, otherParity(heldParity(others))));
  }

  void createCopyWarps() {
    auto op =
        simt::CopyWarpOp::create(b, loc(), copyWarps.warps, copyWarps.given,
                                 /*partsCount=*/numParts());
    isLast.resize(boxes.size());
    OpBuilder::InsertionGuard guard(b);
    for (unsigned part = 0; part < numParts(); ++part) {
      b.setInsertionPointToStart(&op.getParts()[part].emplaceBlock());
      Chosen chosen;
      for (unsigned i = part; i < boxes.size(); i += numParts())
        chosen.push_back(i);
      copyPart(chosen);
    }
  }

  //===--- The loop -------------------------------------------------------===//

  void createLoop() {
    Place start =
        walk ? Place{tiles.getRegionIterArg(0), tiles.getRegionIterArg(1)}
             : BoxRings::begin(b, loc());
    Value parity = walk ? heldParity(tiles) : constant(0);
    for (auto [op, own] : llvm::zip(held, rings.held)) {
      Value slot = constant(0);
      simt::WaitBarrierOp::create(b, loc(), slotOf(own.full, slot), parity);
      op.getMemory().replaceAllUsesWith(slotOf(own.memory, slot));
    }
    BoxLoop fresh = createBoxLoop(loop, streams, rings, dots, deferred, start);
    for (auto [i, op] : llvm::enumerate(held)) {
      op.erase();
      boxes[streams.size() + i].load.erase();
    }
    if (walk)
      leaveLoop(fresh, parity);
  }

  /// The next tile is read from where this one ends, whose last slot is empty.
  void leaveLoop(BoxLoop &fresh, Value parity) {
    b.setInsertionPointAfter(fresh.almostDone);
    for (BoxRings::Held &own : rings.held)
      simt::ArriveOp::create(b, loc(), slotOf(own.empty, constant(0)), Value());
    b.setInsertionPointAfter(fresh.done);
    if (!dots.empty())
      simt::ArriveOp::create(
          b, loc(), slotOf(rings.groups[0].empty, fresh.last), Value());
    tiles.getBody()->getTerminator()->setOperands(
        carriedBy(fresh.end, otherParity(parity)));
  }

  scf::ForOp loop; ///< Gone when it is replaced.
  Location location;
  ArrayRef<Stream> streams;
  SmallVector<simt::ToSharedOp> held;
  SmallVector<BoxCopy> boxes;
  /// What copies need of the function's body, in order.
  llvm::SetVector<Operation *> places;
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
  BoxRings rings;
  std::optional<DeferredDot> deferred;
  /// Of each box whether its tile is a last one, in the part that copies it.
  SmallVector<Value> isLast;
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
