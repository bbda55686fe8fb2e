// What is cut out of runs of memory, or spread along parts of them, where a
// normalization walks its rows as one run.
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Weights.h"

using namespace mlir;

namespace charonia::graph {

SmallVector<int64_t> FusionPlan::sizesOf(Value value,
                                         ArrayRef<int64_t> at) const {
  SmallVector<int64_t> sizes;
  for (AffineExpr extent : getShape(value))
    sizes.push_back(evaluate(extent, at).value_or(1));
  return sizes;
}

/// Steps in memory of a shape between neighbours along each dimension.
static SmallVector<int64_t> stridesOf(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;)
    if (llvm::MulOverflow(strides[d], sizes[d], strides[d - 1]))
      strides[d - 1] = std::numeric_limits<int64_t>::max();
  return strides;
}

/// Steps in the memory that an operator, through inlined views, takes an
/// operand from, between neighbours along each dimension of its result.
/// Nothing: they differ from place to place. `values` are those of symbols.
SmallVector<std::optional<int64_t>>
FusionPlan::stepsOf(GraphOpInterface op, unsigned operand,
                    ArrayRef<int64_t> values) const {
  SmallVector<int64_t> sizes = sizesOf(op->getResult(0), values);
  MLIRContext *context = op->getContext();
  // Sizes as numbers: products of them would not be compared otherwise.
  Exprs extents, symbols;
  for (int64_t size : sizes)
    extents.push_back(getAffineConstantExpr(size, context));
  for (int64_t size : values)
    symbols.push_back(getAffineConstantExpr(size, context));
  auto atValues = [&](AffineMap map) {
    symbols.resize(std::max<size_t>(symbols.size(), map.getNumSymbols()),
                   getAffineConstantExpr(1, context));
    return map.replaceDimsAndSymbols(
        {}, ArrayRef(symbols).take_front(map.getNumSymbols()), map.getNumDims(),
        0);
  };
  AffineMap map = atValues(op.getOperandMap(operand));
  Value memory = op->getOperand(operand);
  while (auto view = memory.getDefiningOp<GraphOpInterface>()) {
    if (!inlined.contains(view) || view.getRole() != OpRole::View ||
        isSameBytes(view))
      break;
    map = composeMaps(atValues(view.getOperandMap(0)), map, extents);
    memory = view->getOperand(0);
  }
  AffineExpr place = getAffineConstantExpr(0, context);
  for (auto [e, stride] :
       llvm::zip_equal(map.getResults(), stridesOf(sizesOf(memory, values))))
    place = place + e * stride;
  Sum sum(
      simplify(AffineMap::get(sizes.size(), 0, place), extents).getResult(0));
  SmallVector<std::optional<int64_t>> steps;
  for (unsigned d = 0; d < sizes.size(); ++d)
    steps.push_back(sum.coefficientOf(d));
  return steps;
}

/// Whether rows of so many elements, runs of memory of the operator's result,
/// lie in what it takes them from in pieces which vectors don't divide: places
/// of elements are then divided by the length of a piece, and lanes picked one
/// by one.
/// `values` are those of symbols.
bool FusionPlan::cutsRun(GraphOpInterface op, int64_t row,
                         ArrayRef<int64_t> values) const {
  Value result = op->getResult(0);
  Exprs shape = getShape(result);
  SmallVector<int64_t> sizes = sizesOf(result, optimum),
                       own = stridesOf(sizesOf(result, values));
  auto cuts = [&](ArrayRef<std::optional<int64_t>> steps) {
    AffineExpr piece = getAffineConstantExpr(1, op->getContext());
    int64_t elements = 1;
    std::optional<int64_t> lane; // from one element of a piece to the next
    for (int64_t d = int64_t(sizes.size()) - 1; d >= 0 && elements < row; --d) {
      if (sizes[d] == 1)
        continue;
      if (!lane)
        lane = steps[d];
      else if (steps[d] != *lane * own[d])
        return divisorOf(piece, Facts()) % limits.lanes != 0;
      if (!lane)
        return true;
      piece = piece * shape[d];
      elements *= sizes[d];
    }
    return false;
  };
  OpRole role = op.getRole();
  bool isView = role == OpRole::View && inlined.contains(op);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    SmallVector<std::optional<int64_t>> steps;
    if (isView || (role == OpRole::Pointwise && getShape(operand) != shape))
      steps = stepsOf(op, i, values);
    else if (role == OpRole::Indexing)
      // Parts of what it reads lie as in the result, but for their extents.
      llvm::append_range(steps, stridesOf(sizesOf(operand, values)));
    if (steps.size() == sizes.size() && cuts(steps))
      return true;
  }
  return false;
}

/// The same at any sizes: what is one run where an even size is cut by 2, or
/// where the smaller of two sizes is one of them, is none elsewhere.
bool FusionPlan::cutsRun(GraphOpInterface op, int64_t row) const {
  SmallVector<int64_t> elsewhere(optimum);
  for (auto [i, size] : llvm::enumerate(elsewhere))
    size += divisors[i] * (2 * int64_t(i) + 3);
  return cutsRun(op, row, optimum) || cutsRun(op, row, elsewhere);
}

/// Stores what is cut out of runs of memory, where rows are computed of it
/// element by element: each cut, and of several what is made of all of them.
void FusionPlan::storeCutRuns(Value value, int64_t row) {
  // Each once, however many read it, and no more than a kernel may have.
  llvm::SetVector<Value> reached;
  SmallVector<GraphOpInterface> cuts;
  GraphOpInterface combined;
  reached.insert(value);
  for (size_t i = 0; i < reached.size() && i < limits.maxOperators; ++i) {
    Value next = reached[i];
    auto op = next.getDefiningOp<GraphOpInterface>();
    if (!op || op->getNumOperands() == 0 || isWeight(op))
      continue;
    if (inlined.contains(op) && isSameBytes(op)) {
      reached.insert(op->getOperand(0));
      continue;
    }
    bool isPointwise = op.getRole() == OpRole::Pointwise;
    if (isPointwise && !combined)
      combined = op;
    if (cutsRun(op, row))
      cuts.push_back(op);
    else if (isPointwise)
      for (Value operand : op->getOperands())
        if (getShape(operand) == getShape(next))
          reached.insert(operand);
  }
  if (cuts.empty())
    return;
  Operation *stored = cuts.size() == 1 ? cuts[0] : combined;
  if (inlined.contains(stored))
    makeGroup(stored);
  dense.insert(stored);
}

/// Whether dimensions of what a view without moves shows are one in `value`.
bool FusionPlan::joinsDims(Value value) const {
  while (auto view = value.getDefiningOp<GraphOpInterface>()) {
    if (!inlined.contains(view) || !isSameBytes(view))
      return false;
    if (getShape(value).size() < getShape(view->getOperand(0)).size())
      return true;
    value = view->getOperand(0);
  }
  return false;
}

/// A normalization whose rows are runs of memory walks each row as one run, and
/// does so more than once, unless registers hold it. So does a reduction along
/// dimensions that are joined, as where a normalization was written out.
void FusionPlan::forceRuns() {
  constexpr int64_t fewElements = 1 << 12, mostVectors = 8;
  for (Operation &op : block.without_terminator()) {
    auto reader = dyn_cast<GraphOpInterface>(&op);
    if (!reader || !groupOf(&op))
      continue;
    bool walksRuns =
        reader.getRole() == OpRole::RowNormalization ||
        (reader.getRole() == OpRole::Reduction && joinsDims(op.getOperand(0)));
    if (!walksRuns)
      continue;
    SmallVector<int64_t> axes = reader.getReductionAxes(),
                         sizes = sizesOf(op.getOperand(0), optimum);
    Exprs shape = getShape(op.getOperand(0));
    int64_t row = 1;
    bool isRun = true, ended = false;
    for (int64_t d = int64_t(sizes.size()) - 1; d >= 0; --d) {
      if (constantOf(shape[d]) == 1)
        continue;
      bool inRow = llvm::is_contained(axes, d);
      isRun &= !(inRow && ended);
      ended |= !inRow;
      row *= inRow ? sizes[d] : 1;
    }
    if (isRun && row > mostVectors * limits.lanes &&
        elementsOf(op.getOperand(0)) >= fewElements)
      storeCutRuns(op.getOperand(0), row);
  }
}

} // namespace charonia::graph
