#include "frontends/pytorch/Sizes.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using mlir::AffineExpr;

/// a / b of b > 0: exact where the factors of b are found in a.
AffineExpr Sizes::quotient(AffineExpr a, AffineExpr b, bool up) {
  if (AffineExpr exact =
          graph::constantOf(b) ? AffineExpr() : divideSizes({a}, {b}, context))
    return exact;
  if (!symbols.isAtLeast(b, mlir::getAffineConstantExpr(1, context)))
    return {};
  return graph::simplify(up ? a.ceilDiv(b) : a.floorDiv(b));
}

AffineExpr Sizes::operation(const Expression &expression,
                            llvm::ArrayRef<AffineExpr> operands) {
  const std::string &head = expression.head;
  bool isSum = head == "Add", isProduct = head == "Mul",
       isLeast = head == "Min", isMost = head == "Max";
  if (operands.empty())
    return {};
  if (isSum || isProduct || isLeast || isMost) {
    AffineExpr result = operands[0];
    for (AffineExpr next : operands.drop_front()) {
      int64_t exact;
      auto a = graph::constantOf(result), b = graph::constantOf(next);
      if (a && b &&
          (isProduct ? llvm::MulOverflow(*a, *b, exact)
                     : isSum && llvm::AddOverflow(*a, *b, exact)))
        return {};
      if (isSum || isProduct) {
        result = isSum ? result + next : result * next;
        continue;
      }
      bool firstIsMore = symbols.isAtLeast(result, next),
           nextIsMore = symbols.isAtLeast(next, result);
      if (!firstIsMore && !nextIsMore)
        return {};
      result = firstIsMore == isMost ? result : next;
    }
    return graph::simplify(result);
  }
  if ((head == "ToFloat" || head == "TruncToInt") && operands.size() == 1)
    return operands[0];
  if (operands.size() != 2)
    return {};
  AffineExpr a = operands[0], b = operands[1];
  if (head == "FloorDiv" || head == "CleanDiv")
    return quotient(a, b, /*up=*/false);
  if (head == "CeilDiv")
    return quotient(a, b, /*up=*/true);
  auto exponent = graph::constantOf(b);
  constexpr int64_t maxPower = 8;
  if (head == "Pow" && exponent && *exponent >= 0 && *exponent <= maxPower) {
    AffineExpr result = mlir::getAffineConstantExpr(1, context);
    for (int64_t i = 0; i < *exponent; ++i)
      result = result * a;
    return graph::simplify(result);
  }
  if ((head == "Mod" || head == "PythonMod") &&
      symbols.isAtLeast(b, mlir::getAffineConstantExpr(1, context)))
    return graph::simplify(a % b);
  return {};
}

AffineExpr Sizes::convert(const ExpressionPtr &expression) {
  if (!expression)
    return {};
  if (expression->head == "Integer")
    return mlir::getAffineConstantExpr(expression->value, context);
  if (expression->head == "Symbol") {
    auto it = bound.find(expression->name);
    return it == bound.end() ? AffineExpr() : symbols.resolve(it->second);
  }
  if (auto it = converted.find(expression.get()); it != converted.end())
    return symbols.resolve(it->second);
  // CeilToInt(IntTrueDiv(a, b)) is how a rounded division is written.
  const Expression *rounded = expression.get();
  bool isRounded =
      (expression->head == "CeilToInt" || expression->head == "FloorToInt" ||
       expression->head == "TruncToInt") &&
      expression->operands.size() == 1 &&
      expression->operands[0]->operands.size() == 2 &&
      (expression->operands[0]->head == "IntTrueDiv" ||
       expression->operands[0]->head == "FloatTrueDiv");
  if (isRounded)
    rounded = expression->operands[0].get();
  Exprs operands = convert(rounded->operands);
  AffineExpr result;
  if (llvm::all_of(operands, [](AffineExpr e) { return bool(e); }))
    result = isRounded ? quotient(operands[0], operands[1],
                                  expression->head == "CeilToInt")
                       : operation(*expression, operands);
  converted[expression.get()] = result;
  return result;
}

Exprs Sizes::convert(llvm::ArrayRef<ExpressionPtr> expressions) {
  Exprs result;
  for (const ExpressionPtr &expression : expressions)
    result.push_back(convert(expression));
  return result;
}

std::optional<bool> Sizes::decide(const ExpressionPtr &condition) {
  if (!condition)
    return std::nullopt;
  const std::string &head = condition->head;
  const auto &operands = condition->operands;
  if (head == "Integer")
    return condition->value != 0;
  if (head == "Not" && operands.size() == 1) {
    auto holds = decide(operands[0]);
    return holds ? std::optional(!*holds) : holds;
  }
  if (head == "And" || head == "Or") {
    // One side may settle it whatever the others are.
    bool settles = head == "Or", isOpen = false;
    for (const ExpressionPtr &operand : operands) {
      auto holds = decide(operand);
      if (holds == settles)
        return settles;
      isOpen |= !holds;
    }
    return isOpen ? std::nullopt : std::optional(!settles);
  }
  if (operands.size() != 2)
    return std::nullopt;
  AffineExpr a = convert(operands[0]), b = convert(operands[1]);
  if (!a || !b)
    return std::nullopt;
  auto atLeast = [&](AffineExpr x, AffineExpr y) -> std::optional<bool> {
    if (symbols.isAtLeast(x, y))
      return true;
    return symbols.isAtLeast(graph::simplify(y - 1), x) ? std::optional(false)
                                                        : std::nullopt;
  };
  auto negated = [](std::optional<bool> holds) {
    return holds ? std::optional(!*holds) : holds;
  };
  if (head == "GreaterThan")
    return atLeast(a, b);
  if (head == "LessThan")
    return atLeast(b, a);
  if (head == "StrictGreaterThan")
    return negated(atLeast(b, a));
  if (head == "StrictLessThan")
    return negated(atLeast(a, b));
  if (head != "Equality" && head != "Unequality")
    return std::nullopt;
  std::optional<bool> equal;
  if (graph::simplify(a - b) == 0)
    equal = true;
  else if (atLeast(a, b) == false || atLeast(b, a) == false)
    equal = false;
  return head == "Equality" ? equal : negated(equal);
}
