#include "frontends/common/builders/Sampling.h"

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// One element along an axis that a sample is made of: its index, and its
/// weight in float, null for 1.
struct Tap {
  Value index, weight;
};

/// One spatial axis of a GridSample; numbers are tensors of float.
class SampledAxis {
public:
  SampledAxis(Emitter &e, AffineExpr size, mlir::Type element,
              SamplePadding padding, bool align)
      : e(e), element(element), padding(padding), size(e.size(size, element)),
        last(e.sub(this->size, number(1))), low(number(align ? 0 : -0.5)),
        high(align ? last : e.sub(this->size, number(0.5))), align(align) {}

  /// From [-1, 1] to positions along the axis.
  Value position(Value x) const {
    Value shifted = e.add(x, number(1));
    return align ? e.mul(e.mul(shifted, number(0.5)), last)
                 : e.mul(e.sub(e.mul(shifted, size), number(1)), number(0.5));
  }
  /// Positions outside of the borders are moved as the padding says.
  Value moved(Value x) const {
    if (padding == SamplePadding::zeros)
      return x;
    Value outside = e.op<graph::OrOp>(
        {e.compare(Predicate::lt, x, low), e.compare(Predicate::gt, x, high)});
    return e.select(
        outside, padding == SamplePadding::border ? clamped(x) : reflected(x),
        x);
  }
  /// The element at a whole position.
  Tap tap(Value x, Value weight) const {
    if (padding == SamplePadding::zeros) {
      Value inside = e.op<graph::AndOp>({e.compare(Predicate::ge, x, number(0)),
                                         e.compare(Predicate::le, x, last)});
      weight = e.select(inside, weight ? weight : number(1), number(0));
    } else if (padding == SamplePadding::reflection) {
      x = reflected(x);
    }
    return {e.cast(clamped(x), e.getBuilder().getI64Type()), weight};
  }
  SmallVector<Tap> taps(Value x, graph::ResizeMode mode) const {
    if (mode == graph::ResizeMode::nearest)
      return {tap(moved(e.op<graph::RoundOp>({x})), {})};
    // Of cubic samples, as PyTorch and ONNX Runtime have it, only the elements.
    if (mode == graph::ResizeMode::linear)
      x = moved(x);
    Value base = e.op<graph::FloorOp>({x}), t = e.sub(x, base);
    Value u = e.sub(number(1), t);
    auto at = [&](double by, Value weight) {
      return tap(e.add(base, number(by)), weight);
    };
    if (mode == graph::ResizeMode::linear)
      return {at(0, u), at(1, t)};
    return {at(-1, far(e.add(t, number(1)))), at(0, near(t)), at(1, near(u)),
            at(2, far(e.add(u, number(1))))};
  }

private:
  Value number(double value) const { return e.scalar(value, element); }
  Value clamped(Value x) const { return e.min(e.max(x, number(0)), last); }
  /// Back and forth between the borders.
  Value reflected(Value x) const {
    Value span = e.max(e.sub(high, low), number(1e-6));
    Value period = e.add(span, span);
    Value t = e.op<graph::FmodOp>({e.sub(x, low), period});
    t = e.select(e.compare(Predicate::lt, t, number(0)), e.add(t, period), t);
    t = e.select(e.compare(Predicate::gt, t, span), e.sub(period, t), t);
    return e.add(t, low);
  }
  // Cubic convolution with the coefficient -0.75, at distances below and
  // over 1.
  Value near(Value d) const {
    Value p = e.sub(e.mul(number(1.25), d), number(2.25));
    return e.add(e.mul(e.mul(p, d), d), number(1));
  }
  Value far(Value d) const {
    Value p = e.add(e.mul(number(-0.75), d), number(3.75));
    return e.add(e.mul(e.sub(e.mul(p, d), number(6)), d), number(3));
  }

  Emitter &e;
  mlir::Type element;
  SamplePadding padding;
  Value size, last, low, high;
  bool align;
};
} // namespace

Value charonia::frontend::buildGridSample(Value x, Value grid,
                                          graph::ResizeMode mode,
                                          SamplePadding padding, bool align,
                                          Emitter &e) {
  if (!x || !grid)
    return {};
  Exprs shape = graph::getShape(x), out = graph::getShape(grid);
  int64_t rank = shape.size(), spatial = rank - 2;
  if (mode == graph::ResizeMode::cubic && spatial > 2)
    return e.fail("cubic sampling in 3 dimensions is not supported");
  if (out.back() != e.number(spatial) ||
      !e.agree(out.front(), shape.front(), "samples within a batch"))
    return e.fail("a grid of " + e.describe(grid.getType()) +
                  " does not fit the input, " + e.describe(x.getType()));
  Value wide = e.widen(grid);
  if (!wide)
    return {};
  // [N, D..., C], so that a sample takes all channels at once.
  SmallVector<int64_t> last{0}, back{0, rank - 1};
  for (int64_t d = 0; d < spatial; ++d) {
    last.push_back(d + 2);
    back.push_back(d + 1);
  }
  last.push_back(1);
  Value pixels = e.transpose(x, last);
  Exprs tuple = out, weighted = out;
  tuple.back() = weighted.back() = e.number(1);
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t d = 0; d < spatial; ++d) {
    // The grid names the innermost axis first.
    Exprs starts(rank, e.number(0));
    starts.back() = e.number(spatial - 1 - d);
    Value part = e.slice(wide, starts, SmallVector<int64_t>(rank, 1), tuple);
    SampledAxis axis(e, shape[d + 2], elementOf(wide), padding, align);
    taps.push_back(axis.taps(axis.position(part), mode));
  }
  SmallVector<size_t> at(spatial, 0);
  Value sum;
  for (;;) {
    Values indices;
    Value weight;
    for (int64_t d = 0; d < spatial; ++d) {
      const Tap &tap = taps[d][at[d]];
      indices.push_back(tap.index);
      if (tap.weight)
        weight = weight ? e.mul(weight, tap.weight) : tap.weight;
    }
    Value sample =
        e.op<graph::GatherNDOp>({pixels, e.concat(indices, rank - 1)},
                                e.attr("batch_dims", int64_t(1)));
    if (weight)
      sample = e.mul(e.cast(e.widen(sample), elementOf(wide)), weight);
    sum = sum ? e.add(sum, sample) : sample;
    int64_t d = spatial - 1;
    while (d >= 0 && ++at[d] == taps[d].size())
      at[d--] = 0;
    if (d < 0 || !sum)
      break;
  }
  return e.cast(e.transpose(sum, back), elementOf(x));
}
