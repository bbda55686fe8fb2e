// Operators that take elements one after another.
#include "graph/ops/Common.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace charonia::graph;

/// Updates that each element looks through on its own rather than that all go
/// through memory: they fuse, and cost a few instructions.
static constexpr int64_t fewUpdates = 16;

/// The dimensions that are walked in order are whole, the others `kind`.
static SmallVector<DimKind> kindsOf(Value result, ArrayRef<int64_t> ordered,
                                    DimKind kind) {
  SmallVector<DimKind> kinds(getShape(result).size(), kind);
  for (int64_t axis : ordered)
    kinds[axis] = DimKind::Whole;
  return kinds;
}

static LogicalResult inferLike(std::optional<Location> location,
                               ValueRange operands, int64_t axis,
                               StringRef what, SmallVectorImpl<Type> &types) {
  if (!hasSymbolicShape(operands[0].getType()))
    return emitOptionalError(
        location, "the operand's shape is not known: ", operands[0].getType());
  if (axis < 0 || axis >= (int64_t)getShape(operands[0]).size())
    return emitOptionalError(location, what, ": axis ", axis, " is outside of ",
                             shapeToString(operands[0].getType()));
  types.push_back(operands[0].getType());
  return success();
}

// scan

/// What rows begin with has the same rows, of any length.
static LogicalResult inferInitial(std::optional<Location> location,
                                  ScanOp::Adaptor op) {
  Value input = op.getInput(), initial = op.getInitial();
  if (!hasSymbolicShape(input.getType()) ||
      !hasSymbolicShape(initial.getType()))
    return emitOptionalError(location, "scan needs operands of known shape");
  Exprs rows = getShape(input), has = getShape(initial);
  int64_t axis = op.getAxis();
  bool fits = getElementTypeOrSelf(input) == getElementTypeOrSelf(initial) &&
              has.size() == rows.size() && axis >= 0 &&
              axis < int64_t(rows.size());
  for (int64_t d = 0; fits && d < int64_t(rows.size()); ++d)
    fits = d == axis || sizesAgree(has[d], rows[d], "begins rows with others");
  if (fits)
    return success();
  return emitOptionalError(location, "scan along axis ", axis, " of ",
                           typeToString(input.getType()), ": ",
                           typeToString(initial.getType()),
                           " has other rows for these to begin with");
}

CHARONIA_INFER(ScanOp) {
  ScanOp::Adaptor op(operands, attributes, properties, regions);
  if (op.getInitial() && failed(inferInitial(location, op)))
    return failure();
  return inferLike(location, operands, op.getAxis(), "scan", types);
}

SmallVector<DimKind> ScanOp::getResultDimKinds() {
  return kindsOf(getResult(), {(int64_t)getAxis()}, DimKind::Parallel);
}

/// Products of parts of floats overflow, lose digits, or are infinite times
/// zero where those from the beginning are none of this. Sums of parts may
/// overflow: for that they are not taken one by one.
bool ScanOp::combinesOneByOne() {
  return getKind() == ReduceKind::prod &&
         isa<FloatType>(getElementTypeOrSelf(getType()));
}

// sort

CHARONIA_INFER(SortOp) {
  return inferLike(location, operands, 0, "sort", types);
}

LogicalResult SortOp::verify() {
  if (!getElementTypeOrSelf(getInput()).isSignlessInteger(64))
    return emitOpError("orders i64, not ") << getInput().getType();
  if (getCount().getNumDims() != 0 || getCount().getNumResults() != 1)
    return emitOpError("count has to be one size over the shape symbols");
  return success();
}

SmallVector<DimKind> SortOp::getResultDimKinds() {
  int64_t last = getShape(getResult()).size() - 1;
  return kindsOf(getResult(), {last}, DimKind::Batch);
}

// scatters

/// Many terms of a small float type meet in the wide one and are rounded once,
/// as those of a reduction.
template <typename Op>
static LogicalResult widenTerms(Op op, PatternRewriter &rewriter) {
  Type element = getElementTypeOrSelf(op.getType());
  if (op.getReduction() == ScatterReduction::none ||
      op.getRole() != OpRole::Ordered || !isa<FloatType>(element) ||
      element.getIntOrFloatBitWidth() >= 32)
    return failure();
  auto cast = [&](Value value, Type to) -> Value {
    return CastOp::create(rewriter, op.getLoc(),
                          withElement(value.getType(), to), value,
                          TypeAttr::get(to));
  };
  Type f32 = rewriter.getF32Type();
  Value input = cast(op.getInput(), f32), updates = cast(op.getUpdates(), f32);
  auto wide = llvm::cast<Op>(rewriter.clone(*op));
  wide.getInputMutable().assign(input);
  wide.getUpdatesMutable().assign(updates);
  wide.getResult().setType(llvm::cast<RankedTensorType>(input.getType()));
  rewriter.replaceOp(op, cast(wide.getResult(), element));
  return success();
}

void ScatterNDOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *) {
  patterns.add(widenTerms<ScatterNDOp>);
}
void ScatterElementsOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                    MLIRContext *) {
  patterns.add(widenTerms<ScatterElementsOp>);
}

// scatter_nd

AffineMap ScatterNDOp::getPlacedMap(ContentDemand demand) {
  Exprs outer = getShape(getIndices());
  auto width = constantOf(outer.pop_back_val());
  if (!width)
    return {};
  Exprs updates = coordinatesOf(getUpdates()), at(updates), places;
  at.resize(outer.size());
  for (int64_t c = 0; c < *width; ++c) {
    at.push_back(getAffineConstantExpr(c, getContext()));
    places.push_back(demand(1, at));
    at.pop_back();
    if (!places.back())
      return {};
  }
  llvm::append_range(places,
                     ArrayRef<AffineExpr>(updates).drop_front(outer.size()));
  return mapOf(updates.size(), places, getContext());
}

OpRole ScatterNDOp::getRole() {
  if (getInPlace())
    return OpRole::Ordered;
  Exprs outer = getShape(getIndices());
  outer.pop_back();
  auto count = constantOf(numElements(outer, getContext()));
  return count && *count <= fewUpdates ? OpRole::Indexing : OpRole::Ordered;
}

SmallVector<DimKind> ScatterNDOp::getResultDimKinds() {
  if (getRole() == OpRole::Indexing)
    return kindsOf(getResult(), {}, DimKind::Parallel);
  int64_t width = constantOf(getShape(getIndices()).back()).value_or(0);
  return kindsOf(getResult(), llvm::to_vector(llvm::seq<int64_t>(0, width)),
                 DimKind::Parallel);
}

// scatter_elements

AffineMap ScatterElementsOp::getPlacedMap(ContentDemand demand) {
  Exprs places = coordinatesOf(getUpdates());
  AffineExpr place = demand(1, places);
  if (!place)
    return {};
  places[getAxis()] = place;
  return mapOf(places.size(), places, getContext());
}

CHARONIA_INFER(ScatterElementsOp) {
  ScatterElementsOp::Adaptor op(operands, attributes, properties, regions);
  if (!llvm::all_of(operands,
                    [](Value v) { return hasSymbolicShape(v.getType()); }))
    return emitOptionalError(location,
                             "scatter_elements needs operands of known shape");
  size_t rank = getShape(operands[0]).size();
  Exprs indices = getShape(operands[1]), updates = getShape(operands[2]);
  bool fits =
      getElementTypeOrSelf(operands[0]) == getElementTypeOrSelf(operands[2]) &&
      indices.size() == rank && updates.size() == rank;
  for (size_t d = 0; fits && d < rank; ++d)
    fits = sizesAgree(indices[d], updates[d], "pairs updates with indices");
  if (!fits)
    return emitOptionalError(
        location, "updates of ", typeToString(operands[2].getType()),
        " and indices of ", typeToString(operands[1].getType()), " do not fit ",
        typeToString(operands[0].getType()));
  return inferLike(location, operands, op.getAxis(), "scatter_elements", types);
}

SmallVector<DimKind> ScatterElementsOp::getResultDimKinds() {
  return kindsOf(getResult(), {(int64_t)getAxis()}, DimKind::Parallel);
}

std::optional<RealRange>
ScatterElementsOp::getRange(ArrayRef<RealRange> operands) {
  bool combines = getReduction() == ScatterReduction::add ||
                  getReduction() == ScatterReduction::mul;
  return combines ? std::nullopt
                  : std::optional(scalar::hull(operands[0], operands[2]));
}
