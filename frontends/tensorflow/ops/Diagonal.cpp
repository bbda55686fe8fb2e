// Diagonals of matrices.
#include "frontends/common/Diagnostic.h"
#include "frontends/common/builders/Shape.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/ops/Num.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::Predicate;
using llvm::LogicalResult;
using llvm::StringRef;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// Diagonals `low` to `high` of a matrix, numbered to the right of the main
/// one, and how they lie in a tensor [high - low + 1, length], from `high` on.
struct Band {
  int64_t low = 0, high = 0;
  /// Whether shorter diagonals than the longest begin at the left, of those
  /// above the main one and those below it.
  bool leftAbove = true, leftBelow = true;
  AffineExpr rows, columns, length;

  int64_t count() const { return high - low + 1; }
};
} // namespace

/// Numbers of diagonals, operand `k` if there is one, and how they lie.
static LogicalResult readBand(Node &n, Emitter &e, unsigned k, Band &band) {
  if (k < n.numInputs()) {
    auto given = n.constants(k);
    if (failed(given))
      return llvm::failure();
    if (given->empty() || given->size() > 2)
      return e.fail("has " + Twine(given->size()) +
                    " numbers of diagonals instead of 1 or 2");
    band.low = given->front();
    band.high = given->back();
  }
  if (band.low > band.high || band.low < -maxDimension ||
      band.high > maxDimension)
    return e.fail("has no diagonals " + Twine(band.low) + " to " +
                  Twine(band.high));
  std::string align = StringRef(n.op()).ends_with("V3")
                          ? n.text("align", "RIGHT_LEFT")
                          : "LEFT_LEFT";
  auto [above, below] = StringRef(align).split('_');
  for (StringRef side : {above, below})
    if (side != "LEFT" && side != "RIGHT")
      return e.fail("align '" + printable(align) + "' is not supported");
  band.leftAbove = above == "LEFT";
  band.leftBelow = below == "LEFT";
  return llvm::success();
}

/// The length of the longest diagonal, of a matrix whose sizes are set.
static LogicalResult measure(Band &band, Emitter &e) {
  Symbols &symbols = e.getSymbols();
  AffineExpr down =
                 graph::simplify(band.rows + std::min<int64_t>(band.high, 0)),
             along =
                 graph::simplify(band.columns - std::max<int64_t>(band.low, 0));
  if (symbols.isAtLeast(along, down))
    band.length = down;
  else if (symbols.isAtLeast(down, along))
    band.length = along;
  else
    return e.fail("cannot tell which is less, " + symbols.toString(down) +
                      " or " + symbols.toString(along),
                  "fix these sizes with --shape");
  constexpr const char *why = "so that diagonals lie inside their matrix";
  if (!symbols.assumeAtLeast(band.rows, e.number(-band.low), why) ||
      !symbols.assumeAtLeast(band.columns, e.number(band.high), why))
    return e.fail("diagonals " + Twine(band.low) + " to " + Twine(band.high) +
                      " do not lie in a matrix of " +
                      e.describe({band.rows, band.columns}),
                  "narrow the ranges with --shape");
  return llvm::success();
}

/// How long diagonal `d` is, and where it begins in its row of the band.
static std::pair<Num, Num> placeOf(const Band &band, Num d) {
  mlir::Type type = elementOf(d.value);
  auto size = [&](AffineExpr expr) { return d.of(d.e->size(expr, type)); };
  Num length = min(size(band.rows) + min(d, 0), size(band.columns) - max(d, 0));
  Num right = size(band.length) - length, zero = d.of(0.0);
  if (band.leftAbove && band.leftBelow)
    return {length, zero};
  if (band.leftAbove)
    return {length, select(d < 0, right, zero)};
  if (band.leftBelow)
    return {length, select(zero < d, right, zero)};
  return {length, right};
}

/// Elements of the last two dimensions of x, or of the last one, at `places`,
/// counted row by row.
static Value takeAt(Value x, int64_t dims, Num places, Emitter &e) {
  Exprs shape = graph::getShape(x);
  AffineExpr count = productOfSizes(llvm::ArrayRef(shape).take_back(dims), e);
  if (!count)
    return {};
  shape.truncate(shape.size() - dims);
  int64_t axis = static_cast<int64_t>(shape.size());
  shape.push_back(count);
  return e.op<graph::GatherOp>({e.reshape(x, shape), places.value},
                               e.attr("axis", axis));
}

/// Diagonals as rows, [..., count, length]; without the count of a single one.
static LogicalResult diagonalPart(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 3)) || failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  Value x = n.input(0);
  Exprs shape = graph::getShape(x);
  Band band;
  band.rows = shape[shape.size() - 2];
  band.columns = shape.back();
  if (failed(readBand(n, e, 1, band)) || failed(measure(band, e)))
    return llvm::failure();
  mlir::Type i64 = e.getBuilder().getI64Type();
  Num row = countAlong(0, 2, e.number(band.count()), i64, e),
      column = countAlong(1, 2, band.length, i64, e);
  Num d = row.of(double(band.high)) - row;
  auto [length, offset] = placeOf(band, d);
  Num at = column - offset;
  Value isInside =
      e.op<graph::AndOp>({compare(Predicate::ge, at, at.of(0.0)), at < length});
  Num columns = at.of(e.size(band.columns, i64));
  Num place = (max(at.of(0.0) - d, 0) + at) * columns + max(d, 0) + at;
  Value taken = takeAt(x, 2, select(isInside, place, 0), e);
  Value fill =
      n.has(2) ? e.reshape(n.input(2), {}) : e.scalar(int64_t(0), elementOf(x));
  Value y = e.select(isInside, taken, fill);
  shape.truncate(shape.size() - 2);
  if (band.count() != 1)
    shape.push_back(e.number(band.count()));
  shape.push_back(band.length);
  return n.yield(e.reshape(y, shape));
}

/// `around` with diagonals as operand `from` has them.
static Value putDiagonals(Node &n, Emitter &e, unsigned from, const Band &band,
                          Value around) {
  Value given = n.input(from);
  Exprs shape = graph::getShape(given);
  bool isSingle = band.count() == 1;
  if (!e.agree(shape.back(), band.length,
               "has the longest diagonal's length") ||
      (!isSingle && (shape.size() < 2 ||
                     !e.agree(shape[shape.size() - 2], e.number(band.count()),
                              "has a row for each diagonal"))))
    return e.fail(e.describe(given.getType()) + " are not diagonals " +
                  Twine(band.low) + " to " + Twine(band.high) +
                  " of a matrix of " + e.describe({band.rows, band.columns}));
  mlir::Type i64 = e.getBuilder().getI64Type();
  Num row = countAlong(0, 2, band.rows, i64, e),
      column = countAlong(1, 2, band.columns, i64, e);
  Num d = column - row;
  Value isInside =
      e.op<graph::AndOp>({compare(Predicate::ge, d, d.of(double(band.low))),
                          compare(Predicate::le, d, d.of(double(band.high)))});
  Num length = d.of(e.size(band.length, i64));
  Num place = (d.of(double(band.high)) - d) * length + placeOf(band, d).second +
              min(row, column);
  Value taken = takeAt(given, isSingle ? 1 : 2, select(isInside, place, 0), e);
  return e.select(isInside, taken, around);
}

static LogicalResult setDiagonals(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 3)) || failed(n.needsRank(0, 2, 32)) ||
      failed(n.needsRank(1, 1, 32)))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0));
  Band band;
  band.rows = shape[shape.size() - 2];
  band.columns = shape.back();
  if (failed(readBand(n, e, 2, band)) || failed(measure(band, e)))
    return llvm::failure();
  int64_t rank = rankOf(n.input(0)) - (band.count() == 1);
  if (failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  return n.yield(putDiagonals(n, e, 1, band, n.input(0)));
}

/// Matrices of diagonals and, around them, one value.
static LogicalResult fromDiagonals(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 5)) || failed(n.needsRank(0, 1, 32)))
    return llvm::failure();
  Band band;
  if (failed(readBand(n, e, 1, band)))
    return llvm::failure();
  int64_t given[] = {-1, -1};
  for (unsigned i : {0, 1})
    if (n.has(i + 2)) {
      auto size = n.constantInteger(i + 2);
      if (failed(size))
        return llvm::failure();
      given[i] = *size;
    }
  // As large as the diagonals need it; square, if nothing is said.
  AffineExpr longest = graph::getShape(n.input(0)).back();
  int64_t below = -std::min<int64_t>(band.high, 0),
          above = std::max<int64_t>(band.low, 0);
  if (given[0] == -1 && given[1] == -1)
    below = above = std::max(below, above);
  for (int64_t size : given)
    if (size < -1 || size > maxDimension)
      return e.fail("a matrix of " + Twine(given[0]) + " rows and " +
                    Twine(given[1]) + " columns is not supported");
  band.rows =
      given[0] == -1 ? graph::simplify(longest + below) : e.number(given[0]);
  band.columns =
      given[1] == -1 ? graph::simplify(longest + above) : e.number(given[1]);
  if (failed(measure(band, e)))
    return llvm::failure();
  Value fill = n.has(4) ? e.reshape(n.input(4), {})
                        : e.scalar(int64_t(0), elementOf(n.input(0)));
  return n.yield(putDiagonals(n, e, 0, band, fill));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::diagonalRows() {
  static const Row rows[] = {
      ofParts({"MatrixDiag", fromDiagonals}),
      // These say which diagonals they are about.
      ofParts({"MatrixDiagV2", fromDiagonals}),
      ofParts({"MatrixDiagV3", fromDiagonals}),
      ofParts({"MatrixDiagPart", diagonalPart}),
      ofParts({"MatrixDiagPartV2", diagonalPart}),
      ofParts({"MatrixDiagPartV3", diagonalPart}),
      ofParts({"MatrixSetDiag", setDiagonals}),
      ofParts({"MatrixSetDiagV2", setDiagonals}),
      ofParts({"MatrixSetDiagV3", setDiagonals}),
  };
  return rows;
}
