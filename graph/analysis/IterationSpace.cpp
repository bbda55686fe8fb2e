#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Cells.h"
#include "graph/analysis/Walked.h"

using namespace mlir;

namespace charonia::graph {

//===----------------------------------------------------------------------===//
// Fitting operators into a space
//===----------------------------------------------------------------------===//

/// How an operand reads a placed value.
struct IterationSpace::Path {
  Value placed;
  /// Views on the way, the one nearest to the placed value last.
  SmallVector<GraphOpInterface> views;

  /// Coordinates of the operand to coordinates of the placed value.
  AffineMap backward(AffineMap map) const {
    for (GraphOpInterface view : views) {
      AffineMap step = view.getOperandMap(0);
      if (!step)
        return {};
      map = composeMaps(step, map);
    }
    return map;
  }
  /// Space coordinates to coordinates of the operand; null where not
  /// one-to-one.
  AffineMap forward(AffineMap map, ArrayRef<AffineExpr> extents) const {
    for (GraphOpInterface view : llvm::reverse(views)) {
      AffineMap step = getForwardMap(view, 0);
      if (!step)
        return {};
      map = composeMaps(step, map, extents);
    }
    return map;
  }
  /// The same to coordinates of what `op` makes of its operand, and null where
  /// it is not seen that this reads the placed value at its place.
  AffineMap forward(AffineMap map, ArrayRef<AffineExpr> extents,
                    GraphOpInterface op, unsigned operand, bool mayRoll) const {
    SmallVector<GraphOpInterface> steps(llvm::reverse(views));
    bool isView = op.getRole() == OpRole::View && operand == 0;
    if (isView)
      steps.push_back(op);
    map = composeForward(steps, map, extents, mayRoll);
    if (!map || isView)
      return map;
    AffineMap step = getForwardMap(op, operand);
    return step ? composeMaps(step, map, extents) : step;
  }
};

std::optional<IterationSpace::Path>
IterationSpace::pathTo(OpOperand &operand, IsTransparent isTransparent) const {
  Path path{operand.get(), {}};
  while (!contains(path.placed)) {
    auto view = path.placed.getDefiningOp<GraphOpInterface>();
    if (!view || view.getRole() != OpRole::View || !isTransparent(view))
      return std::nullopt;
    path.views.push_back(view);
    path.placed = view->getOperand(0);
  }
  return path;
}

std::optional<IterationSpace::Place> IterationSpace::lookup(Value value) const {
  auto it = places.find(value);
  if (it == places.end())
    return std::nullopt;
  return it->second;
}

static bool isRowOperator(GraphOpInterface op) {
  return op.getRole() == OpRole::Reduction ||
         op.getRole() == OpRole::RowNormalization;
}

/// Coordinates of a reduction's result from those of its operand.
static AffineMap reducedCoordinates(GraphOpInterface op, AffineMap operand) {
  if (op.getRole() == OpRole::RowNormalization)
    return operand;
  bool keepdims = getShape(op->getResult(0)).size() == operand.getNumResults();
  SmallVector<int64_t> axes = op.getReductionAxes();
  SmallVector<AffineExpr> results;
  for (auto [d, e] : llvm::enumerate(operand.getResults())) {
    if (!llvm::is_contained(axes, (int64_t)d))
      results.push_back(e);
    else if (keepdims)
      results.push_back(getAffineConstantExpr(0, operand.getContext()));
  }
  return AffineMap::get(operand.getNumDims(), operand.getNumSymbols(), results,
                        operand.getContext());
}

/// Each dimension as it is, but 0 where that is all it can be.
static AffineMap identity(ArrayRef<AffineExpr> shape, MLIRContext *context) {
  SmallVector<AffineExpr> results;
  for (auto [d, extent] : llvm::enumerate(shape))
    results.push_back(constantOf(extent) == 1
                          ? getAffineConstantExpr(0, context)
                          : getAffineDimExpr(d, context));
  return AffineMap::get(shape.size(), 0, results, context);
}

IterationSpace IterationSpace::of(GraphOpInterface root) {
  IterationSpace space;
  space.root = root;
  bool rows = isRowOperator(root);
  space.shape =
      graph::getShape(rows ? root->getOperand(0) : root->getResult(0));
  space.reduced.resize(space.shape.size());
  AffineMap map = identity(space.shape, root->getContext());
  Extent extent = Extent::Full;
  if (rows) {
    for (int64_t axis : root.getReductionAxes())
      space.reduced.set(axis);
    map = reducedCoordinates(root, map);
    if (root.getRole() == OpRole::Reduction)
      extent = Extent::Row;
  }
  space.add(root->getResult(0), {map, extent});
  return space;
}

AffineMap IterationSpace::mapToFull(OpOperand &use,
                                    IsTransparent isTransparent) const {
  std::optional<Path> path = pathTo(use, isTransparent);
  if (!path)
    return {};
  Place from = *lookup(path->placed);
  return from.extent == Extent::Full ? path->forward(from.map, shape)
                                     : AffineMap();
}

std::optional<IterationSpace::Place>
IterationSpace::fitReduction(GraphOpInterface op,
                             IsTransparent isTransparent) const {
  AffineMap operand = reduced.none()
                          ? AffineMap()
                          : mapToFull(op->getOpOperand(0), isTransparent);
  if (!operand)
    return std::nullopt;
  // The same rows: its axes are just the reduced dimensions of the space.
  llvm::SmallBitVector axes(shape.size());
  for (int64_t axis : op.getReductionAxes()) {
    AffineExpr e = operand.getResult(axis);
    if (auto d = dyn_cast<AffineDimExpr>(e))
      axes.set(d.getPosition());
    else if (!isa<AffineConstantExpr>(e))
      return std::nullopt;
  }
  for (unsigned d : (axes ^= reduced).set_bits())
    if (constantOf(shape[d]) != 1)
      return std::nullopt;
  return Place{reducedCoordinates(op, operand),
               op.getRole() == OpRole::Reduction ? Extent::Row : Extent::Full};
}

/// Coordinates of what is computed of cells from those of its operand.
static AffineMap cellsOf(AffineMap operand, GraphOpInterface op,
                         ArrayRef<AffineExpr> extents) {
  SmallVector<AffineExpr> results;
  for (auto [e, cell, kept] :
       llvm::zip_equal(operand.getResults(), op.getCells(), keptOfCells(op)))
    results.push_back(cell == kept ? e : e.floorDiv(cell) * kept + e % kept);
  return simplify(mapOf(extents.size(), results, op->getContext()), extents);
}

std::optional<IterationSpace::Place>
IterationSpace::fitCells(GraphOpInterface op,
                         IsTransparent isTransparent) const {
  AffineMap operand = reduced.any()
                          ? AffineMap()
                          : mapToFull(op->getOpOperand(0), isTransparent);
  if (!operand)
    return std::nullopt;
  Extent extent = Extent::Full;
  for (auto [cell, kept] : llvm::zip_equal(op.getCells(), keptOfCells(op)))
    if (cell != kept)
      extent = kept == 1 ? Extent::Cell : Extent::Part;
  return Place{cellsOf(operand, op, shape), extent};
}

std::optional<IterationSpace::Place>
IterationSpace::fit(GraphOpInterface op, IsTransparent isTransparent,
                    bool mayRoll) const {
  if (op->getNumResults() != 1)
    return std::nullopt;
  if (isRowOperator(op))
    return fitReduction(op, isTransparent);
  if (!op.getCells().empty())
    return fitCells(op, isTransparent);

  SmallVector<std::pair<unsigned, Path>> placed;
  /// With the entry that each follows from, and so reads at its place.
  SmallVector<std::pair<Place, std::optional<size_t>>> candidates;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<Path> path = pathTo(operand, isTransparent);
    if (!path)
      continue;
    Place from = *lookup(path->placed);
    // Other instances have other cells.
    if (from.extent == Extent::Cell ||
        (from.extent == Extent::Part && op.getRole() != OpRole::Pointwise &&
         op.getRole() != OpRole::View))
      return std::nullopt;
    if (AffineMap map = path->forward(from.map, shape, op,
                                      operand.getOperandNumber(), mayRoll))
      candidates.push_back({{map, from.extent}, placed.size()});
    placed.push_back({operand.getOperandNumber(), std::move(*path)});
  }
  if (placed.empty())
    return std::nullopt;
  // A row value that is broadcast back over the rows that it came from.
  if (graph::getShape(op->getResult(0)) == shape)
    candidates.push_back(
        {{identity(shape, op->getContext()), Extent::Full}, std::nullopt});

  auto readsInPlace = [&](const Place &candidate, std::optional<size_t> from) {
    return llvm::all_of(llvm::enumerate(placed), [&](const auto &entry) {
      if (entry.index() == from)
        return true;
      AffineMap map = op.getOperandMap(entry.value().first);
      if (map)
        map = entry.value().second.backward(map);
      if (!map)
        return false;
      AffineMap read = composeMaps(map, candidate.map, shape);
      return read.getResults() ==
             simplify(lookup(entry.value().second.placed)->map, shape)
                 .getResults();
    });
  };
  // A full place first: a row value beside a full one must not pull it to rows.
  for (Extent extent : {Extent::Full, Extent::Row, Extent::Part})
    for (const auto &[candidate, from] : candidates)
      if (candidate.extent == extent && readsInPlace(candidate, from))
        return candidate;
  return std::nullopt;
}

std::optional<IterationSpace::Place>
IterationSpace::placeOfOperand(OpOperand &operand) const {
  auto op = cast<GraphOpInterface>(operand.getOwner());
  std::optional<Place> place = lookup(op->getResult(0));
  if (!place)
    return std::nullopt;
  if (isRowOperator(op)) {
    if (operand.getOperandNumber() != 0)
      return std::nullopt;
    if (op == root)
      return Place{identity(shape, op->getContext()), Extent::Full};
    return op.getRole() == OpRole::RowNormalization ? place : std::nullopt;
  }
  if (!getForwardMap(op, operand.getOperandNumber()))
    return std::nullopt;
  return Place{composeMaps(op.getOperandMap(operand.getOperandNumber()),
                           place->map, shape),
               place->extent};
}

bool IterationSpace::mixesRows(const Place &place) const {
  return llvm::any_of(place.map.getResults(), [&](AffineExpr coordinate) {
    bool inRow = false, acrossRows = false;
    for (unsigned d = 0; d < shape.size(); ++d)
      if (coordinate.isFunctionOfDim(d))
        (reduced.test(d) ? inRow : acrossRows) = true;
    return inRow && acrossRows;
  });
}

bool IterationSpace::isReshape(const Place &place,
                               ArrayRef<AffineExpr> extents) const {
  MLIRContext *context = place.map.getContext();
  if (numElements(extents, context) != numElements(shape, context))
    return false;
  AffineMap map = reshapeMap(extents, shape, context);
  return map && simplify(map, shape).getResults() ==
                    simplify(place.map, shape).getResults();
}

AffineMap IterationSpace::mapBetween(Value from, Value to) const {
  std::optional<Place> source = lookup(from), target = lookup(to);
  if (!source || !target)
    return {};
  MLIRContext *context = from.getContext();
  Exprs fromShape = graph::getShape(from), toShape = graph::getShape(to);
  // Space dimensions as coordinates of `from`.
  SmallVector<AffineExpr> dims(shape.size());
  bool plain = true;
  for (auto [i, e] : llvm::enumerate(source->map.getResults())) {
    if (auto d = dyn_cast<AffineDimExpr>(e))
      dims[d.getPosition()] = getAffineDimExpr(i, context);
    else if (!isa<AffineConstantExpr>(e))
      plain = false;
  }
  if (plain) {
    for (auto [d, e] : llvm::enumerate(dims)) {
      if (!e && constantOf(shape[d]) != 1 && target->map.isFunctionOfDim(d))
        return {};
      if (!e)
        e = getAffineConstantExpr(0, context);
    }
    return simplify(
        mapOf(fromShape.size(), applyMap(target->map, dims), context),
        fromShape);
  }
  if (target->extent == Extent::Cell && from != to) {
    // From where its elements are its cells follow.
    auto op = to.getDefiningOp<GraphOpInterface>();
    AffineMap elements = mapBetween(from, op->getOperand(0));
    return elements ? cellsOf(elements, op, fromShape) : elements;
  }
  // Else they must lie at the same place, or be reshapes of each other.
  if (source->extent == Extent::Full && fromShape == toShape &&
      simplify(source->map, shape).getResults() ==
          simplify(target->map, shape).getResults())
    return AffineMap::getMultiDimIdentityMap(fromShape.size(), context);
  if (numElements(fromShape, context) != numElements(toShape, context))
    return {};
  AffineMap map = reshapeMap(toShape, fromShape, context);
  if (map && composeMaps(map, source->map, shape).getResults() ==
                 simplify(target->map, shape).getResults())
    return map;
  return {};
}

//===----------------------------------------------------------------------===//
// The space of a kernel
//===----------------------------------------------------------------------===//

bool canBeComputedAgain(GraphOpInterface op) {
  if (op.getRole() == OpRole::Reduction)
    return op->getNumResults() == 1;
  std::optional<Columns> columns;
  if (op.getRole() == OpRole::Contraction)
    columns = op.getColumns();
  if (!columns)
    return false;
  Exprs shape = getShape(op->getResult(0));
  SmallVector<int64_t> sizes = getOptimum(op);
  for (auto [d, kind] : llvm::enumerate(op.getResultDimKinds()))
    if (kind != DimKind::Column && evaluate(shape[d], sizes) != 1)
      return false;
  return true;
}

static bool isAnchor(GraphOpInterface op) {
  OpRole role = op.getRole();
  return role == OpRole::Contraction || role == OpRole::Window ||
         isRowOperator(op);
}

/// The space around `root`; nothing where a result has no place in it.
static std::optional<IterationSpace> spaceAround(GraphOpInterface root,
                                                 ArrayRef<Operation *> body,
                                                 ValueRange results) {
  llvm::SmallPtrSet<Operation *, 16> inside(body.begin(), body.end());
  auto isInside = [&](Operation *op) { return inside.contains(op); };

  IterationSpace space = IterationSpace::of(root);
  // Forward to what is computed from placed values, backward to what they are
  // computed from, until nothing new is placed.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : body) {
      auto graphOp = dyn_cast<GraphOpInterface>(op);
      if (!graphOp || space.contains(op->getResult(0)))
        continue;
      if (auto place = space.fit(graphOp, isInside)) {
        space.add(op->getResult(0), *place);
        changed = true;
      }
    }
    for (Operation *op : llvm::reverse(body)) {
      if (!isa<GraphOpInterface>(op))
        continue;
      for (OpOperand &operand : op->getOpOperands())
        if (!space.contains(operand.get()))
          if (auto place = space.placeOfOperand(operand)) {
            space.add(operand.get(), *place);
            changed = true;
          }
    }
  }
  for (Value result : results)
    if (!space.contains(result))
      return std::nullopt;
  return space;
}

/// Whether an anchor without a place depends on `root`: both are computed again
/// then, in front of something else.
static bool isInFront(GraphOpInterface root, ArrayRef<Operation *> body,
                      const IterationSpace &space) {
  llvm::SmallPtrSet<Operation *, 16> behind{root.getOperation()};
  for (Operation *op : body) {
    bool depends = llvm::any_of(op->getOperands(), [&](Value operand) {
      return behind.contains(operand.getDefiningOp());
    });
    if (!depends)
      continue;
    behind.insert(op);
    auto asked = dyn_cast<GraphOpInterface>(op);
    if (asked && isAnchor(asked) && !space.contains(op->getResult(0)))
      return true;
  }
  return false;
}

std::optional<IterationSpace> getIterationSpace(ArrayRef<Operation *> body,
                                                ValueRange results) {
  // The first anchor, unless it is a sum that each instance computes again.
  for (Operation *op : body)
    if (auto root = dyn_cast<GraphOpInterface>(op); root && isAnchor(root)) {
      auto space = spaceAround(root, body, results);
      if (!canBeComputedAgain(root) ||
          (space && !isInFront(root, body, *space)))
        return space;
    }
  auto first = results.empty() ? GraphOpInterface()
                               : results[0].getDefiningOp<GraphOpInterface>();
  return first ? spaceAround(first, body, results) : std::nullopt;
}

std::optional<IterationSpace> getIterationSpace(KernelOp kernel) {
  SmallVector<Operation *> body;
  for (Operation &op : kernel.getBody().front().without_terminator())
    body.push_back(&op);
  return getIterationSpace(
      body, kernel.getBody().front().getTerminator()->getOperands());
}

bool hasSumsAgain(KernelOp kernel) {
  std::optional<IterationSpace> space = getIterationSpace(kernel);
  auto ops = kernel.getBody().front().getOps<GraphOpInterface>();
  return space && llvm::any_of(ops, [&](GraphOpInterface op) {
           return isAnchor(op) && canBeComputedAgain(op) &&
                  !space->contains(op->getResult(0));
         });
}

/// Whether rows of the space have elements, whatever the sizes are: else there
/// is no element of a full value to compute what is stored for the row.
static bool rowsHaveElements(const IterationSpace &space, Value value) {
  std::optional<Facts> facts;
  for (unsigned d : space.getReduced().set_bits()) {
    AffineExpr extent = space.getShape()[d];
    if (auto known = constantOf(extent); known && *known > 0)
      continue;
    if (!facts)
      facts = getFacts(value.getParentRegion()->getParentOfType<ModuleOp>());
    if (boundsOf(extent, *facts).low < 1)
      return false;
  }
  return true;
}

std::optional<SmallVector<AffineMap>>
getResultMaps(const IterationSpace &space, Value first, ValueRange results) {
  auto isRow = [&](Value result) {
    auto place = space.lookup(result);
    return place && place->extent == IterationSpace::Extent::Row;
  };
  if (!isRow(first) && llvm::any_of(results, isRow) &&
      !rowsHaveElements(space, first))
    return std::nullopt;
  if (!getCellSides(space, first, results))
    return std::nullopt;
  SmallVector<AffineMap> maps;
  for (Value result : results) {
    maps.push_back(space.mapBetween(first, result));
    if (!maps.back())
      return std::nullopt;
  }
  return maps;
}

std::optional<SmallVector<AffineMap>> getResultMaps(KernelOp kernel) {
  ValueRange results = kernel.getBody().front().getTerminator()->getOperands();
  // What is stored as it is, and several times, may be an argument, which has
  // no space around it.
  if (llvm::all_equal(results) && getFirst(kernel) == results.front())
    return SmallVector<AffineMap>(
        results.size(),
        AffineMap::getMultiDimIdentityMap(
            cast<RankedTensorType>(results.front().getType()).getRank(),
            kernel.getContext()));
  std::optional<IterationSpace> space = getIterationSpace(kernel);
  return space ? getResultMaps(*space, getFirst(kernel), results)
               : std::nullopt;
}

} // namespace charonia::graph
