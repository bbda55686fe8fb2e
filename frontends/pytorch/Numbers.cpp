#include "frontends/pytorch/Numbers.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::StringRef;
using mlir::Value;

namespace {
class Builder {
public:
  Builder(Sizes &sizes, Emitter &e)
      : sizes(sizes), e(e), i64(e.getBuilder().getI64Type()),
        f64(e.getBuilder().getF64Type()) {}

  Value build(const ExpressionPtr &expression);

private:
  Value combine(StringRef head, Value a, Value b);
  Value round(StringRef head, Value x);
  Value function(StringRef head, Value x);
  Value wide(Value x) { return e.cast(x, f64); }

  Sizes &sizes;
  Emitter &e;
  mlir::Type i64, f64;
};
} // namespace

/// Of two numbers; null where the operator is none of those.
Value Builder::combine(StringRef head, Value a, Value b) {
  if (head == "FloatTrueDiv" || head == "IntTrueDiv")
    return e.div(wide(a), wide(b));
  if (head == "FloatPow")
    return e.op<graph::PowOp>({wide(a), wide(b)});
  if (isFloat(a) != isFloat(b)) {
    a = wide(a);
    b = wide(b);
  }
  if (head == "Add")
    return e.add(a, b);
  if (head == "Mul")
    return e.mul(a, b);
  if (head == "Max")
    return e.max(a, b);
  if (head == "Min")
    return e.min(a, b);
  if (head == "Pow" || head == "PowByNatural")
    return e.op<graph::PowOp>({a, b});
  if (isFloat(a))
    return {};
  Value rest = e.op<graph::ModOp>({a, b});
  if (head == "Mod" || head == "PythonMod")
    return rest;
  if (head == "FloorDiv" || head == "CleanDiv")
    return e.div(e.sub(a, rest), b);
  return {};
}

/// A float as an integer; null where the operator is none of those.
Value Builder::round(StringRef head, Value x) {
  if (head == "FloorToInt")
    return e.cast(e.op<graph::FloorOp>({wide(x)}), i64);
  if (head == "CeilToInt")
    return e.cast(e.op<graph::CeilOp>({wide(x)}), i64);
  if (head == "RoundToInt")
    return e.cast(e.op<graph::RoundOp>({wide(x)}), i64);
  return head == "TruncToInt" ? e.cast(wide(x), i64) : Value();
}

Value Builder::function(StringRef head, Value x) {
  if (head == "ToFloat")
    return wide(x);
  if (!head.consume_front("OpaqueUnaryFn_"))
    return round(head, x);
  if (head == "sqrt")
    return e.op<graph::SqrtOp>({wide(x)});
  if (head == "exp")
    return e.op<graph::ExpOp>({wide(x)});
  return head == "log" ? e.op<graph::LogOp>({wide(x)}) : Value();
}

Value Builder::build(const ExpressionPtr &expression) {
  if (!expression)
    return {};
  if (expression->head == "Float")
    return e.scalar(expression->number, f64);
  if (mlir::AffineExpr size = sizes.convert(expression))
    return e.size(size, i64);
  if (expression->head == "Symbol")
    if (Value number = sizes.numberOf(expression->name))
      return e.cast(number, isFloat(number) ? f64 : i64);
  Value result;
  for (const ExpressionPtr &operand : expression->operands) {
    Value next = build(operand);
    if (!next)
      return {};
    result = result ? combine(expression->head, result, next) : next;
  }
  return result && expression->operands.size() == 1
             ? function(expression->head, result)
             : result;
}

Value charonia::frontend::pytorch::buildNumber(const ExpressionPtr &expression,
                                               Sizes &sizes, Emitter &emitter) {
  return Builder(sizes, emitter).build(expression);
}
