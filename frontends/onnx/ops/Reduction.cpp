// Reductions along axes, arg-reductions, cumulative sums.
#include "frontends/common/builders/Sequence.h"
#include "frontends/onnx/Registry.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::ReduceKind;
using llvm::SmallVector;
using mlir::Value;

/// The axes to reduce: an attribute in older versions, an operand in newer
/// ones. `nothing` is set where no axes are given and that means to reduce
/// none.
static llvm::FailureOr<SmallVector<int64_t>> readAxes(Node &n, Emitter &e,
                                                      bool &nothing) {
  int64_t rank = rankOf(n.input(0));
  SmallVector<int64_t> given;
  if (auto attribute = n.integers("axes")) {
    given = *attribute;
  } else if (n.has(1)) {
    auto operand = n.constants(1);
    if (failed(operand))
      return llvm::failure();
    given = *operand;
  }
  nothing = given.empty() && n.flag("noop_with_empty_axes");
  if (given.empty())
    return nothing ? given : llvm::to_vector(llvm::seq<int64_t>(0, rank));
  auto axes = n.axes(given, rank);
  if (succeeded(axes))
    llvm::sort(*axes);
  return axes;
}

/// What happens to an element before it is combined and to the result after.
using Step = Value (*)(Value, Emitter &);
static Value same(Value v, Emitter &) { return v; }
static Value absolute(Value v, Emitter &e) { return e.op<graph::AbsOp>({v}); }
static Value square(Value v, Emitter &e) { return e.mul(v, v); }
static Value squareRoot(Value v, Emitter &e) {
  // Integers have no square root of their own.
  if (!v || isFloat(v))
    return e.op<graph::SqrtOp>({v});
  Value wide = e.cast(v, e.getBuilder().getF64Type());
  return e.cast(e.op<graph::SqrtOp>({wide}), elementOf(v));
}
static Value logarithm(Value v, Emitter &e) {
  if (!v || isFloat(v))
    return e.op<graph::LogOp>({v});
  Value wide = e.cast(v, e.getBuilder().getF64Type());
  return e.cast(e.op<graph::LogOp>({wide}), elementOf(v));
}

template <ReduceKind kind, Step before = same, Step after = same>
static llvm::LogicalResult reduce(Node &n, Emitter &e) {
  bool nothing;
  auto axes = readAxes(n, e, nothing);
  if (failed(axes))
    return llvm::failure();
  Value x = n.input(0);
  // Sums of half types leave their range easily; the extremes cannot.
  bool widens = kind == ReduceKind::sum || kind == ReduceKind::prod;
  Value wide = before(widens ? e.widen(x) : x, e);
  Value result =
      nothing ? wide : e.reduce(kind, wide, *axes, n.flag("keepdims"));
  return n.yield(e.cast(after(result, e), elementOf(x)));
}

static llvm::LogicalResult reduceMean(Node &n, Emitter &e) {
  bool nothing;
  auto axes = readAxes(n, e, nothing);
  if (failed(axes))
    return llvm::failure();
  return n.yield(nothing ? n.input(0)
                         : e.mean(n.input(0), *axes, n.flag("keepdims")));
}

/// max + log(sum(exp(x - max))): exp cannot overflow.
static llvm::LogicalResult reduceLogSumExp(Node &n, Emitter &e) {
  bool nothing;
  auto axes = readAxes(n, e, nothing);
  if (failed(axes))
    return llvm::failure();
  // Of one element it is the element.
  if (nothing)
    return n.yield(n.input(0));
  mlir::Type type = elementOf(n.input(0));
  Value x = isFloat(n.input(0))
                ? e.widen(n.input(0))
                : e.cast(n.input(0), e.getBuilder().getF64Type());
  Value max = e.reduce(ReduceKind::max, x, *axes, true);
  if (!max)
    return llvm::failure();
  // An infinite maximum would give inf - inf.
  mlir::Type element = elementOf(x);
  Value infinite = e.op<graph::IsInfOp>(
      {max}, {e.attr("positive", true), e.attr("negative", true)});
  Value shift = e.select(infinite, e.scalar(0.0, element), max);
  Value sum = e.reduce(ReduceKind::sum, e.op<graph::ExpOp>({e.sub(x, shift)}),
                       *axes, true);
  Value result = e.add(e.op<graph::LogOp>({sum}), shift);
  if (result && !n.flag("keepdims")) {
    Exprs dims;
    for (auto [i, dim] : llvm::enumerate(graph::getShape(result)))
      if (!llvm::is_contained(*axes, static_cast<int64_t>(i)))
        dims.push_back(dim);
    result = e.reshape(result, dims);
  }
  return n.yield(e.cast(result, type));
}

template <bool min> static llvm::LogicalResult argReduce(Node &n, Emitter &e) {
  auto axis = n.axis("axis", rankOf(n.input(0)));
  if (failed(axis))
    return llvm::failure();
  if (graph::getShape(n.input(0))[*axis] == e.number(0))
    return e.fail("there is no " + llvm::Twine(min ? "least" : "largest") +
                      " of the 0 elements along axis " + llvm::Twine(*axis) +
                      " of " + e.describe(n.input(0).getType()),
                  "compile for a size of at least 1 there with --shape");
  SmallVector<mlir::NamedAttribute> attributes = {e.attr("axis", *axis)};
  if (n.flag("keepdims"))
    attributes.push_back(e.unit("keepdims"));
  if (min)
    attributes.push_back(e.unit("min"));
  if (n.flag("select_last_index"))
    attributes.push_back(e.unit("last"));
  return n.yield(e.op<graph::ArgReduceOp>({n.input(0)}, attributes));
}

template <ReduceKind kind>
static llvm::LogicalResult cumulative(Node &n, Emitter &e) {
  auto along = [&](int64_t axis) {
    return buildCumulative(n.input(0), kind, axis, n.flag("exclusive"),
                           n.flag("reverse"), e);
  };
  int64_t rank = rankOf(n.input(0));
  if (n.has(1) && !e.evaluate(n.input(1)).isComplete()) {
    // Data: all are computed, and one is chosen.
    constexpr int64_t maxChoice = 8;
    auto size = graph::getShape(n.input(1));
    if (rank < 1 || rank > maxChoice ||
        productOf(size, e.getContext()) != e.number(1))
      return n.dependsOnData(1);
    mlir::Type i64 = e.getBuilder().getI64Type();
    Value given = e.cast(e.reshape(n.input(1), {}), i64), result = along(0);
    for (int64_t axis = 1; axis < rank; ++axis) {
      Value is = e.compare(graph::Predicate::eq, given, e.scalar(axis, i64)),
            fromEnd = e.compare(graph::Predicate::eq, given,
                                e.scalar(axis - rank, i64));
      result = e.select(e.op<graph::OrOp>({is, fromEnd}), along(axis), result);
    }
    return n.yield(result);
  }
  auto given = n.constantInteger(1);
  if (failed(given))
    return llvm::failure();
  auto axis = n.axis(*given, rank);
  if (failed(axis))
    return llvm::failure();
  return n.yield(along(*axis));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::reductionRows() {
  static const Row rows[] = {
      {"", "ReduceSum", 1, 13, reduce<ReduceKind::sum>},
      {"", "ReduceProd", 1, 18, reduce<ReduceKind::prod>},
      {"", "ReduceMax", 1, 20, reduce<ReduceKind::max>},
      {"", "ReduceMin", 1, 20, reduce<ReduceKind::min>},
      {"", "ReduceMean", 1, 18, reduceMean},
      {"", "ReduceL1", 1, 18, reduce<ReduceKind::sum, absolute>},
      {"", "ReduceL2", 1, 18, reduce<ReduceKind::sum, square, squareRoot>},
      {"", "ReduceSumSquare", 1, 18, reduce<ReduceKind::sum, square>},
      {"", "ReduceLogSum", 1, 28, reduce<ReduceKind::sum, same, logarithm>},
      {"", "ReduceLogSumExp", 1, 28, reduceLogSumExp},
      {"", "ArgMax", 1, 13, argReduce<false>},
      {"", "ArgMin", 1, 13, argReduce<true>},
      {"", "CumSum", 11, 14, cumulative<ReduceKind::sum>},
      {"", "CumProd", 26, 26, cumulative<ReduceKind::prod>},
  };
  return rows;
}
