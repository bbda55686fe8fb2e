// Parts of tensors whose places are data: segments, and sequences in reverse.
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

/// What a segment without elements is.
static Value neutral(ScatterReduction reduction, mlir::Type element,
                     Emitter &e) {
  if (reduction == ScatterReduction::add || reduction == ScatterReduction::mul)
    return e.scalar(int64_t(reduction == ScatterReduction::mul), element);
  bool isLeast = reduction == ScatterReduction::max;
  if (auto type = llvm::dyn_cast<mlir::FloatType>(element)) {
    auto largest = llvm::APFloat::getLargest(type.getFloatSemantics(), isLeast);
    return e.constant(mlir::DenseElementsAttr::get(
        mlir::RankedTensorType::get({}, element), largest));
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

/// Elements of one number are put together; those of negative ones are left
/// out, which a segment behind the last one takes.
template <ScatterReduction reduction>
static LogicalResult segments(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(2, 0, 0)))
    return llvm::failure();
  auto count = n.known(2);
  if (failed(count))
    return llvm::failure();
  Value x = n.input(0);
  Exprs shape = graph::getShape(x), places = graph::getShape(n.input(1));
  if (places.size() > shape.size())
    return e.fail("has more numbers of segments than elements");
  for (auto [place, size] : llvm::zip(places, shape))
    if (!e.agree(place, size, "has the number of a segment for each element"))
      return e.fail(e.describe(n.input(1).getType()) +
                    " does not give each of " + e.describe(x.getType()) +
                    " a segment");
  Exprs result(shape.begin() + places.size(), shape.end());
  result.insert(result.begin(), graph::simplify(count->front() + 1));
  if (!e.type(result, elementOf(x)))
    return llvm::failure();
  mlir::Type i64 = e.getBuilder().getI64Type();
  Num number = {e.cast(n.input(1), i64), &e};
  Value behind = e.size(count->front(), i64);
  places.push_back(e.number(1));
  Value at =
      e.reshape(select(number < 0, number.of(behind), number).value, places);
  Value start = e.broadcast(neutral(reduction, elementOf(x), e), result);
  Value all = e.op<graph::ScatterNDOp>(
      {start, at, x}, e.attr("reduction", graph::ScatterReductionAttr::get(
                                              e.getContext(), reduction)));
  result[0] = count->front();
  int64_t rank = static_cast<int64_t>(result.size());
  return n.yield(e.slice(all, e.numbers(llvm::SmallVector<int64_t>(rank, 0)),
                         llvm::SmallVector<int64_t>(rank, 1), result));
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
      {"UnsortedSegmentSum", segments<ScatterReduction::add>},
      {"UnsortedSegmentProd", segments<ScatterReduction::mul>},
      {"UnsortedSegmentMax", segments<ScatterReduction::max>},
      {"UnsortedSegmentMin", segments<ScatterReduction::min>},
      {"ReverseSequence", reverseSequence},
  };
  return rows;
}
