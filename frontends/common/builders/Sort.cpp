#include "frontends/common/builders/Sort.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using graph::ReduceKind;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// An element's place among the others is the number of those in front of it:
/// larger ones (or smaller ones), and equal ones that come first. Quadratic in
/// the length, but it fuses, and constants fold.
static Value countBefore(const Selection &s, Emitter &e) {
  Exprs shape = graph::getShape(s.x);
  int64_t rank = shape.size(), axis = s.axis;
  AffineExpr length = shape[axis];
  // Element i is compared with all j: [.., i, j, ..].
  Exprs byRow = shape, byColumn = shape, square(rank + 1, e.number(1));
  byRow.insert(byRow.begin() + axis + 1, e.number(1));
  byColumn.insert(byColumn.begin() + axis, e.number(1));
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value own = e.reshape(s.x, byRow), other = e.reshape(s.x, byColumn);
  Exprs along = square, across = square;
  along[axis] = length;
  across[axis + 1] = length;
  Value i = e.iota(along, axis, i64), j = e.iota(across, axis + 1, i64);
  Value before =
      e.compare(s.largest ? Predicate::gt : Predicate::lt, other, own);
  Value tie = e.op<graph::AndOp>(
      {e.compare(Predicate::eq, other, own), e.compare(Predicate::lt, j, i)});
  if (isFloat(s.x)) {
    // NaN is larger than all others, and equal to itself.
    Value ownIs = e.op<graph::IsNanOp>({own}),
          otherIs = e.op<graph::IsNanOp>({other});
    Value larger = s.largest ? otherIs : ownIs,
          less = s.largest ? ownIs : otherIs;
    before = e.op<graph::OrOp>(
        {before, e.op<graph::AndOp>({larger, e.op<graph::NotOp>({less})})});
    tie = e.op<graph::OrOp>(
        {tie, e.op<graph::AndOp>({e.op<graph::AndOp>({ownIs, otherIs}),
                                  e.compare(Predicate::lt, j, i)})});
  }
  Value place =
      e.reduce(ReduceKind::sum, e.cast(e.op<graph::OrOp>({before, tie}), i64),
               axis + 1, false);
  // The element at place p: [.., p, i, ..].
  Exprs places(rank + 1, e.number(1)), byPlace = shape;
  places[axis] = s.count;
  byPlace.insert(byPlace.begin() + axis, e.number(1));
  Value hit = e.compare(Predicate::eq, e.reshape(place, byPlace),
                        e.iota(places, axis, i64));
  Value index =
      e.select(hit, e.iota(across, axis + 1, i64), e.scalar(int64_t(0), i64));
  return e.reduce(ReduceKind::sum, index, axis + 1, false);
}

/// Integers (i64) in the order of the elements; of 32 bits where `wide` is not
/// set. Zeros of both signs are equal, NaN is larger than all others.
static Value orderedKeys(Value x, bool &wide, Emitter &e) {
  mlir::Builder &b = e.getBuilder();
  mlir::Type element = elementOf(x), i64 = b.getI64Type();
  if (!element)
    return {};
  unsigned bits = element.getIntOrFloatBitWidth();
  wide = bits > 32;
  if (!isFloat(x)) {
    // Signless 64-bit numbers are signed.
    if (!element.isUnsignedInteger())
      return e.cast(x, i64);
    if (!wide)
      return e.sub(e.cast(x, i64), e.scalar(int64_t(1) << 31, i64));
    return e.op<graph::XorOp>(
        {e.cast(x, i64), e.scalar(std::numeric_limits<int64_t>::min(), i64)});
  }
  if (!wide) {
    x = e.cast(x, b.getF32Type());
    element = b.getF32Type();
  }
  mlir::Type integer = b.getIntegerType(wide ? 64 : 32);
  int64_t most = wide ? std::numeric_limits<int64_t>::max()
                      : std::numeric_limits<int32_t>::max();
  Value zero = e.scalar(0.0, element);
  x = e.select(e.compare(Predicate::eq, x, zero), zero, x);
  Value own =
      e.op<graph::BitcastOp>({x}, e.attr("to", mlir::TypeAttr::get(integer)));
  // The magnitude of negative numbers falls.
  Value key =
      e.select(e.compare(Predicate::lt, own, e.scalar(int64_t(0), integer)),
               e.op<graph::XorOp>({own, e.scalar(most, integer)}), own);
  key = e.select(e.op<graph::IsNanOp>({x}), e.scalar(most, integer), key);
  return e.cast(key, i64);
}

/// Positions of the first `count` elements in order: each key is sorted with
/// its position behind it, which decides between equal ones.
static Value sortedPositions(Value keys, AffineExpr count, Emitter &e) {
  Exprs shape = graph::getShape(keys), kept = shape;
  int64_t last = shape.size() - 1;
  kept[last] = count;
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs along(shape.size(), e.number(1));
  along[last] = shape[last];
  Value sorted = e.op<graph::SortOp>({e.add(keys, e.iota(along, last, i64))},
                                     e.map("count", {count}));
  sorted = e.slice(sorted, Exprs(shape.size(), e.number(0)),
                   SmallVector<int64_t>(shape.size(), 1), kept);
  return e.op<graph::AndOp>({sorted, e.scalar(int64_t(0xffffffff), i64)});
}

static Value sortAll(const Selection &s, Emitter &e) {
  int64_t rank = rankOf(s.x);
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank)),
                       back = order;
  order.erase(order.begin() + s.axis);
  order.push_back(s.axis);
  back.pop_back();
  back.insert(back.begin() + s.axis, rank - 1);
  bool wide = false;
  Value keys = orderedKeys(e.transpose(s.x, order), wide, e);
  if (!keys)
    return {};
  if (s.largest)
    keys = e.op<graph::NotOp>({keys});
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value shift = e.scalar(int64_t(1) << 32, i64);
  if (!wide)
    return e.transpose(sortedPositions(e.mul(keys, shift), s.count, e), back);
  // By the low halves first; those with equal high halves keep that order.
  Value low = e.op<graph::AndOp>({keys, e.scalar(int64_t(0xffffffff), i64)});
  Value signedLow = e.sub(low, e.scalar(int64_t(1) << 31, i64));
  Value byLow =
      sortedPositions(e.mul(signedLow, shift), graph::getShape(s.x)[s.axis], e);
  auto along = e.attr("axis", rank - 1);
  Value high = e.op<graph::GatherElementsOp>({e.sub(keys, low), byLow}, along);
  Value places = sortedPositions(high, s.count, e);
  return e.transpose(e.op<graph::GatherElementsOp>({byLow, places}, along),
                     back);
}

Value charonia::frontend::selectPositions(const Selection &s, Emitter &e) {
  if (!s.x || !s.count)
    return {};
  AffineExpr length = graph::getShape(s.x)[s.axis];
  if (!e.getSymbols().assumeAtLeast(length, s.count,
                                    "so that there are k elements"))
    return e.fail("cannot choose " + e.getSymbols().toString(s.count) +
                  " elements of " + e.getSymbols().toString(length));
  constexpr int64_t shortRow = 16;
  auto known = graph::constantOf(length);
  return known && *known <= shortRow ? countBefore(s, e) : sortAll(s, e);
}
