#include "graph/ir/Constraints.h"
#include "graph/ops/Common.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace charonia::graph;

static bool allSymbolic(ValueRange operands) {
  return llvm::all_of(operands,
                      [](Value v) { return hasSymbolicShape(v.getType()); });
}
static ArrayRef<int64_t> sizes(Value v) {
  return cast<RankedTensorType>(v.getType()).getShape();
}
static bool isStatic(Value v) {
  return cast<RankedTensorType>(v.getType()).hasStaticShape();
}

/// An index, counted from the end where negative, if inside.
static std::optional<int64_t> wrapIndex(int64_t index, int64_t size) {
  if (index < 0)
    index += size;
  return index >= 0 && index < size ? std::optional(index) : std::nullopt;
}

// iota

LogicalResult IotaOp::verify() {
  if ((int64_t)getAxis() < 0 ||
      (int64_t)getAxis() >= (int64_t)getShape(getResult()).size())
    return emitOpError("axis ")
           << getAxis() << " is outside of " << shapeToString(getType());
  return success();
}

SymbolicTensor IotaOp::evaluateSymbolic(ArrayRef<SymbolicTensor>) {
  SymbolicTensor result;
  result.elements.emplace();
  forEachElement(getType(), [&](ArrayRef<int64_t> at) {
    result.elements->push_back(
        getAffineConstantExpr(at[getAxis()], getContext()));
  });
  return result;
}

// concat

CHARONIA_INFER(ConcatOp) {
  ConcatOp::Adaptor op(operands, attributes, properties, regions);
  if (operands.empty() || !allSymbolic(operands))
    return emitOptionalError(location, "concat needs inputs of known shape");
  Exprs shape = getShape(operands[0]);
  int64_t axis = op.getAxis();
  if (axis < 0 || axis >= (int64_t)shape.size())
    return emitOptionalError(location, "axis ", axis, " is outside of ",
                             shapeToString(operands[0].getType()));
  for (Value operand : operands.drop_front()) {
    Exprs other = getShape(operand);
    bool fits =
        other.size() == shape.size() &&
        getElementTypeOrSelf(operand) == getElementTypeOrSelf(operands[0]);
    for (size_t i = 0; fits && i < shape.size(); ++i) {
      if ((int64_t)i == axis)
        shape[i] = shape[i] + other[i];
      else if (!(fits =
                     sizesAgree(shape[i], other[i], "joins them side by side")))
        break;
      else if (constantOf(other[i]))
        shape[i] = other[i];
    }
    if (!fits)
      return emitOptionalError(
          location, "cannot concatenate ", typeToString(operands[0].getType()),
          " and ", typeToString(operand.getType()), " along axis ", axis);
  }
  types.push_back(makeType(shape, getElementTypeOrSelf(operands[0])));
  return success();
}

SymbolicTensor ConcatOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  SymbolicTensor result;
  result.elements.emplace();
  bool known = llvm::all_of(getInputs(), isStatic);
  if (!known)
    return {};
  int64_t axis = getAxis();
  forEachElement(getType(), [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> inside(at);
    size_t i = 0;
    while (inside[axis] >= sizes(getInputs()[i])[axis])
      inside[axis] -= sizes(getInputs()[i++])[axis];
    auto position = linearize(inside, sizes(getInputs()[i]));
    result.elements->push_back(operands[i] && position
                                   ? (*operands[i].elements)[*position]
                                   : AffineExpr());
  });
  return result;
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1 && getInputs()[0].getType() == getType())
    return getInputs()[0];
  // Inputs without elements add nothing.
  auto isEmpty = [&](Value input) {
    return constantOf(getShape(input)[getAxis()]) == 0;
  };
  SmallVector<Value> kept;
  for (Value input : getInputs())
    if (!isEmpty(input))
      kept.push_back(input);
  if (kept.empty() || kept.size() == getInputs().size())
    return {};
  getInputsMutable().assign(kept);
  return getResult();
}

// pad

LogicalResult PadOp::verify() {
  Exprs from = getShape(getInput()), to = getShape(getResult());
  if (from.size() != to.size() || getLows().getNumResults() != from.size() ||
      getLows().getNumDims() != 0)
    return emitOpError("needs a low for each dimension, and keeps the rank");
  Type element = getElementTypeOrSelf(getInput());
  if (element != getElementTypeOrSelf(getResult()) ||
      element != getElementTypeOrSelf(getValue()))
    return emitOpError("must keep the element type");
  if (constantOf(numElements(getShape(getValue()), getContext())) != 1)
    return emitOpError("the value must be a scalar");
  if (getMode() != PadMode::reflect)
    return success();
  for (auto [d, low] : llvm::enumerate(getLows().getResults()))
    for (AffineExpr amount : {low, simplify(to[d] - from[d] - low)})
      if (auto over = constantOf(simplify(amount - from[d] + 1));
          over && *over > 0)
        return emitOpError("reflects more elements than dimension ")
               << d << " has behind its ends";
  return success();
}

SymbolicTensor PadOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  if (!isStatic(getInput()) || !operands[0])
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  bool known = true;
  forEachElement(getType(), [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> inside(at);
    bool padding = false;
    for (auto [d, size] : llvm::enumerate(sizes(getInput()))) {
      auto low = constantOf(getLows().getResult(d));
      known &= low.has_value();
      int64_t &c = inside[d];
      c -= low.value_or(0);
      if (c >= 0 && c < size)
        continue;
      switch (getMode()) {
      case PadMode::constant:
        padding = true;
        break;
      case PadMode::edge:
        c = c < 0 ? 0 : size - 1;
        break;
      case PadMode::reflect:
        c = size == 1 ? 0 : c < 0 ? -c : 2 * (size - 1) - c;
        break;
      case PadMode::wrap:
        c = size ? ((c % size) + size) % size : 0;
        break;
      }
    }
    if (padding) {
      result.elements->push_back(operands[1] ? operands[1].elements->front()
                                             : AffineExpr());
      return;
    }
    auto position = linearize(inside, sizes(getInput()));
    result.elements->push_back(position ? (*operands[0].elements)[*position]
                                        : AffineExpr());
  });
  return known ? result : SymbolicTensor{};
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  bool identity =
      getInput().getType() == getType() &&
      llvm::all_of(getLows().getResults(), [](AffineExpr e) { return e == 0; });
  return identity ? OpFoldResult(getInput()) : OpFoldResult();
}

// gather

CHARONIA_INFER(GatherOp) {
  GatherOp::Adaptor op(operands, attributes, properties, regions);
  if (!allSymbolic(operands))
    return emitOptionalError(location, "gather needs operands of known shape");
  Exprs input = getShape(operands[0]), indices = getShape(operands[1]), result;
  int64_t axis = op.getAxis();
  if (axis < 0 || axis >= (int64_t)input.size())
    return emitOptionalError(location, "axis ", axis, " is outside of ",
                             shapeToString(operands[0].getType()));
  result.append(input.begin(), input.begin() + axis);
  result.append(indices);
  result.append(input.begin() + axis + 1, input.end());
  types.push_back(makeType(result, getElementTypeOrSelf(operands[0])));
  return success();
}

SymbolicTensor GatherOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  auto indices = operands[1].constants();
  if (!operands[0] || !indices || !isStatic(getInput()) ||
      !isStatic(getIndices()))
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  int64_t axis = getAxis(), rank = sizes(getIndices()).size();
  forEachElement(getType(), [&](ArrayRef<int64_t> at) {
    auto which = linearize(at.slice(axis, rank), sizes(getIndices()));
    auto index = wrapIndex((*indices)[*which], sizes(getInput())[axis]);
    SmallVector<int64_t> inside(at.take_front(axis));
    inside.push_back(index.value_or(-1));
    inside.append(at.begin() + axis + rank, at.end());
    auto position = linearize(inside, sizes(getInput()));
    result.elements->push_back(position ? (*operands[0].elements)[*position]
                                        : AffineExpr());
  });
  return result;
}

/// Whether an open size is known to be more than `index`.
static bool isAbove(AffineExpr size, int64_t index, Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  constexpr int64_t largest = int64_t(1) << 40;
  return module && index < largest &&
         SizeFacts(getSymbols(module), getConstraints(module))
             .isNonNegative(simplify(size - 1 - index));
}

/// A gather by constant indices in arithmetic progression is a slice, where all
/// are known to lie inside: others read 0.
static LogicalResult sliceConstantGather(GatherOp op,
                                         PatternRewriter &rewriter) {
  DenseIntElementsAttr indices;
  if (!matchPattern(op.getIndices(), m_Constant(&indices)) ||
      indices.getNumElements() == 0 || indices.getNumElements() > 1024)
    return failure();
  Exprs shape = getShape(op.getInput());
  int64_t axis = op.getAxis();
  SmallVector<int64_t> at;
  for (const APInt &index : indices)
    at.push_back(index.getSExtValue());
  // Indices from the end need a known extent, and all must be of one kind.
  auto extent = constantOf(shape[axis]);
  for (int64_t &index : at) {
    if (index < 0 && !extent)
      return failure();
    index += index < 0 ? *extent : 0;
    if (index < 0 || (extent && index >= *extent))
      return failure();
  }
  if (!extent && !isAbove(shape[axis], *llvm::max_element(at), op))
    return failure();
  int64_t step = at.size() > 1 ? at[1] - at[0] : 1;
  for (size_t i = 1; i < at.size(); ++i)
    if (at[i] - at[i - 1] != step || step == 0)
      return failure();
  MLIRContext *context = op.getContext();
  Exprs starts(shape.size(), getAffineConstantExpr(0, context));
  starts[axis] = getAffineConstantExpr(at[0], context);
  SmallVector<int64_t> steps(shape.size(), 1);
  steps[axis] = step;
  shape[axis] = getAffineConstantExpr(at.size(), context);
  Type element = getElementTypeOrSelf(op.getInput());
  Value slice = SliceOp::create(rewriter, op.getLoc(), makeType(shape, element),
                                op.getInput(),
                                AffineMap::get(0, 0, starts, context), steps);
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), slice);
  return success();
}

void GatherOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *) {
  patterns.add(sliceConstantGather);
}

// gather_elements

CHARONIA_INFER(GatherElementsOp) {
  GatherElementsOp::Adaptor op(operands, attributes, properties, regions);
  if (!allSymbolic(operands))
    return emitOptionalError(location,
                             "gather_elements needs operands of known shape");
  Exprs input = getShape(operands[0]), indices = getShape(operands[1]);
  int64_t axis = op.getAxis();
  if (input.size() != indices.size() || axis < 0 ||
      axis >= (int64_t)input.size())
    return emitOptionalError(
        location, "gather_elements of ", shapeToString(operands[0].getType()),
        " by ", shapeToString(operands[1].getType()), " along axis ", axis,
        ": ranks must agree and hold the axis");
  types.push_back(makeType(indices, getElementTypeOrSelf(operands[0])));
  return success();
}

SymbolicTensor
GatherElementsOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  auto indices = operands[1].constants();
  if (!operands[0] || !indices || !isStatic(getInput()))
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  size_t next = 0;
  forEachElement(getType(), [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> inside(at);
    int64_t axis = getAxis();
    inside[axis] =
        wrapIndex((*indices)[next++], sizes(getInput())[axis]).value_or(-1);
    auto position = linearize(inside, sizes(getInput()));
    result.elements->push_back(position ? (*operands[0].elements)[*position]
                                        : AffineExpr());
  });
  return result;
}

// gather_nd

CHARONIA_INFER(GatherNDOp) {
  GatherNDOp::Adaptor op(operands, attributes, properties, regions);
  if (!allSymbolic(operands))
    return emitOptionalError(location,
                             "gather_nd needs operands of known shape");
  Exprs input = getShape(operands[0]), indices = getShape(operands[1]);
  int64_t batch = op.getBatchDims();
  auto width = indices.empty() ? std::nullopt : constantOf(indices.back());
  if (!width || batch < 0 || batch >= (int64_t)indices.size() || *width < 1 ||
      batch + *width > (int64_t)input.size())
    return emitOptionalError(
        location, "gather_nd of ", shapeToString(operands[0].getType()), " by ",
        shapeToString(operands[1].getType()), " with ", batch,
        " batch dimensions: the index tuples do not fit");
  for (int64_t i = 0; i < batch; ++i)
    if (!sizesAgree(input[i], indices[i], "chooses within a batch"))
      return emitOptionalError(location, "gather_nd of ",
                               shapeToString(operands[0].getType()), " by ",
                               shapeToString(operands[1].getType()),
                               ": batch dimension ", i, " differs");
  Exprs result(ArrayRef(indices).drop_back());
  result.append(input.begin() + batch + *width, input.end());
  types.push_back(makeType(result, getElementTypeOrSelf(operands[0])));
  return success();
}

SymbolicTensor GatherNDOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  auto indices = operands[1].constants();
  if (!operands[0] || !indices || !isStatic(getInput()) ||
      !isStatic(getIndices()))
    return {};
  SymbolicTensor result;
  result.elements.emplace();
  int64_t tuples = sizes(getIndices()).size() - 1,
          width = sizes(getIndices()).back(), batch = getBatchDims();
  forEachElement(getType(), [&](ArrayRef<int64_t> at) {
    int64_t tuple =
        *linearize(at.take_front(tuples), sizes(getIndices()).drop_back());
    SmallVector<int64_t> inside(at.take_front(batch));
    for (int64_t i = 0; i < width; ++i)
      inside.push_back(
          wrapIndex((*indices)[tuple * width + i], sizes(getInput())[batch + i])
              .value_or(-1));
    inside.append(at.begin() + tuples, at.end());
    auto position = linearize(inside, sizes(getInput()));
    result.elements->push_back(position ? (*operands[0].elements)[*position]
                                        : AffineExpr());
  });
  return result;
}

// scatter_nd

std::optional<RealRange> ScatterNDOp::getRange(ArrayRef<RealRange> operands) {
  bool combines = getReduction() == ScatterReduction::add ||
                  getReduction() == ScatterReduction::mul;
  return combines ? std::nullopt
                  : std::optional(scalar::hull(operands[0], operands[2]));
}
CHARONIA_INFER(ScatterNDOp) {
  if (!allSymbolic(operands))
    return emitOptionalError(location,
                             "scatter_nd needs operands of known shape");
  Exprs input = getShape(operands[0]), indices = getShape(operands[1]),
        updates = getShape(operands[2]);
  auto width = indices.empty() ? std::nullopt : constantOf(indices.back());
  bool fits =
      width && *width >= 1 && *width <= (int64_t)input.size() &&
      getElementTypeOrSelf(operands[0]) == getElementTypeOrSelf(operands[2]) &&
      updates.size() == indices.size() - 1 + input.size() - *width;
  for (size_t i = 0; fits && i < updates.size(); ++i)
    fits = sizesAgree(updates[i],
                      i + 1 < indices.size()
                          ? indices[i]
                          : input[i + 1 - indices.size() + *width],
                      "pairs updates with elements");
  if (!fits)
    return emitOptionalError(
        location, "scatter_nd into ", typeToString(operands[0].getType()),
        " by ", typeToString(operands[1].getType()), " of ",
        typeToString(operands[2].getType()), ": the shapes do not fit");
  types.push_back(operands[0].getType());
  return success();
}

SymbolicTensor
ScatterNDOp::evaluateSymbolic(ArrayRef<SymbolicTensor> operands) {
  auto indices = operands[1].constants();
  if (getReduction() != ScatterReduction::none || !operands[0] ||
      !operands[2] || !indices || !isStatic(getInput()) ||
      !isStatic(getIndices()) || !isStatic(getUpdates()))
    return {};
  SymbolicTensor result = operands[0];
  int64_t tuples = sizes(getIndices()).size() - 1,
          width = sizes(getIndices()).back();
  size_t next = 0;
  bool known = true;
  forEachElement(getUpdates().getType(), [&](ArrayRef<int64_t> at) {
    int64_t tuple =
        *linearize(at.take_front(tuples), sizes(getIndices()).drop_back());
    SmallVector<int64_t> inside;
    for (int64_t i = 0; i < width; ++i)
      inside.push_back(
          wrapIndex((*indices)[tuple * width + i], sizes(getInput())[i])
              .value_or(-1));
    inside.append(at.begin() + tuples, at.end());
    auto position = linearize(inside, sizes(getInput()));
    known &= position.has_value();
    AffineExpr update = (*operands[2].elements)[next++];
    if (position)
      (*result.elements)[*position] = update;
  });
  return known ? result : SymbolicTensor{};
}

// resize

std::optional<RealRange> ResizeOp::getRange(ArrayRef<RealRange> operands) {
  // Cubic interpolation overshoots.
  return getMode() == ResizeMode::cubic ? std::nullopt
                                        : std::optional(operands[0]);
}
LogicalResult ResizeOp::verify() {
  Exprs from = getShape(getInput()), to = getShape(getResult());
  if (from.size() != to.size() ||
      getElementTypeOrSelf(getInput()) != getElementTypeOrSelf(getResult()))
    return emitOpError("must keep rank and element type");
  if (!areAxes(getAxes(), from.size()) ||
      getScales().size() != getAxes().size())
    return emitOpError(
        "needs increasing axes inside the rank, and a scale for each");
  for (size_t i = 0; i < from.size(); ++i)
    if (!llvm::is_contained(getAxes(), (int64_t)i) &&
        !sizesAgree(from[i], to[i], "keeps what it does not resize"))
      return emitOpError("must keep dimension ")
             << i << ", which is no axis of it";
  for (double scale : getScales())
    if (!(scale >= 0) || scale > 1e9)
      return emitOpError(
          "a scale must be positive, or 0 for the ratio of the extents");
  return success();
}

SymbolicTensor ResizeOp::evaluateSymbolic(ArrayRef<SymbolicTensor>) {
  return {};
}

OpFoldResult ResizeOp::fold(FoldAdaptor) {
  // Equal extents and a scale of 1 leave every sample where it is.
  bool identity =
      getInput().getType() == getType() &&
      llvm::all_of(getScales(), [](double s) { return s == 0 || s == 1; });
  return identity ? OpFoldResult(getInput()) : OpFoldResult();
}

// Contents and choices as expressions of coordinates.

AffineExpr IotaOp::getContentAt(ArrayRef<AffineExpr> coordinates,
                                ArrayRef<AffineExpr>, ContentDemand) {
  return coordinates[getAxis()];
}

AffineExpr ConcatOp::getContentAt(ArrayRef<AffineExpr> coordinates,
                                  ArrayRef<AffineExpr> extents,
                                  ContentDemand demand) {
  // The input that the coordinate falls into must be the same everywhere.
  Exprs inside(coordinates);
  AffineExpr &at = inside[getAxis()];
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    AffineExpr size = getShape(input)[getAxis()];
    if (isNonNegative(size - 1 - at, extents))
      return isNonNegative(at, extents) ? demand(i, inside) : AffineExpr();
    at = at - size;
  }
  return {};
}

static Exprs resultDims(Value result) {
  Exprs dims;
  for (size_t i = 0; i < getShape(result).size(); ++i)
    dims.push_back(getAffineDimExpr(i, result.getContext()));
  return dims;
}

static AffineMap toMap(Value result, ArrayRef<AffineExpr> coordinates) {
  unsigned symbols = 0;
  for (AffineExpr e : coordinates) {
    if (!e)
      return {};
    e.walk([&](AffineExpr sub) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(sub))
        symbols = std::max(symbols, symbol.getPosition() + 1);
    });
  }
  return AffineMap::get(getShape(result).size(), symbols, coordinates,
                        result.getContext());
}

AffineMap GatherOp::getChosenMap(ContentDemand demand) {
  Exprs dims = resultDims(getResult()), coordinates;
  size_t axis = getAxis(), rank = getShape(getIndices()).size();
  coordinates.append(dims.begin(), dims.begin() + axis);
  coordinates.push_back(demand(1, ArrayRef(dims).slice(axis, rank)));
  coordinates.append(dims.begin() + axis + rank, dims.end());
  return toMap(getResult(), coordinates);
}

AffineMap GatherElementsOp::getChosenMap(ContentDemand demand) {
  Exprs coordinates = resultDims(getResult());
  coordinates[getAxis()] = demand(1, resultDims(getResult()));
  return toMap(getResult(), coordinates);
}

AffineMap GatherNDOp::getChosenMap(ContentDemand demand) {
  Exprs dims = resultDims(getResult()), indices = getShape(getIndices());
  size_t tuples = indices.size() - 1;
  Exprs coordinates(ArrayRef(dims).take_front(getBatchDims()));
  for (int64_t i = 0, width = *constantOf(indices.back()); i < width; ++i) {
    Exprs at(ArrayRef(dims).take_front(tuples));
    at.push_back(getAffineConstantExpr(i, getContext()));
    coordinates.push_back(demand(1, at));
  }
  coordinates.append(dims.begin() + tuples, dims.end());
  return toMap(getResult(), coordinates);
}
