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

/// The largest element of an integer tensor that counts positions, seen through
/// what only moves or shifts elements; null where it cannot be told.
static AffineExpr largestPosition(Value value, Emitter &e, int depth = 0) {
  constexpr int maxDepth = 12;
  if (depth > maxDepth)
    return {};
  mlir::Operation *op = value.getDefiningOp();
  if (auto contents = e.evaluate(value).constants();
      contents && !contents->empty())
    return e.number(*llvm::max_element(*contents));
  if (auto iota = llvm::dyn_cast_or_null<graph::IotaOp>(op))
    return graph::simplify(graph::getShape(value)[iota.getAxis()] - 1);
  if (auto add = llvm::dyn_cast_or_null<graph::AddOp>(op)) {
    AffineExpr a = largestPosition(add.getLhs(), e, depth + 1);
    AffineExpr b = a ? largestPosition(add.getRhs(), e, depth + 1) : a;
    return b ? graph::simplify(a + b) : b;
  }
  if (llvm::isa_and_present<graph::ReshapeOp, graph::BroadcastOp,
                            graph::TransposeOp, graph::CastOp>(op) &&
      elementOf(op->getOperand(0)).isInteger())
    return largestPosition(op->getOperand(0), e, depth + 1);
  return {};
}

static constexpr const char *insideTable =
    "so that positions lie inside their table";

/// That positions from `first` to `last` lie inside of a dimension; negative
/// ones count from its end. They are written in the model, so that sizes that
/// are too small for them are no sizes of the model's, whatever is declared:
/// these are refused when shapes are bound.
static llvm::LogicalResult needInside(AffineExpr size, int64_t first,
                                      int64_t last, int64_t axis, Emitter &e) {
  Symbols &symbols = e.getSymbols();
  bool isSize = first >= -maxDimension && last < maxDimension;
  if (isSize && symbols.needAtLeast(size, e.number(std::max(-first, last + 1)),
                                    insideTable))
    return llvm::success();
  bool isBehind = first >= -maxDimension && last + 1 >= -first;
  return e.fail("index " + Twine(isBehind ? last : first) +
                    " is out of range for the " + symbols.toString(size) +
                    " elements of dimension " + Twine(axis) + ", for " +
                    symbols.describeRanges(size),
                "narrow the range with --shape");
}

/// The same of positions that follow from sizes; negative ones count from the
/// end.
static llvm::LogicalResult needInside(AffineExpr size,
                                      llvm::ArrayRef<AffineExpr> positions,
                                      int64_t axis, Emitter &e) {
  Symbols &symbols = e.getSymbols();
  for (AffineExpr i : positions)
    if (!symbols.assumeAtLeast(graph::simplify(size - 1), i, insideTable) ||
        !symbols.assumeAtLeast(graph::simplify(size + i), e.number(0),
                               insideTable))
      return e.fail("position " + symbols.toString(i) +
                        " may lie outside of the " + symbols.toString(size) +
                        " elements of dimension " + Twine(axis) + ", for " +
                        symbols.describeRanges(size - i),
                    symbols.namesCounter(i)
                        ? "let all steps read inside of it, or narrow the "
                          "ranges with --shape where some do"
                        : "narrow the ranges with --shape");
  return llvm::success();
}

llvm::LogicalResult charonia::frontend::checkPositions(Value table,
                                                       Value positions,
                                                       int64_t axis,
                                                       Emitter &e) {
  if (!table || !positions)
    return llvm::failure();
  Symbols &symbols = e.getSymbols();
  AffineExpr size = graph::getShape(table)[axis];
  auto known = e.evaluate(positions);
  if (auto contents = known.constants()) {
    // Of sizes that are known the operator tells what does not fit.
    if (contents->empty() || graph::constantOf(size))
      return llvm::success();
    auto [first, last] =
        std::minmax_element(contents->begin(), contents->end());
    return needInside(size, *first, *last, axis, e);
  }
  if (known.isComplete())
    return needInside(size, *known.elements, axis, e);
  AffineExpr largest = largestPosition(positions, e);
  if (!largest || (graph::constantOf(size) && graph::constantOf(largest)))
    return llvm::success();
  AffineExpr end = graph::simplify(largest + 1);
  if (graph::constantOf(end) ? symbols.needAtLeast(size, end, insideTable)
                             : symbols.assumeAtLeast(size, end, insideTable))
    return llvm::success();
  return e.fail("an index may reach " + symbols.toString(largest) +
                    ", but dimension " + Twine(axis) + " has " +
                    symbols.toString(size) + " elements, for " +
                    symbols.describeRanges(graph::simplify(size - largest)),
                "narrow the range with --shape");
}

llvm::LogicalResult charonia::frontend::checkTuples(Value table, Value tuples,
                                                    int64_t firstAxis,
                                                    Emitter &e) {
  if (!table || !tuples)
    return llvm::failure();
  Exprs sizes = graph::getShape(table), shape = graph::getShape(tuples);
  std::optional<int64_t> length =
      shape.empty() ? std::nullopt : graph::constantOf(shape.back());
  auto written = writtenIn(tuples, e);
  // What does not fit is told by the operator.
  if (!written || !length || firstAxis < 0 ||
      *length > int64_t(sizes.size()) - firstAxis)
    return llvm::success();
  for (int64_t i = 0; i < *length; ++i) {
    AffineExpr size = sizes[firstAxis + i];
    if (graph::constantOf(size) || written->empty())
      continue;
    int64_t first = (*written)[i], last = first;
    for (size_t at = i; at < written->size(); at += *length) {
      first = std::min(first, (*written)[at]);
      last = std::max(last, (*written)[at]);
    }
    // What a branch that may not be taken reads is no need of the model.
    if (!e.isInBranch()) {
      if (failed(needInside(size, first, last, firstAxis + i, e)))
        return llvm::failure();
    } else if (first >= -maxDimension && last < maxDimension) {
      e.getSymbols().assumeAtLeast(size, e.number(std::max(-first, last + 1)),
                                   insideTable);
    }
  }
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
  return llvm::success();
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
