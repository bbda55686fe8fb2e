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

llvm::LogicalResult charonia::frontend::checkPositions(Value table,
                                                       Value positions,
                                                       int64_t axis,
                                                       Emitter &e) {
  if (!table || !positions)
    return llvm::failure();
  Symbols &symbols = e.getSymbols();
  AffineExpr size = graph::getShape(table)[axis];
  // Positions that follow from sizes; negative ones count from the end.
  if (auto known = e.evaluate(positions);
      known.isComplete() && !known.constants()) {
    const std::string why = "so that positions lie inside their table";
    for (AffineExpr i : *known.elements)
      if (!symbols.assumeAtLeast(graph::simplify(size - 1), i, why) ||
          !symbols.assumeAtLeast(graph::simplify(size + i), e.number(0), why))
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
  AffineExpr largest = largestPosition(positions, e);
  if (!largest || (graph::constantOf(size) && graph::constantOf(largest)))
    return llvm::success();
  // Constants may count from the end.
  auto contents = e.evaluate(positions).constants();
  int64_t first =
      contents && !contents->empty() ? *llvm::min_element(*contents) : 0;
  if (first < -maxDimension ||
      !symbols.assumeAtLeast(size, e.number(-first),
                             "so that positions lie inside their table"))
    return e.fail("index " + Twine(first) + " is out of range for size " +
                      symbols.toString(size),
                  "narrow the range with --shape");
  if (symbols.assumeAtLeast(graph::simplify(size - 1), largest,
                            "so that positions lie inside their table"))
    return llvm::success();
  return e.fail("an index may reach " + symbols.toString(largest) +
                    ", but dimension " + Twine(axis) + " has " +
                    symbols.toString(size) + " elements, for " +
                    symbols.describeRanges(graph::simplify(size - largest)),
                "narrow the range with --shape");
}

void charonia::frontend::assumeInside(Value table, Value tuples,
                                      int64_t firstAxis, Emitter &e) {
  if (!table || !tuples)
    return;
  Exprs sizes = graph::getShape(table), shape = graph::getShape(tuples);
  std::optional<int64_t> length =
      shape.empty() ? std::nullopt : graph::constantOf(shape.back());
  auto written = writtenIn(tuples, e);
  // What does not fit is told by the operator.
  if (!written || !length || firstAxis < 0 ||
      *length > int64_t(sizes.size()) - firstAxis)
    return;
  for (int64_t i = 0; i < *length; ++i) {
    int64_t first = 0, last = -1;
    for (size_t at = i; at < written->size(); at += *length) {
      first = std::min(first, (*written)[at]);
      last = std::max(last, (*written)[at]);
    }
    AffineExpr size = sizes[firstAxis + i];
    if (!graph::constantOf(size) && first >= -maxDimension &&
        last < maxDimension)
      e.getSymbols().assumeAtLeast(size, e.number(std::max(-first, last + 1)),
                                   "so that positions lie inside their table");
  }
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
