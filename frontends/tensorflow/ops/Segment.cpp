// Parts of tensors whose places are data: segments, and sequences in reverse.
#include "frontends/common/Steps.h"
#include "frontends/common/Tables.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/ops/Num.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::ScatterReduction;
using llvm::LogicalResult;
using mlir::AffineExpr;
using mlir::Value;

/// What a segment without elements is: of floats that are compared the least
/// and the largest finite number, or infinity.
static Value neutral(ScatterReduction reduction, mlir::Type element,
                     bool isFinite, Emitter &e) {
  if (reduction == ScatterReduction::add || reduction == ScatterReduction::mul)
    return e.scalar(int64_t(reduction == ScatterReduction::mul), element);
  bool isLeast = reduction == ScatterReduction::max;
  if (auto type = llvm::dyn_cast<mlir::FloatType>(element)) {
    const auto &semantics = type.getFloatSemantics();
    return e.constant(mlir::DenseElementsAttr::get(
        mlir::RankedTensorType::get({}, element),
        isFinite ? llvm::APFloat::getLargest(semantics, isLeast)
                 : llvm::APFloat::getInf(semantics, isLeast)));
  }
  unsigned width = element.getIntOrFloatBitWidth();
  bool isSigned = !element.isUnsignedInteger();
  auto value = isLeast ? (isSigned ? llvm::APInt::getSignedMinValue(width)
                                   : llvm::APInt::getMinValue(width))
                       : (isSigned ? llvm::APInt::getSignedMaxValue(width)
                                   : llvm::APInt::getMaxValue(width));
  return e.constant(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get({}, element), value));
}

/// Elements of x of one number are put together in one of `count` segments;
/// those of negative ones are left out, which a segment behind the last one
/// takes.
static Value putTogether(Value x, Value numbers, AffineExpr count,
                         ScatterReduction reduction, bool isFinite,
                         Emitter &e) {
  Exprs shape = graph::getShape(x), places = graph::getShape(numbers);
  if (places.size() > shape.size())
    return e.fail("has more numbers of segments than elements");
  for (auto [place, size] : llvm::zip(places, shape))
    if (!e.agree(place, size, "has the number of a segment for each element"))
      return e.fail(e.describe(numbers.getType()) + " does not give each of " +
                    e.describe(x.getType()) + " a segment");
  Exprs result(shape.begin() + places.size(), shape.end());
  result.insert(result.begin(), graph::simplify(count + 1));
  if (!e.type(result, elementOf(x)))
    return {};
  mlir::Type i64 = e.getBuilder().getI64Type();
  Num number = {e.cast(numbers, i64), &e};
  Value behind = e.size(count, i64);
  places.push_back(e.number(1));
  Value at =
      e.reshape(select(number < 0, number.of(behind), number).value, places);
  Value start =
      e.broadcast(neutral(reduction, elementOf(x), isFinite, e), result);
  Value all = e.op<graph::ScatterNDOp>(
      {start, at, x}, e.attr("reduction", graph::ScatterReductionAttr::get(
                                              e.getContext(), reduction)));
  result[0] = count;
  int64_t rank = static_cast<int64_t>(result.size());
  return e.slice(all, e.numbers(llvm::SmallVector<int64_t>(rank, 0)),
                 llvm::SmallVector<int64_t>(rank, 1), result);
}

template <ScatterReduction reduction>
static LogicalResult segments(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(2, 0, 0)))
    return llvm::failure();
  auto count = n.known(2);
  return failed(count) ? llvm::failure()
                       : n.yield(putTogether(n.input(0), n.input(1),
                                             count->front(), reduction,
                                             /*isFinite=*/true, e));
}

/// The numbers of segments that lie one after the other: known, and sorted.
static llvm::FailureOr<llvm::SmallVector<int64_t>> sortedNumbers(Node &n,
                                                                 Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  auto numbers = n.constants(1);
  if (failed(numbers))
    return llvm::failure();
  for (int64_t number : *numbers)
    if (number < 0 || number >= maxDimension)
      return e.fail("has a segment of number " + llvm::Twine(number),
                    "number the segments from 0 on");
  if (!llvm::is_sorted(*numbers))
    return e.fail("has numbers of segments that are not sorted",
                  "use tf.math.unsorted_segment_sum or its relatives");
  return llvm::SmallVector<int64_t>(numbers->begin(), numbers->end());
}
/// How many elements each of `count` segments has.
static Value countElements(llvm::ArrayRef<int64_t> numbers, int64_t count,
                           mlir::Type element, Emitter &e) {
  auto type = mlir::RankedTensorType::get({count}, e.getBuilder().getI64Type());
  if (failed(reserveTable(type, e)))
    return {};
  std::vector<int64_t> counts(count);
  for (int64_t number : numbers)
    ++counts[number];
  return e.cast(e.constant(mlir::DenseElementsAttr::get(
                    type, llvm::ArrayRef<int64_t>(counts))),
                element);
}
/// Segments that lie one after the other; of those without elements the largest
/// and the least are 0.
template <ScatterReduction reduction, bool isMean = false>
static LogicalResult sortedSegments(Node &n, Emitter &e) {
  auto numbers = sortedNumbers(n, e);
  if (failed(numbers))
    return llvm::failure();
  Value x = n.input(0);
  int64_t count = numbers->empty() ? 0 : numbers->back() + 1;
  Num y = {putTogether(x, n.input(1), e.number(count), reduction,
                       /*isFinite=*/false, e),
           &e};
  if (reduction == ScatterReduction::mul ||
      (reduction == ScatterReduction::add && !isMean))
    return n.yield(y.value);
  Value sizes = countElements(*numbers, count, elementOf(x), e);
  Num elements = {e.asChannels(sizes, rankOf(x) - 1), &e};
  if (isMean)
    return n.yield((y / max(elements, 1)).value);
  return n.yield(
      select(compare(graph::Predicate::eq, elements, elements.of(0.0)),
             y.of(0.0), y)
          .value);
}

/// How often, or with which weights, each number below operand 1 occurs, of all
/// elements or of each row.
static LogicalResult binCount(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(0, 0, 2)) ||
      failed(n.needsRank(1, 0, 0)))
    return llvm::failure();
  auto fixed = boundedInteger(n.input(1), e);
  auto bins =
      fixed ? llvm::FailureOr<Exprs>(Exprs{e.number(*fixed)}) : n.known(1);
  if (failed(bins))
    return llvm::failure();
  mlir::Type i64 = e.getBuilder().getI64Type(), element = elementOf(n.input(2));
  Exprs shape = graph::getShape(n.input(0)),
        weights = graph::getShape(n.input(2));
  bool isOne = n.flag("binary_output");
  Value one = e.broadcast(e.scalar(int64_t(1), element), shape), x = one;
  if (!isOne && llvm::none_of(weights, [](AffineExpr size) {
        return graph::constantOf(size) == 0;
      })) {
    bool areFit = weights.size() == shape.size();
    for (size_t i = 0; areFit && i < shape.size(); ++i)
      areFit = e.agree(weights[i], shape[i], "has a weight for each element");
    if (!areFit)
      return e.fail("weights of " + e.describe(n.input(2).getType()) +
                        " do not fit " + e.describe(n.input(0).getType()),
                    "give each element a weight, or no weights at all");
    x = n.input(2);
  }
  Num number = {e.cast(n.input(0), i64), &e};
  if (shape.size() == 2) {
    // The rows' bins one after the other; what is not counted lies outside.
    Num size = number.of(e.size(bins->front(), i64));
    Num row = countAlong(0, 2, shape[0], i64, e);
    Value isOutside = e.op<graph::OrOp>(
        {number < 0, compare(graph::Predicate::ge, number, size)});
    number = select(isOutside, number.of(-1.0), row * size + number);
  }
  AffineExpr all = shape.size() == 2 ? graph::simplify(shape[0] * bins->front())
                                     : bins->front();
  Value y = putTogether(x, number.value, all,
                        isOne ? ScatterReduction::max : ScatterReduction::add,
                        /*isFinite=*/true, e);
  if (isOne)
    y = e.max(y, e.scalar(int64_t(0), element));
  return n.yield(shape.size() == 2 ? e.reshape(y, {shape[0], bins->front()})
                                   : y);
}

/// How many elements lie in each of operand 2 parts of a range; those outside
/// count for the first and the last.
static LogicalResult histogram(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(1, 1, 1)) ||
      failed(n.needsRank(2, 0, 0)))
    return llvm::failure();
  auto bins = n.known(2);
  mlir::Type element = n.type("dtype", 3);
  if (failed(bins) || !element)
    return llvm::failure();
  if (graph::getShape(n.input(1))[0] != e.number(2))
    return e.fail("needs a range of two numbers");
  mlir::Type f64 = e.getBuilder().getF64Type();
  auto bound = [&](int64_t i) {
    Value one = e.slice(n.input(1), {e.number(i)}, {1}, {e.number(1)});
    return Num{e.reshape(one, {}), &e};
  };
  auto wide = [&](Num x) { return x.of(e.cast(x.value, f64)); };
  Num low = bound(0), count = {e.size(bins->front(), f64), &e};
  Num step = wide(bound(1) - low) / count;
  Num place = wide(max(Num{n.input(0), &e}, low) - low) / step;
  place = min(place, count - 1);
  Value y = e.cast(place.value, e.getBuilder().getI64Type());
  Value one =
      e.broadcast(e.scalar(int64_t(1), element), graph::getShape(n.input(0)));
  return n.yield(putTogether(one, y, bins->front(), ScatterReduction::add,
                             /*isFinite=*/true, e));
}

/// The first elements of each sequence in reverse, as many as operand 1 says.
static LogicalResult reverseSequence(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  Value x = n.input(0);
  Exprs shape = graph::getShape(x);
  int64_t rank = rankOf(x);
  auto along = n.axis(n.integer("seq_dim", 0), rank),
       batch = n.axis(n.integer("batch_dim", 0), rank);
  if (failed(along) || failed(batch))
    return llvm::failure();
  if (*along == *batch ||
      !e.agree(graph::getShape(n.input(1))[0], shape[*batch],
               "has a length for each sequence"))
    return e.fail(e.describe(n.input(1).getType()) +
                  " does not give a length to each sequence of " +
                  e.describe(x.getType()));
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs spread(rank, e.number(1));
  spread[*batch] = shape[*batch];
  Num lengths = {e.reshape(e.cast(n.input(1), i64), spread), &e};
  lengths = min(lengths, lengths.of(e.size(shape[*along], i64)));
  Num step = countAlong(*along, rank, shape[*along], i64, e);
  Num from = select(step < lengths, lengths - 1 - step, step);
  return n.yield(e.op<graph::GatherElementsOp>(
      {x, e.broadcast(from.value, shape)}, e.attr("axis", *along)));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::segmentRows() {
  static const Row rows[] = {
      ofParts({"UnsortedSegmentSum", segments<ScatterReduction::add>}),
      {"UnsortedSegmentProd", segments<ScatterReduction::mul>},
      {"UnsortedSegmentMax", segments<ScatterReduction::max>},
      {"UnsortedSegmentMin", segments<ScatterReduction::min>},
      ofParts({"SegmentSum", sortedSegments<ScatterReduction::add>}),
      ofParts({"SegmentMean", sortedSegments<ScatterReduction::add, true>}),
      {"SegmentProd", sortedSegments<ScatterReduction::mul>},
      {"SegmentMax", sortedSegments<ScatterReduction::max>},
      {"SegmentMin", sortedSegments<ScatterReduction::min>},
      {"DenseBincount", binCount},
      {"HistogramFixedWidth", histogram},
      ofParts({"ReverseSequence", reverseSequence}),
  };
  return rows;
}
