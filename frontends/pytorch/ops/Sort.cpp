// Elements in order, and what is carried along a dimension.
#include "frontends/common/builders/Sort.h"
#include "frontends/common/builders/LogSum.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/common/builders/Special.h"
#include "frontends/pytorch/ops/Rows.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;
using graph::ReduceKind;

/// The dimension that `dim` names; a number alone counts as one of one.
static Value asLine(Value x, Emitter &e) {
  return x && rankOf(x) == 0 ? e.reshape(x, {e.number(1)}) : x;
}
static LogicalResult yieldOrdered(Call &c, Value x, AffineExpr count,
                                  int64_t axis, bool largest, bool values) {
  Emitter &e = c.getEmitter();
  Value index = selectPositions({x, axis, count, largest}, e);
  Value ordered =
      values ? e.op<graph::GatherElementsOp>({x, index}, e.attr("axis", axis))
             : Value();
  Value position = e.reshape(index, c.resultShape(values ? 1 : 0));
  if (!values)
    return c.yield(position);
  return c.yield({e.reshape(ordered, c.resultShape(0)), position});
}
static LogicalResult topK(Call &c) {
  c.ignore({"sorted"});
  Value x = asLine(c.tensor("self"), c.getEmitter());
  return yieldOrdered(c, x, c.size("k"), c.axis("dim", rankOf(x), -1),
                      c.flag("largest", true), true);
}
template <bool values> static LogicalResult sort(Call &c) {
  c.ignore({"stable"});
  Value x = asLine(c.tensor("self"), c.getEmitter());
  int64_t axis = c.axis("dim", rankOf(x), -1);
  if (!x || c.getEmitter().failed())
    return c.yield(Value());
  return yieldOrdered(c, x, graph::getShape(x)[axis], axis,
                      c.flag("descending", false), values);
}

/// Along the first dimension, without places.
static LogicalResult sortFirst(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = asLine(c.tensor("self"), e);
  if (!x)
    return c.yield(x);
  Value index = selectPositions({x, 0, graph::getShape(x)[0], false}, e);
  Value y =
      e.op<graph::GatherElementsOp>({x, index}, e.attr("axis", int64_t(0)));
  return c.yield(e.reshape(y, c.resultShape()));
}

template <ReduceKind kind> static LogicalResult cumulative(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"dtype"});
  mlir::Type element = c.resultElement();
  Value x = c.operand("self", element), terms = asLine(e.widen(x), e);
  Value y = e.op<graph::ScanOp>(
      {terms},
      {e.attr("kind", graph::ReduceKindAttr::get(e.getContext(), kind)),
       e.attr("axis", c.axis("dim", rankOf(terms)))});
  return c.yield(e.cast(e.reshape(y, c.resultShape()), element));
}

/// Along `axis`, whether an element is NaN, and where the first such is.
static std::pair<Value, Value> findNan(Value x, int64_t axis, Emitter &e) {
  Value isNan = e.op<graph::IsNanOp>({x});
  Value mark = e.cast(isNan, e.getBuilder().getI64Type());
  return {e.reduce(ReduceKind::max, isNan, {axis}, true),
          e.op<graph::ArgReduceOp>({mark},
                                   {e.attr("axis", axis), e.unit("keepdims")})};
}
/// The element at place k of those in order, and where it is.
static LogicalResult kthValue(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"keepdim"});
  Value x = asLine(c.tensor("self"), e);
  int64_t axis = c.axis("dim", rankOf(x), -1);
  AffineExpr k = c.size("k");
  if (!x || !k || e.failed())
    return c.yield(Value());
  if (!e.getSymbols().assumeAtLeast(k, e.number(1), "so that there is one"))
    return c.fail("needs a k of at least 1");
  Value places = selectPositions({x, axis, k, false}, e);
  Value index =
      sliceAlong(places, axis, {graph::simplify(k - 1), e.number(1), 1}, e);
  Value y = e.op<graph::GatherElementsOp>({x, index}, e.attr("axis", axis));
  return c.yield(
      {e.reshape(y, c.resultShape(0)), e.reshape(index, c.resultShape(1))});
}
/// The lower one of two in the middle; NaN where there is one, or the middle of
/// those that are none.
template <bool skipsNan> static LogicalResult median(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"keepdim"});
  Value x = c.tensor("self");
  if (!x)
    return c.yield(x);
  bool isAll = !c.has("dim");
  x = isAll ? e.reshape(x, {productOf(graph::getShape(x), e.getContext())})
            : asLine(x, e);
  int64_t axis = c.axis("dim", rankOf(x), 0);
  if (!x || e.failed())
    return c.yield(Value());
  AffineExpr length = graph::getShape(x)[axis];
  if (!e.getSymbols().assumeAtLeast(length, e.number(1),
                                    "so that there is a median"))
    return c.fail("there are no elements");
  mlir::Type i64 = e.getBuilder().getI64Type();
  auto along = e.attr("axis", axis);
  Value order = selectPositions({x, axis, length, false}, e), index;
  if (skipsNan && isFloat(x)) {
    Value counts = e.cast(e.op<graph::NotOp>({e.op<graph::IsNanOp>({x})}), i64);
    Value last = e.sub(e.reduce(ReduceKind::sum, counts, {axis}, true),
                       e.scalar(int64_t(1), i64));
    Value middle = e.div(e.max(last, e.scalar(int64_t(0), i64)),
                         e.scalar(int64_t(2), i64));
    index = e.op<graph::GatherElementsOp>({order, middle}, along);
  } else {
    AffineExpr middle = graph::simplify((length - 1).floorDiv(2));
    index = sliceAlong(order, axis, {middle, e.number(1), 1}, e);
    if (isFloat(x)) {
      auto [hasNan, first] = findNan(x, axis, e);
      index = e.select(hasNan, first, index);
    }
  }
  Value y = e.op<graph::GatherElementsOp>({x, index}, along);
  y = e.reshape(y, c.resultShape(0));
  return isAll ? c.yield(y) : c.yield({y, e.reshape(index, c.resultShape(1))});
}

/// Between the elements around place q * (count - 1) of those in order.
static LogicalResult quantile(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"keepdim"});
  Value x = c.tensor("self");
  if (!x)
    return c.yield(x);
  mlir::Type element = elementOf(x), i64 = e.getBuilder().getI64Type();
  if (!c.has("dim"))
    x = e.reshape(x, {productOf(graph::getShape(x), e.getContext())});
  x = asLine(x, e);
  int64_t rank = rankOf(x), axis = c.axis("dim", rank, 0);
  std::string mode = c.text("interpolation", "linear");
  Value q = c.operand("q", element);
  if (!x || !q || e.failed() || rankOf(q) > 1)
    return c.fail("needs one q, or a vector of them");
  bool isBetween = mode == "linear" || mode == "midpoint";
  if (!isBetween && mode != "lower" && mode != "higher" && mode != "nearest")
    return c.fail("interpolation '" + mode + "' is not supported");
  // The dimension in front, as the result has it.
  SmallVector<int64_t> order{axis};
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis)
      order.push_back(d);
  x = e.transpose(x, order);
  AffineExpr length = graph::getShape(x)[0];
  auto front = e.attr("axis", int64_t(0));
  Value sorted = e.op<graph::GatherElementsOp>(
      {x, selectPositions({x, 0, length, false}, e)}, front);
  mlir::Type f64 = e.getBuilder().getF64Type();
  AffineExpr count = rankOf(q) ? graph::getShape(q)[0] : e.number(1);
  Value place = e.mul(e.cast(e.reshape(q, {count}), f64),
                      e.size(graph::simplify(length - 1), f64));
  Value low = e.op<graph::FloorOp>({place}),
        high = e.op<graph::CeilOp>({place});
  auto at = [&](Value places) {
    return e.op<graph::GatherOp>({sorted, e.cast(places, i64)}, front);
  };
  Value y;
  if (isBetween) {
    Exprs column(rank, e.number(1));
    column[0] = count;
    Value weight = mode == "linear"
                       ? e.cast(e.sub(place, low), element)
                       : e.broadcast(e.scalar(0.5, element), {count});
    Value first = at(low);
    y = e.add(first, e.mul(e.sub(at(high), first), e.reshape(weight, column)));
    // Of equal infinities there is no difference.
    y = e.select(e.compare(Predicate::eq, first, at(high)), first, y);
  } else {
    y = at(mode == "lower"    ? low
           : mode == "higher" ? high
                              : e.op<graph::RoundOp>({place}));
  }
  Value isNan = e.reduce(ReduceKind::max, e.op<graph::IsNanOp>({x}), {0}, true);
  y = e.select(isNan,
               e.scalar(std::numeric_limits<double>::quiet_NaN(), element), y);
  return c.yield(e.reshape(y, c.resultShape()));
}

/// The largest (or smallest) element so far, and where the last such is.
template <ReduceKind kind> static LogicalResult cumulativeMost(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = asLine(c.tensor("self"), e);
  int64_t axis = c.axis("dim", rankOf(x));
  if (!x || e.failed())
    return c.yield(Value());
  auto scan = [&](Value terms, ReduceKind how) {
    return e.op<graph::ScanOp>(
        {terms},
        {e.attr("kind", graph::ReduceKindAttr::get(e.getContext(), how)),
         e.attr("axis", axis)});
  };
  Value y = e.cast(scan(e.widen(x), kind), elementOf(x));
  Value isRecord = e.compare(Predicate::eq, x, y);
  if (isFloat(x))
    isRecord = e.op<graph::OrOp>({isRecord, e.op<graph::IsNanOp>({x})});
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs along(rankOf(x), e.number(1));
  along[axis] = graph::getShape(x)[axis];
  Value places =
      e.select(isRecord, e.iota(along, axis, i64), e.scalar(int64_t(0), i64));
  return c.yield({e.reshape(y, c.resultShape(0)),
                  e.reshape(scan(places, ReduceKind::max), c.resultShape(1))});
}

static LogicalResult logCumulative(Call &c) {
  Emitter &e = c.getEmitter();
  Value given = c.operand("self", c.resultElement());
  Value x = asLine(e.widen(given), e);
  int64_t axis = c.axis("dim", rankOf(x));
  if (!x || e.failed())
    return c.yield(Value());
  Value y = buildLogSums(x, axis, e);
  return c.yield(e.cast(e.reshape(y, c.resultShape()), elementOf(given)));
}

/// How many boundaries lie before each element: the place that it would have
/// among them.
static LogicalResult countBoundaries(Call &c, Value x, Value boundaries) {
  Emitter &e = c.getEmitter();
  bool right = c.flag("right", false) || c.text("side", "left") == "right";
  c.ignore({"out_int32"});
  if (c.has("sorter"))
    return c.fail("a sorter is not supported", "sort the boundaries first");
  if (!x || !boundaries)
    return c.yield(Value());
  Exprs shape = graph::getShape(x), spread = graph::getShape(boundaries);
  int64_t rank = shape.size();
  bool isLine = spread.size() == 1;
  if (!isLine && static_cast<int64_t>(spread.size()) != rank)
    return c.fail("boundaries of " + e.describe(spread) + " do not fit " +
                  e.describe(shape));
  shape.push_back(e.number(1));
  if (!isLine)
    spread.insert(spread.end() - 1, e.number(1));
  Value own = e.reshape(x, shape), other = e.reshape(boundaries, spread);
  // A NaN comes behind all.
  Value before = e.op<graph::NotOp>(
      {e.compare(right ? Predicate::gt : Predicate::ge, other, own)});
  return c.yield(e.reduce(ReduceKind::sum, e.cast(before, c.resultElement()),
                          {rank}, false));
}
/// In the type that both promote to: a number is of that of the boundaries.
static LogicalResult countIn(Call &c, llvm::StringRef boundaries) {
  mlir::Type common = c.promote({boundaries, "self"});
  Value own = c.operand("self", common);
  return countBoundaries(c, own, c.operand(boundaries, common));
}
static LogicalResult bucketize(Call &c) { return countIn(c, "boundaries"); }
static LogicalResult searchSorted(Call &c) {
  return countIn(c, "sorted_sequence");
}

/// Whether each element is among others.
static LogicalResult isIn(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"assume_unique"});
  bool scalars = c.has("test_element");
  llvm::StringRef own = c.has("element") ? "element" : "elements",
                  others = scalars ? "test_element" : "test_elements";
  mlir::Type common = c.promote({own, others});
  Value x = c.operand(own, common), among = c.operand(others, common);
  if (!x || !among)
    return c.yield(Value());
  Exprs shape = graph::getShape(x);
  shape.push_back(e.number(1));
  Value line =
      e.reshape(among, {productOf(graph::getShape(among), e.getContext())});
  Value y = e.reduce(ReduceKind::max,
                     e.compare(Predicate::eq, e.reshape(x, shape), line),
                     {rankOf(x)}, false);
  return c.yield(c.flag("invert", false) ? e.op<graph::NotOp>({y}) : y);
}

/// How many elements lie in each of `bins` equal parts of [min, max].
static LogicalResult histogram(Call &c) {
  Emitter &e = c.getEmitter();
  int64_t bins = c.integer("bins", 100);
  double low = c.number("min", 0), high = c.number("max", 0);
  Value x = c.tensor("self");
  if (!x || e.failed())
    return c.yield(Value());
  if (!(low < high) || bins < 1 || bins > maxDimension)
    return c.fail("bounds that follow from data are not supported",
                  "give histc() min and max");
  mlir::Type element = elementOf(x), i64 = e.getBuilder().getI64Type(),
             f32 = e.getBuilder().getF32Type(),
             wide = element.isF64() ? element : f32;
  Value flat =
      e.cast(e.reshape(x, {productOf(graph::getShape(x), e.getContext()),
                           e.number(1)}),
             wide);
  // In the order and the type that PyTorch computes it: ends of bins are exact.
  Value offset =
      e.mul(e.sub(flat, e.scalar(low, wide)), e.scalar(double(bins), wide));
  Value span = e.sub(e.scalar(high, wide), e.scalar(low, wide));
  Value place = e.op<graph::FloorOp>({e.div(offset, span)});
  place = e.min(e.cast(place, i64), e.scalar(bins - 1, i64));
  Value inside = e.op<graph::AndOp>(
      {e.compare(Predicate::ge, flat, e.scalar(low, wide)),
       e.compare(Predicate::le, flat, e.scalar(high, wide))});
  Value hit = e.compare(Predicate::eq, place,
                        e.iota({e.number(1), e.number(bins)}, 1, i64));
  Value counted = e.cast(e.op<graph::AndOp>({hit, inside}), i64);
  return c.yield(
      e.cast(e.reduce(ReduceKind::sum, counted, {0}, false), element));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::sortRows() {
  static const Row rows[] = {
      {"aten.topk.default", topK},
      {"aten.sort.default", sort<true>},
      {"aten.sort.stable", sort<true>},
      {"aten.msort.default", sortFirst},
      {"aten.argsort.default", sort<false>},
      {"aten.argsort.stable", sort<false>},
      {"aten.cumsum.default", partwise(cumulative<ReduceKind::sum>)},
      {"aten.cumprod.default", cumulative<ReduceKind::prod>},
      {"aten.kthvalue.default", kthValue},
      {"aten.median.default", median<false>},
      {"aten.median.dim", median<false>},
      {"aten.nanmedian.default", median<true>},
      {"aten.nanmedian.dim", median<true>},
      {"aten.quantile.default", quantile},
      {"aten.quantile.scalar", quantile},
      {"aten.cummax.default", cumulativeMost<ReduceKind::max>},
      {"aten.cummin.default", cumulativeMost<ReduceKind::min>},
      {"aten.logcumsumexp.default", logCumulative},
      {"aten.bucketize.Tensor", bucketize},
      {"aten.bucketize.Scalar", bucketize},
      {"aten.searchsorted.Tensor", searchSorted},
      {"aten.searchsorted.Scalar", searchSorted},
      {"aten.isin.Tensor_Tensor", isIn},
      {"aten.isin.Tensor_Scalar", isIn},
      {"aten.isin.Scalar_Tensor", isIn},
      {"aten.histc.default", histogram},
  };
  return rows;
}
