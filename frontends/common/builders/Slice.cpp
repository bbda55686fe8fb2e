#include "frontends/common/builders/Slice.h"
#include "frontends/common/SizeCases.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// Finds where a slice begins and ends along one dimension of `size` elements.
/// Ends are clamped to the dimension: their order is proved, or assumed by
/// limiting a size whose range nobody declared, or a size is defined that is
/// the larger or smaller one.
class Cut {
public:
  Cut(Emitter &e, AffineExpr size)
      : e(e), symbols(e.getSymbols()), size(size) {}

  /// `end` clamped into [low, size + high], where `low` and `high` are -1 or 0;
  /// null where it cannot be told. Where a tensor has no inside it is the upper
  /// one.
  AffineExpr clamp(AffineExpr end, int64_t low, int64_t high) {
    AffineExpr last = graph::simplify(size + high);
    if (symbols.isAtLeast(last, e.number(low)))
      return clampInside(end, low, high);
    // size + end is size + high.
    if (end == e.number(high) && high < 0)
      return last;
    AffineExpr place = clampInside(end, low, high);
    if (!place || symbols.isAtLeast(last, place))
      return place;
    return defined(largerOf(symbols, place, last, false), place, last);
  }

  /// Elements from `from`, `step` apart, up to but without `to`.
  AffineExpr count(AffineExpr from, AffineExpr to, int64_t step) {
    AffineExpr span = graph::simplify(step > 0 ? to - from : from - to),
               zero = e.number(0);
    if (symbols.isAtLeast(zero, span))
      return zero;
    if (!symbols.isAtLeast(span, zero) &&
        (isComputed(span) ||
         !symbols.assumeAtLeast(
             span, zero, "so that a slice does not end before it starts"))) {
      span = defined(largerOf(symbols, span, zero, true), from, to);
      if (!span)
        return {};
      // Both bounds are clamped.
      symbols.learnAtLeast(graph::simplify(step > 0 ? size - from : from + 1),
                           span);
    }
    int64_t magnitude = step > 0 ? step : -step;
    return graph::simplify(span.ceilDiv(magnitude));
  }

private:
  /// The same where low <= size + high.
  AffineExpr clampInside(AffineExpr end, int64_t low, int64_t high) {
    AffineExpr last = graph::simplify(size + high), first = e.number(low),
               zero = e.number(0);
    // Counted from the end?
    auto known = graph::constantOf(end);
    // How models say "to the end", whatever size that is.
    constexpr int64_t farthest = std::numeric_limits<int32_t>::max();
    if (known && *known >= farthest)
      return last;
    if (known && *known <= -farthest)
      return first;
    if (known ? *known < 0 : !symbols.isAtLeast(end, zero)) {
      if (!known && !symbols.isAtLeast(e.number(-1), end))
        return clampEither(end, first, last);
      end = graph::simplify(end + size);
      if (symbols.isAtLeast(first, end))
        return first;
      if (symbols.isAtLeast(end, first))
        return end;
      if (known && isFar(-*known, size) && mayAssume(end) &&
          symbols.assumeAtLeast(first, end, "so that a slice takes all"))
        return first;
      if (mayAssume(end) &&
          symbols.assumeAtLeast(end, first,
                                "so that a slice starts inside its tensor"))
        return end;
      return defined(largerOf(symbols, end, first, true), end, first);
    }
    if (symbols.isAtLeast(end, last))
      return last;
    if (symbols.isAtLeast(last, end))
      return end;
    if (known && isFar(*known, last) && mayAssume(end) &&
        symbols.assumeAtLeast(end, last, "so that a slice takes all"))
      return last;
    if (mayAssume(end) &&
        symbols.assumeAtLeast(last, end,
                              "so that a slice ends inside its tensor"))
      return end;
    return defined(largerOf(symbols, end, last, false), end, last);
  }

  /// Whether more of a size's range lies before a distance than behind it, so
  /// that "to the end" is meant, or "from the start" where it counts from the
  /// end: 1000000 of sizes up to 2^20.
  bool isFar(int64_t distance, AffineExpr last) {
    graph::Interval range = symbols.bounds(last);
    return range.isBounded() && distance - range.low > range.high - distance;
  }
  /// Whether a bound may be assumed to lie inside. Where it is computed, or the
  /// dimension is, it is clamped when shapes are bound.
  bool mayAssume(AffineExpr bound) {
    return !isComputed(bound) && !symbols.namesDefined(size);
  }
  /// Whether a bound is more than a size and some.
  bool isComputed(AffineExpr bound) {
    bool result = symbols.namesDefined(bound);
    bound.walk([&](AffineExpr part) {
      result |= part.getKind() == mlir::AffineExprKind::Mod ||
                part.getKind() == mlir::AffineExprKind::FloorDiv ||
                part.getKind() == mlir::AffineExprKind::CeilDiv;
    });
    return result;
  }
  /// `end`, which counts from the end where it is negative.
  AffineExpr clampEither(AffineExpr end, AffineExpr first, AffineExpr last) {
    AffineExpr isNegative =
        truthOf(symbols, graph::Predicate::lt, end, e.number(0));
    AffineExpr place = isNegative ? choiceOf(symbols, isNegative,
                                             graph::simplify(end + size), end)
                                  : AffineExpr();
    if (place)
      place = largerOf(symbols, place, first, true);
    if (place)
      place = largerOf(symbols, place, last, false);
    return place ? place
                 : e.fail("cannot tell whether " + symbols.toString(end) +
                              " counts from the end",
                          "narrow the range of " + symbols.describeRanges(end) +
                              " with --shape");
  }
  AffineExpr defined(AffineExpr result, AffineExpr a, AffineExpr b) {
    return result ? result : ambiguous(a, b);
  }
  AffineExpr ambiguous(AffineExpr a, AffineExpr b) {
    return e.fail("cannot tell which is larger, " + symbols.toString(a) +
                      " or " + symbols.toString(b) + ", for " +
                      symbols.describeRanges(a - b),
                  "narrow the ranges with --shape so that one of them is");
  }

  Emitter &e;
  Symbols &symbols;
  AffineExpr size;
};
} // namespace

SliceRange charonia::frontend::cutSlice(AffineExpr start, AffineExpr end,
                                        int64_t step, AffineExpr size,
                                        Emitter &e, bool startsInside) {
  if (size == e.number(0))
    return {e.number(0), e.number(0), 1};
  // Beyond any size one element is left.
  step = std::clamp<int64_t>(step, -maxDimension, maxDimension);
  Cut cut(e, size);
  bool forward = step > 0;
  AffineExpr first =
      cut.clamp(start, forward || startsInside ? 0 : -1, forward ? 0 : -1);
  AffineExpr last =
      first ? cut.clamp(end, forward ? 0 : -1, forward ? 0 : -1) : first;
  AffineExpr count = last ? cut.count(first, last, step) : last;
  if (!count)
    return {};
  if (count == e.number(0))
    return {e.number(0), count, 1};
  return {first, count, step};
}

Value charonia::frontend::sliceAlong(Value value, int64_t axis,
                                     const SliceRange &range, Emitter &e) {
  if (!value || !range.count)
    return {};
  Exprs dims = graph::getShape(value);
  Exprs starts = e.numbers(SmallVector<int64_t>(dims.size(), 0));
  SmallVector<int64_t> steps(dims.size(), 1);
  starts[axis] = range.start;
  steps[axis] = range.step;
  dims[axis] = range.count;
  return e.slice(value, starts, steps, dims);
}

Value charonia::frontend::buildRoll(Value x, AffineExpr shift, int64_t axis,
                                    Emitter &e) {
  if (!x)
    return {};
  AffineExpr size = graph::getShape(x)[axis];
  Symbols &symbols = e.getSymbols();
  auto known = graph::constantOf(size), by = graph::constantOf(shift);
  if (known == 0)
    return x;
  // What ends up in front starts here.
  AffineExpr cut;
  if (known && by)
    cut = e.number(((-*by % *known) + *known) % *known);
  else if (symbols.isAtLeast(shift, e.number(0)) &&
           symbols.isAtLeast(size, shift))
    cut = graph::simplify(size - shift);
  else if (symbols.isAtLeast(e.number(0), shift) &&
           symbols.isAtLeast(graph::simplify(size + shift), e.number(0)))
    cut = graph::simplify(-shift);
  if (cut)
    return cut == e.number(0)
               ? x
               : e.concat({sliceAlong(x, axis,
                                      {cut, graph::simplify(size - cut), 1}, e),
                           sliceAlong(x, axis, {e.number(0), cut, 1}, e)},
                          axis);
  // By more than some sizes: round and round.
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value from = e.sub(e.iota({size}, 0, i64), e.size(shift, i64));
  Value place = e.op<graph::ModOp>({from, e.size(size, i64)});
  return e.op<graph::GatherOp>({x, place}, e.attr("axis", axis));
}
