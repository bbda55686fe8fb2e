#include "codegen/cpu/KernelEmitter.h"
#include "codegen/cpu/Target.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"

using namespace charonia;
using namespace charonia::cpu;
using tile::isTile;

/// Lanes of a chunk: of elements of 32 bits as many as a vector has. Where a
/// kernel does nothing but compute bytes from bytes that lie side by side, as
/// many of them, if whole chunks make up its tiles.
static int64_t lanesFor(mlir::func::FuncOp function, CpuIsa isa) {
  int64_t usual = vectorLanes(isa), ofBytes = usual * sizeof(float);
  auto isOfBytes = [&](mlir::Value value) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
    if (!type)
      return true;
    int64_t inner = type.getRank() == 0 ? 1 : type.getShape().back();
    mlir::Type element = type.getElementType();
    return element.isIntOrFloat() && element.getIntOrFloatBitWidth() <= 8 &&
           (inner % ofBytes == 0 || inner <= usual);
  };
  auto isSideBySide = [](const tile::AccessOp &access) {
    int64_t axes = access.tile.getRank();
    std::optional<int64_t> stride =
        axes == 0 ? 0 : tile::analyzeAxis(access, axes - 1).stride;
    return stride == 0 || stride == 1;
  };
  bool all = true;
  function.walk([&](mlir::Operation *op) {
    if (llvm::none_of(op->getOperands(), isTile) &&
        llvm::none_of(op->getResults(), isTile))
      return;
    all &= llvm::all_of(op->getOperands(), isOfBytes) &&
           llvm::all_of(op->getResults(), isOfBytes);
    if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
      all &= isSideBySide(tile::AccessOp::get(load));
    else if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
      all &= isSideBySide(tile::AccessOp::get(store));
    else
      all &= mlir::OpTrait::hasElementwiseMappableTraits(op) ||
             llvm::isa<mlir::arith::ConstantOp>(op);
  });
  return all ? ofBytes : usual;
}

KernelEmitter::KernelEmitter(mlir::func::FuncOp function, CpuIsa isa,
                             llvm::Module &module, llvm::TargetMachine &machine)
    : function(function), isa(isa), lanes(lanesFor(function, isa)),
      module(module), machine(machine), context(module.getContext()),
      b(context) {}

//===----------------------------------------------------------------------===//
// Types and small helpers
//===----------------------------------------------------------------------===//

llvm::Type *KernelEmitter::elementType(mlir::Type type) {
  if (type.isF32())
    return b.getFloatTy();
  if (type.isF64())
    return b.getDoubleTy();
  if (type.isF16() || type.isBF16())
    return b.getInt16Ty();
  if (type.isIndex())
    return b.getInt64Ty();
  if (llvm::isa<mlir::FloatType>(type) && type.getIntOrFloatBitWidth() == 8)
    return b.getInt8Ty();
  if (auto integer = llvm::dyn_cast<mlir::IntegerType>(type))
    return b.getIntNTy(integer.getWidth());
  fail(function, "elements of a type that the CPU code does not know");
  return b.getInt8Ty();
}

llvm::Type *KernelEmitter::memoryType(mlir::Type element) {
  return element.isInteger(1) ? b.getInt8Ty() : elementType(element);
}

int64_t KernelEmitter::memoryBytes(mlir::Type element) {
  return llvm::divideCeil(
      memoryType(element)->getPrimitiveSizeInBits().getFixedValue(), 8);
}

llvm::Type *KernelEmitter::pieceType(llvm::Type *element, int64_t width) {
  return width == 1 ? element : llvm::FixedVectorType::get(element, width);
}

Value *KernelEmitter::splat(Value *scalar, int64_t width) {
  return width == 1 ? scalar : b.CreateVectorSplat(width, scalar);
}

Value *KernelEmitter::lane(Value *piece, int64_t index) {
  return piece->getType()->isVectorTy() ? b.CreateExtractElement(piece, index)
                                        : piece;
}

Value *KernelEmitter::stepVector(llvm::Type *element, int64_t width,
                                 int64_t scale) {
  llvm::SmallVector<llvm::Constant *> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(llvm::ConstantInt::get(element, i * scale));
  return llvm::ConstantVector::get(values);
}

Value *KernelEmitter::laneMask(int64_t valid, int64_t width) {
  if (width == 1)
    return b.getInt1(valid > 0);
  llvm::SmallVector<llvm::Constant *> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(b.getInt1(i < valid));
  return llvm::ConstantVector::get(values);
}

/// Addresses in the caller's scratch, aligned to 64 bytes.
Value *KernelEmitter::allocateScratch(uint64_t bytes) {
  uint64_t offset = scratchSize;
  scratchSize += llvm::alignTo(bytes, 64);
  llvm::IRBuilder<> entry(&*kernel->getEntryBlock().getFirstInsertionPt());
  return entry.CreateConstInBoundsGEP1_64(b.getInt8Ty(), scratch, offset);
}

/// Remembers the first failure; the value given keeps the emitter going.
Value *KernelEmitter::fail(mlir::Operation *op, const llvm::Twine &message,
                           llvm::Type *type) {
  if (!failedOp) {
    failedOp = op;
    failure = message.str();
  }
  return type ? llvm::PoisonValue::get(type) : nullptr;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

static bool isRoot(mlir::Operation *op) {
  return llvm::isa<tile::StoreOp, tile::SortOp>(op) ||
         (op->getNumRegions() > 0 &&
          !llvm::isa<tile::ReduceOp, tile::ScanOp>(op));
}

/// The loads that a root's effects depend on, in its own block or around it.
static void collectLoads(mlir::Operation *root,
                         llvm::SetVector<mlir::Operation *> &seen) {
  llvm::SmallVector<mlir::Operation *> work;
  auto push = [&](mlir::Value value) {
    if (mlir::Operation *op = value.getDefiningOp()) {
      if (seen.insert(op))
        work.push_back(op);
    } else {
      mlir::Operation *parent =
          llvm::cast<mlir::BlockArgument>(value).getOwner()->getParentOp();
      if (parent && !llvm::isa<mlir::func::FuncOp>(parent) &&
          seen.insert(parent))
        work.push_back(parent);
    }
  };
  for (mlir::Value operand : root->getOperands())
    push(operand);
  root->walk([&](mlir::Operation *inner) {
    if (inner != root)
      for (mlir::Value operand : inner->getOperands())
        push(operand);
  });
  while (!work.empty()) {
    mlir::Operation *op = work.pop_back_val();
    for (mlir::Value operand : op->getOperands())
      push(operand);
    op->walk([&](mlir::Operation *inner) {
      if (inner != op)
        for (mlir::Value operand : inner->getOperands())
          push(operand);
    });
  }
}

/// A load may share memory with a store only where the store's value needs it
/// first, element by element (in-place results), so the two may be kept apart.
/// Not so what a kernel reads of the very buffer that it writes.
static void
nameAliases(mlir::func::FuncOp function, llvm::LLVMContext &context,
            llvm::DenseMap<mlir::Operation *, llvm::MDNode *> &scopes,
            llvm::DenseMap<mlir::Operation *, llvm::MDNode *> &noalias) {
  llvm::MDBuilder builder(context);
  llvm::MDNode *domain = builder.createAnonymousAliasScopeDomain("stores");
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<llvm::Metadata *>> apart;
  function.walk([&](tile::LoadOp load) { apart[load]; });
  function.walk([&](mlir::Operation *store) {
    if (!llvm::isa<tile::StoreOp>(store))
      return;
    llvm::MDNode *scope = builder.createAnonymousAliasScope(domain, "store");
    scopes[store] = llvm::MDNode::get(context, {scope});
    llvm::SetVector<mlir::Operation *> needed;
    collectLoads(store, needed);
    for (auto &[load, list] : apart)
      if (auto own = llvm::cast<tile::LoadOp>(load);
          own.getBuffer() != llvm::cast<tile::StoreOp>(store).getBuffer() &&
          (own.getIndependent() || needed.contains(load)))
        list.push_back(scope);
  });
  for (auto &[load, list] : apart)
    if (!list.empty())
      noalias[load] = llvm::MDNode::get(context, list);
}

bool KernelEmitter::run() {
  llvm::Type *pointer = b.getPtrTy(), *integer = b.getInt64Ty();
  auto *type = llvm::FunctionType::get(
      b.getVoidTy(), {pointer, pointer, integer, integer, pointer}, false);
  kernel = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                  function.getSymName(), module);
  setFunctionAttributes(*kernel, machine);
  for (unsigned i : {0, 1, 4}) {
    kernel->addParamAttr(i, llvm::Attribute::NoAlias);
    kernel->addParamAttr(i, llvm::Attribute::getWithCaptureInfo(
                                context, llvm::CaptureInfo::none()));
  }
  kernel->addParamAttr(
      4, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  nameAliases(function, context, storeScopes, noalias);

  auto *entry = llvm::BasicBlock::Create(context, "entry", kernel);
  b.SetInsertPoint(entry);
  scratch = kernel->getArg(4);
  unsigned buffers = 0, symbols = 0;
  for (mlir::BlockArgument argument : function.getArguments()) {
    if (llvm::isa<tile::BufferType>(argument.getType())) {
      Value *slot =
          b.CreateConstInBoundsGEP1_64(pointer, kernel->getArg(0), buffers++);
      scalars[argument] = b.CreateAlignedLoad(pointer, slot, llvm::Align(8));
    } else {
      Value *slot =
          b.CreateConstInBoundsGEP1_64(integer, kernel->getArg(1), symbols++);
      scalars[argument] = b.CreateAlignedLoad(integer, slot, llvm::Align(8));
    }
  }
  emitBodies();
  b.CreateRetVoid();

  if (zeroBlock) {
    llvm::Type *bytes = llvm::ArrayType::get(b.getInt8Ty(), zeroBytes);
    auto *block = new llvm::GlobalVariable(
        module, bytes, true, llvm::GlobalValue::PrivateLinkage,
        llvm::Constant::getNullValue(bytes), "zeros");
    block->setAlignment(llvm::Align(64));
    zeroBlock->replaceAllUsesWith(block);
    zeroBlock->eraseFromParent();
  }
  return !failedOp;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void KernelEmitter::emitBlock(mlir::Block &block) {
  for (auto it = block.begin(); it != block.end(); ++it) {
    if (failedOp)
      return;
    mlir::Operation *op = &*it;
    if (auto store = llvm::dyn_cast<tile::StoreOp>(op)) {
      // Stores of one shape that follow each other are written piece by piece
      // together, so that what they share does not have to live as a whole.
      llvm::SmallVector<tile::StoreOp> group{store};
      auto shape =
          llvm::cast<mlir::RankedTensorType>(store.getValue().getType())
              .getShape();
      for (auto ahead = std::next(it); ahead != block.end(); ++ahead) {
        if (!isRoot(&*ahead))
          continue;
        auto other = llvm::dyn_cast<tile::StoreOp>(*ahead);
        if (!other ||
            llvm::cast<mlir::RankedTensorType>(other.getValue().getType())
                    .getShape() != shape)
          break;
        group.push_back(other);
      }
      // Scalars between the stores are wanted first.
      for (auto between = it; &*between != group.back().getOperation();
           ++between)
        emitScalarOp(&*between);
      emitEarlierLoads(llvm::to_vector_of<mlir::Operation *>(group));
      emitStores(group);
      it = group.back()->getIterator();
      continue;
    }
    if (auto local = llvm::dyn_cast<tile::LocalOp>(op)) {
      int64_t each = memoryBytes(local.getBuffer().getType().getElementType());
      scalars[local.getBuffer()] = allocateScratch(local.getElements() * each);
      continue;
    }
    if (auto prefetch = llvm::dyn_cast<tile::PrefetchOp>(op)) {
      emitPrefetch(prefetch);
      continue;
    }
    if (auto loop = llvm::dyn_cast<mlir::scf::ForOp>(op)) {
      emitEarlierLoads({op});
      emitFor(loop);
      continue;
    }
    if (auto conditional = llvm::dyn_cast<mlir::scf::IfOp>(op)) {
      emitEarlierLoads({op});
      emitIf(conditional);
      continue;
    }
    if (llvm::isa<mlir::func::ReturnOp, mlir::scf::YieldOp>(op))
      continue;
    if (auto sort = llvm::dyn_cast<tile::SortOp>(op)) {
      emitSort(sort);
      continue;
    }
    if (op->getNumRegions() > 0 &&
        !llvm::isa<tile::ReduceOp, tile::ScanOp>(op)) {
      fail(op, "no machine code for this operator on the CPU");
      return;
    }
    emitScalarOp(op);
  }
}

/// Scalars are written where they stand, tiles on demand.
void KernelEmitter::emitScalarOp(mlir::Operation *op) {
  if (op->getNumResults() != 1 || isTile(op->getResult(0)) || isRoot(op))
    return;
  mlir::Value result = op->getResult(0);
  if (scalars.contains(result))
    return;
  if (llvm::isa<tile::ProgramIdOp>(op)) {
    scalars[result] = programId;
    return;
  }
  llvm::SmallVector<Value *> operands;
  for (mlir::Value operand : op->getOperands())
    operands.push_back(scalar(operand));
  scalars[result] = emitElementwise(op, operands, 1);
}

Value *KernelEmitter::scalar(mlir::Value value) {
  Value *found = scalars.lookup(value);
  assert(found && "scalars are written before what uses them");
  return found;
}

void KernelEmitter::emitStores(llvm::ArrayRef<tile::StoreOp> group) {
  tile::StoreOp one = group.front();
  for (tile::StoreOp store : group)
    if (store.getUpdate()) {
      fail(store, "a CPU does not update what several program instances share");
      return;
    }
  Geometry shape = geometry(one.getValue());
  llvm::SmallVector<int64_t> dense;
  for (tile::StoreOp store : group)
    dense.push_back(denseAxis(tile::AccessOp::get(store)));
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t chunk = 0; chunk < shape.chunks(); ++chunk)
      for (auto [store, axis] : llvm::zip_equal(group, dense))
        if (tile::StoreOp own = store; axis < 0)
          storePiece(own, row, chunk, piece(own.getValue(), row, chunk));
  for (auto [store, axis] : llvm::zip_equal(group, dense))
    if (axis >= 0)
      storeTransposed(store, axis);
}

/// Loads that stand before these roots and are needed after them, but not by
/// them, must read before their stores write.
void KernelEmitter::emitEarlierLoads(llvm::ArrayRef<mlir::Operation *> roots) {
  bool writes = false;
  for (mlir::Operation *root : roots)
    root->walk(
        [&](mlir::Operation *op) { writes |= llvm::isa<tile::StoreOp>(op); });
  if (!writes)
    return;
  llvm::SetVector<mlir::Operation *> before, after;
  collectLoads(roots.front(), before);
  // Of a group, what the later stores need and the first does not is read first
  // too.
  for (mlir::Operation *root : roots.drop_front())
    collectLoads(root, after);
  for (mlir::Operation *op = roots.back()->getNextNode(); op;
       op = op->getNextNode())
    if (isRoot(op) || op->hasTrait<mlir::OpTrait::IsTerminator>())
      collectLoads(op, after);
  for (mlir::Operation *op : after) {
    auto load = llvm::dyn_cast<tile::LoadOp>(op);
    if (load && !load.getIndependent() && !before.contains(op) &&
        op->getBlock() == roots.front()->getBlock() &&
        op->isBeforeInBlock(roots.front()))
      emitWhole(load.getResult());
  }
}

void KernelEmitter::emitWhole(mlir::Value tile) {
  Geometry shape = geometry(tile);
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t chunk = 0; chunk < shape.chunks(); ++chunk)
      piece(tile, row, chunk);
}
