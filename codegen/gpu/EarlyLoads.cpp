#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

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

bool writesMemory(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        bool touches = llvm::any_of(inner->getOperandTypes(),
                                    llvm::IsaPred<tile::BufferType>);
        return touches && !isa<tile::LoadOp>(inner) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Where `op` is wanted first, if that is behind `start` and no memory is
/// written on the way; null otherwise.
Operation *firstUserBehind(Operation *op, Operation *start) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *own = op->getBlock()->findAncestorOpInBlock(*user);
    if (!own || !start->isBeforeInBlock(own))
      return nullptr;
    if (!first || own->isBeforeInBlock(first))
      first = own;
  }
  for (Operation *between = op; first && between != first;
       between = between->getNextNode())
    if (writesMemory(between))
      return nullptr;
  return first;
}

/// What is loaded twice, by two walks along a row that one tile holds, is kept
/// where it takes few registers.
void loadOnce(Block &body) {
  constexpr unsigned mostWords = 16;
  SmallVector<tile::LoadOp> known;
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (writesMemory(&op))
      known.clear();
    auto load = dyn_cast<tile::LoadOp>(op);
    if (!load || wordsOf(load) > mostWords)
      continue;
    auto same = llvm::find_if(known, [&](tile::LoadOp other) {
      return OperationEquivalence::isEquivalentTo(
          other, load, OperationEquivalence::IgnoreLocations);
    });
    if (same == known.end()) {
      known.push_back(load);
      continue;
    }
    load->replaceAllUsesWith(*same);
    load->erase();
  }
}

/// Where the threads of a kernel without products first wait for each other, or
/// walk along something. Loads behind it, such as the scale and shift of a row
/// that is normalized, depend on none of that.
void loadAheadOfSums(Block &body) {
  constexpr unsigned mostAcrossLoop = 8;
  Operation *start = nullptr;
  unsigned words = 0, most = kMostEarlyWords;
  SmallVector<tile::LoadOp> loads;
  for (Operation &op : body) {
    bool meets =
        isa<scf::ForOp, tile::ReduceOp, simt::WarpReduceOp, simt::ExchangeOp>(
            op);
    if (writesMemory(&op) || (op.getNumRegions() && !meets))
      break;
    if (isa<scf::ForOp>(op))
      most = mostAcrossLoop;
    if (!start && (meets || isa<simt::StoreSharedOp>(op)))
      start = &op;
    else if (auto load = dyn_cast<tile::LoadOp>(op); load && start)
      loads.push_back(load);
  }
  for (tile::LoadOp load : loads) {
    llvm::SetVector<Operation *> slice;
    if (words + wordsOf(load) > most ||
        !collectSlice(load, start, isArithmetic, slice))
      continue;
    words += wordsOf(load);
    for (Operation *op : slice)
      op->moveBefore(start);
  }
}

} // namespace

void charonia::gpu::sinkBehindProducts(func::FuncOp function) {
  Block &body = function.getBody().front();
  auto multiplies = [](Operation &op) {
    return op.walk([](tile::DotOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  };
  auto start = llvm::find_if(body, multiplies);
  if (start == body.end())
    return;
  SmallVector<Operation *> before = llvm::map_to_vector(
      llvm::make_range(body.begin(), start), [](Operation &op) { return &op; });
  // Backwards, so that what a tile is made of follows it.
  for (Operation *op : llvm::reverse(before)) {
    bool isTile = op->getNumResults() == 1 &&
                  isa<RankedTensorType>(op->getResult(0).getType());
    if (!isTile || op->getNumRegions() ||
        !(isMemoryEffectFree(op) || isa<tile::LoadOp>(op)))
      continue;
    if (Operation *user = firstUserBehind(op, &*start))
      op->moveBefore(user);
  }
}

void charonia::gpu::issueLoadsEarly(func::FuncOp function) {
  bool hasProducts = function
                         ->walk([](Operation *op) {
                           return isa<simt::DotOp, simt::WarpgroupDotOp>(op)
                                      ? WalkResult::interrupt()
                                      : WalkResult::advance();
                         })
                         .wasInterrupted();
  if (!hasProducts) {
    loadOnce(function.getBody().front());
    loadAheadOfSums(function.getBody().front());
    return;
  }
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

void charonia::gpu::reduceEarly(scf::ForOp loop) {
  constexpr unsigned mostWords = 16;
  SmallVector<tile::ReduceOp> reductions;
  for (Operation *op = loop->getNextNode(); op && !writesMemory(op);
       op = op->getNextNode())
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      reductions.push_back(reduce);
  unsigned words = 0;
  auto canMove = [](Operation *op) {
    return isArithmetic(op) || isa<tile::LoadOp>(op);
  };
  for (tile::ReduceOp reduce : reductions) {
    llvm::SetVector<Operation *> slice;
    unsigned more = 0;
    for (Value result : reduce.getResults())
      more += wordsOf(result);
    if (words + more > mostWords ||
        !collectSlice(reduce, loop, canMove, slice) ||
        llvm::any_of(reduce.getInputs(), [&](Value input) {
          return input.getDefiningOp() == loop;
        }))
      continue;
    words += more;
    for (Operation *op : slice)
      op->moveBefore(loop);
  }
}
