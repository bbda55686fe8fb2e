#include "frontends/pytorch/GuardText.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::StringRef;

/// Parentheses in parentheses.
constexpr int maxDepth = 64;
/// Divisions that each take the one before.
constexpr int maxDivisions = 16;

namespace charonia::frontend::pytorch {
/// Reads one text, by Python's precedence. Every function gives null once
/// something is wrong.
class GuardReader {
public:
  GuardReader(GuardParser &parser, StringRef text)
      : parser(parser), rest(text) {}

  ExpressionPtr readChoice(int depth);
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
  bool take(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  bool takeWord(StringRef word);
  StringRef readName();
  ExpressionPtr make(StringRef head, std::vector<ExpressionPtr> operands);
  ExpressionPtr makeInteger(int64_t value);

  ExpressionPtr readJunction(bool isOr, int depth);
  ExpressionPtr readNegation(int depth);
  ExpressionPtr readComparison(int depth);
  StringRef readRelation();
  ExpressionPtr readSum(int depth);
  ExpressionPtr readProduct(int depth);
  ExpressionPtr readSigned(int depth);
  ExpressionPtr readPower(int depth);
  ExpressionPtr readAtom(int depth);
  ExpressionPtr readNumber();
  ExpressionPtr readCall(StringRef function, int depth);
  ExpressionPtr readSource();
  bool readText(char quote, std::string &text);
  bool readKey(std::string &key, int depth = 0);

  GuardParser &parser;
  StringRef rest;
};
} // namespace charonia::frontend::pytorch

ExpressionPtr GuardParser::unique(Expression expression) {
  std::string key = expression.head + ":" + expression.name + ":" +
                    std::to_string(expression.value);
  for (const ExpressionPtr &operand : expression.operands)
    key += ":" + llvm::utohexstr(reinterpret_cast<uintptr_t>(operand.get()));
  ExpressionPtr &entry = known[key];
  if (!entry)
    entry = std::make_shared<Expression>(std::move(expression));
  return entry;
}

ExpressionPtr GuardReader::make(StringRef head,
                                std::vector<ExpressionPtr> operands) {
  if (!llvm::all_of(operands, [](const auto &e) { return bool(e); }))
    return {};
  // What is shared is looked at by each that reads it.
  constexpr int64_t maxNodes = 4096;
  int64_t nodes = 1;
  for (const ExpressionPtr &operand : operands)
    nodes += parser.nodesOf(operand);
  if (nodes > maxNodes)
    return fail("has too many terms");
  Expression expression;
  expression.head = head.str();
  expression.operands = std::move(operands);
  ExpressionPtr made = parser.unique(std::move(expression));
  parser.setNodes(made, nodes);
  return made;
}
ExpressionPtr GuardReader::makeInteger(int64_t value) {
  Expression expression;
  expression.head = "Integer";
  expression.value = value;
  return parser.unique(std::move(expression));
}

StringRef GuardReader::readName() {
  rest = rest.ltrim();
  StringRef name =
      rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  rest = rest.drop_front(name.size());
  return name;
}
bool GuardReader::takeWord(StringRef word) {
  StringRef before = rest;
  if (readName() == word)
    return true;
  rest = before;
  return false;
}

/// "a if c else b"
ExpressionPtr GuardReader::readChoice(int depth) {
  if (depth > maxDepth)
    return fail("nests too deep");
  ExpressionPtr value = readJunction(/*isOr=*/true, depth);
  if (!value || !takeWord("if"))
    return value;
  ExpressionPtr condition = readJunction(/*isOr=*/true, depth);
  if (!condition || !takeWord("else"))
    return fail("has a choice without an alternative");
  return make("Choice", {condition, value, readChoice(depth + 1)});
}

ExpressionPtr GuardReader::readJunction(bool isOr, int depth) {
  std::vector<ExpressionPtr> operands;
  do
    operands.push_back(isOr ? readJunction(/*isOr=*/false, depth)
                            : readNegation(depth));
  while (operands.back() && takeWord(isOr ? "or" : "and"));
  return operands.size() == 1 ? operands.front()
                              : make(isOr ? "Or" : "And", std::move(operands));
}

ExpressionPtr GuardReader::readNegation(int depth) {
  if (depth > maxDepth)
    return fail("nests too deep");
  return takeWord("not") ? make("Not", {readNegation(depth + 1)})
                         : readComparison(depth);
}

StringRef GuardReader::readRelation() {
  for (auto [token, head] :
       {std::pair("==", "Equality"), std::pair("!=", "Unequality"),
        std::pair("<=", "LessThan"), std::pair(">=", "GreaterThan"),
        std::pair("<", "StrictLessThan"), std::pair(">", "StrictGreaterThan")})
    if (take(token))
      return head;
  return "";
}

/// "a < b <= c" compares neighbours.
ExpressionPtr GuardReader::readComparison(int depth) {
  ExpressionPtr left = readSum(depth);
  std::vector<ExpressionPtr> all;
  while (left) {
    StringRef relation = readRelation();
    if (relation.empty())
      break;
    ExpressionPtr right = readSum(depth);
    all.push_back(make(relation, {left, right}));
    left = right;
  }
  if (!left || all.empty())
    return left;
  return all.size() == 1 ? all.front() : make("And", std::move(all));
}

ExpressionPtr GuardReader::readSum(int depth) {
  std::vector<ExpressionPtr> terms{readProduct(depth)};
  while (terms.back()) {
    if (take("+"))
      terms.push_back(readProduct(depth));
    else if (take("-"))
      terms.push_back(make("Mul", {makeInteger(-1), readProduct(depth)}));
    else
      break;
  }
  return terms.size() == 1 ? terms.front() : make("Add", std::move(terms));
}

ExpressionPtr GuardReader::readProduct(int depth) {
  std::vector<ExpressionPtr> factors{readSigned(depth)};
  auto product = [&] {
    return factors.size() == 1 ? factors.front() : make("Mul", factors);
  };
  for (int divisions = 0; factors.back();) {
    rest = rest.ltrim();
    // A power belongs to its base, which has been read.
    if (rest.starts_with("**"))
      return fail("has a power where none can be");
    if (take("*")) {
      factors.push_back(readSigned(depth));
      continue;
    }
    StringRef head = take("//")  ? "FloorDiv"
                     : take("/") ? "IntTrueDiv"
                     : take("%") ? "PythonMod"
                                 : "";
    if (head.empty())
      break;
    if (++divisions > maxDivisions)
      return fail("has too many divisions in a row");
    ExpressionPtr dividend = product();
    factors = {make(head, {dividend, readSigned(depth)})};
  }
  return product();
}

ExpressionPtr GuardReader::readSigned(int depth) {
  if (depth > maxDepth)
    return fail("nests too deep");
  if (take("+"))
    return readSigned(depth + 1);
  if (!take("-"))
    return readPower(depth);
  ExpressionPtr value = readSigned(depth + 1);
  if (auto number = integerOf(value); number && *number != INT64_MIN)
    return makeInteger(-*number);
  return make("Mul", {makeInteger(-1), value});
}

ExpressionPtr GuardReader::readPower(int depth) {
  ExpressionPtr base = readAtom(depth);
  if (!base || !take("**"))
    return base;
  ExpressionPtr exponent = readSigned(depth + 1);
  return make(integerOf(exponent) ? "Pow" : "FloatPow", {base, exponent});
}

ExpressionPtr GuardReader::readNumber() {
  size_t size = 0;
  auto isPart = [&](char c) {
    return llvm::isDigit(c) || c == '.' || c == 'e' || c == 'E';
  };
  while (size < rest.size() &&
         (isPart(rest[size]) ||
          (size && (rest[size] == '-' || rest[size] == '+') &&
           (rest[size - 1] == 'e' || rest[size - 1] == 'E'))))
    ++size;
  StringRef text = rest.take_front(size);
  rest = rest.drop_front(size);
  // Above all sizes it is all the same, and sums must not overflow.
  constexpr int64_t most = int64_t(1) << 53;
  int64_t value;
  if (!text.getAsInteger(10, value))
    return makeInteger(std::min(value, most));
  Expression number;
  number.head = "Float";
  number.name = text.str();
  if (llvm::all_of(text, llvm::isDigit) || text.getAsDouble(number.number) ||
      !std::isfinite(number.number))
    return fail("has a number that cannot be read");
  return parser.unique(std::move(number));
}

/// The function's name here for that in the text; empty for those that are not
/// read.
static StringRef functionOf(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"torch.sym_max", "max", "Max"}, "Max")
      .Cases({"torch.sym_min", "min", "Min"}, "Min")
      .Cases({"torch.sym_float", "float", "ToFloat"}, "ToFloat")
      .Cases({"math.trunc", "int", "torch.sym_int"}, "TruncToInt")
      .Case("math.floor", "FloorToInt")
      .Case("math.ceil", "CeilToInt")
      .Case("round", "RoundToInt")
      .Cases({"math.sqrt", "torch._sym_sqrt"}, "OpaqueUnaryFn_sqrt")
      .Case("torch.sym_not", "Not")
      .Case("torch.sym_ite", "Choice")
      .Case("abs", "Abs")
      .Default("");
}

ExpressionPtr GuardReader::readCall(StringRef function, int depth) {
  StringRef head = functionOf(function);
  std::vector<ExpressionPtr> operands;
  if (!take(")")) {
    do
      operands.push_back(readChoice(depth + 1));
    while (operands.back() && take(","));
    if (!operands.back() || !take(")"))
      return fail("lacks a closing parenthesis");
  }
  if (head == "Abs" && operands.size() == 1)
    return make("Max", {operands.front(),
                        make("Mul", {makeInteger(-1), operands.front()})});
  // What a function is that is not read is unknown, like data.
  return make(head.empty() ? "Unknown" : head, std::move(operands));
}

std::string charonia::frontend::pytorch::numberKey(StringRef text) {
  double number;
  bool isFloat = text.find_first_of(".eE") != StringRef::npos &&
                 !text.getAsDouble(number, /*AllowInexact=*/true);
  if (!isFloat)
    return text.str();
  std::string written;
  llvm::raw_string_ostream(written) << llvm::format("%.17g", number);
  return written;
}
std::string charonia::frontend::pytorch::quotedKey(StringRef text) {
  return "'" + text.str() + "'";
}
std::string
charonia::frontend::pytorch::tupleOf(llvm::ArrayRef<std::string> keys) {
  return "(" + llvm::join(keys, ", ") + (keys.size() == 1 ? ",)" : ")");
}

/// 'name', behind its first quotation mark, up to the same.
bool GuardReader::readText(char quote, std::string &text) {
  while (!rest.empty()) {
    char c = rest.front();
    rest = rest.drop_front();
    if (c == quote)
      return true;
    if (c == '\\') {
      constexpr StringRef escapes = "\\'\"ntr", meanings = "\\'\"\n\t\r";
      size_t at = rest.empty() ? StringRef::npos : escapes.find(rest.front());
      if (at == StringRef::npos)
        return false;
      c = meanings[at];
      rest = rest.drop_front();
    }
    text += c;
  }
  return false;
}

/// 'name', 3, -1.5, True or None, or a tuple of such.
bool GuardReader::readKey(std::string &key, int depth) {
  key.clear();
  rest = rest.ltrim();
  if (depth > maxDepth || rest.empty())
    return false;
  if (take("(")) {
    std::vector<std::string> parts;
    while (!take(")"))
      if (!readKey(parts.emplace_back(), depth + 1) ||
          (!take(",") && !rest.ltrim().starts_with(")")))
        return false;
    key = tupleOf(parts);
    return true;
  }
  if (char quote = rest.front(); quote == '\'' || quote == '"') {
    rest = rest.drop_front();
    bool good = readText(quote, key);
    if (depth > 0)
      key = quotedKey(key);
    return good;
  }
  // An exponent has a sign of its own.
  size_t size = 0;
  auto isPart = [&](char c) {
    bool isSign = c == '-' || c == '+';
    return isSign ? size == 0 || rest[size - 1] == 'e'
                  : llvm::isAlnum(c) || c == '_' || c == '.';
  };
  while (size < rest.size() && isPart(rest[size]))
    ++size;
  key = numberKey(rest.take_front(size));
  rest = rest.drop_front(size);
  return !key.empty();
}

/// Behind "L": ['x'], [0] and .field, then .size()[1] or the like.
ExpressionPtr GuardReader::readSource() {
  GuardSource source;
  std::string key;
  while (source.property.empty()) {
    if (take("[")) {
      if (!readKey(key) || !take("]"))
        return fail("has a source that cannot be read");
      source.path.push_back(key);
    } else if (take(".")) {
      StringRef name = readName();
      bool isProperty = name == "size" || name == "stride" ||
                        name == "storage_offset" || name == "shape";
      if (name.empty())
        return fail("has a source that cannot be read");
      if (isProperty)
        source.property = name == "shape" ? "size" : name.str();
      else
        source.path.push_back(name.str());
      if (isProperty && name != "shape" && !(take("(") && take(")")))
        return fail("has a source that cannot be read");
    } else {
      break;
    }
    if (source.path.size() > size_t(maxDepth))
      return fail("nests too deep");
  }
  int64_t index;
  if (!source.property.empty() && take("[")) {
    if (!readKey(key) || !take("]") || StringRef(key).getAsInteger(10, index))
      return fail("has an index that is no number");
    source.index = index;
  }
  if (ExpressionPtr value = parser.sources(source))
    return value;
  return make("Unknown", {});
}

ExpressionPtr GuardReader::readAtom(int depth) {
  if (depth > maxDepth)
    return fail("nests too deep");
  if (take("(")) {
    ExpressionPtr inner = readChoice(depth + 1);
    return inner && !take(")") ? fail("lacks a closing parenthesis") : inner;
  }
  rest = rest.ltrim();
  if (!rest.empty() && (llvm::isDigit(rest.front()) || rest.front() == '.'))
    return readNumber();
  StringRef start = rest;
  for (StringRef name = readName(); !name.empty(); name = readName()) {
    StringRef whole = start.drop_back(rest.size());
    if (whole == "L")
      return readSource();
    if (whole == "True" || whole == "False")
      return makeInteger(whole == "True");
    if (take("("))
      return readCall(whole, depth);
    if (!take("."))
      return make("Unknown", {});
  }
  return fail("has no operand where one is expected");
}

ExpressionPtr GuardParser::parse(StringRef text, std::string &problem) {
  GuardReader reader(*this, text);
  ExpressionPtr result = reader.readChoice(0);
  if (result && !reader.isAtEnd()) {
    reader.problem = "goes on behind its end";
    result = {};
  }
  problem = reader.problem;
  return result;
}

std::string charonia::frontend::pytorch::guardToString(StringRef guard) {
  constexpr size_t longest = 120;
  std::string text = guard.take_front(size_t(1) << 12).str();
  for (size_t at = 0; (at = text.find("L['", at)) != std::string::npos; ++at)
    if (size_t end = text.find("']", at); end != std::string::npos)
      text = text.substr(0, at) + text.substr(at + 3, end - at - 3) +
             text.substr(end + 2);
  return printable(text, longest);
}
