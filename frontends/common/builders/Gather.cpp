#include "frontends/common/builders/Gather.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// The elements of an integer tensor of any size that is written in the model.
static std::optional<SmallVector<int64_t>> writtenIn(Value value, Emitter &e) {
  if (auto contents = e.evaluate(value).constants())
    return SmallVector<int64_t>(*contents);
  auto op = value.getDefiningOp<graph::GraphOpInterface>();
  return op ? op.getStoredIntegers() : std::nullopt;
}

namespace {
/// Positions from one to another along a dimension; negative ones count from
/// its end.
struct Reach {
  AffineExpr first, last;
};

/// What the elements of a tensor are at most, and whether one of them is that.
struct Largest {
  AffineExpr position;
  bool isReached = true;
};
} // namespace

static Largest sumOf(const Largest &a, const Largest &b, bool isUniform) {
  if (!a.position || !b.position)
    return {};
  return {graph::simplify(a.position + b.position),
          a.isReached && b.isReached && isUniform};
}

/// The largest element of an integer tensor that counts positions, seen through
/// what only moves or shifts elements; null where it cannot be told.
static Largest largestPosition(Value value, Emitter &e, int depth = 0) {
  constexpr int maxDepth = 12;
  if (depth > maxDepth)
    return {};
  mlir::Operation *op = value.getDefiningOp();
  if (auto contents = e.evaluate(value).constants();
      contents && !contents->empty())
    return {e.number(*llvm::max_element(*contents))};
  if (auto iota = llvm::dyn_cast_or_null<graph::IotaOp>(op))
    return {graph::simplify(graph::getShape(value)[iota.getAxis()] - 1)};
  if (auto add = llvm::dyn_cast_or_null<graph::AddOp>(op)) {
    bool isUniform = llvm::any_of(add->getOperands(), [&](Value operand) {
      return graph::numElements(graph::getShape(operand), e.getContext()) == 1;
    });
    return sumOf(largestPosition(add.getLhs(), e, depth + 1),
                 largestPosition(add.getRhs(), e, depth + 1), isUniform);
  }
  if (llvm::isa_and_present<graph::ReshapeOp, graph::BroadcastOp,
                            graph::TransposeOp, graph::CastOp>(op) &&
      elementOf(op->getOperand(0)).isInteger())
    return largestPosition(op->getOperand(0), e, depth + 1);
  return {};
}

/// What is known of every `length`-th position from `column` on in a dimension
/// of that size: the ends of those that are numbers, and each other one that
/// follows from sizes, or from the number of a step that is repeated.
static SmallVector<Reach> reachesOf(AffineExpr size, Value positions,
                                    int64_t column, int64_t length,
                                    Emitter &e) {
  SmallVector<Reach> reaches;
  if (auto written = writtenIn(positions, e)) {
    if (written->empty())
      return {};
    int64_t first = (*written)[column], last = first;
    for (size_t at = column; at < written->size(); at += length) {
      first = std::min(first, (*written)[at]);
      last = std::max(last, (*written)[at]);
    }
    reaches.push_back({e.number(first), e.number(last)});
  } else if (auto known = e.evaluate(positions)) {
    for (size_t at = column; at < known.elements->size(); at += length)
      if (AffineExpr position = (*known.elements)[at])
        reaches.push_back({position, position});
  } else if (length == 1) {
    // Sizes that are known are refused for a position that there is.
    Largest largest = largestPosition(positions, e);
    if (largest.position && (largest.isReached || !graph::constantOf(size) ||
                             !graph::constantOf(largest.position)))
      reaches.push_back({e.number(0), largest.position});
  }
  return reaches;
}

static llvm::LogicalResult failOutside(AffineExpr position, AffineExpr size,
                                       int64_t axis, Emitter &e) {
  Symbols &symbols = e.getSymbols();
  auto number = graph::constantOf(position);
  int64_t most = symbols.bounds(size).high;
  bool isAlways = number ? *number >= most || *number < -most
                         : symbols.isAtLeast(position, size);
  std::string ranges =
      symbols.describeRanges(number ? size : graph::simplify(size - position));
  std::string what = number ? "index " + std::to_string(*number) + " is"
                            : "position " + symbols.toString(position) +
                                  (isAlways ? " lies" : " may lie");
  return e.fail(what + (number ? " out of range for" : " outside of") +
                    " the " + symbols.toString(size) +
                    " elements of dimension " + Twine(axis) +
                    (ranges.empty() ? "" : ", for ") + ranges,
                isAlways ? "correct the index in the model, or the size where "
                           "--shape says it"
                : symbols.namesCounter(position)
                    ? "let all steps read inside of it, or narrow the ranges "
                      "with --shape where some do"
                    : "narrow the ranges with --shape");
}

/// Positions lie inside of a dimension. Those that are numbers are written in
/// the model, so that sizes that are too small for them are no sizes of the
/// model's, whatever is declared: these are refused when shapes are bound.
static llvm::LogicalResult needInside(AffineExpr size, const Reach &reach,
                                      int64_t axis, Emitter &e) {
  Symbols &symbols = e.getSymbols();
  // Numbers beyond all sizes would leave 64 bits.
  auto asSize = [&](AffineExpr expr) {
    auto number = graph::constantOf(expr);
    return number
               ? e.number(std::clamp(*number, -maxDimension - 1, maxDimension))
               : expr;
  };
  auto has = [&](AffineExpr count) {
    constexpr const char *why = "so that positions lie inside their table";
    return graph::constantOf(count) ? symbols.needAtLeast(size, count, why)
                                    : symbols.assumeAtLeast(size, count, why);
  };
  if (!has(graph::simplify(asSize(reach.last) + 1)))
    return failOutside(reach.last, size, axis, e);
  if (!has(graph::simplify(-asSize(reach.first))))
    return failOutside(reach.first, size, axis, e);
  return llvm::success();
}

/// The same of what is known of column `column` of tuples of `length`.
static llvm::LogicalResult checkColumn(Value table, int64_t axis,
                                       Value positions, int64_t column,
                                       int64_t length, Emitter &e) {
  // What a branch that may not be taken reads is no need of the model: where
  // it lies outside, that is 0.
  if (e.isInBranch())
    return llvm::success();
  AffineExpr size = graph::getShape(table)[axis];
  for (const Reach &reach : reachesOf(size, positions, column, length, e))
    if (failed(needInside(size, reach, axis, e)))
      return llvm::failure();
  return llvm::success();
}

llvm::LogicalResult charonia::frontend::checkPositions(Value table,
                                                       Value positions,
                                                       int64_t axis,
                                                       Emitter &e) {
  if (!table || !positions)
    return llvm::failure();
  return checkColumn(table, axis, positions, 0, 1, e);
}

llvm::LogicalResult charonia::frontend::checkTuples(Value table, Value tuples,
                                                    int64_t firstAxis,
                                                    Emitter &e) {
  if (!table || !tuples)
    return llvm::failure();
  Exprs sizes = graph::getShape(table), shape = graph::getShape(tuples);
  int64_t length =
      shape.empty() ? 0 : graph::constantOf(shape.back()).value_or(0);
  // Tuples that do not fit are told by the operator.
  if (firstAxis < 0 || length > int64_t(sizes.size()) - firstAxis)
    return llvm::success();
  for (int64_t i = 0; i < length; ++i)
    if (failed(checkColumn(table, firstAxis + i, tuples, i, length, e)))
      return llvm::failure();
  return llvm::success();
}

llvm::LogicalResult charonia::frontend::checkPlaces(Value x, Value positions,
                                                    int64_t axis, Emitter &e) {
  if (!x || !positions)
    return llvm::failure();
  Exprs shape = graph::getShape(x), indices = graph::getShape(positions);
  for (int64_t d = 0, rank = std::min(shape.size(), indices.size()); d < rank;
       ++d)
    if (d != axis &&
        !e.getSymbols().assumeAtLeast(shape[d], indices[d],
                                      "so that indices lie inside the tensor"))
      return e.fail("indices of " + e.describe(positions.getType()) +
                    " leave dimension " + Twine(d) + " of " +
                    e.describe(x.getType()));
  return checkPositions(x, positions, axis, e);
}

/// Few updates are scatter_nd's, which knows contents and fuses: an update's
/// tuple is its own position, with the index tensor along the axis.
Value charonia::frontend::buildScatterElements(Value x, Value positions,
                                               Value updates, int64_t axis,
                                               graph::ScatterReduction how,
                                               Emitter &e) {
  if (failed(checkPlaces(x, positions, axis, e)))
    return {};
  auto reduction = e.attr(
      "reduction", graph::ScatterReductionAttr::get(e.getContext(), how));
  int64_t rank = rankOf(x);
  Exprs shape = graph::getShape(positions), tuple = shape;
  constexpr int64_t fewUpdates = 16;
  auto count = graph::constantOf(graph::numElements(shape, e.getContext()));
  if (!count || *count > fewUpdates)
    return e.op<graph::ScatterElementsOp>({x, positions, updates},
                                          {reduction, e.attr("axis", axis)});
  tuple.push_back(e.number(1));
  Values coordinates;
  for (int64_t d = 0; d < rank; ++d) {
    Value along =
        d == axis ? positions : e.iota(shape, d, elementOf(positions));
    coordinates.push_back(e.reshape(along, tuple));
  }
  return e.op<graph::ScatterNDOp>({x, e.concat(coordinates, rank), updates},
                                  reduction);
}
