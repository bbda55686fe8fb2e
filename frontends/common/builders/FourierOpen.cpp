// Transforms of a length that is known at run time alone.
//
// Element j and element n - j of a signal meet the same cosine and opposite
// sines, as do frequencies k and n - k: sums and differences of the elements
// are multiplied for half of the frequencies, a quarter of the products. Of
// these no table of n^2 / 4 angles is made: with k = block * a + b the angle of
// j k is one of j block a and one of j b, so that a signal is turned by the
// latter, once for each b, and the products with the former give all k.
#include "frontends/common/builders/FourierParts.h"
#include "frontends/common/builders/Matrix.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// Neighbours among elements and among frequencies: two registers of floats.
constexpr int64_t block = 32;

namespace {
/// Cosines and sines of the same angles.
struct Turns {
  Value cosines, sines;
};

class OpenTransform {
public:
  OpenTransform(const Fourier &how, mlir::Type element, Emitter &e)
      : e(e), element(element), length(how.length), norm(how.norm),
        half(graph::simplify(length.floorDiv(2) + 1)),
        blocks(graph::simplify(half.ceilDiv(block))) {
    makeTables();
  }
  /// Element j and its mirror image, [..., length]: the sum and the difference
  /// for j up to length / 2.
  std::pair<Value, Value> fold(Value x);
  /// [..., length / 2 + 1] times these weights: of the first element, of the
  /// others, and of that in the middle of an even length.
  Value weigh(Value x, double first, double inside, double middle);
  /// [..., length / 2 + 1] with zeros, which have no sign, at the frequencies
  /// whose sines are all 0: products with sines that are nearly 0 are not, and
  /// the phase of a real signal there would be that of rounding.
  Value withoutEnds(Value x);
  /// Sums of cosines, or of sines, times [..., length / 2 + 1]: as many.
  Value sums(Value x, bool sine);
  /// [..., length] of both halves, whose first elements are one.
  Value unfold(Value low, Value high);

private:
  void makeTables();
  Turns turns(AffineExpr rows, AffineExpr columns, int64_t apart);
  Turns combine(const Turns &a, const Turns &b,
                llvm::ArrayRef<AffineExpr> dims);
  /// The last dimension alone is cut: `count` elements, `step` apart.
  Value cut(Value x, AffineExpr start, int64_t step, AffineExpr count);
  Value padded(Value x, int64_t low, AffineExpr extent);
  Value scale();

  Emitter &e;
  mlir::Type element;
  AffineExpr length;
  double norm;
  AffineExpr half, blocks;
  /// [blocks of frequencies, elements] and [elements, block].
  Turns far, near;
};
} // namespace

/// Of angles 2 pi apart i j / length for row i and column j. Products in whole
/// periods keep them exact.
Turns OpenTransform::turns(AffineExpr rows, AffineExpr columns, int64_t apart) {
  mlir::Type i64 = e.getBuilder().getI64Type(),
             f64 = e.getBuilder().getF64Type();
  AffineExpr one = e.number(1);
  Value period = e.size(length, i64);
  Value first = e.mul(e.iota({rows, one}, 0, i64), e.scalar(apart, i64));
  Value places = e.op<graph::ModOp>({e.mul(e.op<graph::ModOp>({first, period}),
                                           e.iota({one, columns}, 1, i64)),
                                     period});
  Value angles = e.mul(e.cast(places, f64),
                       e.div(e.scalar(2 * M_PI, f64), e.cast(period, f64)));
  return {e.cast(e.op<graph::CosOp>({angles}), element),
          e.cast(e.op<graph::SinOp>({angles}), element)};
}

/// Of the sums of angles.
Turns OpenTransform::combine(const Turns &a, const Turns &b,
                             llvm::ArrayRef<AffineExpr> dims) {
  return {e.reshape(e.sub(e.mul(a.cosines, b.cosines), e.mul(a.sines, b.sines)),
                    dims),
          e.reshape(e.add(e.mul(a.sines, b.cosines), e.mul(a.cosines, b.sines)),
                    dims)};
}

void OpenTransform::makeTables() {
  AffineExpr one = e.number(1), width = e.number(block),
             elements = graph::simplify(blocks * block);
  constexpr int64_t few = 8;
  auto as = [&](const Turns &t, llvm::ArrayRef<AffineExpr> dims) {
    return Turns{e.reshape(t.cosines, dims), e.reshape(t.sines, dims)};
  };
  AffineExpr groups = e.number(block / few);
  Turns coarse = turns(blocks, blocks, block * block),
        middle = turns(blocks, width, block),
        fine = combine(as(turns(groups, width, few), {groups, one, width}),
                       turns(e.number(few), width, 1), {width, width});
  far = combine(as(coarse, {blocks, blocks, one}),
                as(middle, {blocks, one, width}), {blocks, elements});
  near = combine(as(middle, {blocks, one, width}), fine, {elements, width});
}

Value OpenTransform::cut(Value x, AffineExpr start, int64_t step,
                         AffineExpr count) {
  if (!x)
    return {};
  Exprs shape = graph::getShape(x), starts(shape.size(), e.number(0));
  SmallVector<int64_t> steps(shape.size(), 1);
  shape.back() = graph::simplify(count);
  starts.back() = graph::simplify(start);
  steps.back() = step;
  return e.slice(x, starts, steps, shape);
}

Value OpenTransform::padded(Value x, int64_t low, AffineExpr extent) {
  if (!x)
    return {};
  Exprs shape = graph::getShape(x), lows(shape.size(), e.number(0));
  lows.back() = e.number(low);
  shape.back() = extent;
  return e.pad(graph::PadMode::constant, x, e.scalar(0.0, element), lows,
               shape);
}

std::pair<Value, Value> OpenTransform::fold(Value x) {
  Value low = cut(x, e.number(0), 1, half),
        high = padded(cut(x, length - 1, -1, half - 1), 1, half);
  return {weigh(e.add(low, high), 1, 1, 0.5), e.sub(low, high)};
}

Value OpenTransform::weigh(Value x, double first, double inside,
                           double middle) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value places = e.iota({half}, 0, i64);
  auto at = [&](Value a, Value b) {
    return e.compare(graph::Predicate::eq, a, b);
  };
  auto number = [&](double v) { return e.scalar(v, element); };
  Value weights = e.select(at(e.add(places, places), e.size(length, i64)),
                           number(middle), number(inside));
  if (first != inside)
    weights =
        e.select(at(places, e.scalar(int64_t(0), i64)), number(first), weights);
  return e.mul(x, weights);
}

Value OpenTransform::withoutEnds(Value x) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value places = e.iota({half}, 0, i64);
  auto at = [&](Value a, Value b) {
    return e.compare(graph::Predicate::eq, a, b);
  };
  Value isEnd = e.op<graph::OrOp>(
      {at(e.add(places, places), e.size(length, i64)),
       at(places, e.scalar(int64_t(0), i64))});
  return e.select(isEnd, e.scalar(0.0, element), x);
}

Value OpenTransform::scale() {
  Value count = e.size(length, e.getBuilder().getF64Type());
  if (norm != 1)
    count = e.op<graph::SqrtOp>({count});
  return e.cast(e.op<graph::ReciprocalOp>({count}), element);
}

Value OpenTransform::sums(Value x, bool sine) {
  AffineExpr elements = graph::simplify(blocks * block);
  x = padded(x, 0, elements);
  if (!x)
    return {};
  Exprs shape = graph::getShape(x);
  shape.push_back(e.number(1));
  x = e.reshape(x, shape);
  Value cosines = e.mul(x, near.cosines), sines = e.mul(x, near.sines);
  auto times = [&](Value table, Value v) { return buildMatmul(table, v, e); };
  Value result =
      sine ? e.add(times(far.sines, cosines), times(far.cosines, sines))
           : e.sub(times(far.cosines, cosines), times(far.sines, sines));
  // [..., blocks, block]
  shape.pop_back();
  result = cut(e.reshape(result, shape), e.number(0), 1, half);
  return norm != 0 ? e.mul(result, scale()) : result;
}

Value OpenTransform::unfold(Value low, Value high) {
  AffineExpr others = graph::simplify((length - 1).floorDiv(2));
  // As many as there are; so written that both add up to the length.
  low = cut(low, e.number(0), 1, length - others);
  high = cut(high, others, -1, others);
  return low && high ? e.concat({low, high}, rankOf(low) - 1) : Value();
}

/// Of half of a spectrum: the signal, which is real.
static Value signalOf(Value x, int64_t parts, const Fourier &how,
                      OpenTransform &t, Emitter &e) {
  Value a = t.weigh(componentOf(x, 0, how.axis, e), 1, 2, 1);
  Value low = t.sums(a, false), high = low;
  if (parts == 2) {
    // The first imaginary part and that in the middle meet sines of 0.
    Value b = t.weigh(componentOf(x, 1, how.axis, e), 0, 2, 0),
          turned = t.sums(b, true);
    high = e.add(low, turned);
    low = e.sub(low, turned);
  }
  return t.unfold(low, high);
}

/// (a + ib)(cos - i sin), and + for the inverse.
static Values spectrumOf(Value x, int64_t parts, const Fourier &how,
                         OpenTransform &t, Emitter &e) {
  auto [even, odd] = t.fold(componentOf(x, 0, how.axis, e));
  Value real = t.sums(even, false), turned = t.sums(odd, true);
  // Of frequencies from 0 up, and from the last one down.
  std::pair<Value, Value> reals(real, real),
      imaginaries(e.op<graph::NegOp>({turned}), turned);
  if (parts == 2) {
    auto [even, odd] = t.fold(componentOf(x, 1, how.axis, e));
    Value other = t.sums(even, false), cross = t.sums(odd, true);
    reals = {e.add(real, cross), e.sub(real, cross)};
    imaginaries = {e.sub(other, turned), e.add(other, turned)};
  } else {
    imaginaries = {t.withoutEnds(imaginaries.first),
                   t.withoutEnds(imaginaries.second)};
  }
  Values results;
  for (auto [up, down] : {reals, imaginaries}) {
    if (how.inverse)
      std::swap(up, down);
    results.push_back(how.onesided ? up : t.unfold(up, down));
  }
  return results;
}

Value charonia::frontend::openTransform(Value x, int64_t parts,
                                        const Fourier &how, Emitter &e) {
  if (!e.getSymbols().assumeAtLeast(how.length, e.number(1),
                                    "so that there is something to transform"))
    return e.fail("a transform of no elements is not supported",
                  e.getSymbols().refusal());
  bool mirrored = how.inverse && how.onesided;
  AffineExpr half = graph::simplify(how.length.floorDiv(2) + 1);
  x = fitTo(x, how.axis, mirrored ? half : how.length, e);
  if (!x)
    return {};
  OpenTransform t(how, elementOf(x), e);
  Values results = mirrored ? Values{signalOf(x, parts, how, t, e)}
                            : spectrumOf(x, parts, how, t, e);
  return joinParts(results, fromEndTo(how.axis, rankOf(x) - 1), e);
}
