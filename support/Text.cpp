#include "support/Text.h"

#include <cstdint>
#include <cstdio>

namespace charonia {

/// The code of the UTF-8 character at the start of `text`, or -1, and its
/// length.
static int32_t decode(std::string_view text, size_t &length) {
  auto at = [&](size_t i) -> unsigned char { return text[i]; };
  length = at(0) < 0x80              ? 1
           : (at(0) >> 5) == 0b110   ? 2
           : (at(0) >> 4) == 0b1110  ? 3
           : (at(0) >> 3) == 0b11110 ? 4
                                     : 0;
  if (length == 0 || length > text.size())
    return -1;
  int32_t code = length == 1 ? at(0) : at(0) & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80)
      return -1;
    code = code << 6 | (at(i) & 0x3f);
  }
  constexpr int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[length] || code > 0x10ffff || surrogate ? -1 : code;
}

size_t characterLength(std::string_view text) {
  size_t length;
  return decode(text, length) < 0 ? 0 : length;
}

/// Some terminals obey the control characters behind 0x7f, too, and all the
/// ones that begin a line or turn the direction of text: what follows these
/// would be shown as what it is not.
static bool isControl(int32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
         code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code < 0x202f) ||
         (code >= 0x2066 && code < 0x206a) || code == 0xfeff;
}

std::string printable(std::string_view text, size_t limit) {
  std::string result;
  while (!text.empty()) {
    if (result.size() >= limit)
      return result + "...";
    size_t length;
    int32_t code = decode(text, length);
    if (code < 0)
      length = 1;
    if (code >= 0 && !isControl(code)) {
      result += text.substr(0, length);
    } else {
      for (unsigned char byte : text.substr(0, length)) {
        char escape[8];
        std::snprintf(escape, sizeof(escape), "\\x%02x", byte);
        result += escape;
      }
    }
    text.remove_prefix(length);
  }
  return result;
}

std::string printableLines(std::string_view text) {
  std::string result;
  for (;;) {
    size_t end = text.find("\n  ");
    result += printable(text.substr(0, end));
    if (end == std::string_view::npos)
      return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

} // namespace charonia
