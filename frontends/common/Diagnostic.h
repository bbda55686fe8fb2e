// What an importer has to say about a model, in the model's own terms.
#ifndef CHARONIA_FRONTENDS_COMMON_DIAGNOSTIC_H
#define CHARONIA_FRONTENDS_COMMON_DIAGNOSTIC_H

#include <string>
#include <vector>

namespace charonia::frontend {

/// One message. Fields that do not apply are empty; `version` is 0 then.
struct Diagnostic {
  enum class Severity { Error, Warning, Note };
  Severity severity = Severity::Error;
  /// The model file as the user named it.
  std::string file;
  /// The user's node, its operator, the operator's domain and the model's
  /// version of that domain.
  std::string node, op, domain;
  int64_t version = 0;
  /// "name: float32[batch, 3]", one an input of the node.
  std::vector<std::string> inputs;
  std::string what;
  /// What the user can do about it.
  std::string remedy;

  /// The message on one line, then inputs and remedy on lines of their own.
  std::string toString() const;
};

/// charonia::printable(), cut at a sane length: names from model files go to
/// terminals.
std::string printable(const std::string &text, size_t limit = 200);

} // namespace charonia::frontend

#endif
