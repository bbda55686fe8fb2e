// Reductions.
#include "frontends/pytorch/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::ReduceKind;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::Value;

/// The dimensions of argument `dim`, sorted; all where there is none.
static SmallVector<int64_t> reducedAxes(Call &c, Value x) {
  auto axes = c.axes("dim", rankOf(x));
  llvm::sort(axes);
  return axes;
}

/// Sums in the result's type.
/// Truths add up to whether there is one.
static ReduceKind sumKind(Value x) {
  mlir::Type element = elementOf(x);
  return element && element.isInteger(1) ? ReduceKind::max : ReduceKind::sum;
}
static LogicalResult sum(Call &c) {
  c.ignore({"dtype"});
  Value x = c.operand("self", c.resultElement());
  return c.yield(c.getEmitter().reduce(sumKind(x), x, reducedAxes(c, x),
                                       c.flag("keepdim", false)));
}
static LogicalResult prod(Call &c) {
  c.ignore({"dtype"});
  Value x = c.operand("self", c.resultElement());
  return c.yield(c.getEmitter().reduce(ReduceKind::prod, x, reducedAxes(c, x),
                                       c.flag("keepdim", false)));
}
static LogicalResult mean(Call &c) {
  c.ignore({"dtype"});
  Value x = c.operand("self", c.resultElement());
  return c.yield(
      c.getEmitter().mean(x, reducedAxes(c, x), c.flag("keepdim", false)));
}
/// The largest or smallest elements; max and min of one dimension also say
/// where.
template <ReduceKind kind> static LogicalResult extremum(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  SmallVector<int64_t> axes = reducedAxes(c, x);
  bool keep = c.flag("keepdim", false);
  Value y = e.reduce(kind, x, axes, keep);
  if (c.numResults() == 1)
    return c.yield(y);
  // Of a number alone it is the first.
  if (rankOf(x) == 0)
    return c.yield({x, e.scalar(int64_t(0), c.resultElement(1))});
  if (axes.size() != 1)
    return c.fail("needs one dimension");
  SmallVector<mlir::NamedAttribute> attributes = {e.attr("axis", axes[0])};
  if (keep)
    attributes.push_back(e.unit("keepdims"));
  if (kind == ReduceKind::min)
    attributes.push_back(e.unit("min"));
  return c.yield({y, e.op<graph::ArgReduceOp>({x}, attributes)});
}
template <ReduceKind kind> static LogicalResult anyOrAll(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = e.cast(c.tensor("self"), e.getBuilder().getI1Type());
  // Of no dimensions, other than of all, it is each element.
  auto axes = c.axes("dim", rankOf(x), /*emptyIsAll=*/false);
  llvm::sort(axes);
  bool keep = c.flag("keepdim", false);
  return c.yield(e.cast(axes.empty() ? x : e.reduce(kind, x, axes, keep),
                        c.resultElement()));
}
/// The smallest and the largest.
static LogicalResult bothExtrema(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  SmallVector<int64_t> axes = reducedAxes(c, x);
  bool keep = c.flag("keepdim", false);
  return c.yield({e.reduce(ReduceKind::min, x, axes, keep),
                  e.reduce(ReduceKind::max, x, axes, keep)});
}
/// How many elements are not 0.
static LogicalResult countNonzero(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  if (!x)
    return c.yield(x);
  Value isOther =
      e.compare(graph::Predicate::ne, x, e.scalar(int64_t(0), elementOf(x)));
  return c.yield(e.reduce(ReduceKind::sum, e.cast(isOther, c.resultElement()),
                          reducedAxes(c, x), false));
}
/// The sum of what is not NaN; divided by how many those are.
template <bool mean> static LogicalResult nanSum(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"dtype"});
  mlir::Type element = c.resultElement();
  Value x = e.widen(c.operand("self", element));
  SmallVector<int64_t> axes = reducedAxes(c, x);
  bool keep = c.flag("keepdim", false);
  if (!isFloat(x))
    return c.yield(e.reduce(sumKind(x), x, axes, keep));
  Value zero = e.scalar(0.0, elementOf(x)), isNan = e.op<graph::IsNanOp>({x});
  Value y = e.reduce(ReduceKind::sum, e.select(isNan, zero, x), axes, keep);
  if (mean) {
    Value counts = e.cast(e.op<graph::NotOp>({isNan}), elementOf(x));
    y = e.div(y, e.reduce(ReduceKind::sum, counts, axes, keep));
  }
  return c.yield(e.cast(y, element));
}
/// Without a dimension, where it is in the flattened tensor.
template <bool min> static LogicalResult argExtremum(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  if (!x)
    return c.yield(Value());
  bool keep = c.flag("keepdim", false);
  SmallVector<mlir::NamedAttribute> attributes;
  if (min)
    attributes.push_back(e.unit("min"));
  if (!c.has("dim")) {
    attributes.push_back(e.attr("axis", int64_t(0)));
    Value flat = e.reshape(x, {productOf(graph::getShape(x), e.getContext())});
    return c.yield(e.reshape(e.op<graph::ArgReduceOp>({flat}, attributes),
                             c.resultShape()));
  }
  attributes.push_back(e.attr("axis", c.axis("dim", rankOf(x))));
  if (keep)
    attributes.push_back(e.unit("keepdims"));
  return c.yield(e.op<graph::ArgReduceOp>({x}, attributes));
}

/// Sum of squared distances from the mean, divided by count - correction.
static Value variance(Call &c, Value x) {
  Emitter &e = c.getEmitter();
  if (!x)
    return {};
  SmallVector<int64_t> axes = reducedAxes(c, x);
  double correction = c.has("correction") ? c.number("correction")
                      : c.has("unbiased") ? double(c.flag("unbiased"))
                                          : 1;
  Value wide = e.widen(x), centered = e.sub(wide, e.mean(wide, axes, true));
  Value squares = e.reduce(ReduceKind::sum, e.mul(centered, centered), axes,
                           c.flag("keepdim", false));
  Exprs shape = graph::getShape(x), reduced;
  for (int64_t axis : axes)
    reduced.push_back(shape[axis]);
  mlir::Type element = elementOf(wide);
  Value count = e.size(productOf(reduced, e.getContext()), element);
  if (correction != 0)
    count = e.max(e.sub(count, e.scalar(correction, element)),
                  e.scalar(0.0, element));
  return e.div(squares, count);
}
/// That of complex numbers is that of both parts together.
static Value variance(Call &c) {
  auto [real, imaginary] = c.complexTensor("self");
  Value y = variance(c, real);
  return imaginary ? c.getEmitter().add(y, variance(c, imaginary)) : y;
}
static LogicalResult var(Call &c) {
  return c.yield(c.getEmitter().cast(variance(c), c.resultElement()));
}
static LogicalResult deviation(Call &c) {
  Emitter &e = c.getEmitter();
  return c.yield(e.cast(e.op<graph::SqrtOp>({variance(c)}), c.resultElement()));
}
template <bool root> static LogicalResult varMean(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self"), spread = variance(c, x);
  if (root)
    spread = e.op<graph::SqrtOp>({spread});
  return c.yield({e.cast(spread, elementOf(x)),
                  e.mean(x, reducedAxes(c, x), c.flag("keepdim", false))});
}

/// max + log(sum(exp(x - max))).
static LogicalResult logSumExp(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.operand("self", c.resultElement()), wide = e.widen(x);
  SmallVector<int64_t> axes = reducedAxes(c, x);
  bool keep = c.flag("keepdim", false);
  Value largest = e.reduce(ReduceKind::max, wide, axes, true);
  // Infinities have no distance from themselves.
  if (largest)
    largest =
        e.select(e.op<graph::IsInfOp>({largest}, {e.attr("positive", true),
                                                  e.attr("negative", true)}),
                 e.scalar(0.0, elementOf(largest)), largest);
  Value terms = e.op<graph::ExpOp>({e.sub(wide, largest)});
  Value total =
      e.op<graph::LogOp>({e.reduce(ReduceKind::sum, terms, axes, true)});
  Value y = e.cast(e.add(largest, total), elementOf(x));
  return c.yield(keep ? y : e.reshape(y, c.resultShape()));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::reductionRows() {
  static const Row rows[] = {
      {"aten.sum.default", partwise(sum)},
      {"aten.sum.dim_IntList", partwise(sum)},
      {"aten.prod.default", prod},
      {"aten.prod.dim_int", prod},
      {"aten.mean.default", partwise(mean)},
      {"aten.mean.dim", partwise(mean)},
      {"aten.amax.default", extremum<ReduceKind::max>},
      {"aten.amin.default", extremum<ReduceKind::min>},
      {"aten.max.default", extremum<ReduceKind::max>},
      {"aten.min.default", extremum<ReduceKind::min>},
      {"aten.max.dim", extremum<ReduceKind::max>},
      {"aten.min.dim", extremum<ReduceKind::min>},
      {"aten.aminmax.default", bothExtrema},
      {"aten.count_nonzero.default", countNonzero},
      {"aten.count_nonzero.dim_IntList", countNonzero},
      {"aten.nansum.default", nanSum<false>},
      {"aten.nanmean.default", nanSum<true>},
      {"aten.any.default", anyOrAll<ReduceKind::max>},
      {"aten.any.dim", anyOrAll<ReduceKind::max>},
      {"aten.any.dims", anyOrAll<ReduceKind::max>},
      {"aten.all.default", anyOrAll<ReduceKind::min>},
      {"aten.all.dim", anyOrAll<ReduceKind::min>},
      {"aten.all.dims", anyOrAll<ReduceKind::min>},
      {"aten.argmax.default", argExtremum<false>},
      {"aten.argmin.default", argExtremum<true>},
      {"aten.var.correction", {var, var}},
      {"aten.var.dim", {var, var}},
      {"aten.var.default", {var, var}},
      {"aten.std.correction", {deviation, deviation}},
      {"aten.std.dim", {deviation, deviation}},
      {"aten.std.default", {deviation, deviation}},
      {"aten.var_mean.correction", varMean<false>},
      {"aten.std_mean.correction", varMean<true>},
      {"aten.var_mean.dim", varMean<false>},
      {"aten.std_mean.dim", varMean<true>},
      {"aten.var_mean.default", varMean<false>},
      {"aten.std_mean.default", varMean<true>},
      {"aten.logsumexp.default", logSumExp},
  };
  return rows;
}
