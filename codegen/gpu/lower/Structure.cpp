// Blocks, loops and branches: they carry the values of a tile's registers.
#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/lower/Lowering.h"
#include "codegen/gpu/lower/ToPtx.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using tile::isTile;

LogicalResult KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>() && failed(lower(&op)))
      return failure();
  endChain();
  return success();
}

/// ptxas unrolls a loop unless it is told not to.
static void keepRolled(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto disable = BoolAttr::get(context, true);
  auto unroll =
      LLVM::LoopUnrollAttr::get(context, disable, {}, {}, {}, {}, {}, {});
  loop->setAttr(kLoopAnnotationAttr, LLVM::LoopAnnotationAttr::get(
                                         context, {}, {}, {}, unroll, {}, {},
                                         {}, {}, {}, {}, {}, {}, {}, {}, {}));
}

/// Whether dots alone read the value, which take words.
static bool isReadInWords(Value tile) {
  constexpr unsigned wordBits = 32;
  return simt::elementBits(getElementTypeOrSelf(tile.getType())) < wordBits &&
         !tile.use_empty() &&
         llvm::all_of(tile.getUsers(), llvm::IsaPred<simt::WarpgroupDotOp>);
}

LogicalResult KernelLowering::lowerOp(scf::ForOp op) {
  SmallVector<Value> inits;
  SmallVector<unsigned> counts;
  SmallVector<bool> isPacked;
  for (auto [init, carried] :
       llvm::zip(op.getInitArgs(), op.getRegionIterArgs())) {
    isPacked.push_back(isTile(init) && (tiles.find(init)->second.packed ||
                                        isReadInWords(carried)));
    Values values = isPacked.back() ? packed(init) : flatten(init);
    counts.push_back(values.size());
    llvm::append_range(inits, values);
  }
  auto lookup = [&](Value v) { return scalars.lookupOrDefault(v); };
  Value low = lookup(op.getLowerBound());
  auto loop =
      scf::ForOp::create(b, op.getLoc(), low, lookup(op.getUpperBound()),
                         lookup(op.getStep()), inits);
  if (op->hasAttr(kWrittenOutAttr))
    keepRolled(loop);
  OpBuilder::InsertionGuard guard(b);
  Block *body = loop.getBody();
  if (!body->empty())
    body->getTerminator()->erase();
  b.setInsertionPointToEnd(body);
  index->enterScope();
  scalars.map(op.getInductionVar(), loop.getInductionVar());
  auto bindAll = [&](ValueRange old, ValueRange with) {
    unsigned at = 0;
    for (auto [i, value] : llvm::enumerate(old)) {
      bind(value, with.slice(at, counts[i]));
      if (isTile(value))
        tiles[value].packed = isPacked[i];
      at += counts[i];
    }
  };
  bindAll(op.getRegionIterArgs(), loop.getRegionIterArgs());
  if (failed(lowerBlock(*op.getBody())))
    return failure();
  SmallVector<Value> yields;
  for (auto [i, value] :
       llvm::enumerate(op.getBody()->getTerminator()->getOperands()))
    llvm::append_range(yields, !isTile(value) ? flatten(value)
                               : isPacked[i]  ? packed(value)
                                              : elements(value));
  scf::YieldOp::create(b, op.getLoc(), yields);
  index->leaveScope();
  bindAll(op.getResults(), loop.getResults());
  return success();
}

LogicalResult KernelLowering::lowerOp(scf::IfOp op) {
  SmallVector<Type> types;
  SmallVector<unsigned> counts;
  for (Value result : op.getResults()) {
    unsigned count =
        isTile(result) ? simt::layoutOf(result).inSize(Dim::Register) : 1;
    counts.push_back(count);
    types.append(count, isTile(result) ? scalarType(result) : result.getType());
  }
  auto branch = scf::IfOp::create(b, op.getLoc(), types,
                                  scalars.lookupOrDefault(op.getCondition()),
                                  !op.getElseRegion().empty());
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip(op->getRegions(), branch->getRegions())) {
    if (from.empty())
      continue;
    if (!to.front().empty())
      to.front().getTerminator()->erase();
    b.setInsertionPointToEnd(&to.front());
    index->enterScope();
    if (failed(lowerBlock(from.front())))
      return failure();
    SmallVector<Value> yields;
    for (Value value : from.front().getTerminator()->getOperands())
      llvm::append_range(yields,
                         isTile(value) ? elements(value) : flatten(value));
    scf::YieldOp::create(b, op.getLoc(), yields);
    index->leaveScope();
  }
  unsigned at = 0;
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    bind(result, branch.getResults().slice(at, counts[i]));
    at += counts[i];
  }
  return success();
}
