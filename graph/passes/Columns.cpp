#include "graph/passes/Columns.h"
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Widening.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::graph;

bool graph::hasOwnColumns(GraphOpInterface product, WeightsOnly &weightsOnly) {
  std::optional<Columns> columns = product.getColumns();
  if (product->getNumOperands() != 2 || !columns)
    return false;
  OpOperand &weights = product->getOpOperand(columns->operand);
  return weightsOnly(weights.get()) &&
         !weightsOnly(product->getOperand(1 - columns->operand)) &&
         wideningOf(weights, weightsOnly).empty();
}

int64_t graph::rowsOf(GraphOpInterface product) {
  Exprs rows = getShape(product->getResult(0));
  rows.pop_back();
  return evaluate(numElements(rows, product->getContext()), getOptimum(product))
      .value_or(0);
}

Value graph::behindBias(GraphOpInterface product, WeightsOnly &weightsOnly) {
  Value result = product->getResult(0);
  auto add =
      result.hasOneUse() ? dyn_cast<AddOp>(*result.user_begin()) : AddOp();
  if (!add || add.getResult().getType() != result.getType())
    return result;
  Value bias = add->getOperand(add->getOperand(0) == result ? 1 : 0);
  Exprs shape = getShape(bias);
  bool isOfColumns =
      bias != result && weightsOnly(bias) && !shape.empty() &&
      shape.back() == getShape(result).back() &&
      llvm::all_of(ArrayRef(shape).drop_back(),
                   [](AffineExpr e) { return constantOf(e) == 1; });
  return isOfColumns ? add.getResult() : result;
}

bool graph::fitBehindProduct(ArrayRef<Operation *> ops) {
  FusionLimits limits;
  int64_t code = 0;
  for (Operation *op : ops)
    if (auto graphOp = dyn_cast<GraphOpInterface>(op);
        graphOp && graphOp.getRole() == OpRole::Pointwise)
      code += graphOp.getCodeSize();
  return code < limits.maxEpilogueCode / 2 &&
         ops.size() < limits.maxOperators / 2;
}

/// Dimension `dim` as [groups, a, b, run] and as [groups, b, a, run].
static Value exchanged(OpBuilder &b, Location loc, Value value, unsigned dim,
                       ArrayRef<int64_t> counts, bool stored) {
  Exprs shape = getShape(value), apart(ArrayRef(shape).take_front(dim));
  for (int64_t count : counts)
    apart.push_back(b.getAffineConstantExpr(count));
  apart.append(shape.begin() + dim + 1, shape.end());
  Type element = getElementTypeOrSelf(value);
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, apart.size()));
  std::swap(order[dim + 1], order[dim + 2]);
  Value cut = ReshapeOp::create(b, loc, makeType(apart, element), value);
  Value moved = TransposeOp::create(b, loc, cut, order);
  Value joined = ReshapeOp::create(b, loc, value.getType(), moved);
  if (stored)
    setStored(joined.getDefiningOp());
  return joined;
}

static int64_t runsOfHalf(Value value, unsigned dim, int64_t groups) {
  return *constantOf(getShape(value)[dim]) / (2 * groups * kColumnRun);
}

Value graph::halvesInTurn(OpBuilder &b, Location loc, Value value, unsigned dim,
                          int64_t groups, bool stored) {
  return exchanged(b, loc, value, dim,
                   {groups, 2, runsOfHalf(value, dim, groups), kColumnRun},
                   stored);
}

Value graph::halvesApart(OpBuilder &b, Location loc, Value value, unsigned dim,
                         int64_t groups) {
  return exchanged(b, loc, value, dim,
                   {groups, runsOfHalf(value, dim, groups), 2, kColumnRun},
                   /*stored=*/true);
}

void graph::putHalvesInTurn(GraphOpInterface product, int64_t groups,
                            WeightsOnly &weightsOnly) {
  Value result = behindBias(product, weightsOnly);
  Columns columns = *product.getColumns();
  OpBuilder b(product);
  product->setOperand(columns.operand,
                      halvesInTurn(b, product.getLoc(),
                                   product->getOperand(columns.operand),
                                   columns.operandDim, groups));
  if (result == product->getResult(0))
    return;
  Operation *add = result.getDefiningOp();
  b.setInsertionPoint(add);
  for (OpOperand &operand : add->getOpOperands())
    if (operand.get() != product->getResult(0))
      operand.set(halvesInTurn(b, add->getLoc(), operand.get(),
                               getShape(operand.get()).size() - 1, groups));
}
