// Elements put at positions that are data.
#include "frontends/common/Diagnostic.h"
#include "frontends/common/builders/Gather.h"
#include "frontends/pytorch/ops/Indices.h"
#include "graph/ir/StoredWeight.h"
#include "llvm/ADT/StringSwitch.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::ScatterReduction;

// Index tensors.

/// Elements of a mask that the model holds; none of one that follows from data.
static std::optional<SmallVector<bool>> knownMask(Value mask, Emitter &e) {
  if (auto constant = e.constantOf(mask))
    return llvm::to_vector(constant.getValues<bool>());
  auto weight = mask.getDefiningOp<graph::WeightOp>();
  const graph::Weight *data = weight ? graph::storedWeight(weight) : nullptr;
  if (!data)
    return std::nullopt;
  return llvm::to_vector(
      llvm::map_range(data->bytes, [](char c) { return c != 0; }));
}

/// The positions at which a mask that is known is set, one list a dimension of
/// it; null values where it is not known.
static Values positionsOf(Value mask, Emitter &e) {
  auto shape = llvm::cast<mlir::RankedTensorType>(mask.getType()).getShape();
  std::optional<SmallVector<bool>> known = knownMask(mask, e);
  if (!known || shape.empty())
    return {};
  std::vector<SmallVector<int64_t>> places(shape.size());
  for (auto [i, isSet] : llvm::enumerate(*known)) {
    int64_t rest = isSet ? static_cast<int64_t>(i) : 0;
    for (size_t d = shape.size(); isSet && d-- > 0; rest /= shape[d])
      places[d].push_back(rest % shape[d]);
  }
  Values result;
  for (const auto &list : places)
    result.push_back(e.constant(mlir::DenseElementsAttr::get(
        mlir::RankedTensorType::get(list.size(), e.getBuilder().getI64Type()),
        llvm::ArrayRef(list))));
  return result;
}

/// The tensors of argument `indices` by the dimension that each indexes: a mask
/// that is known stands for positions in as many as it has.
static Values spreadIndices(Call &c) {
  Emitter &e = c.getEmitter();
  Values spread;
  for (auto [i, value] : llvm::enumerate(c.tensors("indices"))) {
    if (!value || !elementOf(value).isInteger(1)) {
      spread.push_back(value);
      continue;
    }
    Values places = positionsOf(value, e);
    if (places.empty())
      return c.fail("results whose shape depends on data are not supported: "
                    "index '" +
                        printable(c.find("indices")->items[i].text) +
                        "' is a mask, and no constant",
                    "keep the shape, as with where(mask, x, 0) for x[mask], or "
                    "make the mask a buffer of the model"),
             Values();
    spread.append(places);
  }
  return spread;
}

llvm::FailureOr<Indices> charonia::frontend::pytorch::readIndices(Call &c,
                                                                  Value self) {
  Emitter &e = c.getEmitter();
  Values given = spreadIndices(c);
  if (!self || e.failed())
    return llvm::failure();
  int64_t rank = rankOf(self);
  Indices result;
  std::optional<Exprs> common = Exprs();
  for (int64_t d = 0; d < rank; ++d) {
    Value i = d < static_cast<int64_t>(given.size()) ? given[d] : Value();
    (i ? result.axes : result.others).push_back(d);
    if (!i)
      continue;
    if (failed(checkPositions(self, i, d, e)))
      return llvm::failure();
    result.positions.push_back(i);
    if (common)
      common = e.join(*common, graph::getShape(i));
  }
  if (!common || result.positions.empty() ||
      static_cast<int64_t>(given.size()) > rank)
    return c.fail("its index tensors do not fit together");
  result.common = *common;
  return result;
}

SmallVector<int64_t> Indices::order() const {
  SmallVector<int64_t> order = axes;
  order.append(others);
  return order;
}

Value Indices::tuples(Emitter &e) const {
  Exprs single = common;
  single.push_back(e.number(1));
  Values columns;
  mlir::Type i64 = e.getBuilder().getI64Type();
  for (Value i : positions)
    columns.push_back(e.reshape(e.broadcast(e.cast(i, i64), common), single));
  return e.concat(columns, common.size());
}

SmallVector<int64_t> Indices::resultOrder() const {
  bool isAdjacent =
      axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
  int64_t leading = isAdjacent ? axes.front() : 0, count = common.size(),
          rank = count + static_cast<int64_t>(others.size());
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < leading; ++d)
    order.push_back(count + d);
  for (int64_t d = 0; d < count; ++d)
    order.push_back(d);
  for (int64_t d = count + leading; d < rank; ++d)
    order.push_back(d);
  return order;
}

static SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (auto [place, d] : llvm::enumerate(permutation))
    result[d] = place;
  return result;
}

/// Of bools the sum is whether any is set, the product whether all are.
static ScatterReduction reductionOf(ScatterReduction reduction, Value x) {
  if (!x || !elementOf(x).isInteger(1))
    return reduction;
  return reduction == ScatterReduction::add   ? ScatterReduction::max
         : reduction == ScatterReduction::mul ? ScatterReduction::min
                                              : reduction;
}

/// `x` with `updates`, of shape [common, others], at the indices.
static Value putAt(Value x, const Indices &indices, Value updates,
                   ScatterReduction reduction, Emitter &e) {
  SmallVector<int64_t> order = indices.order();
  reduction = reductionOf(reduction, x);
  Value y = e.op<graph::ScatterNDOp>(
      {e.transpose(x, order), indices.tuples(e), updates},
      e.attr("reduction",
             graph::ScatterReductionAttr::get(e.getContext(), reduction)));
  return e.transpose(y, inverse(order));
}

/// x[:, mask] = number: a choice; `lead` dimensions are in front of the mask's.
static LogicalResult putWhere(Call &c, Value x, Value mask, size_t lead) {
  Emitter &e = c.getEmitter();
  Value value = c.tensor("values");
  if (!value ||
      graph::numElements(graph::getShape(value), e.getContext()) != e.number(1))
    return c.fail("values of a number that depends on data are not supported: "
                  "an index is a mask",
                  "use where() or masked_fill() in the model");
  if (c.flag("accumulate", false))
    return c.fail("a mask with accumulate is not supported",
                  "use where() in the model");
  Exprs shape = graph::getShape(mask);
  shape.insert(shape.begin(), lead, e.number(1));
  if (shape.size() > static_cast<size_t>(rankOf(x)))
    return c.fail("its mask has more dimensions than the operand");
  shape.append(rankOf(x) - shape.size(), e.number(1));
  return c.yield(e.select(e.reshape(mask, shape),
                          e.cast(e.reshape(value, {}), elementOf(x)), x));
}

static LogicalResult indexPut(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Values given = c.tensors("indices");
  c.ignore({"unsafe"});
  if (!x || e.failed())
    return c.yield(Value());
  bool isAlone =
      !given.empty() && given.back() && elementOf(given.back()).isInteger(1) &&
      llvm::count(given, Value()) + 1 == static_cast<int64_t>(given.size());
  Value value = c.tensor("values");
  bool isOne = value && graph::numElements(graph::getShape(value),
                                           e.getContext()) == e.number(1);
  bool isChoice = isOne && !c.flag("accumulate", false);
  if (isAlone && (isChoice || !knownMask(given.back(), e)))
    return putWhere(c, x, given.back(), given.size() - 1);
  auto indices = readIndices(c, x);
  if (failed(indices))
    return llvm::failure();
  SmallVector<int64_t> back = indices->resultOrder();
  Exprs updated = indices->common, shape = graph::getShape(x), chosen;
  for (int64_t d : indices->others)
    updated.push_back(shape[d]);
  for (int64_t d : back)
    chosen.push_back(updated[d]);
  Value updates = e.transpose(
      e.broadcast(c.operand("values", elementOf(x)), chosen), inverse(back));
  return c.yield(putAt(x, *indices, updates,
                       c.flag("accumulate", false) ? ScatterReduction::add
                                                   : ScatterReduction::none,
                       e));
}

/// Positions of a vector along one dimension.
static llvm::FailureOr<Indices> readLine(Call &c, Value x) {
  Emitter &e = c.getEmitter();
  Value index = c.tensor("index");
  int64_t axis = c.axis("dim", rankOf(x));
  if (!x || !index || e.failed() || rankOf(index) > 1 || rankOf(x) < 1)
    return c.fail("needs a vector of positions");
  if (failed(checkPositions(x, index, axis, e)))
    return llvm::failure();
  Indices result;
  result.axes = {axis};
  for (int64_t d = 0; d < rankOf(x); ++d)
    if (d != axis)
      result.others.push_back(d);
  result.common = rankOf(index) ? graph::getShape(index) : Exprs{e.number(1)};
  result.positions = {e.reshape(index, result.common)};
  return result;
}
/// Slices of `source` at positions of one dimension.
template <ScatterReduction reduction> static LogicalResult putLines(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), source = c.operand("source", elementOf(x));
  auto line = readLine(c, x);
  if (failed(line))
    return llvm::failure();
  if (rankOf(source) != rankOf(x))
    return c.fail("source and operand differ in dimensions");
  if (c.has("alpha") && c.number("alpha") != 1)
    source = e.mul(source, e.scalar(c.number("alpha"), elementOf(source)));
  return c.yield(
      putAt(x, *line, e.transpose(source, line->order()), reduction, e));
}
static LogicalResult fillLines(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), value = c.operand("value", elementOf(x));
  auto line = readLine(c, x);
  if (failed(line))
    return llvm::failure();
  Exprs shape = graph::getShape(x), updated = line->common;
  for (int64_t d : line->others)
    updated.push_back(shape[d]);
  return c.yield(
      putAt(x, *line, e.broadcast(value, updated), ScatterReduction::none, e));
}

// Single elements along a dimension.

/// `src` may be larger than the positions that it is for.
static Value updatesFor(Call &c, Value index, mlir::Type element) {
  Emitter &e = c.getEmitter();
  Value src = c.operand(c.has("src") ? "src" : "value", element);
  if (!src || !index)
    return {};
  Exprs shape = graph::getShape(index);
  if (rankOf(src) == 0)
    return e.broadcast(src, shape);
  Exprs given = graph::getShape(src);
  if (given.size() != shape.size())
    return c.fail("src and index differ in dimensions");
  for (auto [have, need] : llvm::zip_equal(given, shape))
    if (!e.getSymbols().assumeAtLeast(have, need,
                                      "so that there is one for each position"))
      return c.fail("src of " + e.describe(given) + " is smaller than index, " +
                    e.describe(shape));
  return e.slice(src, Exprs(shape.size(), e.number(0)),
                 SmallVector<int64_t>(shape.size(), 1), shape);
}

/// What changes nothing when it is combined.
static Value neutral(ScatterReduction reduction, mlir::Type element,
                     Emitter &e) {
  if (reduction == ScatterReduction::add || reduction == ScatterReduction::mul)
    return e.scalar(int64_t(reduction == ScatterReduction::mul), element);
  bool least = reduction == ScatterReduction::max;
  if (llvm::isa<mlir::FloatType>(element)) {
    double infinity = std::numeric_limits<double>::infinity();
    return e.scalar(least ? -infinity : infinity, element);
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  bool isSigned = !element.isUnsignedInteger() && bits > 1;
  llvm::APInt value = isSigned ? least ? llvm::APInt::getSignedMinValue(bits)
                                       : llvm::APInt::getSignedMaxValue(bits)
                      : least ? llvm::APInt::getMinValue(bits)
                               : llvm::APInt::getMaxValue(bits);
  return e.scalar(isSigned ? value.getSExtValue()
                           : static_cast<int64_t>(value.getZExtValue()),
                  element);
}

/// The mean of what meets an element, rounded down of integers, and of the
/// element itself where that counts.
static Value scatterMean(Value x, Value index, Value updates, int64_t axis,
                         bool includesSelf, Emitter &e) {
  mlir::Type element = elementOf(x);
  Value wide = e.widen(x), one = e.scalar(int64_t(1), elementOf(wide));
  Value sums = buildScatterElements(wide, index, e.widen(updates), axis,
                                    ScatterReduction::add, e);
  Value first = includesSelf ? one : e.scalar(int64_t(0), elementOf(wide));
  Value counts = buildScatterElements(
      e.broadcast(first, graph::getShape(x)), index,
      e.broadcast(one, graph::getShape(index)), axis, ScatterReduction::add, e);
  counts = e.max(counts, one);
  if (isFloat(wide))
    return e.cast(e.div(sums, counts), element);
  Value rest = e.op<graph::ModOp>({sums, counts});
  return e.div(e.sub(sums, rest), counts);
}

/// The reduction of a name; none and a failure where there is none.
static std::optional<ScatterReduction> reductionNamed(Call &c,
                                                      llvm::StringRef name) {
  auto reduction = llvm::StringSwitch<std::optional<ScatterReduction>>(name)
                       .Case("none", ScatterReduction::none)
                       .Cases({"add", "sum", "mean"}, ScatterReduction::add)
                       .Cases({"multiply", "prod"}, ScatterReduction::mul)
                       .Case("amax", ScatterReduction::max)
                       .Case("amin", ScatterReduction::min)
                       .Default(std::nullopt);
  if (!reduction)
    c.fail("reduction '" + name + "' is not supported",
           "sum, prod, mean, amax and amin are");
  return reduction;
}

/// Updates put at, or combined with what is at, `index` along `axis`, which has
/// the shape of the updates.
static Value scatterNamed(Call &c, Value x, Value index, Value updates,
                          int64_t axis, llvm::StringRef reduce) {
  Emitter &e = c.getEmitter();
  auto reduction = reductionNamed(c, reduce);
  if (!reduction || !x || !index || !updates || e.failed())
    return {};
  mlir::Type element = elementOf(x);
  reduction = reductionOf(*reduction, x);
  bool includesSelf = c.flag("include_self", true);
  if (!includesSelf)
    x = buildScatterElements(
        x, index,
        e.broadcast(neutral(*reduction, element, e), graph::getShape(index)),
        axis, ScatterReduction::none, e);
  if (reduce == "mean" && !element.isInteger(1))
    return scatterMean(x, index, updates, axis, includesSelf, e);
  return buildScatterElements(x, index, updates, axis, *reduction, e);
}
static LogicalResult scatterBy(Call &c, llvm::StringRef reduce) {
  Value x = c.tensor("self"), index = c.tensor("index");
  int64_t axis = c.axis("dim", rankOf(x));
  if (!x || !index || c.getEmitter().failed() || rankOf(x) != rankOf(index) ||
      !rankOf(x))
    return c.fail("index and operand differ in dimensions");
  return c.yield(scatterNamed(c, x, index, updatesFor(c, index, elementOf(x)),
                              axis, reduce));
}
static LogicalResult scatter(Call &c) { return scatterBy(c, "none"); }
static LogicalResult scatterAdd(Call &c) { return scatterBy(c, "add"); }
static LogicalResult scatterReduce(Call &c) {
  return scatterBy(c, c.text("reduce", ""));
}

/// Slices of `source` combined with those at positions of one dimension.
static LogicalResult indexReduce(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), source = c.operand("source", elementOf(x));
  std::string reduce = c.text("reduce", "");
  auto line = readLine(c, x);
  if (failed(line))
    return llvm::failure();
  if (rankOf(source) != rankOf(x))
    return c.fail("source and operand differ in dimensions");
  int64_t axis = line->axes[0];
  Exprs along(rankOf(x), e.number(1));
  along[axis] = line->common[0];
  Value index = e.broadcast(e.reshape(line->positions[0], along),
                            graph::getShape(source));
  return c.yield(scatterNamed(c, x, index, source, axis, reduce));
}
/// Elements of the flattened tensor.
static LogicalResult put(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), index = c.tensor("index"),
        source = c.operand("source", elementOf(x));
  if (!x || !index || !source)
    return c.yield(Value());
  auto flat = [&](Value v) {
    return e.reshape(v, {productOf(graph::getShape(v), e.getContext())});
  };
  Value line = flat(x);
  index = flat(index);
  if (failed(checkPositions(line, index, 0, e)))
    return c.yield(Value());
  bool adds = c.flag("accumulate", false);
  auto reduction =
      reductionOf(adds ? ScatterReduction::add : ScatterReduction::none, x);
  return c.yield(e.reshape(
      buildScatterElements(line, index, flat(source), 0, reduction, e),
      graph::getShape(x)));
}

/// What a pooling found, put back where it was found; elsewhere 0. The last
/// dimensions, as many as `output_size` has, are one for the positions.
static LogicalResult unpool(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), index = c.tensor("indices");
  Exprs whole = c.resultShape();
  int64_t spatial = c.sizes("output_size").size();
  c.ignore({"stride", "padding"});
  int64_t rank = whole.size();
  if (e.failed() || rank < spatial || rankOf(x) != rank ||
      rankOf(index) != rank)
    return c.fail("needs positions of the operand's elements");
  auto flatten = [&](llvm::ArrayRef<AffineExpr> shape) {
    Exprs flat(shape.drop_back(spatial));
    flat.push_back(productOf(shape.take_back(spatial), e.getContext()));
    return flat;
  };
  Exprs lines = flatten(graph::getShape(x));
  Value y = buildScatterElements(
      e.broadcast(e.scalar(int64_t(0), elementOf(x)), flatten(whole)),
      e.reshape(index, lines), e.reshape(x, lines), lines.size() - 1,
      ScatterReduction::none, e);
  return c.yield(e.reshape(y, whole));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::scatterRows() {
  static const Row rows[] = {
      {"aten.index_put.default", partwise(indexPut)},
      {"aten._unsafe_index_put.default", partwise(indexPut)},
      {"aten.index_add.default", partwise(putLines<ScatterReduction::add>)},
      {"aten.index_copy.default", partwise(putLines<ScatterReduction::none>)},
      {"aten.index_fill.int_Scalar", fillLines},
      {"aten.index_fill.int_Tensor", fillLines},
      {"aten.index_reduce.default", indexReduce},
      {"aten.put.default", partwise(put)},
      {"aten.max_unpool2d.default", unpool},
      {"aten.max_unpool3d.default", unpool},
      {"aten.scatter.src", partwise(scatter)},
      {"aten.scatter.value", partwise(scatter)},
      {"aten.scatter.reduce", scatterReduce},
      {"aten.scatter.value_reduce", scatterReduce},
      {"aten.scatter_add.default", partwise(scatterAdd)},
      {"aten.scatter_reduce.two", scatterReduce},
  };
  return rows;
}
