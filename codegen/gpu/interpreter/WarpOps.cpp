// What threads know of themselves, shuffles, barriers.
#include "codegen/gpu/interpreter/Decoder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

/// `result`: where the vote of a barrier that has one goes; `a`: what a thread
/// votes, `flags`: whether there is a vote.
void handlers::barrier(Warp &warp, const Instruction &i) {
  Block &block = warp.block;
  if (warp.mask != warp.alive) {
    Mask missing = warp.alive & ~warp.mask;
    block.machine.abort(FindingKind::DivergentBarrier, warp, i,
                        unsigned(__builtin_ctz(missing)),
                        "is elsewhere while others of its warp wait");
    return;
  }
  warp.barrier = &i;
  warp.vote = i.flags && warp.active(i.a) != 0;
  warp.state = Warp::State::AtBarrier;
}

namespace {

void threadNumber(Warp &warp, const Instruction &i) {
  uint32_t *result = warp.lanes<uint32_t>(i.result);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    result[lane] = warp.thread(lane);
}
void blockNumber(Warp &warp, const Instruction &i) {
  std::fill_n(warp.lanes<uint32_t>(i.result), kWarpLanes,
              uint32_t(warp.block.number));
}
void blockCount(Warp &warp, const Instruction &i) {
  std::fill_n(warp.lanes<uint32_t>(i.result), kWarpLanes,
              uint32_t(warp.block.machine.launch.grid));
}

template <Handler handler>
LogicalResult decodeSpecial(Decoder &d, Operation *op) {
  Slot result = d.define(op->getResult(0)).front();
  d.emit(op, handler).result = result;
  return success();
}

LogicalResult decodeBarrier(Decoder &d, Operation *op) {
  if (op->getNumOperands())
    return op->emitError("the interpreter knows barriers of whole blocks");
  d.emit(op, handlers::barrier);
  return success();
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

/// The lane that a lane reads (PTX ISA, shfl.sync). `by`: distance, mask or
/// lane; `clamp`: the last lane of a segment and, from bit 8 on, the segments'
/// mask.
unsigned sourceLane(NVVM::ShflKind kind, unsigned lane, uint32_t by,
                    uint32_t clamp) {
  uint32_t segments = clamp >> 8 & 31, last = clamp & 31;
  int32_t low = lane & segments, high = low | (last & ~segments & 31);
  int32_t source = lane;
  by &= 31;
  bool inside = false;
  switch (kind) {
  case NVVM::ShflKind::up:
    source = int32_t(lane) - int32_t(by);
    inside = source >= high;
    break;
  case NVVM::ShflKind::down:
    source = lane + by;
    inside = source <= high;
    break;
  case NVVM::ShflKind::bfly:
    source = lane ^ by;
    inside = source <= high;
    break;
  case NVVM::ShflKind::idx:
    source = low | (by & ~segments);
    inside = source <= high;
    break;
  }
  return inside ? source : lane;
}

/// `a`: value; `b`: distance; `c`: clamp; the list: the mask of lanes; `flags`:
/// the kind.
void shuffle(Warp &warp, const Instruction &i) {
  Machine &machine = warp.block.machine;
  const uint32_t *members = warp.lanes<uint32_t>(i.list);
  const uint32_t *value = warp.lanes<uint32_t>(i.a),
                 *by = warp.lanes<uint32_t>(i.b),
                 *clamp = warp.lanes<uint32_t>(i.c);
  uint32_t moved[kWarpLanes] = {};
  Warp::each(warp.mask, [&](unsigned lane) {
    if (members[lane] & warp.alive & ~warp.mask)
      machine.report(FindingKind::InactiveLane, warp, i, lane,
                     "names lanes that do not take part");
    unsigned source =
        sourceLane(NVVM::ShflKind(i.flags), lane, by[lane], clamp[lane]);
    if (!(warp.mask >> source & 1))
      machine.report(FindingKind::InactiveLane, warp, i, lane,
                     "takes the value of lane " + llvm::Twine(source) +
                         ", which does not take part");
    moved[lane] = value[source];
  });
  uint32_t *result = warp.lanes<uint32_t>(i.result);
  Warp::each(warp.mask, [&](unsigned lane) { result[lane] = moved[lane]; });
}

LogicalResult decodeShuffle(Decoder &d, Operation *op) {
  auto shuffleOp = cast<NVVM::ShflOp>(op);
  if (d.bitsOf(shuffleOp.getVal().getType()) != 32 ||
      isa<LLVM::LLVMStructType>(shuffleOp.getType()))
    return op->emitError("the interpreter shuffles 32 bits without predicate");
  Slot result = d.define(shuffleOp.getRes()).front();
  Instruction &i = d.emit(op, shuffle);
  i.result = result;
  i.a = d.slot(shuffleOp.getVal());
  i.b = d.slot(shuffleOp.getOffset());
  i.c = d.slot(shuffleOp.getMaskAndClamp());
  i.list = d.slot(shuffleOp.getThreadMask());
  i.flags = uint32_t(shuffleOp.getKind());
  return success();
}

} // namespace

void charonia::interpreter::addWarpOperations(OperationTable &table) {
  table["nvvm.read.ptx.sreg.tid.x"] = decodeSpecial<threadNumber>;
  table["nvvm.read.ptx.sreg.ctaid.x"] = decodeSpecial<blockNumber>;
  table["nvvm.read.ptx.sreg.nctaid.x"] = decodeSpecial<blockCount>;
  table["nvvm.barrier0"] = decodeBarrier;
  table["nvvm.shfl.sync"] = decodeShuffle;
}
