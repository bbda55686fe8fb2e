// Barriers of some warps, and mbarriers.
#include "codegen/gpu/interpreter/Decoder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

void handlers::arrive(Warp &warp, const Instruction &i) {
  const uint32_t *address = warp.lanes<uint32_t>(i.a),
                 *bytes = warp.lanes<uint32_t>(i.c);
  Warp::each(warp.active(i.b), [&](unsigned lane) {
    warp.block.arrive(warp, i, lane, address[lane],
                      i.c == kNoSlot ? 0 : bytes[lane]);
  });
}

namespace {

/// `a`: number; `b`: threads.
void namedBarrier(Warp &warp, const Instruction &i) {
  Machine &machine = warp.block.machine;
  handlers::barrier(warp, i);
  if (warp.state != Warp::State::AtBarrier)
    return;
  unsigned lane = __builtin_ctz(warp.mask);
  uint32_t number = warp.lanes<uint32_t>(i.a)[lane],
           threads = warp.lanes<uint32_t>(i.b)[lane];
  if (number > 15 || threads == 0 || threads % kWarpLanes != 0 ||
      threads > machine.program.blockThreads)
    return machine.abort(FindingKind::NotModelled, warp, i, lane,
                         "a barrier of number " + llvm::Twine(number) +
                             " for " + llvm::Twine(threads) + " threads");
  warp.state = Warp::State::AtNamedBarrier;
  warp.barrierNumber = number;
  warp.barrierThreads = threads;
  warp.block.arriveAtNamed(warp, i);
}

/// `a`: mask.
void warpBarrier(Warp &warp, const Instruction &i) {
  if (!warp.mask)
    return; // All of them have left.
  Mask wanted =
      warp.lanes<uint32_t>(i.a)[__builtin_ctz(warp.mask)] & warp.alive;
  if (wanted & ~warp.mask)
    return warp.block.machine.abort(
        FindingKind::DivergentBarrier, warp, i,
        unsigned(__builtin_ctz(wanted & ~warp.mask)),
        "is elsewhere while others of its warp wait");
  warp.block.meetLanes(warp, wanted);
}

/// `a`: address; `b`: predicate, or absent; `c`: arrivals.
void startBarrier(Warp &warp, const Instruction &i) {
  Warp::each(warp.active(i.b), [&](unsigned lane) {
    warp.block.startBarrier(warp, i, lane, warp.lanes<uint32_t>(i.a)[lane],
                            warp.lanes<uint32_t>(i.c)[lane]);
  });
}

void fenceBarriers(Warp &warp, const Instruction &) {
  warp.block.fenceBarriers(warp, warp.mask);
}

/// `a`: address; `b`: parity. All lanes that are here wait together.
void waitForPhase(Warp &warp, const Instruction &i) {
  interpreter::Block &block = warp.block;
  llvm::SmallVector<std::pair<unsigned, Mbarrier *>, kWarpLanes> barriers;
  Warp::each(warp.mask, [&](unsigned lane) {
    barriers.push_back(
        {lane,
         block.findBarrier(warp, i, lane, warp.lanes<uint32_t>(i.a)[lane])});
  });
  if (block.machine.aborted)
    return;
  if (!block.isPhaseDone(warp, i))
    return warp.waitAt(i, Warp::State::AtPhase);
  for (auto [lane, barrier] : barriers)
    block.passBarrier(warp, lane, *barrier);
}

LogicalResult decodeBarrier(Decoder &d, Operation *op) {
  auto barrier = cast<NVVM::BarrierOp>(op);
  if (barrier.getReductionOp())
    return op->emitError("the interpreter knows no barriers that reduce");
  bool isWhole = !barrier.getBarrierId() && !barrier.getNumberOfThreads();
  if (isWhole) {
    d.emit(op, handlers::barrier);
    return success();
  }
  if (!barrier.getBarrierId() || !barrier.getNumberOfThreads())
    return op->emitError(
        "the interpreter knows barriers with number and threads, or neither");
  d.program.hasClocks = true;
  Instruction &i = d.emit(op, namedBarrier);
  i.a = d.slot(barrier.getBarrierId());
  i.b = d.slot(barrier.getNumberOfThreads());
  return success();
}

/// Emits an operation on the mbarrier at an address in shared memory.
FailureOr<Instruction *> emitAt(Decoder &d, Operation *op, Value address,
                                Handler handler) {
  if (cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace() != 3 ||
      op->getNumResults())
    return op->emitError("the interpreter knows mbarriers by pointers to "
                         "shared memory, and no states of them");
  constexpr unsigned bytes = 8;
  d.noteAccess(address, bytes, true);
  d.program.hasClocks = true;
  Instruction &i = d.emit(op, handler);
  i.a = d.slot(address);
  return &i;
}

LogicalResult decodeWarpBarrier(Decoder &d, Operation *op) {
  d.program.hasClocks = true;
  Instruction &i = d.emit(op, warpBarrier);
  i.a = d.slot(cast<NVVM::SyncWarpOp>(op).getMask());
  return success();
}

LogicalResult decodeInit(Decoder &d, Operation *op) {
  auto init = cast<NVVM::MBarrierInitOp>(op);
  auto i = emitAt(d, op, init.getAddr(), startBarrier);
  if (failed(i))
    return failure();
  if (Value predicate = init.getPredicate())
    (*i)->b = d.slot(predicate);
  (*i)->c = d.slot(init.getCount());
  return success();
}

LogicalResult decodeExpect(Decoder &d, Operation *op) {
  auto expect = cast<NVVM::MBarrierArriveExpectTxOp>(op);
  if (expect.getRelaxed())
    return op->emitError("the interpreter knows no relaxed arrivals");
  auto i = emitAt(d, op, expect.getAddr(), handlers::arrive);
  if (failed(i))
    return failure();
  if (Value predicate = expect.getPredicate())
    (*i)->b = d.slot(predicate);
  (*i)->c = d.slot(expect.getTxcount());
  return success();
}

LogicalResult decodeWait(Decoder &d, Operation *op) {
  auto wait = cast<NVVM::MBarrierTryWaitParityOp>(op);
  auto i = emitAt(d, op, wait.getAddr(), waitForPhase);
  if (failed(i))
    return failure();
  (*i)->b = d.slot(wait.getPhase());
  return success();
}

LogicalResult decodeFence(Decoder &d, Operation *op) {
  d.emit(op, fenceBarriers);
  return success();
}

} // namespace

void charonia::interpreter::addBarriers(OperationTable &table) {
  table["nvvm.barrier"] = decodeBarrier;
  table["nvvm.bar.warp.sync"] = decodeWarpBarrier;
  table["nvvm.mbarrier.init"] = decodeInit;
  table["nvvm.mbarrier.arrive.expect_tx"] = decodeExpect;
  table["nvvm.mbarrier.try_wait.parity"] = decodeWait;
  table["nvvm.fence.mbarrier.init"] = decodeFence;
}
