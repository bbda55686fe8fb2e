#include "graph/analysis/Walked.h"
#include "graph/analysis/Cells.h"
#include "graph/analysis/IterationSpace.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::graph {

bool givesRows(GraphOpInterface op) {
  if (!columnOfCells(op))
    return false;
  SmallVector<DimKind> kinds = op.getResultDimKinds();
  return llvm::all_of(ArrayRef(kinds).drop_back(),
                      [](DimKind kind) { return kind == DimKind::Row; });
}

/// Whether coordinates are a product's columns at the end, and some of its rows
/// in front.
static bool movesRows(AffineMap map, unsigned column) {
  ArrayRef<AffineExpr> coordinates = map.getResults();
  return !coordinates.empty() &&
         coordinates.back() == getAffineDimExpr(column, map.getContext()) &&
         llvm::none_of(coordinates.drop_back(),
                       [&](AffineExpr e) { return e.isFunctionOfDim(column); });
}

/// Whether what is computed of a product where `results` have their places
/// reads its result at the very places that are walked: else it would be
/// computed once more.
static bool readsWalked(const IterationSpace &space, Value product,
                        ValueRange results) {
  constexpr size_t most = 512;
  AffineMap walked = space.lookup(product)->map;
  llvm::SetVector<std::pair<Value, AffineMap>> reads;
  for (Value result : results)
    if (auto place = space.lookup(result);
        place->extent == IterationSpace::Extent::Full)
      reads.insert({result, place->map});
  for (size_t i = 0; i < reads.size(); ++i) {
    auto [value, map] = reads[i];
    auto op = value.getDefiningOp<GraphOpInterface>();
    if (value == product && map.getResults() != walked.getResults())
      return false;
    for (unsigned o = 0; op && value != product && o < op->getNumOperands();
         ++o)
      if (AffineMap step = op.getOperandMap(o))
        reads.insert(
            {op->getOperand(o), composeMaps(step, map, space.getShape())});
    if (reads.size() > most)
      return false;
  }
  return true;
}

bool followFromProduct(const IterationSpace &space, GraphOpInterface product,
                       ValueRange results) {
  Value value = product->getResult(0);
  if (!givesRows(product) || !space.contains(value) ||
      !getResultMaps(space, value, results))
    return false;
  unsigned column = *columnOfCells(product);
  return llvm::all_of(results,
                      [&](Value result) {
                        auto place = space.lookup(result);
                        return place->extent != IterationSpace::Extent::Full ||
                               movesRows(place->map, column);
                      }) &&
         readsWalked(space, value, results);
}

/// Whether the rows that a product multiplies lie in memory in its order.
static bool readsRowsInOrder(GraphOpInterface product) {
  std::optional<Columns> columns = product.getColumns();
  Value rows = product->getOperand(columns && columns->operand == 0 ? 1 : 0);
  while (Operation *view = rows.getDefiningOp()) {
    if (!isSameBytes(view))
      return false;
    rows = view->getOperand(0);
  }
  return true;
}

/// The product of a kernel that has one; null where there is none, or several.
static GraphOpInterface productOf(KernelOp kernel) {
  GraphOpInterface product;
  for (auto op : kernel.getBody().front().getOps<GraphOpInterface>()) {
    if (op.getRole() != OpRole::Contraction)
      continue;
    if (product)
      return {};
    product = op;
  }
  return product;
}

bool mayWalkProduct(KernelOp kernel) {
  GraphOpInterface product = productOf(kernel);
  std::optional<IterationSpace> space;
  if (product)
    space = getIterationSpace(kernel);
  return space && followFromProduct(
                      *space, product,
                      kernel.getBody().front().getTerminator()->getOperands());
}

bool shouldWalkProduct(KernelOp kernel) {
  if (!mayWalkProduct(kernel))
    return false;
  ValueRange results = kernel.getBody().front().getTerminator()->getOperands();
  IterationSpace space = *getIterationSpace(kernel);
  // They walk that.
  if (getCut(space, results))
    return false;
  if (!getResultMaps(space, results.front(), results))
    return true;
  bool isMoved = false, isApart = false;
  std::optional<AffineMap> first;
  for (Value result : results) {
    auto place = space.lookup(result);
    if (place->extent == IterationSpace::Extent::Cell) {
      result = result.getDefiningOp()->getOperand(0);
      place = space.lookup(result);
    }
    if (!place || place->extent != IterationSpace::Extent::Full)
      continue;
    isMoved |= !space.isReshape(*place, getShape(result));
    isApart |= first && *first != place->map;
    first = first.value_or(place->map);
  }
  return isMoved && (isApart || readsRowsInOrder(productOf(kernel)));
}

Value getFirst(KernelOp kernel) {
  if (kernel->hasAttr(kWalksProductAttr))
    if (GraphOpInterface product = productOf(kernel))
      return product->getResult(0);
  ValueRange results = kernel.getBody().front().getTerminator()->getOperands();
  auto space = readsCells(kernel) ? getIterationSpace(kernel) : std::nullopt;
  Value cut = space ? getCut(*space, results) : Value();
  return cut ? cut : results.front();
}

Value getWalked(KernelOp kernel) {
  Value first = getFirst(kernel);
  auto op = first.getDefiningOp<GraphOpInterface>();
  auto walked = op ? op.getWalkedOperand() : std::nullopt;
  return walked ? op->getOperand(*walked) : first;
}

} // namespace charonia::graph
