#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;

unsigned charonia::gpu::wordsOf(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (!type || !type.getEncoding())
    return 1;
  return llvm::divideCeil(simt::layoutOf(tile).inSize(Dim::Register) *
                              simt::elementBits(type.getElementType()),
                          32);
}

bool charonia::gpu::collectSlice(Operation *op, Operation *start,
                                 llvm::function_ref<bool(Operation *)> canMove,
                                 llvm::SetVector<Operation *> &slice) {
  if (slice.contains(op))
    return true;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (!def || def->getBlock() != start->getBlock() ||
        def->isBeforeInBlock(start))
      continue;
    if (def->getNumRegions() || !canMove(def) ||
        !collectSlice(def, start, canMove, slice))
      return false;
  }
  slice.insert(op);
  return true;
}

namespace {

/// Registers of a thread for early loads and accumulators together.
constexpr unsigned kMostRegisters = 150;

/// Arithmetic that does not depend on products.
bool isArithmetic(Operation *op) {
  return isMemoryEffectFree(op) &&
         !isa<simt::ToSharedOp, simt::DotOp, simt::WarpgroupDotOp>(op);
}

bool hasDots(scf::ForOp loop) {
  return llvm::any_of(loop.getBody()->getOperations(),
                      llvm::IsaPred<simt::DotOp, simt::WarpgroupDotOp>);
}

/// Where a kernel begins to bring operands of products in.
Operation *findStart(Block &body) {
  for (Operation &op : body) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return hasDots(loop) ? &op : nullptr;
    if (isa<simt::ToSharedOp>(op))
      return &op;
  }
  return nullptr;
}

} // namespace

void charonia::gpu::issueLoadsEarly(func::FuncOp function) {
  Operation *start = findStart(function.getBody().front());
  if (!start)
    return;
  unsigned accumulators = 0, words = 0, loops = 0;
  SmallVector<tile::LoadOp> loads;
  for (Operation *op = start; op; op = op->getNextNode()) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      // What a second loop brings is its own.
      if (++loops > 1 || !hasDots(loop))
        break;
      for (Value result : loop.getResults())
        accumulators += wordsOf(result);
    } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (llvm::none_of(load->getUsers(), llvm::IsaPred<simt::ToSharedOp>))
        loads.push_back(load);
    } else if (isa<simt::DotOp, simt::WarpgroupDotOp>(op)) {
      accumulators = std::max(accumulators, wordsOf(op->getResult(0)));
    }
  }
  for (tile::LoadOp load : loads) {
    llvm::SetVector<Operation *> slice;
    unsigned more = wordsOf(load);
    if (words + more > kMostEarlyWords ||
        accumulators + words + more > kMostRegisters ||
        !collectSlice(load, start, isArithmetic, slice))
      continue;
    words += more;
    for (Operation *op : slice)
      op->moveBefore(start);
  }
}
