#include "graph/ir/Float8.h"
#include "graph/ir/FormedOps.h"
#include "graph/ops/Common.h"

using namespace mlir;
using namespace charonia::graph;

static bool allSymbolic(std::optional<Location> location, ValueRange operands) {
  for (Value operand : operands)
    if (!hasSymbolicShape(operand.getType())) {
      (void)emitOptionalError(location, "an operand's shape is not known: ",
                              typeToString(operand.getType()));
      return false;
    }
  return true;
}

/// Element type of a sum of products; null where such elements are not
/// multiplied. Integers of 16 bits are summed in 32, as are bytes, of which one
/// side has a sign and the other none, and floats of 8 bits, which may differ
/// in kind.
static Type sumType(Value lhs, Value rhs) {
  Type left = getElementTypeOrSelf(lhs), right = getElementTypeOrSelf(rhs);
  bool areBytes = (left.isUnsignedInteger(8) && right.isSignlessInteger(8)) ||
                  (left.isSignlessInteger(8) && right.isUnsignedInteger(8));
  if (areBytes || (left == right && left.isSignlessInteger(16)))
    return IntegerType::get(left.getContext(), 32);
  if (isFloat8(left) && isFloat8(right))
    return Float32Type::get(left.getContext());
  return left == right ? left : Type();
}

// matmul

static LogicalResult inferMatmul(std::optional<Location> location,
                                 ValueRange operands,
                                 SmallVectorImpl<Type> &types) {
  if (!allSymbolic(location, operands))
    return failure();
  Exprs a = getShape(operands[0]), b = getShape(operands[1]);
  auto fail = [&](const Twine &what) {
    return emitOptionalError(location, "matmul of ",
                             shapeToString(operands[0].getType()), " and ",
                             shapeToString(operands[1].getType()), ": ", what);
  };
  if (a.size() < 2 || b.size() < 2)
    return fail("needs matrices");
  Type sum = sumType(operands[0], operands[1]);
  if (!sum)
    return fail("element types differ");
  if (!sizesAgree(a.back(), b[b.size() - 2], "multiplies over them"))
    return fail("inner dimensions differ");
  auto batch =
      broadcastShapes(ArrayRef(a).drop_back(2), ArrayRef(b).drop_back(2));
  if (!batch)
    return fail("leading dimensions do not broadcast");
  batch->push_back(a[a.size() - 2]);
  batch->push_back(b.back());
  types.push_back(makeType(*batch, sum));
  return success();
}

CHARONIA_INFER(MatmulOp) { return inferMatmul(location, operands, types); }

static SmallVector<DimKind> kindsOfMatmul(ArrayRef<AffineExpr> result,
                                          ArrayRef<AffineExpr> rhs) {
  SmallVector<DimKind> kinds(result.size(), DimKind::Batch);
  // Leading dimensions that the right operand lacks are rows of one product.
  for (size_t i = 0; i + 2 < result.size(); ++i) {
    size_t skip = result.size() - rhs.size();
    if (i < skip || constantOf(rhs[i - skip]) == 1)
      kinds[i] = DimKind::Row;
  }
  kinds[kinds.size() - 2] = DimKind::Row;
  kinds.back() = DimKind::Column;
  return kinds;
}

SmallVector<DimKind> MatmulOp::getResultDimKinds() {
  return kindsOfMatmul(getShape(getResult()), getShape(getRhs()));
}

AffineExpr MatmulOp::getReductionExtent() { return getShape(getLhs()).back(); }

std::optional<Columns> MatmulOp::getColumns() {
  unsigned rank = getShape(getRhs()).size();
  return Columns{1, rank - 1, (unsigned)getShape(getResult()).size() - 1};
}

SmallVector<int64_t> MatmulOp::getTermDims() {
  return {int64_t(getShape(getLhs()).size()) - 1,
          int64_t(getShape(getRhs()).size()) - 2};
}

/// Whether `parts` has sums of parts of each of some rows.
static bool arePartsOf(ArrayRef<AffineExpr> rows, Value parts) {
  Exprs shape = getShape(parts);
  return shape.size() == rows.size() && !rows.empty() &&
         ArrayRef(shape).drop_back() == rows.drop_back() &&
         getElementTypeOrSelf(parts).isF32();
}

// normalize_rows

CHARONIA_INFER(NormalizeRowsOp) {
  NormalizeRowsOp::Adaptor op(operands, attributes, properties, regions);
  Exprs rows = getShape(op.getInput());
  if (!arePartsOf(rows, op.getSquares()) ||
      (op.getTerms() && !arePartsOf(rows, op.getTerms())))
    return emitOptionalError(location, "normalize_rows of ",
                             shapeToString(op.getInput().getType()),
                             ": needs parts of each row's sums");
  types.push_back(op.getInput().getType());
  return success();
}

AffineMap NormalizeRowsOp::getOperandMap(unsigned operand) {
  unsigned rank = getShape(getInput()).size();
  AffineMap map = AffineMap::getMultiDimIdentityMap(rank, getContext());
  if (operand == 0)
    return map;
  SmallVector<AffineExpr> results(map.getResults());
  results.back() = getAffineConstantExpr(0, getContext());
  return mapOf(rank, results, getContext());
}

// normalized_matmul

CHARONIA_INFER(NormalizedMatmulOp) {
  NormalizedMatmulOp::Adaptor op(operands, attributes, properties, regions);
  if (failed(inferMatmul(location, operands.take_front(2), types)))
    return failure();
  Exprs rhs = getShape(op.getRhs()), rows = getShape(op.getLhs());
  Value columns = op.getColumnSums(), terms = op.getTerms();
  if (rhs.size() == 2 && arePartsOf(rows, op.getSquares()) &&
      !columns == !terms &&
      (!columns ||
       (arePartsOf(rows, terms) && getShape(columns) == Exprs{rhs[1]} &&
        getElementTypeOrSelf(columns).isF32())))
    return success();
  return emitOptionalError(
      location, "normalized_matmul of ", shapeToString(op.getLhs().getType()),
      " and ", shapeToString(op.getRhs().getType()),
      ": needs a matrix, parts of each row's sums and the sums of its columns");
}

SmallVector<DimKind> NormalizedMatmulOp::getResultDimKinds() {
  return kindsOfMatmul(getShape(getResult()), getShape(getRhs()));
}

AffineExpr NormalizedMatmulOp::getReductionExtent() {
  return getShape(getLhs()).back();
}

std::optional<Columns> NormalizedMatmulOp::getColumns() {
  unsigned rank = getShape(getRhs()).size();
  return Columns{1, rank - 1, (unsigned)getShape(getResult()).size() - 1};
}

// conv

CHARONIA_INFER(ConvOp) {
  if (!allSymbolic(location, operands))
    return failure();
  ConvOp::Adaptor op(operands, attributes, properties, regions);
  Exprs input = getShape(operands[0]), filter = getShape(operands[1]);
  size_t spatial = op.getStrides().size();
  auto fail = [&](const Twine &what) {
    return emitOptionalError(location, "conv of ",
                             shapeToString(operands[0].getType()), " with ",
                             shapeToString(operands[1].getType()), ": ", what);
  };
  if (spatial < 1 || spatial > 3 || input.size() != spatial + 2 ||
      filter.size() != spatial + 2)
    return fail(
        "needs 1 to 3 spatial dimensions, a batch and a channel dimension");
  if (op.getPads().size() != 2 * spatial || op.getDilations().size() != spatial)
    return fail(
        "strides, pads and dilations do not fit the spatial dimensions");
  Type sum = sumType(operands[0], operands[1]);
  if (!sum)
    return fail("element types differ");
  int64_t groups = op.getGroups();
  if (groups < 1)
    return fail("groups must be positive");
  bool last = op.getChannelsLast();
  size_t channel = last ? spatial + 1 : 1, first = last ? 1 : 2;
  if (!sizesAgree(input[channel], filter[channel] * groups,
                  "multiplies over the channels"))
    return fail("the input's channels are not groups x the filter's");
  if (!sizesAgree(filter[0] % groups, getAffineConstantExpr(0, context),
                  "splits the channels into groups"))
    return fail("the filter's output channels are no multiple of groups");
  Exprs result(input);
  result[channel] = filter[0];
  for (size_t i = 0; i < spatial; ++i) {
    int64_t stride = op.getStrides()[i], dilation = op.getDilations()[i],
            low = op.getPads()[i], high = op.getPads()[spatial + i];
    if (stride < 1 || dilation < 1 || low < 0 || high < 0)
      return fail("strides and dilations must be positive, pads not negative");
    AffineExpr window = (filter[first + i] - 1) * dilation + 1;
    AffineExpr extent =
        (input[first + i] + low + high - window).floorDiv(stride) + 1;
    extent = simplify(extent);
    if (constantOf(extent).value_or(0) < 0)
      return fail("the window is larger than the padded input");
    result[first + i] = extent;
  }
  types.push_back(makeType(result, sum));
  return success();
}

SmallVector<DimKind> ConvOp::getResultDimKinds() {
  SmallVector<DimKind> kinds(getSpatialRank() + 2, DimKind::Row);
  // One channel a group is no matrix product: channels are independent.
  if (constantOf(getShape(getFilter())[channelDim()]) == 1 && getGroups() > 1) {
    kinds.assign(kinds.size(), DimKind::Parallel);
    for (unsigned i = 0; i < getSpatialRank(); ++i)
      kinds[spatialDim(i)] = DimKind::Window;
    return kinds;
  }
  kinds[channelDim()] = DimKind::Column;
  return kinds;
}

std::optional<Columns> ConvOp::getColumns() {
  if (getGroups() != 1)
    return std::nullopt;
  return Columns{1, 0, channelDim()};
}

std::optional<Columns> ConvOp::getScaledColumns() {
  // A filter of a group makes one channel, whatever the groups are.
  return Columns{1, 0, channelDim(), int64_t(getGroups())};
}

SmallVector<int64_t> ConvOp::getTermRuns() {
  if (getGroups() != 1 || !getChannelsLast())
    return {};
  // Without padding the window's columns continue the run of their channels. It
  // is of use where all of them start at multiples of something.
  constexpr int64_t aligned = 8;
  unsigned last = getSpatialRank() - 1;
  std::optional<int64_t> channels =
                             constantOf(getShape(getFilter())[channelDim()]),
                         columns = constantOf(
                             getShape(getFilter())[spatialDim(last)]),
                         width =
                             constantOf(getShape(getInput())[spatialDim(last)]);
  bool joined = channels && columns && width && getDilations()[last] == 1 &&
                llvm::all_of(getPads(), [](int64_t pad) { return pad == 0; });
  if (joined && *channels * *columns % aligned == 0 &&
      *channels * getStrides()[last] % aligned == 0 &&
      *channels * *width % aligned == 0)
    return {};
  return {channelDim(), channelDim()};
}

SmallVector<int64_t> ConvOp::getTermDims() {
  if (getGroups() != 1)
    return {};
  return {channelDim(), channelDim()};
}

std::optional<ZeroPadding> ConvOp::getZeroPadding() {
  unsigned spatial = getSpatialRank();
  if (llvm::all_of(getPads(), [](int64_t p) { return p == 0; }))
    return std::nullopt;
  ZeroPadding padding{0,
                      SmallVector<int64_t>(spatial + 2, 0),
                      SmallVector<int64_t>(spatial + 2, 0),
                      {}};
  for (unsigned i = 0; i < spatial; ++i) {
    padding.lows[spatialDim(i)] = getPads()[i];
    padding.highs[spatialDim(i)] = getPads()[spatial + i];
  }
  Builder builder(getContext());
  padding.attributes.push_back(builder.getNamedAttr(
      getPadsAttrName(),
      builder.getDenseI64ArrayAttr(SmallVector<int64_t>(2 * spatial, 0))));
  return padding;
}

std::optional<SmallVector<NamedAttribute>>
ConvOp::getPaddedForm(unsigned operand, const Padding &padding) {
  if (operand != 0 || padding.value != 0)
    return std::nullopt;
  auto pads = windowPads(padding, getPads(), spatialDim(0));
  if (!pads)
    return std::nullopt;
  return SmallVector<NamedAttribute>{
      {getPadsAttrName(), DenseI64ArrayAttr::get(getContext(), *pads)}};
}

int64_t ConvOp::getOperandReads(unsigned operand) {
  int64_t reads = 1;
  if (operand == 0)
    for (unsigned i = 0; i < getSpatialRank(); ++i)
      reads *= constantOf(getShape(getFilter())[spatialDim(i)]).value_or(3);
  return reads;
}

AffineExpr ConvOp::getReductionExtent() {
  return numElements(ArrayRef(getShape(getFilter())).drop_front(),
                     getContext());
}

// attention

CHARONIA_INFER(AttentionOp) {
  if (!allSymbolic(location, operands))
    return failure();
  Exprs q = getShape(operands[0]), k = getShape(operands[1]),
        v = getShape(operands[2]);
  auto fail = [&](const Twine &what) {
    return emitOptionalError(location, "attention of query ",
                             shapeToString(operands[0].getType()), ", key ",
                             shapeToString(operands[1].getType()), ", value ",
                             shapeToString(operands[2].getType()), ": ", what);
  };
  if (q.size() != 4 || k.size() != 4 || v.size() != 4)
    return fail("needs [batch, heads, length, width] each");
  Type element = getElementTypeOrSelf(operands[0]);
  if (element != getElementTypeOrSelf(operands[1]) ||
      element != getElementTypeOrSelf(operands[2]))
    return fail("element types differ");
  if (!sizesAgree(q[0], k[0], "attends within a batch") ||
      !sizesAgree(q[0], v[0], "attends within a batch"))
    return fail("batches differ");
  if (!sizesAgree(k[1], v[1], "pairs keys with values") ||
      !sizesAgree(q[1] % k[1], getAffineConstantExpr(0, context),
                  "shares keys among heads"))
    return fail("the query's heads are no multiple of the key's, or the "
                "value's differ");
  if (!sizesAgree(q[3], k[3], "multiplies queries with keys") ||
      !sizesAgree(k[2], v[2], "pairs keys with values"))
    return fail("widths or lengths differ");
  Exprs scores{q[0], q[1], q[2], k[2]};
  for (Value added : operands.drop_front(3)) {
    Exprs shape = getShape(added);
    auto joined = broadcastShapes(scores, shape);
    if (shape.size() > 4 || !joined || ArrayRef(*joined) != ArrayRef(scores))
      return fail(
          "the mask or bias " + shapeToString(added.getType()) +
          " does not broadcast to [batch, heads, query length, key length]");
  }
  types.push_back(makeType({q[0], q[1], q[2], v[3]}, element));
  return success();
}

SmallVector<DimKind> AttentionOp::getResultDimKinds() {
  // All of a row's values at once, so that its scores are computed once.
  return {DimKind::Batch, DimKind::Batch, DimKind::Row, DimKind::Whole};
}

AffineExpr AttentionOp::getReductionExtent() {
  // A row's scores (a dot of width D each) serve all its Dv results.
  Exprs k = getShape(getKey()), v = getShape(getValue());
  return simplify(k[2] + (k[2] * k[3]).floorDiv(v[3]));
}
