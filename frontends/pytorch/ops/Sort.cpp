// Elements in order, and what is carried along a dimension.
#include "frontends/common/builders/Sort.h"
#include "frontends/pytorch/ops/Rows.h"

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
  mlir::Type element = elementOf(x), f32 = e.getBuilder().getF32Type(),
             i64 = e.getBuilder().getI64Type();
  Value flat =
      e.cast(e.reshape(x, {productOf(graph::getShape(x), e.getContext()),
                           e.number(1)}),
             f32);
  Value place =
      e.op<graph::FloorOp>({e.mul(e.sub(flat, e.scalar(low, f32)),
                                  e.scalar(double(bins) / (high - low), f32))});
  place = e.min(e.cast(place, i64), e.scalar(bins - 1, i64));
  Value inside =
      e.op<graph::AndOp>({e.compare(Predicate::ge, flat, e.scalar(low, f32)),
                          e.compare(Predicate::le, flat, e.scalar(high, f32))});
  Value hit = e.compare(Predicate::eq, place,
                        e.iota({e.number(1), e.number(bins)}, 1, i64));
  Value counted = e.cast(e.op<graph::AndOp>({hit, inside}), f32);
  return c.yield(
      e.cast(e.reduce(ReduceKind::sum, counted, {0}, false), element));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::sortRows() {
  static const Row rows[] = {
      {"aten.topk.default", topK},
      {"aten.sort.default", sort<true>},
      {"aten.sort.stable", sort<true>},
      {"aten.argsort.default", sort<false>},
      {"aten.argsort.stable", sort<false>},
      {"aten.cumsum.default", cumulative<ReduceKind::sum>},
      {"aten.cumprod.default", cumulative<ReduceKind::prod>},
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
