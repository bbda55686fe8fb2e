// How groups of a fusion plan grow: along their results, and by joining the
// groups that read them.
#include "graph/analysis/Cells.h"
#include "graph/analysis/CodeSize.h"
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Walked.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace charonia::graph {

llvm::DenseSet<Value> FusionPlan::inputsOf(ArrayRef<Operation *> ops) const {
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
  return inputs;
}

bool FusionPlan::withinLimits(const Group &group,
                              ArrayRef<Operation *> more) const {
  SmallVector<Operation *> ops(group.ops);
  ops.append(more.begin(), more.end());
  if (ops.size() > limits.maxOperators ||
      inputsOf(ops).size() > limits.maxInputs)
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

/// A contraction has tiles of rows by columns, in one matrix of its batch: no
/// dimension may be part of one and part of another of these. Where it computes
/// its columns together (attention), rows or columns may not become one
/// dimension with any other.
static bool joinsTileSides(const FusionPlan::Group &group, AffineMap map) {
  if (!group.hasAnchor(OpRole::Contraction))
    return false;
  SmallVector<DimKind> kinds =
      GraphOpInterface(group.anchor).getResultDimKinds();
  ArrayRef<AffineExpr> extents = group.space.getShape();
  bool together = llvm::is_contained(kinds, DimKind::Whole);
  return llvm::any_of(map.getResults(), [&](AffineExpr coordinate) {
    unsigned rows = 0, columns = 0, others = 0;
    for (auto [d, kind] : llvm::enumerate(kinds))
      if (coordinate.isFunctionOfDim(d) && constantOf(extents[d]) != 1)
        ++(kind == DimKind::Row                                ? rows
           : kind == DimKind::Column || kind == DimKind::Whole ? columns
                                                               : others);
    if (together)
      return rows + columns && rows + columns + others > 1;
    return (rows > 0) + (columns > 0) + (others > 0) > 1;
  });
}

/// Whether neighbours in memory of `op`, whose coordinates `map` gives, are
/// neighbours along no side of a contraction's tile: it would be stored element
/// by element.
static bool scattersTile(const FusionPlan::Group &group, GraphOpInterface op,
                         AffineMap map) {
  if (!group.hasAnchor(OpRole::Contraction))
    return false;
  Exprs shape = getShape(op->getResult(0));
  unsigned last = shape.size();
  while (last > 0 && constantOf(shape[last - 1]) == 1)
    --last;
  if (last == 0)
    return false;
  AffineExpr innermost = map.getResult(last - 1);
  if (auto wrapped = dyn_cast<AffineBinaryOpExpr>(innermost);
      wrapped && wrapped.getKind() == AffineExprKind::Mod)
    innermost = wrapped.getLHS();
  constexpr int64_t run = 8;
  Sum sum(innermost);
  for (unsigned d = 0; d < map.getNumDims(); ++d) {
    AffineExpr inRun = getAffineDimExpr(d, map.getContext()) % run;
    if (sum.coefficientOf(d) == 1 ||
        constantOf(simplify((innermost - inRun) % run)) == 0)
      return false;
  }
  return !innermost.isSymbolicOrConstant();
}

/// Of views that take rows apart that data have chosen.
static constexpr const char *kAcross =
    "rows that data choose are read and stored as they lie";

bool FusionPlan::needsRoll(const Group &group, GraphOpInterface op) const {
  return !group.space.fit(
      op, [&](Operation *view) { return inlined.contains(view); },
      /*mayRoll=*/false);
}

const char *
FusionPlan::whyNotBehind(const Group &group, GraphOpInterface op,
                         std::optional<IterationSpace::Place> &place) const {
  if (tangled.contains(op))
    return "its coordinates would be too long, by the views in front of it";
  if (across.contains(op))
    return kAcross;
  auto isTransparent = [&](Operation *view) { return inlined.contains(view); };
  // Rows that a product gives may roll on a GPU, where a launch costs more than
  // to read them in turn.
  bool mayRoll =
      limits.instances > 0 && group.anchor && givesRows(group.anchor);
  place = group.space.fit(op, isTransparent, mayRoll);
  if (!place)
    return "it reads other elements than those computed at its place";
  // Else what is stored would not follow from the product's tiles.
  bool rolls = mayRoll && (group.rolls || needsRoll(group, op));
  if (rolls && place->extent == IterationSpace::Extent::Full &&
      place->map.getResults().back() !=
          getAffineDimExpr(place->map.getNumDims() - 1, op->getContext()))
    return "rows that roll are stored with their columns side by side";
  // A CPU has long walks for tiles, and finds in its cache what it reads again.
  bool isCell = place->extent == IterationSpace::Extent::Cell ||
                place->extent == IterationSpace::Extent::Part;
  if (!op.getCells().empty())
    if (const char *why = limits.instances == 0
                              ? "rows are walked, not cells"
                              : whyNoCells(group.anchor, group.ops, op))
      return why;
  if (joinsTileSides(group, place->map))
    return "one of its dimensions mixes rows and columns of the product";
  if (!isCell && scattersTile(group, op, place->map))
    return "a tile of the product would be stored element by element";
  if (!withinLimits(group, {op.getOperation()}))
    return "the kernel would have too much code or too many inputs";
  // A tile of a result whose dimensions mix rows would compute the rows of each
  // of its elements; with the bytes of the space it is stored in that shape.
  bool isFull = place->extent == IterationSpace::Extent::Full;
  if (isFull && group.space.mixesRows(*place) &&
      !group.space.isReshape(*place, getShape(op->getResult(0))))
    return "its tiles would lie across rows";
  if (group.space.getReduced().any() && isFull && !hasEnoughRows(group.space))
    return "there are few rows, and long ones: too few instances";
  return nullptr;
}

bool FusionPlan::tryAbsorb(Group &group, GraphOpInterface op) {
  std::optional<IterationSpace::Place> place;
  if (whyNotBehind(group, op, place))
    return false;
  Sources others;
  collectSources(op, others);
  others.remove_if(
      [&](Operation *source) { return groupOf(source) == &group; });
  if (reaches(group, others))
    return false;
  group.rolls |= needsRoll(group, op);
  merge(*groups[op], group);
  group.space.add(op->getResult(0), *place);
  return true;
}

/// Reductions of what the group's reduction walks along, over the same rows:
/// one kernel walks once. What else reads it is no reason to be together.
bool FusionPlan::tryAbsorbSibling(Group &group, GraphOpInterface op) {
  Value walked = group.anchor->getOperand(0);
  if (op->getOperand(0) != walked || op->getNumOperands() != 1 ||
      op->getNumResults() != 1 ||
      op.getReductionAxes() != group.anchor.getReductionAxes())
    return false;
  Sources ours;
  for (Operation *own : group.ops)
    collectSources(own, ours);
  if (reaches(*groupOf(op), ours))
    return false;
  IterationSpace before = group.space;
  Exprs shape = getShape(walked);
  group.space.add(walked, {AffineMap::getMultiDimIdentityMap(shape.size(),
                                                             op->getContext()),
                           IterationSpace::Extent::Full});
  bool done = tryAbsorb(group, op);
  std::optional<IterationSpace::Place> place =
      group.space.lookup(op->getResult(0));
  group.space = std::move(before);
  if (done)
    group.space.add(op->getResult(0), *place);
  return done;
}

/// Whether an operator computes each element of one operand's element, at once.
static bool isOfOne(GraphOpInterface op) {
  return op.getRole() == OpRole::Pointwise && op->getNumOperands() > 0 &&
         llvm::all_equal(op->getOperands()) && !op.isExpensive();
}

/// Whether such an operator gives its operand's elements in a longer type.
static bool isLonger(GraphOpInterface op) {
  auto bits = [](Value value) -> unsigned {
    Type type = getElementTypeOrSelf(value);
    return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  };
  return isOfOne(op) && bits(op->getResult(0)) > bits(op->getOperand(0));
}

/// Whether reductions alone read a result that is longer than its operand, or
/// is stored beside it, as the squares of a norm that divides what they are of:
/// each computes it from what is shorter, or there anyway.
bool FusionPlan::belongsToReaders(GraphOpInterface op) const {
  if (!isOfOne(op))
    return false;
  bool isStoredBeside =
      llvm::any_of(op->getOperand(0).getUsers(), [&](Operation *user) {
        return user != op && groupOf(user);
      });
  Readers readers = readersOf(op);
  return (isLonger(op) || isStoredBeside) && !readers.empty() &&
         llvm::all_of(readers, [&](OpOperand *use) {
           return groupOf(use->getOwner()) &&
                  isRowRole(roleOf(use->getOwner()));
         });
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
    SmallVector<Operation *> siblings;
    if (root.getRole() == OpRole::Reduction)
      for (Operation *user : root->getOperand(0).getUsers())
        if (Group *other = groupOf(user); other && other != &group &&
                                          other->ops.size() == 1 &&
                                          roleOf(user) == OpRole::Reduction)
          siblings.push_back(user);
    auto inOrder = [&](Operation *a, Operation *b) {
      return position[a] < position[b];
    };
    llvm::sort(candidates, inOrder);
    llvm::sort(siblings, inOrder);
    for (Operation *op : siblings)
      if (groupOf(op) != &group)
        changed |= tryAbsorbSibling(group, cast<GraphOpInterface>(op));
    for (Operation *op : candidates) {
      OpRole role = roleOf(op);
      bool wanted = role == OpRole::Pointwise || role == OpRole::View ||
                    (rows && isRowRole(role)) ||
                    !cast<GraphOpInterface>(op).getCells().empty();
      Group *other = groupOf(op);
      if (wanted && other != &group && other->ops.size() == 1 &&
          (rows || !belongsToReaders(cast<GraphOpInterface>(op))) &&
          tryAbsorb(group, cast<GraphOpInterface>(op)))
        changed = true;
    }
  }
}

//===----------------------------------------------------------------------===//
// Joining groups without an anchor to their readers
//===----------------------------------------------------------------------===//

bool FusionPlan::isExpensive(const Group &group) const {
  return llvm::any_of(group.ops, [&](Operation *op) {
    auto graphOp = cast<GraphOpInterface>(op);
    // On a GPU a launch costs more than to ask which part has an element.
    bool looksUp = graphOp.getRole() == OpRole::Indexing &&
                   (limits.instances == 0 || !graphOp.getJoinedDim());
    return looksUp || graphOp.isExpensive();
  });
}

const char *FusionPlan::whyNotInFront(const Group &producer,
                                      const Group &reader,
                                      OpOperand &use) const {
  auto op = cast<GraphOpInterface>(use.getOwner());
  OpRole role = op.getRole();
  if (across.contains(op))
    return kAcross;
  if (role == OpRole::Contraction)
    return "products copy their operands from memory";
  if (op.getUpdatedOperand() == use.getOperandNumber())
    return "it is updated where it lies";
  int64_t stored = 1;
  for (Operation *p : producer.ops)
    stored = std::max(stored, elementsOf(p->getResult(0)));
  bool repeats = elementsOf(use.get()) > stored + stored / 2;
  constexpr const char *again = "it would be computed again and again";
  if (isRowRole(role))
    return !repeats || !isExpensive(producer) ? nullptr : again;
  if (reader.hasAnchor(OpRole::Contraction) &&
      llvm::any_of(producer.ops,
                   [](Operation *p) { return roleOf(p) == OpRole::Indexing; }))
    return "places are looked up before a product's tiles are computed";
  bool cheap =
      !isExpensive(producer) && producer.ops.size() <= limits.maxRecomputed;
  // In front of a window, elements are computed for every window that has them.
  bool beforeWindow = reader.hasAnchor(OpRole::Window) &&
                      !reader.space.contains(op->getResult(0));
  // A view is stored so that windows find it dense.
  if (role == OpRole::Window || beforeWindow)
    return cheap && producer.ops.size() <= 1 &&
                   roleOf(producer.ops[0]) != OpRole::View
               ? nullptr
               : "windows that overlap would compute it again";
  // What interpolates computes all that it interpolates between.
  int64_t computed = elementsOf(op->getResult(0)) * op.getPlacesRead() *
                     op.getOperandReads(use.getOperandNumber());
  return cheap || computed <= stored + stored / 2 ||
                 isWorthAgain(producer, stored, computed)
             ? nullptr
             : again;
}

/// Whether a GPU computes `computed` elements sooner than it stores and reads
/// back `stored`, of which each is wanted a few times: what a kernel and memory
/// take, in bytes, beside instructions, of which it executes some sixteen
/// meanwhile.
bool FusionPlan::isWorthAgain(const Group &producer, int64_t stored,
                              int64_t computed) const {
  constexpr int64_t fewTimes = 4, ofLaunch = 4 << 20, perByte = 16;
  if (limits.instances == 0 || computed > fewTimes * stored ||
      isExpensive(producer))
    return false;
  int64_t instructions = 0, bytes = ofLaunch;
  for (Operation *op : producer.ops) {
    instructions += cast<GraphOpInterface>(op).getCodeSize();
    Value value = op->getResult(0);
    unsigned bits = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
    if (llvm::any_of(value.getUsers(), [&](Operation *user) {
          return groupOf(user) != &producer;
        }))
      bytes += 2 * elementsOf(value) * llvm::divideCeil(bits, 8);
  }
  return llvm::SaturatingMultiply(uint64_t(instructions),
                                  uint64_t(computed - stored)) <=
         uint64_t(bytes) * perByte;
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
    if (!reader || whyNotInFront(producer, *reader, *use) ||
        !withinLimits(*reader, {op}))
      return false;
  }
  inlined.insert(op);
  groups.erase(op);
  producer.ops.clear();
  return true;
}

/// Whether operators read a value that may cancel what they add, or what only
/// moves it: these may be off by far more than it is where it was rounded. With
/// sums of rows if `rows`.
static bool mayCancel(Value value, bool rows) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto reader = dyn_cast<GraphOpInterface>(user);
    if (!reader || reader.getRole() == OpRole::Reduction)
      return !reader || rows;
    return reader.getRole() != OpRole::Pointwise || reader.mayCancel();
  });
}

/// Whether what `longer` makes of a shorter value, which `group` computes, is
/// better than that where it is stored. A sum of parts of one product is exact
/// where these are stored as they were summed up, and infinite where they leave
/// the shorter type. Sums of other values are worth no second store. Integers
/// are never rounded.
bool FusionPlan::isBetterStored(const Group &group,
                                GraphOpInterface longer) const {
  if (!isa<FloatType>(getElementTypeOrSelf(longer->getOperand(0))))
    return false;
  Operation *shorter = longer->getOperand(0).getDefiningOp();
  Value result = longer->getResult(0);
  if (roleOf(shorter) == OpRole::Contraction && mayCancel(result, false))
    return true;
  bool isStored = llvm::any_of(readersOf(shorter), [&](OpOperand *use) {
    return use->getOwner() != longer && groupOf(use->getOwner()) != &group;
  });
  return !isStored && mayCancel(result, true);
}

/// What is longer than its operand, at the end of a kernel that has both, is
/// for its readers to compute, where all can: less is stored and read.
void FusionPlan::sinkLonger() {
  for (Operation &op : block.without_terminator()) {
    Group *group = groupOf(&op);
    if (!group || !isLonger(cast<GraphOpInterface>(op)))
      continue;
    Operation *shorter = op.getOperand(0).getDefiningOp();
    Readers readers = readersOf(&op);
    if (!shorter || groupOf(shorter) != group || readers.empty() ||
        isBetterStored(*group, cast<GraphOpInterface>(op)) ||
        llvm::any_of(readers, [&](OpOperand *use) {
          return groupOf(use->getOwner()) == group;
        }))
      continue;
    auto *place = llvm::find(group->ops, &op);
    place = group->ops.erase(place);
    makeGroup(&op);
    if (tryInline(*storage.back(), readers.getArrayRef()))
      continue;
    storage.back()->ops.clear();
    groups[&op] = group;
    group->ops.insert(place, &op); // as if nothing had been tried
  }
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

/// `uses` are the reader's of the producer's results.
bool FusionPlan::tryJoin(Group &producer, Group &reader,
                         ArrayRef<OpOperand *> uses, bool readElsewhere) {
  if (!withinLimits(reader, producer.ops) ||
      llvm::any_of(uses, [&](OpOperand *use) {
        return whyNotInFront(producer, reader, *use) != nullptr;
      }))
    return false;
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
    for (OpOperand *use : uses)
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
          llvm::any_of(producer.ops, [&](Operation *op) {
            return tangled.contains(op) || dense.contains(op);
          }))
        continue;
      Readers readers;
      llvm::MapVector<Group *, SmallVector<OpOperand *>> byGroup;
      for (Operation *op : producer.ops)
        for (OpOperand *use : readersOf(op))
          if (Group *group = groupOf(use->getOwner());
              group != &producer && readers.insert(use))
            byGroup[group].push_back(use); // null: returned
      if (readers.empty())
        continue;
      if (byGroup.size() > 1 && tryInline(producer, readers.getArrayRef())) {
        changed = true;
        continue;
      }
      for (auto &[reader, uses] : byGroup)
        if (reader && tryJoin(producer, *reader, uses, byGroup.size() > 1)) {
          changed = true;
          break;
        }
    }
  }
}

} // namespace charonia::graph
