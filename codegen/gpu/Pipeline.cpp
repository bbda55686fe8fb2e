#include "codegen/gpu/Pipeline.h"
#include "codegen/gpu/BoxPipeline.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/Loops.h"
#include "codegen/gpu/PersistTiles.h"
#include "codegen/gpu/StageLoads.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// Shared memory that a function needs beside the rings of one loop, at most,
/// and what is taken from its beginning to its end.
int64_t otherBytes(func::FuncOp function, ArrayRef<Stream> streams) {
  int64_t bytes = 0;
  function.walk([&](Operation *op) {
    if (auto shared = dyn_cast<simt::ToSharedOp>(op))
      if (llvm::none_of(streams,
                        [&](const Stream &s) { return s.op == shared; }))
        bytes += shared.getMemory().getType().getBytes();
    if (auto exchange = dyn_cast<simt::ExchangeOp>(op))
      bytes += exchange.getMemory().getDefiningOp<simt::AllocOp>().getBytes();
  });
  return bytes;
}

/// The streams of a loop. What some pass through registers comes from copies of
/// its own, where these are under way for some iterations.
SmallVector<Stream> stagedStreams(scf::ForOp loop,
                                  const PipelineOptions &options) {
  constexpr int64_t leastStages = 3;
  SmallVector<Stream> streams = findStreams(loop);
  std::optional<int64_t> trips = tripCount(loop);
  if (options.stages < leastStages || (trips && *trips < leastStages) ||
      loop->getParentOp()->hasAttr(kTilesAttr))
    return streams;
  int64_t left = options.sharedBytes -
                 otherBytes(loop->getParentOfType<func::FuncOp>(), streams);
  for (Stream &stream : streams)
    left -= (stream.copy ? leastStages : 2) *
            stream.op.getMemory().getType().getBytes();
  return stageLoads(streams, options.warps, left / leastStages)
             ? findStreams(loop)
             : streams;
}

bool hasCopyWarp(func::FuncOp function) {
  return !function.getOps<simt::CopyWarpOp>().empty();
}

int64_t bytesOf(Stream &stream) {
  return stream.op.getMemory().getType().getBytes();
}

/// Leaves the streams of which two iterations' operands have `room`. The
/// others, large ones first, are written where they are used: an iteration
/// waits for them, which is slow, but takes one slot of each.
void leaveWhatFits(SmallVector<Stream> &streams, int64_t room) {
  auto needed = [&] {
    int64_t bytes = 0;
    for (Stream &stream : streams)
      bytes += 2 * bytesOf(stream);
    return bytes;
  };
  while (!streams.empty() && needed() > room) {
    // What reads copies has to find them in a ring.
    if (llvm::any_of(streams, [](const Stream &stream) {
          return llvm::any_of(stream.slice, llvm::IsaPred<simt::LoadSharedOp>);
        }))
      return streams.clear();
    Stream *largest = llvm::max_element(
        streams, [](Stream &a, Stream &b) { return bytesOf(a) < bytesOf(b); });
    room -= bytesOf(*largest);
    streams.erase(largest);
  }
}

/// As many stages as are asked for, useful, and fit.
void pipeline(scf::ForOp loop, const PipelineOptions &options) {
  if (options.stages < 2)
    return;
  auto function = loop->getParentOfType<func::FuncOp>();
  if (options.boxes && !hasCopyWarp(function)) {
    SmallVector<Stream> streams = findStreams(loop);
    if (pipelineBoxes(loop, streams, options, otherBytes(function, streams)))
      return;
  }
  SmallVector<Stream> streams = stagedStreams(loop, options);
  leaveWhatFits(streams, options.sharedBytes - otherBytes(function, streams));
  if (streams.empty())
    return;
  int64_t bytes = 0, fixed = 0; // of one slot of all copies; of the others
  for (Stream &stream : streams)
    (stream.copy ? bytes : fixed) += bytesOf(stream);
  int64_t available =
      options.sharedBytes - otherBytes(function, streams) - 2 * fixed;
  int64_t stages = options.stages;
  std::optional<int64_t> trips = tripCount(loop);
  if (trips)
    stages = std::min(stages, *trips + 1);
  if (bytes)
    stages = std::min(stages, available / bytes);
  stages = std::max<int64_t>(stages, 2);
  // Copies that are all issued before the first is waited for are hidden by
  // another instance of the multiprocessor.
  bool ofTiles = loop->getParentOp()->hasAttr(kTilesAttr);
  bool whole = trips && *trips > 1 && *trips <= stages && fixed == 0 &&
               (ofTiles || 2 * *trips * bytes <= options.sharedBytes);
  scf::ForOp fresh = pipelineLoop(
      loop, std::move(streams),
      {unsigned(whole ? *trips : stages), whole, options.registers, trips});
  // Under the copies that are issued first.
  if (!ofTiles)
    reduceEarly(fresh);
}

/// Waits for the last group of copies before `op`, right before the memory's
/// first user: what was issued in between, such as the first iterations of a
/// pipeline, stays under way.
simt::WaitAsyncOp waitBeforeUse(Operation *commit, Value memory) {
  Block *block = commit->getBlock();
  Operation *first = nullptr;
  for (Operation *user : memory.getUsers())
    if (Operation *ancestor = block->findAncestorOpInBlock(*user))
      if (commit->isBeforeInBlock(ancestor) &&
          (!first || ancestor->isBeforeInBlock(first)))
        first = ancestor;
  if (!first)
    first = commit->getNextNode();
  int64_t pending = 0;
  for (Operation *op = commit->getNextNode(); op != first;
       op = op->getNextNode()) {
    if (isa<simt::CommitAsyncOp>(op))
      ++pending;
    else if (op->getNumRegions() && op->walk([](simt::CommitAsyncOp) {
                                        return WalkResult::interrupt();
                                      }).wasInterrupted())
      pending = 0; // a pipeline has waited for everything before its end
  }
  OpBuilder b(first);
  return simt::WaitAsyncOp::create(b, commit->getLoc(), pending);
}

/// Outside of pipelines: written where the value is known.
void expand(simt::ToSharedOp op) {
  OpBuilder b(op);
  Value memory = simt::AllocOp::create(b, op.getLoc(), op.getMemory().getType(),
                                       1, IntegerAttr(), false);
  std::optional<AsyncCopy> copy = asAsyncCopy(op);
  op.getMemory().replaceAllUsesWith(memory);
  if (copy) {
    createCopy(b, copy->load, *copy, memory);
    Operation *commit = simt::CommitAsyncOp::create(b, op.getLoc());
    b.setInsertionPointAfter(waitBeforeUse(commit, memory));
  } else {
    simt::StoreSharedOp::create(b, op.getLoc(), op.getInput(), memory);
  }
  // By those who wrote, once, not in the loops that read.
  if (llvm::any_of(memory.getUsers(), llvm::IsaPred<simt::WarpgroupDotOp>))
    simt::FenceSharedOp::create(b, op.getLoc());
  op.erase();
  if (copy && isOpTriviallyDead(copy->load))
    copy->load.erase();
}

/// Registers of a thread that a loop may keep beside what it carries.
constexpr unsigned kHoistedRegisters = 32;

/// Fragments of a tile that a loop does not change are loaded once, if they are
/// few.
void hoistFragments(scf::ForOp loop) {
  DenseMap<Value, SmallVector<simt::LoadSharedOp>> fragments;
  for (auto load : loop.getBody()->getOps<simt::LoadSharedOp>())
    if (auto alloc = load.getMemory().getDefiningOp<simt::AllocOp>())
      if (!alloc.getManaged() && !loop->isAncestor(alloc))
        fragments[alloc].push_back(load);
  unsigned budget = kHoistedRegisters;
  for (auto load :
       llvm::to_vector(loop.getBody()->getOps<simt::LoadSharedOp>())) {
    auto it = fragments.find(load.getMemory());
    if (it == fragments.end())
      continue;
    bool written =
        llvm::any_of(load.getMemory().getUsers(), [&](Operation *user) {
          return loop->isAncestor(user) && !isa<simt::LoadSharedOp>(user);
        });
    unsigned registers = 0;
    for (simt::LoadSharedOp fragment : it->second)
      registers += simt::layoutOf(fragment).inSize(Dim::Register) *
                   simt::elementBits(fragment.getType().getElementType()) / 32;
    if (!written && registers <= budget) {
      budget -= registers;
      for (simt::LoadSharedOp fragment : it->second)
        fragment->moveBefore(loop);
    }
    fragments.erase(it);
  }
}

} // namespace

void charonia::gpu::pipelineSharedOperands(func::FuncOp function,
                                           const PipelineOptions &options) {
  SmallVector<scf::ForOp> loops;
  function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    pipeline(loop, options);
  SmallVector<simt::ToSharedOp> rest;
  function.walk([&](simt::ToSharedOp op) { rest.push_back(op); });
  for (simt::ToSharedOp op : rest)
    expand(op);
  function.walk([](scf::ForOp loop) { hoistFragments(loop); });
}
