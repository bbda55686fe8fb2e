#include "tools/charonia/Checks.h"
#include "tools/charonia/Execution.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace charonia::tool {

constexpr double longestSeconds = 86400;

std::string joined(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

CLI::Validator check(std::function<std::string(const std::string &)> test) {
  return CLI::Validator([test](std::string &text) { return test(text); }, "");
}

CLI::Validator oneOf(const char *what, std::vector<std::string> names) {
  return check([=](const std::string &text) {
    return std::find(names.begin(), names.end(), text) != names.end()
               ? ""
               : "unknown " + std::string(what) + " '" + text + "'; the " +
                     what + "s are " + joined(names);
  });
}

std::vector<std::string> splitList(const std::string &list) {
  std::vector<std::string> parts;
  for (size_t start = 0, end; start <= list.size(); start = end + 1) {
    end = std::min(list.find(',', start), list.size());
    parts.push_back(list.substr(start, end - start));
  }
  return parts;
}

CLI::Validator listOf(const char *what, std::vector<std::string> names) {
  return check([what, one = oneOf(what, std::move(names))](
                   const std::string &list) -> std::string {
    for (std::string &part : splitList(list)) {
      if (part.empty())
        return "a " + std::string(what) + " is empty in '" + list + "'";
      if (std::string error = one(part); !error.empty())
        return error;
    }
    return "";
  });
}

CLI::Validator listOfNames() {
  return check([](const std::string &list) -> std::string {
    for (const std::string &part : splitList(list))
      if (part.empty())
        return list.empty() ? "is empty" : "a name is empty in '" + list + "'";
    return "";
  });
}

CLI::Validator given() {
  return check(
      [](const std::string &text) { return text.empty() ? "is empty" : ""; });
}

CLI::Validator count(unsigned least, unsigned most) {
  return check([=](const std::string &text) {
    unsigned value;
    return CLI::detail::lexical_cast(text, value) && value >= least &&
                   value <= most
               ? ""
               : "'" + text + "' is not a number from " +
                     std::to_string(least) + " to " + std::to_string(most);
  });
}

CLI::Validator seconds() {
  return check([](const std::string &text) {
    double value;
    return CLI::detail::lexical_cast(text, value) && std::isfinite(value) &&
                   value >= 0 && value <= longestSeconds
               ? ""
               : "'" + text + "' is not a number of seconds from 0 to 86400";
  });
}

CLI::Validator positive() {
  return check([](const std::string &text) {
    double value;
    return CLI::detail::lexical_cast(text, value) && std::isfinite(value) &&
                   value > 0
               ? ""
               : "'" + text + "' is not a number above 0";
  });
}

CLI::Validator megabytes() {
  return check([](const std::string &text) -> std::string {
    double value;
    if (CLI::detail::lexical_cast(text, value) && value >= 0.01 && value <= 1e8)
      return "";
    return "'" + text + "' is not a number of MB from 0.01 to 100000000";
  });
}

CLI::Validator device() {
  return check([](const std::string &text) -> std::string {
    if (text == "auto")
      return "";
    auto parsed = parseDevice(text);
    return parsed ? "" : parsed.status().message();
  });
}

CLI::Validator shape() {
  return check([](const std::string &text) -> std::string {
    if (text.ends_with('='))
      return "nothing follows the '=' of " + text;
    auto parsed = parseShape(text.substr(text.rfind('=') + 1));
    return parsed ? "" : parsed.status().message();
  });
}

void requireDistinctNames(const char *option,
                          const std::vector<std::string> &values) {
  std::set<std::string> seen;
  for (const std::string &value : values) {
    size_t equals = value.rfind('=');
    std::string name =
        equals == std::string::npos ? "" : value.substr(0, equals);
    if (!seen.insert(name).second)
      throw CLI::ValidationError(option, name.empty()
                                             ? "several without NAME= are given"
                                             : "'" + name + "' is given twice");
  }
}

CLI::Validator seed() {
  return check([](const std::string &text) {
    uint64_t value;
    const char *end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end
               ? ""
               : "'" + text + "' is not a number from 0 to 2^64 - 1";
  });
}

CLI::Validator sha256() {
  return check([](const std::string &text) {
    return text.size() == 64 &&
                   text.find_first_not_of("0123456789abcdefABCDEF") ==
                       std::string::npos
               ? ""
               : "'" + text + "' is not a SHA-256 of 64 hexadecimal digits";
  });
}

} // namespace charonia::tool
