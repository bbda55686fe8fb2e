// Operators made of several others.
#include "frontends/common/builders/Einsum.h"
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

/// By the products of each row's elements with the minors of the rows above,
/// one for each set of columns.
static llvm::LogicalResult determinant(Node &n, Emitter &e) {
  constexpr int64_t maxRows = 6;
  Value x = n.input(0);
  if (failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  Exprs dims = graph::getShape(x);
  int64_t rank = dims.size();
  auto rows = graph::constantOf(dims[rank - 2]),
       columns = graph::constantOf(dims[rank - 1]);
  std::string type = e.describe(x.getType());
  if (!rows || !columns)
    return e.fail("the determinant of " + type +
                      " is not supported: how large matrices are has to be "
                      "known",
                  "fix these sizes with --shape");
  if (*rows != *columns)
    return e.fail("the determinant of " + type + ", which is not square");
  if (*rows > maxRows)
    return e.fail("the determinant of " + type +
                      " is not supported: matrices may have up to " +
                      llvm::Twine(maxRows) + " rows",
                  "compute it outside of the model");
  if (*rows == 0)
    return n.yield(e.broadcast(e.scalar(1.0, elementOf(x)),
                               llvm::ArrayRef(dims).drop_back(2)));
  Value wide = e.widen(x);
  auto element = [&](int64_t row, int64_t column) {
    Exprs starts(rank, e.number(0)), part = dims;
    starts[rank - 2] = e.number(row);
    starts[rank - 1] = e.number(column);
    part[rank - 2] = part[rank - 1] = e.number(1);
    Value one =
        e.slice(wide, starts, llvm::SmallVector<int64_t>(rank, 1), part);
    return e.reshape(one, llvm::ArrayRef(part).drop_back(2));
  };
  std::vector<Value> minors(int64_t(1) << *rows);
  for (unsigned columns = 1; columns < minors.size(); ++columns) {
    int row = llvm::popcount(columns) - 1, behind = 0;
    for (int64_t c = *rows - 1; c >= 0; --c) {
      if (!(columns >> c & 1))
        continue;
      Value term = element(row, c);
      if (row > 0)
        term = e.mul(term, minors[columns & ~(1u << c)]);
      Value &sum = minors[columns];
      sum = !sum ? term : behind % 2 == 0 ? e.add(sum, term) : e.sub(sum, term);
      ++behind;
    }
  }
  return n.yield(e.cast(minors.back(), elementOf(x)));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::compositeRows() {
  static const Row rows[] = {
      {"", "Det", 11, 22, determinant},
      {"", "Hardmax", 1, 13, hardmax},
      {"", "Einsum", 12, 28, einsum},
  };
  return rows;
}
