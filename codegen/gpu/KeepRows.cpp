#include "codegen/gpu/KeepRows.h"
#include "codegen/gpu/InsideTiles.h"
#include "codegen/gpu/LayoutPlan.h"
#include "codegen/gpu/Loops.h"
#include "codegen/gpu/SharedMemory.h"
#include "codegen/gpu/Streams.h"
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

  int64_t bytes() const { return count * memory.getBytes(); }
};

scf::ForOp loopOf(tile::LoadOp load) {
  return cast<scf::ForOp>(load->getParentOp());
}

bool areAlike(tile::LoadOp a, tile::LoadOp b) {
  if (a.getBuffer() != b.getBuffer() || a.getType() != b.getType() ||
      a->getAttrDictionary() != b->getAttrDictionary() ||
      a.getSymbols().size() != b.getSymbols().size())
    return false;
  for (auto [x, y] : llvm::zip(a.getSymbols(), b.getSymbols()))
    if (x != y &&
        !(x == loopOf(a).getInductionVar() && y == loopOf(b).getInductionVar()))
      return false;
  return true;
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
SmallVector<Row> findRows(func::FuncOp function, Block &block) {
  llvm::SmallPtrSet<Value, 4> written;
  function.walk(
      [&](tile::StoreOp store) { written.insert(store.getBuffer()); });
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
        return row.count == *count && areAlike(row.loads.front(), load);
      });
      if (known == rows.end())
        rows.push_back({*count, {load}, {}, {}});
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
  SmallVector<Row> rows = findRows(function, block);
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
  for (auto &[first, kept] : byLoop) {
    later.remove(first);
    for (Row *row : kept)
      for (tile::LoadOp load : row->loads)
        load.erase();
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
