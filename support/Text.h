// Text of models and engines, which may hold any bytes, on its way to a
// terminal.
#ifndef CHARONIA_SUPPORT_TEXT_H
#define CHARONIA_SUPPORT_TEXT_H

#include <string>
#include <string_view>

namespace charonia {

/// The bytes of the UTF-8 character at the start of `text`, which is not empty;
/// 0: it is none.
size_t characterLength(std::string_view text);

/// `text` with control characters and bytes that are no UTF-8 as \xNN, and
/// "..." in place of what comes after `limit` bytes.
std::string printable(std::string_view text,
                      size_t limit = std::string_view::npos);

/// The same for a message of several lines: line breaks stay in front of lines
/// that are indented, as those of our messages are.
std::string printableLines(std::string_view text);

} // namespace charonia

#endif
