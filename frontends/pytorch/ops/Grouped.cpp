// Products of groups of rows, each with a matrix of its own: mixtures of
// experts.
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

/// Known ends of groups: a product of each one's rows.
static Value knownGroups(Value x, Value weight, llvm::ArrayRef<int64_t> ends,
                         Call &c) {
  Emitter &e = c.getEmitter();
  Exprs shape = graph::getShape(weight);
  AffineExpr rows = graph::getShape(x)[0], start = e.number(0);
  Values parts;
  auto add = [&](AffineExpr end, Value matrix) {
    AffineExpr count = graph::simplify(end - start);
    if (!e.getSymbols().assumeAtLeast(count, e.number(0),
                                      "so that groups follow each other"))
      return c.fail("its groups do not follow each other inside of " +
                    e.getSymbols().toString(rows) + " rows");
    if (count != e.number(0)) {
      Value part = sliceAlong(x, 0, {start, count, 1}, e);
      parts.push_back(
          matrix ? buildMatmul(part, matrix, e)
                 : e.broadcast(e.scalar(0.0, elementOf(x)), {count, shape[2]}));
    }
    start = end;
    return Failed();
  };
  for (auto [i, end] : llvm::enumerate(ends)) {
    Value one = sliceAlong(
        weight, 0, {e.number(static_cast<int64_t>(i)), e.number(1), 1}, e);
    add(e.number(end), e.reshape(one, {shape[1], shape[2]}));
  }
  // Rows behind the last group are zero.
  add(rows, Value());
  if (e.failed() || parts.empty())
    return parts.empty() ? c.fail("has no rows") : Value();
  return parts.size() == 1 ? parts[0] : e.concat(parts, 0);
}

/// Ends that are data: all rows times each matrix, of which each row takes that
/// of its group.
static Value groupsOfData(Value x, Value weight, Value ends, Call &c) {
  Emitter &e = c.getEmitter();
  Exprs shape = graph::getShape(weight);
  AffineExpr groups = shape[0], rows = graph::getShape(x)[0], one = e.number(1);
  auto count = graph::constantOf(groups);
  e.note("the groups' sizes follow from data, so that all rows are multiplied "
         "with all " +
         (count ? std::to_string(*count) + " " : std::string()) + "matrices");
  Value y = e.widen(
      buildMatmul(e.reshape(x, {one, rows, graph::getShape(x)[1]}), weight, e));
  mlir::Type i64 = e.getBuilder().getI64Type();
  ends = e.reshape(e.cast(ends, i64), {one, groups});
  // How many groups end at or before a row is which one it is in.
  Value isBehind =
      e.compare(graph::Predicate::le, ends, e.iota({rows, one}, 0, i64));
  Value group =
      e.reduce(graph::ReduceKind::sum, e.cast(isBehind, i64), {1}, false);
  Value isOwn =
      e.compare(graph::Predicate::eq, e.reshape(group, {one, rows, one}),
                e.iota({groups, one, one}, 0, i64));
  if (!y)
    return {};
  Value chosen = e.select(isOwn, y, e.scalar(0.0, elementOf(y)));
  return e.reduce(graph::ReduceKind::sum, chosen, {0}, false);
}

static LogicalResult groupedProduct(Call &c, llvm::StringRef input,
                                    llvm::StringRef matrices) {
  Emitter &e = c.getEmitter();
  c.ignore({"out_dtype"});
  mlir::Type element = c.resultElement();
  Value x = c.operand(input, element), weight = c.operand(matrices, element),
        ends = c.optionalTensor("offs");
  if (!x || !weight || e.failed())
    return c.yield(Value());
  // Three dimensions are groups of as many rows each.
  if (rankOf(x) == 3 && rankOf(weight) == 3 && !ends)
    return c.yield(buildMatmul(x, weight, e));
  if (rankOf(x) != 2 || rankOf(weight) != 3 || rankOf(ends) != 1 || !ends)
    return c.fail("is supported of rows, [rows, n], with matrices, [groups, n, "
                  "m], and ends of groups",
                  "write it as products of its groups in the model");
  Value y;
  if (auto known = e.constantOf(ends)) {
    SmallVector<int64_t> values;
    for (const llvm::APInt &value : known.getValues<llvm::APInt>())
      values.push_back(value.getSExtValue());
    if (e.number(static_cast<int64_t>(values.size())) !=
        graph::getShape(weight)[0])
      return c.fail("has " + Twine(values.size()) + " ends of groups for " +
                    e.describe(weight.getType()));
    y = knownGroups(x, weight, values, c);
  } else {
    y = groupsOfData(x, weight, ends, c);
  }
  return c.yield(y ? e.cast(y, element) : y);
}
static LogicalResult groupedMm(Call &c) {
  return groupedProduct(c, "self", "mat2");
}
static LogicalResult groupedFallback(Call &c) {
  return groupedProduct(c, "input", "weight");
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::groupedRows() {
  static const Row rows[] = {
      {"aten._grouped_mm.default", groupedMm},
      // What transformers' mixtures of experts call.
      {"transformers.grouped_mm_fallback.default", groupedFallback},
  };
  return rows;
}
