// Which operators share a kernel: what groups there are at first, what they
// read, and their order.
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Weights.h"
#include "graph/analysis/Widening.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace mlir;

namespace charonia::graph {

static bool isAnchorRole(OpRole role) {
  switch (role) {
  case OpRole::Reduction:
  case OpRole::RowNormalization:
  case OpRole::Window:
  case OpRole::Contraction:
  case OpRole::Ordered:
    return true;
  default:
    return false;
  }
}

static constexpr StringLiteral kStoredAttr = "graph.stored";

void setStored(Operation *view) {
  view->setDiscardableAttr(kStoredAttr, UnitAttr::get(view->getContext()));
}

bool isStored(Operation *view) { return view->hasAttr(kStoredAttr); }

FusionPlan::FusionPlan(Block &block, ArrayRef<Symbol> symbols,
                       FusionLimits limits)
    : block(block), limits(limits) {
  optimum = getOptimum(symbols);
  for (const Symbol &symbol : symbols)
    divisors.push_back(std::max<int64_t>(symbol.divisor, 1));
  classify();
  forceReturned();
  forceTangledViews();
  forceStridedReads();
  if (limits.instances > 0)
    forceSingleReads();
  forceChosenRows();
  if (limits.denseRows) {
    forceRuns();
    forceJoinedParts();
  }
  if (limits.widenedRows > 0)
    inlineWidening();

  auto growAll = [&](llvm::function_ref<bool(OpRole)> wanted) {
    for (Operation &op : block)
      if (Group *group = groupOf(&op);
          group && group->ops.size() == 1 && wanted(roleOf(&op)))
        growForward(cast<GraphOpInterface>(&op));
  };
  growAll([](OpRole role) { return role == OpRole::Contraction; });
  growAll(isRowRole);
  growAll([](OpRole role) { return !isRowRole(role); });
  joinReaders();
  joinSums();
  sinkLonger();
  sinkViews();
  splitUnrelated();
}

//===----------------------------------------------------------------------===//
// What is in a group and what is copied into each reader
//===----------------------------------------------------------------------===//

void FusionPlan::makeGroup(Operation *op) {
  inlined.erase(op);
  auto group = std::make_unique<Group>();
  group->ops.push_back(op);
  auto graphOp = cast<GraphOpInterface>(op);
  if (isAnchorRole(graphOp.getRole()))
    group->anchor = graphOp;
  group->space = IterationSpace::of(graphOp);
  groups[op] = group.get();
  storage.push_back(std::move(group));
}

void FusionPlan::classify() {
  for (Operation &op : block.without_terminator()) {
    position[&op] = position.size();
    auto graphOp = dyn_cast<GraphOpInterface>(&op);
    if (!graphOp || isWeight(&op))
      continue;
    OpRole role = graphOp.getRole();
    if ((role == OpRole::View && !isStored(&op)) || op.getNumOperands() == 0)
      inlined.insert(&op);
    else
      makeGroup(&op);
  }
  position[block.getTerminator()] = position.size();
  spans = Coverage(position.size());
}

/// A returned value must be stored: what the last views down to an alias give.
void FusionPlan::forceReturned() {
  for (Value value : block.getTerminator()->getOperands())
    while (Operation *op = value.getDefiningOp()) {
      if (!inlined.contains(op))
        break;
      if (!isSameBytes(op)) {
        makeGroup(op);
        break;
      }
      value = op->getOperand(0);
    }
}

/// Each product widens its weights by itself.
void FusionPlan::inlineWidening() {
  WeightsOnly weightsOnly;
  for (Operation &op : block.without_terminator())
    for (OpOperand &operand : op.getOpOperands())
      for (Operation *widening : wideningOf(operand, weightsOnly)) {
        if (!widensInside(operand, optimum, limits.widenedRows))
          break;
        if (Group *group = groupOf(widening))
          group->ops.clear();
        groups.erase(widening);
        inlined.insert(widening);
      }
}

//===----------------------------------------------------------------------===//
// Readers, sources, cycles
//===----------------------------------------------------------------------===//

void FusionPlan::collectReaders(Value value, Readers &readers) const {
  // Each inlined operator once, without recursion: chains of them are long.
  llvm::SmallSetVector<Value, 8> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      if (inlined.contains(use.getOwner()))
        values.insert(use.getOwner()->getResult(0));
      else
        readers.insert(&use);
    }
}

FusionPlan::Readers FusionPlan::readersOf(Operation *op) const {
  Readers readers;
  for (Value result : op->getResults())
    collectReaders(result, readers);
  return readers;
}

void FusionPlan::collectSources(Operation *op, Sources &sources) const {
  Sources work;
  work.insert(op);
  for (size_t i = 0; i < work.size(); ++i)
    for (Value operand : work[i]->getOperands())
      if (Operation *def = operand.getDefiningOp()) {
        if (inlined.contains(def))
          work.insert(def);
        else if (groupOf(def))
          sources.insert(def);
      }
}

bool FusionPlan::reaches(const Group &target, const Sources &sources) {
  // Operators behind a place that no group spans depend on none at or after it.
  unsigned first = position.size();
  for (Operation *op : target.ops)
    first = std::min(first, position.lookup(op));
  first = spans.lastFree(first);
  // Where the search is long, the answer that forbids less than is possible
  // bounds it.
  uint64_t all = uint64_t(limits.maxSearches) * storage.size(),
           left = std::max<uint64_t>(all - std::min(all, searched),
                                     limits.minSearched);
  // The nearest groups come first: what is read in every step of a recurrence
  // is found a step away, and not behind all of them.
  llvm::SmallSetVector<Group *, 8> seen;
  auto look = [&](const Sources &sources) {
    for (Operation *op : sources) {
      if (position.lookup(op) < first)
        continue;
      Group *group = groupOf(op);
      if (group == &target ||
          seen.size() >= std::min<uint64_t>(limits.maxSearched, left))
        return true;
      seen.insert(group);
    }
    return false;
  };
  bool found = look(sources);
  for (size_t i = 0; i < seen.size() && !found; ++i) {
    Sources next;
    for (Operation *op : seen[i]->ops)
      collectSources(op, next);
    found = look(next);
  }
  searched += seen.size();
  return found;
}

void FusionPlan::merge(Group &from, Group &into) {
  auto count = [&](const Group &group, int change) {
    unsigned low = position.size(), high = 0;
    for (Operation *op : group.ops) {
      low = std::min(low, position.lookup(op));
      high = std::max(high, position.lookup(op));
    }
    spans.add(low + 1, high, change);
  };
  count(from, -1);
  count(into, -1);
  for (Operation *op : from.ops) {
    groups[op] = &into;
    into.ops.push_back(op);
  }
  from.ops.clear();
  count(into, 1);
}

int64_t FusionPlan::elementsOf(ArrayRef<AffineExpr> shape) const {
  int64_t product = 1;
  for (AffineExpr e : shape)
    if (llvm::MulOverflow(product, evaluate(e, optimum).value_or(1), product))
      return std::numeric_limits<int64_t>::max() / 64;
  return product;
}

int64_t FusionPlan::elementsOf(Value value) const {
  return elementsOf(getShape(value));
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

SmallVector<FusionPlan::Group *> FusionPlan::order() const {
  struct State {
    Group *group;
    unsigned last;
    unsigned waiting = 0;
    SmallVector<unsigned> readers;
  };
  std::vector<State> states;
  llvm::DenseMap<Group *, unsigned> index;
  for (auto &group : storage) {
    if (group->ops.empty())
      continue;
    index[group.get()] = states.size();
    states.push_back({group.get(), position.lookup(group->ops.back()), 0, {}});
  }
  for (auto [i, state] : llvm::enumerate(states)) {
    Sources sources;
    for (Operation *op : state.group->ops)
      collectSources(op, sources);
    llvm::DenseSet<unsigned> producers;
    for (Operation *source : sources)
      if (Group *group = groupOf(source); group != state.group)
        producers.insert(index[group]);
    state.waiting = producers.size();
    for (unsigned p : producers)
      states[p].readers.push_back(i);
  }
  // Of the groups that can run, the one that ends first in the model's order.
  std::set<std::pair<unsigned, unsigned>> ready;
  for (auto [i, state] : llvm::enumerate(states))
    if (!state.waiting)
      ready.insert({state.last, i});
  SmallVector<Group *> order;
  while (!ready.empty()) {
    State &state = states[ready.begin()->second];
    ready.erase(ready.begin());
    order.push_back(state.group);
    for (unsigned reader : state.readers)
      if (--states[reader].waiting == 0)
        ready.insert({states[reader].last, reader});
  }
  assert(order.size() == states.size() &&
         "kernels depend on each other in a cycle");
  return order;
}

} // namespace charonia::graph
