// Elements chosen by index tensors.
#include "frontends/common/builders/Gather.h"
#include "frontends/common/builders/Sequence.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/pytorch/ops/Indices.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

static LogicalResult embedding(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"padding_idx", "scale_grad_by_freq", "sparse"});
  Value table = c.tensor("weight"), indices = c.tensor("indices");
  if (rankOf(table) != 2)
    return c.fail("needs a table of 2 dimensions");
  if (failed(checkPositions(table, indices, 0, e)))
    return c.yield(Value());
  return c.yield(
      e.op<graph::GatherOp>({table, indices}, e.attr("axis", int64_t(0))));
}
static LogicalResult indexSelect(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), indices = c.tensor("index");
  int64_t axis = c.axis("dim", rankOf(x));
  // A number is a vector of one.
  if (indices && rankOf(indices) == 0 && rankOf(x))
    indices = e.reshape(indices, {e.number(1)});
  if (e.failed() || failed(checkPositions(x, indices, axis, e)))
    return c.yield(Value());
  return c.yield(e.op<graph::GatherOp>({x, indices}, e.attr("axis", axis)));
}
static LogicalResult gatherAlong(Call &c, Value x, Value indices,
                                 int64_t axis) {
  Emitter &e = c.getEmitter();
  if (!x || !indices || e.failed() || rankOf(x) != rankOf(indices))
    return c.fail("index and operand differ in dimensions");
  if (failed(checkPlaces(x, indices, axis, e)))
    return c.yield(Value());
  return c.yield(
      e.op<graph::GatherElementsOp>({x, indices}, e.attr("axis", axis)));
}
static LogicalResult gather(Call &c) {
  Value x = c.tensor("self");
  c.ignore({"sparse_grad"});
  return gatherAlong(c, x, c.tensor("index"), c.axis("dim", rankOf(x)));
}
/// gather() with operands that are spread to each other.
static LogicalResult takeAlong(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), indices = c.tensor("indices");
  if (!x || !indices)
    return c.yield(Value());
  if (!c.has("dim")) {
    auto flat = [&](Value v) {
      return e.reshape(v, {productOf(graph::getShape(v), e.getContext())});
    };
    return gatherAlong(c, flat(x), flat(indices), 0);
  }
  int64_t axis = c.axis("dim", rankOf(x));
  Exprs from = graph::getShape(x), to = graph::getShape(indices);
  if (e.failed() || from.size() != to.size())
    return c.fail("index and operand differ in dimensions");
  AffineExpr own = from[axis], chosen = to[axis];
  from[axis] = to[axis] = e.number(1);
  auto common = e.join(from, to);
  if (!common)
    return c.fail("index and operand do not fit together");
  from = to = *common;
  from[axis] = own;
  to[axis] = chosen;
  return gatherAlong(c, e.broadcast(x, from), e.broadcast(indices, to), axis);
}
/// Elements of the flattened tensor.
static LogicalResult take(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), indices = c.tensor("index");
  if (!x)
    return c.yield(x);
  x = e.reshape(x, {productOf(graph::getShape(x), e.getContext())});
  if (failed(checkPositions(x, indices, 0, e)))
    return c.yield(Value());
  return c.yield(
      e.op<graph::GatherOp>({x, indices}, e.attr("axis", int64_t(0))));
}

/// Where the mask is set, elements of `source` one after another.
static LogicalResult maskedScatter(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), mask = c.tensor("mask"),
        source = c.operand("source", elementOf(x));
  if (!x || !mask || !source || e.failed())
    return c.yield(Value());
  Exprs shape = c.resultShape();
  AffineExpr count = productOf(shape, e.getContext());
  mlir::Type i64 = e.getBuilder().getI64Type();
  mask = e.broadcast(mask, shape);
  Value taken = buildCumulative(e.cast(e.reshape(mask, {count}), i64),
                                graph::ReduceKind::sum, 0, true, false, e);
  Value line =
      e.reshape(source, {productOf(graph::getShape(source), e.getContext())});
  Value put = e.op<graph::GatherOp>({line, taken}, e.attr("axis", int64_t(0)));
  return c.yield(e.select(mask, e.reshape(put, shape), x));
}

namespace {
enum class Bag { Sum, Mean, Max };
} // namespace
/// Rows of a table combined by bags, each of the indices from its offset on up
/// to the next one's. Those of `padding_idx` count for nothing, and a bag of
/// none is 0.
static LogicalResult embeddingBag(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"scale_grad_by_freq", "sparse", "include_last_offset"});
  Value table = c.tensor("weight"), indices = c.tensor("indices"),
        offsets = c.tensor("offsets"),
        weights = c.optionalTensor("per_sample_weights");
  int64_t mode = c.integer("mode", 0), padding = c.integer("padding_idx", -1);
  Exprs shape = c.resultShape();
  if (rankOf(table) != 2 || rankOf(indices) != 1 || rankOf(offsets) != 1 ||
      shape.size() != 2 || mode < 0 || mode > 2)
    return c.fail("needs a table and vectors of indices and offsets");
  if (failed(checkPositions(table, indices, 0, e)))
    return c.yield(Value());
  Bag bag = static_cast<Bag>(mode);
  mlir::Type i64 = e.getBuilder().getI64Type(), element = elementOf(table);
  AffineExpr count = graph::getShape(indices)[0], one = e.number(1);
  Value rows = e.widen(
      e.op<graph::GatherOp>({table, indices}, e.attr("axis", int64_t(0))));
  mlir::Type wide = elementOf(rows);
  if (weights)
    rows = e.mul(rows, e.reshape(e.cast(weights, wide), {count, one}));
  Value zero = e.scalar(0.0, wide),
        none = e.scalar(-std::numeric_limits<double>::infinity(), wide);
  Value counts = e.broadcast(e.scalar(1.0, wide), {count});
  if (padding >= 0) {
    Value isPad = e.compare(graph::Predicate::eq, e.cast(indices, i64),
                            e.scalar(padding, i64));
    rows = e.select(e.reshape(isPad, {count, one}),
                    bag == Bag::Max ? none : zero, rows);
    counts = e.select(isPad, zero, counts);
  }
  // Of each index its bag: the offsets up to it, without the first.
  Value starts =
      sliceAlong(e.cast(offsets, i64), 0, {e.number(0), shape[0], 1}, e);
  Value isBehind =
      e.compare(graph::Predicate::le, e.reshape(starts, {one, shape[0]}),
                e.iota({count, one}, 0, i64));
  Value place =
      e.sub(e.reduce(graph::ReduceKind::sum, e.cast(isBehind, i64), {1}, true),
            e.scalar(int64_t(1), i64));
  auto combine = [&](Value first, Exprs dims, Value updates,
                     graph::ScatterReduction kind) {
    return e.op<graph::ScatterNDOp>(
        {e.broadcast(first, dims), place, updates},
        e.attr("reduction",
               graph::ScatterReductionAttr::get(e.getContext(), kind)));
  };
  using graph::ScatterReduction;
  Value y = bag == Bag::Max ? combine(none, shape, rows, ScatterReduction::max)
                            : combine(zero, shape, rows, ScatterReduction::add);
  if (bag != Bag::Sum) {
    Value size =
        e.reshape(combine(zero, {shape[0]}, counts, ScatterReduction::add),
                  {shape[0], one});
    y = bag == Bag::Mean
            ? e.div(y, e.max(size, e.scalar(1.0, wide)))
            : e.select(e.compare(graph::Predicate::gt, size, zero), y, zero);
  }
  return c.yield(e.cast(y, element));
}

/// x[i, :, j].
static LogicalResult index(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  auto indices = readIndices(c, x);
  if (failed(indices))
    return llvm::failure();
  if (indices->axes.size() == 1)
    return c.yield(e.op<graph::GatherOp>({x, indices->positions[0]},
                                         e.attr("axis", indices->axes[0])));
  Value y = e.op<graph::GatherNDOp>(
      {e.transpose(x, indices->order()), indices->tuples(e)},
      e.attr("batch_dims", int64_t(0)));
  return c.yield(e.transpose(y, indices->resultOrder()));
}

/// Elements on and below (or above) a diagonal; others are 0.
template <bool lower> static LogicalResult triangle(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t rank = rankOf(x);
  AffineExpr diagonal = c.size("diagonal", 0);
  if (!diagonal)
    return llvm::failure();
  if (rank < 2)
    return c.fail("needs at least 2 dimensions");
  Exprs shape = graph::getShape(x);
  AffineExpr one = e.number(1);
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value row = e.iota({shape[rank - 2], one}, 0, i64),
        column = e.iota({one, shape[rank - 1]}, 1, i64);
  Value limit = e.add(row, e.size(diagonal, i64));
  Value keep = e.compare(lower ? graph::Predicate::le : graph::Predicate::ge,
                         column, limit);
  if (elementOf(x).isInteger(1))
    return c.yield(e.op<graph::AndOp>({x, keep}));
  return c.yield(e.select(keep, x, e.scalar(int64_t(0), elementOf(x))));
}

/// 1 where a new last dimension's coordinate is the element.
static LogicalResult oneHot(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  if (c.integer("num_classes", -1) < 1)
    return c.fail("a number of classes that follows from data is not supported",
                  "give one_hot() num_classes");
  Exprs shape = c.resultShape();
  if (!x || shape.empty())
    return c.yield(Value());
  Exprs spread = shape, along(shape.size(), e.number(1));
  spread.back() = e.number(1);
  along.back() = shape.back();
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value hit = e.compare(graph::Predicate::eq, e.reshape(e.cast(x, i64), spread),
                        e.iota(along, shape.size() - 1, i64));
  return c.yield(e.cast(hit, c.resultElement()));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::indexRows() {
  static const Row rows[] = {
      {"aten.embedding.default", embedding},
      {"aten.index_select.default", partwise(indexSelect)},
      {"aten.gather.default", partwise(gather)},
      {"aten.take_along_dim.default", partwise(takeAlong)},
      {"aten.take.default", partwise(take)},
      {"aten.index.Tensor", partwise(index)},
      {"aten._unsafe_index.Tensor", partwise(index)},
      {"aten.masked_scatter.default", maskedScatter},
      {"aten.embedding_bag.default", embeddingBag},
      {"aten.embedding_bag.padding_idx", embeddingBag},
      {"aten._embedding_bag.default", embeddingBag},
      {"aten._embedding_bag_forward_only.default", embeddingBag},
      {"aten.tril.default", partwise(triangle<true>)},
      {"aten.triu.default", partwise(triangle<false>)},
      {"aten.one_hot.default", oneHot},
  };
  return rows;
}
