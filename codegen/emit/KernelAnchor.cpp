// What the cost model looks at of a kernel: the operator that it is built
// around.
#include "codegen/emit/ReadKernel.h"
#include "codegen/emit/TileEmitter.h"
#include "graph/ir/Float8.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;
using graph::Exprs;
using graph::OpRole;

namespace {

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

/// Whether a kernel reads a value from memory, by views alone.
bool isReadByViews(Value value) {
  while (auto view = value.getDefiningOp<graph::GraphOpInterface>()) {
    if (view.getRole() != OpRole::View || view->getNumOperands() == 0)
      return false;
    value = view->getOperand(0);
  }
  return true;
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
  shape.sharesColumns &= isReadByViews(rows);
}

/// Notes whether what is passed over is stored in runs.
void readStreams(KernelShape &shape, graph::GraphOpInterface op) {
  constexpr int64_t runBits = 128;
  SmallVector<unsigned> streamed = op.getStreamedOperands();
  shape.streamsRuns =
      !streamed.empty() && llvm::all_of(streamed, [&](unsigned i) {
        Value value = op->getOperand(i);
        Exprs extents = graph::getShape(value);
        auto width = graph::constantOf(extents.back());
        return width && *width * shape.elementBits % runBits == 0 &&
               isInnermostInMemory(value, extents.size() - 1) &&
               isReadByViews(value);
      });
}

/// Notes what is multiplied or reduced.
void readElement(KernelShape &shape, graph::GraphOpInterface op) {
  OpRole role = op.getRole();
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
}

/// Notes how many terms of a contraction are neighbours in memory, and how many
/// columns share their rows.
void readTermRuns(KernelShape &shape, graph::GraphOpInterface op,
                  ArrayRef<int64_t> symbols) {
  auto emitting = dyn_cast<EmitOpInterface>(op.getOperation());
  if (!emitting)
    return;
  SmallVector<unsigned> terms = emitting.getTermDims();
  auto runOf = [&](AffineExpr one) {
    return std::min(runInMemory(op->getOperand(0), terms[0], symbols, one),
                    runInMemory(op->getOperand(1), terms[1], symbols, one));
  };
  if (terms.size() == 2)
    shape.termRun = runOf({});
  std::optional<graph::Columns> columns = op.getColumns();
  if (terms.size() == 2 && columns)
    shape.vectorRun = runOf(
        graph::getShape(op->getOperand(columns->operand))[columns->operandDim]);
  if (AffineExpr run = emitting.getColumnRun())
    shape.columnRun = graph::constantOf(graph::simplify(run)).value_or(1);
}

/// Notes whether rows of a contraction that are neighbours in its result are so
/// in memory. `map` leads from the kernel's result to its own.
void readRowsInMemory(KernelShape &shape, graph::GraphOpInterface op,
                      AffineMap map, ArrayRef<int64_t> symbols) {
  unsigned rank = shape.root.size();
  // Of windows with steps neighbours lie apart.
  Exprs operand = graph::getShape(op->getOperand(0)),
        result = graph::getShape(op->getResult(0));
  for (unsigned i = 0, e = std::min(operand.size(), result.size());
       op.getRole() == OpRole::Contraction && rank > 0 && i < e; ++i)
    shape.rowsInMemory |=
        map.getResult(i) == getAffineDimExpr(rank - 1, map.getContext()) &&
        sizeAt(operand[i], symbols) < 2 * sizeAt(result[i], symbols) &&
        isInnermostInMemory(op->getOperand(0), i);
}

/// Notes whether a contraction gives all columns of a row at once, and of what.
void readWholeRows(KernelShape &shape, graph::GraphOpInterface op,
                   ArrayRef<int64_t> symbols) {
  shape.wholeRows = op.getRole() == OpRole::Contraction &&
                    llvm::is_contained(op.getResultDimKinds(), DimKind::Whole);
  if (shape.wholeRows) {
    shape.rowTerms = sizeAt(graph::getShape(op->getOperand(0)).back(), symbols);
    Exprs factors = graph::getShape(op->getOperand(1));
    shape.rowFactors =
        graph::constantOf(factors[factors.size() - 2]).value_or(0);
  }
}

/// Notes along what windows slide that is dense in memory. `map` leads from the
/// kernel's result to theirs.
void readWindow(KernelShape &shape, graph::GraphOpInterface op, AffineMap map) {
  unsigned rank = shape.root.size();
  for (const graph::WindowSide &side : op.getWindow())
    if (side.stride >= side.extent &&
        isInnermostInMemory(op->getOperand(0), side.dim))
      shape.windowRun = side.extent;
  // Coordinates of a window's operand and result correspond.
  if (llvm::is_contained(op.getResultDimKinds(), DimKind::Window)) {
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

} // namespace

void emit::readAnchor(KernelShape &shape, graph::GraphOpInterface op,
                      AffineMap map, ArrayRef<int64_t> symbols) {
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
  readElement(shape, op);
  // A scatter writes one operand over another; a scan goes on with what it has.
  shape.carries = role == OpRole::Ordered && !op.getPlaced();
  shape.rowsJoin.assign(rank, false);
  if (std::optional<graph::Columns> columns = op.getColumns()) {
    readColumns(shape, op, *columns, symbols);
    readRows(shape, op, op->getOperand(columns->operand == 0 ? 1 : 0), map);
  }
  readTermRuns(shape, op, symbols);
  readRowsInMemory(shape, op, map, symbols);
  SmallVector<DimKind> kinds = op.getResultDimKinds();
  readWholeRows(shape, op, symbols);
  readStreams(shape, op);
  shape.isProduct =
      role == OpRole::Contraction && llvm::is_contained(kinds, DimKind::Column);
  for (auto [kind, coordinate] : llvm::zip(kinds, map.getResults()))
    for (unsigned d = 0; d < rank; ++d)
      if (coordinate.isFunctionOfDim(d))
        shape.kinds[d] = std::max(shape.kinds[d], kind);
  shape.alongRow |= runsAlongRow(op);
  readWindow(shape, op, map);
}
