#include "codegen/gpu/BoxPlan.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/Loops.h"
#include "codegen/target/StepSums.h"
#include "codegen/tile/analysis/Values.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// Whether the loop carries what a dot leaves.
bool isCarried(scf::ForOp loop, simt::WarpgroupDotOp dot) {
  return llvm::any_of(
      loop.getBody()->getTerminator()->getOperands(), [&](Value value) {
        auto wait = value.getDefiningOp<simt::WaitDotsOp>();
        return value == dot.getResult() ||
               (wait && llvm::is_contained(wait.getValues(), dot.getResult()));
      });
}

/// Registers of a thread for what an iteration loads beside its streams.
int64_t loadedRegisters(scf::ForOp loop, ArrayRef<Stream> streams) {
  int64_t words = 0;
  loop.getBody()->walk([&](tile::LoadOp load) {
    if (llvm::none_of(streams, [&](const Stream &stream) {
          return stream.slice.contains(load);
        }))
      words += wordsOf(load);
  });
  return words;
}

/// Registers of a thread that the loop's tiles take: what it carries, what its
/// dots leave for other operators, in whose place it is rounded for the next
/// dot, and what is loaded for these.
int64_t registersOf(scf::ForOp loop, ArrayRef<Stream> streams) {
  int64_t words = loadedRegisters(loop, streams);
  for (Value result : loop.getResults())
    if (tile::isTile(result))
      words += wordsOf(result);
  for (auto dot : loop.getBody()->getOps<simt::WarpgroupDotOp>())
    if (!isCarried(loop, dot))
      words += wordsOf(dot);
  return words;
}

/// Instances of a multiprocessor.
int64_t residentsOf(scf::ForOp loop) {
  auto attribute =
      loop->getParentOfType<func::FuncOp>()->getAttrOfType<IntegerAttr>(
          tile::kResidentsAttr);
  return attribute ? attribute.getInt() : 1;
}

/// One warp where it leaves enough registers for the loop, what is around it
/// and what is loaded ahead of it; more, where they cost no registers, up to
/// one of each of the `boxes`; nothing where none does.
std::optional<CopyWarps> copyWarpsFor(scf::ForOp loop, ArrayRef<Stream> streams,
                                      int64_t boxes,
                                      const PipelineOptions &options) {
  // Of addresses and scalars alone; of all that ptxas likes to have.
  constexpr int64_t least = 24, others = 70;
  int64_t residents = residentsOf(loop), needed = registersOf(loop, streams),
          left = registersOfWarps((options.warps + 1) * residents),
          given = GivenRegisters::of(options.warps, residents);
  // Of several instances each begins with too few for ptxas.
  if (residents == 1 && needed + others > left && needed + least <= given)
    return CopyWarps{GivenRegisters::copyWarps, given};
  if (needed + least > left)
    return std::nullopt;
  int64_t warps = boxes;
  while (registersOfWarps((options.warps + warps) * residents) < left)
    --warps;
  return CopyWarps{warps, 0};
}

/// The loop's last dot, if it runs under the next iteration, for which a thread
/// needs registers.
std::optional<DeferredDot> deferredDotOf(scf::ForOp loop,
                                         ArrayRef<Stream> streams,
                                         const CopyWarps &copyWarps,
                                         const PipelineOptions &options) {
  constexpr int64_t others = 48;
  int64_t registers = copyWarps.given
                          ? copyWarps.given
                          : registersOfWarps((options.warps + copyWarps.warps) *
                                             residentsOf(loop));
  std::optional<DeferredDot> found = findDeferredDot(loop);
  if (!found ||
      registersOf(*found) + loadedRegisters(loop, streams) + others > registers)
    return std::nullopt;
  return found;
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
  for (const BoxCopy &box : boxes.drop_front(streams.size()))
    for (Value symbol : tile::LoadOp(box.load).getSymbols())
      if (!collectArithmetic(symbol, body, places))
        return std::nullopt;
  return places;
}

/// What the copy engine brings in front of the loop: operands of its dots, and
/// of nothing else, whose places are arithmetic.
void findHeld(BoxPlan &plan, scf::ForOp loop) {
  llvm::SetVector<Operation *> places;
  auto isPlace = [&](Value symbol) {
    return collectArithmetic(symbol, *loop->getBlock(), places);
  };
  auto isOurs = [&](Operation *user) {
    return isa<simt::WarpgroupDotOp>(user) && user->getParentOp() == loop;
  };
  for (auto op : loop->getBlock()->getOps<simt::ToSharedOp>())
    if (op->isBeforeInBlock(loop) && op->getOperand(0).hasOneUse() &&
        !op.getMemory().use_empty() &&
        llvm::all_of(op.getMemory().getUsers(), isOurs))
      if (std::optional<BoxCopy> box = asBoxCopy(op);
          box && llvm::all_of(box->load.getSymbols(), isPlace)) {
        plan.held.push_back(op);
        plan.boxes.push_back(std::move(*box));
      }
}

/// Whether instances may stay: the kernel is of this loop and what has no part
/// in its rings, over a known number of tiles, none of which needs another
/// instance, in several rounds.
std::optional<Walk> walkOf(scf::ForOp loop, ArrayRef<simt::ToSharedOp> held,
                           const PipelineOptions &options) {
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
               op.walk([&](Operation *inner) {
                   auto shared = dyn_cast<simt::ToSharedOp>(inner);
                   return (shared && !llvm::is_contained(held, shared)) ||
                                  isa<tile::ProgramIdOp, tile::SplitSumOp,
                                      simt::ExchangeOp>(inner)
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

/// How many slots, and whether instances stay.
void planSlots(BoxPlan &plan, scf::ForOp loop, const PipelineOptions &options,
               int64_t slotBytes, int64_t otherBytes) {
  auto stagesBeside = [&](int64_t others) {
    return std::min<int64_t>(options.stages,
                             (options.sharedBytes - others) / slotBytes);
  };
  // Rings begin with the kernel, so what is in front of the loop lives beside
  // them; what is behind it as well, where the next tile's copies are under
  // way.
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode())
    op->walk([&](simt::AllocOp alloc) { otherBytes += alloc.getBytes(); });
  plan.stages = stagesBeside(otherBytes);
  plan.walk = walkOf(loop, plan.held, options);
  // With a slot less the loop over terms waits for longer than a tile's end
  // takes: 6304 x 768 x 3072 lost a fifth. Two instances hide each other's.
  if (stagesBeside(otherBytes + bytesBehind(loop)) < plan.stages ||
      2 * (otherBytes + plan.stages * slotBytes) <= options.sharedBytes)
    plan.walk = std::nullopt;
  std::optional<int64_t> trips = tripCount(loop);
  if (trips && !plan.walk)
    plan.stages = std::min(plan.stages, *trips);
}

} // namespace

std::optional<BoxPlan> charonia::gpu::planBoxes(scf::ForOp loop,
                                                ArrayRef<Stream> streams,
                                                const PipelineOptions &options,
                                                int64_t otherBytes) {
  // Each may have two rings of barriers, that take what allocs are aligned to.
  constexpr int64_t barrierBytes = 2 * 128;
  if (streams.empty() || !isa<func::FuncOp>(loop->getParentOp()) ||
      loop.getBody()->getOps<simt::WarpgroupDotOp>().empty() ||
      !loop.getBody()->getOps<simt::DotOp>().empty() || !isLong(loop))
    return std::nullopt;
  BoxPlan plan;
  int64_t slotBytes = 0;
  for (const Stream &stream : streams) {
    std::optional<BoxCopy> box = asBoxCopy(stream.op);
    if (!box)
      return std::nullopt;
    slotBytes += simt::ToSharedOp(stream.op).getMemory().getType().getBytes();
    plan.boxes.push_back(std::move(*box));
  }
  for (auto op : loop.getBody()->getOps<simt::ToSharedOp>())
    if (llvm::none_of(streams, [&](const Stream &s) { return s.op == op; }))
      return std::nullopt;
  findHeld(plan, loop);
  std::optional<CopyWarps> copyWarps =
      copyWarpsFor(loop, streams, plan.boxes.size(), options);
  if (!copyWarps)
    return std::nullopt;
  plan.copyWarps = *copyWarps;
  plan.deferred = deferredDotOf(loop, streams, *copyWarps, options);
  auto places = placesOf(loop, streams, plan.boxes);
  if (!places)
    return std::nullopt;
  plan.places = std::move(*places);
  planSlots(plan, loop, options, slotBytes,
            otherBytes + barrierBytes * int64_t(plan.boxes.size()));
  // One slot does for one iteration alone.
  if (plan.stages < 1 || (plan.stages < 2 && tripCount(loop) != 1))
    return std::nullopt;
  return plan;
}
