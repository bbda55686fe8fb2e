// Reading JSON of a known form.
#ifndef CHARONIA_FRONTENDS_PYTORCH_JSON_H
#define CHARONIA_FRONTENDS_PYTORCH_JSON_H

#include "frontends/common/Emitter.h"
#include "llvm/Support/JSON.h"

namespace charonia::frontend::pytorch {

namespace json = llvm::json;

/// A value of a JSON text and its place in it. Readings that do not fit give an
/// empty value and record the first problem, "graph.nodes[3].target: is no
/// string"; so a chain of them needs one test at its end. Fields that are
/// absent or null read as absent.
class Json {
public:
  /// The first problem of a text.
  struct Report {
    std::string problem;
  };
  Json(const json::Value *value, std::string place, Report &report)
      : value(value), place(std::move(place)), report(&report) {}

  bool isPresent() const { return value && value->kind() != json::Value::Null; }
  explicit operator bool() const { return isPresent(); }
  /// An object's field; absent where there is none.
  Json operator[](llvm::StringRef key) const;
  /// The elements of a list; none where it is absent.
  std::vector<Json> list() const;
  /// The fields of an object, sorted by key.
  std::vector<std::pair<std::string, Json>> fields() const;
  /// The only field of an object, as the file writes unions.
  std::pair<std::string, Json> only() const;

  // Present values of one type.
  std::string string() const;
  int64_t integer() const;
  double number() const;
  bool boolean() const;
  // The same, or what holds where the value is absent.
  std::string string(llvm::StringRef otherwise) const;
  bool boolean(bool otherwise) const;

  /// Records a problem with this value.
  void fail(const llvm::Twine &what) const;
  bool failed() const { return !report->problem.empty(); }

private:
  const json::Value *value;
  std::string place;
  Report *report;
};

/// Parses a text; what it may cost is bounded by its size.
std::optional<json::Value> parseJson(llvm::StringRef text,
                                     std::string &problem);

} // namespace charonia::frontend::pytorch

#endif
