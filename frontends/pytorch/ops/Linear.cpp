// Of small vectors and matrices: products, determinants, inverses and powers.
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/pytorch/ops/Rows.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;

/// a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1] of a dimension of 3: where it is
/// left out, the first one that has so many in `self`, counted from the end.
static LogicalResult cross(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Exprs shape = c.resultShape();
  Value self = c.operand("self", element), other = c.operand("other", element);
  if (!self || !other)
    return c.fail("needs tensors");
  Exprs own = graph::getShape(self);
  auto *first = llvm::find(own, e.number(3));
  bool isLast = llvm::StringRef(c.getNode().target).contains("linalg");
  int64_t otherwise = isLast || first == own.end() ? -1 : first - own.end();
  int64_t axis = c.axis("dim", shape.size(), otherwise);
  if (e.failed() || graph::constantOf(shape[axis]) != 3)
    return c.fail("needs a dimension of 3 elements");
  Value a = e.broadcast(self, shape), b = e.broadcast(other, shape);
  auto next = [&](Value x, int64_t by) {
    return buildRoll(x, e.number(-by), axis, e);
  };
  return c.yield(
      e.sub(e.mul(next(a, 1), next(b, 2)), e.mul(next(a, 2), next(b, 1))));
}

// Determinants are computed in double, whose range is large enough for those of
// floats; logarithms and inverses, which have a range of their own, follow from
// rows whose largest element is 1.

static Value matrixOf(Call &c) {
  return c.operand(c.has("A") ? "A" : "self",
                   c.getEmitter().getBuilder().getF64Type());
}

namespace {
/// Matrices whose rows are divided by the `largest` magnitude of each,
/// [.., n, 1]; null of matrices without elements.
struct ScaledRows {
  Value matrix, largest;
};
} // namespace

static ScaledRows scaleRows(Value x, Emitter &e) {
  if (!x || rankOf(x) < 2 || graph::getShape(x).back() == e.number(0))
    return {x, {}};
  Value largest = e.reduce(graph::ReduceKind::max, e.op<graph::AbsOp>({x}),
                           {int64_t(rankOf(x)) - 1}, true);
  // Nothing makes rows of zeros, or of what is infinite, regular.
  auto isBelow = [&](Value low, Value high) {
    return e.compare(Predicate::lt, low, high);
  };
  Value one = e.scalar(1.0, elementOf(x)), zero = e.scalar(0.0, elementOf(x)),
        none = e.scalar(INFINITY, elementOf(x));
  largest = e.select(isBelow(zero, largest), largest, one);
  largest = e.select(isBelow(largest, none), largest, one);
  return {e.div(x, largest), largest};
}

/// The logarithm of a determinant of scaled rows, unscaled.
static Value logOf(Value determinant, const ScaledRows &rows, Emitter &e) {
  Value log = e.op<graph::LogOp>({determinant});
  if (!log || !rows.largest)
    return log;
  int64_t rank = rankOf(rows.largest);
  return e.add(log, e.reduce(graph::ReduceKind::sum,
                             e.op<graph::LogOp>({rows.largest}),
                             {rank - 2, rank - 1}, false));
}

static LogicalResult determinant(Call &c) {
  Emitter &e = c.getEmitter();
  return c.yield(e.cast(buildDeterminant(matrixOf(c), e), c.resultElement()));
}
/// The sign, and the logarithm of the magnitude.
static LogicalResult signAndLog(Call &c) {
  Emitter &e = c.getEmitter();
  ScaledRows rows = scaleRows(matrixOf(c), e);
  Value y = buildDeterminant(rows.matrix, e);
  return c.yield(
      {e.cast(e.op<graph::SignOp>({y}), c.resultElement()),
       e.cast(logOf(e.op<graph::AbsOp>({y}), rows, e), c.resultElement())});
}
static LogicalResult logOfDeterminant(Call &c) {
  Emitter &e = c.getEmitter();
  ScaledRows rows = scaleRows(matrixOf(c), e);
  return c.yield(e.cast(logOf(buildDeterminant(rows.matrix, e), rows, e),
                        c.resultElement()));
}

/// The inverses of matrices of float64: determinants of what is left without
/// each row and column, with their signs, divided by the whole one.
static Value inverseOf(Value given, Emitter &e) {
  auto [x, largest] = scaleRows(given, e);
  Value whole = buildDeterminant(x, e);
  if (!whole || !largest)
    return whole ? given : Value();
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
  Value inverted = e.div(e.mul(parts, sign), e.reshape(whole, single));
  // Of D times a matrix it is that one's, times 1 / D.
  Exprs columns = graph::getShape(largest);
  std::swap(columns[rank - 2], columns[rank - 1]);
  return e.div(inverted, e.reshape(largest, columns));
}
static LogicalResult inverse(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"check_errors"});
  return c.yield(e.cast(inverseOf(matrixOf(c), e), c.resultElement()));
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
