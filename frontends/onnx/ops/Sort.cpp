// Operators that order elements along an axis.
#include "frontends/common/builders/Sort.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using mlir::Value;

static llvm::LogicalResult topK(Node &n, Emitter &e) {
  Value x = n.input(0);
  auto axis = n.axis("axis", rankOf(x), -1);
  // Until opset 9 the number is an attribute.
  auto count = n.sinceVersion() < 10
                   ? llvm::FailureOr<Exprs>(Exprs{e.number(n.integer("k"))})
                   : n.known(1);
  if (failed(axis) || failed(count))
    return llvm::failure();
  if (count->size() != 1)
    return e.fail("k has to be one number");
  Value index = selectPositions(
      {x, *axis, count->front(), n.integer("largest", 1) != 0}, e);
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
      {"", "TopK", 1, 24, topK},
      {"", "ReverseSequence", 10, 28, reverseSequence},
  };
  return rows;
}
