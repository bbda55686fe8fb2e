// Copies of the copy engine.
#include "codegen/gpu/interpreter/Decoder.h"
#include "codegen/gpu/interpreter/TensorBox.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

namespace {

/// Its map; null after a finding that ends the launch.
const TensorMap *findMap(Warp &warp, const Instruction &i, unsigned lane,
                         size_t coordinates) {
  Machine &machine = warp.block.machine;
  const TensorMap &map = machine.launch.maps[warp.lanes<uint64_t>(i.b)[lane]];
  Box box(map);
  const char *unknown = box.findUnknown();
  if (!unknown && (coordinates != box.rank() || i.flags != box.isIm2col()))
    unknown = "a tensor map of another mode or rank than the copy";
  if (!unknown && map.buffer >= machine.launch.buffers.size())
    unknown = "a tensor map of a buffer that there is not";
  if (!unknown)
    return &map;
  machine.abort(FindingKind::NotModelled, warp, i, lane, unknown);
  return nullptr;
}

bool isAligned(Warp &warp, const Instruction &i, unsigned lane, uint32_t to,
               const TensorMap &map) {
  Machine &machine = warp.block.machine;
  if (to % kSwizzleBytes != 0)
    machine.abort(FindingKind::Misaligned, warp, i, lane,
                  "fills shared memory from byte " + llvm::Twine(to) +
                      " on, which is no multiple of 128");
  if (machine.launch.buffers[map.buffer].phase % kPieceBytes != 0)
    machine.abort(FindingKind::Misaligned, warp, i, lane,
                  "copies from buffer " + llvm::Twine(map.buffer) +
                      ", whose address is no multiple of 16");
  return !machine.aborted;
}

/// `a`: to; `b`: map; `c`: mbarrier; the list: slots of the coordinates, then
/// of the offsets; `bits`: how many of them are coordinates; `flags`: whether
/// it is im2col.
void copyBox(Warp &warp, const Instruction &i) {
  const std::vector<uint32_t> &list = warp.block.machine.program.lists[i.list];
  Warp::each(warp.mask, [&](unsigned lane) {
    const TensorMap *map = findMap(warp, i, lane, i.bits);
    uint32_t to = warp.lanes<uint32_t>(i.a)[lane];
    if (!map || !isAligned(warp, i, lane, to, *map))
      return;
    Position start, offsets;
    for (uint32_t slot : llvm::ArrayRef(list).take_front(i.bits))
      start.push_back(int32_t(warp.lanes<uint32_t>(slot)[lane]));
    for (uint32_t slot : llvm::ArrayRef(list).drop_front(i.bits))
      offsets.push_back(uint16_t(warp.lanes<uint32_t>(slot)[lane]));
    TensorCopy copy;
    copy.instruction = &i;
    copy.warp = &warp;
    copy.lane = lane;
    copy.to = to;
    copy.bytes = Box(*map).bytes();
    copy.swizzle = map->swizzle;
    copy.barrier = warp.lanes<uint32_t>(i.c)[lane];
    warp.block.startTensorCopy(std::move(copy), *map, start, offsets);
  });
}

LogicalResult decodeCopyBox(Decoder &d, Operation *op) {
  auto copy = cast<NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp>(op);
  bool isIm2col = copy.getMode() == NVVM::TMALoadMode::IM2COL;
  size_t rank = copy.getCoordinates().size();
  if ((!isIm2col && copy.getMode() != NVVM::TMALoadMode::TILE) ||
      copy.getMulticastMask() || copy.getPredicate() || copy.getGroup() ||
      copy.getIm2colOffsets().size() != (isIm2col ? rank - 2 : 0))
    return op->emitError("the interpreter knows boxes and im2col for one block "
                         "without predicate");
  auto map = dyn_cast<BlockArgument>(copy.getTmaDescriptor());
  if (!map || !d.isMap(map))
    return op->emitError(
        "the interpreter knows tensor maps that are arguments of the kernel");
  std::vector<uint32_t> list;
  for (ValueRange values :
       {ValueRange(copy.getCoordinates()), ValueRange(copy.getIm2colOffsets())})
    for (Value value : values)
      list.push_back(d.slot(value));
  uint32_t number = d.addList(std::move(list));
  d.program.hasClocks = true;
  Instruction &i = d.emit(op, copyBox);
  i.a = d.slot(copy.getDstMem());
  i.b = d.slot(map);
  i.c = d.slot(copy.getMbar());
  i.list = number;
  i.bits = rank;
  i.flags = isIm2col;
  return success();
}

} // namespace

void charonia::interpreter::addTensorCopies(OperationTable &table) {
  table["nvvm.cp.async.bulk.tensor.shared.cluster.global"] = decodeCopyBox;
  // A hint, and what registers are not told apart by.
  for (const char *name : {"nvvm.prefetch", "nvvm.setmaxregister"})
    table[name] = [](Decoder &, Operation *) { return success(); };
}
