// What the cost model looks at of a kernel: a walk from its results to what it
// reads.
#include "codegen/emit/ReadKernel.h"
#include "codegen/emit/TileEmitter.h"
#include "graph/analysis/CodeSize.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/SumsAgain.h"
#include "graph/analysis/Updates.h"
#include "graph/analysis/Walked.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;
using graph::OpRole;

unsigned emit::rankOf(OpRole role) {
  switch (role) {
  case OpRole::Ordered:
    return 5;
  case OpRole::Contraction:
    return 4;
  case OpRole::RowNormalization:
    return 3;
  case OpRole::Reduction:
    return 2;
  case OpRole::Window:
    return 1;
  default:
    return 0;
  }
}

int64_t emit::sizeAt(AffineExpr expr, ArrayRef<int64_t> symbols) {
  return std::max<int64_t>(graph::evaluate(expr, symbols).value_or(1), 1);
}

int64_t emit::bytesOf(Value value, ArrayRef<int64_t> symbols) {
  Type element = getElementTypeOrSelf(value.getType());
  if (!element.isIntOrFloat())
    return 0;
  int64_t elements = sizeAt(
      graph::numElements(graph::getShape(value), value.getContext()), symbols);
  return llvm::divideCeil(elements * element.getIntOrFloatBitWidth(), 8);
}

namespace {

/// Whether each program instance computes a sum again, in front of what the
/// kernel is built around.
bool isComputedAgain(graph::GraphOpInterface op,
                     const std::optional<graph::IterationSpace> &space) {
  return rankOf(op.getRole()) && space && graph::canBeComputedAgain(op) &&
         !space->contains(op->getResult(0));
}

/// Notes along which dimensions such a sum differs. `map` leads from the
/// kernel's result to it.
void readAgain(KernelShape &shape, AffineMap map) {
  shape.again.resize(shape.root.size(), false);
  for (unsigned d = 0; d < shape.root.size(); ++d)
    shape.again[d] = shape.again[d] || map.isFunctionOfDim(d);
}

/// What is read for such a sum, but for other sums: of a product whose columns
/// lie along the tile, those of the tile. `map` leads from the kernel's result
/// to it; null where something else reads it as a whole.
int64_t bytesAgain(graph::GraphOpInterface op, AffineMap map,
                   ArrayRef<int64_t> symbols) {
  std::optional<graph::Columns> columns = op.getColumns();
  if (!map ||
      (columns && map.getResult(columns->resultDim).isSymbolicOrConstant()))
    columns.reset();
  int64_t bytes = 0;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Value value = operand;
    while (auto by = value.getDefiningOp<graph::GraphOpInterface>()) {
      if (by->getNumOperands() == 0 || rankOf(by.getRole()))
        break;
      value = by->getOperand(0);
    }
    if (!isa<BlockArgument>(value))
      continue;
    int64_t all = bytesOf(value, symbols);
    if (columns && columns->operand == i) {
      int64_t count =
          sizeAt(graph::getShape(operand)[columns->operandDim], symbols);
      all = all / std::max(count, graph::columnsAroundSums) *
            graph::columnsAroundSums;
    }
    bytes += all;
  }
  return bytes;
}

/// Whatever reduces rows beside values of their full length needs them whole.
void findWholeRows(KernelShape &shape,
                   const std::optional<graph::IterationSpace> &space,
                   Value root) {
  auto place = space ? space->lookup(root) : std::nullopt;
  if (!place || place->extent != graph::IterationSpace::Extent::Full)
    return;
  for (unsigned d = 0; d < shape.root.size(); ++d)
    for (unsigned reduced : space->getReduced().set_bits())
      if (place->map.getResult(d).isFunctionOfDim(reduced)) {
        shape.kinds[d] = DimKind::Whole;
        shape.role = OpRole::RowNormalization;
      }
}

/// Walks a kernel from its results to what it reads.
class Inspection {
public:
  Inspection(graph::KernelOp kernel, const EmitTarget &target)
      : kernel(kernel), target(target), symbols(graph::getOptimum(kernel)),
        root(graph::getWalked(kernel)),
        results(kernel.getBody().front().getTerminator()->getOperands()),
        space(graph::getIterationSpace(kernel)) {}

  KernelShape run() {
    readSizes();
    start();
    while (!work.empty()) {
      Value value = work.pop_back_val();
      AffineMap map = reached[value];
      if (auto op = value.getDefiningOp<graph::GraphOpInterface>())
        visit(op, map);
      else
        visitInput(value, map);
    }
    readWhatWasReached();
    readRows();
    shape.growsByRow = growsByRow(kernel);
    if (graph::GraphOpInterface ordered = orderedOf(kernel))
      shape.oneByOne = ordered.combinesOneByOne();
    return std::move(shape);
  }

private:
  auto operators() {
    return kernel.getBody().front().getOps<graph::GraphOpInterface>();
  }
  AffineMap identityOf(unsigned rank) {
    return AffineMap::getMultiDimIdentityMap(rank, kernel.getContext());
  }

  void readSizes() {
    shape.root = graph::getShape(root);
    SmallVector<int64_t> smallest, largest;
    for (const graph::Symbol &s :
         graph::getSymbols(kernel->getParentOfType<ModuleOp>())) {
      smallest.push_back(s.min);
      largest.push_back(s.max);
    }
    for (AffineExpr e : shape.root) {
      shape.sizes.push_back(sizeAt(e, symbols));
      shape.least.push_back(sizeAt(e, smallest));
      shape.most.push_back(sizeAt(e, largest));
    }
    shape.code = graph::estimateCode(kernel, tileCode);
    for (Value result : results)
      shape.resultBytes += bytesOf(result, symbols);
  }

  void start() {
    unsigned rank = shape.root.size();
    shape.kinds.assign(rank, DimKind::Parallel);
    shape.joins.assign(rank, true);
    if (graph::getUpdatedInput(kernel)) {
      // What is walked is put anywhere.
      shape.role = OpRole::Indexing;
      shape.linear = false;
    }
    identity = identityOf(rank);
    reached[root] = identity;
    work.push_back(root);
    // What is stored in another order than it is walked in follows from that.
    for (Value result : results)
      if (auto place = space ? space->lookup(result) : std::nullopt;
          place && kernel->hasAttr(graph::kWalksProductAttr) &&
          place->extent == graph::IterationSpace::Extent::Full &&
          reached.try_emplace(result, space->mapBetween(root, result)).second)
        work.push_back(result);
  }

  void visitInput(Value value, AffineMap map) {
    if (!isa<BlockArgument>(value))
      return;
    bool scalar = llvm::all_of(graph::getShape(value), [](AffineExpr e) {
      return graph::constantOf(e) == 1;
    });
    unsigned first = !shape.root.empty();
    // A part of what is longer lies apart, except along the first dimension.
    if (!scalar &&
        (map != identity ||
         ArrayRef<AffineExpr>(graph::getShape(value)).drop_front(first) !=
             ArrayRef<AffineExpr>(shape.root).drop_front(first)))
      shape.linear = false;
    // Of what is larger than the result a part is read.
    shape.resultBytes +=
        std::min(bytesOf(value, symbols), bytesOf(root, symbols));
    readInput(shape, reads, value, map, symbols);
  }

  void visit(graph::GraphOpInterface op, AffineMap map) {
    OpRole role = op.getRole();
    if (role == OpRole::Indexing || role == OpRole::Ordered)
      shape.linear = false;
    if (isComputedAgain(op, space))
      readAgain(shape, map);
    else if (rankOf(role))
      readAnchor(shape, op, map, symbols);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      follow(op, i, map);
  }

  void follow(graph::GraphOpInterface op, unsigned i, AffineMap map) {
    OpRole role = op.getRole();
    Value operand = op->getOperand(i);
    AffineMap step = op.getOperandMap(i);
    if (!step && role == OpRole::RowNormalization)
      step = identityOf(map.getNumResults());
    // What is passed on at the end lies along the result, from some place on.
    bool isFree = false;
    unsigned passed = step ? 0 : passedDims(op, i, isFree);
    if (!step) {
      unsigned rank = shape.root.size(),
               other = map == identity && passed > 0 ? rank - passed : rank;
      std::fill_n(shape.joins.begin(), other, false);
    }
    shape.otherEnds |= !step && passed == 0 && map == identity &&
                       hasOtherEnds(op) &&
                       2 * bytesOf(operand, symbols) >= bytesOf(root, symbols);
    if (passed > 0 && !isFree && !rankOf(role) &&
        graph::getShape(operand).size() == map.getNumResults())
      step = identityOf(map.getNumResults());
    if (!step || reached.contains(operand))
      return;
    reached[operand] = graph::composeMaps(step, map);
    work.push_back(operand);
  }

  void readWhatWasReached() {
    for (graph::GraphOpInterface op : operators())
      if (isComputedAgain(op, space))
        shape.againBytes +=
            bytesAgain(op, reached.lookup(op->getResult(0)), symbols);
    // What a reduction reads is not followed: indices choose there, too.
    for (graph::GraphOpInterface op : operators())
      if (op.getRole() == OpRole::Indexing && op->getNumOperands() > 0)
        shape.linear = false;
    unsigned rank = shape.root.size();
    shape.partStep.assign(rank, 0);
    shape.period.assign(rank, 1);
    for (auto [value, map] : reached) {
      readParts(shape, value, map);
      readPeriods(shape, value, map);
      readInterleaved(shape, value, map);
    }
    if (llvm::is_contained({OpRole::Pointwise, OpRole::Reduction}, shape.role))
      shape.run = runOf(kernel, root);
    if (target.kind == EmitTarget::Kind::Gpu && shape.role == OpRole::Pointwise)
      shape.repeatedIndices = repeatedIndices(root);
  }

  void readRows() {
    findWholeRows(shape, space, root);
    if (space)
      shape.cells =
          graph::getCellSides(*space, graph::getFirst(kernel), results)
              .value_or(SmallVector<graph::CellSide>());
    if (shape.role == OpRole::RowNormalization)
      shape.run = runOf(kernel, root);
    shape.rowsInF32 = llvm::all_of(operators(), [](graph::GraphOpInterface op) {
      if (op.getRole() != OpRole::RowNormalization &&
          op.getRole() != OpRole::Reduction)
        return true;
      auto type = dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0)));
      return type && type.getWidth() <= 32;
    });
  }

  graph::KernelOp kernel;
  const EmitTarget &target;
  SmallVector<int64_t> symbols;
  /// What is cut into tiles.
  Value root;
  OperandRange results;
  std::optional<graph::IterationSpace> space;
  KernelShape shape;
  AffineMap identity;
  /// Coordinates of every value that maps lead to from the root.
  DenseMap<Value, AffineMap> reached;
  SmallVector<Value> work;
  CrossingReads reads;
};

} // namespace

KernelShape emit::inspect(graph::KernelOp kernel, const EmitTarget &target) {
  return Inspection(kernel, target).run();
}
