// Operators that choose elements by index tensors.
#include "frontends/common/Tables.h"
#include "frontends/common/builders/Gather.h"
#include "frontends/common/builders/Sort.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/ops/Dynamic.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::Predicate;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

Value charonia::frontend::tensorflow::indicesFromStart(Value positions,
                                                       Emitter &e) {
  mlir::Type element = elementOf(positions);
  if (!positions || element.isUnsignedInteger())
    return positions;
  graph::SymbolicTensor known = e.evaluate(positions);
  if (auto constants = known.constants()) {
    for (int64_t i : *constants)
      if (i < 0)
        return e.fail("index " + Twine(i) + " lies outside of its tensor",
                      "TensorFlow's indices do not count from the end: take "
                      "the index modulo the size");
    return positions;
  }
  if (known.isComplete())
    return positions;
  Value zero = e.scalar(int64_t(0), element);
  unsigned bits = element.getIntOrFloatBitWidth();
  Value outside = e.scalar(static_cast<int64_t>(llvm::maxIntN(bits)), element);
  return e.select(e.compare(Predicate::lt, positions, zero), outside,
                  positions);
}

static LogicalResult gatherAlong(Node &n, Emitter &e, int64_t given) {
  auto axis = n.axis(given, rankOf(n.input(0)));
  if (failed(axis) || failed(checkPositions(n.input(0), n.input(1), *axis, e)))
    return llvm::failure();
  return n.yield(e.op<graph::GatherOp>(
      {n.input(0), indicesFromStart(n.input(1), e)}, e.attr("axis", *axis)));
}
static LogicalResult gather(Node &n, Emitter &e) {
  return failed(n.needsTensors(2, 2)) ? llvm::failure() : gatherAlong(n, e, 0);
}
static LogicalResult gatherV2(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  auto axis = n.constantInteger(2);
  if (failed(axis))
    return llvm::failure();
  if (n.part(1) && (*axis != 0 || n.integer("batch_dims", 0) != 0))
    return e.fail("looks up what data chooses (DynamicPartition) in another "
                  "dimension than the first",
                  "look up rows");
  if (n.integer("batch_dims", 0) == 0)
    return gatherAlong(n, e, *axis);
  int64_t given = n.integer("batch_dims", 0), rank = rankOf(n.input(1)),
          batch = given < 0 ? given + rank : given;
  auto along = n.axis(*axis, rankOf(n.input(0)));
  if (failed(along))
    return llvm::failure();
  if (batch < 0 || batch > rank || *along < batch)
    return e.fail("batch_dims " + Twine(given) + " does not fit axis " +
                  Twine(*axis) + " and indices of rank " + Twine(rank));
  if (failed(checkPositions(n.input(0), n.input(1), *along, e)))
    return llvm::failure();
  // Tuples of one index behind the batch, where the axis is put for that.
  int64_t between = *along - batch, found = rank - batch;
  SmallVector<int64_t> front =
      llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.input(0))));
  std::rotate(front.begin() + batch, front.begin() + *along,
              front.begin() + *along + 1);
  Exprs tuples = graph::getShape(n.input(1));
  tuples.push_back(e.number(1));
  Value y = e.op<graph::GatherNDOp>(
      {e.transpose(n.input(0), front),
       e.reshape(indicesFromStart(n.input(1), e), tuples)},
      e.attr("batch_dims", batch));
  if (!y || between == 0 || found == 0)
    return n.yield(y);
  SmallVector<int64_t> back = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(y)));
  std::rotate(back.begin() + batch, back.begin() + batch + found,
              back.begin() + batch + found + between);
  return n.yield(e.transpose(y, back));
}

/// How many of the boundaries, which rise, are not above; NaN is above all.
static LogicalResult bucketize(Node &n, Emitter &e) {
  auto *attribute = n.find("boundaries");
  if (failed(n.needsTensors(1, 1)) || e.failed())
    return llvm::failure();
  llvm::ArrayRef<float> numbers;
  if (attribute)
    numbers = {attribute->list().numbers().data(),
               size_t(attribute->list().numbers().size())};
  Value x = n.input(0);
  mlir::Type i32 = e.getBuilder().getI32Type(),
             f32 = e.getBuilder().getF32Type();
  Exprs shape = graph::getShape(x);
  if (numbers.empty())
    return n.yield(e.broadcast(e.scalar(int64_t(0), i32), shape));
  Value boundaries = e.constant(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get({int64_t(numbers.size())}, f32), numbers));
  mlir::Type common = elementOf(x).isF64() ? elementOf(x) : f32;
  int64_t rank = rankOf(x);
  shape.push_back(e.number(1));
  Value above = e.compare(Predicate::gt, e.cast(boundaries, common),
                          e.cast(e.reshape(x, shape), common));
  return n.yield(e.reduce(graph::ReduceKind::sum,
                          e.cast(e.op<graph::NotOp>({above}), i32), {rank},
                          false));
}
static LogicalResult gatherNd(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  return n.yield(
      e.op<graph::GatherNDOp>({n.input(0), indicesFromStart(n.input(1), e)},
                              e.attr("batch_dims", int64_t(0))));
}

template <graph::ScatterReduction reduction>
static LogicalResult scatterNd(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  return n.yield(e.op<graph::ScatterNDOp>(
      {n.input(0), indicesFromStart(n.input(1), e), n.input(2)},
      e.attr("reduction",
             graph::ScatterReductionAttr::get(e.getContext(), reduction))));
}

/// Updates put into zeros.
static LogicalResult scatterZeros(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  auto dims = n.known(2);
  if (failed(dims) || !e.type(*dims, elementOf(n.input(1))))
    return llvm::failure();
  Value zeros = e.broadcast(e.scalar(int64_t(0), elementOf(n.input(1))), *dims);
  return n.yield(e.op<graph::ScatterNDOp>(
      {zeros, indicesFromStart(n.input(0), e), n.input(1)},
      e.attr("reduction", graph::ScatterReductionAttr::get(
                              e.getContext(), graph::ScatterReduction::add))));
}
static LogicalResult scatterSub(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  return n.yield(e.op<graph::ScatterNDOp>(
      {n.input(0), indicesFromStart(n.input(1), e),
       e.op<graph::NegOp>({n.input(2)})},
      e.attr("reduction", graph::ScatterReductionAttr::get(
                              e.getContext(), graph::ScatterReduction::add))));
}

/// The largest of the last dimension and where they are.
static LogicalResult topK(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 1, 32)) ||
      failed(n.needsRank(1, 0, 0)))
    return llvm::failure();
  auto count = n.known(1);
  mlir::Type element = n.type("index_type", 3);
  if (failed(count) || !element)
    return llvm::failure();
  int64_t axis = rankOf(n.input(0)) - 1;
  Value positions =
      selectPositions({n.input(0), axis, count->front(), true}, e);
  Value values = e.op<graph::GatherElementsOp>({n.input(0), positions},
                                               e.attr("axis", axis));
  return n.yield({values, e.cast(positions, element)});
}

/// The places of what is not 0, if that is known.
static LogicalResult placesOf(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  auto known = e.evaluate(n.input(0)).constants();
  llvm::SmallVector<int64_t> sizes;
  for (AffineExpr size : graph::getShape(n.input(0)))
    sizes.push_back(graph::constantOf(size).value_or(-1));
  if (!known || llvm::is_contained(sizes, -1))
    return e.fail("operator Where gives a result whose size depends on data, "
                  "which is not supported",
                  "export the model without it, and compute it after the "
                  "engine");
  int64_t rank = static_cast<int64_t>(sizes.size());
  std::vector<int64_t> places;
  for (auto [i, value] : llvm::enumerate(*known)) {
    if (value == 0)
      continue;
    places.resize(places.size() + rank);
    for (int64_t d = rank, rest = static_cast<int64_t>(i); d-- > 0;
         rest /= sizes[d])
      places[places.size() - rank + d] = rest % sizes[d];
  }
  int64_t count = llvm::count_if(*known, [](int64_t v) { return v != 0; });
  auto type =
      mlir::RankedTensorType::get({count, rank}, e.getBuilder().getI64Type());
  if (failed(reserveTable(type, e)))
    return llvm::failure();
  return n.yield(e.constant(
      mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int64_t>(places))));
}

/// Whether fewer than k numbers of a row are larger than the one that a target
/// names; never where that, or any, is not finite.
static LogicalResult inTopK(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(0, 2, 2)) ||
      failed(n.needsRank(1, 1, 1)) || failed(n.needsRank(2, 0, 0)))
    return llvm::failure();
  Value x = n.input(0);
  Exprs shape = graph::getShape(x);
  if (!e.agree(graph::getShape(n.input(1))[0], shape[0],
               "has a target for each row"))
    return e.fail(e.describe(n.input(1).getType()) +
                  " is not a target for each row of " +
                  e.describe(x.getType()));
  mlir::Type i64 = e.getBuilder().getI64Type();
  auto both = [&](Value a, Value b) { return e.op<graph::AndOp>({a, b}); };
  Value target = e.cast(n.input(1), i64), size = e.size(shape[1], i64);
  Value isThere =
      both(e.compare(Predicate::ge, target, e.scalar(int64_t(0), i64)),
           e.compare(Predicate::lt, target, size));
  Exprs column = {shape[0], e.number(1)};
  Value place = e.select(isThere, target, e.scalar(int64_t(0), i64));
  Value named = e.op<graph::GatherElementsOp>({x, e.reshape(place, column)},
                                              e.attr("axis", int64_t(1)));
  auto count = [&](Value truth) {
    return e.reduce(graph::ReduceKind::sum, e.cast(truth, i64), {1}, false);
  };
  Value odd = e.op<graph::OrOp>(
      {e.op<graph::IsNanOp>({x}),
       e.op<graph::IsInfOp>(
           {x}, {e.attr("positive", true), e.attr("negative", true)})});
  Value isFew =
      e.compare(Predicate::lt, count(e.compare(Predicate::gt, x, named)),
                e.cast(n.input(2), i64));
  Value isFinite =
      e.compare(Predicate::eq, count(odd), e.scalar(int64_t(0), i64));
  return n.yield(both(both(isThere, isFew), isFinite));
}

/// Whether a coordinate along a new axis equals the index.
static LogicalResult oneHot(Node &n, Emitter &e) {
  if (failed(n.needsTensors(4, 4)) || failed(n.needsRank(2, 0, 0)) ||
      failed(n.needsRank(3, 0, 0)))
    return llvm::failure();
  auto depth = n.known(1);
  if (failed(depth) || depth->size() != 1)
    return e.fail("the depth has to be one size");
  Value indices = n.input(0);
  Exprs spread = graph::getShape(indices);
  auto axis = n.axis(n.integer("axis", -1), spread.size() + 1);
  if (failed(axis))
    return llvm::failure();
  Exprs along(spread.size() + 1, e.number(1));
  spread.insert(spread.begin() + *axis, e.number(1));
  along[*axis] = depth->front();
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value hit = e.compare(Predicate::eq, e.iota(along, *axis, i64),
                        e.reshape(e.cast(indices, i64), spread));
  return n.yield(e.select(hit, n.input(2), n.input(3)));
}

/// Elements at most `lower` below and `upper` above the diagonal; negative
/// numbers keep all.
static LogicalResult bandPart(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  auto lower = n.constantInteger(1), upper = n.constantInteger(2);
  if (failed(lower) || failed(upper))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0));
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value row = e.iota({shape[shape.size() - 2], e.number(1)}, 0, i64);
  Value column = e.iota({e.number(1), shape.back()}, 1, i64);
  Value x = n.input(0), zero = e.scalar(int64_t(0), elementOf(x));
  auto keep = [&](Value far, int64_t limit) {
    if (limit >= 0)
      x = e.select(e.compare(Predicate::le, far, e.scalar(limit, i64)), x,
                   zero);
  };
  keep(e.sub(row, column), *lower);
  keep(e.sub(column, row), *upper);
  return n.yield(x);
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::indexRows() {
  using graph::ScatterReduction;
  static const Row rows[] = {
      ofParts({"Gather", gather, "", false, 1}),
      ofParts({"GatherV2", gatherV2, "", false, 1}),
      {"Bucketize", bucketize},
      ofParts({"GatherNd", gatherNd}),
      ofParts({"TensorScatterUpdate", scatterNd<ScatterReduction::none>}),
      ofParts({"TensorScatterAdd", scatterNd<ScatterReduction::add>}),
      {"TensorScatterMax", scatterNd<ScatterReduction::max>},
      {"TensorScatterMin", scatterNd<ScatterReduction::min>},
      ofParts({"TensorScatterSub", scatterSub}),
      ofParts({"ScatterNd", scatterZeros}),
      {"InTopKV2", inTopK},
      {"Where", placesOf},
      {"OneHot", oneHot},
      ofParts({"MatrixBandPart", bandPart}),
      {.op = "TopKV2",
       .import = topK,
       .results = "values indices",
       .outputs = 2},
  };
  return rows;
}
