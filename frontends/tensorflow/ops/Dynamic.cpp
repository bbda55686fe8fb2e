// Slices and updates at places that are data, and places that are searched.
#include "frontends/tensorflow/ops/Dynamic.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/tensorflow/Node.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::Predicate;
using llvm::LogicalResult;
using mlir::AffineExpr;
using mlir::Value;

Value charonia::frontend::tensorflow::startAt(Value starts, int64_t i,
                                              Emitter &e) {
  return e.cast(sliceAlong(starts, 0, {e.number(i), e.number(1), 1}, e),
                e.getBuilder().getI64Type());
}

/// 0, 1, ... from `start` on, as a vector.
static Value countFrom(Value start, AffineExpr count, Emitter &e) {
  return e.add(e.iota({count}, 0, e.getBuilder().getI64Type()), start);
}

Value charonia::frontend::tensorflow::takeAt(Value x, int64_t axis, Value start,
                                             AffineExpr count, Emitter &e) {
  return e.op<graph::GatherOp>({x, countFrom(start, count, e)},
                               e.attr("axis", axis));
}

/// A start so that a slice of `part` of `size` lies inside.
static Value clamped(Value start, AffineExpr size, AffineExpr part,
                     Emitter &e) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value last = e.size(graph::simplify(size - part), i64);
  return e.max(e.min(start, last), e.scalar(int64_t(0), i64));
}

/// A tensor with another in the place that operand 2 says, moved so that it
/// lies inside.
static LogicalResult dynamicUpdate(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  Value x = n.input(0), update = n.input(1), inside;
  Exprs shape = graph::getShape(x), part = graph::getShape(update);
  if (part.size() != shape.size() || elementOf(x) != elementOf(update) ||
      graph::getShape(n.input(2))[0] !=
          e.number(static_cast<int64_t>(shape.size())))
    return e.fail("cannot put " + e.describe(update.getType()) + " into " +
                  e.describe(x.getType()) + " at " +
                  e.describe(n.input(2).getType()));
  mlir::Type i64 = e.getBuilder().getI64Type();
  for (auto [d, size, count] : llvm::enumerate(shape, part)) {
    if (!e.getSymbols().assumeAtLeast(size, count,
                                      "so that an update lies inside its "
                                      "tensor"))
      return e.fail("cannot put " + e.describe(update.getType()) + " into " +
                    e.describe(x.getType()));
    if (size == count)
      continue;
    // Of each place of the tensor the one of the update.
    Value start = clamped(startAt(n.input(2), d, e), size, count, e);
    Value at = e.sub(e.iota({size}, 0, i64), start);
    Value isInside = e.op<graph::AndOp>(
        {e.compare(Predicate::ge, at, e.scalar(int64_t(0), i64)),
         e.compare(Predicate::lt, at, e.size(count, i64))});
    Exprs along(shape.size(), e.number(1));
    along[d] = size;
    isInside = e.reshape(isInside, along);
    inside = inside ? e.op<graph::AndOp>({inside, isInside}) : isInside;
    update = e.op<graph::GatherOp>({update, at},
                                   e.attr("axis", static_cast<int64_t>(d)));
  }
  return n.yield(inside ? e.select(inside, update, x) : update);
}

/// How many elements of sorted rows come before each value: less than it, or
/// with `upper` not above it.
template <bool upper> static LogicalResult search(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 2, 2)) ||
      failed(n.needsRank(1, 2, 2)))
    return llvm::failure();
  mlir::Type element = n.sizeType("out_type");
  Value sorted = n.input(0), values = n.input(1);
  if (!element)
    return llvm::failure();
  Exprs rows = graph::getShape(sorted), wanted = graph::getShape(values);
  if (elementOf(sorted) != elementOf(values) ||
      !e.agree(rows[0], wanted[0], "searches a row for each row of values"))
    return e.fail("cannot search " + e.describe(values.getType()) + " in " +
                  e.describe(sorted.getType()));
  sorted = e.reshape(sorted, {rows[0], e.number(1), rows[1]});
  values = e.reshape(values, {wanted[0], wanted[1], e.number(1)});
  Value before =
      upper ? e.op<graph::NotOp>({e.compare(Predicate::lt, values, sorted)})
            : e.compare(Predicate::lt, sorted, values);
  return n.yield(
      e.reduce(graph::ReduceKind::sum, e.cast(before, element), {2}, false));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::dynamicRows() {
  static const Row rows[] = {
      {"XlaDynamicUpdateSlice", dynamicUpdate},
      {"LowerBound", search<false>},
      {"UpperBound", search<true>},
  };
  return rows;
}
