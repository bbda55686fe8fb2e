// What the command says to people.
#ifndef CHARONIA_TOOLS_CHARONIA_CONSOLE_H
#define CHARONIA_TOOLS_CHARONIA_CONSOLE_H

#include "charonia/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace charonia::tool {

/// "error: <message>" on standard error; returns 1, the exit status.
int fail(const std::string &message);
inline int fail(const Status &status) { return fail(status.message()); }

/// One line on a terminal that is written over; nothing elsewhere.
class ProgressLine {
public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine() { clear(); }
  void show(std::string_view what, unsigned done, unsigned total);
  void clear();

private:
  bool enabled, shown = false;
};

/// Columns that line up: text to the left, numbers to the right.
class Table {
public:
  explicit Table(std::vector<std::string> header) : rows{std::move(header)} {}
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  std::string str() const;

private:
  std::vector<std::vector<std::string>> rows;
};

/// "1.5 MB", "1234", "12.34".
std::string formatBytes(double bytes);
std::string formatNumber(double value, int digits = 3);

} // namespace charonia::tool

#endif
