#include "codegen/gpu/KeepRows.h"
#include "codegen/gpu/InsideTiles.h"
#include "codegen/gpu/LayoutPlan.h"
#include "codegen/gpu/Loops.h"
#include "codegen/gpu/SharedMemory.h"
#include "codegen/gpu/Streams.h"
#include "codegen/tile/analysis/AlikeLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// Loads of the same tiles, in loops over the same numbers.
struct Row {
  int64_t count; ///< of tiles
  SmallVector<tile::LoadOp> loads;
  AsyncCopy copy;
  simt::MemoryType memory; ///< of a tile
  /// What the first loop makes of its tile, where the others want this instead:
  /// it takes the tile's place.
  Value made;

  int64_t bytes() const { return count * memory.getBytes(); }
};

scf::ForOp loopOf(tile::LoadOp load) {
  return cast<scf::ForOp>(load->getParentOp());
}

/// Whether the load's tile depends on the loop's counter and on what is known
/// before the loop alone, each thread has elements of its own, and they can be
/// copied. Fills in how.
bool describe(Row &row) {
  tile::LoadOp load = row.loads.front();
  scf::ForOp loop = loopOf(load);
  for (Value symbol : load.getSymbols())
    if (!symbol.getType().isIndex() || (symbol != loop.getInductionVar() &&
                                        !loop.isDefinedOutsideOfLoop(symbol)))
      return false;
  const LinearLayout &layout = simt::layoutOf(load);
  if (llvm::is_contained(layout.allColumns(), 0))
    return false;
  Type element = load.getType().getElementType();
  unsigned bits = simt::elementBits(element);
  MLIRContext *context = load.getContext();
  row.memory = simt::MemoryType::get(
      context, load.getType().getShape(), element,
      simt::LayoutAttr::get(context, conversionLayout(layout, layout, bits)));
  std::optional<AsyncCopy> copy = asAsyncCopy(load, row.memory, true);
  if (!copy)
    return false;
  row.copy = *copy;
  return true;
}

/// Rows that more than one of the loops in a block reads, from buffers that the
/// kernel does not write.
SmallVector<Row> findRows(Block &block,
                          const llvm::SmallPtrSetImpl<Value> &written) {
  SmallVector<Row> rows;
  for (auto loop : block.getOps<scf::ForOp>()) {
    std::optional<int64_t> count = countOf(loop);
    if (!count || *count < 2)
      continue;
    for (auto load : loop.getBody()->getOps<tile::LoadOp>()) {
      if (written.contains(load.getBuffer()) ||
          !llvm::is_contained(load.getSymbols(), loop.getInductionVar()))
        continue;
      auto known = llvm::find_if(rows, [&](const Row &row) {
        tile::LoadOp first = row.loads.front();
        return row.count == *count &&
               tile::LoopComparison(loopOf(first), loop, written)
                   .areAlike(first.getResult(), load.getResult());
      });
      if (known == rows.end())
        rows.push_back({*count, {load}, {}, {}, {}});
      else
        known->loads.push_back(load);
    }
  }
  llvm::erase_if(rows, [](Row &row) {
    bool again = llvm::any_of(row.loads, [&](tile::LoadOp load) {
      return loopOf(load) != loopOf(row.loads.front());
    });
    return !again || !describe(row);
  });
  return rows;
}

/// What nothing but `value` needs of its loop's body, `value` among it.
llvm::SetVector<Operation *> neededFor(Value value) {
  llvm::SetVector<Operation *> needed;
  needed.insert(value.getDefiningOp());
  Block *body = value.getParentBlock();
  for (unsigned i = 0; i < needed.size(); ++i)
    for (Value operand : needed[i]->getOperands())
      if (Operation *op = operand.getDefiningOp();
          op && op->getBlock() == body &&
          llvm::all_of(op->getUsers(),
                       [&](Operation *user) { return needed.contains(user); }))
        needed.insert(op);
  return needed;
}

/// Whether a value fits in the place of what `own` loads, as it is or rounded.
bool fitsInPlace(Value value, tile::LoadOp own) {
  auto place = cast<RankedTensorType>(own.getType());
  if (value.getType() == place)
    return true;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto rounded =
      value.getDefiningOp()->getAttrOfType<TypeAttr>(tile::kMayBeRoundedAttr);
  return type && rounded && rounded.getValue() == place.getElementType() &&
         type == place.clone(type.getElementType());
}

/// What stands for `made`, of the loop of `own`, in the loop of `load`, if that
/// is loaded for nothing else, and another row is.
Value madeAgain(Value made, tile::LoadOp own, tile::LoadOp load,
                const llvm::SmallPtrSetImpl<Value> &written) {
  tile::LoopComparison comparison(loopOf(own), loopOf(load), written);
  for (Operation &op : load->getBlock()->without_terminator()) {
    if (op.getNumResults() != 1 || &op == load ||
        !comparison.areAlike(made, op.getResult(0)))
      continue;
    llvm::SetVector<Operation *> needed = neededFor(op.getResult(0));
    auto isOtherRow = [&](Operation *other) {
      return isa<tile::LoadOp>(other) && other != load &&
             llvm::is_contained(other->getOperands(),
                                loopOf(load).getInductionVar());
    };
    if (needed.contains(load) && llvm::any_of(needed, isOtherRow))
      return op.getResult(0);
  }
  return {};
}

/// Lets a later loop go on from its tile of the row, in whose place `value`
/// will be.
void goOnFrom(tile::LoadOp load, Value value) {
  llvm::SetVector<Operation *> needed = neededFor(value);
  OpBuilder b(load->getContext());
  b.setInsertionPointAfter(load);
  Value again = load;
  if (value.getType() != load.getType())
    again = arith::ExtFOp::create(b, load.getLoc(), value.getType(), again);
  value.replaceAllUsesWith(again);
  for (Operation *unused : needed)
    if (unused != load)
      unused->erase();
}

/// Looks for the last value of the first loop that fits in the row's place and
/// from which the other loops can go on, such as its sum with another row:
/// neither is then read again for that. Lets them go on from it.
Value makeInPlace(const Row &row, const llvm::SmallPtrSetImpl<Value> &written) {
  tile::LoadOp own = row.loads.front();
  llvm::MapVector<scf::ForOp, tile::LoadOp> later;
  for (tile::LoadOp load : llvm::drop_begin(row.loads))
    if (!later.insert({loopOf(load), load}).second ||
        loopOf(load) == loopOf(own))
      return {};
  for (Operation *op = loopOf(own).getBody()->getTerminator()->getPrevNode();
       op != own; op = op->getPrevNode()) {
    if (op->getNumResults() != 1 || !fitsInPlace(op->getResult(0), own))
      continue;
    SmallVector<std::pair<tile::LoadOp, Value>> again;
    for (auto [loop, load] : later)
      if (Value value = madeAgain(op->getResult(0), own, load, written))
        again.push_back({load, value});
    if (again.size() != later.size())
      continue;
    for (auto [load, value] : again)
      goOnFrom(load, value);
    return op->getResult(0);
  }
  return {};
}

/// Leaves what is made of a tile in its place. The thread that has read the
/// tile's elements will read these.
void storeInPlace(Value made, Value slot, RankedTensorType place) {
  OpBuilder b(made.getContext());
  b.setInsertionPointAfterValue(made);
  Location loc = made.getLoc();
  bool rounds = made.getType() != place;
  Value stored = made;
  if (rounds)
    stored = arith::TruncFOp::create(b, loc, place, made);
  simt::StoreSharedOp::create(b, loc, stored, slot);
  // All that is known of the row is known of what is kept.
  if (rounds)
    made.replaceAllUsesExcept(
        arith::ExtFOp::create(b, loc, made.getType(), stored),
        stored.getDefiningOp());
}

/// Copies of the rows that `first` reads before other loops do: in a loop of
/// their own before it, a group for each tile.
void copyAhead(scf::ForOp first, ArrayRef<Row *> rows) {
  OpBuilder b(first);
  Location loc = first.getLoc();
  SmallVector<Value> rings;
  for (Row *row : rows)
    rings.push_back(simt::AllocOp::create(b, loc, row->memory, row->count,
                                          IntegerAttr(), /*managed=*/true));
  auto copies = scf::ForOp::create(b, loc, first.getLowerBound(),
                                   first.getUpperBound(), first.getStep());
  b.setInsertionPointToStart(copies.getBody());
  for (auto [row, ring] : llvm::zip(rows, rings)) {
    Value slot = simt::SlotOp::create(b, loc, row->memory, ring,
                                      copies.getInductionVar());
    createCopy(b, row->loads.front(), row->copy, slot);
    // The copy counts as the load does.
    for (OpOperand &use : slot.getUses())
      use.getOwner()->replaceUsesOfWith(first.getInductionVar(),
                                        copies.getInductionVar());
  }
  simt::CommitAsyncOp::create(b, loc);
  for (auto [row, ring] : llvm::zip(rows, rings))
    for (tile::LoadOp load : row->loads) {
      b.setInsertionPoint(load);
      Value slot = simt::SlotOp::create(b, load.getLoc(), row->memory, ring,
                                        loopOf(load).getInductionVar());
      SmallVector<int64_t> start(load.getType().getRank(), 0);
      load.replaceAllUsesWith(simt::LoadSharedOp::create(
                                  b, load.getLoc(), load.getType(), slot, start)
                                  .getResult());
      if (row->made && loopOf(load) == first)
        storeInPlace(row->made, slot, cast<RankedTensorType>(load.getType()));
    }
}

/// Loads of a loop's body that could be issued in any iteration before theirs.
SmallVector<tile::LoadOp> freeLoads(scf::ForOp loop) {
  SmallVector<tile::LoadOp> loads;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (llvm::all_of(load->getOperands(), [&](Value operand) {
          return operand == loop.getInductionVar() ||
                 loop.isDefinedOutsideOfLoop(operand);
        }))
      loads.push_back(load);
  return loads;
}

/// Each iteration waits for its own tile, while later ones are on their way:
/// how many of them is part of the instruction, so the loop is written out if
/// it is short. What else it loads is asked for an iteration ahead. A first
/// tile that begins in front of the row comes last: till then all elements have
/// had as many terms, which are known.
void waitInLoop(scf::ForOp loop, int64_t count) {
  constexpr int64_t mostWrittenOut = 16;
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  if (count > mostWrittenOut) {
    simt::WaitAsyncOp::create(b, loc, 0);
    return;
  }
  SmallVector<tile::LoadOp> loads = freeLoads(loop);
  SmallVector<IRMapping> mappings(count);
  auto issue = [&](int64_t i) {
    mappings[i].map(loop.getInductionVar(),
                    arith::ConstantIndexOp::create(b, loc, i));
    for (tile::LoadOp load : loads)
      b.clone(*load, mappings[i]);
  };
  int64_t first = wholeIterations(loop, count).first;
  auto place = [&](int64_t turn) { return (first + turn) % count; };
  issue(place(0));
  SmallVector<Value> carried(loop.getInitArgs());
  for (int64_t turn = 0; turn < count; ++turn) {
    int64_t i = place(turn);
    if (turn + 1 < count)
      issue(place(turn + 1));
    if (i >= first)
      simt::WaitAsyncOp::create(b, loc, count - 1 - i);
    IRMapping &mapping = mappings[i];
    mapping.map(loop.getRegionIterArgs(), carried);
    for (Operation &op : loop.getBody()->without_terminator())
      if (!llvm::is_contained(loads, &op))
        b.clone(op, mapping);
    carried.clear();
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      carried.push_back(mapping.lookupOrDefault(value));
  }
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

/// All loads of an iteration are issued before the first is waited for.
void issueTogether(scf::ForOp loop) {
  auto loads = freeLoads(loop);
  for (tile::LoadOp load : llvm::reverse(loads))
    load->moveBefore(&loop.getBody()->front());
}

/// Keeps the rows that fit in `available` bytes; says whether there are any.
bool keepRowsOf(func::FuncOp function, Block &block, int64_t available) {
  auto written = tile::writtenBuffers(function);
  // Of one row something is made in its place: from then on a later loop's load
  // of it is not what it says, and nothing may be compared with it.
  tile::LoadOp own;
  Value made;
  for (Row &row : findRows(block, written)) {
    own = row.loads.front();
    if (row.bytes() <= available && (made = makeInPlace(row, written)))
      break;
  }
  SmallVector<Row> rows = findRows(block, written);
  if (made) // has only this place
    for (Row &row : rows)
      if (row.loads.front() == own) {
        row.made = made;
        std::swap(row, rows.front());
        break;
      }
  llvm::MapVector<Operation *, SmallVector<Row *>> byLoop;
  llvm::SetVector<Operation *> later;
  for (Row &row : rows) {
    if (row.bytes() > available)
      continue;
    available -= row.bytes();
    byLoop[loopOf(row.loads.front())].push_back(&row);
    for (tile::LoadOp load : row.loads)
      later.insert(loopOf(load));
  }
  for (auto &[first, kept] : byLoop)
    copyAhead(cast<scf::ForOp>(first), kept);
  // Loops that read other loops' rows may be written out, too.
  for (auto &[first, kept] : byLoop)
    for (Row *row : kept)
      for (tile::LoadOp load : row->loads)
        load.erase();
  for (auto &[first, kept] : byLoop) {
    later.remove(first);
    waitInLoop(cast<scf::ForOp>(first), kept.front()->count);
  }
  for (Operation *loop : later)
    issueTogether(cast<scf::ForOp>(loop));
  return !byLoop.empty();
}

} // namespace

int64_t charonia::gpu::keepRows(func::FuncOp function, int64_t sharedBytes) {
  // Dots have their own rings.
  if (function.walk([](simt::ToSharedOp) { return WalkResult::interrupt(); })
          .wasInterrupted())
    return 1;
  // What conversions take beside it.
  func::FuncOp copy = function.clone();
  int64_t taken = allocateShared(copy);
  copy.erase();
  // One instance's copies run under the other's arithmetic.
  Block &block = function.getBody().front();
  for (int64_t instances : {2, 1})
    if (keepRowsOf(function, block,
                   sharedBytesOf(sharedBytes, instances) - taken))
      return instances;
  return 1;
}
