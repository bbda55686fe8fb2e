// Elementwise operators: the same tile of each operand, then arith and math.
#include "codegen/emit/rules/Rules.h"
#include "graph/ir/Float8.h"
#include "graph/ir/FormedOps.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

namespace {

bool isFloat(Value v) {
  return isa<FloatType>(getElementTypeOrSelf(v.getType()));
}

/// The element type of a graph value, which tells unsigned integers apart.
Type graphElement(Value v) {
  return cast<RankedTensorType>(v.getType()).getElementType();
}
bool isUnsignedValue(Value v) {
  Type t = graphElement(v);
  return t.isUnsignedInteger() || t.isInteger(1);
}

/// Whether a guard says which elements of the tile are its own, on an axis of
/// the demand.
bool isOwn(TileEmitter &e, const Demand &demand, const Guard &guard) {
  auto axis = dyn_cast<AffineDimExpr>(guard.coordinate);
  return guard.own && axis &&
         llvm::any_of(demand.coordinates, [&](AffineExpr coordinate) {
           return e.dependsOnAxis(coordinate, axis.getPosition());
         });
}

/// Tiles of all operands, for the same elements. Guards only reach operators
/// that keep zero (see TileEmitter::emitZeroOutside), so they are dropped here,
/// but for those that leave a part of the tile out.
FailureOr<SmallVector<Value>> operandTiles(Operation *op, TileEmitter &e,
                                           const Demand &demand,
                                           bool keepGuards = false) {
  SmallVector<Value> tiles;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Demand d = throughMap(
        demand, cast<graph::GraphOpInterface>(op).getOperandMap(i), operand);
    if (!keepGuards)
      llvm::erase_if(d.guards, [&](const Guard &g) { return !isOwn(e, d, g); });
    FailureOr<Value> tile = e.emit(std::move(d));
    if (failed(tile))
      return failure();
    tiles.push_back(*tile);
  }
  return tiles;
}

template <typename Op, Value (*compute)(TileEmitter &, Op, ArrayRef<Value>)>
FailureOr<Value> pointwise(Op op, TileEmitter &e, const Demand &demand) {
  FailureOr<SmallVector<Value>> tiles = operandTiles(op, e, demand);
  if (failed(tiles))
    return failure();
  return compute(e, op, *tiles);
}

/// Unary operators of the math dialect, for floats.
template <typename Op, typename Math>
Value mathUnary(TileEmitter &e, Op, ArrayRef<Value> x) {
  return Math::create(e.b(), e.loc(), x[0]);
}

/// Binary operators with a float and an integer form.
template <typename Op, typename Float, typename Signed,
          typename Unsigned = Signed>
Value arithBinary(TileEmitter &e, Op op, ArrayRef<Value> x) {
  if (isFloat(x[0]))
    return Float::create(e.b(), e.loc(), x[0], x[1]);
  if (isUnsignedValue(op.getLhs()))
    return Unsigned::create(e.b(), e.loc(), x[0], x[1]);
  return Signed::create(e.b(), e.loc(), x[0], x[1]);
}

template <typename Op, typename Arith>
Value bitwise(TileEmitter &e, Op, ArrayRef<Value> x) {
  return Arith::create(e.b(), e.loc(), x[0], x[1]);
}

Value add(TileEmitter &e, Value x, Value y) {
  return arith::AddFOp::create(e.b(), e.loc(), x, y);
}
Value mul(TileEmitter &e, Value x, Value y) {
  return arith::MulFOp::create(e.b(), e.loc(), x, y);
}

Value neg(TileEmitter &e, graph::NegOp, ArrayRef<Value> x) {
  if (isFloat(x[0]))
    return arith::NegFOp::create(e.b(), e.loc(), x[0]);
  return arith::SubIOp::create(e.b(), e.loc(), e.splatLike(0, x[0]), x[0]);
}

Value abs(TileEmitter &e, graph::AbsOp op, ArrayRef<Value> x) {
  if (isFloat(x[0]))
    return math::AbsFOp::create(e.b(), e.loc(), x[0]);
  if (isUnsignedValue(op.getInput()))
    return x[0];
  Value minus =
      arith::SubIOp::create(e.b(), e.loc(), e.splatLike(0, x[0]), x[0]);
  return arith::MaxSIOp::create(e.b(), e.loc(), x[0], minus);
}

Value sign(TileEmitter &e, graph::SignOp op, ArrayRef<Value> x) {
  OpBuilder &b = e.b();
  Value zero = e.splatLike(0, x[0]), one = e.splatLike(1, x[0]);
  if (isFloat(x[0])) {
    Value up = arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::OGT,
                                     x[0], zero);
    Value down = arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::OLT,
                                       x[0], zero);
    // What is neither above nor below zero is zero or NaN, and stays.
    Value r =
        arith::SelectOp::create(b, e.loc(), down, e.splatLike(-1, x[0]), x[0]);
    return arith::SelectOp::create(b, e.loc(), up, one, r);
  }
  if (isUnsignedValue(op.getInput()))
    return arith::MinUIOp::create(b, e.loc(), x[0], one);
  Value low = arith::MaxSIOp::create(b, e.loc(), x[0], e.splatLike(-1, x[0]));
  return arith::MinSIOp::create(b, e.loc(), low, one);
}

Value bitNot(TileEmitter &e, graph::NotOp, ArrayRef<Value> x) {
  return arith::XOrIOp::create(e.b(), e.loc(), x[0], e.splatLike(-1, x[0]));
}

Value reciprocal(TileEmitter &e, graph::ReciprocalOp, ArrayRef<Value> x) {
  return arith::DivFOp::create(e.b(), e.loc(), e.splatLike(1, x[0]), x[0]);
}

Value sigmoidOf(TileEmitter &e, Value x) {
  Value minus = arith::NegFOp::create(e.b(), e.loc(), x);
  Value one = e.splatLike(1, x);
  return e.quotient(one,
                    add(e, one, math::ExpOp::create(e.b(), e.loc(), minus)));
}
Value sigmoid(TileEmitter &e, graph::SigmoidOp, ArrayRef<Value> x) {
  return sigmoidOf(e, x[0]);
}

/// gelu to 2^-22 of x, for results of 16 bits where the hardware has exp2 and
/// reciprocals: max(x, 0) - |x| erfc(|x| / sqrt 2) / 2, with erfc by Abramowitz
/// and Stegun 7.1.26.
Value geluOf16Bits(TileEmitter &e, Value x) {
  auto constant = [&](double value) { return e.splatLike(value, x); };
  // An infinite |x| times zero would be no number.
  Value size = arith::MinimumFOp::create(
      e.b(), e.loc(), math::AbsFOp::create(e.b(), e.loc(), x), constant(1e6));
  Value divisor =
      add(e, constant(1),
          mul(e, size, constant(0.3275911 * 0.70710678118654752440)));
  Value t = e.quotient(constant(1), divisor);
  Value p = constant(0.5 * 1.061405429);
  for (double c : {-1.453152027, 1.421413741, -0.284496736, 0.254829592})
    p = add(e, mul(e, p, t), constant(0.5 * c));
  Value decay = math::Exp2Op::create(
      e.b(), e.loc(),
      mul(e, mul(e, x, x), constant(-0.5 * 1.44269504088896340736)));
  Value tail = mul(e, mul(e, p, t), mul(e, size, decay));
  return arith::SubFOp::create(
      e.b(), e.loc(), arith::MaximumFOp::create(e.b(), e.loc(), x, constant(0)),
      tail);
}

Value gelu(TileEmitter &e, graph::GeluOp op, ArrayRef<Value> args) {
  Value x = args[0];
  Type stored = cast<RankedTensorType>(op.getType()).getElementType();
  if (!op.getTanh() && e.getTarget().kind == EmitTarget::Kind::Gpu &&
      (stored.isF16() || stored.isBF16()))
    return geluOf16Bits(e, x);
  if (op.getTanh()) {
    // x * sigmoid(2 u) equals x/2 * (1 + tanh u), u = sqrt(2/pi) (x + 0.044715
    // x^3).
    Value cube = mul(e, mul(e, x, x), mul(e, x, e.splatLike(0.044715, x)));
    Value u2 =
        mul(e, add(e, x, cube), e.splatLike(2 * 0.79788456080286535588, x));
    return mul(e, x, sigmoidOf(e, u2));
  }
  Value phi = math::ErfOp::create(
      e.b(), e.loc(), mul(e, x, e.splatLike(0.70710678118654752440, x)));
  Value half = mul(e, x, e.splatLike(0.5, x));
  return add(e, half, mul(e, half, phi));
}

Value isNan(TileEmitter &e, graph::IsNanOp, ArrayRef<Value> x) {
  return arith::CmpFOp::create(e.b(), e.loc(), arith::CmpFPredicate::UNO, x[0],
                               x[0]);
}

Value isInf(TileEmitter &e, graph::IsInfOp op, ArrayRef<Value> x) {
  auto equals = [&](double value) {
    return arith::CmpFOp::create(e.b(), e.loc(), arith::CmpFPredicate::OEQ,
                                 x[0], e.splatLike(value, x[0]))
        .getResult();
  };
  double inf = std::numeric_limits<double>::infinity();
  if (op.getPositive() && op.getNegative())
    return arith::OrIOp::create(e.b(), e.loc(), equals(inf), equals(-inf));
  if (op.getPositive() || op.getNegative())
    return equals(op.getPositive() ? inf : -inf);
  auto type = cast<RankedTensorType>(x[0].getType());
  return e.splat(0, e.b().getI1Type(), type.getShape());
}

/// Converts a tile between compute types.
Value convert(TileEmitter &e, Value x, Type from, Type to) {
  OpBuilder &b = e.b();
  auto tile = cast<RankedTensorType>(x.getType());
  Type in = tile.getElementType(), out = e.computeType(to);
  auto type = e.tileType(tile.getShape(), out);
  bool fromUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  if (to.isInteger(1)) {
    if (in == out)
      return x;
    if (isa<FloatType>(in))
      return arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::UNE, x,
                                   e.splatLike(0, x));
    return arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::ne, x,
                                 e.splatLike(0, x));
  }
  if (isa<FloatType>(in) && isa<FloatType>(out)) {
    // A cast to a narrow float rounds, although the tile stays in f32.
    if (in.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth()) {
      x = arith::TruncFOp::create(b, e.loc(), e.tileType(tile.getShape(), to),
                                  x);
      in = to;
    }
    if (in == out)
      return x;
    return arith::ExtFOp::create(b, e.loc(), type, x);
  }
  if (isa<FloatType>(in)) {
    if (to.isUnsignedInteger())
      return arith::FPToUIOp::create(b, e.loc(), type, x);
    return arith::FPToSIOp::create(b, e.loc(), type, x);
  }
  if (isa<FloatType>(out)) {
    x = fromUnsigned ? arith::UIToFPOp::create(b, e.loc(), type, x).getResult()
                     : arith::SIToFPOp::create(b, e.loc(), type, x).getResult();
    return graph::isFloat8(to) ? convert(e, x, b.getF32Type(), to) : x;
  }
  unsigned wide = in.getIntOrFloatBitWidth(),
           narrow = out.getIntOrFloatBitWidth();
  if (wide == narrow)
    return x;
  if (wide > narrow)
    return arith::TruncIOp::create(b, e.loc(), type, x);
  if (fromUnsigned)
    return arith::ExtUIOp::create(b, e.loc(), type, x);
  return arith::ExtSIOp::create(b, e.loc(), type, x);
}

FailureOr<Value> castRule(graph::CastOp op, TileEmitter &e,
                          const Demand &demand) {
  // Casts keep zero, so guards pass. A cast that only widens what a load gives
  // costs nothing; f16 to f16 rounding of a computed value happens in convert.
  FailureOr<SmallVector<Value>> tiles =
      operandTiles(op, e, demand, /*keepGuards=*/true);
  if (failed(tiles))
    return failure();
  Type from = graphElement(op.getInput());
  Value x = tiles->front();
  // A value of a narrow float type computed in f32 is rounded when it is
  // stored; here only where all that is known of it has to be the same.
  auto tile = cast<RankedTensorType>(x.getType());
  if (op->hasAttr(graph::kAsStoredAttr) && tile.getElementType() != from)
    x = arith::TruncFOp::create(e.b(), e.loc(),
                                e.tileType(tile.getShape(), from), x);
  return convert(e, x, from, op.getTo());
}

/// Narrow floats are f32 in a tile: their bits are those of the rounded value.
Value bitcast(TileEmitter &e, graph::BitcastOp op, ArrayRef<Value> x) {
  OpBuilder &b = e.b();
  Type from = graphElement(op.getInput()), to = op.getTo();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(x[0].getType()).getShape();
  Value bits = x[0];
  if (isFloat(bits) && getElementTypeOrSelf(bits.getType()) != from)
    bits = arith::TruncFOp::create(b, e.loc(), e.tileType(shape, from), bits);
  Type stored = isa<FloatType>(to) ? to : e.computeType(to);
  if (getElementTypeOrSelf(bits.getType()) != stored)
    bits =
        arith::BitcastOp::create(b, e.loc(), e.tileType(shape, stored), bits);
  auto type = e.tileType(shape, e.computeType(to));
  return bits.getType() == type
             ? bits
             : arith::ExtFOp::create(b, e.loc(), type, bits).getResult();
}

/// How many low bits of an integer exponent may be set.
unsigned exponentBits(graph::PowOp op, Value exponent) {
  unsigned width =
      getElementTypeOrSelf(exponent.getType()).getIntOrFloatBitWidth();
  DenseElementsAttr constant;
  if (!matchPattern(op.getRhs(), m_Constant(&constant)) ||
      !isa<IntegerType>(constant.getElementType()))
    return width;
  unsigned bits = 0;
  for (const APInt &value : constant.getValues<APInt>())
    bits = std::max(
        bits,
        (isUnsignedValue(op.getRhs()) ? value : value.abs()).getActiveBits());
  return bits;
}

/// x^y of integers by squaring, wrapping as multiplication does; y has no sign.
FailureOr<Value> powerBySquaring(TileEmitter &e, Value x, Value y,
                                 unsigned bits) {
  OpBuilder &b = e.b();
  Location loc = e.loc();
  auto step = [&](AffineExpr, ArrayRef<Value> carried) {
    Value result = carried[0], square = carried[1], rest = carried[2];
    Value bit = arith::AndIOp::create(b, loc, rest, e.splatLike(1, rest));
    Value set = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit,
                                      e.splatLike(0, rest));
    Value times = arith::MulIOp::create(b, loc, result, square);
    return FailureOr<SmallVector<Value>>(SmallVector<Value>{
        arith::SelectOp::create(b, loc, set, times, result),
        arith::MulIOp::create(b, loc, square, square),
        arith::ShRUIOp::create(b, loc, rest, e.splatLike(1, rest))});
  };
  FailureOr<SmallVector<Value>> done =
      e.loop(e.constant(bits), {e.splatLike(1, x), x, y}, step);
  return failed(done) ? FailureOr<Value>() : FailureOr<Value>(done->front());
}

/// x^y of integers: below zero, y gives the integer part of the fraction, and
/// of 1/0 the least value, which a conversion of infinity gives too.
FailureOr<Value> integerPower(TileEmitter &e, Value x, Value y, bool ySigned,
                              bool xSigned, unsigned bits) {
  if (!ySigned)
    return powerBySquaring(e, x, y, bits);
  OpBuilder &b = e.b();
  Location loc = e.loc();
  using P = arith::CmpIPredicate;
  auto compare = [&](P predicate, Value left, double right) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, left,
                                 e.splatLike(right, left));
  };
  Value minus = arith::SubIOp::create(b, loc, e.splatLike(0, y), y);
  Value negative = compare(P::slt, y, 0);
  Value magnitude = arith::SelectOp::create(b, loc, negative, minus, y);
  FailureOr<Value> power = powerBySquaring(e, x, magnitude, bits);
  if (failed(power))
    return failure();
  Value unit = compare(P::eq, x, 1);
  if (xSigned)
    unit = arith::OrIOp::create(b, loc, unit, compare(P::eq, x, -1));
  unsigned width = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
  Value least = arith::ShLIOp::create(b, loc, e.splatLike(1, x),
                                      e.splatLike(width - 1, x));
  Value fraction = arith::SelectOp::create(b, loc, compare(P::eq, x, 0), least,
                                           e.splatLike(0, x));
  fraction = arith::SelectOp::create(b, loc, unit, *power, fraction);
  return Value(arith::SelectOp::create(b, loc, negative, fraction, *power));
}

/// x^y of an integer x and a float y, toward zero: exact where y is whole.
FailureOr<Value> powerOfInteger(TileEmitter &e, graph::PowOp op, Value x,
                                Value y) {
  OpBuilder &b = e.b();
  Location loc = e.loc();
  using P = arith::CmpFPredicate;
  Type f64 = b.getF64Type(), i64 = b.getI64Type();
  Type lhs = graphElement(op.getLhs());
  y = convert(e, y, graphElement(op.getRhs()), f64);
  auto below = [&](Value value, Value limit) -> Value {
    return arith::CmpFOp::create(b, loc, P::OLT, value, limit);
  };
  Value whole = arith::AndIOp::create(
      b, loc,
      arith::CmpFOp::create(b, loc, P::OEQ, y,
                            math::FloorOp::create(b, loc, y)),
      below(math::AbsFOp::create(b, loc, y), e.splatLike(0x1p62, y)));
  Value exponent =
      convert(e, arith::SelectOp::create(b, loc, whole, y, e.splatLike(0, y)),
              f64, i64);
  FailureOr<Value> exact = integerPower(e, x, exponent, /*ySigned=*/true,
                                        !isUnsignedValue(op.getLhs()), 63);
  if (failed(exact))
    return failure();
  // A root that is whole may come out an ulp or two below.
  Value p = math::PowFOp::create(b, loc, convert(e, x, lhs, f64), y);
  Value nearest = math::RoundEvenOp::create(b, loc, p);
  Value off =
      math::AbsFOp::create(b, loc, arith::SubFOp::create(b, loc, p, nearest));
  Value slack =
      mul(e, math::AbsFOp::create(b, loc, p), e.splatLike(0x1p-51, p));
  Value root = arith::SelectOp::create(b, loc, below(slack, off), p, nearest);
  return Value(arith::SelectOp::create(b, loc, whole, *exact,
                                       convert(e, root, f64, lhs)));
}

FailureOr<Value> powRule(graph::PowOp op, TileEmitter &e,
                         const Demand &demand) {
  FailureOr<SmallVector<Value>> tiles = operandTiles(op, e, demand);
  if (failed(tiles))
    return failure();
  Value x = tiles->front(), y = tiles->back();
  Type lhs = graphElement(op.getLhs()), rhs = graphElement(op.getRhs());
  if (isFloat(x))
    return Value(
        math::PowFOp::create(e.b(), e.loc(), x, convert(e, y, rhs, lhs)));
  if (isFloat(y))
    return powerOfInteger(e, op, x, y);
  return integerPower(e, x, y, !isUnsignedValue(op.getRhs()),
                      !isUnsignedValue(op.getLhs()), exponentBits(op, y));
}

/// Remainder with the sign of the divisor.
Value mod(TileEmitter &e, graph::ModOp op, ArrayRef<Value> x) {
  OpBuilder &b = e.b();
  Location loc = e.loc();
  if (isUnsignedValue(op.getLhs()))
    return arith::RemUIOp::create(b, loc, x[0], x[1]);
  Value r, wrong, zero = e.splatLike(0, x[0]);
  if (isFloat(x[0])) {
    r = arith::RemFOp::create(b, loc, x[0], x[1]);
    Value nonzero =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, r, zero);
    Value a = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, r, zero);
    Value c =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x[1], zero);
    wrong = arith::AndIOp::create(b, loc, nonzero,
                                  arith::XOrIOp::create(b, loc, a, c));
    return arith::SelectOp::create(b, loc, wrong,
                                   arith::AddFOp::create(b, loc, r, x[1]), r);
  }
  r = arith::RemSIOp::create(b, loc, x[0], x[1]);
  Value nonzero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, r, zero);
  Value a = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, r, zero);
  Value c =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x[1], zero);
  wrong = arith::AndIOp::create(b, loc, nonzero,
                                arith::XOrIOp::create(b, loc, a, c));
  return arith::SelectOp::create(b, loc, wrong,
                                 arith::AddIOp::create(b, loc, r, x[1]), r);
}

Value fmod(TileEmitter &e, graph::FmodOp op, ArrayRef<Value> x) {
  return arithBinary<graph::FmodOp, arith::RemFOp, arith::RemSIOp,
                     arith::RemUIOp>(e, op, x);
}

Value shr(TileEmitter &e, graph::ShrOp op, ArrayRef<Value> x) {
  // A shift by the width or more is zero (or the sign), where arith has poison.
  auto width =
      cast<IntegerType>(getElementTypeOrSelf(x[0].getType())).getWidth();
  Value most = e.splatLike(width - 1, x[0]);
  Value over = arith::CmpIOp::create(e.b(), e.loc(), arith::CmpIPredicate::ugt,
                                     x[1], most);
  Value amount = arith::MinUIOp::create(e.b(), e.loc(), x[1], most);
  if (!isUnsignedValue(op.getLhs()))
    return arith::ShRSIOp::create(e.b(), e.loc(), x[0], amount);
  Value r = arith::ShRUIOp::create(e.b(), e.loc(), x[0], amount);
  return arith::SelectOp::create(e.b(), e.loc(), over, e.splatLike(0, x[0]), r);
}

Value shl(TileEmitter &e, graph::ShlOp, ArrayRef<Value> x) {
  auto width =
      cast<IntegerType>(getElementTypeOrSelf(x[0].getType())).getWidth();
  Value most = e.splatLike(width - 1, x[0]);
  Value over = arith::CmpIOp::create(e.b(), e.loc(), arith::CmpIPredicate::ugt,
                                     x[1], most);
  Value amount = arith::MinUIOp::create(e.b(), e.loc(), x[1], most);
  Value r = arith::ShLIOp::create(e.b(), e.loc(), x[0], amount);
  return arith::SelectOp::create(e.b(), e.loc(), over, e.splatLike(0, x[0]), r);
}

Value compare(TileEmitter &e, graph::CompareOp op, ArrayRef<Value> x) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static constexpr F floats[] = {F::OEQ, F::UNE, F::OLT,
                                 F::OLE, F::OGT, F::OGE};
  static constexpr I integers[] = {I::eq,  I::ne,  I::slt,
                                   I::sle, I::sgt, I::sge};
  static constexpr I unsigneds[] = {I::eq,  I::ne,  I::ult,
                                    I::ule, I::ugt, I::uge};
  unsigned p = (unsigned)op.getPredicate();
  if (isFloat(x[0]))
    return arith::CmpFOp::create(e.b(), e.loc(), floats[p], x[0], x[1]);
  bool isUnsigned = isUnsignedValue(op.getLhs());
  return arith::CmpIOp::create(
      e.b(), e.loc(), isUnsigned ? unsigneds[p] : integers[p], x[0], x[1]);
}

Value select(TileEmitter &e, graph::SelectOp, ArrayRef<Value> x) {
  return arith::SelectOp::create(e.b(), e.loc(), x[0], x[1], x[2]);
}

template <typename Op, Value (*compute)(TileEmitter &, Op, ArrayRef<Value>)>
void attach(MLIRContext *context) {
  Op::template attachInterface<Rule<Op, pointwise<Op, compute>>>(*context);
}
template <typename Op, typename Math> void attachMath(MLIRContext *context) {
  attach<Op, mathUnary<Op, Math>>(context);
}
template <typename Op, typename Float, typename Signed,
          typename Unsigned = Signed>
void attachBinary(MLIRContext *context) {
  attach<Op, arithBinary<Op, Float, Signed, Unsigned>>(context);
}

} // namespace

void emit::registerElementwiseRules(MLIRContext *c) {
  attach<graph::NegOp, neg>(c);
  attach<graph::AbsOp, abs>(c);
  attach<graph::SignOp, sign>(c);
  attach<graph::NotOp, bitNot>(c);
  attachMath<graph::ExpOp, math::ExpOp>(c);
  attachMath<graph::LogOp, math::LogOp>(c);
  attachMath<graph::Expm1Op, math::ExpM1Op>(c);
  attachMath<graph::Log1pOp, math::Log1pOp>(c);
  attachMath<graph::SqrtOp, math::SqrtOp>(c);
  attachMath<graph::RsqrtOp, math::RsqrtOp>(c);
  attach<graph::ReciprocalOp, reciprocal>(c);
  attachMath<graph::ErfOp, math::ErfOp>(c);
  attachMath<graph::ErfcOp, math::ErfcOp>(c);
  attachMath<graph::TanhOp, math::TanhOp>(c);
  attach<graph::SigmoidOp, sigmoid>(c);
  attachMath<graph::SinOp, math::SinOp>(c);
  attachMath<graph::CosOp, math::CosOp>(c);
  attachMath<graph::TanOp, math::TanOp>(c);
  attachMath<graph::AsinOp, math::AsinOp>(c);
  attachMath<graph::AcosOp, math::AcosOp>(c);
  attachMath<graph::AtanOp, math::AtanOp>(c);
  attachMath<graph::SinhOp, math::SinhOp>(c);
  attachMath<graph::CoshOp, math::CoshOp>(c);
  attachMath<graph::AsinhOp, math::AsinhOp>(c);
  attachMath<graph::AcoshOp, math::AcoshOp>(c);
  attachMath<graph::AtanhOp, math::AtanhOp>(c);
  attachMath<graph::FloorOp, math::FloorOp>(c);
  attachMath<graph::CeilOp, math::CeilOp>(c);
  attachMath<graph::RoundOp, math::RoundEvenOp>(c);
  attach<graph::GeluOp, gelu>(c);
  attach<graph::IsNanOp, isNan>(c);
  attach<graph::BitcastOp, bitcast>(c);
  attach<graph::IsInfOp, isInf>(c);
  graph::CastOp::attachInterface<Rule<graph::CastOp, castRule>>(*c);
  attach<graph::AddOp, arithBinary<graph::AddOp, arith::AddFOp, arith::AddIOp>>(
      c);
  attach<graph::SubOp, arithBinary<graph::SubOp, arith::SubFOp, arith::SubIOp>>(
      c);
  attachBinary<graph::MulOp, arith::MulFOp, arith::MulIOp>(c);
  attachBinary<graph::DivOp, arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(c);
  attachBinary<graph::MaxOp, arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(
      c);
  attachBinary<graph::MinOp, arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(
      c);
  attach<graph::ModOp, mod>(c);
  attach<graph::FmodOp, fmod>(c);
  graph::PowOp::attachInterface<Rule<graph::PowOp, powRule>>(*c);
  attach<graph::AndOp, bitwise<graph::AndOp, arith::AndIOp>>(c);
  attach<graph::OrOp, bitwise<graph::OrOp, arith::OrIOp>>(c);
  attach<graph::XorOp, bitwise<graph::XorOp, arith::XOrIOp>>(c);
  attach<graph::ShlOp, shl>(c);
  attach<graph::ShrOp, shr>(c);
  attach<graph::CompareOp, compare>(c);
  attach<graph::SelectOp, select>(c);
}
