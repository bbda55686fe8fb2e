#include "frontends/common/builders/Matrix.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::Value;

Matrices::Matrices(Value left, Value right, Emitter &e)
    : lhs(left), rhs(right) {
  if (!lhs || !rhs)
    return;
  isRow = rankOf(lhs) == 1;
  isColumn = rankOf(rhs) == 1;
  if (isRow)
    lhs = e.reshape(lhs, {e.number(1), graph::getShape(lhs)[0]});
  if (isColumn)
    rhs = e.reshape(rhs, {graph::getShape(rhs)[0], e.number(1)});
}

Value Matrices::dropFrom(Value product, Emitter &e) const {
  if (!product || (!isRow && !isColumn))
    return product;
  Exprs shape = graph::getShape(product);
  if (isColumn)
    shape.pop_back();
  if (isRow)
    shape.erase(isColumn ? shape.end() - 1 : shape.end() - 2);
  return e.reshape(product, shape);
}

Value charonia::frontend::buildProduct(Value lhs, Value rhs, Emitter &e) {
  if (!lhs || !rhs)
    return {};
  Matrices matrices(lhs, rhs, e);
  return matrices.dropFrom(e.op<graph::MatmulOp>({matrices.lhs, matrices.rhs}),
                           e);
}

Value charonia::frontend::buildMatmul(Value lhs, Value rhs, Emitter &e) {
  Value result = buildProduct(lhs, rhs, e);
  return result ? e.cast(result, elementOf(lhs)) : result;
}

Value charonia::frontend::buildAttention(Value query, Value key, Value value,
                                         Value mask, double scale, bool causal,
                                         Emitter &e) {
  Values operands = {query, key, value};
  bool isBias = mask && llvm::isa<mlir::FloatType>(elementOf(mask));
  if (mask)
    operands.push_back(mask);
  mlir::Builder &builder = e.getBuilder();
  llvm::SmallVector<mlir::NamedAttribute> attributes = {
      e.attr("scale", scale),
      e.attr("operandSegmentSizes",
             builder.getDenseI32ArrayAttr({1, 1, 1, mask && !isBias, isBias})),
      e.attr("guard", graph::RowGuardAttr::get(builder.getContext(),
                                               graph::RowGuard::empty))};
  if (causal)
    attributes.push_back(e.unit("causal"));
  return e.op<graph::AttentionOp>(operands, attributes);
}

/// By the products of each row's elements with the minors of the rows above,
/// one for each set of columns.
Value frontend::buildDeterminant(Value x, Emitter &e) {
  constexpr int64_t maxRows = 6;
  if (!x)
    return {};
  Exprs dims = graph::getShape(x);
  int64_t rank = dims.size();
  std::string type = e.describe(x.getType());
  if (rank < 2)
    return e.fail("the determinant of " + type + ", which is no matrix");
  auto rows = graph::constantOf(dims[rank - 2]),
       columns = graph::constantOf(dims[rank - 1]);
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
    return e.broadcast(e.scalar(1.0, elementOf(x)),
                       llvm::ArrayRef(dims).drop_back(2));
  auto element = [&](int64_t row, int64_t column) {
    Exprs starts(rank, e.number(0)), part = dims;
    starts[rank - 2] = e.number(row);
    starts[rank - 1] = e.number(column);
    part[rank - 2] = part[rank - 1] = e.number(1);
    Value one = e.slice(x, starts, llvm::SmallVector<int64_t>(rank, 1), part);
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
  return minors.back();
}
