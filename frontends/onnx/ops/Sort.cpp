// Operators that order elements along an axis.
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using graph::ReduceKind;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// An element's place among the others is the number of those in front of it:
/// larger ones (or smaller ones), and equal ones that come first. Quadratic in
/// the length, but two fused kernels; models choose among classes or beams.
static llvm::LogicalResult topK(Node &n, Emitter &e) {
  Value x = n.input(0);
  int64_t rank = rankOf(x);
  auto axis = n.axis("axis", rank, -1);
  auto count = n.known(1);
  if (failed(axis) || failed(count))
    return llvm::failure();
  if (count->size() != 1)
    return e.fail("k has to be one number");
  AffineExpr k = count->front();
  Exprs shape = graph::getShape(x);
  AffineExpr length = shape[*axis];
  if (!e.getSymbols().assumeAtLeast(length, k, "so that there are k elements"))
    return e.fail("cannot choose " + e.getSymbols().toString(k) +
                  " elements of " + e.getSymbols().toString(length));
  // Element i is compared with all j: [.., i, j, ..].
  Exprs byRow = shape, byColumn = shape, square(rank + 1, e.number(1));
  byRow.insert(byRow.begin() + *axis + 1, e.number(1));
  byColumn.insert(byColumn.begin() + *axis, e.number(1));
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value own = e.reshape(x, byRow), other = e.reshape(x, byColumn);
  Exprs along = square, across = square;
  along[*axis] = length;
  across[*axis + 1] = length;
  Value i = e.iota(along, *axis, i64), j = e.iota(across, *axis + 1, i64);
  bool largest = n.integer("largest", 1) != 0;
  Value before = e.compare(largest ? Predicate::gt : Predicate::lt, other, own);
  Value tie = e.op<graph::AndOp>(
      {e.compare(Predicate::eq, other, own), e.compare(Predicate::lt, j, i)});
  Value place =
      e.reduce(ReduceKind::sum, e.cast(e.op<graph::OrOp>({before, tie}), i64),
               *axis + 1, false);
  // The element at place p: [.., p, i, ..].
  Exprs places(rank + 1, e.number(1)), byPlace = shape;
  places[*axis] = k;
  byPlace.insert(byPlace.begin() + *axis, e.number(1));
  Value hit = e.compare(Predicate::eq, e.reshape(place, byPlace),
                        e.iota(places, *axis, i64));
  Value index =
      e.select(hit, e.iota(across, *axis + 1, i64), e.scalar(int64_t(0), i64));
  index = e.reduce(ReduceKind::sum, index, *axis + 1, false);
  Value values =
      e.op<graph::GatherElementsOp>({x, index}, e.attr("axis", *axis));
  return n.yield({values, index});
}

/// Elements before a sequence's length in reverse, the others as they are.
static llvm::LogicalResult reverseSequence(Node &n, Emitter &e) {
  Value x = n.input(0);
  int64_t time = n.integer("time_axis"), batch = n.integer("batch_axis", 1);
  if (failed(n.needsRank(0, 2, 32)) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  if (time + batch != 1 || (time != 0 && time != 1))
    return e.fail("time_axis and batch_axis have to be 0 and 1, or 1 and 0");
  Exprs shape = graph::getShape(x);
  int64_t rank = shape.size();
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs along(rank, e.number(1)), across(rank, e.number(1));
  along[time] = shape[time];
  across[batch] = shape[batch];
  Value t = e.iota(along, time, i64);
  Value length = e.reshape(e.cast(n.input(1), i64), across);
  Value back = e.sub(e.sub(length, t), e.scalar(int64_t(1), i64));
  Value index = e.select(e.compare(Predicate::lt, t, length), back, t);
  return n.yield(e.op<graph::GatherElementsOp>({x, e.broadcast(index, shape)},
                                               e.attr("axis", time)));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::sortRows() {
  static const Row rows[] = {
      {"", "TopK", 10, 24, topK},
      {"", "ReverseSequence", 10, 28, reverseSequence},
  };
  return rows;
}
