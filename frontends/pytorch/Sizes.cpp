#include "frontends/pytorch/Sizes.h"
#include "frontends/common/SizeCases.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using mlir::AffineExpr;
using Op = graph::SizeStep::Op;

/// a / b of b > 0: exact where the factors of b are found in a.
AffineExpr Sizes::quotient(AffineExpr a, AffineExpr b, bool up) {
  if (AffineExpr exact =
          graph::constantOf(b) ? AffineExpr() : divideSizes({a}, {b}, context))
    return exact;
  if (!symbols.isAtLeast(b, mlir::getAffineConstantExpr(1, context)))
    return {};
  return graph::simplify(up ? a.ceilDiv(b) : a.floorDiv(b));
}

/// Whether no number in the sum or product of two expressions, nor one that
/// further arithmetic is likely to make of it, leaves 64 bits.
static bool staysSmall(AffineExpr a, AffineExpr b, bool isProduct) {
  constexpr int64_t most = int64_t(1) << 60;
  auto largest = [](AffineExpr expr) {
    int64_t result = 1;
    expr.walk([&](AffineExpr e) {
      int64_t c = graph::constantOf(e).value_or(0);
      result = std::max(result, c == INT64_MIN ? INT64_MAX : std::abs(c));
    });
    return result;
  };
  int64_t x = largest(a), y = largest(b), both;
  bool overflows =
      isProduct ? llvm::MulOverflow(x, y, both) : llvm::AddOverflow(x, y, both);
  return !overflows && both <= most;
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
      if (isSum || isProduct) {
        if (!staysSmall(result, next, isProduct))
          return {};
        result = isSum ? result + next : result * next;
        continue;
      }
      result = largerOf(symbols, result, next, isMost);
      if (!result)
        return {};
    }
    return graph::simplify(result);
  }
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
    for (int64_t i = 0; i < *exponent; ++i) {
      if (!staysSmall(result, a, /*isProduct=*/true))
        return {};
      result = result * a;
    }
    return graph::simplify(result);
  }
  if ((head == "Mod" || head == "PythonMod") &&
      symbols.isAtLeast(b, mlir::getAffineConstantExpr(1, context)))
    return graph::simplify(a % b);
  return {};
}

static bool isRounding(llvm::StringRef head) {
  return head == "TruncToInt" || head == "FloorToInt" || head == "CeilToInt" ||
         head == "RoundToInt";
}

bool Sizes::isFloat(const Expression &expression) {
  llvm::StringRef head = expression.head;
  if (head == "Float" || head == "ToFloat" || head == "IntTrueDiv" ||
      head == "FloatTrueDiv" || head == "FloatPow" ||
      head.starts_with("OpaqueUnaryFn_"))
    return true;
  bool isEither = head == "Add" || head == "Mul" || head == "Min" ||
                  head == "Max" || head == "Pow";
  return isEither && llvm::any_of(expression.operands, [](const auto &operand) {
           return isFloat(*operand);
         });
}

/// The integer that an expression is, or is made of as a float; null where it
/// is another float.
AffineExpr Sizes::whole(const ExpressionPtr &expression) {
  bool isWrapped =
      expression->head == "ToFloat" && expression->operands.size() == 1;
  const ExpressionPtr &inner = isWrapped ? expression->operands[0] : expression;
  return isFloat(*inner) ? AffineExpr() : convert(inner);
}

/// Appends the steps that compute a float, in double precision as Python has
/// it; whether there are such.
bool Sizes::appendFloat(const ExpressionPtr &expression,
                        graph::SizeProgram &program) {
  constexpr size_t maxSteps = 64;
  llvm::StringRef head = expression->head;
  const auto &operands = expression->operands;
  if (program.size() > maxSteps)
    return false;
  if (head == "Float") {
    program.push_back({Op::Number, {}, expression->number});
    return true;
  }
  if (AffineExpr size = whole(expression)) {
    program.push_back({Op::Size, size, 0});
    program.push_back({Op::ToFloat, {}, 0});
    return true;
  }
  bool isRoot = head == "OpaqueUnaryFn_sqrt" && operands.size() == 1;
  if (head == "FloatPow" && operands.size() == 2)
    isRoot = operands[1]->head == "Float" && operands[1]->number == 0.5;
  if (isRoot) {
    bool known = appendFloat(operands[0], program);
    program.push_back({Op::Sqrt, {}, 0});
    return known;
  }
  auto op = llvm::StringSwitch<std::optional<Op>>(head)
                .Case("Add", Op::FloatAdd)
                .Case("Mul", Op::FloatMul)
                .Case("Max", Op::FloatMax)
                .Case("Min", Op::FloatMin)
                .Cases({"IntTrueDiv", "FloatTrueDiv"}, Op::FloatDiv)
                .Default(std::nullopt);
  if (!op || operands.size() < 2 ||
      (*op == Op::FloatDiv && operands.size() != 2))
    return false;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (!appendFloat(operand, program))
      return false;
    if (i)
      program.push_back({*op, {}, 0});
  }
  return true;
}

/// A size times a float whose products are exact: a fraction by a power of two.
AffineExpr Sizes::scaled(const Expression &product, bool up) {
  constexpr double divisor = 1024, maxFactor = 1024;
  if (product.head != "Mul" || product.operands.size() != 2)
    return {};
  bool isSecond = product.operands[1]->head == "Float";
  const Expression &factor = *product.operands[isSecond ? 1 : 0];
  double multiple = factor.number * divisor;
  if (factor.head != "Float" || !(multiple > 0) ||
      multiple > divisor * maxFactor || multiple != std::floor(multiple))
    return {};
  AffineExpr size = whole(product.operands[isSecond ? 0 : 1]);
  if (!size ||
      !symbols.isAtLeast(size, mlir::getAffineConstantExpr(0, context)))
    return {};
  int64_t numerator = static_cast<int64_t>(multiple),
          denominator = static_cast<int64_t>(divisor),
          common = std::gcd(numerator, denominator);
  AffineExpr multiplied = size * (numerator / common);
  denominator /= common;
  return graph::simplify(up ? multiplied.ceilDiv(denominator)
                            : multiplied.floorDiv(denominator));
}

/// A float as an integer. Of divisions of integers it is the exact one, as
/// Python's is for sizes.
AffineExpr Sizes::rounded(llvm::StringRef head, const ExpressionPtr &number) {
  bool up = head == "CeilToInt";
  const auto &operands = number->operands;
  if (AffineExpr size = whole(number))
    return size;
  bool divides = number->head == "IntTrueDiv" || number->head == "FloatTrueDiv";
  if (divides && operands.size() == 2 && head != "RoundToInt") {
    AffineExpr a = whole(operands[0]), b = whole(operands[1]);
    if (a && b &&
        (head != "TruncToInt" ||
         symbols.isAtLeast(a, mlir::getAffineConstantExpr(0, context))))
      if (AffineExpr exact = quotient(a, b, up))
        return exact;
  }
  if (head != "RoundToInt")
    if (AffineExpr exact = scaled(*number, up))
      return exact;
  graph::SizeProgram program;
  if (!appendFloat(number, program))
    return {};
  if (head != "TruncToInt")
    program.push_back({up                     ? Op::Ceil
                       : head == "FloorToInt" ? Op::Floor
                                              : Op::Round,
                       {},
                       0});
  program.push_back({Op::Truncate, {}, 0});
  return symbols.define(program);
}

AffineExpr Sizes::convert(const ExpressionPtr &expression) {
  if (!expression)
    return {};
  if (expression->head == "Integer")
    return mlir::getAffineConstantExpr(expression->value, context);
  if (expression->head == "Symbol") {
    auto it = known.bound.find(expression->name);
    return it == known.bound.end() ? AffineExpr() : symbols.resolve(it->second);
  }
  if (auto it = known.converted.find(expression.get());
      it != known.converted.end())
    return symbols.resolve(it->second);
  const std::string &head = expression->head;
  AffineExpr result;
  if (isRounding(head) && expression->operands.size() == 1) {
    result = rounded(head, expression->operands[0]);
  } else if (head == "Choice" && expression->operands.size() == 3) {
    AffineExpr a = convert(expression->operands[1]),
               b = convert(expression->operands[2]),
               condition =
                   a && b ? truth(expression->operands[0]) : AffineExpr();
    if (condition)
      result = choiceOf(symbols, condition, a, b);
  } else if (!isFloat(*expression)) {
    Exprs operands = convert(expression->operands);
    if (llvm::all_of(operands, [](AffineExpr e) { return bool(e); }))
      result = operation(*expression, operands);
  }
  // What ranges leave one number for is that number: a quotient of sizes that
  // stay below its divisor.
  if (result && !graph::constantOf(result))
    if (graph::Interval range = symbols.bounds(result);
        range.isBounded() && range.low == range.high)
      result = mlir::getAffineConstantExpr(range.low, context);
  // A symbol may be bound later.
  if (result)
    known.converted[expression.get()] = result;
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
    return decideFloats(head, operands);
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
