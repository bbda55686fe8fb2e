#include "tools/charonia/Console.h"

#include "charonia/runtime.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace charonia::tool {

static void say(const char *kind, const std::string &message) {
  std::fflush(stdout); // so that both keep their order in one file
  std::fprintf(stderr, "%s: %s\n", kind, printable(message).c_str());
}

int fail(const std::string &message) {
  say("error", message);
  return Failed;
}

void note(const std::string &message) { say("note", message); }

static int failInternally(const std::string &what) {
  return fail("internal error in charonia " + std::string(version()) + ": " +
              what + "; please report it with the command line");
}

int guarded(const std::function<int()> &work) {
  int status;
  try {
    status = work();
  } catch (const std::bad_alloc &) {
    status = fail("out of memory");
  } catch (const std::exception &error) {
    status = failInternally(error.what());
  } catch (...) {
    status = failInternally("an exception of unknown type");
  }
  errno = 0;
  if ((std::fflush(stdout) || std::ferror(stdout)) && status == Done)
    return fail(std::string("standard output cannot be written") +
                (errno ? ": " + std::string(std::strerror(errno)) : ""));
  return status;
}

std::string jsonName(std::string_view name) {
  std::string result;
  while (!name.empty()) {
    size_t length = characterLength(name);
    if (name.front() == '\\')
      result += "\\\\";
    else
      result += length ? std::string(name.substr(0, length))
                       : printable(name.substr(0, 1));
    name.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

std::string jsonText(const nlohmann::json &value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false,
                    nlohmann::json::error_handler_t::replace);
}

Status writeReport(const nlohmann::json &report, const std::string &path) {
  if (path.empty())
    return Status::ok();
  std::ofstream file(path);
  file << jsonText(report, 1) << "\n";
  file.close();
  return file ? Status::ok()
              : Status(StatusCode::Io, path + ": cannot be written");
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

/// Characters, not bytes.
static size_t widthOf(const std::string &text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xc0) != 0x80; });
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
      widths[i] = std::max(widths[i], widthOf(rows[r][i]));
      if (r && !rows[r][i].empty() && !isNumber(rows[r][i]))
        right[i] = false;
    }
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < columns; ++i) {
      std::string gap(widths[i] - widthOf(row[i]), ' ');
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

static std::string scaled(double value, const char *const (&units)[5]) {
  int unit = 0;
  for (; value >= 1000 && unit < 4; ++unit)
    value /= 1000;
  return formatNumber(value, unit && value < 100 ? 1 : 0) + units[unit];
}

std::string formatBytes(double bytes) {
  return scaled(bytes, {" B", " kB", " MB", " GB", " TB"});
}

std::string formatCount(double count) {
  return scaled(count, {"", " k", " M", " G", " T"});
}

} // namespace charonia::tool
