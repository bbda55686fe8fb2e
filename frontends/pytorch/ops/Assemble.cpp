// Putting tensors together, and turning them.
#include "frontends/common/builders/Pad.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

/// The tensors of a list in the result's type; empty after a failure.
static Values readList(Call &c) {
  mlir::Type element = c.resultElement();
  Values values;
  for (Value value : c.tensors("tensors")) {
    values.push_back(c.getEmitter().cast(value, element));
    if (!values.back())
      return {};
  }
  if (values.empty())
    c.fail("joins nothing");
  return values;
}

// What a tensor of less dimensions than are joined is.

static Exprs asVector(Exprs shape, Emitter &e) {
  return shape.empty() ? Exprs{e.number(1)} : shape;
}
static Exprs asRow(Exprs shape, Emitter &e) {
  shape.insert(shape.begin(), shape.size() < 2 ? 2 - shape.size() : 0,
               e.number(1));
  return shape;
}
static Exprs asColumn(Exprs shape, Emitter &e) {
  shape.append(shape.size() < 2 ? 2 - shape.size() : 0, e.number(1));
  return shape;
}
static Exprs withDepth(Exprs shape, Emitter &e) {
  shape = asRow(shape, e);
  if (shape.size() == 2)
    shape.push_back(e.number(1));
  return shape;
}

/// Along dimension `axis`; vectors of hstack() along the only one.
template <Exprs (*extend)(Exprs, Emitter &), int64_t axis>
static LogicalResult joined(Call &c) {
  Emitter &e = c.getEmitter();
  Values values = readList(c);
  if (values.empty())
    return c.yield(Value());
  for (Value &value : values)
    value = e.reshape(value, extend(graph::getShape(value), e));
  if (e.failed())
    return c.yield(Value());
  // Empty vectors fit anything.
  Values others = values;
  llvm::erase_if(others, [&](Value value) {
    Exprs shape = graph::getShape(value);
    return shape.size() == 1 && shape[0] == e.number(0);
  });
  if (!others.empty())
    values = others;
  int64_t last = rankOf(values.front()) - 1;
  return c.yield(e.concat(values, std::min(axis, last)));
}

/// Each of a list by itself.
template <Exprs (*extend)(Exprs, Emitter &)>
static LogicalResult extended(Call &c) {
  Emitter &e = c.getEmitter();
  Values results;
  for (Value value : c.tensors("tensors"))
    results.push_back(
        value ? e.reshape(value, extend(graph::getShape(value), e)) : value);
  return c.yield(results);
}

/// Matrices one after another along the diagonal, zeros around them.
static LogicalResult blockDiagonal(Call &c) {
  Emitter &e = c.getEmitter();
  Values values = readList(c);
  if (values.empty())
    return c.yield(Value());
  AffineExpr before = e.number(0), width = before;
  for (Value &value : values) {
    if (rankOf(value) > 2)
      return c.fail("joins matrices");
    value = e.reshape(value, asRow(graph::getShape(value), e));
    width = graph::simplify(width + graph::getShape(value)[1]);
  }
  for (Value &value : values) {
    AffineExpr end = graph::simplify(before + graph::getShape(value)[1]);
    value = buildPad(graph::PadMode::constant, value,
                     e.scalar(int64_t(0), elementOf(value)), {before},
                     {graph::simplify(width - end)}, {1}, e);
    before = end;
  }
  return c.yield(e.concat(values, 0));
}

/// All combinations of an element of each vector, the last one's in turn.
static LogicalResult cartesianProduct(Call &c) {
  Emitter &e = c.getEmitter();
  Values values = readList(c);
  Exprs sizes;
  for (Value value : values) {
    if (rankOf(value) != 1)
      return c.fail("is of vectors");
    sizes.push_back(graph::getShape(value)[0]);
  }
  if (values.size() < 2)
    return c.yield(values.empty() ? Value() : values.front());
  AffineExpr count = productOf(sizes, e.getContext());
  for (auto [i, value] : llvm::enumerate(values)) {
    Exprs along(sizes.size(), e.number(1));
    along[i] = sizes[i];
    value = e.reshape(e.broadcast(e.reshape(value, along), sizes),
                      {count, e.number(1)});
  }
  return c.yield(e.concat(values, 1));
}

// Turning.

static Value flipped(Value x, llvm::ArrayRef<int64_t> axes, Emitter &e) {
  if (!x)
    return x;
  Exprs shape = graph::getShape(x), starts(shape.size(), e.number(0));
  SmallVector<int64_t> steps(shape.size(), 1);
  for (int64_t axis : axes) {
    starts[axis] = graph::simplify(shape[axis] - 1);
    steps[axis] = -1;
  }
  return e.slice(x, starts, steps, shape);
}
template <int64_t axis> static LogicalResult flipAlong(Call &c) {
  Value x = c.tensor("self");
  return c.yield(flipped(x, {c.axis(axis, rankOf(x))}, c.getEmitter()));
}
/// By `k` quarters of a turn, from the first dimension towards the second.
static LogicalResult rotate(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  SmallVector<int64_t> axes;
  for (int64_t d : c.integers("dims", {0, 1}))
    axes.push_back(c.axis(d, rankOf(x)));
  int64_t quarters = ((c.integer("k", 1) % 4) + 4) % 4;
  if (!x || e.failed() || axes.size() != 2 || axes[0] == axes[1])
    return c.fail("needs two different dimensions");
  if (quarters == 0)
    return c.yield(x);
  if (quarters == 2)
    return c.yield(flipped(x, axes, e));
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  std::swap(order[axes[0]], order[axes[1]]);
  return c.yield(
      e.transpose(flipped(x, {axes[quarters == 1 ? 1 : 0]}, e), order));
}

/// Sums over what was spread to `self` from `size`, in the result's type, which
/// of integers is another.
static LogicalResult sumToSize(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.operand("self", c.resultElement());
  c.ignore({"size"});
  Exprs shape = x ? graph::getShape(x) : Exprs(), result = c.resultShape();
  if (!x || e.failed() || result.size() > shape.size())
    return c.fail("does not fit its result");
  auto lead = static_cast<int64_t>(shape.size() - result.size());
  SmallVector<int64_t> axes;
  for (int64_t d = 0; d < rankOf(x); ++d)
    if (d < lead ||
        (result[d - lead] == e.number(1) && shape[d] != e.number(1)))
      axes.push_back(d);
  if (!axes.empty())
    x = e.reduce(graph::ReduceKind::sum, x, axes, false);
  return c.yield(e.reshape(x, result));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::assembleRows() {
  static const Row rows[] = {
      {"aten.hstack.default", partwise(joined<asVector, 1>)},
      {"aten.vstack.default", partwise(joined<asRow, 0>)},
      {"aten.row_stack.default", partwise(joined<asRow, 0>)},
      {"aten.dstack.default", partwise(joined<withDepth, 2>)},
      {"aten.column_stack.default", partwise(joined<asColumn, 1>)},
      {"aten.atleast_1d.Sequence", partwise(extended<asVector>), Alias::View},
      {"aten.atleast_2d.Sequence", partwise(extended<asRow>), Alias::View},
      {"aten.atleast_3d.Sequence", partwise(extended<withDepth>), Alias::View},
      {"aten.block_diag.default", partwise(blockDiagonal)},
      {"aten.cartesian_prod.default", partwise(cartesianProduct), Alias::Alone},
      {"aten.flipud.default", partwise(flipAlong<0>)},
      {"aten.fliplr.default", partwise(flipAlong<1>)},
      {"aten.rot90.default", partwise(rotate)},
      {"aten.sum_to_size.default", partwise(sumToSize), Alias::Sized,
       writeSame},
  };
  return rows;
}
