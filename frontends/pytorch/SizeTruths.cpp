// Conditions on sizes, of integers and of floats.
#include "frontends/common/SizeCases.h"
#include "frontends/pytorch/Sizes.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::NumberRange;
using mlir::AffineExpr;
using Op = graph::SizeStep::Op;

/// The range of a function of two numbers that rises or falls in each.
static std::optional<NumberRange>
atCorners(NumberRange a, NumberRange b,
          llvm::function_ref<double(double, double)> function) {
  NumberRange result{INFINITY, -INFINITY};
  for (double x : {a.low, a.high})
    for (double y : {b.low, b.high}) {
      double value = function(x, y);
      if (!std::isfinite(value))
        return std::nullopt;
      result = {std::min(result.low, value), std::max(result.high, value)};
    }
  return result;
}

static double (*functionOf(llvm::StringRef head))(double, double) {
  using Function = double (*)(double, double);
  return llvm::StringSwitch<Function>(head)
      .Case("Add", [](double a, double b) { return a + b; })
      .Case("Mul", [](double a, double b) { return a * b; })
      .Case("Max", [](double a, double b) { return std::max(a, b); })
      .Case("Min", [](double a, double b) { return std::min(a, b); })
      .Cases({"IntTrueDiv", "FloatTrueDiv"},
             [](double a, double b) { return a / b; })
      .Cases({"Pow", "FloatPow"},
             [](double a, double b) { return std::pow(a, b); })
      .Default(nullptr);
}

static double (*roundingOf(llvm::StringRef head))(double) {
  using Function = double (*)(double);
  return llvm::StringSwitch<Function>(head)
      .Case("ToFloat", [](double a) { return a; })
      .Case("TruncToInt", [](double a) { return std::trunc(a); })
      .Case("FloorToInt", [](double a) { return std::floor(a); })
      .Case("CeilToInt", [](double a) { return std::ceil(a); })
      .Case("OpaqueUnaryFn_sqrt", [](double a) { return std::sqrt(a); })
      .Default(nullptr);
}

/// Where a number lies for all sizes; none where that cannot be told.
std::optional<NumberRange> Sizes::rangeOf(const ExpressionPtr &number) {
  const std::string &head = number->head;
  if (head == "Float")
    return NumberRange{number->number, number->number};
  if (!isFloat(*number))
    if (AffineExpr size = convert(number)) {
      graph::Interval range = symbols.bounds(size);
      return range.isBounded() ? std::optional(NumberRange{double(range.low),
                                                           double(range.high)})
                               : std::nullopt;
    }
  const auto &operands = number->operands;
  if (operands.empty())
    return std::nullopt;
  std::optional<NumberRange> result = rangeOf(operands.front());
  if (auto *rounding = roundingOf(head))
    return result && operands.size() == 1
               ? atCorners(*result, *result,
                           [&](double a, double) { return rounding(a); })
               : std::nullopt;
  auto *function = functionOf(head);
  if (!function)
    return std::nullopt;
  for (const ExpressionPtr &next : llvm::ArrayRef(operands).drop_front()) {
    auto range = rangeOf(next);
    // No divisor may be 0, and powers rise or fall from 1 on, and up to it.
    bool divides = head.ends_with("TrueDiv"), isPower = head.ends_with("Pow");
    if (!result || !range || (divides && range->low <= 0) ||
        (isPower && result->low < 1))
      return std::nullopt;
    result = atCorners(*result, *range, function);
  }
  return result;
}

/// Of sides that are floats.
std::optional<bool> Sizes::decideFloats(llvm::StringRef relation,
                                        llvm::ArrayRef<ExpressionPtr> sides) {
  auto a = rangeOf(sides[0]), b = rangeOf(sides[1]);
  if (!a || !b)
    return std::nullopt;
  bool isOne = a->low == a->high && b->low == b->high;
  auto orders = [](bool holds, bool never) -> std::optional<bool> {
    return holds   ? std::optional(true)
           : never ? std::optional(false)
                   : std::nullopt;
  };
  if (relation == "GreaterThan")
    return orders(a->low >= b->high, a->high < b->low);
  if (relation == "StrictGreaterThan")
    return orders(a->low > b->high, a->high <= b->low);
  if (relation == "LessThan")
    return orders(a->high <= b->low, a->low > b->high);
  if (relation == "StrictLessThan")
    return orders(a->high < b->low, a->low >= b->high);
  bool apart = a->high < b->low || b->high < a->low,
       same = isOne && a->low == b->low;
  if (relation == "Equality")
    return orders(same, apart);
  return relation == "Unequality" ? orders(apart, same) : std::nullopt;
}

/// Whether a > b, in double precision.
AffineExpr Sizes::isMore(const ExpressionPtr &a, const ExpressionPtr &b) {
  AffineExpr left = isFloat(*a) ? AffineExpr() : convert(a),
             right = isFloat(*b) ? AffineExpr() : convert(b);
  if (left && right)
    return truthOf(symbols, graph::Predicate::gt, left, right);
  graph::SizeProgram program;
  if (!appendFloat(a, program) || !appendFloat(b, program))
    return {};
  // The difference of two numbers is 0 where they are equal, and only there.
  program.append({{Op::FloatSub, {}, 0},
                  {Op::Number, {}, 0},
                  {Op::FloatMax, {}, 0},
                  {Op::Number, {}, 1},
                  {Op::FloatMin, {}, 0},
                  {Op::Ceil, {}, 0},
                  {Op::Truncate, {}, 0}});
  return symbols.define(program);
}

AffineExpr Sizes::junction(llvm::ArrayRef<ExpressionPtr> conditions,
                           bool isOr) {
  graph::SizeProgram program;
  AffineExpr settled = mlir::getAffineConstantExpr(isOr, context);
  for (const ExpressionPtr &condition : conditions) {
    AffineExpr holds = truth(condition);
    if (!holds)
      return {};
    if (holds == settled)
      return holds;
    if (graph::constantOf(holds))
      continue;
    bool isFirst = program.empty();
    program.push_back({Op::Size, holds, 0});
    if (!isFirst)
      program.push_back({isOr ? Op::Max : Op::Min, {}, 0});
  }
  return program.empty() ? mlir::getAffineConstantExpr(!isOr, context)
                         : symbols.define(program);
}

AffineExpr Sizes::truth(const ExpressionPtr &condition) {
  if (!condition)
    return {};
  if (auto holds = decide(condition))
    return mlir::getAffineConstantExpr(*holds, context);
  llvm::StringRef head = condition->head;
  const auto &operands = condition->operands;
  auto negated = [](AffineExpr holds) {
    return holds ? graph::simplify(1 - holds) : holds;
  };
  if (head == "And" || head == "Or")
    return junction(operands, head == "Or");
  if (head == "Not" && operands.size() == 1)
    return negated(truth(operands[0]));
  if (operands.size() != 2)
    return {};
  const ExpressionPtr &a = operands[0], &b = operands[1];
  if (head == "StrictGreaterThan")
    return isMore(a, b);
  if (head == "StrictLessThan")
    return isMore(b, a);
  if (head == "GreaterThan")
    return negated(isMore(b, a));
  if (head == "LessThan")
    return negated(isMore(a, b));
  if (head != "Equality" && head != "Unequality")
    return {};
  AffineExpr more = isMore(a, b), less = isMore(b, a);
  if (!more || !less)
    return {};
  AffineExpr differs = graph::simplify(more + less);
  return head == "Equality" ? negated(differs) : differs;
}
