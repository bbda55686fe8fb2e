#include "graph/passes/AttentionHeads.h"
#include "graph/passes/Views.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::graph;

/// The dimension of heads.
static constexpr unsigned kHeads = 1;

/// Whether a map says the same of each head as of the first of its group.
static bool isSameInGroups(AffineMap map, ArrayRef<AffineExpr> extents,
                           int64_t group) {
  MLIRContext *context = map.getContext();
  Exprs first;
  for (unsigned i = 0; i < extents.size(); ++i)
    first.push_back(getAffineDimExpr(i, context));
  first[kHeads] = first[kHeads].floorDiv(group) * group;
  return composeMaps(map, mapOf(extents.size(), first, context), extents) ==
         simplify(map, extents);
}

/// How many neighbouring heads of a value views make of one: the most that they
/// tell.
static int64_t groupOf(Value value) {
  constexpr unsigned mostViews = 16;
  Exprs extents = getShape(value);
  int64_t heads = constantOf(extents[kHeads]).value_or(1), most = 1;
  AffineMap map =
      AffineMap::getMultiDimIdentityMap(extents.size(), value.getContext());
  for (unsigned i = 0; i < mostViews; ++i) {
    GraphOpInterface view = composedView(value);
    if (!view)
      break;
    map = composeMaps(view.getOperandMap(0), map, extents);
    value = view->getOperand(0);
    for (int64_t group = heads; group > most; --group)
      if (heads % group == 0 && isSameInGroups(map, extents, group))
        most = group;
  }
  return most;
}

/// Keeps the first head of each group of an operand: usually what was repeated,
/// as it was before.
static void keepFirst(OpBuilder &b, OpOperand &operand, int64_t group) {
  Value value = operand.get();
  Exprs shape = getShape(value);
  SmallVector<AffineExpr> starts(shape.size(), b.getAffineConstantExpr(0));
  SmallVector<int64_t> steps(shape.size(), 1);
  shape[kHeads] = simplify(shape[kHeads].floorDiv(group));
  steps[kHeads] = group;
  auto slice = SliceOp::create(
      b, value.getLoc(), makeType(shape, getElementTypeOrSelf(value)), value,
      AffineMap::get(0, 0, starts, b.getContext()), steps);
  operand.set(slice.getResult());
  OpBuilder::InsertionGuard guard(b);
  shortenViews(cast<GraphOpInterface>(slice.getOperation()), b);
}

void charonia::graph::shareHeads(AttentionOp op) {
  int64_t group = std::gcd(groupOf(op.getKey()), groupOf(op.getValue()));
  if (group == 1)
    return;
  OpBuilder b(op);
  keepFirst(b, op.getKeyMutable(), group);
  keepFirst(b, op.getValueMutable(), group);
}
