// What a product on a GPU would read by single elements is stored in its order.
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Weights.h"

using namespace mlir;

namespace charonia::graph {

/// Whether neighbours in a memory of shape `memory` belong to terms far apart,
/// so that no vector of it has several that a tile has side by side. `map`
/// gives their coordinates, `terms` is the dim of terms.
static bool scattersTerms(AffineMap map, ArrayRef<AffineExpr> memory,
                          unsigned terms) {
  constexpr int64_t shortestRun = 8;
  for (auto [e, extent] :
       llvm::reverse(llvm::zip_equal(map.getResults(), memory))) {
    if (constantOf(extent) == 1)
      continue;
    for (unsigned d = 0; d < map.getNumDims(); ++d)
      if (e.isFunctionOfDim(d) != (d == terms))
        return false; // runs along rows or columns, which tiles take as well
    AffineExpr run = e;
    if (auto wrapped = dyn_cast<AffineBinaryOpExpr>(e);
        wrapped && e.getKind() == AffineExprKind::Mod &&
        constantOf(wrapped.getRHS()).value_or(0) >= shortestRun)
      run = wrapped.getLHS();
    AffineExpr self = getAffineDimExpr(terms, map.getContext());
    return simplify(run - self).isFunctionOfDim(terms);
  }
  return false;
}

/// The view nearest to the product that moves what it reads at `use`, which is
/// by single elements along the terms; null: there is none, or nothing but
/// weights in front of it, which are stored as well as can be.
Operation *FusionPlan::scattersTermsOf(OpOperand &use, unsigned terms) const {
  Exprs shape = getShape(use.get());
  auto map = AffineMap::getMultiDimIdentityMap(shape.size(),
                                               use.getOwner()->getContext());
  Operation *nearest = nullptr;
  Value value = use.get();
  for (Operation *def = value.getDefiningOp();
       def && inlined.contains(def) && roleOf(def) == OpRole::View;
       def = value.getDefiningOp()) {
    map = composeMaps(cast<GraphOpInterface>(def).getOperandMap(0), map, shape);
    nearest = nearest || isSameBytes(def) ? nearest : def;
    value = def->getOperand(0);
  }
  bool isScattered = nearest && !isWeight(value.getDefiningOp()) &&
                     scattersTerms(map, getShape(value), terms);
  return isScattered ? nearest : nullptr;
}

/// Each tile of the other side reads such an operand anew, an element at a
/// time. A kernel that stores it costs what so many elements do (H200: 16 rows
/// of 25088 terms, read for 32 tiles of columns, took 200 us).
void FusionPlan::forceSingleReads() {
  constexpr int64_t tile = 128;
  constexpr uint64_t mostSingles = 1 << 19;
  for (Operation &op : block.without_terminator()) {
    auto reader = dyn_cast<GraphOpInterface>(&op);
    SmallVector<int64_t> terms =
        reader && groupOf(&op) ? reader.getTermDims() : SmallVector<int64_t>();
    if (terms.empty())
      continue;
    for (auto [i, dim] : llvm::enumerate(terms)) {
      Operation *view = scattersTermsOf(op.getOpOperand(i), dim);
      if (!view)
        continue;
      int64_t own = elementsOf(op.getOperand(i)),
              count = elementsOf({getShape(op.getOperand(i))[dim]}),
              others = elementsOf(op.getResult(0)) /
                       std::max<int64_t>(own / std::max<int64_t>(count, 1), 1);
      if (llvm::SaturatingMultiply<uint64_t>(
              own, llvm::divideCeil(std::max<int64_t>(others, 1), tile)) <
          mostSingles)
        continue;
      makeGroup(view);
      dense.insert(view);
    }
  }
}

} // namespace charonia::graph
