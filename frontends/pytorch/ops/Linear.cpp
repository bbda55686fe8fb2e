// Of small vectors and matrices: products, determinants, inverses and powers.
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;

/// a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1] of a dimension of 3: the first one
/// that has so many, where it is left out.
static LogicalResult cross(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Exprs shape = c.resultShape();
  Value a = e.broadcast(c.operand("self", element), shape),
        b = e.broadcast(c.operand("other", element), shape);
  auto *first = llvm::find(shape, e.number(3));
  bool isLast = llvm::StringRef(c.getNode().target).contains("linalg");
  int64_t otherwise = isLast ? -1 : first - shape.begin();
  int64_t axis = c.axis("dim", shape.size(), otherwise);
  if (e.failed() || graph::constantOf(shape[axis]) != 3)
    return c.fail("needs a dimension of 3 elements");
  auto next = [&](Value x, int64_t by) {
    return buildRoll(x, e.number(-by), axis, e);
  };
  return c.yield(
      e.sub(e.mul(next(a, 1), next(b, 2)), e.mul(next(a, 2), next(b, 1))));
}

// Determinants are computed in double, whose range is large enough for those of
// floats: their logarithms follow from them.

static Value determinantOf(Call &c) {
  llvm::StringRef name = c.has("A") ? "A" : "self";
  return buildDeterminant(
      c.operand(name, c.getEmitter().getBuilder().getF64Type()),
      c.getEmitter());
}
static LogicalResult determinant(Call &c) {
  return c.yield(c.getEmitter().cast(determinantOf(c), c.resultElement()));
}
/// The sign, and the logarithm of the magnitude.
static LogicalResult signAndLog(Call &c) {
  Emitter &e = c.getEmitter();
  Value y = determinantOf(c);
  Value log = e.op<graph::LogOp>({e.op<graph::AbsOp>({y})});
  return c.yield({e.cast(e.op<graph::SignOp>({y}), c.resultElement()),
                  e.cast(log, c.resultElement())});
}
static LogicalResult logOfDeterminant(Call &c) {
  Emitter &e = c.getEmitter();
  return c.yield(
      e.cast(e.op<graph::LogOp>({determinantOf(c)}), c.resultElement()));
}

/// The inverses of matrices of float64: determinants of what is left without
/// each row and column, with their signs, divided by the whole one.
static Value inverseOf(Value x, Emitter &e) {
  Value whole = buildDeterminant(x, e);
  if (!whole)
    return {};
  Exprs dims = graph::getShape(x), single = graph::getShape(whole);
  int64_t rank = dims.size(), rows = *graph::constantOf(dims.back());
  SmallVector<int64_t> others, order;
  SmallVector<double> signs;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < rows; ++j) {
      signs.push_back((i + j) % 2 ? -1 : 1);
      if (i != j)
        others.push_back(j);
    }
  auto &b = e.getBuilder();
  auto type = [&](int64_t columns, mlir::Type element) {
    return mlir::RankedTensorType::get({rows, columns}, element);
  };
  Value index = e.constant(mlir::DenseElementsAttr::get(
            type(rows - 1, b.getI64Type()), llvm::ArrayRef(others))),
        sign = e.constant(mlir::DenseElementsAttr::get(
            type(rows, b.getF64Type()), llvm::ArrayRef(signs)));
  Value minors = e.op<graph::GatherOp>({x, index}, e.attr("axis", rank - 2));
  minors = e.op<graph::GatherOp>({minors, index}, e.attr("axis", rank));
  // Columns in front of rows: the inverse is of the transposed matrix.
  llvm::append_range(order, llvm::seq<int64_t>(0, rank - 2));
  order.append({rank, rank - 2, rank - 1, rank + 1});
  Value parts = buildDeterminant(e.transpose(minors, order), e);
  single.append(2, e.number(1));
  return e.div(e.mul(parts, sign), e.reshape(whole, single));
}
static LogicalResult inverse(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"check_errors"});
  Value x = c.operand(c.has("A") ? "A" : "self", e.getBuilder().getF64Type());
  return c.yield(e.cast(inverseOf(x, e), c.resultElement()));
}

/// X of A X = B, or of X A = B where that is not `left`. B may be vectors.
static LogicalResult solve(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"check_errors"});
  mlir::Type f64 = e.getBuilder().getF64Type();
  Value a = c.operand("A", f64), b = c.operand("B", f64);
  Value inverted = inverseOf(a, e);
  if (!inverted || !b || rankOf(b) == 0)
    return c.fail("needs matrices or vectors");
  Exprs shape = graph::getShape(b), all = graph::getShape(a);
  if (shape.size() == 1 ||
      llvm::ArrayRef(shape) == llvm::ArrayRef(all).drop_back())
    shape.push_back(e.number(1));
  b = e.reshape(b, shape);
  Value y = c.flag("left", true) ? buildMatmul(inverted, b, e)
                                 : buildMatmul(b, inverted, e);
  return c.yield(e.cast(e.reshape(y, c.resultShape()), c.resultElement()));
}

/// A product of as many equal matrices, by squares.
static LogicalResult matrixPower(Call &c) {
  Emitter &e = c.getEmitter();
  Value given = c.tensor("self"), x = e.widen(given), y;
  int64_t power = c.integer("n");
  if (!x || rankOf(x) < 2)
    return c.fail("needs matrices");
  if (power < 0) {
    x = inverseOf(e.cast(x, e.getBuilder().getF64Type()), e);
    if (!x)
      return c.yield(x);
  }
  Exprs shape = graph::getShape(x);
  if (power == 0) {
    mlir::Type i64 = e.getBuilder().getI64Type();
    AffineExpr n = shape.back(), one = e.number(1);
    Value isSame = e.compare(Predicate::eq, e.iota({n, one}, 0, i64),
                             e.iota({one, n}, 1, i64));
    return c.yield(e.broadcast(e.cast(isSame, elementOf(given)), shape));
  }
  auto left = static_cast<uint64_t>(power);
  for (left = power < 0 ? -left : left; left && !e.failed(); left >>= 1) {
    if (left & 1)
      y = y ? buildMatmul(y, x, e) : x;
    if (left > 1)
      x = buildMatmul(x, x, e);
  }
  return c.yield(e.cast(y, elementOf(given)));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::linearRows() {
  static const Row rows[] = {
      {"aten.cross.default", cross},
      {"aten.linalg_cross.default", cross},
      {"aten.det.default", determinant},
      {"aten.linalg_det.default", determinant},
      {"aten._linalg_det.default", determinant},
      {"aten.slogdet.default", signAndLog},
      {"aten.linalg_slogdet.default", signAndLog},
      {"aten._linalg_slogdet.default", signAndLog},
      {"aten.logdet.default", logOfDeterminant},
      {"aten.inverse.default", inverse},
      {"aten.linalg_inv.default", inverse},
      {"aten.linalg_inv_ex.default", inverse},
      {"aten.linalg_solve.default", solve},
      {"aten.linalg_solve_ex.default", solve},
      {"aten._linalg_solve_ex.default", solve},
      {"aten.matrix_power.default", matrixPower},
      {"aten.linalg_matrix_power.default", matrixPower},
  };
  return rows;
}
