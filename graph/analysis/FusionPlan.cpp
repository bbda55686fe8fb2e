#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/CodeSize.h"
#include "graph/analysis/Weights.h"
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

static bool isRowRole(OpRole role) {
  return role == OpRole::Reduction || role == OpRole::RowNormalization;
}

static OpRole roleOf(Operation *op) {
  return cast<GraphOpInterface>(op).getRole();
}

FusionPlan::FusionPlan(Block &block, ArrayRef<Symbol> symbols,
                       FusionLimits limits)
    : block(block), limits(limits) {
  for (const Symbol &s : symbols)
    optimum.push_back(s.opt);
  classify();
  forceReturned();
  forceTangledViews();
  forceStridedReads();

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
    if (role == OpRole::View || op.getNumOperands() == 0)
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

/// Of a long chain of views some are stored.
void FusionPlan::forceTangledViews() {
  llvm::DenseMap<Operation *, unsigned> moved; // elements, so many times
  for (Operation &op : block.without_terminator()) {
    if (!inlined.contains(&op) || op.getNumOperands() == 0)
      continue;
    Operation *from = op.getOperand(0).getDefiningOp();
    unsigned times = from ? moved.lookup(from) : 0;
    if (!isSameBytes(&op) && ++times > limits.maxViews) {
      makeGroup(&op);
      tangled.insert(&op);
      times = 0;
    }
    moved[&op] = times;
  }
}

/// An operator that fetches its operands again and again wants them dense.
void FusionPlan::forceStridedReads() {
  for (Operation &op : block.without_terminator()) {
    if (!groupOf(&op))
      continue;
    auto reader = cast<GraphOpInterface>(&op);
    for (OpOperand &operand : op.getOpOperands()) {
      Operation *view = operand.get().getDefiningOp();
      if (!view || !inlined.contains(view) || view->getNumOperands() == 0 ||
          reader.getOperandReads(operand.getOperandNumber()) <= 1)
        continue;
      Exprs shape = getShape(operand.get());
      auto map =
          AffineMap::getMultiDimIdentityMap(shape.size(), op.getContext());
      Value value = operand.get();
      for (; Operation *def = value.getDefiningOp();
           value = def->getOperand(0)) {
        if (!inlined.contains(def) || def->getNumOperands() == 0 ||
            isSameBytes(def))
          break;
        map = composeMaps(cast<GraphOpInterface>(def).getOperandMap(0), map,
                          shape);
      }
      if (!keepsInnermost(map, shape, getShape(value)))
        makeGroup(view);
    }
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

bool FusionPlan::reaches(const Group &target, Sources work) const {
  // Operators behind a place that no group spans depend on none at or after it.
  unsigned first = position.size();
  for (Operation *op : target.ops)
    first = std::min(first, position.lookup(op));
  first = spans.lastFree(first);
  llvm::DenseSet<Group *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (position.lookup(op) < first)
      continue;
    Group *group = groupOf(op);
    // Where the search is long, the answer that forbids less than is possible
    // bounds it.
    if (group == &target || seen.size() >= limits.maxSearched)
      return true;
    if (seen.insert(group).second)
      for (Operation *op : group->ops)
        collectSources(op, work);
  }
  return false;
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

unsigned FusionPlan::countInputs(ArrayRef<Operation *> ops) const {
  llvm::DenseSet<Operation *> inside(ops.begin(), ops.end());
  llvm::DenseSet<Value> inputs;
  SmallVector<Operation *> work(ops);
  while (!work.empty())
    for (Value operand : work.pop_back_val()->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def || (!inlined.contains(def) && !inside.contains(def)))
        inputs.insert(operand);
      else if (inside.insert(def).second)
        work.push_back(def);
    }
  return inputs.size();
}

bool FusionPlan::withinLimits(const Group &group,
                              ArrayRef<Operation *> more) const {
  SmallVector<Operation *> ops(group.ops);
  ops.append(more.begin(), more.end());
  if (ops.size() > limits.maxOperators || countInputs(ops) > limits.maxInputs)
    return false;
  int64_t most = limits.maxCode;
  if (group.hasAnchor(OpRole::Contraction) || group.hasAnchor(OpRole::Window))
    most = limits.maxEpilogueCode;
  else if (group.anchor)
    most = limits.maxRowCode;
  return estimateCode(
             ops, [&](Operation *op) { return inlined.contains(op); },
             most + 1) <= most;
}

//===----------------------------------------------------------------------===//
// Growth along the results
//===----------------------------------------------------------------------===//

/// Full-size operators beside a reduction of few, long rows would run on as few
/// program instances as there are rows.
bool FusionPlan::hasEnoughRows(const IterationSpace &space) const {
  Exprs rows, row;
  for (auto [d, extent] : llvm::enumerate(space.getShape()))
    (space.getReduced().test(d) ? row : rows).push_back(extent);
  return elementsOf(rows) >= limits.minRows ||
         elementsOf(row) <= limits.longRow;
}

/// A contraction has tiles of rows by columns: no dimension may be part row and
/// part column. Where it computes its columns together (attention), neither may
/// become one dimension with any other.
static bool joinsTileSides(const FusionPlan::Group &group, AffineMap map) {
  if (!group.hasAnchor(OpRole::Contraction))
    return false;
  SmallVector<DimKind> kinds =
      GraphOpInterface(group.anchor).getResultDimKinds();
  bool together = llvm::is_contained(kinds, DimKind::Whole);
  return llvm::any_of(map.getResults(), [&](AffineExpr coordinate) {
    unsigned rows = 0, columns = 0, others = 0;
    for (auto [d, kind] : llvm::enumerate(kinds))
      if (coordinate.isFunctionOfDim(d))
        ++(kind == DimKind::Row                                ? rows
           : kind == DimKind::Column || kind == DimKind::Whole ? columns
                                                               : others);
    return together ? rows + columns && rows + columns + others > 1
                    : rows && columns;
  });
}

bool FusionPlan::tryAbsorb(Group &group, GraphOpInterface op) {
  if (tangled.contains(op))
    return false;
  auto isTransparent = [&](Operation *view) { return inlined.contains(view); };
  std::optional<IterationSpace::Place> place =
      group.space.fit(op, isTransparent);
  if (!place || joinsTileSides(group, place->map) ||
      !withinLimits(group, {op.getOperation()}))
    return false;
  // A tile of a result whose dimensions mix rows would compute the rows of each
  // of its elements; with the bytes of the space it is stored in that shape.
  if (place->extent == IterationSpace::Extent::Full &&
      group.space.mixesRows(*place) &&
      !group.space.isReshape(*place, getShape(op->getResult(0))))
    return false;
  if (group.space.getReduced().any() &&
      place->extent == IterationSpace::Extent::Full &&
      !hasEnoughRows(group.space))
    return false;
  Sources others;
  collectSources(op, others);
  others.remove_if(
      [&](Operation *source) { return groupOf(source) == &group; });
  if (reaches(group, others))
    return false;
  merge(*groups[op], group);
  group.space.add(op->getResult(0), *place);
  return true;
}

void FusionPlan::growForward(GraphOpInterface root) {
  if (root.getRole() == OpRole::Ordered)
    return; // nothing is computed from its result before all of it is there
  Group &group = *groupOf(root);
  bool rows = isRowRole(root.getRole());
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<Operation *> candidates;
    for (Operation *op : group.ops)
      for (OpOperand *use : readersOf(op))
        if (Group *other = groupOf(use->getOwner()); other && other != &group)
          candidates.push_back(use->getOwner());
    llvm::sort(candidates, [&](Operation *a, Operation *b) {
      return position[a] < position[b];
    });
    for (Operation *op : candidates) {
      OpRole role = roleOf(op);
      bool wanted = role == OpRole::Pointwise || role == OpRole::View ||
                    (rows && isRowRole(role));
      Group *other = groupOf(op);
      if (wanted && other != &group && other->ops.size() == 1 &&
          tryAbsorb(group, cast<GraphOpInterface>(op)))
        changed = true;
    }
  }
}

//===----------------------------------------------------------------------===//
// Joining groups without an anchor to their readers
//===----------------------------------------------------------------------===//

bool FusionPlan::isExpensive(const Group &group) const {
  return llvm::any_of(group.ops, [](Operation *op) {
    return roleOf(op) == OpRole::Indexing ||
           cast<GraphOpInterface>(op).isExpensive();
  });
}

/// Whether the reader at `use` may compute the producer's result where it needs
/// it.
bool FusionPlan::acceptsPrologue(const Group &producer, const Group &reader,
                                 OpOperand &use) const {
  auto op = cast<GraphOpInterface>(use.getOwner());
  OpRole role = op.getRole();
  if (role == OpRole::Contraction ||
      op.getUpdatedOperand() == use.getOperandNumber())
    return false;
  int64_t stored = 1;
  for (Operation *p : producer.ops)
    stored = std::max(stored, elementsOf(p->getResult(0)));
  bool repeats = elementsOf(use.get()) > stored + stored / 2;
  if (isRowRole(role))
    return !repeats || !isExpensive(producer);
  if (reader.hasAnchor(OpRole::Contraction) &&
      llvm::any_of(producer.ops,
                   [](Operation *p) { return roleOf(p) == OpRole::Indexing; }))
    return false;
  bool cheap =
      !isExpensive(producer) && producer.ops.size() <= limits.maxRecomputed;
  // In front of a window, elements are computed for every window that has them.
  bool beforeWindow = reader.hasAnchor(OpRole::Window) &&
                      !reader.space.contains(op->getResult(0));
  if (role == OpRole::Window || beforeWindow)
    return cheap && producer.ops.size() <= 1;
  int64_t computed =
      elementsOf(op->getResult(0)) * op.getOperandReads(use.getOperandNumber());
  return cheap || computed <= stored + stored / 2;
}

/// A cheap operator with several readers is computed by each of them.
bool FusionPlan::tryInline(Group &producer, ArrayRef<OpOperand *> readers) {
  if (producer.ops.size() != 1 ||
      roleOf(producer.ops[0]) != OpRole::Pointwise || isExpensive(producer) ||
      readers.size() > limits.maxRecomputed)
    return false;
  Operation *op = producer.ops[0];
  unsigned large = llvm::count_if(op->getOperands(), [&](Value operand) {
    return elementsOf(operand) * 4 > elementsOf(op->getResult(0));
  });
  if (large > 1)
    return false;
  for (OpOperand *use : readers) {
    Group *reader = groupOf(use->getOwner());
    if (!reader || !acceptsPrologue(producer, *reader, *use) ||
        !withinLimits(*reader, {op}))
      return false;
  }
  inlined.insert(op);
  groups.erase(op);
  producer.ops.clear();
  return true;
}

/// Places `use`'s value, and what inlined views make it of, in the space.
void FusionPlan::placeBackward(IterationSpace &space, OpOperand &use) const {
  Value value = use.get();
  if (space.contains(value))
    return;
  std::optional<IterationSpace::Place> place = space.placeOfOperand(use);
  if (!place)
    return;
  space.add(value, *place);
  if (Operation *def = value.getDefiningOp(); def && inlined.contains(def))
    for (OpOperand &operand : def->getOpOperands())
      placeBackward(space, operand);
}

bool FusionPlan::tryJoin(Group &producer, Group &reader,
                         ArrayRef<OpOperand *> readers) {
  if (!withinLimits(reader, producer.ops))
    return false;
  bool readElsewhere = false;
  for (OpOperand *use : readers) {
    if (groupOf(use->getOwner()) != &reader)
      readElsewhere = true;
    else if (!acceptsPrologue(producer, reader, *use))
      return false;
  }
  IterationSpace space = reader.space;
  if (readElsewhere) {
    // The reader also stores what others read: it must see each element just
    // once.
    Sources others;
    for (Operation *op : reader.ops)
      collectSources(op, others);
    others.remove_if([&](Operation *source) {
      return groupOf(source) == &producer || groupOf(source) == &reader;
    });
    if (reaches(producer, others))
      return false;
    for (OpOperand *use : readers)
      if (groupOf(use->getOwner()) == &reader)
        placeBackward(space, *use);
    for (Operation *op : llvm::reverse(producer.ops))
      for (OpOperand &operand : op->getOpOperands())
        placeBackward(space, operand);
    for (Operation *op : producer.ops)
      for (OpOperand *use : readersOf(op))
        if (Group *other = groupOf(use->getOwner());
            other != &reader && other != &producer)
          if (!space.contains(op->getResult(0)))
            return false;
  }
  merge(producer, reader);
  reader.space = std::move(space);
  return true;
}

void FusionPlan::joinReaders() {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &storagePtr : llvm::reverse(storage)) {
      Group &producer = *storagePtr;
      if (producer.ops.empty() || producer.anchor ||
          tangled.contains(producer.ops.front()))
        continue;
      Readers readers;
      llvm::SmallSetVector<Group *, 4> readerGroups;
      for (Operation *op : producer.ops)
        for (OpOperand *use : readersOf(op))
          if (Group *group = groupOf(use->getOwner()); group != &producer) {
            readers.insert(use);
            readerGroups.insert(group); // null: returned
          }
      if (readers.empty())
        continue;
      if (readerGroups.size() > 1 &&
          tryInline(producer, readers.getArrayRef())) {
        changed = true;
        continue;
      }
      for (Group *reader : readerGroups)
        if (reader && tryJoin(producer, *reader, readers.getArrayRef())) {
          changed = true;
          break;
        }
    }
  }
}

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
    SmallVector<Operation *> ops(group->ops);
    for (Operation *op : ops) {
      Value value = op->getResult(0);
      std::optional<IterationSpace::Place> place = group->space.lookup(value);
      if (!place)
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

/// Finds an order of the results in which all follow from the first, as
/// verify-kernels wants it. False where there is none.
bool FusionPlan::orderResults(Group &group) const {
  llvm::sort(group.ops, [&](Operation *a, Operation *b) {
    return position.lookup(a) < position.lookup(b);
  });
  SmallVector<Operation *> body = bodyOf(group);
  llvm::DenseSet<Value> fromProduct;
  for (Operation *op : body)
    if (group.hasAnchor(OpRole::Contraction) &&
        (op == group.anchor || llvm::any_of(op->getOperands(), [&](Value v) {
           return fromProduct.contains(v);
         })))
      fromProduct.insert(op->result_begin(), op->result_end());
  SmallVector<Value> products, others, rows;
  for (Operation *op : group.ops)
    for (Value result : op->getResults()) {
      Readers readers;
      collectReaders(result, readers);
      if (llvm::all_of(readers, [&](OpOperand *use) {
            return groupOf(use->getOwner()) == &group;
          }))
        continue;
      auto place = group.space.lookup(result);
      (place && place->extent == IterationSpace::Extent::Row ? rows
       : fromProduct.contains(result)                        ? products
                                                             : others)
          .push_back(result);
    }
  ArrayRef<Value> firsts = !products.empty() ? products
                           : !others.empty() ? others
                                             : rows;
  for (unsigned i = 0, e = firsts.size(); i < e; ++i) {
    SmallVector<Value> &results = group.results;
    results.assign(products);
    results.append(others);
    results.append(rows);
    std::rotate(results.begin(), results.begin() + i, results.begin() + i + 1);
    if (body.size() == 1)
      return true;
    auto space = getIterationSpace(body, results);
    if (space && getResultMaps(*space, results))
      return true;
  }
  return firsts.empty();
}

/// Where permutations and reshapes mix so that results of a kernel do not
/// follow from one another, its operators part.
void FusionPlan::splitUnrelated() {
  for (size_t i = 0; i < storage.size(); ++i) {
    Group &group = *storage[i];
    if (group.ops.empty() || orderResults(group) || group.ops.size() == 1)
      continue;
    SmallVector<Operation *> ops(std::move(group.ops));
    group.ops.clear();
    for (Operation *op : ops)
      makeGroup(op);
  }
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
