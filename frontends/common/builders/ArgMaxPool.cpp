// Where the largest elements of windows lie.
#include "frontends/common/builders/Slice.h"
#include "frontends/common/builders/Window.h"
#include <cmath>
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

double charonia::frontend::lowestOf(mlir::Type element) {
  if (!element || !element.isInteger())
    return -std::numeric_limits<double>::infinity();
  return element.isUnsignedInteger() || element.isInteger(1)
             ? 0
             : -std::ldexp(1.0, element.getIntOrFloatBitWidth() - 1);
}

namespace {
/// Of each row of a window first where its largest element is, then which row
/// has the largest: the first of equals in row-major order, by as many
/// comparisons as the window has rows and columns.
class ArgMaxPool {
public:
  ArgMaxPool(const Window &w, Exprs result, bool nanWins, Emitter &e)
      : w(w), result(std::move(result)), nanWins(nanWins), e(e),
        i64(e.getBuilder().getI64Type()), shape(graph::getShape(w.input)) {
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      Value low = e.scalar(w.pads[i], i64), size = e.size(extent(i), i64);
      if (!w.padded.empty()) {
        low = e.add(low, e.size(w.padded[i].low, i64));
        size = e.size(w.padded[i].size, i64);
      }
      lows.push_back(low);
      sizes.push_back(size);
    }
  }

  Value run(bool columnMajor) {
    constexpr int64_t maxExtent = 1024;
    for (int64_t k : w.kernel)
      if (k > maxExtent)
        return e.fail("places of the largest in windows of over " +
                          llvm::Twine(maxExtent) + " are not supported",
                      "export the model without them");
    best = pad();
    for (size_t i = w.kernel.size(); best && i-- > 0;)
      poolAlong(i, factor(i, columnMajor));
    return where;
  }

private:
  AffineExpr extent(size_t i) const { return shape[w.firstSpatial() + i]; }
  /// Whether windows may reach beyond the tensor along a dimension.
  bool isPadded(size_t i) const {
    return !w.padded.empty() || w.ceilMode || w.pads[i] != 0 ||
           w.pads[i + w.kernel.size()] != 0;
  }

  /// All that windows reach.
  Value pad() {
    Exprs lowers(shape.size(), e.number(0)), all = shape;
    bool changes = false;
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      if (w.pads[i] == 0 && w.pads[i + w.kernel.size()] == 0 && !w.ceilMode)
        continue;
      size_t d = w.firstSpatial() + i;
      lowers[d] = e.number(w.pads[i]);
      all[d] = graph::simplify((result[d] - 1) * w.strides[i] +
                               (w.kernel[i] - 1) * w.dilations[i] + 1);
      changes = true;
    }
    mlir::Type element = elementOf(w.input);
    return changes ? e.pad(graph::PadMode::constant, w.input,
                           e.scalar(lowestOf(element), element), lowers, all)
                   : w.input;
  }

  /// What a coordinate counts in a place.
  Value factor(size_t i, bool columnMajor) {
    Value all = e.scalar(int64_t(1), i64);
    for (size_t k = 0; k < w.kernel.size(); ++k)
      if (columnMajor ? k < i : k > i)
        all = e.mul(all, sizes[k]);
    return all;
  }

  /// Elements `p` of windows along a dimension.
  Value take(Value value, size_t d, int64_t start, int64_t step) {
    return sliceAlong(value, d, {e.number(start), result[d], step}, e);
  }

  void poolAlong(size_t i, Value factor) {
    size_t d = w.firstSpatial() + i;
    Value input = best, places = where, found;
    best = where = {};
    Exprs along(result.size(), e.number(1));
    along[d] = result[d];
    Value first = e.sub(
        e.mul(e.iota(along, d, i64), e.scalar(w.strides[i], i64)), lows[i]);
    for (int64_t p = 0; p < w.kernel[i]; ++p) {
      int64_t start = p * w.dilations[i];
      Value x = take(input, d, start, w.strides[i]);
      Value at = e.add(first, e.scalar(start, i64)), place = e.mul(at, factor);
      place = places ? e.add(take(places, d, start, w.strides[i]), place)
                     : e.broadcast(place, graph::getShape(x));
      Value inside;
      if (isPadded(i))
        inside = e.op<graph::AndOp>(
            {e.compare(Predicate::ge, at, e.scalar(int64_t(0), i64)),
             e.compare(Predicate::lt, at, sizes[i])});
      keepLarger(x, place, inside, found);
    }
  }

  /// A later element counts where it is larger than all before, or the first
  /// that is not padding.
  void keepLarger(Value x, Value place, Value inside, Value &found) {
    if (!best) {
      best = x, where = place, found = inside;
      return;
    }
    Value larger = e.compare(Predicate::gt, x, best);
    if (nanWins && isFloat(x))
      larger = e.op<graph::OrOp>({larger, e.op<graph::IsNanOp>({x})});
    if (inside) {
      Value isFirst = e.op<graph::NotOp>({found});
      larger =
          e.op<graph::AndOp>({inside, e.op<graph::OrOp>({larger, isFirst})});
      found = e.op<graph::OrOp>({found, inside});
    }
    best = e.select(larger, x, best);
    where = e.select(larger, place, where);
  }

  const Window &w;
  Exprs result;
  bool nanWins;
  Emitter &e;
  mlir::Type i64;
  Exprs shape;
  /// What comes before the tensor, and its size, by spatial dimension.
  Values lows, sizes;
  /// The largest elements of windows along the dimensions done, and their
  /// places.
  Value best, where;
};
} // namespace

Value charonia::frontend::buildArgMaxPool(const Window &w, Exprs result,
                                          PlaceOrder order, bool nanWins,
                                          Emitter &e) {
  if (!w.input || result.empty())
    return {};
  return ArgMaxPool(w, std::move(result), nanWins, e)
      .run(order == PlaceOrder::columnMajor);
}
