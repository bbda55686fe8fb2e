// Small sums that each program instance of their reader computes again: on a
// GPU this costs less than the kernel that would store them.
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/SumsAgain.h"

using namespace mlir;

namespace charonia::graph {

/// Whether a product has one row whatever the sizes are: each of its instances
/// then adds up some columns of it.
static bool hasOneRow(GraphOpInterface op) {
  Exprs shape = getShape(op->getResult(0));
  return llvm::all_of(llvm::enumerate(op.getResultDimKinds()), [&](auto dim) {
    return dim.value() == DimKind::Column ||
           constantOf(shape[dim.index()]) == 1;
  });
}

/// The group that reads all results of another, if it is one.
FusionPlan::Group *FusionPlan::onlyReader(const Group &producer) const {
  Group *only = nullptr;
  for (Operation *op : producer.ops)
    for (OpOperand *use : readersOf(op)) {
      Group *reader = groupOf(use->getOwner());
      if (reader == &producer)
        continue;
      if (!reader || (only && reader != only))
        return nullptr; // returned, or read by several
      only = reader;
    }
  return only;
}

/// Whether coordinates at which an operator reads a value, through inlined
/// views, are some of its own: tiles then lie in one row of the value.
bool FusionPlan::readsWholeDims(OpOperand &use) const {
  auto op = cast<GraphOpInterface>(use.getOwner());
  AffineMap map = op.getOperandMap(use.getOperandNumber());
  Exprs shape = getShape(op->getResult(0));
  for (Value value = use.get(); map;) {
    auto view = value.getDefiningOp<GraphOpInterface>();
    if (!view || !inlined.contains(view) || view->getNumOperands() != 1)
      break;
    AffineMap step = view.getOperandMap(0);
    map = step ? composeMaps(step, map, shape) : AffineMap();
    value = view->getOperand(0);
  }
  return map && llvm::all_of(map.getResults(), [](AffineExpr e) {
           return isa<AffineDimExpr, AffineConstantExpr>(e);
         });
}

/// Program instances of the group's kernel, about, where each reads `bytes` for
/// sums that it computes again.
int64_t FusionPlan::instancesOf(const Group &group, int64_t bytes) const {
  int64_t results = 1;
  for (Operation *op : group.ops)
    if (group.space.contains(op->getResult(0)))
      results = std::max(results, elementsOf(op->getResult(0)));
  return group.anchor
             ? std::min<int64_t>(results, 2 * limits.instances)
             : llvm::divideCeil(
                   results, tileAroundSums(results, limits.instances, bytes));
}

/// Whether `value` is `input`, or what inlined views make of it.
bool FusionPlan::isViewOf(Value value, Value input) const {
  while (value != input) {
    Operation *view = value.getDefiningOp();
    if (!view || !inlined.contains(view) || view->getNumOperands() != 1)
      return false;
    value = view->getOperand(0);
  }
  return true;
}

/// What an instance reads to compute the sums again: of a product whose columns
/// lie along a tile, those of the tile.
int64_t FusionPlan::bytesAgain(const Group &producer, OpOperand &use) const {
  constexpr int64_t tileColumns = columnsAroundSums;
  Value ofTile;
  int64_t allColumns = tileColumns;
  if (producer.hasAnchor(OpRole::Contraction) &&
      roleOf(use.getOwner()) == OpRole::Pointwise) {
    Columns columns = *GraphOpInterface(producer.anchor).getColumns();
    ofTile = producer.anchor->getOperand(columns.operand);
    allColumns = std::max(tileColumns,
                          elementsOf({getShape(ofTile)[columns.operandDim]}));
  }
  int64_t bytes = 0;
  for (Value input : inputsOf(producer.ops)) {
    Type element = getElementTypeOrSelf(input);
    int64_t bits =
                element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64,
            elements = elementsOf(input);
    if (ofTile && isViewOf(ofTile, input))
      elements = llvm::divideCeil(elements, allColumns) * tileColumns;
    bytes += llvm::divideCeil(elements, 8) * bits;
  }
  return bytes;
}

const char *FusionPlan::whyNotAgain(const Group &producer, const Group &reader,
                                    OpOperand &use) const {
  constexpr const char *other =
      "sums are computed again in front of single rows and of what is computed "
      "element by element alone";
  auto op = cast<GraphOpInterface>(use.getOwner());
  if (!producer.anchor || !canBeComputedAgain(producer.anchor))
    return other;
  // Of an open number of terms there may be any, whatever is optimized for.
  GraphOpInterface sum = producer.anchor;
  if (AffineExpr terms = sum.getReductionExtent(); terms && !constantOf(terms))
    return "an open number of terms may take long to add up again";
  // What its kernel is built around knows one sum, and may have it computed in
  // parts.
  auto isElement = [&](Operation *own) {
    OpRole role = roleOf(own);
    return role == OpRole::Pointwise || role == OpRole::View ||
           !reader.space.contains(own->getResult(0));
  };
  bool isRow = reader.hasAnchor(OpRole::Contraction) &&
               canBeComputedAgain(reader.anchor) && hasOneRow(reader.anchor);
  if (!isRow && (reader.anchor || !llvm::all_of(reader.ops, isElement)))
    return other;
  // Behind the row a second sum would lie where the row's does.
  if (reader.anchor && reader.space.contains(op->getResult(0)) &&
      op.getRole() != OpRole::Contraction)
    return other;
  if (op.getRole() == OpRole::Contraction) {
    std::optional<Columns> columns = op.getColumns();
    if (!columns || columns->operand == use.getOperandNumber())
      return other;
  } else if (op.getRole() != OpRole::Pointwise ||
             (producer.hasAnchor(OpRole::Contraction) &&
              !readsWholeDims(use))) {
    return other;
  }
  int64_t ofOne = reader.againBytes + bytesAgain(producer, use);
  if (ofOne > limits.maxAgainOfOne ||
      ofOne > limits.maxAgainOfAll / instancesOf(reader, ofOne))
    return kTooOften;
  return withinLimits(reader, producer.ops)
             ? nullptr
             : "the kernel would have too much code or too many inputs";
}

void FusionPlan::joinSums() {
  if (limits.instances == 0)
    return;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &producer : llvm::reverse(storage)) {
      Group *reader = producer->ops.empty() ? nullptr : onlyReader(*producer);
      if (!reader)
        continue;
      Readers uses;
      for (Operation *op : producer->ops)
        for (OpOperand *use : readersOf(op))
          if (groupOf(use->getOwner()) == reader)
            uses.insert(use);
      if (llvm::any_of(uses, [&](OpOperand *use) {
            return whyNotAgain(*producer, *reader, *use) != nullptr;
          }))
        continue;
      int64_t bytes = 0;
      for (OpOperand *use : uses)
        bytes = std::max(bytes, bytesAgain(*producer, *use));
      reader->againBytes += bytes;
      merge(*producer, *reader);
      changed = true;
    }
  }
}

} // namespace charonia::graph
