// Elements chosen by index tensors.
#include "frontends/common/builders/Gather.h"
#include "frontends/pytorch/ops/Indices.h"

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
  int64_t rank = rankOf(x), diagonal = c.integer("diagonal", 0);
  if (rank < 2)
    return c.fail("needs at least 2 dimensions");
  Exprs shape = graph::getShape(x);
  AffineExpr one = e.number(1);
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value row = e.iota({shape[rank - 2], one}, 0, i64),
        column = e.iota({one, shape[rank - 1]}, 1, i64);
  Value limit = e.add(row, e.scalar(diagonal, i64));
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
      {"aten.index_select.default", indexSelect},
      {"aten.gather.default", gather},
      {"aten.take_along_dim.default", takeAlong},
      {"aten.take.default", take},
      {"aten.index.Tensor", index},
      {"aten._unsafe_index.Tensor", index},
      {"aten.tril.default", triangle<true>},
      {"aten.triu.default", triangle<false>},
      {"aten.one_hot.default", oneHot},
  };
  return rows;
}
