#include "codegen/math/ExpandMath.h"
#include "codegen/math/Functions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::functions;

namespace {

/// The number of a constant, or that of all elements of one.
std::optional<APFloat> numberOf(Value value) {
  FloatAttr scalar;
  DenseFPElementsAttr dense;
  if (matchPattern(value, m_Constant(&scalar)))
    return scalar.getValue();
  if (matchPattern(value, m_Constant(&dense)) && dense.isSplat())
    return dense.getSplatValue<APFloat>();
  return std::nullopt;
}

/// x^c for constants that need no logarithm.
std::optional<Num> powConstant(const Num &x, Value exponent) {
  std::optional<APFloat> number = numberOf(exponent);
  if (!number)
    return std::nullopt;
  double c = number->convertToDouble();
  if (c == 1)
    return x;
  if (c == 2)
    return x * x;
  // Products of more would round more often than the power.
  if (c == -1)
    return x.constant(1) / x;
  return std::nullopt;
}

/// x / c for constants, if it has to be exact.
std::optional<Num> quotientByConstant(const Num &x, arith::DivFOp op) {
  std::optional<APFloat> c = numberOf(op.getRhs());
  if (!c || bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
    return std::nullopt;
  return quotientBy(x, *c);
}

struct Expander {
  const ExpandMathOptions &options;

  std::optional<Num> expand(Operation *op, ArrayRef<Num> v) {
    const Num &x = v[0];
    bool f32 = !x.isF64();
    return llvm::TypeSwitch<Operation *, std::optional<Num>>(op)
        .Case<math::ExpOp>([&](auto) -> std::optional<Num> {
          if (options.exp && f32)
            return std::nullopt;
          return options.exp2 && f32 ? x.unary<math::Exp2Op>(x * (1 / kLn2))
                                     : expOf(x);
        })
        .Case<math::Exp2Op>([&](auto) -> std::optional<Num> {
          if (options.exp2 && f32)
            return std::nullopt;
          return exp2Of(x);
        })
        .Case<math::ExpM1Op>([&](auto) { return expm1Of(x); })
        .Case<math::LogOp>([&](auto) {
          return options.log2 && f32 ? x.unary<math::Log2Op>(x) * kLn2
                                     : logOf(x);
        })
        .Case<math::Log2Op>([&](auto) -> std::optional<Num> {
          if (options.log2 && f32)
            return std::nullopt;
          return log2Of(x);
        })
        .Case<math::Log10Op>([&](auto) { return log10Of(x); })
        .Case<math::Log1pOp>([&](auto) { return log1pOf(x); })
        .Case<math::TanhOp>([&](auto) -> std::optional<Num> {
          if (options.tanh && f32)
            return std::nullopt;
          return tanhOf(x);
        })
        .Case<math::RsqrtOp>([&](auto) -> std::optional<Num> {
          if (options.rsqrt && f32)
            return std::nullopt;
          return rsqrtOf(x);
        })
        .Case<math::ErfOp>([&](auto) { return erfOf(x); })
        .Case<math::ErfcOp>([&](auto) { return erfcOf(x); })
        .Case<math::SinOp>([&](auto) { return sinShifted(x, 0); })
        .Case<math::CosOp>([&](auto) { return sinShifted(x, 1); })
        .Case<math::TanOp>([&](auto) { return tanOf(x); })
        .Case<math::AsinOp>([&](auto) { return asinOf(x); })
        .Case<math::AcosOp>([&](auto) { return acosOf(x); })
        .Case<math::AtanOp>([&](auto) { return atanOf(x); })
        .Case<math::SinhOp>([&](auto) { return sinhOf(x); })
        .Case<math::CoshOp>([&](auto) { return coshOf(x); })
        .Case<math::AsinhOp>([&](auto) { return asinhOf(x); })
        .Case<math::AcoshOp>([&](auto) { return acoshOf(x); })
        .Case<math::AtanhOp>([&](auto) { return atanhOf(x); })
        .Case<math::PowFOp>([&](auto op) {
          std::optional<Num> simple = powConstant(x, op.getRhs());
          return simple ? simple : powOf(x, v[1]);
        })
        .Case<math::RoundOp>([&](auto) { return roundOf(x); })
        .Case<arith::DivFOp>([&](auto op) {
          return options.div ? std::nullopt : quotientByConstant(x, op);
        })
        .Case<arith::RemFOp>([&](auto) { return fmodOf(x, v[1]); })
        .Default([](auto) { return std::nullopt; });
  }
};

} // namespace

void charonia::expandMath(Operation *root, const ExpandMathOptions &options) {
  SmallVector<Operation *> work;
  root->walk([&](Operation *op) {
    if ((isa<math::MathDialect>(op->getDialect()) ||
         isa<arith::DivFOp, arith::RemFOp>(op)) &&
        op->getNumResults() == 1) {
      Type element = getElementTypeOrSelf(op->getResult(0).getType());
      if ((element.isF32() || element.isF64()) &&
          llvm::all_of(op->getOperandTypes(), [&](Type t) {
            return getElementTypeOrSelf(t) == element;
          }))
        work.push_back(op);
    }
  });
  Expander expander{options};
  for (Operation *op : work) {
    OpBuilder builder(op);
    Expressions expressions(builder, op->getLoc(), op->getResult(0).getType());
    SmallVector<Num> operands;
    for (Value operand : op->getOperands())
      operands.push_back(expressions.number(operand));
    if (std::optional<Num> result = expander.expand(op, operands)) {
      op->getResult(0).replaceAllUsesWith(result->value());
      op->erase();
    }
  }
}
