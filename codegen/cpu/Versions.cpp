// The loop over program instances. A kernel that sizes alone choose among
// several bodies has a loop for each, so that what is kept over instances, as
// masks and addresses, is that of one body.
#include "codegen/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace charonia;
using namespace charonia::cpu;
using tile::isTile;

/// Whether a scalar is computed of shape symbols alone, at any sizes.
static bool isOfSizes(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  if (!op)
    return value.getType().isIndex() &&
           llvm::isa<mlir::func::FuncOp>(value.getParentBlock()->getParentOp());
  return !isTile(value) && mlir::isPure(op) &&
         llvm::isa_and_present<mlir::arith::ArithDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperands(), isOfSizes);
}

/// The branch that is all there is in a block, but for values, and that sizes
/// decide; null where there is none.
static mlir::scf::IfOp versionsOf(mlir::Block &block) {
  mlir::scf::IfOp found;
  for (mlir::Operation &op : block.without_terminator()) {
    if (found)
      return {};
    found = llvm::dyn_cast<mlir::scf::IfOp>(op);
    bool isValue = op.getNumResults() > 0 && op.getNumRegions() == 0 &&
                   !llvm::isa<tile::LocalOp>(op);
    if (!found && !isValue)
      return {};
  }
  bool areTwo = found && found.getNumResults() == 0 &&
                !found.getThenRegion().empty() &&
                !found.getElseRegion().empty();
  return areTwo && isOfSizes(found.getCondition()) ? found : mlir::scf::IfOp();
}

void KernelEmitter::emitBodies() {
  mlir::Block *all = &function.getBody().front();
  auto emitBody = [&] {
    streams = false;
    emitVersions({all});
    // Nothing else orders what went past the caches before the kernel's end.
    if (streams)
      b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
  };
  Value *cached = findCached();
  if (!cached)
    return emitBody();
  auto *small = llvm::BasicBlock::Create(context, "cached", kernel);
  auto *large = llvm::BasicBlock::Create(context, "streamed", kernel);
  auto *after = llvm::BasicBlock::Create(context, "bodies.end", kernel);
  b.CreateCondBr(cached, small, large);
  for (llvm::BasicBlock *block : {small, large}) {
    b.SetInsertPoint(block);
    auto outside = scalars;
    isCached = block == small;
    emitBody();
    scalars = std::move(outside);
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
}

void KernelEmitter::emitVersions(llvm::SmallVector<mlir::Block *> path) {
  mlir::scf::IfOp choice = versionsOf(*path.back());
  if (!choice)
    return emitInstances(path);
  for (mlir::Operation &op : path.back()->without_terminator())
    if (op.getNumResults() == 1 && isOfSizes(op.getResult(0)))
      emitScalarOp(&op);
  auto *yes = llvm::BasicBlock::Create(context, "version", kernel);
  auto *no = llvm::BasicBlock::Create(context, "otherwise", kernel);
  auto *after = llvm::BasicBlock::Create(context, "versions.end", kernel);
  b.CreateCondBr(scalar(choice.getCondition()), yes, no);
  path.push_back(nullptr);
  for (auto [block, region] : {std::pair(yes, &choice.getThenRegion()),
                               {no, &choice.getElseRegion()}}) {
    b.SetInsertPoint(block);
    auto outside = scalars;
    path.back() = &region->front();
    emitVersions(path);
    scalars = std::move(outside);
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
}

/// All instances of the last block; each is on a side of a branch in the one
/// before it.
void KernelEmitter::emitInstances(llvm::ArrayRef<mlir::Block *> path) {
  auto *before = b.GetInsertBlock();
  auto *body = llvm::BasicBlock::Create(context, "instance", kernel);
  auto *exit = llvm::BasicBlock::Create(context, "exit", kernel);
  Value *begin = kernel->getArg(2), *end = kernel->getArg(3);
  b.CreateCondBr(b.CreateICmpSLT(begin, end), body, exit);

  b.SetInsertPoint(body);
  llvm::PHINode *instance = b.CreatePHI(b.getInt64Ty(), 2, "pid");
  instance->addIncoming(begin, before);
  programId = instance;
  for (mlir::Block *block : path.drop_back()) {
    scopes.emplace_back();
    for (mlir::Operation &op : block->without_terminator())
      emitScalarOp(&op);
    mlir::Operation *choice = versionsOf(*block);
    emitEarlierLoads({choice});
    emitCaptured(choice);
  }
  scopes.emplace_back();
  emitBlock(*path.back());
  scopes.pop_back_n(path.size());
  Value *next =
      b.CreateAdd(instance, i64(1), "", /*HasNUW=*/true, /*HasNSW=*/true);
  instance->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), body, exit);
  b.SetInsertPoint(exit);
}
