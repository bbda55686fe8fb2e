#include "codegen/driver/InPlace.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Walked.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::driver {
namespace {

using graph::IterationSpace;

/// Row-major position of an element, over space coordinates.
AffineExpr linearize(AffineMap coordinates, ArrayRef<AffineExpr> shape,
                     ArrayRef<AffineExpr> extents) {
  AffineExpr index = getAffineConstantExpr(0, coordinates.getContext());
  for (auto [c, extent] : llvm::zip(coordinates.getResults(), shape))
    index = index * extent + c;
  AffineMap map =
      AffineMap::inferFromExprList({ArrayRef(index)}, index.getContext())
          .front();
  return graph::simplify(map, extents).getResult(0);
}

bool sameMap(AffineMap a, AffineMap b, ArrayRef<AffineExpr> extents) {
  return graph::simplify(a, extents).getResults() ==
         graph::simplify(b, extents).getResults();
}

/// Whether every element of `value` is read at its place in the space only,
/// also through what is computed from it. Each value is looked at once, however
/// many others read it.
bool isReadInPlace(Value value, const IterationSpace &space) {
  llvm::SmallSetVector<Value, 16> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i) {
    value = reached[i];
    std::optional<IterationSpace::Place> place = space.lookup(value);
    if (!place || place->extent != IterationSpace::Extent::Full)
      return false;
    for (OpOperand &use : value.getUses()) {
      auto user = dyn_cast<graph::GraphOpInterface>(use.getOwner());
      if (!user) // the terminator
        continue;
      graph::OpRole role = user.getRole();
      if (role != graph::OpRole::Pointwise && role != graph::OpRole::View)
        return false;
      std::optional<IterationSpace::Place> read = space.placeOfOperand(use);
      if (!read || !sameMap(read->map, place->map, space.getShape()))
        return false;
      reached.insert(user->getResult(0));
    }
  }
  return true;
}

} // namespace

bool canRunInPlace(graph::KernelOp kernel, unsigned operand, unsigned result) {
  std::optional<IterationSpace> space = graph::getIterationSpace(kernel);
  Block &body = kernel.getBody().front();
  // Results are stored one after the other; what a later one needs is read
  // later.
  if (!space || result + 1 != kernel.getNumResults())
    return false;
  // Rows past a product's last are read wherever views lead them.
  if (kernel->hasAttr(graph::kWalksProductAttr))
    return false;
  Value source = body.getArgument(operand),
        target = body.getTerminator()->getOperand(result);
  if (!isReadInPlace(source, *space))
    return false;
  IterationSpace::Place from = *space->lookup(source),
                        to = *space->lookup(target);
  return to.extent == IterationSpace::Extent::Full &&
         linearize(from.map, graph::getShape(source), space->getShape()) ==
             linearize(to.map, graph::getShape(target), space->getShape());
}

} // namespace charonia::driver
