#include "codegen/gpu/SharedMemory.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "graph/ir/Dialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia;

namespace {
struct Interval {
  simt::AllocOp op;
  int64_t first, last;     // operator numbers, in program order
  bool isSwizzled = false; // as wgmma wants it
};

int64_t alignmentOf(const Interval &interval) {
  return interval.isSwizzled ? 1024 : 128;
}
} // namespace

/// The tile's own place in shared memory, if it is a small one.
static simt::AllocOp smallAllocOf(Value memory) {
  constexpr int64_t most = 2048;
  auto alloc = memory.getDefiningOp<simt::AllocOp>();
  return alloc && !alloc.getManaged() && alloc.getBytes() <= most
             ? alloc
             : simt::AllocOp();
}

/// The first operator of the load's block that wants it, or has one that does;
/// null where one outside of the block does.
static Operation *firstUserOf(simt::LoadSharedOp load) {
  Operation *first = nullptr;
  for (Operation *user : load->getUsers()) {
    Operation *own = load->getBlock()->findAncestorOpInBlock(*user);
    if (!own)
      return nullptr;
    if (!first || own->isBeforeInBlock(first))
      first = own;
  }
  return first;
}

/// How far down the load may go, if that is past what is left of another tile.
/// Not past loops, which have rings of their own to keep.
static Operation *placeBehindOthers(simt::LoadSharedOp load) {
  Operation *first = firstUserOf(load);
  bool passesOther = false;
  Operation *op = load;
  for (; first && op != first && !isa<scf::ForOp, scf::IfOp>(op);
       op = op->getNextNode()) {
    auto store = dyn_cast<simt::StoreSharedOp>(op);
    if (!store)
      continue;
    if (store.getMemory() == load.getMemory())
      break;
    passesOther |= bool(smallAllocOf(store.getMemory()));
  }
  return passesOther ? op : nullptr;
}

void charonia::gpu::readTogether(func::FuncOp function) {
  // More than what others take anyway, and than nobody is short of, tiles that
  // are there at the same time may not take.
  constexpr int64_t few = 8192;
  int64_t most = std::max(allocateShared(function), few);
  SmallVector<simt::LoadSharedOp> loads;
  function.walk([&](simt::LoadSharedOp load) {
    if (smallAllocOf(load.getMemory()))
      loads.push_back(load);
  });
  for (simt::LoadSharedOp load : llvm::reverse(loads)) {
    Operation *next = load->getNextNode(), *place = placeBehindOthers(load);
    if (!place)
      continue;
    load->moveBefore(place);
    if (allocateShared(function) > most)
      load->moveBefore(next);
  }
}

int64_t charonia::gpu::allocateShared(func::FuncOp function) {
  DenseMap<Operation *, int64_t> number,
      end; // of an operator, and of the last inside
  int64_t next = 0;
  std::function<void(Operation *)> enumerate = [&](Operation *op) {
    number[op] = next++;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          enumerate(&inner);
    end[op] = next - 1;
  };
  enumerate(function);

  SmallVector<Interval> intervals;
  function.walk([&](simt::AllocOp op) {
    Interval interval{op, number[op], number[op]};
    SmallVector<Value> views{op.getMemory()};
    while (!views.empty()) {
      Value view = views.pop_back_val();
      for (Operation *user : view.getUsers()) {
        if (auto slot = dyn_cast<simt::SlotOp>(user))
          views.push_back(slot.getMemory());
        interval.isSwizzled |= isa<simt::WarpgroupDotOp>(user);
        // An mbarrier's memory is nothing else before the kernel ends.
        if (isa<simt::InitBarriersOp>(user))
          interval.last = end[function];
        // What other instances read never is.
        if (isa<simt::ExchangeOp>(user)) {
          interval.first = number[function];
          interval.last = end[function];
        }
        // A use inside of a loop happens until the loop ends.
        Operation *outermost = op->getBlock()->findAncestorOpInBlock(*user);
        interval.last = std::max(interval.last, end[outermost]);
      }
    }
    intervals.push_back(interval);
  });

  // Large ones first, each at the lowest offset that is free while it lives.
  llvm::sort(intervals, [](Interval a, Interval b) {
    return std::pair(-a.op.getBytes(), a.first) <
           std::pair(-b.op.getBytes(), b.first);
  });
  int64_t total = 0;
  SmallVector<Interval> placed;
  for (Interval &interval : intervals) {
    int64_t bytes = interval.op.getBytes();
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (Interval &other : placed)
      if (other.first <= interval.last && interval.first <= other.last)
        taken.push_back({*other.op.getOffset(),
                         *other.op.getOffset() + other.op.getBytes()});
    llvm::sort(taken);
    int64_t offset = 0;
    for (auto [start, stop] : taken) {
      if (offset + bytes <= start)
        break;
      offset =
          std::max(offset, int64_t(llvm::alignTo(stop, alignmentOf(interval))));
    }
    interval.op.setOffset(offset);
    placed.push_back(interval);
    total = std::max(total, offset + bytes);
  }
  // A sort takes what is behind all others.
  int64_t sorted = 0;
  function.walk(
      [&](tile::SortOp op) { sorted = std::max(sorted, sharedBytesOf(op)); });
  return sorted ? int64_t(llvm::alignTo(total, 128)) + sorted : total;
}

int64_t charonia::gpu::sharedBytesOf(tile::SortOp op) {
  constexpr int64_t elementBytes = 8;
  std::optional<int64_t> count = getConstantIntValue(op.getCount());
  if (!count || *count <= 0 || *count > graph::Staging::sortedAtOnce)
    return 0;
  return *count * elementBytes;
}
