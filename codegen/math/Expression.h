// Formulas on floating-point scalars and tiles, written as they are read.
#ifndef CHARONIA_CODEGEN_MATH_EXPRESSION_H
#define CHARONIA_CODEGEN_MATH_EXPRESSION_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include <memory>

namespace charonia {

class Num;

/// Where operators are created, and the shape they have: a scalar's or a
/// tile's.
class Expressions {
public:
  Expressions(mlir::OpBuilder &builder, mlir::Location location,
              mlir::Type like)
      : builder(builder), location(location), like(like) {}

  Num number(mlir::Value value);
  mlir::Type typeOf(mlir::Type element) const {
    auto shaped = llvm::dyn_cast<mlir::RankedTensorType>(like);
    return shaped ? mlir::Type(shaped.clone(element)) : element;
  }
  mlir::Value constant(mlir::TypedAttr scalar) {
    auto shaped =
        llvm::dyn_cast<mlir::RankedTensorType>(typeOf(scalar.getType()));
    mlir::TypedAttr value = shaped
                                ? mlir::TypedAttr(mlir::DenseElementsAttr::get(
                                      shaped, mlir::Attribute(scalar)))
                                : scalar;
    return mlir::arith::ConstantOp::create(builder, location, value);
  }
  template <typename Op, typename... Args> mlir::Value create(Args &&...args) {
    return Op::create(builder, location, std::forward<Args>(args)...);
  }

  mlir::OpBuilder &builder;

private:
  mlir::Location location;
  mlir::Type like;
};

/// A truth value.
class Bool {
public:
  Bool(Expressions *e, mlir::Value value) : e(e), v(value) {}
  mlir::Value value() const { return v; }
  Bool operator&(const Bool &other) const {
    return {e, e->create<mlir::arith::AndIOp>(v, other.v)};
  }
  Bool operator|(const Bool &other) const {
    return {e, e->create<mlir::arith::OrIOp>(v, other.v)};
  }

private:
  friend class Num;
  friend Num select(const Bool &, const Num &, const Num &);
  Expressions *e;
  mlir::Value v;
};

class Int;

/// A number of f32 or f64.
class Num {
public:
  Num() = default;
  Num(Expressions *e, mlir::Value value) : e(e), v(value) {}

  mlir::Value value() const { return v; }
  mlir::Type element() const { return mlir::getElementTypeOrSelf(v.getType()); }
  bool isF64() const { return element().isF64(); }
  unsigned mantissaBits() const { return isF64() ? 52 : 23; }
  Expressions *expressions() const { return e; }

  /// A constant of the same type, rounded to it.
  Num constant(double c) const {
    return {e, e->constant(e->builder.getFloatAttr(element(), c))};
  }
  template <typename Op> Num unary(const Num &x) const {
    return {e, e->create<Op>(x.v)};
  }

  Num operator+(const Num &o) const {
    return {e, e->create<mlir::arith::AddFOp>(v, o.v)};
  }
  Num operator-(const Num &o) const {
    return {e, e->create<mlir::arith::SubFOp>(v, o.v)};
  }
  Num operator*(const Num &o) const {
    return {e, e->create<mlir::arith::MulFOp>(v, o.v)};
  }
  Num operator/(const Num &o) const {
    return {e, e->create<mlir::arith::DivFOp>(v, o.v)};
  }
  Num operator-() const { return {e, e->create<mlir::arith::NegFOp>(v)}; }
  Num operator+(double c) const { return *this + constant(c); }
  Num operator-(double c) const { return *this - constant(c); }
  Num operator*(double c) const { return *this * constant(c); }

  Bool compare(mlir::arith::CmpFPredicate predicate, const Num &o) const {
    return {e, e->create<mlir::arith::CmpFOp>(predicate, v, o.v)};
  }
  // Ordered: false if either is NaN. Of !=, true.
  Bool operator<(double c) const {
    return compare(mlir::arith::CmpFPredicate::OLT, constant(c));
  }
  Bool operator>(double c) const {
    return compare(mlir::arith::CmpFPredicate::OGT, constant(c));
  }
  Bool operator>=(double c) const {
    return compare(mlir::arith::CmpFPredicate::OGE, constant(c));
  }
  Bool operator==(double c) const {
    return compare(mlir::arith::CmpFPredicate::OEQ, constant(c));
  }
  Bool operator==(const Num &o) const {
    return compare(mlir::arith::CmpFPredicate::OEQ, o);
  }
  Bool operator!=(const Num &o) const {
    return compare(mlir::arith::CmpFPredicate::UNE, o);
  }
  Bool operator>=(const Num &o) const {
    return compare(mlir::arith::CmpFPredicate::OGE, o);
  }
  /// Greater, or NaN.
  Bool exceeds(double c) const {
    return compare(mlir::arith::CmpFPredicate::UGT, constant(c));
  }
  Bool isNaN() const { return compare(mlir::arith::CmpFPredicate::UNO, *this); }

  /// f32 to f64 and back.
  Num extend() const {
    return {e, e->create<mlir::arith::ExtFOp>(
                   e->typeOf(e->builder.getF64Type()), v)};
  }
  Num truncate() const {
    return {e, e->create<mlir::arith::TruncFOp>(
                   e->typeOf(e->builder.getF32Type()), v)};
  }
  Int bits() const;

private:
  Expressions *e = nullptr;
  mlir::Value v;
};

/// An integer as wide as a Num.
class Int {
public:
  Int() = default;
  Int(Expressions *e, mlir::Value value) : e(e), v(value) {}
  Int(const Num &like, int64_t c) : e(like.expressions()) {
    mlir::IntegerType type = e->builder.getIntegerType(like.isF64() ? 64 : 32);
    v = e->constant(e->builder.getIntegerAttr(
        type, llvm::APInt(type.getWidth(), c, true, true)));
  }

  Int operator+(const Int &o) const {
    return {e, e->create<mlir::arith::AddIOp>(v, o.v)};
  }
  Int operator-(const Int &o) const {
    return {e, e->create<mlir::arith::SubIOp>(v, o.v)};
  }
  Int operator&(const Int &o) const {
    return {e, e->create<mlir::arith::AndIOp>(v, o.v)};
  }
  Int operator<<(int64_t n) const {
    return {e, e->create<mlir::arith::ShLIOp>(v, same(n))};
  }
  Int shiftRightSigned(int64_t n) const {
    return {e, e->create<mlir::arith::ShRSIOp>(v, same(n))};
  }
  Bool isZero() const {
    return {e, e->create<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::eq, v,
                                              same(0))};
  }
  /// The bits as a number, and the value as one.
  Num asFloat() const {
    return {e, e->create<mlir::arith::BitcastOp>(floatType(), v)};
  }
  Num toFloat() const {
    return {e, e->create<mlir::arith::SIToFPOp>(floatType(), v)};
  }
  Num maskedFloat(const Int &mask) const { return (*this & mask).asFloat(); }
  /// The low half of 64 bits, as wide as the f32 `like`.
  Int truncateTo32(const Num &) const {
    return {e, e->create<mlir::arith::TruncIOp>(
                   e->typeOf(e->builder.getI32Type()), v)};
  }

private:
  mlir::Type element() const { return mlir::getElementTypeOrSelf(v.getType()); }
  mlir::Type floatType() const {
    return e->typeOf(element().isInteger(64)
                         ? mlir::Type(e->builder.getF64Type())
                         : mlir::Type(e->builder.getF32Type()));
  }
  mlir::Value same(int64_t c) const {
    return e->constant(e->builder.getIntegerAttr(element(), c));
  }
  Expressions *e = nullptr;
  mlir::Value v;
};

inline Num Expressions::number(mlir::Value value) { return {this, value}; }

inline Int Num::bits() const {
  mlir::Type type = e->builder.getIntegerType(isF64() ? 64 : 32);
  return {e, e->create<mlir::arith::BitcastOp>(e->typeOf(type), v)};
}

inline Num select(const Bool &condition, const Num &a, const Num &b) {
  Expressions *e = a.expressions();
  return {e, e->create<mlir::arith::SelectOp>(condition.value(), a.value(),
                                              b.value())};
}
inline Num fma(const Num &a, const Num &b, const Num &c) {
  Expressions *e = a.expressions();
  return {e, e->create<mlir::math::FmaOp>(a.value(), b.value(), c.value())};
}
inline Num abs(const Num &x) { return x.unary<mlir::math::AbsFOp>(x); }
inline Num sqrt(const Num &x) { return x.unary<mlir::math::SqrtOp>(x); }
inline Num roundEven(const Num &x) {
  return x.unary<mlir::math::RoundEvenOp>(x);
}
inline Num truncate(const Num &x) { return x.unary<mlir::math::TruncOp>(x); }
inline Num copySign(const Num &magnitude, const Num &sign) {
  Expressions *e = sign.expressions();
  return {e,
          e->create<mlir::math::CopySignOp>(magnitude.value(), sign.value())};
}
/// c0 + c1 x + c2 x^2 + ...
inline Num polynomial(const Num &x, llvm::ArrayRef<double> coefficients) {
  Num sum = x.constant(coefficients.back());
  for (double c : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, x.constant(c));
  return sum;
}

} // namespace charonia

#endif
