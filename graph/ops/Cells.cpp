// Operators of which each element is another one of the same cell.
#include "graph/ir/FormedOps.h"
#include "graph/ops/Common.h"

using namespace mlir;
using namespace charonia::graph;

/// The shape of `input`, if cells of `cell` neighbours cover its last dimension
/// exactly.
static FailureOr<Exprs> shapeOfCells(std::optional<Location> location,
                                     StringRef name, Value input,
                                     int64_t cell) {
  Exprs shape = getShape(input);
  if (shape.empty() || cell < 1 ||
      !sizesAgree(shape.back() % cell,
                  getAffineConstantExpr(0, input.getContext()),
                  "cuts the last dimension into cells"))
    return emitOptionalError(location, name, " of ",
                             shapeToString(input.getType()),
                             ": the last dimension is no multiple of ", cell);
  return shape;
}

/// Whether a number of neighbours may be part of a cell: a power of two that
/// tiles have room for.
static bool isOfCell(int64_t count) {
  constexpr int64_t most = 1 << 16;
  return count >= 1 && count <= most && llvm::isPowerOf2_64(count);
}

static SmallVector<int64_t> cellsAlongLast(Value input, int64_t cell) {
  SmallVector<int64_t> cells(getShape(input).size(), 1);
  cells.back() = cell;
  return cells;
}

/// The identity but for the last coordinate.
static AffineMap withLast(Value result, AffineExpr last) {
  unsigned rank = getShape(result).size();
  SmallVector<AffineExpr> results(
      AffineMap::getMultiDimIdentityMap(rank, result.getContext())
          .getResults());
  results.back() = last;
  return mapOf(rank, results, result.getContext());
}

// cell_part

CHARONIA_INFER(CellPartOp) {
  CellPartOp::Adaptor op(operands, attributes, properties, regions);
  int64_t run = op.getRun(), parts = op.getParts(), part = op.getPart();
  // One of each cell would be its sum, to those who ask what it keeps.
  if (!isOfCell(run) || run < 2 || !isOfCell(parts) || part < 0 ||
      part >= parts)
    return emitOptionalError(location, "cell_part: there is no part ", part,
                             " of ", parts, " of ", run, " neighbours");
  FailureOr<Exprs> shape =
      shapeOfCells(location, "cell_part", operands[0], parts * run);
  if (failed(shape))
    return failure();
  shape->back() = simplify(shape->back().floorDiv(parts));
  types.push_back(makeType(*shape, getElementTypeOrSelf(operands[0])));
  return success();
}

AffineMap CellPartOp::getOperandMap(unsigned) {
  int64_t run = getRun();
  AffineExpr last =
      getAffineDimExpr(getShape(getResult()).size() - 1, getContext());
  return withLast(getResult(), last.floorDiv(run) * (getParts() * run) +
                                   last % run + getPart() * run);
}

SmallVector<int64_t> CellPartOp::getCells() {
  return cellsAlongLast(getInput(), getParts() * getRun());
}

// swap_halves

CHARONIA_INFER(SwapHalvesOp) {
  SwapHalvesOp::Adaptor op(operands, attributes, properties, regions);
  if (!isOfCell(op.getRun()))
    return emitOptionalError(location, "swap_halves: there are no halves of ",
                             int64_t(op.getRun()), " neighbours");
  FailureOr<Exprs> shape =
      shapeOfCells(location, "swap_halves", operands[0], 2 * op.getRun());
  if (failed(shape))
    return failure();
  types.push_back(operands[0].getType());
  return success();
}

AffineMap SwapHalvesOp::getOperandMap(unsigned) {
  int64_t run = getRun(), cell = 2 * run;
  AffineExpr last =
      getAffineDimExpr(getShape(getResult()).size() - 1, getContext());
  return withLast(getResult(),
                  last.floorDiv(cell) * cell + (last + run) % cell);
}

SmallVector<int64_t> SwapHalvesOp::getCells() {
  return cellsAlongLast(getInput(), 2 * getRun());
}

// normalize_cells

CHARONIA_INFER(NormalizeCellsOp) {
  NormalizeCellsOp::Adaptor op(operands, attributes, properties, regions);
  if (!isOfCell(op.getRun()) || op.getRun() < 2 ||
      !(op.getEpsilon().convertToDouble() >= 0))
    return emitOptionalError(
        location, "normalize_cells: there are no cells of ",
        int64_t(op.getRun()), " neighbours, or epsilon is negative");
  FailureOr<Exprs> shape =
      shapeOfCells(location, "normalize_cells", operands[0], op.getRun());
  if (failed(shape))
    return failure();
  types.push_back(operands[0].getType());
  return success();
}

AffineMap NormalizeCellsOp::getOperandMap(unsigned) {
  return AffineMap::getMultiDimIdentityMap(getShape(getResult()).size(),
                                           getContext());
}

SmallVector<int64_t> NormalizeCellsOp::getCells() {
  return cellsAlongLast(getInput(), getRun());
}
