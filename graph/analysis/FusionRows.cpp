// Which rows are stored as such: those that data choose, and what is computed
// of them; parts that are joined.
#include "graph/analysis/FusionPlan.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::graph {

/// Whether data choose rows of an operand as a whole: neighbours in the result
/// are neighbours there.
static bool choosesRows(OpOperand &use) {
  constexpr int64_t shortest = 8;
  auto op = dyn_cast<GraphOpInterface>(use.getOwner());
  if (!op || op.getRole() != OpRole::Indexing || use.getOperandNumber() != 0)
    return false;
  AffineExpr any = getAffineConstantExpr(0, op->getContext());
  AffineMap map =
      op.getChosenMap([&](unsigned, ArrayRef<AffineExpr>) { return any; });
  if (!map || map.getNumResults() == 0 || map.getNumDims() == 0)
    return false;
  std::optional<int64_t> row = constantOf(getShape(use.get()).back());
  return row && *row >= shortest &&
         map.getResults().back() ==
             getAffineDimExpr(map.getNumDims() - 1, op->getContext());
}

/// Elements of the rows that data choose at `use`, be it from some that others
/// have chosen; notes who chooses last.
int64_t FusionPlan::chosenRows(OpOperand &use,
                               SmallVectorImpl<Operation *> &choosers) const {
  Operation *op = use.getOwner();
  if (!groupOf(op) || !choosesRows(use))
    return 0;
  int64_t all = elementsOf(op->getResult(0)), chosen = 0;
  SmallVector<Operation *> next;
  for (OpOperand &again : op->getResult(0).getUses())
    if (int64_t some = chosenRows(again, next))
      chosen += some;
    else
      chosen = all;
  bool isLast = chosen >= all || next.empty();
  choosers.append(next);
  if (isLast)
    choosers.push_back(op);
  return isLast ? all : chosen;
}

/// Rows that data choose again and again are stored side by side, where a view
/// takes their elements from places apart. A row that is stored costs less than
/// a part of what its elements do where they lie.
void FusionPlan::forceChosenRows() {
  constexpr int64_t seldom = 2;
  for (Operation &op : block.without_terminator()) {
    if (!inlined.contains(&op) || op.getNumOperands() == 0 || isSameBytes(&op))
      continue;
    auto view = cast<GraphOpInterface>(&op);
    Exprs to = getShape(op.getResult(0)), from = getShape(op.getOperand(0));
    AffineMap map = view.getOperandMap(0);
    if (!map || keepsInnermost(map, to, from))
      continue;
    SmallVector<Operation *> readers;
    int64_t chosen = 0;
    for (OpOperand &use : op.getResult(0).getUses())
      chosen += chosenRows(use, readers);
    if (chosen < elementsOf(op.getResult(0)) / seldom)
      continue;
    makeGroup(&op);
    dense.insert(&op);
    keepRows(readers);
  }
}

/// A tile of what is joined reads each operand under a mask: lanes that lie
/// apart would be picked one by one, for each of the parts.
void FusionPlan::forceJoinedParts() {
  constexpr int64_t shortRun = 64, fewElements = 1 << 12;
  for (Operation &op : block.without_terminator()) {
    auto joins = dyn_cast<GraphOpInterface>(&op);
    std::optional<unsigned> dim =
        joins && groupOf(&op) ? joins.getJoinedDim() : std::nullopt;
    if (!dim)
      continue;
    for (Value part : op.getOperands()) {
      Value value = behindAliases(part);
      Operation *view = value.getDefiningOp();
      Exprs shape = getShape(part);
      if (!view || !inlined.contains(view) || view->getNumOperands() == 0 ||
          elementsOf(shape) < fewElements ||
          elementsOf(ArrayRef(shape).drop_front(*dim)) < shortRun)
        continue;
      AffineMap map = cast<GraphOpInterface>(view).getOperandMap(0);
      if (!map ||
          keepsInnermost(map, getShape(value), getShape(view->getOperand(0))))
        continue;
      makeGroup(view);
      dense.insert(view);
    }
  }
}

/// Whether an operator gives rows of what it takes rows of: element by element,
/// or some of them combined.
static bool passesRows(GraphOpInterface op, Value rows) {
  Exprs in = getShape(rows), out = getShape(op->getResult(0));
  if (op.getRole() == OpRole::Pointwise)
    return in == out;
  SmallVector<int64_t> axes = op.getReductionAxes();
  return op.getRole() == OpRole::Reduction && !out.empty() &&
         op->getNumResults() == 1 && in.back() == out.back() &&
         !llvm::is_contained(axes, int64_t(in.size()) - 1);
}

/// What is computed of these rows is stored as rows as well, ahead of a view
/// that takes them apart.
void FusionPlan::keepRows(ArrayRef<Operation *> choosers) {
  llvm::SmallSetVector<Operation *, 16> work(choosers.begin(), choosers.end());
  for (size_t i = 0; i < work.size(); ++i) {
    Value value = work[i]->getResult(0);
    for (Operation *user : value.getUsers()) {
      auto next = dyn_cast<GraphOpInterface>(user);
      if (next && passesRows(next, value)) {
        work.insert(user);
        continue;
      }
      AffineMap map = next && next.getRole() == OpRole::View
                          ? next.getOperandMap(0)
                          : AffineMap();
      if (!map || isSameBytes(user) ||
          keepsInnermost(map, getShape(next->getResult(0)), getShape(value)))
        continue;
      if (inlined.contains(user))
        makeGroup(user);
      across.insert(user);
    }
  }
}

} // namespace charonia::graph
