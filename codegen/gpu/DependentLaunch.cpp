#include "codegen/gpu/DependentLaunch.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

/// A read of what no kernel of the engine writes.
static bool isIndependent(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return load.getIndependent();
  auto copy = dyn_cast<simt::CopyAsyncOp>(op);
  return copy && copy.getIndependent();
}

/// Whether `op` or what is inside of it touches any other buffer: a write too,
/// since the arena's memory is used again and again. A warp that copies waits
/// by itself.
static bool isDependent(Operation *op) {
  if (isa<simt::CopyWarpOp>(op))
    return false;
  return op
      ->walk([](Operation *inner) {
        bool touches = llvm::any_of(inner->getOperandTypes(),
                                    llvm::IsaPred<tile::BufferType>);
        return touches && !isIndependent(inner) ? WalkResult::interrupt()
                                                : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Where what begins a kernel ends: slots of rings are read and filled again.
static bool endsPrologue(Operation *op) {
  return isa<scf::ForOp, scf::IfOp, simt::BarrierOp, simt::WaitAsyncOp,
             simt::LoadSharedOp, simt::FenceSharedOp, simt::WarpgroupDotOp,
             simt::ExchangeOp>(op);
}

/// Copies join an earlier group of copies thereby, so they are waited for no
/// later than before.
static void issueBefore(Operation *wait) {
  unsigned words = 0;
  auto canMove = [](Operation *op) {
    return isIndependent(op) || isMemoryEffectFree(op) ||
           isa<simt::AllocOp>(op);
  };
  SmallVector<Operation *> reads;
  for (Operation *op = wait->getNextNode(); op && !endsPrologue(op);
       op = op->getNextNode())
    if (isIndependent(op))
      reads.push_back(op);
  for (Operation *op : reads) {
    unsigned more = op->getNumResults() ? wordsOf(op->getResult(0)) : 0;
    llvm::SetVector<Operation *> slice;
    if (words + more > kMostEarlyWords ||
        !collectSlice(op, wait, canMove, slice))
      continue;
    words += more;
    for (Operation *one : slice)
      one->moveBefore(wait);
  }
}

/// Whether the grid is small, at the sizes to optimize for: the instruction
/// costs the whole chip about 0.25 ns an instance, 4 us in a normalization of
/// 16384.
static bool hasFewInstances(func::FuncOp function) {
  constexpr int64_t most = 1024;
  auto grid = function->getAttrOfType<AffineMapAttr>(tile::kGridAttr);
  if (grid && grid.getValue().isSingleConstant())
    return grid.getValue().getSingleConstantResult() <= most;
  auto usual =
      function->getAttrOfType<IntegerAttr>(tile::kUsualInstancesAttr);
  return usual && usual.getInt() <= most;
}

/// The first operator that uses what other kernels write, or else the end.
static Operation *firstDependent(Block &body) {
  for (Operation &op : body)
    if (isDependent(&op))
      return &op;
  return body.getTerminator();
}

/// Where all that threads do together begins to end: not all come behind the
/// meeting of a split sum's parts. (Inside of a loop over tiles that would be in
/// front of the loop: right, and hardly beside anything. No schedule has it.)
static Operation *firstMeeting(Block &body) {
  for (Operation &op : body)
    if (op.walk([](tile::SplitSumOp) {
            return WalkResult::interrupt();
          }).wasInterrupted())
      return &op;
  return body.getTerminator();
}

bool charonia::gpu::startsNextAtOnce(func::FuncOp function) {
  return function->hasAttr(tile::kStartsNextAttr) && hasFewInstances(function);
}

/// Waits for what is before this one where it first uses what that may write,
/// or at the end where it runs beside it. What ended before such a wave began
/// was waited for by its first kernel; a fence makes that seen here. (Behind
/// the copies of weights it would wait for these: 1 % of a model of branches.)
static void createWait(func::FuncOp function) {
  Block &body = function.getBody().front();
  Location loc = function.getLoc();
  if (!function->hasAttr(tile::kWaitsAtEndAttr)) {
    OpBuilder b(firstDependent(body));
    issueBefore(simt::WaitDependenciesOp::create(b, loc));
    return;
  }
  OpBuilder b(&body, body.begin());
  simt::FenceDeviceOp::create(b, loc);
  b.setInsertionPoint(firstMeeting(body));
  simt::WaitDependenciesOp::create(b, loc);
}

/// Where the next kernel may start.
static void createStart(func::FuncOp function) {
  if (!hasFewInstances(function))
    return;
  Block &body = function.getBody().front();
  OpBuilder b(body.getTerminator());
  if (startsNextAtOnce(function)) {
    // The warp that copies waits first, and starts the next kernel then.
    bool hasStarted = function
                          ->walk([](simt::LaunchDependentsOp) {
                            return WalkResult::interrupt();
                          })
                          .wasInterrupted();
    if (hasStarted)
      return;
    if (function->hasAttr(tile::kWaitsAtEndAttr))
      b.setInsertionPointToStart(&body);
    else
      b.setInsertionPointAfter(
          *body.getOps<simt::WaitDependenciesOp>().begin());
  }
  simt::LaunchDependentsOp::create(b, function.getLoc());
}

void charonia::gpu::overlapLaunches(func::FuncOp function) {
  createWait(function);
  createStart(function);
}
