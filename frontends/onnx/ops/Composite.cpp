// Operators made of several others.
#include "frontends/common/builders/Einsum.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

/// 1 at the first largest element along an axis, else 0.
static llvm::LogicalResult hardmax(Node &n, Emitter &e) {
  Value x = n.input(0);
  Exprs shape = graph::getShape(x);
  int64_t rank = shape.size();
  auto axis = n.axis("axis", rank);
  if (failed(axis))
    return llvm::failure();
  Value flat = x;
  int64_t along = *axis;
  // Until opset 12 the dimensions before and from `axis` were one each.
  if (n.sinceVersion() < 13 && along != rank - 1) {
    auto sizes = llvm::ArrayRef(shape);
    flat = e.reshape(x, {productOf(sizes.take_front(along), e.getContext()),
                         productOf(sizes.drop_front(along), e.getContext())});
    along = 1;
  }
  if (!flat)
    return llvm::failure();
  Value best = e.op<graph::ArgReduceOp>(
      {flat}, {e.attr("axis", along), e.unit("keepdims")});
  Exprs dims(graph::getShape(flat).size(), e.number(1));
  dims[along] = graph::getShape(flat)[along];
  Value hit = e.compare(graph::Predicate::eq,
                        e.iota(dims, along, e.getBuilder().getI64Type()), best);
  return n.yield(e.reshape(e.cast(hit, elementOf(x)), shape));
}

static llvm::LogicalResult einsum(Node &n, Emitter &e) {
  return n.yield(buildEinsum(n.text("equation"), n.allInputs(), e));
}

static llvm::LogicalResult determinant(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  Value x = n.input(0);
  return n.yield(e.cast(buildDeterminant(e.widen(x), e), elementOf(x)));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::compositeRows() {
  static const Row rows[] = {
      {"", "Det", 11, 22, determinant},
      {"", "Hardmax", 1, 13, hardmax},
      {"", "Einsum", 12, 28, einsum},
  };
  return rows;
}
