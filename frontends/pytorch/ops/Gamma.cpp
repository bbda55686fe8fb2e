// Functions of statistics and of whole numbers, as compositions of elementwise
// operators.
#include "frontends/common/builders/Gamma.h"
#include "frontends/common/builders/Special.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;

/// What `build` makes of the operand in double.
template <Value (*build)(Value, Emitter &)>
static LogicalResult inDouble(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.operand("self", e.getBuilder().getF64Type());
  return c.yield(e.cast(build(x, e), c.resultElement()));
}

/// The greatest common divisor of integers without sign, by as many of Euclid's
/// steps as the type's largest Fibonacci numbers take.
static Value commonDivisor(Value a, Value b, Emitter &e) {
  if (!a || !b)
    return {};
  mlir::Type element = elementOf(a);
  Value zero = e.scalar(int64_t(0), element),
        one = e.scalar(int64_t(1), element);
  unsigned bits = element.getIntOrFloatBitWidth();
  for (unsigned step = 0; step < bits * 3 / 2; ++step) {
    Value isDone = e.compare(Predicate::eq, b, zero);
    Value rest = e.op<graph::FmodOp>({a, e.select(isDone, one, b)});
    a = e.select(isDone, a, b);
    b = e.select(isDone, zero, rest);
  }
  return a;
}
static bool isUnsigned(Value x) {
  return x && elementOf(x).isUnsignedInteger();
}
template <bool multiple> static LogicalResult divisor(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.arithmeticType({"self", "other"});
  if (!llvm::isa_and_present<mlir::IntegerType>(element) ||
      element.isInteger(1))
    return c.fail("is of integers");
  auto magnitude = [&](Value x) {
    return isUnsigned(x) ? x : e.op<graph::AbsOp>({x});
  };
  Value a = magnitude(c.operand("self", element)),
        b = magnitude(c.operand("other", element)), y = commonDivisor(a, b, e);
  if (!multiple)
    return c.yield(e.cast(y, c.resultElement()));
  Value zero = e.scalar(int64_t(0), element);
  Value isZero = e.compare(Predicate::eq, y, zero);
  Value part = e.div(a, e.select(isZero, e.scalar(int64_t(1), element), y));
  // Of less than 32 bits the product is one of those, as in C++.
  mlir::Type wide = element.getIntOrFloatBitWidth() < 32
                        ? mlir::Type(e.getBuilder().getI32Type())
                        : element;
  y = magnitude(e.mul(e.cast(part, wide), e.cast(b, wide)));
  return c.yield(e.cast(y, c.resultElement()));
}

/// Modified Bessel functions; `scaled` ones times exp(-|x|).
template <int order, bool scaled> static Value besselI(Value x, Emitter &e) {
  return buildBesselI(x, order, scaled, e);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::gammaRows() {
  static const Row rows[] = {
      {"aten.lgamma.default", inDouble<buildLogGamma>},
      {"aten.special_gammaln.default", inDouble<buildLogGamma>},
      {"aten.digamma.default", inDouble<buildDigamma>},
      {"aten.special_digamma.default", inDouble<buildDigamma>},
      {"aten.special_psi.default", inDouble<buildDigamma>},
      {"aten.erfinv.default", inDouble<buildInverseErf>},
      {"aten.special_erfinv.default", inDouble<buildInverseErf>},
      {"aten.i0.default", inDouble<besselI<0, false>>},
      {"aten.special_i0.default", inDouble<besselI<0, false>>},
      {"aten.special_i0e.default", inDouble<besselI<0, true>>},
      {"aten.special_i1.default", inDouble<besselI<1, false>>},
      {"aten.special_i1e.default", inDouble<besselI<1, true>>},
      {"aten.gcd.default", divisor<false>},
      {"aten.lcm.default", divisor<true>},
  };
  return rows;
}
