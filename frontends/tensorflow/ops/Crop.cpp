// Regions of images, resized.
#include "frontends/common/builders/Slice.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/ops/Num.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// Places along one dimension of an image, [regions, count].
struct Line {
  Num place, last;
  Value isInside() const {
    Emitter &e = *place.e;
    return e.op<graph::AndOp>(
        {compare(graph::Predicate::ge, place, place.of(0.0)),
         compare(graph::Predicate::le, place, last)});
  }
  /// The numbers of elements that are read; of places outside any.
  Num element(Num at) const { return max(min(at, last), 0); }
};

class Cropper {
public:
  Cropper(Node &n, Emitter &e, Exprs crop)
      : n(n), e(e), crop(std::move(crop)), f32(e.getBuilder().getF32Type()),
        f64(e.getBuilder().getF64Type()), image(e.cast(n.input(0), f32)),
        shape(graph::getShape(n.input(0))),
        regions(graph::getShape(n.input(1))[0]) {}
  LogicalResult run();

private:
  /// Column `i` of the regions, [regions, 1].
  Num bound(int64_t i) {
    Value column = sliceAlong(n.input(1), 1, {e.number(i), e.number(1), 1}, e);
    return {e.cast(column, f64), &e};
  }
  /// A result of one operation on floats, which is exact in float64 or as good.
  Num rounded(Num v) { return v.of(e.cast(e.cast(v.value, f32), f64)); }
  Line lineOf(unsigned dim);
  /// Elements of rows [regions, height] and columns [regions, width]:
  /// [regions, height, width, channels].
  Num at(Num rows, Num columns);
  /// Of [regions, count]: [regions, count, 1, trailing] or [regions, 1, count,
  /// trailing].
  Value spread(Value v, unsigned dim, bool trails);

  Node &n;
  Emitter &e;
  Exprs crop;
  mlir::Type f32, f64;
  Value image;
  Exprs shape;
  AffineExpr regions;
};
} // namespace

/// As TensorFlow computes places, with every result a float: a unit in the last
/// place decides which element is the nearest, and what lies outside.
Line Cropper::lineOf(unsigned dim) {
  Num low = bound(dim), high = bound(dim + 2);
  Num last = low.of(e.size(graph::simplify(shape[dim + 1] - 1), f64));
  // A single one lies in the middle.
  Num middle = rounded(rounded(low + high) * 0.5 * last);
  if (crop[dim] == e.number(1))
    return {middle, last};
  Num count = low.of(e.size(graph::simplify(crop[dim] - 1), f64));
  Num step = rounded(rounded(rounded(high - low) * last) / count);
  Num along = rounded(countAlong(1, 2, crop[dim], f64, e) * step);
  Num place = rounded(rounded(low * last) + along);
  if (graph::constantOf(crop[dim]))
    return {place, last};
  return {select(compare(graph::Predicate::eq, count, count.of(0.0)), middle,
                 place),
          last};
}

Value Cropper::spread(Value v, unsigned dim, bool trails) {
  Exprs dims{regions, e.number(1), e.number(1)};
  dims[dim + 1] = crop[dim];
  if (trails)
    dims.push_back(e.number(1));
  return e.reshape(v, dims);
}

Num Cropper::at(Num rows, Num columns) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs all{regions, crop[0], crop[1], e.number(1)};
  Exprs single{regions, e.number(1), e.number(1), e.number(1)};
  Value which = e.reshape(e.cast(n.input(2), i64), single);
  Values parts = {e.broadcast(which, all)};
  parts.push_back(e.broadcast(spread(e.cast(rows.value, i64), 0, true), all));
  parts.push_back(
      e.broadcast(spread(e.cast(columns.value, i64), 1, true), all));
  return {e.op<graph::GatherNDOp>({image, e.concat(parts, 3)},
                                  e.attr("batch_dims", int64_t(0))),
          &e};
}

LogicalResult Cropper::run() {
  Line rows = lineOf(0), columns = lineOf(1);
  bool isNearest = n.text("method", "bilinear") == "nearest";
  Num result;
  if (isNearest) {
    auto nearest = [](const Line &line) {
      return line.element(apply<graph::FloorOp>(line.place + 0.5));
    };
    result = at(nearest(rows), nearest(columns));
  } else {
    Num top = apply<graph::FloorOp>(rows.place),
        left = apply<graph::FloorOp>(columns.place);
    auto part = [&](Num v, unsigned dim) -> Num {
      return {spread(e.cast(v.value, f32), dim, true), &e};
    };
    Num down = part(rows.place - top, 0), right = part(columns.place - left, 1);
    auto line = [&](Num row) {
      Num first = at(row, columns.element(left)),
          second =
              at(row, columns.element(apply<graph::CeilOp>(columns.place)));
      return first + (second - first) * right;
    };
    Num upper = line(rows.element(top)),
        lower = line(rows.element(apply<graph::CeilOp>(rows.place)));
    result = upper + (lower - upper) * down;
  }
  Value isInside = e.op<graph::AndOp>(
      {spread(rows.isInside(), 0, true), spread(columns.isInside(), 1, true)});
  return n.yield(
      select(isInside, result, n.number("extrapolation_value", 0)).value);
}

/// Of images [N, H, W, C] the regions of operand 1, (top, left, bottom, right)
/// of an image's extent, of the images that operand 2 names.
static LogicalResult cropAndResize(Node &n, Emitter &e) {
  if (failed(n.needsTensors(4, 4)) || failed(n.needsRank(0, 4, 4)) ||
      failed(n.needsRank(1, 2, 2)) || failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  auto crop = n.known(3);
  if (failed(crop))
    return llvm::failure();
  std::string method = n.text("method", "bilinear");
  Exprs boxes = graph::getShape(n.input(1));
  if (crop->size() != 2 || (method != "bilinear" && method != "nearest") ||
      !e.agree(boxes[1], e.number(4), "has four bounds of a region") ||
      !e.agree(boxes[0], graph::getShape(n.input(2))[0],
               "names an image for each region"))
    return e.fail("regions of " + e.describe(n.input(1).getType()) +
                  " by method '" + method + "' are not supported");
  return Cropper(n, e, *crop).run();
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::cropRows() {
  static const Row rows[] = {
      {"CropAndResize", cropAndResize},
  };
  return rows;
}
