#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace charonia::tile;

#include "codegen/tile/ir/TileDialect.cpp.inc"
#include "codegen/tile/ir/TileEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "codegen/tile/ir/TileTypes.cpp.inc"
#define GET_OP_CLASSES
#include "codegen/tile/ir/TileOps.cpp.inc"

void TileDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "codegen/tile/ir/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "codegen/tile/ir/TileOps.cpp.inc"
      >();
}

/// What load, store, index and in_bounds share: symbols that broadcast to the
/// tile, a map over its axes and these symbols, and an extent a checked result.
static LogicalResult verifyAccess(Operation *op, RankedTensorType tile,
                                  ValueRange symbols, AffineMap map,
                                  AffineMap shape) {
  if (!tile.hasStaticShape())
    return op->emitOpError("a tile has a static shape, not ") << tile;
  if (map.getNumDims() != tile.getRank() ||
      map.getNumSymbols() != symbols.size())
    return op->emitOpError("map takes ")
           << map.getNumDims() << " axes and " << map.getNumSymbols()
           << " symbols, given " << tile.getRank() << " and " << symbols.size();
  if (shape &&
      (shape.getNumDims() != 0 || shape.getNumSymbols() != symbols.size() ||
       shape.getNumResults() != map.getNumResults()))
    return op->emitOpError(
        "shape must have an extent for each result of map, over its symbols");
  for (Value symbol : symbols) {
    auto type = dyn_cast<RankedTensorType>(symbol.getType());
    if (!type)
      continue;
    bool fits = type.getRank() == tile.getRank();
    for (int64_t i = 0; fits && i < type.getRank(); ++i)
      fits =
          type.getDimSize(i) == tile.getDimSize(i) || type.getDimSize(i) == 1;
    if (!fits)
      return op->emitOpError("symbol ")
             << type << " does not broadcast to " << tile;
  }
  return success();
}

template <typename Op>
static LogicalResult verifyBufferAccess(Op op, Type tile) {
  auto type = cast<RankedTensorType>(tile);
  if (failed(
          verifyAccess(op, type, op.getSymbols(), op.getMap(), op.getShape())))
    return failure();
  if (type.getElementType() != op.getBuffer().getType().getElementType())
    return op.emitOpError("element type of tile and buffer differ");
  int64_t results = op.getMap().getNumResults();
  if (op.getRank() < 0 || (int64_t)op.getRank() > results)
    return op.emitOpError("rank ")
           << op.getRank() << " of " << results << " results";
  for (int64_t check : op.getChecks())
    if (check < 0 || check >= results)
      return op.emitOpError("check of result ") << check << " of " << results;
  return success();
}

LogicalResult LoadOp::verify() { return verifyBufferAccess(*this, getType()); }
LogicalResult StoreOp::verify() {
  Type element = getElementTypeOrSelf(getValue());
  if (getUpdate() && *getUpdate() != Update::replace &&
      element.getIntOrFloatBitWidth() < 32)
    return emitOpError("updates elements of 32 or 64 bits, not ") << element;
  return verifyBufferAccess(*this, getValue().getType());
}
LogicalResult IndexOp::verify() {
  if (getMap().getNumResults() != 1)
    return emitOpError("map must have one result");
  return verifyAccess(*this, cast<RankedTensorType>(getType()), getSymbols(),
                      getMap(), {});
}
LogicalResult InBoundsOp::verify() {
  return verifyAccess(*this, cast<RankedTensorType>(getType()), getSymbols(),
                      getMap(), getShape());
}

LogicalResult BroadcastOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType());
  auto to = cast<RankedTensorType>(getType());
  if ((int64_t)getAxes().size() != from.getRank() ||
      from.getElementType() != to.getElementType())
    return emitOpError(
        "needs an axis for each of the input and equal element types");
  int64_t last = -1;
  for (auto [i, axis] : llvm::enumerate(getAxes())) {
    if (axis <= last || axis >= to.getRank())
      return emitOpError("axes must increase and exist in the result");
    if (from.getDimSize(i) != to.getDimSize(axis) && from.getDimSize(i) != 1)
      return emitOpError("extent ")
             << from.getDimSize(i) << " does not broadcast to "
             << to.getDimSize(axis);
    last = axis;
  }
  return success();
}

LogicalResult TransposeOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType());
  auto to = cast<RankedTensorType>(getType());
  if (!isPermutationVector(getPermutation()) ||
      (int64_t)getPermutation().size() != from.getRank() ||
      from.getRank() != to.getRank())
    return emitOpError("permutation does not fit the ranks");
  for (auto [i, p] : llvm::enumerate(getPermutation()))
    if (to.getDimSize(i) != from.getDimSize(p))
      return emitOpError("extents do not follow the permutation");
  return success();
}

LogicalResult SplitAxisOp::verify() {
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(getInput().getType()).getShape());
  int64_t axis = getAxis(), inner = getInner();
  if (axis < 0 || axis >= int64_t(shape.size()) || inner < 1 ||
      shape[axis] % inner != 0)
    return emitOpError("has no axis that is cut so");
  shape[axis] /= inner;
  shape.insert(shape.begin() + axis + 1, inner);
  if (ArrayRef(shape) != cast<RankedTensorType>(getType()).getShape())
    return emitOpError("gives another shape");
  return success();
}

LogicalResult JoinAxesOp::verify() {
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(getInput().getType()).getShape());
  int64_t axis = getAxis();
  if (axis < 0 || axis + 1 >= int64_t(shape.size()))
    return emitOpError("has no two axes there");
  shape[axis] *= shape[axis + 1];
  shape.erase(shape.begin() + axis + 1);
  if (ArrayRef(shape) != cast<RankedTensorType>(getType()).getShape())
    return emitOpError("gives another shape");
  return success();
}

/// Whether an axis of `shape` consists of whole cells of `cell` neighbours.
static bool hasCells(ArrayRef<int64_t> shape, int64_t axis, int64_t run,
                     int64_t parts) {
  // Layouts are of bits.
  return axis >= 0 && axis < int64_t(shape.size()) &&
         llvm::isPowerOf2_64(run) && llvm::isPowerOf2_64(parts) &&
         run <= shape[axis] && parts <= shape[axis] / run &&
         shape[axis] % (run * parts) == 0;
}

LogicalResult CellPartOp::verify() {
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(getInput().getType()).getShape());
  int64_t run = getRun(), parts = getParts(), part = getPart();
  if (run < 1 || parts < 1 || part < 0 || part >= parts ||
      !hasCells(shape, getAxis(), run, parts))
    return emitOpError("has no such cells");
  shape[getAxis()] /= parts;
  if (ArrayRef(shape) != cast<RankedTensorType>(getType()).getShape())
    return emitOpError("gives another shape");
  return success();
}

LogicalResult SwapHalvesOp::verify() {
  if (int64_t(getRun()) < 1 ||
      !hasCells(cast<RankedTensorType>(getType()).getShape(), getAxis(),
                getRun(), 2))
    return emitOpError("has no such cells");
  return success();
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getLhs().getType()),
       b = cast<RankedTensorType>(getRhs().getType()),
       c = cast<RankedTensorType>(getType());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2 ||
      a.getDimSize(1) != b.getDimSize(0) ||
      a.getDimSize(0) != c.getDimSize(0) || b.getDimSize(1) != c.getDimSize(1))
    return emitOpError("shapes must be [M, K], [K, N] -> [M, N]");
  if (a.getElementType() != b.getElementType())
    return emitOpError("operands must have one element type");
  if (a.getElementType().isInteger(8) && !c.getElementType().isInteger(32))
    return emitOpError("products of bytes accumulate in i32");
  if (int64_t(getColumns()) < 0 || int64_t(getColumns()) > c.getDimSize(1))
    return emitOpError("has columns that count which it does not have");
  return success();
}

int64_t DotOp::getUsedColumns() {
  return getColumns() ? getColumns()
                      : cast<RankedTensorType>(getType()).getDimSize(1);
}

LogicalResult SplitSumOp::verify() {
  if (getParts() < 2)
    return emitOpError("needs two parts at least");
  if (!cast<BufferType>(getScratch().getType()).getElementType().isF32() ||
      !cast<BufferType>(getCounters().getType()).getElementType().isInteger(32))
    return emitOpError("needs scratch memory of f32 and counters of i32");
  auto shape = getType().getShape();
  if (auto axis = getSharedAxis())
    if (*axis >= shape.size() || !llvm::isPowerOf2_64(getParts()) ||
        shape[*axis] % int64_t(getParts()) != 0)
      return emitOpError("cannot share out axis ")
             << *axis << " among " << getParts() << " parts";
  return success();
}

/// What all parts give.
static void addExchanged(OperationState &state, TypeRange inputs,
                         uint64_t parts) {
  for (uint64_t part = 0; part < parts; ++part)
    state.addTypes(inputs);
}

void ExchangeOp::build(OpBuilder &b, OperationState &state, ValueRange inputs,
                       uint64_t parts) {
  SmallVector<Type> types(inputs.getTypes());
  state.addOperands(inputs);
  state.getOrAddProperties<Properties>().parts = b.getI64IntegerAttr(parts);
  addExchanged(state, types, parts);
}

ParseResult ExchangeOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SmallVector<Type> types;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseOperandList(inputs) ||
      parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonTypeList(types) ||
      parser.resolveOperands(inputs, types, location, state.operands))
    return failure();
  auto parts = dyn_cast_or_null<IntegerAttr>(state.attributes.get("parts"));
  if (!parts || !parts.getType().isInteger(64) || parts.getInt() < 0 ||
      parts.getInt() > int64_t(kMostInCluster))
    return parser.emitError(location, "needs the number of its parts, ")
           << kMostInCluster << " at most";
  addExchanged(state, types, parts.getInt());
  return success();
}

void ExchangeOp::print(OpAsmPrinter &p) {
  p << ' ' << getInputs();
  p.printOptionalAttrDict((*this)->getAttrs());
  p << " : " << getInputs().getTypes();
}

LogicalResult ExchangeOp::verify() {
  if (getParts() < 2 || getParts() > kMostInCluster)
    return emitOpError("is among 2 to ")
           << kMostInCluster << " parts, not " << getParts();
  if (getInputs().empty())
    return emitOpError("needs an operand");
  if (getNumResults() != getParts() * getInputs().size())
    return emitOpError("has ") << getNumResults() << " results, not "
                               << getParts() * getInputs().size();
  if (!llvm::all_equal((*this)->getOperandTypes()) ||
      !llvm::all_equal((*this)->getResultTypes()) ||
      getResult(0).getType() != getInputs()[0].getType())
    return emitOpError("has operands and results of different types");
  if (!isa<func::FuncOp>((*this)->getParentOp()))
    return emitOpError("stands at the top of a kernel, where all instances "
                       "come exactly once");
  return success();
}

LogicalResult ScanOp::verify() {
  auto in = cast<RankedTensorType>(getInput().getType());
  if (getAxis() >= (uint64_t)in.getRank())
    return emitOpError("axis out of range");
  SmallVector<int64_t> shape(in.getShape());
  shape.erase(shape.begin() + getAxis());
  if (getCarry().getType() != RankedTensorType::get(shape, in.getElementType()))
    return emitOpError("carry must be the operand without the axis, not ")
           << getCarry().getType();
  if (getCombiner().front().getNumArguments() != 2)
    return emitOpError("combiner takes two scalars");
  return success();
}

LogicalResult SortOp::verify() {
  if (!getBuffer().getType().getElementType().isInteger(64))
    return emitOpError("orders elements of i64");
  return success();
}

LogicalResult ReduceOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs an operand");
  auto first = cast<RankedTensorType>(getInputs()[0].getType());
  if ((int64_t)getAxis() >= first.getRank())
    return emitOpError("axis out of range");
  SmallVector<int64_t> shape(first.getShape());
  shape.erase(shape.begin() + getAxis());
  Block &block = getCombiner().front();
  if (block.getNumArguments() != 2 * getInputs().size() ||
      getResults().size() != getInputs().size())
    return emitOpError(
        "combiner takes two scalars and gives one for each operand");
  for (auto [i, input, result] : llvm::enumerate(getInputs(), getResults())) {
    auto in = cast<RankedTensorType>(input.getType()),
         out = cast<RankedTensorType>(result.getType());
    if (in.getShape() != first.getShape() ||
        out.getShape() != ArrayRef<int64_t>(shape) ||
        in.getElementType() != out.getElementType() ||
        block.getArgument(i).getType() != in.getElementType())
      return emitOpError("types of operand ") << i << " do not fit";
  }
  return success();
}
