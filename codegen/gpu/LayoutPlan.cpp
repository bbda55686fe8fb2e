#include "codegen/gpu/LayoutPlan.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using f2::Vector;

bool charonia::gpu::isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) &&
         op->getNumResults() == 1 &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

LinearLayout charonia::gpu::broadcastSource(const LinearLayout &layout,
                                            ArrayRef<int64_t> axes,
                                            ArrayRef<int64_t> inputShape) {
  LinearLayout selected = layout.selectAxes(axes);
  SmallVector<LinearLayout::Space> outs;
  for (auto [i, extent] : llvm::enumerate(inputShape))
    outs.push_back({axisDim(i), llvm::Log2_64(extent)});
  SmallVector<Vector> images;
  for (Vector v : selected.allColumns()) {
    Vector image = 0;
    unsigned shift = 0;
    for (const LinearLayout::Space &out : outs) {
      image |= Vector(selected.coordinate(v, out.dim) & ((1u << out.bits) - 1))
               << shift;
      shift += out.bits;
    }
    images.push_back(image);
  }
  return LinearLayout(selected.ins(), outs, images).withoutFreeRegisters();
}

LinearLayout charonia::gpu::broadcastSource(const LinearLayout &layout,
                                            ArrayRef<int64_t> inputShape) {
  return broadcastSource(
      layout, llvm::to_vector(llvm::seq<int64_t>(0, inputShape.size())),
      inputShape);
}

std::pair<unsigned, unsigned>
charonia::gpu::longestRun(const LinearLayout &layout, unsigned limit) {
  unsigned axis = 1, vector = 1;
  for (unsigned i : {1u, 0u}) {
    unsigned run = 1u << axisVector(layout, i, limit).size();
    if (run > vector) {
      axis = i;
      vector = run;
    }
  }
  return {axis, vector};
}

LinearLayout charonia::gpu::layoutApart(tile::JoinAxesOp join,
                                        const LinearLayout &layout) {
  return splitAxis(layout, join.getAxis(),
                   tile::shapeOf(join.getInput())[join.getAxis() + 1]);
}

LinearLayout charonia::gpu::layoutOfCells(tile::CellPartOp part,
                                          const LinearLayout &layout) {
  LinearLayout cells = layout;
  for (int64_t parts = part.getParts(); parts > 1; parts /= 2)
    cells = withBit(cells, part.getAxis(), llvm::Log2_64(part.getRun()));
  return cells;
}

SmallVector<unsigned> charonia::gpu::heldElements(const LinearLayout &layout) {
  SmallVector<unsigned> numbers;
  DenseMap<uint64_t, unsigned> known;
  for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r)
    numbers.push_back(
        known.try_emplace(layout.apply(Dim::Register, r), known.size())
            .first->second);
  return numbers;
}

int64_t LayoutPlan::mostExchanged() const {
  constexpr int64_t besideRings = 32 * 1024;
  return stays && hasGroups ? besideRings : std::numeric_limits<int64_t>::max();
}

Move charonia::gpu::classifyMove(const LinearLayout &from,
                                 const LinearLayout &to) {
  LinearLayout move = from.conversionTo(to);
  Move result = Move::Registers;
  for (const LinearLayout::Space &in : move.ins())
    for (unsigned bit = 0; bit < in.bits; ++bit) {
      bool isWarp = in.dim == Dim::Warp, isLane = in.dim == Dim::Lane;
      if (move.basis(in.dim, bit, Dim::Warp) != (isWarp ? 1u << bit : 0))
        return Move::Shared;
      // A lane cannot choose the register that another lane sends to it.
      if ((isLane || isWarp) && move.basis(in.dim, bit, Dim::Register) != 0)
        return Move::Shared;
      if (move.basis(in.dim, bit, Dim::Lane) != (isLane ? 1u << bit : 0))
        result = Move::Shuffles;
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

LogicalResult LayoutPlan::run() {
  if (failed(verify()))
    return failure();
  anchorBlock(function.getBody().front());
  demandBlock(function.getBody().front());
  return success();
}

LogicalResult LayoutPlan::verify() {
  WalkResult result = function.walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor)
        continue;
      for (int64_t extent : tensor.getShape())
        if (extent < 1 || !llvm::isPowerOf2_64(extent)) {
          op->emitOpError("on a GPU, tile extents are powers of two, not ")
              << type;
          return WalkResult::interrupt();
        }
    }
    if (op->getNumRegions() &&
        !isa<func::FuncOp, scf::ForOp, scf::IfOp, tile::ReduceOp, tile::ScanOp>(
            op)) {
      op->emitOpError("has no lowering to a GPU");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

const LinearLayout *LayoutPlan::anchored(Value value) const {
  auto it = natural.find(value);
  return it == natural.end() ? nullptr : &it->second;
}

ArrayRef<LinearLayout> LayoutPlan::layoutsOf(Value value) const {
  auto it = demands.find(value);
  if (it == demands.end())
    return {};
  if (const LinearLayout *layout = anchored(value))
    return *layout;
  return it->second;
}
