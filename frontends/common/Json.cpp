#include "frontends/common/Json.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/JSON.h"
#include <limits>

using namespace charonia::frontend;
using Kind = JsonText::Kind;
using llvm::StringRef;

/// The parser is recursive. Programs nest 20 deep, and 10 more for each graph
/// inside of a graph.
constexpr int maxDepth = 256;
/// Places in the text are numbers of 32 bits.
constexpr size_t maxTextBytes = size_t(1) << 28;
/// Every element of a list has a place, which begins with the keys around it.
constexpr size_t maxKeyInPlace = 256;

// Values.

void Json::fail(const llvm::Twine &what) const {
  if (!failed())
    report->problem = printable(place) + " " + what.str();
}

void Json::forEach(Kind wanted, const char *otherwise,
                   llvm::function_ref<void(uint32_t, uint32_t)> visit) const {
  if (!isPresent())
    return;
  if (kind() != wanted)
    return fail(otherwise);
  bool isObject = wanted == Kind::Object;
  for (uint32_t i = index + 1, end = text->at(index).next; i < end;) {
    uint32_t value = isObject ? i + 1 : i;
    visit(i, value);
    i = text->at(value).next;
  }
}

Json Json::operator[](StringRef key) const {
  Json result(nullptr, 0, place.empty() ? key.str() : place + "." + key.str(),
              *report);
  forEach(Kind::Object, "is no object", [&](uint32_t name, uint32_t value) {
    StringRef written = text->textOf(name);
    if (result.text || (written != key && (!written.contains('\\') ||
                                           text->stringOf(name) != key)))
      return;
    result.text = text;
    result.index = value;
  });
  return result;
}

size_t Json::size() const {
  size_t count = 0;
  forEach(Kind::List, "is no list", [&](uint32_t, uint32_t) { ++count; });
  return count;
}

std::vector<Json> Json::list() const {
  std::vector<Json> result;
  forEach(Kind::List, "is no list", [&](uint32_t, uint32_t value) {
    result.push_back(Json(text, value,
                          place + "[" + std::to_string(result.size()) + "]",
                          *report));
  });
  return result;
}

std::vector<std::pair<std::string, Json>> Json::fields() const {
  std::vector<std::pair<std::string, Json>> result;
  forEach(Kind::Object, "is no object", [&](uint32_t name, uint32_t value) {
    std::string key = text->stringOf(name);
    std::string inside = place + (place.empty() ? "" : ".");
    inside += StringRef(key).take_front(maxKeyInPlace);
    result.emplace_back(key, Json(text, value, std::move(inside), *report));
  });
  llvm::stable_sort(
      result, [](const auto &a, const auto &b) { return a.first < b.first; });
  return result;
}

std::pair<std::string, Json> Json::only() const {
  auto all = fields();
  if (all.size() != 1) {
    fail("has to be an object of one field");
    return {"", Json(nullptr, 0, place, *report)};
  }
  return std::move(all.front());
}

std::string Json::string() const {
  if (isString())
    return text->stringOf(index);
  fail("is no string");
  return "";
}
int64_t Json::integer() const {
  int64_t value;
  if (text && kind() == Kind::Number &&
      !text->textOf(index).getAsInteger(10, value))
    return value;
  fail("is no integer of 64 bits");
  return 0;
}
double Json::number() const {
  double value;
  if (text && kind() == Kind::Number &&
      !text->textOf(index).getAsDouble(value, /*AllowInexact=*/true))
    return value;
  // What JSON has no numbers for.
  StringRef word = isString() ? text->textOf(index) : "";
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (word == "Infinity")
    return infinity;
  if (word == "-Infinity")
    return -infinity;
  if (word == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  fail("is no number");
  return 0;
}
bool Json::boolean() const {
  if (text && (kind() == Kind::True || kind() == Kind::False))
    return kind() == Kind::True;
  fail("is neither true nor false");
  return false;
}
std::string Json::string(StringRef otherwise) const {
  return isPresent() ? string() : otherwise.str();
}
bool Json::boolean(bool otherwise) const {
  return isPresent() ? boolean() : otherwise;
}

// Texts.

/// The number of 4 hexadecimal digits at a place.
static std::optional<unsigned> hexAt(StringRef text, size_t at) {
  unsigned value;
  StringRef digits = text.substr(at, 4);
  if (digits.size() != 4 || !llvm::all_of(digits, llvm::isHexDigit) ||
      digits.getAsInteger(16, value))
    return std::nullopt;
  return value;
}

std::string JsonText::stringOf(uint32_t index) const {
  StringRef written = textOf(index);
  std::string result;
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i] != '\\') {
      result += written[i];
      continue;
    }
    char c = written[++i];
    StringRef plain = "bfnrt", means = "\b\f\n\r\t";
    if (c != 'u') {
      size_t at = plain.find(c);
      result += at == StringRef::npos ? c : means[at];
      continue;
    }
    unsigned code = *hexAt(written, i + 1);
    i += 4;
    // Two halves of one character; a half alone stands for none.
    auto low = written.substr(i + 1, 2) == "\\u" ? hexAt(written, i + 3)
                                                 : std::nullopt;
    if (code >= 0xd800 && code < 0xdc00 && low && *low >= 0xdc00 &&
        *low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (*low - 0xdc00);
      i += 6;
    } else if (code >= 0xd800 && code < 0xe000) {
      code = 0xfffd;
    }
    char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *end = bytes;
    llvm::ConvertCodePointToUTF8(code, end);
    result.append(bytes, end);
  }
  return result;
}

namespace charonia::frontend {
/// Recursive descent over a text.
class JsonParser {
public:
  JsonParser(StringRef text, JsonText &result) : text(text), result(result) {
    result.text = text;
  }
  /// Empty, or what is wrong.
  std::string parse();

private:
  bool value(int depth);
  bool list(int depth, bool isObject);
  bool string();
  bool number();
  bool word(StringRef name, Kind kind);
  void skipSpace() {
    while (at < text.size() && StringRef(" \t\r\n").contains(text[at]))
      ++at;
  }
  bool take(char c) {
    bool found = at < text.size() && text[at] == c;
    at += found;
    return found;
  }
  bool fail(const char *what) {
    if (problem.empty())
      problem = what;
    return false;
  }
  void add(size_t begin, size_t end, Kind kind) {
    auto next = static_cast<uint32_t>(result.cells.size() + 1);
    result.cells.push_back(
        {static_cast<uint32_t>(begin), static_cast<uint32_t>(end), next, kind});
  }

  StringRef text;
  JsonText &result;
  size_t at = 0;
  std::string problem;
};
} // namespace charonia::frontend

std::string JsonParser::parse() {
  bool good = value(0);
  skipSpace();
  if (good && at != text.size())
    good = fail("something follows its end");
  if (good)
    return "";
  if (problem == "nests")
    return "nests over " + std::to_string(maxDepth) + " deep";
  StringRef before = text.take_front(at);
  return "is no JSON: line " + std::to_string(before.count('\n') + 1) +
         ", column " + std::to_string(at - (before.rfind('\n') + 1) + 1) +
         ": " + problem;
}

bool JsonParser::value(int depth) {
  skipSpace();
  if (at == text.size())
    return fail("it ends too early");
  switch (text[at]) {
  case '{':
    return list(depth, true);
  case '[':
    return list(depth, false);
  case '"':
    return string();
  case 'n':
    return word("null", Kind::Null);
  case 't':
    return word("true", Kind::True);
  case 'f':
    return word("false", Kind::False);
  default:
    return number();
  }
}

bool JsonParser::list(int depth, bool isObject) {
  if (depth == maxDepth)
    return fail("nests");
  char close = isObject ? '}' : ']';
  size_t own = result.cells.size();
  add(at, at, isObject ? Kind::Object : Kind::List);
  ++at;
  skipSpace();
  if (take(close)) {
    result.cells[own].next = result.cells.size();
    return true;
  }
  do {
    skipSpace();
    if (isObject) {
      if (at == text.size() || text[at] != '"')
        return fail("a key is expected");
      if (!string())
        return false;
      skipSpace();
      if (!take(':'))
        return fail("a ':' is expected");
    }
    if (!value(depth + 1))
      return false;
    skipSpace();
  } while (take(','));
  result.cells[own].next = result.cells.size();
  return take(close) || fail("a ',' or the end of a list is expected");
}

bool JsonParser::string() {
  size_t begin = ++at;
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (static_cast<unsigned char>(text[at]) < 0x20)
      return fail("a string holds a control character");
    if (text[at] != '\\')
      continue;
    ++at;
    bool isKnown =
        at < text.size() && StringRef("\"\\/bfnrtu").contains(text[at]);
    if (!isKnown || (text[at] == 'u' && !hexAt(text, at + 1)))
      return fail("a string holds an unknown escape");
  }
  if (at == text.size())
    return fail("a string does not end");
  if (!llvm::json::isUTF8(text.slice(begin, at)))
    return fail("a string is no UTF-8");
  add(begin, at, Kind::String);
  ++at;
  return true;
}

bool JsonParser::number() {
  size_t begin = at;
  auto digits = [&] {
    size_t first = at;
    while (at < text.size() && llvm::isDigit(text[at]))
      ++at;
    return at > first;
  };
  take('-');
  bool good = digits();
  if (good && take('.'))
    good = digits();
  if (good && (take('e') || take('E'))) {
    if (!take('+'))
      take('-');
    good = digits();
  }
  if (!good)
    return fail("a value is expected");
  add(begin, at, Kind::Number);
  return true;
}

bool JsonParser::word(StringRef name, Kind kind) {
  if (!text.substr(at).starts_with(name))
    return fail("a value is expected");
  add(at, at + name.size(), kind);
  at += name.size();
  return true;
}

std::optional<JsonText> JsonText::parse(StringRef text, std::string &problem) {
  if (text.size() > maxTextBytes) {
    problem = "is a text of " + std::to_string(text.size()) + " bytes, over " +
              std::to_string(maxTextBytes);
    return std::nullopt;
  }
  JsonText result;
  problem = JsonParser(text, result).parse();
  return problem.empty() ? std::optional(std::move(result)) : std::nullopt;
}
