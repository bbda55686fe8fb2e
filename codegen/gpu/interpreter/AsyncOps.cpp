// cp.async: copies that a warp waits for by groups.
#include "codegen/gpu/interpreter/Decoder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

namespace {

/// `a`: to; `b`: from; `c`: bytes that are read, the rest is zeros, or absent;
/// `bits`: bytes that are written.
void copy(Warp &warp, const Instruction &i) {
  const uint32_t *to = warp.lanes<uint32_t>(i.a),
                 *bytes = warp.lanes<uint32_t>(i.c);
  const uint64_t *from = warp.lanes<uint64_t>(i.b);
  warp.block.countBanks(i, warp.mask, to, i.bits);
  Warp::each(warp.mask, [&](unsigned lane) {
    Copy copy{&i,
              from[lane],
              to[lane],
              warp.openGroup,
              uint8_t(lane),
              uint8_t(i.bits),
              uint8_t(i.c == kNoSlot ? i.bits : std::min(bytes[lane], i.bits)),
              false,
              {}};
    warp.block.startCopy(warp, copy);
  });
}

/// Groups are counted by thread; here by warp, which is the same as long as all
/// its threads come here.
bool isTogether(Warp &warp, const Instruction &i) {
  if (warp.mask == warp.alive)
    return true;
  warp.block.machine.abort(
      FindingKind::NotModelled, warp, i,
      unsigned(__builtin_ctz(warp.alive & ~warp.mask)),
      "groups of copies that not all threads of a warp make");
  return false;
}

void commit(Warp &warp, const Instruction &i) {
  if (isTogether(warp, i))
    ++warp.openGroup;
}

/// `constant`: how many of the last groups may still be under way.
void wait(Warp &warp, const Instruction &i) {
  if (isTogether(warp, i) && warp.openGroup > uint64_t(i.constant))
    warp.block.finishCopies(warp, warp.openGroup - i.constant);
}

LogicalResult decodeCopy(Decoder &d, Operation *op) {
  auto copyOp = cast<NVVM::CpAsyncOp>(op);
  d.noteAccess(copyOp.getDst(), copyOp.getSize(), true);
  // What is read may be less than what is written.
  d.noteAccess(copyOp.getSrc(), copyOp.getSize(), false);
  Instruction &i = d.emit(op, copy);
  i.a = d.slot(copyOp.getDst());
  i.b = d.slot(copyOp.getSrc());
  if (Value bytes = copyOp.getCpSize())
    i.c = d.slot(bytes);
  i.bits = copyOp.getSize();
  return success();
}

LogicalResult decodeCommit(Decoder &d, Operation *op) {
  d.emit(op, commit);
  return success();
}

LogicalResult decodeWait(Decoder &d, Operation *op) {
  d.emit(op, wait).constant = cast<NVVM::CpAsyncWaitGroupOp>(op).getN();
  return success();
}

} // namespace

void charonia::interpreter::addAsyncCopies(OperationTable &table) {
  table["nvvm.cp.async.shared.global"] = decodeCopy;
  table["nvvm.cp.async.commit.group"] = decodeCommit;
  table["nvvm.cp.async.wait.group"] = decodeWait;
}
