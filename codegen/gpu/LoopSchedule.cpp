// What a pipelined loop does when: which fragments are loaded early, and which
// dots stay under way.
#include "codegen/gpu/LoopSchedule.h"
#include "codegen/gpu/PersistTiles.h"
#include "codegen/target/StepSums.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

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

LoopSchedule charonia::gpu::planLoop(scf::ForOp loop, ArrayRef<Stream> streams,
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
