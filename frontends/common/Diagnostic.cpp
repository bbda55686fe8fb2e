#include "frontends/common/Diagnostic.h"
#include "support/Text.h"

using namespace charonia::frontend;

std::string charonia::frontend::printable(const std::string &text,
                                          size_t limit) {
  return charonia::printable(text, limit);
}

std::string Diagnostic::toString() const {
  std::string out = severity == Severity::Error     ? "error: "
                    : severity == Severity::Warning ? "warning: "
                                                    : "note: ";
  if (!file.empty())
    out += printable(file, 4096) + ": ";
  if (!op.empty()) {
    out += "node '" + printable(node) + "' (";
    out += (domain.empty() ? "" : printable(domain) + ".") + printable(op);
    if (version)
      out += ", opset " + std::to_string(version);
    out += "): ";
  }
  out += printableLines(what);
  if (!inputs.empty()) {
    out += "\n  inputs: ";
    constexpr size_t shown = 16;
    for (size_t i = 0; i < inputs.size() && i < shown; ++i)
      out += (i ? "; " : "") + printable(inputs[i]);
    if (inputs.size() > shown)
      out += "; and " + std::to_string(inputs.size() - shown) + " more";
  }
  if (!remedy.empty())
    out += "\n  remedy: " + printableLines(remedy);
  return out;
}
