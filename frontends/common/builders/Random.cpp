#include "frontends/common/builders/Random.h"
#include "frontends/common/builders/Sequence.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using mlir::Value;

/// The finalizer of SplitMix64: neighbours become far apart.
static uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t charonia::frontend::drawStream(std::optional<double> seed,
                                        Emitter &e) {
  uint64_t place = e.nextStream();
  if (!seed)
    e.note("draws the same numbers in each run of the engine, as it has no "
           "state; give them to the model as an input where they should "
           "differ");
  return scramble(scramble(seed ? llvm::bit_cast<uint64_t>(*seed) : 0) ^ place);
}

/// 32 random bits for each element: its number goes through two rounds of a
/// hash that changes half of the bits with any bit.
static Value randomBits(llvm::ArrayRef<mlir::AffineExpr> dims, uint64_t stream,
                        Emitter &e) {
  mlir::AffineExpr count = productOf(dims, e.getContext());
  if (!count)
    return e.fail("the number of elements is absurdly large");
  mlir::Type word =
      mlir::IntegerType::get(e.getContext(), 32, mlir::IntegerType::Unsigned);
  auto number = [&](uint64_t value) {
    return e.scalar(static_cast<int64_t>(value & 0xffffffff), word);
  };
  auto shifted = [&](Value x, int by) {
    return e.op<graph::XorOp>({x, e.op<graph::ShrOp>({x, number(by)})});
  };
  Value x = e.cast(e.iota({count}, 0, e.getBuilder().getI64Type()), word);
  for (uint64_t key : {stream, stream >> 32}) {
    x = e.op<graph::XorOp>({x, number(key)});
    x = e.mul(shifted(x, 16), number(0x7feb352d));
    x = e.mul(shifted(x, 15), number(0x846ca68b));
    x = shifted(x, 16);
  }
  return e.reshape(x, dims);
}

/// The upper 24 bits, as whole numbers.
static Value upperBits(llvm::ArrayRef<mlir::AffineExpr> dims, uint64_t stream,
                       Emitter &e) {
  Value bits = randomBits(dims, stream, e);
  return e.cast(
      e.op<graph::ShrOp>({bits, e.scalar(int64_t(8), elementOf(bits))}),
      e.getBuilder().getF32Type());
}

Value charonia::frontend::buildUniform(llvm::ArrayRef<mlir::AffineExpr> dims,
                                       uint64_t stream, mlir::FloatType element,
                                       Emitter &e) {
  constexpr int most = 24;
  int bits = std::min<int>(element.getFPMantissaWidth(), most);
  Value whole = upperBits(dims, stream, e);
  mlir::Type type = elementOf(whole);
  if (bits < most)
    whole = e.op<graph::FloorOp>(
        {e.mul(whole, e.scalar(std::ldexp(1.0, bits - most), type))});
  return e.mul(whole, e.scalar(std::ldexp(1.0, -bits), type));
}

/// Box and Muller: a radius whose logarithm is of no 0, and an angle.
Value charonia::frontend::buildNormal(llvm::ArrayRef<mlir::AffineExpr> dims,
                                      uint64_t stream, Emitter &e) {
  mlir::FloatType f32 = e.getBuilder().getF32Type();
  Value one = e.scalar(1.0, f32);
  Value away =
      e.mul(e.add(upperBits(dims, stream, e), one), e.scalar(0x1p-24, f32));
  Value radius = e.op<graph::SqrtOp>(
      {e.mul(e.op<graph::LogOp>({away}), e.scalar(-2.0, f32))});
  Value angle = e.mul(buildUniform(dims, scramble(stream), f32, e),
                      e.scalar(2 * M_PI, f32));
  return e.mul(radius, e.op<graph::CosOp>({angle}));
}

Value charonia::frontend::buildMultinomial(Value x, int64_t samples,
                                           uint64_t stream, mlir::Type element,
                                           Emitter &e) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value wide = e.cast(x, e.getBuilder().getF32Type());
  Value below = buildCumulative(
      e.op<graph::SoftmaxOp>({wide}, e.attr("axis", int64_t(1))),
      graph::ReduceKind::sum, 1, false, false, e);
  if (!below)
    return {};
  // As many classes lie below a number as its own class says.
  Exprs rows = graph::getShape(x);
  mlir::AffineExpr one = e.number(1), classes = rows[1];
  Value all = e.slice(below, {e.number(0), graph::simplify(classes - 1)},
                      {1, 1}, {rows[0], one});
  Value drawn = e.mul(buildUniform({rows[0], e.number(samples)}, stream,
                                   e.getBuilder().getF32Type(), e),
                      all);
  Value isBelow =
      e.compare(graph::Predicate::le, e.reshape(below, {rows[0], one, classes}),
                e.reshape(drawn, {rows[0], e.number(samples), one}));
  Value found = e.reduce(graph::ReduceKind::sum, e.cast(isBelow, i64), {2},
                         /*keepdims=*/false);
  // A product may round up to the sum of all.
  return e.cast(e.min(found, e.size(graph::simplify(classes - 1), i64)),
                element);
}
