// Operators that choose elements by index tensors.
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

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

/// Positions must not run out of the table: it limits a sequence's length.
static llvm::LogicalResult checkPositions(Node &n, Emitter &e, int64_t axis) {
  Symbols &symbols = e.getSymbols();
  AffineExpr size = graph::getShape(n.input(0))[axis];
  // Positions that follow from sizes; negative ones count from the end.
  if (auto known = e.evaluate(n.input(1));
      known.isComplete() && !known.constants()) {
    const std::string why = "so that positions lie inside their table";
    for (AffineExpr i : *known.elements)
      if (!symbols.assumeAtLeast(graph::simplify(size - 1), i, why) ||
          !symbols.assumeAtLeast(graph::simplify(size + i), e.number(0), why))
        return e.fail("position " + symbols.toString(i) +
                          " may lie outside of the " + symbols.toString(size) +
                          " elements of dimension " + Twine(axis) + ", for " +
                          symbols.describeRanges(size - i),
                      "narrow the ranges with --shape");
    return llvm::success();
  }
  AffineExpr largest = largestPosition(n.input(1), e);
  if (!largest || (graph::constantOf(size) && graph::constantOf(largest)))
    return llvm::success();
  // Constants may count from the end.
  auto contents = e.evaluate(n.input(1)).constants();
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
                    symbols.describeRanges(largest),
                "narrow the range with --shape");
}

static llvm::LogicalResult gather(Node &n, Emitter &e) {
  auto axis = n.axis("axis", rankOf(n.input(0)));
  if (failed(axis) || failed(checkPositions(n, e, *axis)))
    return llvm::failure();
  return n.yield(
      e.op<graph::GatherOp>({n.input(0), n.input(1)}, e.attr("axis", *axis)));
}

/// Indices stand for elements of the same place, but along the axis.
static llvm::LogicalResult checkPlaces(Node &n, Emitter &e, int64_t axis) {
  Exprs shape = graph::getShape(n.input(0)),
        indices = graph::getShape(n.input(1));
  for (int64_t d = 0, rank = std::min(shape.size(), indices.size()); d < rank;
       ++d)
    if (d != axis &&
        !e.getSymbols().assumeAtLeast(shape[d], indices[d],
                                      "so that indices lie inside the tensor"))
      return e.fail("indices of " + e.describe(n.input(1).getType()) +
                    " leave dimension " + Twine(d) + " of " +
                    e.describe(n.input(0).getType()));
  return llvm::success();
}

static llvm::LogicalResult gatherElements(Node &n, Emitter &e) {
  auto axis = n.axis("axis", rankOf(n.input(0)));
  if (failed(axis) || failed(checkPlaces(n, e, *axis)))
    return llvm::failure();
  return n.yield(e.op<graph::GatherElementsOp>({n.input(0), n.input(1)},
                                               e.attr("axis", *axis)));
}

static llvm::LogicalResult gatherND(Node &n, Emitter &e) {
  return n.yield(e.op<graph::GatherNDOp>(
      {n.input(0), n.input(1)}, e.attr("batch_dims", n.integer("batch_dims"))));
}

static llvm::FailureOr<mlir::NamedAttribute> readReduction(Node &n,
                                                           Emitter &e) {
  std::string text = n.text("reduction", "none");
  auto reduction = graph::symbolizeScatterReduction(text);
  if (!reduction)
    return e.fail("attribute 'reduction' may not be '" + text + "'");
  return e.attr("reduction",
                graph::ScatterReductionAttr::get(e.getContext(), *reduction));
}

static llvm::LogicalResult scatterND(Node &n, Emitter &e) {
  auto reduction = readReduction(n, e);
  if (failed(reduction))
    return llvm::failure();
  return n.yield(e.op<graph::ScatterNDOp>({n.input(0), n.input(1), n.input(2)},
                                          *reduction));
}

/// Few updates are scatter_nd's, which knows contents and fuses: an update's
/// tuple is its own position, with the index tensor along the axis.
static llvm::LogicalResult scatterElements(Node &n, Emitter &e) {
  auto reduction = readReduction(n, e);
  int64_t rank = rankOf(n.input(0));
  auto axis = n.axis("axis", rank);
  if (failed(reduction) || failed(axis) || failed(n.needsRank(1, rank, rank)) ||
      failed(checkPlaces(n, e, *axis)))
    return llvm::failure();
  Value indices = n.input(1);
  Exprs shape = graph::getShape(indices), tuple = shape;
  constexpr int64_t fewUpdates = 16;
  auto count = graph::constantOf(graph::numElements(shape, e.getContext()));
  if (!count || *count > fewUpdates)
    return n.yield(
        e.op<graph::ScatterElementsOp>({n.input(0), indices, n.input(2)},
                                       {*reduction, e.attr("axis", *axis)}));
  tuple.push_back(e.number(1));
  Values coordinates;
  for (int64_t d = 0; d < rank; ++d) {
    Value along = d == *axis ? indices : e.iota(shape, d, elementOf(indices));
    coordinates.push_back(e.reshape(along, tuple));
  }
  Value tuples = e.concat(coordinates, rank);
  return n.yield(
      e.op<graph::ScatterNDOp>({n.input(0), tuples, n.input(2)}, *reduction));
}

/// A matrix dimension's coordinate, shaped to broadcast over the last two.
static Value coordinate(AffineExpr size, bool row, Emitter &e) {
  Exprs dims = {row ? size : e.number(1), row ? e.number(1) : size};
  return e.iota(dims, row ? 0 : 1, e.getBuilder().getI64Type());
}

static llvm::LogicalResult trilu(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0));
  Value row = coordinate(shape[shape.size() - 2], true, e);
  Value column = coordinate(shape.back(), false, e);
  if (n.has(1))
    row = e.add(row, e.reshape(n.input(1), {}));
  Value keeps =
      e.compare(n.flag("upper") ? Predicate::ge : Predicate::le, column, row);
  return n.yield(
      e.select(keeps, n.input(0), e.scalar(int64_t(0), elementOf(n.input(0)))));
}

/// Whether a coordinate along a new axis equals the index.
static llvm::LogicalResult oneHot(Node &n, Emitter &e) {
  auto depth = n.known(1);
  if (failed(depth) || depth->size() != 1)
    return e.fail("the depth has to be one size");
  int64_t rank = rankOf(n.input(0));
  auto axis = n.axis("axis", rank + 1);
  if (failed(axis) || failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  if (graph::getShape(n.input(2))[0] != e.number(2))
    return e.fail("the values have to be two, off and on");
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value indices = e.cast(n.input(0), i64), size = e.size((*depth)[0], i64);
  Value wrapped =
      e.select(e.compare(Predicate::lt, indices, e.scalar(int64_t(0), i64)),
               e.add(indices, size), indices);
  Exprs spread = graph::getShape(n.input(0)), along(rank + 1, e.number(1));
  spread.insert(spread.begin() + *axis, e.number(1));
  along[*axis] = (*depth)[0];
  Value hit = e.compare(Predicate::eq, e.iota(along, *axis, i64),
                        e.reshape(wrapped, spread));
  auto value = [&](int64_t i) {
    return e.reshape(e.slice(n.input(2), {e.number(i)}, {1}, {e.number(1)}),
                     {});
  };
  return n.yield(e.select(hit, value(1), value(0)));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::gatherRows() {
  static const Row rows[] = {
      {"", "Gather", 1, 13, gather},
      {"", "GatherElements", 11, 13, gatherElements},
      {"", "GatherND", 11, 13, gatherND},
      {"", "ScatterND", 11, 18, scatterND},
      {"", "ScatterElements", 11, 18, scatterElements},
      {"", "Scatter", 9, 11, scatterElements},
      {"", "Trilu", 14, 14, trilu},
      {"", "OneHot", 9, 28, oneHot},
  };
  return rows;
}
