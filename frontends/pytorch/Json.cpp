#include "frontends/pytorch/Json.h"
#include "frontends/common/Diagnostic.h"

using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::StringRef;

/// The parser is recursive. Programs nest 20 deep, and 10 more for each graph
/// inside of a graph.
constexpr int maxDepth = 256;
/// Values take up to 64 bytes for each byte of text.
constexpr size_t maxTextBytes = size_t(1) << 28;

void Json::fail(const llvm::Twine &what) const {
  if (!failed())
    report->problem = printable(place) + " " + what.str();
}

Json Json::operator[](StringRef key) const {
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (isPresent() && !object)
    fail("is no object");
  return {object ? object->get(key) : nullptr,
          place.empty() ? key.str() : place + "." + key.str(), *report};
}

std::vector<Json> Json::list() const {
  std::vector<Json> result;
  if (!isPresent())
    return result;
  const json::Array *array = value->getAsArray();
  if (!array) {
    fail("is no list");
    return result;
  }
  result.reserve(array->size());
  for (size_t i = 0; i < array->size(); ++i)
    result.emplace_back(&(*array)[i], place + "[" + std::to_string(i) + "]",
                        *report);
  return result;
}

std::vector<std::pair<std::string, Json>> Json::fields() const {
  std::vector<std::pair<std::string, Json>> result;
  if (!isPresent())
    return result;
  const json::Object *object = value->getAsObject();
  if (!object) {
    fail("is no object");
    return result;
  }
  for (const auto &[key, field] : *object)
    result.emplace_back(key.str(),
                        Json(&field, place + "." + key.str(), *report));
  llvm::sort(result,
             [](const auto &a, const auto &b) { return a.first < b.first; });
  return result;
}

std::pair<std::string, Json> Json::only() const {
  auto all = fields();
  if (all.size() != 1) {
    fail("has to be an object of one field");
    return {"", Json(nullptr, place, *report)};
  }
  return std::move(all.front());
}

std::string Json::string() const {
  if (auto text = value ? value->getAsString() : std::nullopt)
    return text->str();
  fail("is no string");
  return "";
}
int64_t Json::integer() const {
  if (auto number = value ? value->getAsInteger() : std::nullopt)
    return *number;
  fail("is no integer of 64 bits");
  return 0;
}
double Json::number() const {
  if (auto number = value ? value->getAsNumber() : std::nullopt)
    return *number;
  // What JSON has no numbers for.
  StringRef text = value ? value->getAsString().value_or("") : "";
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (text == "Infinity")
    return infinity;
  if (text == "-Infinity")
    return -infinity;
  if (text == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  fail("is no number");
  return 0;
}
bool Json::boolean() const {
  if (auto flag = value ? value->getAsBoolean() : std::nullopt)
    return *flag;
  fail("is neither true nor false");
  return false;
}
std::string Json::string(StringRef otherwise) const {
  return isPresent() ? string() : otherwise.str();
}
bool Json::boolean(bool otherwise) const {
  return isPresent() ? boolean() : otherwise;
}

/// Whether brackets outside of strings nest no deeper than the parser may.
static bool isShallow(StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > maxDepth)
        return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}

std::optional<json::Value>
charonia::frontend::pytorch::parseJson(StringRef text, std::string &problem) {
  if (text.size() > maxTextBytes) {
    problem = "is a text of " + std::to_string(text.size()) + " bytes, over " +
              std::to_string(maxTextBytes);
    return std::nullopt;
  }
  if (!isShallow(text)) {
    problem = "nests over " + std::to_string(maxDepth) + " deep";
    return std::nullopt;
  }
  auto value = json::parse(text);
  if (!value) {
    problem = "is no JSON: " + printable(llvm::toString(value.takeError()));
    return std::nullopt;
  }
  return std::move(*value);
}
