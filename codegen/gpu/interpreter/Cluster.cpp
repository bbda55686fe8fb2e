// The blocks of a cluster: their barrier, and reads of each other's shared
// memory.
//
// A warp counts its arrivals at the cluster's barrier and its waits for them.
// What it does after `n` arrivals is known to whoever has waited more often
// than that. All waits come together, as if a phase of the barrier was complete
// when everybody waits for it; what a warp does between its arrival and its
// wait is still ordered with nobody's of another block, but taken to come
// before what its own block does behind the wait.
#include "codegen/gpu/interpreter/Decoder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

//===----------------------------------------------------------------------===//
// Shared memory of peers
//===----------------------------------------------------------------------===//

/// Addresses in the cluster's shared memory: the block's rank plus one is above
/// the offset; 0 is the block itself.
static constexpr unsigned kRankShift = 24;

const uint8_t *
interpreter::Block::readInCluster(Warp &warp, const Instruction &i,
                                  unsigned lane, uint32_t address,
                                  unsigned bytes, unsigned alignment) {
  uint32_t rank = address >> kRankShift;
  uint32_t offset = address & ((1u << kRankShift) - 1);
  interpreter::Block *owner = rank ? machine.cluster[rank - 1] : this;
  if (owner == this)
    return access(warp, i, lane, offset, bytes, AccessKind::Read, alignment);
  return owner->readByPeer(warp, i, lane, offset, bytes, alignment);
}

const uint8_t *interpreter::Block::readByPeer(Warp &reader,
                                              const Instruction &i,
                                              unsigned lane, uint32_t address,
                                              unsigned bytes,
                                              unsigned alignment) {
  std::string text = "reads shared memory of block " + std::to_string(number) +
                     " at byte " + std::to_string(address);
  auto report = [&](FindingKind kind, const llvm::Twine &what,
                    uint32_t other = kNoOperation) {
    machine.report(kind, reader, i, lane, text + what, other);
  };
  if (hasEnded)
    return report(FindingKind::EndedBlock, ", which has ended"), nullptr;
  if (address > shared.size() || bytes > shared.size() - address)
    return report(FindingKind::OutOfBounds,
                  " of " + llvm::Twine(shared.size())),
           nullptr;
  if (address % alignment != 0)
    return report(FindingKind::Misaligned,
                  ", which is no multiple of " + llvm::Twine(alignment)),
           nullptr;
  uint32_t stamp = reader.clusterArrivals + 1;
  for (Cell &cell : cells(address, bytes)) {
    if (cell.isBarrier)
      report(FindingKind::BarrierMisuse, ", which belongs to an mbarrier",
             cell.writeOperation);
    else if (cell.writeTime < firstTime)
      report(FindingKind::UnwrittenRead, ", which nothing was written to");
    else if (cell.writeStamp > reader.clusterWaits)
      report(FindingKind::Race,
             ", which thread " + llvm::Twine(cell.lastWriter) +
                 " wrote without the cluster's barrier between",
             cell.writeOperation);
    if (cell.peerStamp <= stamp) {
      cell.peerStamp = stamp;
      cell.peerOperation = i.operation;
    }
  }
  if (lastPeerRead.stamp <= stamp)
    lastPeerRead = {stamp, &reader, &i, lane};
  return shared.data() + address;
}

void interpreter::Block::checkPeerReads() {
  hasEnded = true;
  uint32_t waits = 0;
  for (const Warp &warp : warps)
    waits = std::max(waits, warp.clusterWaits);
  if (lastPeerRead.stamp > waits)
    machine.report(FindingKind::EndedBlock, *lastPeerRead.warp,
                   *lastPeerRead.instruction, lastPeerRead.lane,
                   "reads shared memory of block " + llvm::Twine(number) +
                       ", which may have ended: it does not wait for this");
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {

/// `barrier.cluster.arrive`, by whole warps.
void arriveAtCluster(Warp &warp, const Instruction &i) {
  Machine &machine = warp.block.machine;
  if (warp.mask != warp.alive)
    return machine.abort(FindingKind::DivergentBarrier, warp, i,
                         unsigned(__builtin_ctz(warp.alive & ~warp.mask)),
                         "is elsewhere while others of its warp arrive");
  if (warp.clusterArrivals != warp.clusterWaits)
    return machine.abort(FindingKind::BarrierMisuse, warp, i, 0,
                         "arrives at the cluster's barrier again without "
                         "having waited for it");
  ++warp.clusterArrivals;
}

/// `barrier.cluster.wait`: as a barrier, of the blocks of a cluster.
void waitForCluster(Warp &warp, const Instruction &i) {
  if (warp.clusterArrivals == warp.clusterWaits)
    return warp.block.machine.abort(
        FindingKind::BarrierMisuse, warp, i, 0,
        "waits for the cluster's barrier without having arrived at it");
  handlers::barrier(warp, i);
  if (warp.state == Warp::State::AtBarrier)
    warp.state = Warp::State::AtCluster;
}

/// `a`: an address of the block's own memory; `b`: whose is wanted.
void mapToPeer(Warp &warp, const Instruction &i) {
  Machine &machine = warp.block.machine;
  Warp::each(warp.mask, [&](unsigned lane) {
    uint32_t rank = warp.lanes<uint32_t>(i.b)[lane];
    if (rank >= machine.cluster.size()) {
      machine.report(FindingKind::OutOfBounds, warp, i, lane,
                     "names block " + llvm::Twine(rank) + " of a cluster of " +
                         llvm::Twine(machine.cluster.size()));
      rank = 0;
    }
    warp.lanes<uint32_t>(i.result)[lane] =
        warp.lanes<uint32_t>(i.a)[lane] | (rank + 1) << kRankShift;
  });
}

template <Handler handler>
LogicalResult decodeMeeting(Decoder &d, Operation *op) {
  d.emit(op, handler);
  return success();
}

LogicalResult decodeMapa(Decoder &d, Operation *op) {
  auto mapa = cast<NVVM::MapaOp>(op);
  if (cast<LLVM::LLVMPointerType>(mapa.getRes().getType()).getAddressSpace() !=
      7)
    return op->emitError("the interpreter maps pointers to shared memory");
  Slot result = d.define(mapa.getRes()).front();
  Instruction &i = d.emit(op, mapToPeer);
  i.result = result;
  i.a = d.slot(mapa.getA());
  i.b = d.slot(mapa.getB());
  return success();
}

} // namespace

void charonia::interpreter::addClusters(OperationTable &table) {
  table["nvvm.cluster.arrive"] = decodeMeeting<arriveAtCluster>;
  table["nvvm.cluster.wait"] = decodeMeeting<waitForCluster>;
  table["nvvm.mapa"] = decodeMapa;
}
