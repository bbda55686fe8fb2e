// The rings in shared memory that the streams of a loop fill.
#include "codegen/gpu/LoopStreams.h"
#include "codegen/gpu/PersistTiles.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void LoopStreams::findTileLoop() {
  auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
  if (!outer || !outer->hasAttr(kTilesAttr))
    return;
  tiles = outer;
  for (const Stream &stream : streams) {
    resident.push_back(
        isResident(stream, loop, *outer.getBody(), outer.getInductionVar()));
    places.push_back(*placeOfTile(stream, loop, *outer.getBody()));
  }
}

void LoopStreams::issueTile(Value tile, bool ofAll) {
  for (unsigned s = 0; s < stages; ++s) {
    for (unsigned i = 0; i < streams.size(); ++i) {
      if (resident[i] != ofAll)
        continue;
      IRMapping mapping;
      mapping.map(tiles.getInductionVar(), tile);
      for (Operation *op : places[i])
        b.clone(*op, mapping);
      mapping.map(loop.getInductionVar(), constant(s));
      copyStream(streams[i], rings[i], mapping, constant(s));
    }
    if (!ofAll)
      simt::CommitAsyncOp::create(b, loc());
  }
  if (ofAll)
    simt::CommitAsyncOp::create(b, loc());
}

void LoopStreams::issueNextTile() {
  if (!tiles)
    return;
  simt::BarrierOp::create(b, loc());
  Value next =
      arith::AddIOp::create(b, loc(), tiles.getInductionVar(), tiles.getStep());
  Value isOne = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt, next,
                                      tiles.getUpperBound());
  auto branch = scf::IfOp::create(b, loc(), isOne, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  issueTile(next, /*ofAll=*/false);
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

void LoopStreams::createRings() {
  for (Stream &stream : streams)
    rings.push_back(
        simt::AllocOp::create(b, loc(), stream.op.getMemory().getType(),
                              stream.copy ? stages : 2, IntegerAttr(), true));
}

Value LoopStreams::wrap(Value slot, int64_t count) {
  Value next = arith::AddIOp::create(b, loc(), slot, constant(1));
  Value end = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::eq, next,
                                    constant(count));
  return arith::SelectOp::create(b, loc(), end, constant(0), next);
}

Value LoopStreams::iteration(Value first, int64_t ahead) {
  if (ahead == 0)
    return first;
  Value steps =
      b.createOrFold<arith::MulIOp>(loc(), loop.getStep(), constant(ahead));
  return b.createOrFold<arith::AddIOp>(loc(), first, steps);
}

void LoopStreams::synchronize() {
  if (schedule.copySlots)
    simt::WaitAsyncOp::create(b, loc(),
                              ahead() - (schedule.readsCopies ? 2 : 1));
  if (schedule.fences)
    simt::FenceSharedOp::create(b, loc());
  simt::BarrierOp::create(b, loc());
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

void LoopStreams::copyStream(const Stream &stream, Value ring,
                             IRMapping &mapping, Value slot, Value end) {
  tile::LoadOp load;
  for (Operation *op : stream.slice) {
    Operation *clone = b.clone(*op, mapping);
    if (op == stream.copy->load)
      load = cast<tile::LoadOp>(clone);
  }
  if (end)
    addGuard(load, mapping.lookup(loop.getInductionVar()), end);
  createCopy(b, load, *stream.copy, slotOf(ring, slot));
  load.erase();
}

void LoopStreams::issueCopies(Value index, Value slot) {
  for (auto [stream, ring] : llvm::zip(streams, rings)) {
    if (!stream.copy)
      continue;
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), index);
    copyStream(stream, ring, mapping, slot, loop.getUpperBound());
  }
  simt::CommitAsyncOp::create(b, loc());
}

SmallVector<IRMapping> LoopStreams::issueLoads(Value index) {
  SmallVector<IRMapping> mappings(streams.size());
  for (auto [stream, mapping] : llvm::zip(streams, mappings)) {
    if (stream.copy)
      continue;
    mapping.map(loop.getInductionVar(), index);
    llvm::SetVector<Operation *> early;
    for (Operation *op : llvm::reverse(stream.slice))
      if (isa<tile::LoadOp>(op) ||
          llvm::any_of(op->getUsers(), [&](Operation *user) {
            return early.contains(loop.getBody()->findAncestorOpInBlock(*user));
          }))
        early.insert(op);
    for (Operation *op : stream.slice)
      if (early.contains(op)) {
        Operation *clone = b.clone(*op, mapping);
        if (auto load = dyn_cast<tile::LoadOp>(clone))
          addGuard(load, index, loop.getUpperBound());
      }
  }
  return mappings;
}

void LoopStreams::storeLoads(SmallVector<IRMapping> &mappings, Value slot,
                             Value copies) {
  SmallVector<Value> copied;
  if (schedule.readsCopies)
    for (auto [stream, ring] : llvm::zip(streams, rings))
      copied.push_back(stream.copy ? slotOf(ring, copies) : Value());
  for (auto [stream, ring, mapping] : llvm::zip(streams, rings, mappings)) {
    if (stream.copy)
      continue;
    for (auto [other, memory] : llvm::zip_first(copied, streams))
      if (other)
        mapping.map(memory.op.getMemory(), other);
    for (Operation *op : stream.slice)
      if (!mapping.contains(op->getResult(0)))
        b.clone(*op, mapping);
    Value memory = slotOf(ring, slot);
    simt::StoreSharedOp::create(b, loc(), mapping.lookup(stream.op.getInput()),
                                memory);
  }
}

void LoopStreams::startStreams() {
  if (tiles) {
    issueTile(tiles.getLowerBound(), /*ofAll=*/true);
    issueTile(tiles.getLowerBound(), /*ofAll=*/false);
    return;
  }
  if (schedule.copySlots)
    for (unsigned s = 0; s < ahead(); ++s)
      issueCopies(iteration(loop.getLowerBound(), s), constant(s));
  if (schedule.throughRegisters) {
    SmallVector<IRMapping> loads = issueLoads(loop.getLowerBound());
    if (schedule.readsCopies) {
      simt::WaitAsyncOp::create(b, loc(), ahead() - 1);
      simt::BarrierOp::create(b, loc());
    }
    storeLoads(loads, constant(0), constant(0));
  }
}

SmallVector<Value>
LoopStreams::loadEarly(function_ref<Value(const Stream &)> slot) {
  SmallVector<Value> result;
  for (simt::LoadSharedOp fragment : schedule.early)
    for (auto [stream, ring] : llvm::zip(streams, rings))
      if (stream.op.getMemory() == fragment.getMemory()) {
        Value memory = slotOf(ring, slot(stream));
        result.push_back(simt::LoadSharedOp::create(
            b, loc(), fragment.getType(), memory, fragment.getStart()));
      }
  return result;
}
