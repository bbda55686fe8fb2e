// Elements chosen by index tensors.
#include "frontends/pytorch/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::Value;

static LogicalResult embedding(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"padding_idx", "scale_grad_by_freq", "sparse"});
  Value table = c.tensor("weight"), indices = c.tensor("indices");
  if (rankOf(table) != 2)
    return c.fail("needs a table of 2 dimensions");
  return c.yield(
      e.op<graph::GatherOp>({table, indices}, e.attr("axis", int64_t(0))));
}
static LogicalResult indexSelect(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), indices = c.tensor("index");
  return c.yield(e.op<graph::GatherOp>(
      {x, indices}, e.attr("axis", c.axis("dim", rankOf(x)))));
}
static LogicalResult gather(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), indices = c.tensor("index");
  int64_t axis = c.axis("dim", rankOf(x));
  c.ignore({"sparse_grad"});
  if (!x || !indices || e.failed() || rankOf(x) != rankOf(indices))
    return c.fail("index and operand differ in dimensions");
  // Only the elements that indices stand beside are chosen from.
  Exprs shape = graph::getShape(x), dims = graph::getShape(indices);
  for (int64_t d = 0; d < rankOf(x); ++d) {
    if (d == axis)
      continue;
    if (!e.getSymbols().assumeAtLeast(shape[d], dims[d],
                                      "so that indices lie beside its operand"))
      return c.fail("indices of " + e.describe(dims) + " do not lie beside " +
                    e.describe(shape));
    shape[d] = dims[d];
  }
  x = e.slice(x, e.numbers(SmallVector<int64_t>(shape.size(), 0)),
              SmallVector<int64_t>(shape.size(), 1), shape);
  return c.yield(
      e.op<graph::GatherElementsOp>({x, indices}, e.attr("axis", axis)));
}

/// x[i, :, j]: index tensors are broadcast against each other. Where they index
/// dimensions that follow each other, the result has their dimensions there,
/// else in front.
static LogicalResult index(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Values given = c.tensors("indices");
  if (!x || e.failed())
    return c.yield(Value());
  int64_t rank = rankOf(x);
  SmallVector<int64_t> indexed, others;
  Values indices;
  std::optional<Exprs> common = Exprs();
  for (int64_t d = 0; d < rank; ++d) {
    Value i = d < static_cast<int64_t>(given.size()) ? given[d] : Value();
    (i ? indexed : others).push_back(d);
    if (!i)
      continue;
    if (elementOf(i).isInteger(1))
      return c.fail("results whose shape depends on data are not supported: "
                    "an index is a mask",
                    "use where() or masked_fill() in the model");
    indices.push_back(i);
    if (common)
      common = e.join(*common, graph::getShape(i));
  }
  if (!common || indices.empty() || static_cast<int64_t>(given.size()) > rank)
    return c.fail("its index tensors do not fit together");
  if (indices.size() == 1)
    return c.yield(
        e.op<graph::GatherOp>({x, indices[0]}, e.attr("axis", indexed[0])));
  // Indexed dimensions in front, then tuples of indices.
  SmallVector<int64_t> order = indexed;
  order.append(others);
  x = e.transpose(x, order);
  Exprs single = *common;
  single.push_back(e.number(1));
  Values columns;
  mlir::Type i64 = e.getBuilder().getI64Type();
  for (Value i : indices)
    columns.push_back(e.reshape(e.broadcast(e.cast(i, i64), *common), single));
  Value tuples = e.concat(columns, common->size());
  Value y =
      e.op<graph::GatherNDOp>({x, tuples}, e.attr("batch_dims", int64_t(0)));
  bool isAdjacent = indexed.back() - indexed.front() + 1 ==
                    static_cast<int64_t>(indexed.size());
  int64_t leading = isAdjacent ? indexed.front() : 0;
  if (leading == 0 || !y)
    return c.yield(y);
  // [common, leading, trailing] to [leading, common, trailing].
  int64_t count = common->size();
  SmallVector<int64_t> back;
  for (int64_t d = 0; d < leading; ++d)
    back.push_back(count + d);
  for (int64_t d = 0; d < count; ++d)
    back.push_back(d);
  for (int64_t d = count + leading; d < rankOf(y); ++d)
    back.push_back(d);
  return c.yield(e.transpose(y, back));
}

/// Elements on and below (or above) a diagonal; others are 0.
template <bool lower> static LogicalResult triangle(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t rank = rankOf(x), diagonal = c.integer("diagonal", 0);
  if (rank < 2)
    return c.fail("needs at least 2 dimensions");
  Exprs shape = graph::getShape(x);
  mlir::AffineExpr one = e.number(1);
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

llvm::ArrayRef<Row> charonia::frontend::pytorch::indexRows() {
  static const Row rows[] = {
      {"aten.embedding.default", embedding},
      {"aten.index_select.default", indexSelect},
      {"aten.gather.default", gather},
      {"aten.index.Tensor", index},
      {"aten.tril.default", triangle<true>},
      {"aten.triu.default", triangle<false>},
  };
  return rows;
}
