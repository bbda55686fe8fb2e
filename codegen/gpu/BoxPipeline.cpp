#include "codegen/gpu/BoxPipeline.h"
#include "codegen/gpu/Boxes.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/Loops.h"
#include "codegen/gpu/PersistTiles.h"
#include "codegen/layout/Layouts.h"
#include "codegen/target/StepSums.h"
#include "codegen/tile/analysis/Values.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// Warps that copy, each its share of the streams, and the registers that they
/// leave to the others.
struct CopyWarps {
  int64_t warps = 1, given = 0;
};

/// What instances that stay walk along: a tile's number, up to so many.
struct Walk {
  tile::ProgramIdOp id;
  int64_t tiles, instances;
};

class BoxPipeline {
public:
  BoxPipeline(scf::ForOp loop, ArrayRef<Stream> streams,
              SmallVector<BoxCopy> boxes, llvm::SetVector<Operation *> places,
              int64_t stages, std::optional<Walk> walk, unsigned warps,
              CopyWarps copyWarps, bool overlaps)
      : loop(loop), streams(streams), boxes(std::move(boxes)),
        places(std::move(places)), stages(stages), walk(walk), warps(warps),
        copyWarps(copyWarps), overlaps(overlaps), trips(tripCount(loop)),
        function(loop->getParentOfType<func::FuncOp>()), b(loop->getContext()) {
  }

  void run() {
    findDots();
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
    if (overlaps && !others.empty())
      simt::WaitDependenciesOp::create(b, loc());
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
  bool overlaps;
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

/// Whether the loop carries what a dot leaves.
bool isCarried(scf::ForOp loop, simt::WarpgroupDotOp dot) {
  return llvm::any_of(
      loop.getBody()->getTerminator()->getOperands(), [&](Value value) {
        auto wait = value.getDefiningOp<simt::WaitDotsOp>();
        return value == dot.getResult() ||
               (wait && llvm::is_contained(wait.getValues(), dot.getResult()));
      });
}

/// Registers of a thread that the loop needs at least: what it carries, and
/// what its dots leave for other operators, as it is and rounded for the next
/// dot.
int64_t registersOf(scf::ForOp loop) {
  int64_t words = 0;
  for (Value result : loop.getResults())
    if (tile::isTile(result))
      words += wordsOf(result);
  for (auto dot : loop.getBody()->getOps<simt::WarpgroupDotOp>())
    if (!isCarried(loop, dot))
      words += wordsOf(dot) * 3 / 2;
  return words;
}

/// One warp where it leaves enough registers for the loop, what is around it
/// and what is loaded ahead of it; more, where they cost no registers, up to
/// one of each of the `streams`; nothing where none does.
std::optional<CopyWarps> copyWarpsFor(scf::ForOp loop, int64_t streams,
                                      const PipelineOptions &options) {
  constexpr int64_t others = 70;
  auto function = loop->getParentOfType<func::FuncOp>();
  auto attribute = function->getAttrOfType<IntegerAttr>(tile::kResidentsAttr);
  int64_t residents = attribute ? attribute.getInt() : 1,
          needed = registersOf(loop),
          left = registersOfWarps((options.warps + 1) * residents),
          given = GivenRegisters::of(options.warps, residents);
  // Of several instances each begins with too few for ptxas.
  if (residents == 1 && needed + others > left && needed <= given)
    return CopyWarps{GivenRegisters::copyWarps, given};
  if (needed > left)
    return std::nullopt;
  int64_t warps = streams;
  while (registersOfWarps((options.warps + warps) * residents) < left)
    --warps;
  return CopyWarps{warps, 0};
}

/// Whether a loop may have so many iterations that what it takes to begin is
/// worth it, where not all it does is to add up products.
bool isLong(scf::ForOp loop) {
  constexpr int64_t least = 3;
  for (auto dot : loop.getBody()->getOps<simt::WarpgroupDotOp>())
    if (!waitOf(loop, dot)) {
      graph::Interval low = tile::rangeOf(loop.getLowerBound()),
                      high = tile::rangeOf(loop.getUpperBound());
      std::optional<int64_t> step = getConstantIntValue(loop.getStep());
      return !step || !low.isBounded() || !high.isBounded() ||
             high.high - low.low > (least - 1) * *step;
    }
  return true;
}

/// What a warp that runs nothing else needs of the loop's block to tell where
/// all copies are, in order; nothing where that is more than arithmetic.
std::optional<llvm::SetVector<Operation *>>
placesOf(scf::ForOp loop, ArrayRef<Stream> streams, ArrayRef<BoxCopy> boxes) {
  Block &body = *loop->getBlock();
  llvm::SetVector<Operation *> places;
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    if (!collectArithmetic(bound, body, places))
      return std::nullopt;
  for (auto [stream, box] : llvm::zip(streams, boxes))
    for (Operation *op : stream.slice) {
      if (op != box.load && (!isMemoryEffectFree(op) || op->getNumRegions()))
        return std::nullopt;
      for (Value operand : op->getOperands())
        if (!collectArithmetic(operand, body, places))
          return std::nullopt;
    }
  return places;
}

/// With fewer slots the loop over terms waits longer than a tile's end does.
constexpr int64_t kLeastWalkStages = 3;

/// Whether instances may stay: the kernel is of this loop and what has no part
/// in its rings, over a known number of tiles, none of which needs another
/// instance, in several rounds.
std::optional<Walk> walkOf(scf::ForOp loop, const PipelineOptions &options) {
  auto function = loop->getParentOfType<func::FuncOp>();
  auto grid = function->getAttrOfType<AffineMapAttr>(tile::kGridAttr);
  std::optional<int64_t> trips = tripCount(loop);
  if (!grid || !grid.getValue().isSingleConstant() || !trips || *trips < 1 ||
      function->hasAttr(tile::kClusterAttr) ||
      function->hasAttr(tile::kScratchAttr))
    return std::nullopt;
  Walk walk{nullptr, grid.getValue().getSingleConstantResult(),
            options.multiprocessors};
  if (walk.instances == 0 || walk.tiles <= walk.instances)
    return std::nullopt;
  for (Operation &op : function.getBody().front()) {
    if (auto id = dyn_cast<tile::ProgramIdOp>(op)) {
      if (walk.id)
        return std::nullopt;
      walk.id = id;
    } else if (&op != loop &&
               op.walk([](Operation *inner) {
                   return isa<tile::ProgramIdOp, tile::SplitSumOp,
                              simt::ExchangeOp, simt::ToSharedOp>(inner)
                              ? WalkResult::interrupt()
                              : WalkResult::advance();
                 }).wasInterrupted()) {
      return std::nullopt;
    }
  }
  return walk.id ? std::optional(walk) : std::nullopt;
}

/// Of shared memory that is taken at a time behind the loop, at most.
int64_t bytesBehind(scf::ForOp loop) {
  Block &block = *loop->getBlock();
  auto isUsedFrom = [&](simt::AllocOp alloc, Operation *start) {
    return llvm::any_of(alloc->getUsers(), [&](Operation *user) {
      return !block.findAncestorOpInBlock(*user)->isBeforeInBlock(start);
    });
  };
  int64_t most = 0;
  SmallVector<simt::AllocOp> allocs;
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
    op->walk([&](simt::AllocOp alloc) {
      allocs.push_back(alloc);
      int64_t bytes = 0;
      for (simt::AllocOp other : allocs)
        bytes += isUsedFrom(other, op) ? other.getBytes() : 0;
      most = std::max(most, bytes);
    });
  return most;
}

} // namespace

bool charonia::gpu::pipelineBoxes(scf::ForOp loop, ArrayRef<Stream> streams,
                                  const PipelineOptions &options,
                                  int64_t otherBytes) {
  constexpr int64_t barrierBytes = 16;
  if (streams.empty() || !isa<func::FuncOp>(loop->getParentOp()) ||
      loop.getBody()->getOps<simt::WarpgroupDotOp>().empty() ||
      !loop.getBody()->getOps<simt::DotOp>().empty() || !isLong(loop))
    return false;
  std::optional<CopyWarps> copyWarps =
      copyWarpsFor(loop, streams.size(), options);
  if (!copyWarps)
    return false;
  SmallVector<BoxCopy> boxes;
  int64_t bytes = barrierBytes;
  // Rings begin with the kernel, so what is in front of the loop lives beside
  // them; what is behind it as well, where the next tile's copies are under
  // way.
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode())
    op->walk([&](simt::AllocOp alloc) { otherBytes += alloc.getBytes(); });
  for (const Stream &stream : streams) {
    std::optional<BoxCopy> box = asBoxCopy(stream.op);
    if (!box)
      return false;
    bytes += simt::ToSharedOp(stream.op).getMemory().getType().getBytes();
    boxes.push_back(std::move(*box));
  }
  for (auto op : loop.getBody()->getOps<simt::ToSharedOp>())
    if (llvm::none_of(streams, [&](const Stream &s) { return s.op == op; }))
      return false;
  auto stagesBeside = [&](int64_t others) {
    return std::min<int64_t>(options.stages,
                             (options.sharedBytes - others) / bytes);
  };
  int64_t stages = stagesBeside(otherBytes);
  std::optional<Walk> walk = walkOf(loop, options);
  if (walk) {
    int64_t left = stagesBeside(otherBytes + bytesBehind(loop));
    if (left < std::min(stages, kLeastWalkStages) ||
        2 * (otherBytes + stages * bytes) <= options.sharedBytes)
      walk = std::nullopt;
    else
      stages = left;
  }
  std::optional<int64_t> trips = tripCount(loop);
  if (trips && !walk)
    stages = std::min(stages, *trips);
  auto places = placesOf(loop, streams, boxes);
  if (stages < 1 || !places)
    return false;
  if (stages < 2 && trips != 1)
    return false;
  BoxPipeline(loop, streams, std::move(boxes), std::move(*places), stages, walk,
              options.warps, *copyWarps, options.overlaps)
      .run();
  return true;
}
