// Reductions along axes.
#include "frontends/common/builders/LogSum.h"
#include "frontends/common/builders/Sequence.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/tensorflow/Node.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::ReduceKind;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// The axes, operand 1, sorted; no axes reduce nothing.
static llvm::FailureOr<SmallVector<int64_t>> readAxes(Node &n) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(1, 0, 1)))
    return llvm::failure();
  auto given = n.constants(1);
  if (failed(given))
    return llvm::failure();
  auto axes = n.axes(*given, rankOf(n.input(0)));
  if (succeeded(axes))
    llvm::sort(*axes);
  return axes;
}

template <ReduceKind kind> static LogicalResult reduce(Node &n, Emitter &e) {
  auto axes = readAxes(n);
  if (failed(axes))
    return llvm::failure();
  if (axes->empty())
    return n.yield(n.input(0));
  // Sums of half types leave their range easily; the extremes cannot.
  bool widens = kind == ReduceKind::sum || kind == ReduceKind::prod;
  Value x = widens ? e.widen(n.input(0)) : n.input(0);
  return n.yield(e.cast(e.reduce(kind, x, *axes, n.flag("keep_dims")),
                        elementOf(n.input(0))));
}

/// Of integers the quotient, of a sum that small ones would not hold.
static LogicalResult mean(Node &n, Emitter &e) {
  auto axes = readAxes(n);
  if (failed(axes))
    return llvm::failure();
  Value x = n.input(0);
  if (axes->empty())
    return n.yield(x);
  bool isInteger = !isFloat(x);
  mlir::Builder &b = e.getBuilder();
  bool isUnsigned = isInteger && elementOf(x).isUnsignedInteger();
  Value wide = isInteger ? e.cast(x, isUnsigned ? b.getIntegerType(64, false)
                                                : b.getI64Type())
                         : x;
  Value y = e.mean(wide, *axes, n.flag("keep_dims"));
  return n.yield(isInteger ? e.cast(y, elementOf(x)) : y);
}

/// Of integers the root is cut to one, of a sum that wraps as they do.
static LogicalResult euclideanNorm(Node &n, Emitter &e) {
  auto axes = readAxes(n);
  if (failed(axes))
    return llvm::failure();
  Value x = e.widen(n.input(0)), squares = e.mul(x, x);
  Value sum = axes->empty() ? squares
                            : e.reduce(ReduceKind::sum, squares, *axes,
                                       n.flag("keep_dims"));
  if (!isFloat(x))
    sum = e.cast(sum, e.getBuilder().getF64Type());
  return n.yield(e.cast(e.op<graph::SqrtOp>({sum}), elementOf(n.input(0))));
}

/// A NaN is never the largest nor the least, but alone.
template <bool min> static LogicalResult argReduce(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  auto given = n.constantInteger(1);
  mlir::Type element = n.type("output_type", 9);
  if (failed(given) || !element)
    return llvm::failure();
  auto axis = n.axis(*given, rankOf(n.input(0)));
  if (failed(axis))
    return llvm::failure();
  SmallVector<mlir::NamedAttribute> attributes = {e.attr("axis", *axis)};
  if (min)
    attributes.push_back(e.unit("min"));
  Value x = n.input(0);
  if (isFloat(x)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    x = e.select(e.op<graph::IsNanOp>({x}),
                 e.scalar(min ? infinity : -infinity, elementOf(x)), x);
  }
  return n.yield(e.cast(e.op<graph::ArgReduceOp>({x}, attributes), element));
}

template <ReduceKind kind>
static LogicalResult cumulative(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  auto given = n.constantInteger(1);
  if (failed(given))
    return llvm::failure();
  auto axis = n.axis(*given, rankOf(n.input(0)));
  if (failed(axis))
    return llvm::failure();
  return n.yield(buildCumulative(n.input(0), kind, *axis, n.flag("exclusive"),
                                 n.flag("reverse"), e));
}

static LogicalResult logSums(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  auto given = n.constantInteger(1);
  if (failed(given))
    return llvm::failure();
  Value x = e.widen(n.input(0));
  auto axis = n.axis(*given, rankOf(x));
  if (failed(axis))
    return llvm::failure();
  Exprs shape = graph::getShape(x), from(shape.size(), e.number(0));
  bool reverse = n.flag("reverse");
  auto turned = [&](Value value) {
    AffineExpr size = shape[*axis];
    return reverse ? sliceAlong(value, *axis,
                                {graph::simplify(size - 1), size, -1}, e)
                   : value;
  };
  Value y = turned(x);
  y = y ? buildLogSums(y, *axis, e) : y;
  if (y && n.flag("exclusive")) {
    // One place later; before the first is the log of nothing.
    Exprs longer = shape, first = from;
    longer[*axis] = graph::simplify(shape[*axis] + 1);
    first[*axis] = e.number(1);
    Value none =
        e.scalar(-std::numeric_limits<double>::infinity(), elementOf(y));
    y = e.slice(e.pad(graph::PadMode::constant, y, none, first, longer), from,
                SmallVector<int64_t>(shape.size(), 1), shape);
  }
  y = y ? turned(y) : y;
  return n.yield(y ? e.cast(y, elementOf(n.input(0))) : y);
}

static LogicalResult halfSquares(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  Value x = e.widen(n.input(0));
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  Value sum = e.reduce(ReduceKind::sum, e.mul(x, x), all, false);
  return n.yield(
      e.cast(e.mul(sum, e.scalar(0.5, elementOf(x))), elementOf(n.input(0))));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::reductionRows() {
  static const Row rows[] = {
      ofParts({"Sum", reduce<ReduceKind::sum>}),
      {"Prod", reduce<ReduceKind::prod>},
      {"Max", reduce<ReduceKind::max>},
      {"Min", reduce<ReduceKind::min>},
      {"All", reduce<ReduceKind::min>},
      {"Any", reduce<ReduceKind::max>},
      ofParts({"Mean", mean}),
      {"EuclideanNorm", euclideanNorm},
      {"ArgMax", argReduce<false>},
      {"ArgMin", argReduce<true>},
      ofParts({"Cumsum", cumulative<ReduceKind::sum>}),
      {"Cumprod", cumulative<ReduceKind::prod>},
      {"CumulativeLogsumexp", logSums},
      {"L2Loss", halfSquares},
  };
  return rows;
}
