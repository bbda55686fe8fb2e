// What the command says to people.
#ifndef CHARONIA_TOOLS_CHARONIA_CONSOLE_H
#define CHARONIA_TOOLS_CHARONIA_CONSOLE_H

#include "charonia/status.h"
#include "support/Text.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace charonia::tool {

/// What the program ends with.
enum ExitStatus {
  Done = 0,
  Failed = 1,
  Usage = 2, ///< The command line is wrong, whatever the files hold.
};

/// "error: <message>" on standard error; returns Failed.
int fail(const std::string &message);
inline int fail(const Status &status) { return fail(status.message()); }
/// "note: <message>" on standard error.
void note(const std::string &message);

/// The exit status of `work`. What it throws is a mistake of this program and
/// is reported as one; standard output that could not be written is an error.
int guarded(const std::function<int()> &work);

/// A name as JSON tells and takes it: bytes that are not UTF-8 become \xNN and
/// a backslash becomes two, so that different names stay different.
std::string jsonName(std::string_view name);

/// JSON on one line, or indented. Bytes that are not UTF-8 become U+FFFD.
std::string jsonText(const nlohmann::json &value, int indent = -1);
/// What --json asks for; nothing where `path` is empty.
Status writeReport(const nlohmann::json &report, const std::string &path);

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
/// "12.3 M"
std::string formatCount(double count);
std::string formatNumber(double value, int digits = 3);

} // namespace charonia::tool

#endif
