#include "codegen/emit/KernelShape.h"
#include "codegen/emit/TileEmitter.h"
#include "graph/analysis/CodeSize.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/SumsAgain.h"
#include "graph/analysis/Updates.h"
#include "graph/analysis/Walked.h"
#include "graph/ir/Float8.h"
#include <map>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;
using graph::Exprs;
using graph::OpRole;

namespace {

unsigned rankOf(OpRole role) {
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

int64_t sizeAt(AffineExpr expr, ArrayRef<int64_t> symbols) {
  return std::max<int64_t>(graph::evaluate(expr, symbols).value_or(1), 1);
}

SmallVector<int64_t> optimumOf(graph::KernelOp kernel) {
  return graph::getOptimum(kernel);
}

/// The operand of a view, or the one with most elements of what is computed
/// element by element; none of another operator.
std::optional<unsigned> mainOperand(graph::GraphOpInterface op) {
  if (op.getRole() == OpRole::View)
    return 0;
  if (op.getRole() != OpRole::Pointwise)
    return std::nullopt;
  std::optional<unsigned> main;
  int64_t most = 0;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    std::optional<int64_t> elements = graph::constantOf(
        graph::numElements(graph::getShape(operand), op->getContext()));
    if (!elements)
      return std::nullopt;
    if (*elements > most)
      main = i;
    most = std::max(most, *elements);
  }
  return main;
}

/// The shape in which a value lies in memory, behind the views of the kernel,
/// and the map from its own coordinates to those there; with `ofProduct` behind
/// what is computed of its elements, too, where a product takes them.
std::pair<Exprs, AffineMap> inMemory(Value value, bool ofProduct) {
  Exprs shape = graph::getShape(value);
  AffineMap map =
      AffineMap::getMultiDimIdentityMap(shape.size(), value.getContext());
  while (auto op = value.getDefiningOp<graph::GraphOpInterface>()) {
    bool isWay = ofProduct || op.getRole() == OpRole::View;
    std::optional<unsigned> main = isWay ? mainOperand(op) : std::nullopt;
    AffineMap step = main ? op.getOperandMap(*main) : AffineMap();
    if (!step)
      break;
    map = graph::composeMaps(step, map, shape);
    value = op->getOperand(*main);
  }
  return {graph::getShape(value), map};
}

/// The last dimension of more than one element, or the first one, where an
/// extent `one` is 1.
int64_t lastOf(ArrayRef<AffineExpr> memory, AffineExpr one = {}) {
  int64_t last = memory.size() - 1;
  while (last > 0 &&
         (memory[last] == one || graph::constantOf(memory[last]) == 1))
    --last;
  return last;
}

/// Whether dimension `dim` of a value is innermost in memory.
bool isInnermostInMemory(Value value, unsigned dim, bool ofProduct = false,
                         AffineExpr one = {}) {
  auto [memory, map] = inMemory(value, ofProduct);
  int64_t last = lastOf(memory, one);
  return last >= 0 && map.getResult(last).isFunctionOfDim(dim);
}

/// Elements along dimension `dim` that are neighbours in memory: all of them,
/// or as many as memory has in its last dimension.
int64_t runInMemory(Value value, unsigned dim, ArrayRef<int64_t> symbols,
                    AffineExpr one = {}) {
  if (!isInnermostInMemory(value, dim, /*ofProduct=*/false, one))
    return 0;
  auto [memory, map] = inMemory(value, /*ofProduct=*/false);
  Exprs shape = graph::getShape(value);
  AffineExpr offset = getAffineConstantExpr(0, value.getContext());
  for (auto [extent, coordinate] : llvm::zip(memory, map.getResults()))
    offset = offset * extent + coordinate;
  AffineMap linear = graph::simplify(
      graph::mapOf(shape.size(), {offset}, value.getContext()), shape);
  bool isLine = graph::Sum(linear.getResult(0)).coefficientOf(dim) == 1;
  return sizeAt(isLine ? shape[dim] : memory[lastOf(memory, one)], symbols);
}

/// A reduction that leaves the last dimension alone runs across rows.
bool runsAlongRow(graph::GraphOpInterface op) {
  Exprs in = graph::getShape(op->getOperand(0)),
        out = graph::getShape(op->getResult(0));
  return op.getRole() == OpRole::Reduction &&
         (out.empty() || in.back() != out.back());
}

int64_t bytesOf(Value value, ArrayRef<int64_t> symbols);

/// What a product computes of each column in front of it: instructions for an
/// element, and the bytes that it reads for all of them.
void readWidening(KernelShape &shape, Value columns,
                  ArrayRef<int64_t> symbols) {
  llvm::SmallSetVector<Value, 16> values;
  values.insert(columns);
  int64_t work = 0, bytes = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    auto op = values[i].getDefiningOp<graph::GraphOpInterface>();
    if (isa<BlockArgument>(values[i]))
      bytes += bytesOf(values[i], symbols);
    if (!op)
      continue;
    if (op.getRole() == OpRole::Pointwise)
      work += op.getCodeSize();
    values.insert(op->operand_begin(), op->operand_end());
  }
  if (work == 0)
    return;
  shape.columnWork = work;
  shape.columnBytes = bytes;
}

/// Whether the operand `rows` of a contraction has the rows of its result, one
/// for one: a window of one element that takes no steps.
bool hasRowsOfResult(graph::GraphOpInterface op, Value rows) {
  auto emitting = dyn_cast<EmitOpInterface>(op.getOperation());
  SmallVector<unsigned> terms =
      emitting ? emitting.getTermDims() : SmallVector<unsigned>();
  AffineExpr extent = op.getReductionExtent();
  unsigned side = rows == op->getOperand(0) ? 0 : 1;
  return terms.size() == 2 && extent &&
         graph::simplify(extent) == graph::getShape(rows)[terms[side]];
}

/// Notes which rows of a contraction are one run with their neighbours along
/// the next dimension. `map` leads from the kernel's result to its own.
void readRows(KernelShape &shape, graph::GraphOpInterface op, Value rows,
              AffineMap map) {
  Exprs result = graph::getShape(op->getResult(0)), own = graph::getShape(rows);
  auto [memory, inside] = inMemory(rows, /*ofProduct=*/true);
  if (!hasRowsOfResult(op, rows) || !inside.isProjectedPermutation() ||
      own.size() > result.size())
    return;
  // Dimensions correspond from the last one on.
  auto strideOf = [&](unsigned dim) -> AffineExpr {
    AffineExpr stride = getAffineConstantExpr(1, op->getContext());
    for (unsigned i = memory.size(); i-- > 0; stride = stride * memory[i])
      if (inside.getResult(i) == getAffineDimExpr(dim, op->getContext()))
        return stride;
    return {};
  };
  unsigned skip = result.size() - own.size();
  for (unsigned d = 0; d + 1 < shape.root.size(); ++d)
    for (unsigned i = 0; i + 1 < own.size(); ++i) {
      AffineExpr far = strideOf(i), near = strideOf(i + 1);
      shape.rowsJoin[d] =
          shape.rowsJoin[d] ||
          (map.getResult(skip + i) == getAffineDimExpr(d, op->getContext()) &&
           map.getResult(skip + i + 1) ==
               getAffineDimExpr(d + 1, op->getContext()) &&
           own[i] == result[skip + i] && own[i + 1] == result[skip + i + 1] &&
           far && near &&
           graph::constantOf(graph::simplify(far - near * own[i + 1])) == 0);
    }
}

/// What a contraction multiplies.
void readColumns(KernelShape &shape, graph::GraphOpInterface op,
                 const graph::Columns &columns, ArrayRef<int64_t> symbols) {
  auto bytesOf = [&](unsigned operand) {
    AffineExpr elements = graph::numElements(
        graph::getShape(op->getOperand(operand)), op->getContext());
    return sizeAt(elements, symbols) * shape.elementBits / 8;
  };
  shape.columnsInMemory =
      isInnermostInMemory(op->getOperand(columns.operand), columns.operandDim,
                          /*ofProduct=*/true);
  shape.columnBytes = bytesOf(columns.operand);
  shape.rowBytes = bytesOf(columns.operand == 0 ? 1 : 0);
  readWidening(shape, op->getOperand(columns.operand), symbols);
  Value rows = op->getOperand(columns.operand == 0 ? 1 : 0);
  auto isF32 = [](Value value) {
    return getElementTypeOrSelf(value.getType()).isF32();
  };
  shape.sharesColumns = shape.columnWork > 0 && isF32(rows) &&
                        isF32(op->getOperand(columns.operand)) &&
                        isF32(op->getResult(0)) && hasRowsOfResult(op, rows);
  while (auto view = rows.getDefiningOp<graph::GraphOpInterface>()) {
    if (view.getRole() != OpRole::View || view->getNumOperands() == 0) {
      shape.sharesColumns = false;
      break;
    }
    rows = view->getOperand(0);
  }
}

/// An operator that the kernel may be built around. `map` leads from the
/// kernel's result to its own.
void readAnchor(KernelShape &shape, graph::GraphOpInterface op, AffineMap map,
                ArrayRef<int64_t> symbols) {
  OpRole role = op.getRole();
  unsigned rank = shape.root.size();
  if (rankOf(role) > rankOf(shape.role)) {
    shape.role = role;
    shape.kinds.assign(rank, DimKind::Parallel);
  }
  if (role != shape.role)
    return;
  if (AffineExpr extent = op.getReductionExtent())
    shape.terms = sizeAt(extent, symbols);
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  if (element.isIntOrFloat())
    shape.elementBits = std::max<int64_t>(8, element.getIntOrFloatBitWidth());
  // Floats of 8 bits are multiplied as they are where both sides are of one
  // kind, else as f16.
  if (role == OpRole::Contraction && graph::isFloat8(element) &&
      (!isa<Float8E4M3FNType, Float8E5M2Type>(element) ||
       element != getElementTypeOrSelf(op->getOperand(1).getType())))
    shape.elementBits = 16;
  // Integers have no products of their own on a GPU but those of 32 bits.
  if (role == OpRole::Contraction && isa<IntegerType>(element))
    shape.elementBits = std::max<int64_t>(32, shape.elementBits);
  // A scatter writes one operand over another; a scan goes on with what it has.
  shape.carries = role == OpRole::Ordered && !op.getPlaced();
  shape.rowsJoin.assign(rank, false);
  if (std::optional<graph::Columns> columns = op.getColumns()) {
    readColumns(shape, op, *columns, symbols);
    readRows(shape, op, op->getOperand(columns->operand == 0 ? 1 : 0), map);
  }
  if (auto emitting = dyn_cast<EmitOpInterface>(op.getOperation())) {
    SmallVector<unsigned> terms = emitting.getTermDims();
    auto runOf = [&](AffineExpr one) {
      return std::min(runInMemory(op->getOperand(0), terms[0], symbols, one),
                      runInMemory(op->getOperand(1), terms[1], symbols, one));
    };
    if (terms.size() == 2)
      shape.termRun = runOf({});
    std::optional<graph::Columns> columns = op.getColumns();
    if (terms.size() == 2 && columns)
      shape.vectorRun = runOf(graph::getShape(
          op->getOperand(columns->operand))[columns->operandDim]);
    if (AffineExpr run = emitting.getColumnRun())
      shape.columnRun = graph::constantOf(graph::simplify(run)).value_or(1);
  }
  // Of windows with steps neighbours lie apart.
  Exprs operand = graph::getShape(op->getOperand(0)),
        result = graph::getShape(op->getResult(0));
  for (unsigned i = 0, e = std::min(operand.size(), result.size());
       role == OpRole::Contraction && rank > 0 && i < e; ++i)
    shape.rowsInMemory |=
        map.getResult(i) == getAffineDimExpr(rank - 1, map.getContext()) &&
        sizeAt(operand[i], symbols) < 2 * sizeAt(result[i], symbols) &&
        isInnermostInMemory(op->getOperand(0), i);
  SmallVector<DimKind> kinds = op.getResultDimKinds();
  shape.wholeRows =
      role == OpRole::Contraction && llvm::is_contained(kinds, DimKind::Whole);
  if (shape.wholeRows) {
    shape.rowTerms = sizeAt(operand.back(), symbols);
    Exprs factors = graph::getShape(op->getOperand(1));
    shape.rowFactors =
        graph::constantOf(factors[factors.size() - 2]).value_or(0);
  }
  shape.isProduct =
      role == OpRole::Contraction && llvm::is_contained(kinds, DimKind::Column);
  for (auto [kind, coordinate] : llvm::zip(kinds, map.getResults()))
    for (unsigned d = 0; d < rank; ++d)
      if (coordinate.isFunctionOfDim(d))
        shape.kinds[d] = std::max(shape.kinds[d], kind);
  shape.alongRow |= runsAlongRow(op);
  for (const graph::WindowSide &side : op.getWindow())
    if (side.stride >= side.extent &&
        isInnermostInMemory(op->getOperand(0), side.dim))
      shape.windowRun = side.extent;
  // Coordinates of a window's operand and result correspond.
  if (llvm::is_contained(kinds, DimKind::Window)) {
    shape.windowDense.assign(rank, false);
    unsigned shared = graph::getShape(op->getOperand(0)).size();
    for (auto [i, coordinate] :
         llvm::enumerate(map.getResults().take_front(shared)))
      if (isInnermostInMemory(op->getOperand(0), i))
        for (unsigned d = 0; d < rank; ++d)
          shape.windowDense[d] =
              shape.windowDense[d] || coordinate.isFunctionOfDim(d);
  }
}

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

/// Bytes of a value at the sizes to optimize for.
int64_t bytesOf(Value value, ArrayRef<int64_t> symbols) {
  Type element = getElementTypeOrSelf(value.getType());
  if (!element.isIntOrFloat())
    return 0;
  int64_t elements = sizeAt(
      graph::numElements(graph::getShape(value), value.getContext()), symbols);
  return llvm::divideCeil(elements * element.getIntOrFloatBitWidth(), 8);
}

/// Elements that are read along other dimensions than the last.
using CrossingReads = std::map<SmallVector<unsigned>, int64_t>;

/// Whether `value` is computed from `input`.
bool dependsOn(Value value, Value input) {
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
int64_t partsOf(Value input) {
  int64_t most = 1;
  for (auto op : input.getParentBlock()->getOps<graph::GraphOpInterface>())
    if (op.getJoinedDim())
      most = std::max<int64_t>(
          most, llvm::count_if(op->getOperands(), [&](Value part) {
            return dependsOn(part, input);
          }));
  return most;
}

/// Notes what is read across the memory of an input, by the elements of which
/// it is most so far. `map` leads from the kernel's result to it.
void readInput(KernelShape &shape, CrossingReads &reads, Value input,
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
unsigned dimsOfSameIndices(graph::GraphOpInterface op, unsigned i) {
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

/// Trailing dimensions of the result of `op` that are those of its operand
/// `i`, or, with `isFree`, on which the operand does not depend at all.
unsigned passedDims(graph::GraphOpInterface op, unsigned i, bool &isFree) {
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

/// Dimensions at the end of the results that are one run of memory in all that
/// the kernel touches.
unsigned runOf(graph::KernelOp kernel, Value root) {
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

/// Whether an operator without a map reads the ends of a row otherwise than
/// what lies between: neither do indices choose, nor are operands joined, which
/// has tiles of its own (tileOfPart).
bool hasOtherEnds(graph::GraphOpInterface op) {
  auto emitting = dyn_cast<EmitOpInterface>(op.getOperation());
  return op.getRole() == OpRole::Indexing && emitting && !op.getJoinedDim() &&
         !op.getChosenMap([&](unsigned, ArrayRef<AffineExpr>) {
           return getAffineConstantExpr(0, op->getContext());
         });
}

} // namespace

KernelShape emit::inspect(graph::KernelOp kernel, const EmitTarget &target) {
  KernelShape shape;
  SmallVector<int64_t> symbols = optimumOf(kernel);
  Value root = graph::getWalked(kernel);
  MLIRContext *context = kernel.getContext();
  shape.root = graph::getShape(root);
  unsigned rank = shape.root.size();
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
  shape.kinds.assign(rank, DimKind::Parallel);
  shape.joins.assign(rank, true);
  shape.code = graph::estimateCode(kernel, tileCode);
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    shape.resultBytes += bytesOf(result, symbols);
  if (graph::getUpdatedInput(kernel)) {
    // What is walked is put anywhere.
    shape.role = OpRole::Indexing;
    shape.linear = false;
  }

  // Coordinates of every value reached from the root by maps.
  DenseMap<Value, AffineMap> reached;
  reached[root] = AffineMap::getMultiDimIdentityMap(rank, context);
  SmallVector<Value> work{root};
  AffineMap identity = reached[root];
  std::optional<graph::IterationSpace> space = graph::getIterationSpace(kernel);
  // What is stored in another order than it is walked in follows from that.
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    if (auto place = space ? space->lookup(result) : std::nullopt;
        place && kernel->hasAttr(graph::kWalksProductAttr) &&
        place->extent == graph::IterationSpace::Extent::Full &&
        reached.try_emplace(result, space->mapBetween(root, result)).second)
      work.push_back(result);
  CrossingReads reads;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    AffineMap map = reached[value];
    auto op = value.getDefiningOp<graph::GraphOpInterface>();
    if (!op) {
      bool scalar = llvm::all_of(graph::getShape(value), [](AffineExpr e) {
        return graph::constantOf(e) == 1;
      });
      // A part of what is longer lies apart, except along the first dimension.
      if (isa<BlockArgument>(value) && !scalar &&
          (map != identity ||
           ArrayRef<AffineExpr>(graph::getShape(value)).drop_front(rank > 0) !=
               ArrayRef<AffineExpr>(shape.root).drop_front(rank > 0)))
        shape.linear = false;
      if (isa<BlockArgument>(value)) {
        // Of what is larger than the result a part is read.
        shape.resultBytes +=
            std::min(bytesOf(value, symbols), bytesOf(root, symbols));
        readInput(shape, reads, value, map, symbols);
      }
      continue;
    }
    OpRole role = op.getRole();
    if (role == OpRole::Indexing || role == OpRole::Ordered)
      shape.linear = false;
    bool isAgain = isComputedAgain(op, space);
    if (isAgain)
      readAgain(shape, map);
    else if (rankOf(role))
      readAnchor(shape, op, map, symbols);
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Value operand = op->getOperand(i);
      AffineMap step = op.getOperandMap(i);
      if (!step && role == OpRole::RowNormalization)
        step = AffineMap::getMultiDimIdentityMap(map.getNumResults(), context);
      // What is passed on at the end lies along the result, from some place on.
      bool isFree = false;
      unsigned passed = step ? 0 : passedDims(op, i, isFree);
      if (!step) {
        unsigned other = map == identity && passed > 0 ? rank - passed : rank;
        std::fill_n(shape.joins.begin(), other, false);
      }
      shape.otherEnds |=
          !step && passed == 0 && map == identity && hasOtherEnds(op) &&
          2 * bytesOf(operand, symbols) >= bytesOf(root, symbols);
      if (passed > 0 && !isFree && !rankOf(role) &&
          graph::getShape(operand).size() == map.getNumResults())
        step = AffineMap::getMultiDimIdentityMap(map.getNumResults(), context);
      if (!step || reached.contains(operand))
        continue;
      reached[operand] = graph::composeMaps(step, map);
      work.push_back(operand);
    }
  }
  for (auto op : kernel.getBody().front().getOps<graph::GraphOpInterface>())
    if (isComputedAgain(op, space))
      shape.againBytes +=
          bytesAgain(op, reached.lookup(op->getResult(0)), symbols);
  // What a reduction reads is not followed: indices choose there, too.
  for (auto op : kernel.getBody().front().getOps<graph::GraphOpInterface>())
    if (op.getRole() == OpRole::Indexing && op->getNumOperands() > 0)
      shape.linear = false;
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
  findWholeRows(shape, space, root);
  if (space)
    shape.cells = graph::getCellSides(
                      *space, graph::getFirst(kernel),
                      kernel.getBody().front().getTerminator()->getOperands())
                      .value_or(SmallVector<graph::CellSide>());
  if (shape.role == OpRole::RowNormalization)
    shape.run = runOf(kernel, root);
  shape.rowsInF32 = llvm::all_of(
      kernel.getBody().front().getOps<graph::GraphOpInterface>(),
      [](graph::GraphOpInterface op) {
        if (op.getRole() != OpRole::RowNormalization &&
            op.getRole() != OpRole::Reduction)
          return true;
        auto type = dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0)));
        return type && type.getWidth() <= 32;
      });
  shape.growsByRow = growsByRow(kernel);
  if (graph::GraphOpInterface ordered = orderedOf(kernel))
    shape.oneByOne = ordered.combinesOneByOne();
  return shape;
}
