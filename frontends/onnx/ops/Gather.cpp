// Operators that choose elements by index tensors.
#include "frontends/common/builders/Gather.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using mlir::AffineExpr;
using mlir::Value;

static llvm::LogicalResult gather(Node &n, Emitter &e) {
  auto axis = n.axis("axis", rankOf(n.input(0)));
  if (failed(axis) || failed(checkPositions(n.input(0), n.input(1), *axis, e)))
    return llvm::failure();
  return n.yield(
      e.op<graph::GatherOp>({n.input(0), n.input(1)}, e.attr("axis", *axis)));
}

static llvm::LogicalResult gatherElements(Node &n, Emitter &e) {
  auto axis = n.axis("axis", rankOf(n.input(0)));
  if (failed(axis) || failed(checkPlaces(n.input(0), n.input(1), *axis, e)))
    return llvm::failure();
  return n.yield(e.op<graph::GatherElementsOp>({n.input(0), n.input(1)},
                                               e.attr("axis", *axis)));
}

static llvm::LogicalResult gatherND(Node &n, Emitter &e) {
  if (failed(checkTuples(n.input(0), n.input(1), n.integer("batch_dims"), e)))
    return llvm::failure();
  return n.yield(e.op<graph::GatherNDOp>(
      {n.input(0), n.input(1)}, e.attr("batch_dims", n.integer("batch_dims"))));
}

static llvm::FailureOr<graph::ScatterReduction> readReduction(Node &n,
                                                              Emitter &e) {
  std::string text = n.text("reduction", "none");
  auto reduction = graph::symbolizeScatterReduction(text);
  if (!reduction)
    return e.fail("attribute 'reduction' may not be '" + text + "'");
  return *reduction;
}

static llvm::LogicalResult scatterND(Node &n, Emitter &e) {
  auto reduction = readReduction(n, e);
  if (failed(reduction) || failed(checkTuples(n.input(0), n.input(1), 0, e)))
    return llvm::failure();
  return n.yield(e.op<graph::ScatterNDOp>(
      {n.input(0), n.input(1), n.input(2)},
      e.attr("reduction",
             graph::ScatterReductionAttr::get(e.getContext(), *reduction))));
}

static llvm::LogicalResult scatterElements(Node &n, Emitter &e) {
  auto reduction = readReduction(n, e);
  int64_t rank = rankOf(n.input(0));
  auto axis = n.axis("axis", rank);
  if (failed(reduction) || failed(axis) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  return n.yield(buildScatterElements(n.input(0), n.input(1), n.input(2), *axis,
                                      *reduction, e));
}

/// New rows of a cache, from a place of each sample on; around its end where
/// it is circular.
static llvm::LogicalResult tensorScatter(Node &n, Emitter &e) {
  Value cache = n.input(0), update = n.input(1), from = n.input(2);
  int64_t rank = rankOf(cache);
  auto axis = n.axis("axis", rank, -2);
  std::string mode = n.text("mode", "linear");
  if (failed(axis) || failed(n.needsRank(1, rank, rank)) ||
      (from && failed(n.needsRank(2, 1, 1))))
    return llvm::failure();
  if (*axis == 0 || (mode != "linear" && mode != "circular"))
    return e.fail("attributes 'axis' and 'mode' may not be " +
                  llvm::Twine(*axis) + " and '" + mode + "'");
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs shape = graph::getShape(update), along(rank, e.number(1)),
        samples = along;
  along[*axis] = shape[*axis];
  samples[0] = shape[0];
  Value place = e.iota(along, *axis, i64);
  if (from)
    place = e.add(place, e.reshape(e.cast(from, i64), samples));
  if (mode == "circular")
    place =
        e.op<graph::ModOp>({place, e.size(graph::getShape(cache)[*axis], i64)});
  return n.yield(buildScatterElements(cache, e.broadcast(place, shape), update,
                                      *axis, graph::ScatterReduction::none, e));
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
      {"", "TensorScatter", 24, 24, tensorScatter},
      {"", "Trilu", 14, 14, trilu},
      {"", "OneHot", 9, 28, oneHot},
  };
  return rows;
}
