#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/CodeSize.h"
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

namespace {
/// From coordinates of a value to those of what is stored: null where they are
/// the same.
struct Way {
  AffineMap map;
  unsigned moves = 0; ///< Of elements, by views in turn.
};
} // namespace

/// Of operands' ways the longest, on to the result of a view or a pointwise
/// operator.
static Way wayOf(GraphOpInterface op,
                 const llvm::DenseMap<Operation *, Way> &ways) {
  Way longest;
  unsigned most = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    Operation *from = operand.get().getDefiningOp();
    Way way = from ? ways.lookup(from) : Way();
    AffineMap step = op.getOperandMap(operand.getOperandNumber());
    if (!step || (!way.map && op.getRole() != OpRole::View))
      continue;
    Exprs shape = getShape(op->getResult(0));
    way.map = way.map ? composeMaps(way.map, step, shape) : step;
    unsigned terms = countTerms(way.map);
    if (terms > most || !longest.map)
      longest = way;
    most = std::max(most, terms);
  }
  return longest;
}

/// Of a long chain of views some are stored.
void FusionPlan::forceTangledViews() {
  llvm::DenseMap<Operation *, Way> ways;
  for (Operation &op : block.without_terminator()) {
    auto graphOp = dyn_cast<GraphOpInterface>(&op);
    bool isView = inlined.contains(&op) && op.getNumOperands() > 0;
    if (!graphOp || isWeight(&op) ||
        !(isView || graphOp.getRole() == OpRole::Pointwise))
      continue;
    Way way = wayOf(graphOp, ways);
    if (!isView)
      way.moves = 0;
    else if (!isSameBytes(&op) &&
             (++way.moves > limits.maxViews ||
              countTerms(way.map, limits.maxTerms + 1) > limits.maxTerms)) {
      makeGroup(&op);
      tangled.insert(&op);
      way = {};
    }
    ways[&op] = way;
  }
}

/// The dimension along which neighbours in a memory of shape `memory` are
/// neighbours; `map` gives their coordinates.
static std::optional<unsigned> runningDim(AffineMap map,
                                          ArrayRef<AffineExpr> memory) {
  for (auto [e, extent] :
       llvm::reverse(llvm::zip_equal(map.getResults(), memory)))
    if (constantOf(extent) != 1) {
      auto dim = dyn_cast<AffineDimExpr>(e);
      return dim ? std::optional(dim.getPosition()) : std::nullopt;
    }
  return std::nullopt;
}

/// Whether what follows element by element stores the result of a window with
/// its dimension `dim` innermost: tiles then run along it, as what they read.
static bool isStoredAlong(GraphOpInterface window, unsigned dim) {
  Value value = window->getResult(0);
  Exprs shape = getShape(value);
  auto map =
      AffineMap::getMultiDimIdentityMap(shape.size(), window->getContext());
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    auto next = dyn_cast<GraphOpInterface>(use.getOwner());
    if (!next ||
        (next.getRole() != OpRole::View && next.getRole() != OpRole::Pointwise))
      break;
    AffineMap step = getForwardMap(next, use.getOperandNumber());
    if (!step)
      break;
    map = composeMaps(step, map, shape);
    value = next->getResult(0);
  }
  return runningDim(map, getShape(value)) == dim;
}

/// Whether a product reads its stationary operand across its columns, and does
/// so again for each tile of its rows. `along`: the operand's dimension that is
/// dense in memory.
bool FusionPlan::crossesColumns(OpOperand &operand,
                                std::optional<unsigned> along) const {
  constexpr int64_t fewColumns = 8, fewRows = 48;
  auto reader = cast<GraphOpInterface>(operand.getOwner());
  std::optional<Columns> columns;
  if (limits.denseRows && reader.getRole() == OpRole::Contraction)
    columns = reader.getColumns();
  Exprs shape = getShape(operand.get());
  if (!columns || columns->operand != operand.getOperandNumber() ||
      columns->operandDim + 1 != shape.size() || along == columns->operandDim)
    return false;
  AffineExpr extent = reader.getReductionExtent();
  int64_t terms = extent ? elementsOf({extent}) : 1,
          all = elementsOf(shape) / std::max<int64_t>(terms, 1),
          results = elementsOf(reader->getResult(0));
  return elementsOf({shape.back()}) >= fewColumns &&
         results / std::max<int64_t>(all, 1) >= fewRows;
}

/// What inlined views that move nothing give other shapes.
Value FusionPlan::behindAliases(Value value) const {
  for (Operation *def = value.getDefiningOp();
       def && inlined.contains(def) && def->getNumOperands() > 0 &&
       isSameBytes(def);
       def = value.getDefiningOp())
    value = def->getOperand(0);
  return value;
}

/// The view that takes what is in `value` from places apart, through others
/// that move nothing; null: neighbours there are neighbours.
Operation *FusionPlan::scattersBehind(Value value) const {
  Value memory = behindAliases(value);
  Operation *view = memory.getDefiningOp();
  if (!view || !inlined.contains(view) || view->getNumOperands() == 0)
    return nullptr;
  AffineMap map = cast<GraphOpInterface>(view).getOperandMap(0);
  bool isDense = map && keepsInnermost(map, getShape(memory),
                                       getShape(view->getOperand(0)));
  return isDense ? nullptr : view;
}

/// Whether each element is read by as many windows as have room around it.
/// Longer steps may undo what lays elements side by side.
static bool slidesByOne(GraphOpInterface window) {
  SmallVector<WindowSide> sides = window.getWindow();
  return !sides.empty() && llvm::all_of(sides, [](const WindowSide &side) {
    return side.stride == 1;
  });
}

/// An operator that fetches its operands again and again wants them dense.
void FusionPlan::forceStridedReads() {
  for (Operation &op : block.without_terminator()) {
    if (!groupOf(&op))
      continue;
    auto reader = cast<GraphOpInterface>(&op);
    for (OpOperand &operand : op.getOpOperands()) {
      // Windows overlap.
      bool repeats = reader.getRole() == OpRole::Window ||
                     reader.getOperandReads(operand.getOperandNumber()) > 1;
      Value read = repeats ? behindAliases(operand.get()) : operand.get();
      Operation *view = read.getDefiningOp();
      bool multiplies =
          limits.denseRows && reader.getRole() == OpRole::Contraction;
      if (!view || !inlined.contains(view) || view->getNumOperands() == 0 ||
          !(repeats || multiplies))
        continue;
      Exprs shape = getShape(read);
      auto map =
          AffineMap::getMultiDimIdentityMap(shape.size(), op.getContext());
      Value value = read;
      for (; Operation *def = value.getDefiningOp();
           value = def->getOperand(0)) {
        if (!inlined.contains(def) || def->getNumOperands() == 0 ||
            isSameBytes(def))
          break;
        map = composeMaps(cast<GraphOpInterface>(def).getOperandMap(0), map,
                          shape);
      }
      if (keepsInnermost(map, shape, getShape(value)))
        continue;
      std::optional<unsigned> along = runningDim(map, getShape(value));
      if (!repeats && !crossesColumns(operand, along))
        continue;
      if (reader.getRole() != OpRole::Window || !along ||
          read != operand.get() || !isStoredAlong(reader, *along))
        makeGroup(view);
      else if (Operation *inside =
                   limits.denseRows ? scattersBehind(value) : nullptr;
               inside && slidesByOne(reader))
        makeGroup(inside);
    }
  }
}

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
