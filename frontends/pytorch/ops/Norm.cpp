// Norms of vectors and matrices, and distances.
#include "frontends/common/Tables.h"
#include "frontends/pytorch/ops/Complex.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::ReduceKind;

/// (sum of |x|^order)^(1 / order) of floats; the largest or smallest |x| of an
/// infinite order, and of order 0 how many are not 0.
static Value normOver(Value x, double order, llvm::ArrayRef<int64_t> axes,
                      bool keep, Emitter &e) {
  if (!x)
    return {};
  mlir::Type element = elementOf(x);
  auto total = [&](Value terms) {
    return e.reduce(ReduceKind::sum, terms, axes, keep);
  };
  if (order == 2)
    return e.op<graph::SqrtOp>({total(e.mul(x, x))});
  Value magnitude = e.op<graph::AbsOp>({x});
  if (order == 1)
    return total(magnitude);
  if (std::isinf(order)) {
    Value y = e.reduce(order > 0 ? ReduceKind::max : ReduceKind::min, magnitude,
                       axes, keep);
    // The largest of no elements is 0.
    return order > 0 ? e.max(y, e.scalar(0.0, element)) : y;
  }
  if (order == 0)
    return total(e.cast(
        e.compare(graph::Predicate::ne, x, e.scalar(0.0, element)), element));
  return e.op<graph::PowOp>(
      {total(e.op<graph::PowOp>({magnitude, e.scalar(order, element)})),
       e.scalar(1 / order, element)});
}

/// The operand in the result's type, of complex numbers their magnitudes.
static Value readMagnitudes(Call &c, llvm::StringRef name) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, name);
  Value x = z.imaginary ? absComplex(z, e) : z.real;
  return e.widen(e.cast(x, c.resultElement()));
}
static LogicalResult yieldAs(Call &c, Value y) {
  return c.yield(c.getEmitter().cast(y, c.resultElement()));
}

// Norms.

static LogicalResult vectorNorm(Call &c) {
  c.ignore({"dtype"});
  Value x = readMagnitudes(c, "self");
  SmallVector<int64_t> axes = c.axes("dim", rankOf(x));
  llvm::sort(axes);
  double order = c.number(c.has("ord") ? "ord" : "p", 2);
  return yieldAs(
      c, normOver(x, order, axes, c.flag("keepdim", false), c.getEmitter()));
}

/// Of orders 1 and infinity: the largest sum over a column, or a row. The
/// others follow from singular values.
static LogicalResult matrixNorm(Call &c, Value x, llvm::ArrayRef<int64_t> axes,
                                double order, bool keep) {
  Emitter &e = c.getEmitter();
  if (!x || e.failed())
    return c.yield(Value());
  if (axes.size() != 2)
    return c.fail("needs 2 dimensions for a matrix");
  bool isColumn = std::abs(order) == 1;
  if (!isColumn && !std::isinf(order))
    return c.fail("a matrix norm of order " +
                      llvm::Twine(std::to_string(order)) +
                      " is not supported: it follows from singular values",
                  "orders 'fro', 1, -1, inf and -inf are");
  int64_t summed = axes[isColumn ? 0 : 1], other = axes[isColumn ? 1 : 0];
  Value sums = normOver(x, 1, {summed}, true, e);
  Value y = e.reduce(order > 0 ? ReduceKind::max : ReduceKind::min, sums,
                     {other}, true);
  return yieldAs(c, keep ? y : e.reshape(y, c.resultShape()));
}
/// Of an order by name.
static LogicalResult namedNorm(Call &c, Value x, SmallVector<int64_t> axes,
                               bool keep) {
  std::string name = c.text("ord", "fro");
  if (name != "fro")
    return c.fail("matrix norm '" + name +
                      "' is not supported: it follows from singular values",
                  "orders 'fro', 1, -1, inf and -inf are");
  llvm::sort(axes);
  return yieldAs(c, normOver(x, 2, axes, keep, c.getEmitter()));
}
static SmallVector<int64_t> matrixAxes(Call &c, Value x) {
  SmallVector<int64_t> axes;
  for (int64_t d : c.integers("dim", {-2, -1}))
    axes.push_back(c.axis(d, rankOf(x)));
  return axes;
}
template <bool isNamed> static LogicalResult linalgMatrixNorm(Call &c) {
  c.ignore({"dtype"});
  Value x = readMagnitudes(c, "self");
  SmallVector<int64_t> axes = matrixAxes(c, x);
  bool keep = c.flag("keepdim", false);
  return isNamed ? namedNorm(c, x, axes, keep)
                 : matrixNorm(c, x, axes, c.number("ord"), keep);
}
/// Of vectors, unless an order is given for two dimensions.
template <bool isNamed> static LogicalResult linalgNorm(Call &c) {
  c.ignore({"dtype"});
  Value x = readMagnitudes(c, "self");
  bool keep = c.flag("keepdim", false), hasDim = c.has("dim");
  SmallVector<int64_t> axes = c.integers("dim");
  if (!x || c.getEmitter().failed())
    return c.yield(Value());
  bool isMatrix = hasDim ? axes.size() == 2 : rankOf(x) == 2;
  if (isNamed || (c.has("ord") && isMatrix)) {
    axes = matrixAxes(c, x);
    return isNamed ? namedNorm(c, x, axes, keep)
                   : matrixNorm(c, x, axes, c.number("ord"), keep);
  }
  axes = c.axes("dim", rankOf(x));
  llvm::sort(axes);
  return yieldAs(c,
                 normOver(x, c.number("ord", 2), axes, keep, c.getEmitter()));
}

// Distances.

/// The norm of the difference.
static LogicalResult distance(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value way = e.sub(e.widen(c.operand("self", element)),
                    e.widen(c.operand("other", element)));
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(way)));
  return yieldAs(c, normOver(way, c.number("p", 2), axes, false, e));
}
/// Of vectors in the last dimension; `eps` is added to each difference.
static LogicalResult pairwiseDistance(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value way = e.sub(e.widen(c.operand("x1", element)),
                    e.widen(c.operand("x2", element)));
  if (!way || rankOf(way) < 1)
    return way ? c.fail("needs at least 1 dimension") : c.yield(way);
  way = e.add(way, e.scalar(c.number("eps", 1e-6), elementOf(way)));
  return yieldAs(c, normOver(way, c.number("p", 2), {rankOf(way) - 1},
                             c.flag("keepdim", false), e));
}

/// Distances of all rows of `a` and `b`.
static Value distancesOf(Value a, Value b, double order, Call &c) {
  Emitter &e = c.getEmitter();
  if (rankOf(a) < 2 || rankOf(b) < 2)
    return a && b ? c.fail("needs at least 2 dimensions") : Value();
  if (order < 0)
    return c.fail("distances of order " + llvm::Twine(std::to_string(order)) +
                  " are not supported");
  Exprs rows = graph::getShape(a), columns = graph::getShape(b);
  rows.insert(rows.end() - 1, e.number(1));
  columns.insert(columns.end() - 2, e.number(1));
  Value way = e.widen(e.sub(e.reshape(a, rows), e.reshape(b, columns)));
  return normOver(way, order, {rankOf(way) - 1}, false, e);
}
static LogicalResult distances(Call &c) {
  c.ignore({"compute_mode"});
  mlir::Type element = c.resultElement();
  return yieldAs(c, distancesOf(c.operand("x1", element),
                                c.operand("x2", element), c.number("p", 2), c));
}
/// Of each row and those behind it.
static LogicalResult ownDistances(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  auto rows = x && rankOf(x) == 2 ? graph::constantOf(graph::getShape(x)[0])
                                  : std::nullopt;
  constexpr int64_t maxRows = 4096;
  if (!rows || *rows > maxRows)
    return c.fail("needs a number of rows that is known, up to " +
                      llvm::Twine(maxRows),
                  "fix that size with --shape");
  mlir::Type i64 = e.getBuilder().getI64Type();
  if (failed(reserveTable(*rows * (*rows - 1) / 2, i64, e)))
    return llvm::failure();
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < *rows; ++i)
    for (int64_t j = i + 1; j < *rows; ++j)
      places.push_back(i * *rows + j);
  Value all = distancesOf(x, x, c.number("p", 2), c);
  auto type =
      mlir::RankedTensorType::get({static_cast<int64_t>(places.size())}, i64);
  Value chosen = e.constant(
      mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int64_t>(places)));
  return yieldAs(c, e.op<graph::GatherOp>(
                        {e.reshape(all, {e.number(*rows * *rows)}), chosen},
                        e.attr("axis", int64_t(0))));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::normRows() {
  auto both = [](ImportFunction function) {
    return Import(function, function);
  };
  static const Row rows[] = {
      {"aten.linalg_vector_norm.default", both(vectorNorm)},
      {"aten.norm.Scalar", both(vectorNorm)},
      {"aten.norm.ScalarOpt_dim", both(vectorNorm)},
      {"aten.norm.ScalarOpt_dtype", both(vectorNorm)},
      {"aten.norm.ScalarOpt_dim_dtype", both(vectorNorm)},
      {"aten.linalg_norm.default", both(linalgNorm<false>)},
      {"aten.linalg_norm.ord_str", both(linalgNorm<true>)},
      {"aten.linalg_matrix_norm.default", both(linalgMatrixNorm<false>)},
      {"aten.linalg_matrix_norm.str_ord", both(linalgMatrixNorm<true>)},
      {"aten.dist.default", distance},
      {"aten.pairwise_distance.default", pairwiseDistance},
      {"aten.cdist.default", distances},
      {"aten._cdist_forward.default", distances},
      {"aten.pdist.default", ownDistances},
      {"aten._pdist_forward.default", ownDistances},
  };
  return rows;
}
