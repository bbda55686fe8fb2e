#include "codegen/gpu/StageLoads.h"
#include "codegen/layout/Layouts.h"
#include "codegen/tile/analysis/Access.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

LinearLayout charonia::gpu::withoutRepeats(const LinearLayout &layout,
                                           unsigned axis, int64_t repeat) {
  unsigned dropped = llvm::Log2_64(repeat);
  SmallVector<LinearLayout::Space> outs(layout.outs());
  outs[axis].bits -= dropped;
  SmallVector<f2::Vector> images;
  for (f2::Vector v : layout.allColumns()) {
    f2::Vector image = 0;
    unsigned shift = 0;
    for (auto [i, out] : llvm::enumerate(outs)) {
      f2::Vector at = layout.coordinate(v, out.dim);
      image |= (i == axis ? at >> dropped : at) << shift;
      shift += out.bits;
    }
    images.push_back(image);
  }
  return LinearLayout(layout.ins(), outs, images);
}

namespace {

/// How a load is copied.
struct Staging {
  tile::LoadOp load;
  unsigned axis = 0;
  int64_t repeat = 1, vector = 1;
  RankedTensorType tile; ///< Each element once; with the layout of the copy.
  simt::MemoryType memory;
};

} // namespace

/// The axis along which most bytes are copied at once: enough for cp.async.
static bool chooseAxis(Staging &staging, const tile::AccessOp &access) {
  constexpr int64_t leastBytes = 4, mostBytes = 16;
  int64_t bytes = simt::elementBits(access.tile.getElementType()) / 8, best = 0;
  for (auto [axis, along] : llvm::enumerate(tile::analyzeAxes(access))) {
    if (along.uniformChecks < along.repeat || bytes == 0)
      continue;
    int64_t vector = std::min({along.contiguous, along.alignment,
                               along.endingChecks / along.repeat,
                               std::max<int64_t>(1, mostBytes / bytes)});
    if (vector * bytes < leastBytes || vector <= best)
      continue;
    best = vector;
    staging.axis = axis;
    staging.repeat = along.repeat;
    staging.vector = vector;
  }
  return best > 0;
}

static std::optional<Staging> planStaging(tile::LoadOp load, unsigned warps) {
  auto isNumber = [](Value symbol) { return symbol.getType().isIndex(); };
  tile::AccessOp access = tile::AccessOp::get(load);
  Staging staging;
  staging.load = load;
  if (!llvm::all_of(load.getSymbols(), isNumber) ||
      access.tile.getRank() == 0 || !chooseAxis(staging, access))
    return std::nullopt;
  SmallVector<int64_t> shape(access.tile.getShape());
  shape[staging.axis] /= staging.repeat;
  SmallVector<unsigned> order{staging.axis};
  for (unsigned axis = shape.size(); axis-- > 0;)
    if (axis != staging.axis)
      order.push_back(axis);
  Type element = access.tile.getElementType();
  LinearLayout copied = blockedLayout(shape, order, staging.vector, warps),
               read = withoutRepeats(simt::layoutOf(load), staging.axis,
                                     staging.repeat)
                          .withoutFreeRegisters();
  staging.tile =
      simt::withLayout(RankedTensorType::get(shape, element), copied);
  MLIRContext *context = load.getContext();
  staging.memory = simt::MemoryType::get(
      context, shape, element,
      simt::LayoutAttr::get(context,
                            operandLayout(copied, staging.axis, staging.vector,
                                          read, simt::elementBits(element))));
  return staging;
}

/// The load of each element once.
static tile::LoadOp createLoad(OpBuilder &b, const Staging &staging) {
  tile::LoadOp load = staging.load;
  MLIRContext *context = b.getContext();
  SmallVector<AffineExpr> dims, exprs;
  for (unsigned i = 0; i < load.getMap().getNumDims(); ++i)
    dims.push_back(getAffineDimExpr(i, context));
  dims[staging.axis] = dims[staging.axis] * staging.repeat;
  auto once = cast<tile::LoadOp>(b.clone(*load));
  once.getResult().setType(staging.tile);
  graph::Facts facts = tile::factsOf(tile::AccessOp::get(once));
  for (AffineExpr e : load.getMap().getResults())
    exprs.push_back(graph::simplify(e.replaceDims(dims), facts));
  once.setMap(AffineMap::get(dims.size(), load.getMap().getNumSymbols(), exprs,
                             context));
  return once;
}

bool charonia::gpu::stageLoads(ArrayRef<Stream> streams, unsigned warps,
                               int64_t bytes) {
  SmallVector<Staging> all;
  for (const Stream &stream : streams) {
    if (stream.copy)
      continue;
    for (Operation *op : stream.slice)
      if (auto load = dyn_cast<tile::LoadOp>(op))
        if (auto staging = planStaging(load, warps)) {
          bytes -= staging->memory.getBytes();
          all.push_back(*staging);
        }
  }
  if (bytes < 0)
    return false;
  for (const Staging &staging : all) {
    tile::LoadOp load = staging.load;
    OpBuilder b(load);
    tile::LoadOp once = createLoad(b, staging);
    if (!asAsyncCopy(once, staging.memory, /*mayEnd=*/false)) {
      once.erase();
      continue;
    }
    Value memory = simt::ToSharedOp::create(b, load.getLoc(), staging.memory,
                                            once.getResult());
    SmallVector<int64_t> start(load.getType().getRank(), 0);
    load.getResult().replaceAllUsesWith(simt::LoadSharedOp::create(
        b, load.getLoc(), load.getType(), memory, start));
    load.erase();
  }
  return !all.empty();
}
