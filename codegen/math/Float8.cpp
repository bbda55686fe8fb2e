// Floats of 8 bits by integer arithmetic.
#include "codegen/math/Float8.h"
#include "codegen/math/Expression.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace charonia;

namespace {

/// A format: sign, exponent, `mantissa` bits. Of codes without their sign,
/// `overflow` is what a number gives that is too large, and `nan` no number.
struct Format {
  unsigned mantissa;
  int bias;
  uint8_t overflow, nan;
  /// No infinities and no negative zero, whose code is the only NaN.
  bool unsignedZero = false;
};

std::optional<Format> formatOf(Type element) {
  return llvm::TypeSwitch<Type, std::optional<Format>>(element)
      .Case<Float8E4M3FNType>([](auto) { return Format{3, 7, 0x7f, 0x7f}; })
      .Case<Float8E5M2Type>([](auto) { return Format{2, 15, 0x7c, 0x7f}; })
      .Case<Float8E4M3FNUZType>(
          [](auto) { return Format{3, 8, 0x80, 0x80, true}; })
      .Case<Float8E5M2FNUZType>(
          [](auto) { return Format{2, 16, 0x80, 0x80, true}; })
      .Default([](auto) { return std::nullopt; });
}

/// Integers of one shape and their operators.
class Bits {
public:
  Bits(OpBuilder &b, Location location, Type like)
      : e(b, location, like), b(b) {}

  Value constant(unsigned width, int64_t value) {
    return e.constant(b.getIntegerAttr(b.getIntegerType(width), value));
  }
  Value like(Value x, int64_t value) {
    return constant(getElementTypeOrSelf(x).getIntOrFloatBitWidth(), value);
  }
  Value real(double value) { return e.constant(b.getF32FloatAttr(value)); }
  Type type(unsigned width) { return e.typeOf(b.getIntegerType(width)); }
  Type f32() { return e.typeOf(b.getF32Type()); }

  Value add(Value x, int64_t c) {
    return e.create<arith::AddIOp>(x, like(x, c));
  }
  Value band(Value x, int64_t c) {
    return e.create<arith::AndIOp>(x, like(x, c));
  }
  Value bor(Value x, Value y) { return e.create<arith::OrIOp>(x, y); }
  Value left(Value x, int64_t n) {
    return e.create<arith::ShLIOp>(x, like(x, n));
  }
  Value right(Value x, int64_t n) {
    return e.create<arith::ShRUIOp>(x, like(x, n));
  }
  Value compare(arith::CmpIPredicate predicate, Value x, int64_t c) {
    return e.create<arith::CmpIOp>(predicate, x, like(x, c));
  }
  Value select(Value condition, Value x, Value y) {
    return e.create<arith::SelectOp>(condition, x, y);
  }
  Value widen(Value x, unsigned width) {
    return e.create<arith::ExtUIOp>(type(width), x);
  }
  Value narrow(Value x, unsigned width) {
    return e.create<arith::TruncIOp>(type(width), x);
  }
  Value as(Type element, Value x) {
    return e.create<arith::BitcastOp>(e.typeOf(element), x);
  }
  Value asReal(Value x) { return as(b.getF32Type(), x); }
  Value asBits(Value x) {
    return as(b.getIntegerType(getElementTypeOrSelf(x).getIntOrFloatBitWidth()),
              x);
  }

  Expressions e;
  OpBuilder &b;
};

/// f64 to f32 rounded to odd, so that rounding once more is as good as rounding
/// once.
Value roundToOdd(Bits &o, Value x) {
  Value nearest = o.e.create<arith::TruncFOp>(o.f32(), x);
  Value back = o.e.create<arith::ExtFOp>(x.getType(), nearest);
  Value size = o.e.create<math::AbsFOp>(x),
        backSize = o.e.create<math::AbsFOp>(back);
  Value inexact =
      o.e.create<arith::CmpFOp>(arith::CmpFPredicate::ONE, backSize, size);
  Value tooLarge =
      o.e.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, backSize, size);
  // Cut off, and odd where anything was.
  Value bits = o.asBits(nearest);
  Value cut = o.select(tooLarge, o.add(bits, -1), bits);
  return o.asReal(o.select(inexact, o.bor(cut, o.like(cut, 1)), bits));
}

/// f32 to the nearest of a format, of two the even one.
Value encode(Bits &o, Value x, const Format &f) {
  constexpr int mantissa = 23, bias = 127;
  unsigned shift = mantissa - f.mantissa;
  Value bits = o.asBits(x), size = o.band(bits, 0x7fffffff);
  Value odd = o.band(o.right(size, shift), 1);
  Value half = o.add(size, (int64_t(1) << (shift - 1)) - 1);
  Value normal = o.add(o.right(o.e.create<arith::AddIOp>(half, odd), shift),
                       -(int64_t(bias - f.bias) << f.mantissa));
  // Below the least normal number all are multiples of one, which is the last
  // place of this sum.
  int64_t step = int64_t(bias + 1 - f.bias + int(shift)) << mantissa;
  Value sum =
      o.e.create<arith::AddFOp>(o.asReal(size), o.asReal(o.like(size, step)));
  Value small = o.add(o.asBits(sum), -step);
  Value isSmall = o.compare(arith::CmpIPredicate::ult, size,
                            int64_t(bias + 1 - f.bias) << mantissa);
  Value code = o.select(isSmall, small, normal);
  code = o.e.create<arith::MinUIOp>(code, o.like(code, f.overflow));
  if (f.nan != f.overflow) {
    Value isNan = o.compare(arith::CmpIPredicate::ugt, size, 0x7f800000);
    code = o.select(isNan, o.like(code, f.nan), code);
  }
  Value withSign = o.bor(code, o.band(o.right(bits, 24), 0x80));
  if (f.unsignedZero)
    withSign =
        o.select(o.compare(arith::CmpIPredicate::eq, code, 0), code, withSign);
  return o.narrow(withSign, 8);
}

/// Codes to f32, all of which it has: as f16, whose exponent is wide enough,
/// which a machine extends with what is below its normal numbers.
Value decodeByHalf(Bits &o, Value code, const Format &f) {
  // The exponent's bits, of four the lower ones of five: where a sign is
  // extended, one of its copies stands in the place of the highest.
  constexpr unsigned mantissa = 10, bias = 15;
  unsigned shift = mantissa - f.mantissa;
  Value half = o.left(o.e.create<arith::ExtSIOp>(o.type(16), code), shift);
  if (shift < 8)
    half = o.band(half, int16_t(0xbfff));
  Value x = o.e.create<arith::ExtFOp>(o.f32(), o.as(o.b.getF16Type(), half));
  if (f.bias != bias)
    x = o.e.create<arith::MulFOp>(x, o.real(std::ldexp(1.0, bias - f.bias)));
  return x;
}

/// The same with integers and one difference alone: f16 has its infinities
/// among numbers of the format.
Value decodeWhole(Bits &o, Value code, const Format &f) {
  constexpr int mantissa = 23, bias = 127;
  Value wide = o.widen(code, 32);
  Value rest = o.left(o.band(wide, 0x7f), mantissa - f.mantissa);
  Value normal = o.add(rest, int64_t(bias - f.bias) << mantissa);
  // 1 + mantissa of the least exponent, less 1.
  int64_t one = int64_t(bias + 1 - f.bias) << mantissa;
  Value small = o.asBits(o.e.create<arith::SubFOp>(
      o.asReal(o.add(rest, one)), o.asReal(o.like(rest, one))));
  Value isSmall = o.compare(arith::CmpIPredicate::ult, rest, 1 << mantissa);
  Value sign = o.left(o.band(wide, 0x80), 24);
  return o.asReal(o.bor(o.select(isSmall, small, normal), sign));
}

Value decode(Bits &o, Value code, const Format &f) {
  bool fitsHalf = f.bias <= 15;
  Value x = fitsHalf ? decodeByHalf(o, code, f) : decodeWhole(o, code, f);
  if (f.overflow != f.nan) // NaN as in f16
    return x;
  Value code7 = f.unsignedZero ? code : o.band(code, 0x7f);
  Value isNan =
      o.compare(arith::CmpIPredicate::eq, code7, int64_t(int8_t(f.nan)));
  return o.select(isNan, o.real(std::numeric_limits<double>::quiet_NaN()), x);
}

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

void truncate(arith::TruncFOp op, const Format &format) {
  OpBuilder b(op);
  Bits o(b, op.getLoc(), op.getType());
  Value x = op.getIn();
  if (elementOf(x).isF64())
    x = roundToOdd(o, x);
  else if (!elementOf(x).isF32())
    x = o.e.create<arith::ExtFOp>(o.f32(), x);
  Value code = o.as(elementOf(op.getOut()), encode(o, x, format));
  op.getOut().replaceAllUsesWith(code);
  op.erase();
}

void extend(arith::ExtFOp op, const Format &format) {
  OpBuilder b(op);
  Bits o(b, op.getLoc(), op.getType());
  Value x = decode(o, o.as(b.getI8Type(), op.getIn()), format);
  Type to = elementOf(op.getOut());
  if (to.isF64())
    x = o.e.create<arith::ExtFOp>(op.getType(), x);
  else if (!to.isF32())
    x = o.e.create<arith::TruncFOp>(op.getType(), x);
  op.getOut().replaceAllUsesWith(x);
  op.erase();
}

} // namespace

/// To f16 by way of f32, which has all that is in between, is to f16.
static void joinConversions(Operation *root) {
  SmallVector<arith::TruncFOp> work;
  root->walk([&](arith::TruncFOp op) { work.push_back(op); });
  for (arith::TruncFOp op : work) {
    auto wide = op.getIn().getDefiningOp<arith::ExtFOp>();
    if (!wide || !elementOf(op.getOut()).isF16() ||
        !formatOf(elementOf(wide.getIn())))
      continue;
    OpBuilder b(op);
    op.getOut().replaceAllUsesWith(
        arith::ExtFOp::create(b, op.getLoc(), op.getType(), wide.getIn()));
    op.erase();
    if (wide->use_empty())
      wide->erase();
  }
}

void charonia::expandFloat8(Operation *root, bool hardware) {
  if (hardware)
    joinConversions(root);
  auto isLeft = [&](Type element, Type other) {
    return hardware && !other.isF64() &&
           isa<Float8E4M3FNType, Float8E5M2Type>(element);
  };
  SmallVector<Operation *> work;
  root->walk([&](Operation *op) { work.push_back(op); });
  for (Operation *op : work) {
    if (auto narrow = dyn_cast<arith::TruncFOp>(op)) {
      Type to = elementOf(narrow.getOut());
      if (auto format = formatOf(to);
          format && !isLeft(to, elementOf(narrow.getIn())))
        truncate(narrow, *format);
    } else if (auto wide = dyn_cast<arith::ExtFOp>(op)) {
      Type from = elementOf(wide.getIn());
      if (auto format = formatOf(from);
          format && !isLeft(from, elementOf(wide.getOut())))
        extend(wide, *format);
    }
  }
}
