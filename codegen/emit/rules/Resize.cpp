// Interpolation: what lies around the coordinates of a result, weighted.
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

/// One input coordinate that an axis of a resize reads, and its weight (a tile
/// of f32 of the axes `axes`; null: 1). It may lie outside with `mayLeave`, and
/// then has no weight.
struct Tap {
  AffineExpr coordinate;
  Value weight;
  SmallVector<int64_t> axes;
  bool mayLeave = false;
};

class ResizeEmitter {
public:
  ResizeEmitter(graph::ResizeOp op, TileEmitter &e, const Demand &demand)
      : op(op), e(e), b(e.b()), demand(demand) {}

  FailureOr<Value> run() {
    SmallVector<SmallVector<Tap>> taps;
    for (unsigned i = 0; i < op.getAxes().size(); ++i)
      taps.push_back(tapsOf(i));
    coordinates = demand.coordinates;
    return sum(taps, 0);
  }

private:
  Value f32(double v, Value like) {
    return e.splat(v, b.getF32Type(), shapeOf(like));
  }
  static ArrayRef<int64_t> shapeOf(Value v) {
    return cast<RankedTensorType>(v.getType()).getShape();
  }
  template <typename Op> Value make(Value x, Value y) {
    return Op::create(b, e.loc(), x, y);
  }

  Value floatOf(AffineExpr size, Value like) {
    if (auto c = graph::constantOf(size))
      return f32(*c, like);
    Value i = arith::IndexCastOp::create(b, e.loc(), b.getI64Type(),
                                         e.materialize(size));
    Value f = arith::SIToFPOp::create(b, e.loc(), b.getF32Type(), i);
    return tile::SplatOp::create(b, e.loc(), like.getType(), f);
  }

  /// Whether the nearest element is that in which a center of the result lies:
  /// computed without moving it by half an element and back, where a product
  /// would be fused with a difference.
  bool roundsCenters() {
    return op.getByRatio() && op.getMode() == graph::ResizeMode::nearest &&
           op.getNearest() == graph::NearestMode::round_prefer_ceil &&
           op.getCoordinates() == graph::CoordinateMode::half_pixel;
  }

  /// Coordinate in the input for the result's coordinates `x` (f32); where
  /// roundsCenters(), half an element more.
  Value original(unsigned i, Value x) {
    using C = graph::CoordinateMode;
    int64_t axis = op.getAxes()[i];
    AffineExpr inSize = graph::getShape(op.getInput())[axis];
    AffineExpr outSize = graph::getShape(op.getResult())[axis];
    Value in = floatOf(inSize, x), out = floatOf(outSize, x);
    double given = op.getScales()[i];
    bool byRatio = op.getByRatio();
    Value ratio;
    if (byRatio)
      ratio = given != 0 ? f32(1 / given, x) : make<arith::DivFOp>(in, out);
    Value scale = given != 0 ? f32(given, x) : make<arith::DivFOp>(out, in);
    Value half = f32(0.5, x), one = f32(1, x), zero = f32(0, x);
    // Sizes make a half an exact half; a quotient of rounded scales would miss
    // the tie. Where nothing is rounded to nearest, the scale as
    // it is rounded decides.
    using N = graph::NearestMode;
    bool exact = given == 0 && op.getMode() == graph::ResizeMode::nearest &&
                 (op.getNearest() == N::round_prefer_floor ||
                  op.getNearest() == N::round_prefer_ceil);
    auto unscaled = [&](Value v) {
      if (byRatio)
        return make<arith::MulFOp>(v, ratio);
      return exact ? make<arith::DivFOp>(make<arith::MulFOp>(v, in), out)
                   : make<arith::DivFOp>(v, scale);
    };
    switch (op.getCoordinates()) {
    case C::asymmetric:
      return unscaled(x);
    case C::align_corners: {
      Value span = make<arith::MaximumFOp>(make<arith::SubFOp>(out, one), one);
      Value last = make<arith::SubFOp>(in, one);
      if (byRatio)
        return make<arith::MulFOp>(x, make<arith::DivFOp>(last, span));
      return make<arith::DivFOp>(make<arith::MulFOp>(x, last), span);
    }
    case C::half_pixel_symmetric: {
      Value adjust = make<arith::DivFOp>(out, make<arith::MulFOp>(scale, in));
      Value center = make<arith::MulFOp>(in, half);
      Value offset =
          make<arith::MulFOp>(center, make<arith::SubFOp>(one, adjust));
      // In this order, which decides where a coordinate is nearly whole.
      Value p =
          make<arith::AddFOp>(offset, unscaled(make<arith::AddFOp>(x, half)));
      return make<arith::SubFOp>(p, half);
    }
    default: {
      Value center = unscaled(make<arith::AddFOp>(x, half));
      if (roundsCenters())
        return center;
      Value p = make<arith::SubFOp>(center, half);
      if (op.getCoordinates() != C::half_pixel_or_zero)
        return p;
      Value wide = arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::OGT,
                                         out, one);
      return arith::SelectOp::create(b, e.loc(), wide, p, zero);
    }
    }
  }

  /// Whether places along an axis are computed in 32 bits. Of those a CPU
  /// converts many at a time, and of 64 one by one where it has no AVX-512;
  /// they hold what the tiles of short axes have past their ends, too.
  bool isShort(unsigned i) {
    constexpr int64_t longest = int64_t(1) << 21, most = int64_t(1) << 30;
    int64_t axis = op.getAxes()[i];
    auto highOf = [&](Value value) {
      return e.boundsOf(graph::getShape(value)[axis]).high;
    };
    return e.getTarget().kind == EmitTarget::Kind::Cpu &&
           highOf(op.getInput()) <= longest && highOf(op.getResult()) <= most;
  }
  Type placeType(unsigned i) {
    return isShort(i) ? b.getI32Type() : b.getI64Type();
  }
  Value toIndex(Value x) {
    return arith::IndexCastOp::create(
        b, e.loc(), e.tileType(shapeOf(x), b.getIndexType()), x);
  }
  Value toPlace(unsigned i, Value x) {
    x = arith::FPToSIOp::create(b, e.loc(),
                                e.tileType(shapeOf(x), placeType(i)), x);
    return isShort(i) ? x : toIndex(x);
  }
  /// A symbol for the elements of `index`, clamped to an axis of `n` elements.
  /// Of an axis that may be empty no more is said than that it lies in [0, n],
  /// so that whatever reads there asks: of tiles that are thrown away, too,
  /// elements are computed.
  AffineExpr clamped(Value index, AffineExpr n, ArrayRef<int64_t> axes) {
    index = make<arith::MinSIOp>(index, sizeTile(e, n - 1, index));
    index = make<arith::MaxSIOp>(index, indexConstant(e, 0, index));
    if (!getElementTypeOrSelf(index.getType()).isIndex())
      index = toIndex(index);
    return e.addTileSymbol(index, axes, e.boundsOf(n).low < 1 ? n + 1 : n);
  }

  /// By how much the axis is enlarged, if by a whole number, and each element
  /// is repeated so often: no coordinate is then near to a tie or to the next
  /// whole number, so rounding decides nothing.
  std::optional<int64_t> repeats(unsigned i) {
    using C = graph::CoordinateMode;
    using N = graph::NearestMode;
    N nearest = op.getNearest();
    bool rounds =
        nearest == N::round_prefer_floor || nearest == N::round_prefer_ceil;
    bool floors = nearest == N::floor && op.getCoordinates() == C::asymmetric;
    if (op.getMode() != graph::ResizeMode::nearest ||
        !(floors || (rounds && isCentered())))
      return std::nullopt;
    return enlargement(i, floors);
  }
  bool isCentered() {
    using C = graph::CoordinateMode;
    return op.getCoordinates() == C::half_pixel ||
           op.getCoordinates() == C::half_pixel_or_zero;
  }
  /// By how much the axis is enlarged, if by a whole number up to
  /// `mostRepeats`; with `floors` coordinates that are whole have to come out
  /// so.
  std::optional<int64_t> enlargement(unsigned i, bool floors) {
    int64_t axis = op.getAxes()[i];
    AffineExpr from = graph::getShape(op.getInput())[axis],
               to = graph::getShape(op.getResult())[axis];
    double given = op.getScales()[i];
    for (int64_t factor = 1; factor <= mostRepeats; ++factor) {
      // A coordinate times the rounded inverse of another number may end in
      // front of the whole number that it is.
      bool isExact = !op.getByRatio() || !floors || llvm::isPowerOf2_64(factor);
      if (isExact && (given == 0 || given == double(factor)) &&
          graph::simplify(to - from * factor) == 0)
        return factor;
    }
    return std::nullopt;
  }

  /// Between neighbours at known distances, where the axis is enlarged by a
  /// whole number: lanes then lie a known way apart. At the ends the neighbour
  /// that is there has all the weight.
  SmallVector<Tap> neighbours(unsigned i, int64_t factor) {
    int64_t axis = op.getAxes()[i];
    AffineExpr x = demand.coordinates[axis],
               n = graph::getShape(op.getInput())[axis];
    int64_t parts = isCentered() ? 2 * factor : factor;
    if (isCentered())
      x = x * 2 + (1 - factor);
    x = e.simplify(x, demand.tile);
    AffineExpr base = x.floorDiv(parts);
    SmallVector<int64_t> axes, extents, position(demand.rank(), -1);
    for (unsigned a = 0; a < demand.rank(); ++a)
      if (demand.tile[a] > 1 && e.dependsOnAxis(x, a)) {
        position[a] = axes.size();
        axes.push_back(a);
        extents.push_back(demand.tile[a]);
      }
    Demand moved =
        e.moveAxes({{}, demand.tile, {base, x % parts}, {}}, position, extents);
    Value rest = arith::IndexCastOp::create(
        b, e.loc(), e.tileType(extents, b.getI64Type()),
        e.emitIndex(moved.coordinates[1], extents));
    rest = arith::SIToFPOp::create(b, e.loc(),
                                   e.tileType(extents, b.getF32Type()), rest);
    Value one = f32(1, rest), zero = f32(0, rest),
          far = make<arith::DivFOp>(rest, f32(parts, rest)),
          near = make<arith::SubFOp>(one, far);
    auto choose = [&](Value mask, Value &weight, Value otherwise) {
      if (mask)
        weight = arith::SelectOp::create(b, e.loc(), mask, weight, otherwise);
    };
    AffineExpr first = moved.coordinates[0];
    Value hasNear = e.emitInBounds({{first, n}}, extents),
          hasFar = e.emitInBounds({{first + 1, n}}, extents);
    choose(hasNear, near, zero);
    choose(hasNear, far, one);
    choose(hasFar, near, one);
    choose(hasFar, far, zero);
    return {{base, near, axes, true}, {base + 1, far, axes, true}};
  }

  SmallVector<Tap> tapsOf(unsigned i) {
    using N = graph::NearestMode;
    int64_t axis = op.getAxes()[i];
    if (std::optional<int64_t> factor = repeats(i))
      return {{demand.coordinates[axis].floorDiv(*factor), {}, {}}};
    if (op.getMode() == graph::ResizeMode::linear &&
        e.getTarget().kind == EmitTarget::Kind::Cpu &&
        (isCentered() ||
         op.getCoordinates() == graph::CoordinateMode::asymmetric))
      if (std::optional<int64_t> factor = enlargement(i, false);
          factor && *factor > 1)
        return neighbours(i, *factor);
    AffineExpr n = graph::getShape(op.getInput())[axis];
    Value position;
    SmallVector<int64_t> axes;
    // The position is a tile over the axes that this coordinate depends on.
    AffineExpr probe =
        e.mapIndex(demand.coordinates[axis], demand.tile, {}, [&](Value x) {
          Value place = arith::IndexCastOp::create(
              b, e.loc(), e.tileType(shapeOf(x), placeType(i)), x);
          position =
              original(i, arith::SIToFPOp::create(
                              b, e.loc(),
                              e.tileType(shapeOf(x), b.getF32Type()), place));
          return x;
        });
    for (unsigned a = 0; a < demand.rank(); ++a)
      if (e.dependsOnAxis(probe, a))
        axes.push_back(a);
    SmallVector<Tap> taps;
    auto addTap = [&](Value index, Value weight) {
      taps.push_back({clamped(index, n, axes), weight, axes});
    };
    if (op.getMode() == graph::ResizeMode::nearest) {
      Value half = f32(0.5, position), r;
      switch (op.getNearest()) {
      case N::floor:
        r = math::FloorOp::create(b, e.loc(), position);
        break;
      case N::ceil:
        r = math::CeilOp::create(b, e.loc(), position);
        break;
      case N::round_prefer_floor:
        r = math::CeilOp::create(b, e.loc(),
                                 make<arith::SubFOp>(position, half));
        break;
      case N::round_prefer_ceil:
        r = math::FloorOp::create(
            b, e.loc(),
            roundsCenters() ? position : make<arith::AddFOp>(position, half));
        break;
      }
      addTap(toPlace(i, r), {});
      return taps;
    }
    Value base = math::FloorOp::create(b, e.loc(), position);
    Value t = make<arith::SubFOp>(position, base), one = f32(1, t);
    Value index = toPlace(i, base);
    auto shifted = [&](int64_t by) {
      return make<arith::AddIOp>(index, indexConstant(e, by, index));
    };
    if (op.getMode() == graph::ResizeMode::linear) {
      addTap(index, make<arith::SubFOp>(one, t));
      addTap(shifted(1), t);
      return taps;
    }
    // Cubic convolution with coefficient a: weights at distances 1+t, t, 1-t,
    // 2-t.
    double a = op.getCubicCoeff().convertToDouble();
    auto near = [&](Value d) { // ((a+2) d - (a+3)) d d + 1
      Value p = make<arith::SubFOp>(make<arith::MulFOp>(f32(a + 2, d), d),
                                    f32(a + 3, d));
      return make<arith::AddFOp>(
          make<arith::MulFOp>(make<arith::MulFOp>(p, d), d), f32(1, d));
    };
    auto far = [&](Value d) { // ((a d - 5a) d + 8a) d - 4a
      Value p =
          make<arith::SubFOp>(make<arith::MulFOp>(f32(a, d), d), f32(5 * a, d));
      p = make<arith::AddFOp>(make<arith::MulFOp>(p, d), f32(8 * a, d));
      return make<arith::SubFOp>(make<arith::MulFOp>(p, d), f32(4 * a, d));
    };
    Value u = make<arith::SubFOp>(one, t);
    SmallVector<Value> weights{far(make<arith::AddFOp>(t, one)), near(t),
                               near(u), far(make<arith::AddFOp>(u, one))};
    if (op.getExcludeOutside()) {
      Value total = f32(0, t);
      for (int64_t k = 0; k < 4; ++k) {
        Value at = shifted(k - 1);
        Value low = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sge,
                                          at, indexConstant(e, 0, at));
        Value high = arith::CmpIOp::create(
            b, e.loc(), arith::CmpIPredicate::slt, at, sizeTile(e, n, at));
        weights[k] = e.maskWith(make<arith::AndIOp>(low, high), weights[k], 0);
        total = make<arith::AddFOp>(total, weights[k]);
      }
      for (Value &w : weights)
        w = make<arith::DivFOp>(w, total);
    }
    for (int64_t k = 0; k < 4; ++k)
      addTap(shifted(k - 1), weights[k]);
    return taps;
  }

  /// Of the input; zero where guards fail, whatever computes it.
  FailureOr<Value> element() {
    FailureOr<Value> x =
        e.emit({op.getInput(), demand.tile, coordinates, guards});
    if (failed(x) || guards.empty() || isZeroOutside(*x))
      return x;
    return e.maskWith(e.emitInBounds(guards, demand.tile), *x, 0);
  }

  FailureOr<Value> sum(ArrayRef<SmallVector<Tap>> taps, unsigned i) {
    if (i == taps.size())
      return element();
    Value total;
    int64_t axis = op.getAxes()[i];
    for (const Tap &tap : taps[i]) {
      AffineExpr saved = coordinates[axis];
      coordinates[axis] = tap.coordinate;
      if (tap.mayLeave)
        guards.push_back(
            {tap.coordinate, graph::getShape(op.getInput())[axis]});
      FailureOr<Value> x = sum(taps, i + 1);
      coordinates[axis] = saved;
      if (tap.mayLeave)
        guards.pop_back();
      if (failed(x))
        return failure();
      if (!tap.weight)
        return x;
      Type element = getElementTypeOrSelf(x->getType());
      Value w = tile::BroadcastOp::create(
          b, e.loc(), e.tileType(demand.tile, b.getF32Type()), tap.weight,
          tap.axes);
      if (element.isF64())
        w = arith::ExtFOp::create(b, e.loc(), x->getType(), w);
      Value term = make<arith::MulFOp>(*x, w);
      total = total ? make<arith::AddFOp>(total, term) : term;
    }
    return total;
  }

  static constexpr int64_t mostRepeats = 16;

  graph::ResizeOp op;
  TileEmitter &e;
  OpBuilder &b;
  const Demand &demand;
  Exprs coordinates;
  SmallVector<Guard> guards;
};

FailureOr<Value> resize(graph::ResizeOp op, TileEmitter &e,
                        const Demand &demand) {
  if (op.getMode() != graph::ResizeMode::nearest &&
      !isa<FloatType>(cast<RankedTensorType>(op.getType()).getElementType()))
    return e.error(demand, "interpolation of integers is not supported; cast "
                           "to float first"),
           failure();
  return ResizeEmitter(op, e, demand).run();
}

} // namespace

void emit::registerResizeRule(MLIRContext *c) {
  graph::ResizeOp::attachInterface<Rule<graph::ResizeOp, resize>>(*c);
}
