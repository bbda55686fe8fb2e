#include "codegen/gpu/SharedMemory.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "graph/ir/Dialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia;

/// The simt.alloc behind a memory value.
static simt::AllocOp allocOf(Value memory) {
  while (auto slot = memory.getDefiningOp<simt::SlotOp>())
    memory = slot.getRing();
  return memory.getDefiningOp<simt::AllocOp>();
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

namespace {

class BarrierPlacer {
public:
  void run(Block &block) { visit(block); }

private:
  using Set = llvm::SmallSetVector<Operation *, 8>;
  /// Accesses since the last barrier, by alloc; copies and what dots read, not
  /// yet waited for.
  struct State {
    Set reads, writes, underWay, dotsUnderWay;
    void join(const State &other) {
      dotsUnderWay.insert(other.dotsUnderWay.begin(), other.dotsUnderWay.end());
      reads.insert(other.reads.begin(), other.reads.end());
      writes.insert(other.writes.begin(), other.writes.end());
      underWay.insert(other.underWay.begin(), other.underWay.end());
    }
  };

  static bool conflicts(simt::AllocOp a, const Set &others) {
    int64_t start = *a.getOffset(), stop = start + a.getBytes();
    for (Operation *op : others) {
      auto b = cast<simt::AllocOp>(op);
      if (a == b && a.getManaged())
        continue;
      int64_t from = *b.getOffset();
      if (from < stop && start < from + b.getBytes())
        return true;
    }
    return false;
  }

  void barrier(Operation *before) {
    OpBuilder b(before);
    simt::BarrierOp::create(b, before->getLoc());
    state.reads.clear();
    state.writes.clear();
  }

  void read(Operation *op, Value memory) {
    simt::AllocOp alloc = allocOf(memory);
    if (conflicts(alloc, state.writes))
      barrier(op);
    state.reads.insert(alloc);
  }

  void write(Operation *op, Value memory, Set State::*kind) {
    simt::AllocOp alloc = allocOf(memory);
    if (conflicts(alloc, state.writes) || conflicts(alloc, state.reads))
      barrier(op);
    (state.*kind).insert(alloc);
  }

  /// A dot reads from its issue until it is waited for.
  void startDot(simt::WarpgroupDotOp dot) {
    for (Value memory : dot.getMemories()) {
      read(dot, memory);
      state.dotsUnderWay.insert(allocOf(memory));
    }
  }

  void visit(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto load = dyn_cast<simt::LoadSharedOp>(op)) {
        read(&op, load.getMemory());
      } else if (auto store = dyn_cast<simt::StoreSharedOp>(op)) {
        write(&op, store.getMemory(), &State::writes);
      } else if (auto copy = dyn_cast<simt::CopyAsyncOp>(op)) {
        write(&op, copy.getMemory(), &State::underWay);
      } else if (auto dot = dyn_cast<simt::WarpgroupDotOp>(op)) {
        startDot(dot);
      } else if (auto wait = dyn_cast<simt::WaitDotsOp>(op)) {
        state.reads.insert(state.dotsUnderWay.begin(),
                           state.dotsUnderWay.end());
        if (wait.getPending() == 0)
          state.dotsUnderWay.clear();
      } else if (isa<simt::WaitAsyncOp>(op)) {
        state.writes.insert(state.underWay.begin(), state.underWay.end());
        state.underWay.clear();
      } else if (isa<simt::BarrierOp, simt::ExchangeOp>(op)) {
        // The threads of a cluster meet, so those of each instance do.
        state.reads.clear();
        state.writes.clear();
      } else if (isa<scf::ForOp>(op)) {
        // Twice: an iteration follows what came before the loop, or another.
        State before = state;
        Block &body = *cast<scf::ForOp>(op).getBody();
        visit(body);
        state.join(before);
        visit(body);
        state.join(before);
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        // All threads take the same branch.
        State before = state, after;
        for (Region &region : branch->getRegions()) {
          state = before;
          if (!region.empty())
            visit(region.front());
          after.join(state);
        }
        state = after;
      }
    }
  }

  State state;
};

} // namespace

void charonia::gpu::insertBarriers(func::FuncOp function) {
  BarrierPlacer().run(function.getBody().front());
}
