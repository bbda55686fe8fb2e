#include "frontends/pytorch/Expression.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::StringRef;

/// Deeper and longer ones no shape has.
constexpr int maxDepth = 64;
constexpr size_t maxText = size_t(1) << 16;

ExpressionPtr charonia::frontend::pytorch::makeInteger(int64_t value) {
  auto expression = std::make_shared<Expression>();
  expression->head = "Integer";
  expression->value = value;
  return expression;
}

std::optional<int64_t>
charonia::frontend::pytorch::integerOf(const ExpressionPtr &expression) {
  if (expression && expression->head == "Integer")
    return expression->value;
  return std::nullopt;
}

std::string Expression::toString() const {
  if (head == "Integer")
    return std::to_string(value);
  if (head == "Symbol" || head == "Float")
    return printable(name);
  if (operands.empty())
    return printable(head);
  bool isSum = head == "Add", isProduct = head == "Mul";
  std::string text = isSum || isProduct ? "(" : printable(head) + "(";
  constexpr size_t longest = 400;
  for (size_t i = 0; i < operands.size() && text.size() < longest; ++i)
    text += (i == 0      ? ""
             : isSum     ? " + "
             : isProduct ? "*"
                         : ", ") +
            operands[i]->toString();
  return text + ")";
}

namespace {
/// Name(operand, ..., key=value, ...), where operands are of the same form,
/// whole or decimal numbers, or quoted names.
class Parser {
public:
  explicit Parser(StringRef text) : rest(text) {}
  ExpressionPtr parse(int depth);
  bool isAtEnd() {
    rest = rest.ltrim();
    return rest.empty();
  }
  std::string problem;

private:
  ExpressionPtr fail(const char *what) {
    if (problem.empty())
      problem = what;
    return {};
  }
  StringRef word();
  bool take(char c) {
    rest = rest.ltrim();
    return rest.consume_front(StringRef(&c, 1));
  }
  bool parseOperand(Expression &into, int depth);

  StringRef rest;
};
} // namespace

StringRef Parser::word() {
  rest = rest.ltrim();
  StringRef found = rest.take_while(
      [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
  rest = rest.drop_front(found.size());
  return found;
}

/// A keyword argument says nothing that is needed here: its value is skipped.
bool Parser::parseOperand(Expression &into, int depth) {
  rest = rest.ltrim();
  StringRef before = rest, key = word();
  if (!key.empty() && take('=')) {
    if (take('\''))
      return rest = rest.drop_until([](char c) { return c == '\''; }),
             take('\'');
    return !word().empty();
  }
  rest = before;
  if (take('\'')) {
    StringRef name = rest.take_until([](char c) { return c == '\''; });
    rest = rest.drop_front(name.size());
    into.name = name.str();
    return take('\'');
  }
  if (rest.starts_with("-") || (!rest.empty() && llvm::isDigit(rest[0]))) {
    bool negative = take('-');
    StringRef digits = word();
    auto number = std::make_shared<Expression>();
    number->head = "Integer";
    if ((negative ? ("-" + digits).str() : digits.str()).empty() ||
        StringRef(negative ? ("-" + digits).str() : digits.str())
            .getAsInteger(10, number->value)) {
      number->head = "Number";
      number->name = digits.str();
    }
    into.operands.push_back(number);
    return true;
  }
  ExpressionPtr operand = parse(depth + 1);
  if (operand)
    into.operands.push_back(operand);
  return bool(operand);
}

ExpressionPtr Parser::parse(int depth) {
  if (depth > maxDepth)
    return fail("nests too deep");
  auto result = std::make_shared<Expression>();
  result->head = word().str();
  if (result->head.empty())
    return fail("has no operator where one is expected");
  if (!take('('))
    return result; // a named constant
  if (!take(')')) {
    do
      if (!parseOperand(*result, depth))
        return fail("has an operand that cannot be read");
    while (take(','));
    if (!take(')'))
      return fail("lacks a closing parenthesis");
  }
  if (result->head == "Integer") {
    if (result->operands.size() != 1 || !integerOf(result->operands[0]))
      return fail("has an integer that is none of 64 bits");
    return result->operands[0];
  }
  // "Float('0.5', precision=53)"
  if (result->head == "Float" &&
      (StringRef(result->name).getAsDouble(result->number) ||
       !std::isfinite(result->number)))
    return fail("has a float that is no number");
  if (result->head == "Symbol" && result->name.empty())
    return fail("has a symbol without a name");
  return result;
}

ExpressionPtr ExpressionParser::parse(StringRef text, std::string &problem) {
  if (auto it = known.find(text); it != known.end())
    return it->second;
  if (text.size() > maxText) {
    problem = "is a text of " + std::to_string(text.size()) + " bytes";
    return {};
  }
  Parser parser(text);
  ExpressionPtr result = parser.parse(0);
  if (result && !parser.isAtEnd()) {
    parser.problem = "goes on behind its end";
    result = {};
  }
  if (!result) {
    problem = parser.problem;
    return {};
  }
  known[text] = result;
  return result;
}
