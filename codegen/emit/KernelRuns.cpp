// What the cost model looks at of a kernel: which of its dimensions are runs of
// memory in what it reads.
#include "codegen/emit/ReadKernel.h"
#include "codegen/emit/TileEmitter.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::Exprs;
using graph::OpRole;

/// Whether `value` is computed from `input`.
static bool dependsOn(Value value, Value input) {
  llvm::SmallSetVector<Value, 16> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == input)
      return true;
    if (Operation *op = values[i].getDefiningOp())
      values.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Of how many parts of what an operator joins all of `input` is read: for
/// several as often as many inputs would be; 1 where nothing is joined of it.
static int64_t partsOf(Value input) {
  int64_t most = 1;
  for (auto op : input.getParentBlock()->getOps<graph::GraphOpInterface>())
    if (op.getJoinedDim())
      most = std::max<int64_t>(
          most, llvm::count_if(op->getOperands(), [&](Value part) {
            return dependsOn(part, input);
          }));
  return most;
}

void emit::readInput(KernelShape &shape, CrossingReads &reads, Value input,
                     AffineMap map, ArrayRef<int64_t> symbols) {
  Exprs extents = graph::getShape(input);
  AffineExpr offset = getAffineConstantExpr(0, map.getContext()),
             elements = getAffineConstantExpr(1, map.getContext());
  for (auto [extent, coordinate] : llvm::zip(extents, map.getResults())) {
    offset = offset * extent + coordinate;
    elements = elements * extent;
  }
  graph::Sum sum(graph::simplify(graph::mapOf(shape.root.size(), {offset},
                                              map.getContext()),
                                 shape.root)
                     .getResult(0));
  auto isOne = [&](unsigned d) {
    return graph::constantOf(shape.root[d]) == 1;
  };
  unsigned last = shape.root.size();
  while (last > 0 && isOne(last - 1))
    --last;
  if (last == 0)
    return;
  for (unsigned d = last - 1, next = d; d-- > 0;) {
    if (isOne(d))
      continue;
    auto extent = graph::constantOf(shape.root[next]);
    auto far = sum.coefficientOf(d), near = sum.coefficientOf(next);
    if (!extent || !far || !near || *far != *near * *extent)
      shape.joins[d] = false;
    next = d;
  }
  std::optional<int64_t> along = sum.coefficientOf(last - 1);
  if (along && (*along == 0 || *along == 1))
    return;
  int64_t stride = 1;
  SmallVector<unsigned> dims;
  for (unsigned d = last - 1; d-- > 0;) {
    if (isOne(d))
      continue;
    auto extent = graph::constantOf(shape.root[d]);
    if (sum.coefficientOf(d) == stride) {
      dims.insert(dims.begin(), d);
      if (!extent)
        break;
      stride *= *extent;
    } else if (!dims.empty()) {
      break;
    }
  }
  if (dims.empty())
    return;
  int64_t &count = reads[dims];
  count += partsOf(input) * sizeAt(elements, symbols);
  int64_t results = 1;
  for (int64_t size : shape.sizes)
    results *= size;
  if (count * 2 >= results &&
      (shape.crossing.empty() || count > reads[shape.crossing]))
    shape.crossing = dims;
}

/// Trailing dimensions of the result of `op` along which the indices in its
/// operand `i` are the same; none where that is no operand of indices.
static unsigned dimsOfSameIndices(graph::GraphOpInterface op, unsigned i) {
  unsigned rank = graph::getShape(op->getResult(0)).size(), free = rank;
  bool isIndex = false;
  op.getChosenMap([&](unsigned operand, ArrayRef<AffineExpr> at) {
    isIndex |= operand == i;
    for (unsigned d = 0; operand == i && d < rank; ++d)
      if (llvm::any_of(at, [&](AffineExpr c) { return c.isFunctionOfDim(d); }))
        free = std::min(free, rank - 1 - d);
    return getAffineConstantExpr(0, op->getContext());
  });
  return isIndex ? free : 0;
}

unsigned emit::passedDims(graph::GraphOpInterface op, unsigned i,
                          bool &isFree) {
  Exprs result = graph::getShape(op->getResult(0)),
        operand = graph::getShape(op->getOperand(i));
  unsigned alike = 0, free = 0;
  if (AffineMap map = op.getOperandMap(i)) {
    auto last = [](unsigned rank, unsigned n) { return rank - 1 - n; };
    unsigned most = std::min(result.size(), operand.size());
    while (alike < most &&
           result[last(result.size(), alike)] ==
               operand[last(operand.size(), alike)] &&
           map.getResult(last(operand.size(), alike)) ==
               getAffineDimExpr(last(result.size(), alike), op->getContext()))
      ++alike;
    while (free < result.size() &&
           !map.isFunctionOfDim(last(result.size(), free)))
      ++free;
  } else if (op.getRole() == OpRole::RowNormalization) {
    alike = i == 0 ? result.size() : 0;
  } else if (auto emitting = dyn_cast<EmitOpInterface>(op.getOperation())) {
    alike = emitting.getPassedDims(i);
    free = dimsOfSameIndices(op, i);
  }
  isFree = free > alike;
  return std::max(alike, free);
}

unsigned emit::runOf(graph::KernelOp kernel, Value root) {
  Operation *yield = kernel.getBody().front().getTerminator();
  for (Value result : yield->getOperands())
    if (graph::getShape(result) != graph::getShape(root))
      return 0;
  unsigned run = graph::getShape(root).size();
  DenseMap<Value, unsigned> seen;
  SmallVector<std::pair<Value, unsigned>> work;
  for (Value result : yield->getOperands())
    work.emplace_back(result, run);
  while (!work.empty()) {
    auto [value, dims] = work.pop_back_val();
    auto [place, isNew] = seen.try_emplace(value, dims);
    if (!isNew && place->second <= dims)
      continue;
    place->second = dims;
    run = std::min(run, dims);
    auto op = value.getDefiningOp<graph::GraphOpInterface>();
    for (unsigned i = 0; op && i < op->getNumOperands(); ++i) {
      bool isFree;
      unsigned passed = passedDims(op, i, isFree);
      run = std::min(run, passed);
      if (!isFree)
        work.emplace_back(op->getOperand(i), std::min(dims, passed));
    }
  }
  return run;
}

bool emit::hasOtherEnds(graph::GraphOpInterface op) {
  auto emitting = dyn_cast<EmitOpInterface>(op.getOperation());
  return op.getRole() == OpRole::Indexing && emitting && !op.getJoinedDim() &&
         !op.getChosenMap([&](unsigned, ArrayRef<AffineExpr>) {
           return getAffineConstantExpr(0, op->getContext());
         });
}
