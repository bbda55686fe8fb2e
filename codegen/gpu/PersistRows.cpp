#include "codegen/gpu/PersistRows.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace charonia;

namespace {

/// What a kernel of kept rows is made of.
struct Rows {
  tile::ProgramIdOp id;
  int64_t count = 0;
  scf::ForOp copies; ///< to shared memory, of all tiles of a row
  scf::ForOp last;   ///< the last loop that reads them, tile by tile
};

bool isCopies(scf::ForOp loop) {
  bool copies = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (!isa<simt::SlotOp, simt::CopyAsyncOp, simt::CommitAsyncOp>(op))
      return false;
    copies |= isa<simt::CopyAsyncOp>(op);
  }
  return copies;
}

std::optional<int64_t> constantOf(Value value) {
  APInt found;
  if (!matchPattern(value, m_ConstantInt(&found)))
    return std::nullopt;
  return found.getSExtValue();
}

bool countsAlike(scf::ForOp a, scf::ForOp b) {
  auto number = [](Value value) { return constantOf(value); };
  return number(a.getLowerBound()) && number(a.getUpperBound()) &&
         number(a.getStep()) &&
         number(a.getLowerBound()) == number(b.getLowerBound()) &&
         number(a.getUpperBound()) == number(b.getUpperBound()) &&
         number(a.getStep()) == number(b.getStep());
}

/// The last operator of the block that reads what the loop copies; null where
/// not all of it is read there last.
Operation *lastReader(scf::ForOp copies) {
  Operation *last = nullptr;
  Block &block = *copies->getBlock();
  for (auto slot : copies.getBody()->getOps<simt::SlotOp>()) {
    Operation *own = nullptr;
    for (Operation *user : slot.getRing().getUsers()) {
      Operation *op = block.findAncestorOpInBlock(*user);
      if (!own || own->isBeforeInBlock(op))
        own = op;
    }
    if (last && own != last)
      return nullptr;
    last = own;
  }
  return last;
}

/// Whether the loop reads each tile of the rings in the iteration of its
/// number.
bool readsInTurn(scf::ForOp loop, scf::ForOp copies) {
  for (auto copied : copies.getBody()->getOps<simt::SlotOp>())
    for (Operation *user : copied.getRing().getUsers())
      if (auto slot = dyn_cast<simt::SlotOp>(user);
          slot && loop->isAncestor(slot) &&
          (slot->getParentOp() != loop ||
           slot.getIndex() != loop.getInductionVar()))
        return false;
  return true;
}

/// Whether nothing in front of `end` depends on the program's number.
bool isFreeBefore(tile::ProgramIdOp id, Operation *end) {
  return llvm::all_of(id->getUsers(), [&](Operation *user) {
    Operation *op = id->getBlock()->findAncestorOpInBlock(*user);
    return op == end || end->isBeforeInBlock(op);
  });
}

std::optional<Rows> findRows(func::FuncOp function) {
  auto grid = function->getAttrOfType<AffineMapAttr>(tile::kGridAttr);
  if (!grid || !grid.getValue().isSingleConstant() ||
      function->hasAttr(tile::kClusterAttr) ||
      function->hasAttr(tile::kScratchAttr) ||
      !function.getBody().hasOneBlock())
    return std::nullopt;
  Rows rows;
  rows.count = grid.getValue().getSingleConstantResult();
  for (Operation &op : function.getBody().front()) {
    if (auto id = dyn_cast<tile::ProgramIdOp>(op)) {
      if (rows.id)
        return std::nullopt;
      rows.id = id;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && isCopies(loop)) {
      if (rows.copies)
        return std::nullopt;
      rows.copies = loop;
    }
  }
  if (!rows.id || !rows.copies || !isFreeBefore(rows.id, rows.copies))
    return std::nullopt;
  rows.last = dyn_cast_or_null<scf::ForOp>(lastReader(rows.copies));
  if (!rows.last || rows.last == rows.copies ||
      !countsAlike(rows.last, rows.copies) ||
      !readsInTurn(rows.last, rows.copies))
    return std::nullopt;
  return rows;
}

/// A loop over the rows of an instance around all behind the copies.
scf::ForOp wrap(Rows &rows, int64_t instances) {
  Block &body = *rows.id->getBlock();
  SmallVector<Operation *> moved;
  for (Operation *op = rows.copies->getNextNode(); op != body.getTerminator();
       op = op->getNextNode())
    moved.push_back(op);
  OpBuilder b(body.getTerminator());
  Location loc = rows.last.getLoc();
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(b, loc, rows.id.getResult(),
                                 constant(rows.count), constant(instances));
  for (Operation *op : moved)
    op->moveBefore(loop.getBody()->getTerminator());
  rows.id.getResult().replaceUsesWithIf(
      loop.getInductionVar(),
      [&](OpOperand &use) { return loop->isProperAncestor(use.getOwner()); });
  return loop;
}

/// At the end of each turn of the last walk: the same tile of the next row, if
/// there is one.
void copyNext(Rows &rows, scf::ForOp loop) {
  OpBuilder b(rows.last.getBody()->getTerminator());
  Location loc = rows.last.getLoc();
  Value next = arith::AddIOp::create(b, loc, loop.getInductionVar(),
                                     loop.getStep());
  Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, next,
                                      loop.getUpperBound());
  auto branch = scf::IfOp::create(b, loc, isOne, /*withElseRegion=*/false);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  IRMapping mapping;
  mapping.map(rows.id.getResult(), next);
  mapping.map(rows.copies.getInductionVar(), rows.last.getInductionVar());
  for (Operation &op : rows.copies.getBody()->without_terminator())
    b.clone(op, mapping);
}

} // namespace

std::optional<int64_t> charonia::gpu::persistRows(func::FuncOp function,
                                                  const GpuTarget &target,
                                                  int64_t residents) {
  std::optional<Rows> rows = findRows(function);
  if (!rows)
    return std::nullopt;
  int64_t rounds =
      llvm::divideCeil(rows->count, residents * target.multiprocessors);
  if (rounds < 2)
    return std::nullopt;
  int64_t instances = llvm::divideCeil(rows->count, rounds);
  copyNext(*rows, wrap(*rows, instances));
  MLIRContext *context = function.getContext();
  function->setAttr(
      tile::kGridAttr,
      AffineMapAttr::get(AffineMap::getConstantMap(instances, context)));
  return instances;
}
