#include "codegen/gpu/Streams.h"
#include "codegen/gpu/LayoutPlan.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

std::optional<AsyncCopy> charonia::gpu::asAsyncCopy(simt::ToSharedOp op) {
  auto load = op.getInput().getDefiningOp<tile::LoadOp>();
  return load ? asAsyncCopy(load, op.getMemory().getType(), false)
              : std::nullopt;
}

std::optional<AsyncCopy> charonia::gpu::asAsyncCopy(tile::LoadOp load,
                                                    simt::MemoryType memory,
                                                    bool mayEnd) {
  for (Value symbol : load.getSymbols())
    if (!symbol.getType().isIndex())
      return std::nullopt;
  const LinearLayout &layout = simt::layoutOf(load);
  unsigned bytes = simt::elementBits(load.getType().getElementType()) / 8;
  tile::AccessOp access = tile::AccessOp::get(load);
  Coalescing best = LayoutPlan::judge(access, tile::analyzeAxes(access), layout,
                                      mayEnd ? &tile::AxisAccess::steppedChecks
                                             : &tile::AxisAccess::endingChecks);
  // What is one element in memory is several here.
  if (best.repeat > 1)
    return std::nullopt;
  // The vector has to be one in shared memory as well.
  LinearLayout offsets = sharedOffsets(layout, memory.getLayout().getLayout());
  SmallVector<unsigned> shared = sharedVector(offsets, best.vector);
  SmallVector<unsigned> global = axisVector(layout, best.axis, best.vector);
  unsigned bits = 0;
  while (bits < shared.size() && bits < global.size() &&
         shared[bits] == global[bits])
    ++bits;
  unsigned vector = 1u << bits;
  if (vector * bytes < 4)
    return std::nullopt;
  return AsyncCopy{load, best.axis, vector};
}

void charonia::gpu::createCopy(OpBuilder &b, tile::LoadOp load,
                               const AsyncCopy &copy, Value memory) {
  simt::CopyAsyncOp::create(
      b, load.getLoc(), load.getBuffer(), load.getSymbols(), memory,
      load.getMapAttr(), load.getShapeAttr(), load.getRankAttr(),
      load.getChecksAttr(),
      cast<simt::LayoutAttr>(
          cast<RankedTensorType>(load.getType()).getEncoding()),
      b.getI64IntegerAttr(copy.axis), b.getI64IntegerAttr(copy.vector),
      load.getIndependentAttr());
}

void charonia::gpu::addGuard(tile::LoadOp load, Value index, Value end) {
  MLIRContext *context = load.getContext();
  unsigned symbols = load.getSymbols().size(),
           results = load.getMap().getNumResults();
  load.getSymbolsMutable().append({index, end});
  auto extend = [&](AffineMap map, unsigned symbol) {
    SmallVector<AffineExpr> exprs(map.getResults());
    exprs.push_back(getAffineSymbolExpr(symbol, context));
    return AffineMap::get(map.getNumDims(), symbols + 2, exprs, context);
  };
  load.setMap(extend(load.getMap(), symbols));
  load.setShape(extend(load.getShape(), symbols + 1));
  SmallVector<int64_t> checks(load.getChecks());
  checks.push_back(results);
  load.setChecks(checks);
}

/// Collects what `value` is computed from inside of `loop`; false if that
/// depends on what the loop carries or on shared memory.
static bool collectSlice(Value value, scf::ForOp loop,
                         llvm::SetVector<Operation *> &slice) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() != loop.getBody() ||
           argument == loop.getInductionVar();
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != loop.getBody())
    return !loop->isAncestor(op);
  if (slice.contains(op))
    return true;
  // What another stream brings.
  if (auto load = dyn_cast<simt::LoadSharedOp>(op)) {
    auto shared = load.getMemory().getDefiningOp<simt::ToSharedOp>();
    if (!shared || shared->getBlock() != loop.getBody() || !asAsyncCopy(shared))
      return false;
    slice.insert(op);
    return true;
  }
  if (isa<simt::DotOp, simt::WarpgroupDotOp, simt::ToSharedOp>(op) ||
      (!isa<tile::LoadOp>(op) && !isMemoryEffectFree(op)))
    return false;
  for (Value operand : op->getOperands())
    if (!collectSlice(operand, loop, slice))
      return false;
  // What a branch takes from around it.
  WalkResult inside = op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()) &&
          !collectSlice(operand, loop, slice))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (inside.wasInterrupted())
    return false;
  slice.insert(op);
  return true;
}

SmallVector<Stream> charonia::gpu::findStreams(scf::ForOp loop) {
  SmallVector<Stream> streams;
  for (auto op : loop.getBody()->getOps<simt::ToSharedOp>()) {
    Stream stream;
    stream.op = op;
    if (!collectSlice(op.getInput(), loop, stream.slice))
      continue;
    stream.copy = asAsyncCopy(op);
    streams.push_back(std::move(stream));
  }
  return streams;
}

bool charonia::gpu::collectArithmetic(Value value, Block &body,
                                      llvm::SetVector<Operation *> &slice) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &body || slice.contains(op))
    return true;
  if (!isMemoryEffectFree(op) || op->getNumRegions())
    return false;
  for (Value operand : op->getOperands())
    if (!collectArithmetic(operand, body, slice))
      return false;
  slice.insert(op);
  return true;
}
