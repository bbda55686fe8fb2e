// Loops and branches: what they carry and what they use from outside.
#include "codegen/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace charonia;
using namespace charonia::cpu;
using tile::isTile;

/// A scalar, or all pieces of a tile.
llvm::SmallVector<Value *> KernelEmitter::allParts(mlir::Value value) {
  if (!isTile(value))
    return {scalar(value)};
  llvm::SmallVector<Value *> parts;
  Geometry shape = geometry(value);
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t chunk = 0; chunk < shape.chunks(); ++chunk)
      parts.push_back(piece(value, row, chunk));
  return parts;
}

void KernelEmitter::bindParts(mlir::Value value,
                              llvm::ArrayRef<Value *> parts) {
  if (!isTile(value)) {
    scalars[value] = parts[0];
    return;
  }
  for (auto [i, part] : llvm::enumerate(parts))
    setPiece(value, i, part);
}

/// What is cheaper to write again inside a region than to keep alive through
/// it.
static bool isCheap(mlir::Operation *op) {
  return llvm::isa<tile::SplatOp, tile::IndexOp, tile::InBoundsOp,
                   tile::BroadcastOp, mlir::arith::ConstantOp>(op);
}

/// Tiles from outside that a region uses are written before it.
void KernelEmitter::emitCaptured(mlir::Operation *regionOp) {
  llvm::SetVector<mlir::Value> captured;
  llvm::SetVector<mlir::Value> multiplied; // as the left side of a product
  bool writes = false;
  regionOp->walk([&](mlir::Operation *inner) {
    writes |= llvm::isa<tile::StoreOp>(inner);
    if (inner == regionOp)
      return;
    for (mlir::OpOperand &operand : inner->getOpOperands()) {
      mlir::Operation *definition = operand.get().getDefiningOp();
      if (!isTile(operand.get()) || !definition ||
          regionOp->isAncestor(definition))
        continue;
      if (llvm::isa<tile::DotOp>(inner) && operand.getOperandNumber() == 0)
        multiplied.insert(operand.get());
      else
        captured.insert(operand.get());
    }
  });
  for (mlir::Value value : multiplied)
    prepareLeft(value, /*memoryMayChange=*/writes);
  for (size_t i = 0; i < captured.size(); ++i) {
    mlir::Value value = captured[i];
    mlir::Operation *op = value.getDefiningOp();
    if (!isCheap(op)) {
      if (!stageCaptured(value, regionOp))
        emitWhole(value);
      continue;
    }
    for (mlir::Value operand : op->getOperands())
      if (isTile(operand) && operand.getDefiningOp())
        captured.insert(operand);
  }
}

/// Whether a carried tile would only wait in registers while an inner loop has
/// more in hand than fits beside it.
bool KernelEmitter::waitsForInner(mlir::scf::ForOp loop,
                                  mlir::BlockArgument carried) {
  if (!isTile(carried))
    return false;
  int64_t most = 0;
  for (auto inner : loop.getBody()->getOps<mlir::scf::ForOp>()) {
    int64_t pieces = 0;
    for (mlir::Value value : inner.getInitArgs()) {
      if (value == carried)
        return false;
      pieces += isTile(value) ? geometry(value).pieces() : 0;
    }
    most = std::max(most, pieces);
  }
  for (mlir::Operation *user : carried.getUsers())
    if (user->getBlock() != loop.getBody())
      return false;
  return most > 0 && most + geometry(carried).pieces() > accumulators();
}

/// A place in the scratch for a tile, which holds these pieces to begin with.
KernelEmitter::Parked KernelEmitter::park(llvm::ArrayRef<Value *> parts) {
  Parked parked{nullptr, 0, {}};
  for (Value *part : parts) {
    parked.types.push_back(part->getType());
    parked.pieceBytes = std::max<int64_t>(
        parked.pieceBytes,
        module.getDataLayout().getTypeAllocSize(part->getType()));
  }
  parked.base = allocateScratch(parts.size() * parked.pieceBytes);
  storeParked(parked, parts);
  return parked;
}

/// Accesses are volatile, or LLVM would put the tile back into registers that
/// are not there, and spill it to places across lines of the cache.
void KernelEmitter::storeParked(const Parked &parked,
                                llvm::ArrayRef<Value *> parts, int64_t first) {
  for (auto [i, part] : llvm::enumerate(parts)) {
    Value *address = b.CreateConstInBoundsGEP1_64(
        b.getInt8Ty(), parked.base, (first + i) * parked.pieceBytes);
    b.CreateAlignedStore(part, address, llvm::Align(parked.pieceBytes),
                         /*isVolatile=*/true);
  }
}

Value *KernelEmitter::loadParked(const Parked &parked, int64_t index) {
  Value *address = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), parked.base,
                                                index * parked.pieceBytes);
  return b.CreateAlignedLoad(parked.types[index], address,
                             llvm::Align(parked.pieceBytes),
                             /*isVolatile=*/true);
}

/// A value that a loop carries: in registers, or parked.
struct KernelEmitter::Carried {
  mlir::BlockArgument argument;
  mlir::Value result;
  llvm::SmallVector<Value *> initial, yielded;
  llvm::SmallVector<llvm::PHINode *> phis;
  std::optional<Parked> parked;
  bool inPlace = false; ///< The body adds to what is parked.
};

void KernelEmitter::emitFor(mlir::scf::ForOp loop) {
  emitCaptured(loop);
  std::vector<Carried> carried;
  for (auto [init, argument, result] : llvm::zip_equal(
           loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults())) {
    Carried &one = carried.emplace_back();
    one.argument = argument;
    one.result = result;
    one.initial = allParts(init);
    one.inPlace = addsInPlace(loop, argument);
    if (one.inPlace || waitsForInner(loop, argument))
      one.parked = park(one.initial);
  }
  Value *lower = scalar(loop.getLowerBound()),
        *upper = scalar(loop.getUpperBound());
  Value *step = scalar(loop.getStep());

  auto *before = b.GetInsertBlock();
  auto *body = llvm::BasicBlock::Create(context, "loop", kernel);
  auto *after = llvm::BasicBlock::Create(context, "loop.end", kernel);
  // Loops are entered through a guard and test at the bottom: so their
  // invariant loads can move out.
  b.CreateCondBr(b.CreateICmpSLT(lower, upper), body, after);

  b.SetInsertPoint(body);
  scopes.emplace_back();
  llvm::PHINode *index = b.CreatePHI(lower->getType(), 2);
  index->addIncoming(lower, before);
  scalars[loop.getInductionVar()] = index;
  for (Carried &one : carried)
    enter(one, before);
  emitBlock(*loop.getBody());
  if (failedOp)
    return;
  for (auto [one, value] : llvm::zip_equal(carried, loop.getYieldedValues()))
    if (one.inPlace)
      emitDot(llvm::cast<tile::DotOp>(value.getDefiningOp()), true);
    else
      one.yielded = allParts(value);
  for (Carried &one : carried)
    if (one.parked && !one.inPlace)
      storeParked(*one.parked, one.yielded);
  scopes.pop_back();
  Value *next = b.CreateAdd(index, step, "", /*HasNUW=*/false, /*HasNSW=*/true);
  auto *latch = b.GetInsertBlock();
  index->addIncoming(next, latch);
  b.CreateCondBr(b.CreateICmpSLT(next, upper), body, after);
  b.SetInsertPoint(after);
  for (Carried &one : carried)
    leave(one, before, latch);
}

/// What the body of a loop sees of a carried value.
void KernelEmitter::enter(Carried &carried, llvm::BasicBlock *before) {
  if (carried.parked) {
    scopes.back().parked[carried.argument] = *carried.parked;
    return;
  }
  for (Value *part : carried.initial) {
    carried.phis.push_back(b.CreatePHI(part->getType(), 2));
    carried.phis.back()->addIncoming(part, before);
  }
  bindParts(carried.argument, llvm::to_vector_of<Value *>(carried.phis));
}

/// What follows a loop sees of it; `before` and `latch` lead there.
void KernelEmitter::leave(Carried &carried, llvm::BasicBlock *before,
                          llvm::BasicBlock *latch) {
  if (carried.inPlace) {
    scopes.back().parked[carried.result] = *carried.parked;
    return;
  }
  llvm::SmallVector<Value *> values;
  for (auto [i, start] : llvm::enumerate(carried.initial)) {
    if (carried.parked) {
      values.push_back(loadParked(*carried.parked, i));
      continue;
    }
    carried.phis[i]->addIncoming(carried.yielded[i], latch);
    llvm::PHINode *merged = b.CreatePHI(start->getType(), 2);
    merged->addIncoming(start, before);
    merged->addIncoming(carried.yielded[i], latch);
    values.push_back(merged);
  }
  bindParts(carried.result, values);
}

void KernelEmitter::emitIf(mlir::scf::IfOp op) {
  emitCaptured(op);
  Value *condition = scalar(op.getCondition());
  auto *yes = llvm::BasicBlock::Create(context, "then", kernel);
  auto *no = llvm::BasicBlock::Create(context, "else", kernel);
  auto *after = llvm::BasicBlock::Create(context, "if.end", kernel);
  b.CreateCondBr(condition, yes, no);
  llvm::SmallVector<llvm::SmallVector<Value *>> results[2];
  llvm::BasicBlock *ends[2];
  for (int side = 0; side < 2; ++side) {
    b.SetInsertPoint(side == 0 ? yes : no);
    scopes.emplace_back();
    mlir::Region &region = side == 0 ? op.getThenRegion() : op.getElseRegion();
    if (!region.empty()) {
      emitBlock(region.front());
      if (failedOp)
        return;
      for (mlir::Value value : region.front().getTerminator()->getOperands())
        results[side].push_back(allParts(value));
    }
    scopes.pop_back();
    ends[side] = b.GetInsertBlock();
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
  for (auto [result, left, right] :
       llvm::zip_equal(op.getResults(), results[0], results[1])) {
    llvm::SmallVector<Value *> values;
    for (auto [x, y] : llvm::zip_equal(left, right)) {
      llvm::PHINode *merged = b.CreatePHI(x->getType(), 2);
      merged->addIncoming(x, ends[0]);
      merged->addIncoming(y, ends[1]);
      values.push_back(merged);
    }
    bindParts(result, values);
  }
}
