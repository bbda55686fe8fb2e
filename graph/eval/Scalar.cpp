#include "graph/eval/Scalar.h"
#include "graph/ir/Dialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace charonia::graph;

using Result = std::optional<Scalar>;

static Scalar real(double value) { return {value, 0}; }
static Scalar integer(int64_t value) { return {0, value}; }
static Type elementOf(Value v) { return getElementTypeOrSelf(v); }
static bool isFloat(Operation *op) {
  return isa<FloatType>(elementOf(op->getOperand(0)));
}

/// Integers wrap.
static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

static double modulo(double x, double y) {
  double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static double larger(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::nan("") : std::max(x, y);
}
static double smaller(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::nan("") : std::min(x, y);
}

static Result floats(Operation *op, ArrayRef<Scalar> operands) {
  double x = operands[0].real, y = operands.size() > 1 ? operands[1].real : 0;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](NegOp) { return real(-x); })
      .Case([&](AbsOp) { return real(std::fabs(x)); })
      .Case([&](SignOp) {
        return real(std::isnan(x) ? x : double((x > 0) - (x < 0)));
      })
      .Case([&](ExpOp) { return real(std::exp(x)); })
      .Case([&](LogOp) { return real(std::log(x)); })
      .Case([&](SqrtOp) { return real(std::sqrt(x)); })
      .Case([&](RsqrtOp) { return real(1 / std::sqrt(x)); })
      .Case([&](ReciprocalOp) { return real(1 / x); })
      .Case([&](ErfOp) { return real(std::erf(x)); })
      .Case([&](TanhOp) { return real(std::tanh(x)); })
      .Case([&](SigmoidOp) { return real(1 / (1 + std::exp(-x))); })
      .Case([&](SinOp) { return real(std::sin(x)); })
      .Case([&](CosOp) { return real(std::cos(x)); })
      .Case([&](TanOp) { return real(std::tan(x)); })
      .Case([&](AsinOp) { return real(std::asin(x)); })
      .Case([&](AcosOp) { return real(std::acos(x)); })
      .Case([&](AtanOp) { return real(std::atan(x)); })
      .Case([&](SinhOp) { return real(std::sinh(x)); })
      .Case([&](CoshOp) { return real(std::cosh(x)); })
      .Case([&](AsinhOp) { return real(std::asinh(x)); })
      .Case([&](AcoshOp) { return real(std::acosh(x)); })
      .Case([&](Expm1Op) { return real(std::expm1(x)); })
      .Case([&](Log1pOp) { return real(std::log1p(x)); })
      .Case([&](AtanhOp) { return real(std::atanh(x)); })
      .Case([&](FloorOp) { return real(std::floor(x)); })
      .Case([&](CeilOp) { return real(std::ceil(x)); })
      .Case([&](RoundOp) { return real(std::nearbyint(x)); })
      .Case([&](GeluOp gelu) {
        double inner =
            gelu.getTanh()
                ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))
                : std::erf(x / M_SQRT2);
        return real(0.5 * x * (1 + inner));
      })
      .Case([&](AddOp) { return real(x + y); })
      .Case([&](SubOp) { return real(x - y); })
      .Case([&](MulOp) { return real(x * y); })
      .Case([&](DivOp) { return real(x / y); })
      .Case([&](ModOp) { return real(modulo(x, y)); })
      .Case([&](FmodOp) { return real(std::fmod(x, y)); })
      .Case([&](PowOp) {
        bool isReal = isa<FloatType>(elementOf(op->getOperand(1)));
        return real(std::pow(x, isReal ? y : double(operands[1].integer)));
      })
      .Case([&](MaxOp) { return real(larger(x, y)); })
      .Case([&](MinOp) { return real(smaller(x, y)); })
      .Case([&](IsNanOp) { return integer(std::isnan(x)); })
      .Case([&](IsInfOp isInf) {
        return integer(std::isinf(x) &&
                       (x > 0 ? isInf.getPositive() : isInf.getNegative()));
      })
      .Default([](Operation *) { return Result(); });
}

static Result integers(Operation *op, ArrayRef<Scalar> operands) {
  int64_t x = operands[0].integer,
          y = operands.size() > 1 ? operands[1].integer : 0;
  constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
  bool divides = y != 0 && !(x == lowest && y == -1);
  bool isBool = elementOf(op->getOperand(0)).isInteger(1);
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](NegOp) { return integer(wrap(-uint64_t(x))); })
      .Case([&](AbsOp) { return integer(x < 0 ? wrap(-uint64_t(x)) : x); })
      .Case([&](SignOp) { return integer((x > 0) - (x < 0)); })
      .Case([&](NotOp) { return integer(isBool ? !x : ~x); })
      .Case([&](AddOp) { return integer(wrap(uint64_t(x) + uint64_t(y))); })
      .Case([&](SubOp) { return integer(wrap(uint64_t(x) - uint64_t(y))); })
      .Case([&](MulOp) { return integer(wrap(uint64_t(x) * uint64_t(y))); })
      .Case([&](DivOp) {
        return divides ? Result(integer(x / y)) : std::nullopt;
      })
      .Case([&](ModOp) -> Result {
        if (!divides)
          return std::nullopt;
        int64_t r = x % y;
        return integer(r != 0 && (r < 0) != (y < 0) ? r + y : r);
      })
      .Case([&](FmodOp) {
        return divides ? Result(integer(x % y)) : std::nullopt;
      })
      .Case([&](MaxOp) { return integer(std::max(x, y)); })
      .Case([&](MinOp) { return integer(std::min(x, y)); })
      .Case([&](AndOp) { return integer(x & y); })
      .Case([&](OrOp) { return integer(x | y); })
      .Case([&](XorOp) { return integer(x ^ y); })
      .Default([](Operation *) { return Result(); });
}

template <typename T> static bool holds(Predicate predicate, T a, T b) {
  switch (predicate) {
  case Predicate::eq:
    return a == b;
  case Predicate::ne:
    return a != b;
  case Predicate::lt:
    return a < b;
  case Predicate::le:
    return a <= b;
  case Predicate::gt:
    return a > b;
  case Predicate::ge:
    return a >= b;
  }
  llvm_unreachable("all predicates are above");
}

static Result convert(Scalar x, Type from, Type to) {
  if (isa<FloatType>(to))
    return isa<FloatType>(from) ? x : real(double(x.integer));
  if (!isa<FloatType>(from))
    return to.isInteger(1) ? integer(x.integer != 0) : x;
  if (to.isInteger(1))
    return integer(x.real != 0);
  // What does not fit has no portable value.
  unsigned bits = to.isIndex() ? 64 : to.getIntOrFloatBitWidth();
  double limit = std::ldexp(1.0, bits - !to.isUnsignedInteger());
  double low = to.isUnsignedInteger() ? 0 : -limit;
  double truncated = std::trunc(x.real);
  if (!(truncated >= low && truncated < limit && truncated < 0x1p63))
    return std::nullopt;
  return integer(static_cast<int64_t>(truncated));
}

std::optional<Scalar>
charonia::graph::evaluateScalar(Operation *op, ArrayRef<Scalar> operands) {
  if (auto cast = dyn_cast<CastOp>(op))
    return convert(operands[0], elementOf(cast.getInput()), cast.getTo());
  if (isa<SelectOp>(op))
    return operands[operands[0].integer ? 1 : 2];
  if (auto compare = dyn_cast<CompareOp>(op)) {
    Predicate predicate = compare.getPredicate();
    return integer(
        isFloat(op)
            ? holds(predicate, operands[0].real, operands[1].real)
            : holds(predicate, operands[0].integer, operands[1].integer));
  }
  return isFloat(op) ? floats(op, operands) : integers(op, operands);
}
