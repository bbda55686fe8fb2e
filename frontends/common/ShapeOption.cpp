#include "frontends/common/ShapeOption.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace charonia::frontend;
using llvm::StringRef;

DimRange charonia::frontend::defaultRange(bool leading) {
  constexpr int64_t large = int64_t(1) << 20;
  return {1, leading ? 1 : 128, large, 1};
}

static std::string parseSize(StringRef text, int64_t &size) {
  if (text.getAsInteger(10, size) || size < 0)
    return "'" + text.str() + "' is not a size";
  if (size > maxDimension)
    return "size " + text.str() + " is over the limit of " +
           std::to_string(maxDimension);
  return "";
}

static std::string parseRange(StringRef text, DimRange &range) {
  auto [sizes, divisor] = text.split('%');
  llvm::SmallVector<StringRef> parts;
  sizes.split(parts, "..");
  if (parts.size() > 3)
    return "'" + text.str() + "' has more than min..opt..max";
  int64_t values[3];
  for (auto [i, part] : llvm::enumerate(parts))
    if (std::string error = parseSize(part, values[i]); !error.empty())
      return error;
  range.min = values[0];
  range.max = values[parts.size() - 1];
  range.opt = parts.size() == 3 ? values[1] : range.max;
  if (range.min == 0 && range.max != 0)
    return "'" + sizes.str() + "' starts at 0; only a fixed size may be 0";
  if (range.min > range.opt || range.opt > range.max)
    return "'" + sizes.str() + "' is not ascending: write min..opt..max";
  if (!divisor.empty()) {
    if (std::string error = parseSize(divisor, range.divisor); !error.empty())
      return error;
    if (range.divisor < 1 || range.min % range.divisor ||
        range.opt % range.divisor || range.max % range.divisor)
      return "sizes in '" + text.str() + "' are not multiples of " +
             divisor.str();
  } else if (text.contains('%')) {
    return "'" + text.str() + "' lacks a divisor after %";
  }
  return "";
}

static std::string parseDim(StringRef text, DimOption &dim) {
  text = text.trim();
  if (text == "?")
    return "";
  if (text.empty())
    return "a dimension is empty";
  StringRef range = text;
  if (!llvm::isDigit(text.front()) && text.front() != '-') {
    auto [name, rest] = text.split(':');
    dim.name = name.str();
    if (name.empty() || !llvm::all_of(name, [](char c) {
          return llvm::isAlnum(c) || c == '_' || c == '.';
        }))
      return "'" + name.str() +
             "' is not a name of letters, digits, '_' and '.'";
    if (name.size() == text.size())
      return "";
    range = rest;
  }
  return parseRange(range, dim.range.emplace());
}

std::string charonia::frontend::parseShapeOption(StringRef text,
                                                 ShapeOptions &shapes) {
  auto fail = [&](const llvm::Twine &what) {
    return ("--shape " + text + ": " + what +
            "; write it as x=1..8..64x3x224x224")
        .str();
  };
  // Names of inputs may hold '=', dimensions may not.
  size_t split = text.rfind('=');
  if (split == StringRef::npos || split == 0)
    return fail("an input name and '=' are missing");
  std::string input = text.take_front(split).str();
  StringRef dims = text.drop_front(split + 1).trim();
  char separator = 'x';
  if (dims.consume_front("[")) {
    if (!dims.consume_back("]"))
      return fail("']' is missing");
    separator = ',';
  }
  std::vector<DimOption> shape;
  llvm::SmallVector<StringRef> parts;
  if (!dims.trim().empty())
    dims.split(parts, separator);
  else if (separator == 'x')
    return fail("dimensions are missing ('[]' is a scalar)");
  for (StringRef part : parts)
    if (std::string error = parseDim(part, shape.emplace_back());
        !error.empty())
      return fail(error);
  if (!shapes.emplace(input, std::move(shape)).second)
    return fail("the shape of '" + input + "' is given twice");
  return "";
}
