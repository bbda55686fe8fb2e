// The layout of --help.
#ifndef CHARONIA_TOOLS_CHARONIA_HELPFORMATTER_H
#define CHARONIA_TOOLS_CHARONIA_HELPFORMATTER_H

#include <CLI/CLI.hpp>

namespace charonia::tool {

/// "  --precision P    What it is for (default: fp32)", in lines of 100
/// characters.
class HelpFormatter : public CLI::Formatter {
public:
  HelpFormatter() { column_width(indent); }

  std::string make_option_opts(const CLI::Option *option) const override {
    return option->get_type_size() == 0 || option->get_type_name().empty()
               ? ""
               : " " + option->get_type_name();
  }

  std::string make_option_desc(const CLI::Option *option) const override {
    std::string text = option->get_description();
    if (!option->get_default_str().empty())
      text += " (default: " + option->get_default_str() + ")";
    return wrapped(text);
  }

private:
  static constexpr size_t indent = 30, width = 70;

  /// Lines of at most `width` characters; the base class indents them.
  static std::string wrapped(const std::string &text) {
    std::string lines;
    size_t length = 0;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find(' ', at), text.size());
      if (length && length + 1 + end - at > width) {
        lines += '\n';
        length = 0;
      } else if (length) {
        lines += ' ';
        ++length;
      }
      lines += text.substr(at, end - at);
      length += end - at;
      at = end + 1;
    }
    return lines;
  }
};

} // namespace charonia::tool

#endif
