// Diagonals and triangles.
#include "frontends/common/Tables.h"
#include "frontends/common/builders/Pad.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

namespace {
/// A diagonal: elements whose coordinates in two dimensions differ by `offset`.
struct Diagonal {
  Diagonal(Call &c, int64_t rank, int64_t dim1 = 0, int64_t dim2 = 1,
           llvm::StringRef offsetName = "offset")
      : offset(c.integer(offsetName, 0)), first(c.axis("dim1", rank, dim1)),
        second(c.axis("dim2", rank, dim2)) {
    if (first == second || offset < -maxDimension || offset > maxDimension)
      c.fail("needs two different dimensions");
  }
  int64_t offset, first, second;
};
} // namespace

/// How many elements a diagonal has: `stated` as the file says where one cannot
/// tell whether rows or columns end first.
static AffineExpr lengthOf(Value x, const Diagonal &d, AffineExpr stated,
                           Emitter &e) {
  Exprs shape = graph::getShape(x);
  Symbols &symbols = e.getSymbols();
  auto rest = [&](int64_t axis, int64_t before) {
    return graph::simplify(shape[axis] - std::max<int64_t>(before, 0));
  };
  AffineExpr rows = rest(d.first, -d.offset),
             columns = rest(d.second, d.offset);
  if (symbols.isAtLeast(rows, columns))
    rows = columns;
  else if (!symbols.isAtLeast(columns, rows))
    return stated;
  if (symbols.isAtLeast(rows, e.number(0)))
    return rows;
  return symbols.isAtLeast(e.number(0), rows) ? e.number(0) : stated;
}
/// The diagonal's elements as the last dimension.
static Value takeDiagonal(Value x, const Diagonal &d, AffineExpr stated,
                          Emitter &e) {
  if (!x || !stated || e.failed())
    return {};
  int64_t rank = rankOf(x);
  AffineExpr length = lengthOf(x, d, stated, e);
  SmallVector<int64_t> order{d.first, d.second};
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis != d.first && axis != d.second)
      order.push_back(axis);
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value place = e.iota({length, e.number(1)}, 0, i64);
  Value row = e.add(place, e.scalar(std::max<int64_t>(-d.offset, 0), i64)),
        column = e.add(place, e.scalar(std::max<int64_t>(d.offset, 0), i64));
  Value y = e.op<graph::GatherNDOp>(
      {e.transpose(x, order), e.concat({row, column}, 1)},
      e.attr("batch_dims", int64_t(0)));
  auto back = llvm::to_vector(llvm::seq<int64_t>(1, rank - 1));
  back.push_back(0);
  return e.transpose(y, back);
}
static LogicalResult diagonal(Call &c) {
  Value x = c.tensor("self");
  Diagonal d(c, rankOf(x));
  Exprs result = c.resultShape();
  return c.yield(result.empty()
                     ? Value()
                     : takeDiagonal(x, d, result.back(), c.getEmitter()));
}
static LogicalResult linalgDiagonal(Call &c) {
  Value x = c.tensor("A");
  Diagonal d(c, rankOf(x), -2, -1);
  Exprs result = c.resultShape();
  return c.yield(result.empty()
                     ? Value()
                     : takeDiagonal(x, d, result.back(), c.getEmitter()));
}

/// `self` with its diagonal replaced: each element of that is spread over its
/// row or column, of which one place takes it.
static Value putDiagonal(Value self, Value view, const Diagonal &d,
                         Emitter &e) {
  if (!self || !view || e.failed())
    return {};
  int64_t rank = rankOf(self), first = d.first, second = d.second;
  Exprs shape = graph::getShape(self);
  mlir::Type i64 = e.getBuilder().getI64Type();
  auto along = [&](int64_t axis) {
    Exprs dims(rank, e.number(1));
    dims[axis] = shape[axis];
    return e.iota(dims, axis, i64);
  };
  Value row = along(first), column = along(second);
  Value isThere = e.compare(graph::Predicate::eq, e.sub(column, row),
                            e.scalar(d.offset, i64));
  // The place on the diagonal, by the dimension that it begins at 0 of.
  int64_t axis = d.offset >= 0 ? first : second;
  AffineExpr length = graph::getShape(view).back();
  if (length == e.number(0))
    return self;
  Value place = e.min(e.iota({shape[axis]}, 0, i64),
                      e.size(graph::simplify(length - 1), i64));
  Value spread =
      e.op<graph::GatherOp>({view, place}, e.attr("axis", rankOf(view) - 1));
  if (!spread)
    return {};
  // The other dimensions, then that one: to where they are in `self`.
  SmallVector<int64_t> order;
  Exprs dims = shape;
  dims[axis == first ? second : first] = e.number(1);
  for (int64_t dim = 0, other = 0; dim < rank; ++dim)
    if (dim == axis)
      order.push_back(rankOf(spread) - 1);
    else if (dim != first && dim != second)
      order.push_back(other++);
  return e.select(isThere, e.reshape(e.transpose(spread, order), dims), self);
}

static Value writeDiagonal(Call &c, Value self, Value view) {
  return putDiagonal(self, view, Diagonal(c, rankOf(self)), c.getEmitter());
}
static Value writeLinalgDiagonal(Call &c, Value self, Value view) {
  return putDiagonal(self, view, Diagonal(c, rankOf(self), -2, -1),
                     c.getEmitter());
}
static LogicalResult diagonalScatter(Call &c) {
  Value x = c.tensor("self"), part = c.operand("src", elementOf(x));
  return c.yield(putDiagonal(x, part, Diagonal(c, rankOf(x)), c.getEmitter()));
}

/// Matrices that are 0 but for a diagonal, which vectors in the last dimension
/// of x are.
static Value embedDiagonal(Value x, const Diagonal &d, Emitter &e) {
  if (!x || e.failed())
    return {};
  int64_t rank = rankOf(x), away = std::abs(d.offset);
  Value zero = e.scalar(int64_t(0), elementOf(x));
  // Each row's element, of which those outside of the diagonal are not taken.
  Value line = buildPad(graph::PadMode::constant, x, zero,
                        {e.number(d.offset < 0 ? away : 0)},
                        {e.number(d.offset < 0 ? 0 : away)}, {rank - 1}, e);
  if (!line)
    return {};
  Exprs shape = graph::getShape(line);
  AffineExpr size = shape.back();
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value row = e.iota({size, e.number(1)}, 0, i64),
        column = e.iota({e.number(1), size}, 1, i64);
  Value isThere = e.compare(graph::Predicate::eq, e.sub(column, row),
                            e.scalar(d.offset, i64));
  shape.push_back(e.number(1));
  Value y = e.select(isThere, e.reshape(line, shape), zero);
  SmallVector<int64_t> order;
  for (int64_t dim = 0, other = 0; dim <= rank; ++dim)
    order.push_back(dim == d.first    ? rank - 1
                    : dim == d.second ? rank
                                      : other++);
  return e.transpose(y, order);
}
static LogicalResult diagonalEmbedding(Call &c) {
  Value x = c.tensor("self");
  return c.yield(
      embedDiagonal(x, Diagonal(c, rankOf(x) + 1, -2, -1), c.getEmitter()));
}
/// Of a vector a matrix, of a matrix its diagonal.
static LogicalResult diag(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Diagonal d(c, 2, 0, 1, "diagonal");
  Exprs result = c.resultShape();
  if (!x || result.empty() || rankOf(x) < 1 || rankOf(x) > 2)
    return c.fail("is of vectors and matrices");
  return c.yield(rankOf(x) == 1 ? embedDiagonal(x, d, e)
                                : takeDiagonal(x, d, result.back(), e));
}
/// Of all elements.
static LogicalResult diagonalOfAll(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  if (!x)
    return c.yield(x);
  Value line = e.reshape(x, {productOf(graph::getShape(x), e.getContext())});
  return c.yield(embedDiagonal(line, Diagonal(c, 2), e));
}
static LogicalResult trace(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.operand("self", c.resultElement());
  if (rankOf(x) != 2)
    return x ? c.fail("is of matrices") : c.yield(x);
  Exprs shape = graph::getShape(x);
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value isThere =
      e.compare(graph::Predicate::eq, e.iota({shape[0], e.number(1)}, 0, i64),
                e.iota({e.number(1), shape[1]}, 1, i64));
  return c.yield(e.reduce(
      graph::ReduceKind::sum,
      e.select(isThere, x, e.scalar(int64_t(0), elementOf(x))), {0, 1}, false));
}

/// Rows and columns of the elements of a triangle, in row-major order.
template <bool lower> static LogicalResult triangleIndices(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"dtype", "layout", "device", "pin_memory"});
  int64_t rows = c.integer("row"), columns = c.integer("col"),
          offset = c.integer("offset", 0);
  if (e.failed() || rows < 0 || columns < 0 || rows > maxDimension ||
      columns > maxDimension / std::max<int64_t>(rows, 1) ||
      offset < -maxDimension || offset > maxDimension)
    return c.fail("a matrix of " + Twine(rows) + " x " + Twine(columns) +
                  " elements is not supported");
  mlir::Type i64 = e.getBuilder().getI64Type();
  if (failed(reserveTable(2 * rows * columns, i64, e)))
    return llvm::failure();
  SmallVector<int64_t> places[2];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (lower ? j <= i + offset : j >= i + offset) {
        places[0].push_back(i);
        places[1].push_back(j);
      }
  auto count = static_cast<int64_t>(places[0].size());
  places[0].append(places[1]);
  auto type = mlir::RankedTensorType::get({2, count}, i64);
  return c.yield(e.cast(e.constant(mlir::DenseElementsAttr::get(
                            type, llvm::ArrayRef<int64_t>(places[0]))),
                        c.resultElement()));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::diagonalRows() {
  static const Row rows[] = {
      {"aten.diagonal.default", partwise(diagonal), Alias::View, writeDiagonal},
      {"aten.linalg_diagonal.default", partwise(linalgDiagonal), Alias::View,
       writeLinalgDiagonal},
      {"aten.diagonal_scatter.default", partwise(diagonalScatter)},
      {"aten.diag_embed.default", partwise(diagonalEmbedding)},
      {"aten.diag.default", partwise(diag)},
      {"aten.diagflat.default", partwise(diagonalOfAll)},
      {"aten.trace.default", partwise(trace)},
      {"aten.tril_indices.default", triangleIndices<true>},
      {"aten.triu_indices.default", triangleIndices<false>},
  };
  return rows;
}
