// Which views are stored: of long chains, and where readers that fetch elements
// again and again would find them apart.
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Weights.h"

using namespace mlir;

namespace charonia::graph {

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

} // namespace charonia::graph
