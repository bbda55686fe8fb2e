// What the groups of a fusion plan store.
#include "graph/analysis/Cells.h"
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Walked.h"
#include "graph/analysis/Weights.h"

using namespace mlir;

namespace charonia::graph {

//===----------------------------------------------------------------------===//
// Views behind a kernel
//===----------------------------------------------------------------------===//

/// A permutation between a kernel and its only reader is the kernel's to store,
/// where rows of memory stay rows: the reader then finds its operand dense.
void FusionPlan::sinkViews() {
  auto isPlain = [](AffineMap map) {
    return llvm::all_of(map.getResults(), [](AffineExpr e) {
      return isa<AffineDimExpr, AffineConstantExpr>(e);
    });
  };
  for (auto &group : storage) {
    // What has an order stores nothing but its own result.
    if (group->hasAnchor(OpRole::Ordered))
      continue;
    SmallVector<Operation *> ops(group->ops);
    for (Operation *op : ops) {
      Value value = op->getResult(0);
      std::optional<IterationSpace::Place> place = group->space.lookup(value);
      // What cells give follows them.
      if (!place || isStored(op) ||
          place->extent == IterationSpace::Extent::Cell ||
          place->extent == IterationSpace::Extent::Part)
        continue;
      auto map = AffineMap::getMultiDimIdentityMap(getShape(value).size(),
                                                   op->getContext());
      SmallVector<Operation *> chain, sunk;
      Exprs shape = getShape(value);
      while (value.hasOneUse()) {
        Operation *view = *value.getUsers().begin();
        if (!inlined.contains(view) || roleOf(view) != OpRole::View)
          break;
        AffineMap step = getForwardMap(cast<GraphOpInterface>(view), 0);
        if (!step)
          break;
        map = composeMaps(step, map, shape);
        chain.push_back(view);
        value = view->getResult(0);
        // Innermost dimensions correspond both ways, as the map permutes.
        if (!isSameBytes(view) && isPlain(map) &&
            keepsInnermost(map, shape, getShape(value)))
          sunk = chain;
      }
      for (Operation *view : sunk) {
        inlined.erase(view);
        groups[view] = group.get();
        group->ops.push_back(view);
        if (auto viewPlace =
                group->space.fit(cast<GraphOpInterface>(view),
                                 [](Operation *) { return false; }))
          group->space.add(view->getResult(0), *viewPlace);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Whether a kernel of the group finds `value` in memory: what another kernel
/// stores, an argument, a weight, or an alias of one.
bool FusionPlan::isInMemory(Value value, const Group &group) const {
  Operation *op = value.getDefiningOp();
  if (!op || isWeight(op))
    return true;
  if (Group *owner = groupOf(op))
    return owner != &group;
  return isSameBytes(op) && isInMemory(op->getOperand(0), group);
}

/// The operators of the group's kernel, with those that it has copies of.
SmallVector<Operation *> FusionPlan::bodyOf(const Group &group) const {
  llvm::SetVector<Operation *> body;
  auto visit = [&](auto &&self, Operation *op) -> void {
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && !body.contains(def) && !isInMemory(operand, group))
        self(self, def);
    body.insert(op);
  };
  for (Operation *op : group.ops)
    visit(visit, op);
  return body.takeVector();
}

/// What the group has to store.
FusionPlan::Results FusionPlan::resultsOf(const Group &group,
                                          ArrayRef<Operation *> body) const {
  llvm::DenseSet<Value> fromProduct;
  for (Operation *op : body)
    if (group.hasAnchor(OpRole::Contraction) &&
        (op == group.anchor || llvm::any_of(op->getOperands(), [&](Value v) {
           return fromProduct.contains(v);
         })))
      fromProduct.insert(op->result_begin(), op->result_end());
  Results results;
  for (Operation *op : group.ops)
    for (Value result : op->getResults()) {
      Readers readers;
      collectReaders(result, readers);
      if (llvm::all_of(readers, [&](OpOperand *use) {
            return groupOf(use->getOwner()) == &group;
          }))
        continue;
      auto place = group.space.lookup(result);
      (place && place->extent != IterationSpace::Extent::Full ? results.rows
       : fromProduct.contains(result)                         ? results.products
                                                              : results.others)
          .push_back(result);
    }
  return results;
}

/// Finds an order of the results in which all follow from the first, as
/// verify-kernels wants it, or from the product that a GPU's kernel may walk.
/// False where there is none.
bool FusionPlan::orderResults(Group &group) const {
  llvm::sort(group.ops, [&](Operation *a, Operation *b) {
    return position.lookup(a) < position.lookup(b);
  });
  SmallVector<Operation *> body = bodyOf(group);
  auto [products, others, rows] = resultsOf(group, body);
  ArrayRef<Value> firsts = !products.empty() ? products
                           : !others.empty() ? others
                                             : rows;
  SmallVector<Value> &results = group.results;
  auto begin = [&] {
    results.assign(products);
    results.append(others);
    results.append(rows);
  };
  for (unsigned i = 0, e = firsts.size(); i < e; ++i) {
    begin();
    std::rotate(results.begin(), results.begin() + i, results.begin() + i + 1);
    if (body.size() == 1)
      return true;
    auto space = getIterationSpace(body, results);
    // Sums that are computed again have no place beside the anchor.
    bool isAround =
        space && (!group.anchor || space->contains(group.anchor->getResult(0)));
    Value cut = isAround ? getCut(*space, results) : Value();
    if (isAround && getResultMaps(*space, cut ? cut : results.front(), results))
      return true;
  }
  if (firsts.empty())
    return true;
  bool hasProduct =
      limits.instances > 0 && group.hasAnchor(OpRole::Contraction);
  if (!hasProduct || llvm::any_of(body, [&](Operation *op) {
        return op != group.anchor && roleOf(op) == OpRole::Contraction;
      }))
    return false;
  begin();
  auto space = getIterationSpace(body, results);
  return space && followFromProduct(*space, group.anchor, results);
}

/// Where permutations and reshapes mix so that results of a kernel do not
/// follow from one another, its operators part: sums of cells first, which the
/// tiles of the others may not have.
void FusionPlan::splitUnrelated() {
  for (size_t i = 0; i < storage.size(); ++i) {
    Group &group = *storage[i];
    if (group.ops.empty() || orderResults(group) || group.ops.size() == 1)
      continue;
    SmallVector<Operation *> sums;
    llvm::copy_if(group.ops, std::back_inserter(sums), [&](Operation *op) {
      // What the others read has to stay with them, or they would wait for a
      // kernel that waits for theirs.
      return op != group.anchor &&
             !cast<GraphOpInterface>(op).getCells().empty() &&
             llvm::none_of(readersOf(op), [&](OpOperand *use) {
               return groupOf(use->getOwner()) == &group;
             });
    });
    for (Operation *op : sums) {
      llvm::erase(group.ops, op);
      makeGroup(op);
    }
    if (!sums.empty() && (orderResults(group) || group.ops.size() == 1))
      continue;
    SmallVector<Operation *> ops(std::move(group.ops));
    group.ops.clear();
    for (Operation *op : ops)
      makeGroup(op);
  }
}

} // namespace charonia::graph
