#include "tools/charonia/Console.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace charonia::tool {

int fail(const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return 1;
}

ProgressLine::ProgressLine(bool enabled)
    : enabled(enabled && isatty(STDERR_FILENO)) {}

void ProgressLine::show(std::string_view what, unsigned done, unsigned total) {
  if (!enabled)
    return;
  shown = true;
  std::string line(what.substr(0, 60));
  if (total)
    line += " " + std::to_string(done) + "/" + std::to_string(total);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (shown)
    std::fputs("\r\033[K", stderr);
  shown = false;
}

static bool isNumber(const std::string &text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789.-+e%x") == std::string::npos;
}

std::string Table::str() const {
  size_t columns = rows.front().size();
  std::vector<size_t> widths(columns);
  std::vector<bool> right(columns, rows.size() > 1);
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < columns; ++i) {
      widths[i] = std::max(widths[i], rows[r][i].size());
      if (r && !rows[r][i].empty() && !isNumber(rows[r][i]))
        right[i] = false;
    }
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < columns; ++i) {
      std::string gap(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (right[i] ? gap + row[i] : row[i] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string formatNumber(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string formatBytes(double bytes) {
  const char *units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit)
    bytes /= 1000;
  return formatNumber(bytes, unit && bytes < 100 ? 1 : 0) + " " + units[unit];
}

} // namespace charonia::tool
