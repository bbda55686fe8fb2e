// Where threads have to wait for each other, so that none reads shared memory
// before it is written, or writes what others still read.
#include "codegen/gpu/SharedMemory.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/layout/Layouts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using f2::Vector;

/// The simt.alloc behind a memory value.
static simt::AllocOp allocOf(Value memory) {
  while (auto slot = memory.getDefiningOp<simt::SlotOp>())
    memory = slot.getRing();
  return memory.getDefiningOp<simt::AllocOp>();
}

namespace {

/// Who has to meet.
enum class Scope { Nobody, Warpgroup, All };

/// A tile's way through shared memory on which no warpgroup reads what another
/// one writes: the part of each, as offsets.
struct GroupParts {
  /// The first one's, by a basis, and what leads to those of the others.
  SmallVector<Vector> basis, others;

  bool operator==(const GroupParts &other) const {
    f2::Span span(other.basis);
    return basis.size() == other.basis.size() &&
           others.size() == other.others.size() &&
           llvm::all_of(basis, [&](Vector v) { return span.contains(v); }) &&
           llvm::all_of(llvm::zip(others, other.others), [&](auto pair) {
             return span.contains(std::get<0>(pair) ^ std::get<1>(pair));
           });
  }
};

/// The offsets that warpgroups reach of a memory by a tile's layout.
GroupParts partsOf(const LinearLayout &tile, const LinearLayout &memory) {
  LinearLayout offsets = tile.then(memory.inverse());
  ArrayRef<Vector> warps = offsets.columnsOf(Dim::Warp);
  size_t inside = std::min<size_t>(kWarpgroupBits, warps.size());
  SmallVector<Vector> reached(offsets.columnsOf(Dim::Register));
  llvm::append_range(reached, offsets.columnsOf(Dim::Lane));
  llvm::append_range(reached, warps.take_front(inside));
  return {f2::extend({}, reached), llvm::to_vector(warps.drop_front(inside))};
}

/// The parts of warpgroups, if each reads what it has written and nothing else.
std::optional<GroupParts> partsOf(simt::AllocOp alloc) {
  if (alloc.getManaged() || alloc.getSlots() != 1)
    return std::nullopt;
  simt::StoreSharedOp store;
  SmallVector<simt::LoadSharedOp> loads;
  for (Operation *user : alloc->getUsers()) {
    if (auto load = dyn_cast<simt::LoadSharedOp>(user))
      loads.push_back(load);
    else if (store || !(store = dyn_cast<simt::StoreSharedOp>(user)))
      return std::nullopt;
  }
  if (!store)
    return std::nullopt;
  const LinearLayout &memory =
      alloc.getMemory().getType().getLayout().getLayout();
  GroupParts written = partsOf(simt::layoutOf(store.getValue()), memory);
  f2::Span span(written.basis);
  // Several have no element in common.
  for (Vector v : written.others)
    if (!span.add(v))
      return std::nullopt;
  for (simt::LoadSharedOp load : loads)
    if (load.getType().getShape() != alloc.getMemory().getType().getShape() ||
        partsOf(simt::layoutOf(load.getResult()), memory) != written)
      return std::nullopt;
  return written;
}

class BarrierPlacer {
public:
  explicit BarrierPlacer(func::FuncOp function) {
    // Elsewhere no warpgroup is ahead of another for long.
    if (function.getOps<simt::CopyWarpOp>().empty())
      return;
    function.walk([&](simt::AllocOp alloc) {
      if (std::optional<GroupParts> parts = partsOf(alloc);
          parts && !parts->others.empty())
        groups.try_emplace(alloc, std::move(*parts));
    });
  }

  void run(Block &block) { visit(block); }

private:
  using Set = llvm::SmallSetVector<Operation *, 8>;
  /// Accesses since all have met, by alloc, and those among them since which
  /// the warps of each group have.
  struct Accesses {
    Set open, met;
    void join(const Accesses &other) {
      open.insert(other.open.begin(), other.open.end());
      met.insert(other.met.begin(), other.met.end());
    }
    void clear() {
      open.clear();
      met.clear();
    }
    void meet() {
      met.insert(open.begin(), open.end());
      open.clear();
    }
  };
  /// Accesses; copies and what dots read, not yet waited for.
  struct State {
    Accesses reads, writes;
    Set underWay, dotsUnderWay;
    void join(const State &other) {
      dotsUnderWay.insert(other.dotsUnderWay.begin(), other.dotsUnderWay.end());
      reads.join(other.reads);
      writes.join(other.writes);
      underWay.insert(other.underWay.begin(), other.underWay.end());
    }
  };

  static bool overlap(simt::AllocOp a, simt::AllocOp b) {
    if (a == b && a.getManaged())
      return false;
    int64_t start = *a.getOffset(), from = *b.getOffset();
    return from < start + a.getBytes() && start < from + b.getBytes();
  }

  /// Who has to meet between accesses of two allocs that overlap.
  Scope scopeOf(simt::AllocOp a, simt::AllocOp b) const {
    auto partsOfA = groups.find(a), partsOfB = groups.find(b);
    auto bitsOf = [](simt::AllocOp alloc) {
      return simt::elementBits(alloc.getMemory().getType().getElementType());
    };
    bool areSame = partsOfA != groups.end() && partsOfB != groups.end() &&
                   *a.getOffset() == *b.getOffset() && bitsOf(a) == bitsOf(b) &&
                   partsOfA->second == partsOfB->second;
    return areSame ? Scope::Warpgroup : Scope::All;
  }

  Scope conflict(simt::AllocOp alloc, const Accesses &others) const {
    Scope scope = Scope::Nobody;
    for (bool haveMet : {false, true})
      for (Operation *op : haveMet ? others.met : others.open) {
        auto other = cast<simt::AllocOp>(op);
        if (!overlap(alloc, other))
          continue;
        Scope needed = scopeOf(alloc, other);
        if (!haveMet || needed == Scope::All)
          scope = std::max(scope, needed);
      }
    return scope;
  }

  /// All have met, or just the warps of each group.
  void haveMet(bool ofGroup) {
    for (Accesses *accesses : {&state.reads, &state.writes})
      ofGroup ? accesses->meet() : accesses->clear();
  }

  void meet(Scope scope, Operation *before) {
    if (scope == Scope::Nobody)
      return;
    bool ofGroup = scope == Scope::Warpgroup;
    if (isTrial) {
      found = std::max(found, scope);
    } else {
      OpBuilder b(before);
      simt::BarrierOp::create(b, before->getLoc(), /*all=*/false, ofGroup);
    }
    haveMet(ofGroup);
  }

  void read(Operation *op, Value memory) {
    simt::AllocOp alloc = allocOf(memory);
    meet(conflict(alloc, state.writes), op);
    state.reads.open.insert(alloc);
  }

  /// Before a write that others may read.
  void clear(Operation *op, simt::AllocOp alloc) {
    meet(std::max(conflict(alloc, state.writes), conflict(alloc, state.reads)),
         op);
  }

  /// A dot reads from its issue until it is waited for.
  void startDot(simt::WarpgroupDotOp dot) {
    for (Value memory : dot.getMemories()) {
      read(dot, memory);
      state.dotsUnderWay.insert(allocOf(memory));
    }
  }

  /// Who would have to meet in the loop, if this is what came before it. The
  /// state stays as it is.
  Scope scopeIn(scf::ForOp loop, State before) {
    bool wasTrial = std::exchange(isTrial, true);
    Scope outside = std::exchange(found, Scope::Nobody);
    State kept = std::exchange(state, std::move(before));
    visit(*loop.getBody());
    visit(*loop.getBody());
    state = std::move(kept);
    isTrial = wasTrial;
    return std::exchange(found, outside);
  }

  void visitLoop(scf::ForOp loop) {
    // Once, and not in each iteration, where just what came before the loop has
    // to be met for.
    if (!isTrial && scopeIn(loop, State()) == Scope::Nobody)
      meet(scopeIn(loop, state), loop);
    // Twice: an iteration follows what came before the loop, or another.
    State before = state;
    visit(*loop.getBody());
    state.join(before);
    visit(*loop.getBody());
    state.join(before);
  }

  void visitBranch(scf::IfOp branch) {
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

  void visit(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto load = dyn_cast<simt::LoadSharedOp>(op)) {
        read(&op, load.getMemory());
      } else if (auto store = dyn_cast<simt::StoreSharedOp>(op)) {
        simt::AllocOp alloc = allocOf(store.getMemory());
        clear(&op, alloc);
        state.writes.open.insert(alloc);
      } else if (auto copy = dyn_cast<simt::CopyAsyncOp>(op)) {
        simt::AllocOp alloc = allocOf(copy.getMemory());
        clear(&op, alloc);
        state.underWay.insert(alloc);
      } else if (auto dot = dyn_cast<simt::WarpgroupDotOp>(op)) {
        startDot(dot);
      } else if (auto wait = dyn_cast<simt::WaitDotsOp>(op)) {
        state.reads.open.insert(state.dotsUnderWay.begin(),
                                state.dotsUnderWay.end());
        if (wait.getPending() == 0)
          state.dotsUnderWay.clear();
      } else if (isa<simt::WaitAsyncOp>(op)) {
        state.writes.open.insert(state.underWay.begin(), state.underWay.end());
        state.underWay.clear();
      } else if (auto barrier = dyn_cast<simt::BarrierOp>(op)) {
        haveMet(barrier.getWarpgroup());
      } else if (isa<simt::ExchangeOp>(op)) {
        // The threads of a cluster meet, so those of each instance do.
        haveMet(/*ofGroup=*/false);
      } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
        visitLoop(loop);
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        visitBranch(branch);
      }
    }
  }

  DenseMap<Operation *, GroupParts> groups;
  State state;
  /// Barriers are not placed, but those who would meet at them found.
  bool isTrial = false;
  Scope found = Scope::Nobody;
};

} // namespace

void charonia::gpu::insertBarriers(func::FuncOp function) {
  BarrierPlacer(function).run(function.getBody().front());
}
