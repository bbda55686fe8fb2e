// Stores of pieces, past the caches or not, and atomics.
#include "codegen/cpu/AccessScopes.h"
#include "codegen/cpu/KernelEmitter.h"

using namespace charonia;
using namespace charonia::cpu;
using tile::AccessOp;

/// Whether no result that goes past the caches at some sizes alone does so at
/// these, as an i1; null where there are none of that kind. Of several each is
/// asked.
Value *KernelEmitter::findCached() {
  SymbolValues symbols;
  for (mlir::BlockArgument argument : function.getArguments())
    if (argument.getType().isIndex()) {
      symbols.values.push_back({scalar(argument)});
      symbols.depth.push_back(0);
      symbols.ranges.push_back(tile::rangeOf(argument));
    }
  Value *all = nullptr;
  for (mlir::BlockArgument argument : function.getArguments()) {
    auto sizes = function.getArgAttrOfType<mlir::AffineMapAttr>(
        argument.getArgNumber(), tile::kStreamedAttr);
    if (!sizes)
      continue;
    Value *own = i64(0);
    for (mlir::AffineExpr expr : sizes.getValue().getResults())
      own = b.CreateOr(
          own, evaluate(expr, {}, symbols, laneFacts({}, symbols)).scalar);
    own = b.CreateLShr(own, 63);
    cachedAt[argument] = own;
    all = all ? b.CreateAnd(all, own) : own;
  }
  // The body for it tells.
  if (cachedAt.size() == 1)
    cachedAt.clear();
  return all ? b.CreateICmpNE(all, i64(0)) : nullptr;
}

/// Whether a piece goes past the caches: a whole register of a result that is
/// marked so, at these sizes.
bool KernelEmitter::isStreamed(tile::StoreOp op, Value *value) {
  auto buffer = llvm::dyn_cast<mlir::BlockArgument>(op.getBuffer());
  mlir::Attribute when =
      buffer ? function.getArgAttr(buffer.getArgNumber(), tile::kStreamedAttr)
             : mlir::Attribute();
  return when && !(isCached && llvm::isa<mlir::AffineMapAttr>(when)) &&
         value->getType()->getPrimitiveSizeInBits() ==
             vectorLanes(isa) * b.getFloatTy()->getPrimitiveSizeInBits();
}

/// Such a store needs an address that is a multiple of its size, which buffers
/// of callers need not give; `cached`, where it is not null, has to be 0.
void KernelEmitter::storeStreamed(Value *value, Value *address,
                                  llvm::Align align, llvm::MDNode *own,
                                  Value *cached) {
  uint64_t bytes = value->getType()->getPrimitiveSizeInBits() / 8;
  auto *past = llvm::BasicBlock::Create(context, "past", kernel);
  auto *plain = llvm::BasicBlock::Create(context, "plain", kernel);
  auto *next = llvm::BasicBlock::Create(context, "stored", kernel);
  Value *rest =
      b.CreateAnd(b.CreatePtrToInt(address, b.getInt64Ty()), i64(bytes - 1));
  if (cached)
    rest = b.CreateOr(rest, cached);
  b.CreateCondBr(b.CreateICmpEQ(rest, i64(0)), past, plain);
  b.SetInsertPoint(past);
  llvm::StoreInst *store =
      b.CreateAlignedStore(value, address, llvm::Align(bytes));
  store->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(context, llvm::ConstantAsMetadata::get(b.getInt32(1))));
  withScopes(store, own, nullptr);
  b.CreateBr(next);
  b.SetInsertPoint(plain);
  withScopes(b.CreateAlignedStore(value, address, align), own, nullptr);
  b.CreateBr(next);
  b.SetInsertPoint(next);
  streams = true;
}

/// The lanes of a mask, of which `whole` says that they are all (null:
/// unknown). Without AVX-512 a masked store takes an AMD machine as long as a
/// dozen others; most are of whole vectors, but for the last of a row.
void KernelEmitter::storeLanes(Value *value, Value *address, llvm::Align align,
                               Value *mask, Value *whole, llvm::MDNode *own) {
  auto storeMasked = [&] {
    withScopes(b.CreateMaskedStore(value, address, align, mask), own, nullptr);
  };
  if (hasAvx512(isa) || llvm::isa<llvm::Constant>(mask))
    return storeMasked();
  auto *all = llvm::BasicBlock::Create(context, "whole", kernel);
  auto *some = llvm::BasicBlock::Create(context, "some", kernel);
  auto *after = llvm::BasicBlock::Create(context, "stored", kernel);
  b.CreateCondBr(whole ? whole : b.CreateAndReduce(mask), all, some);
  b.SetInsertPoint(all);
  withScopes(b.CreateAlignedStore(value, address, align), own, nullptr);
  b.CreateBr(after);
  b.SetInsertPoint(some);
  storeMasked();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void KernelEmitter::storePiece(tile::StoreOp op, int64_t row, int64_t chunk,
                               Value *value, int64_t innermost) {
  PiecePlace at = place(AccessOp::get(op), innermost, row, chunk);
  mlir::Type element =
      llvm::cast<mlir::RankedTensorType>(op.getValue().getType())
          .getElementType();
  int64_t bytes = memoryBytes(element);
  llvm::Align align(bytes);
  llvm::MDNode *own = storeScopes.lookup(op);
  value = toMemory(value, element);

  Value *mask = at.guard.mask;
  if (at.valid < at.width)
    mask = conjunction(b, mask, laneMask(at.valid, at.width));
  if (at.width == 1 || at.stride == 1) {
    Value *address = at.base;
    if (at.guard.scalar)
      address = b.CreateSelect(at.guard.scalar, address, dump());
    if (!mask) {
      if (isStreamed(op, value))
        storeStreamed(value, address, align, own,
                      cachedAt.lookup(op.getBuffer()));
      else
        withScopes(b.CreateAlignedStore(value, address, align), own, nullptr);
      return;
    }
    llvm::SmallVector<Value *> parts =
        registerParts(mask, at.guard.leading, bytes);
    int64_t width = at.width / parts.size();
    Value *whole = nullptr;
    if (at.guard.end && parts.size() == 1 && mask == at.guard.mask) {
      whole = b.CreateICmpEQ(at.guard.end, b.getInt32(width));
      if (at.guard.first)
        whole =
            b.CreateAnd(whole, b.CreateICmpEQ(at.guard.first, b.getInt32(0)));
    }
    for (auto [i, part] : llvm::enumerate(parts)) {
      Value *to = b.CreateConstGEP1_64(value->getType()->getScalarType(),
                                       address, i * width);
      if (part)
        storeLanes(lanesOf(value, i * width, width), to, align, part, whole,
                   own);
    }
    return;
  }
  if (at.guard.scalar)
    mask = conjunction(b, mask, splat(at.guard.scalar, at.width));
  if (hasAvx512(isa) && bytes >= 4) {
    Value *addresses = b.CreateGEP(value->getType()->getScalarType(), at.base,
                                   laneOffsets(at.offsets, at.width));
    withScopes(
        b.CreateMaskedScatter(value, addresses, align,
                              mask ? mask : laneMask(at.width, at.width)),
        own, nullptr);
    return;
  }
  for (int64_t i = 0; i < at.valid; ++i) {
    Value *address = b.CreateGEP(value->getType()->getScalarType(), at.base,
                                 laneOffset(at.offsets, i));
    if (mask)
      address =
          b.CreateSelect(b.CreateExtractElement(mask, i), address, dump());
    withScopes(
        b.CreateAlignedStore(b.CreateExtractElement(value, i), address, align),
        own, nullptr);
  }
}

/// Into the second-level cache: what is prefetched is wanted some tiles later.
void KernelEmitter::emitPrefetch(tile::PrefetchOp op) {
  AccessOp access = AccessOp::get(op);
  const AccessPlan &rowPlan = plan(access);
  SymbolValues symbols =
      symbolValues(access.symbols, {}, 0, Geometry(access.tile, lanes));
  Value *address = pointer(rowPlan, {}, symbols, nullptr);
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                    {address, b.getInt32(0), b.getInt32(2), b.getInt32(1)});
}
