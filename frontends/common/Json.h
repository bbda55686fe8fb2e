// Reading JSON of a known form.
#ifndef CHARONIA_FRONTENDS_COMMON_JSON_H
#define CHARONIA_FRONTENDS_COMMON_JSON_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// A parsed text: where its values lie in it. Nothing is built until it is
/// read; 16 bytes are kept for each value and each key, at most 8 for each byte
/// of text.
class JsonText {
public:
  enum class Kind : uint8_t { Null, False, True, Number, String, List, Object };
  /// A value, or the key in front of one. Those inside of it follow it, up to
  /// cell `next`; strings lie between their quotation marks.
  struct Cell {
    uint32_t begin, end, next;
    Kind kind;
  };

  /// Parses a text, which has to outlive this; what that may cost is bounded by
  /// its size.
  static std::optional<JsonText> parse(llvm::StringRef text,
                                       std::string &problem);

  const Cell &at(uint32_t index) const { return cells[index]; }
  llvm::StringRef textOf(uint32_t index) const {
    return text.slice(cells[index].begin, cells[index].end);
  }
  /// A string with its escapes replaced.
  std::string stringOf(uint32_t index) const;

private:
  friend class JsonParser;
  llvm::StringRef text;
  std::vector<Cell> cells;
};

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
  /// The whole text.
  Json(const JsonText &text, std::string place, Report &report)
      : Json(&text, 0, std::move(place), report) {}

  bool isPresent() const { return text && kind() != JsonText::Kind::Null; }
  bool isString() const { return text && kind() == JsonText::Kind::String; }
  bool isNumber() const { return text && kind() == JsonText::Kind::Number; }
  bool isBoolean() const {
    return text &&
           (kind() == JsonText::Kind::True || kind() == JsonText::Kind::False);
  }
  bool isObject() const { return text && kind() == JsonText::Kind::Object; }
  bool isList() const { return text && kind() == JsonText::Kind::List; }
  explicit operator bool() const { return isPresent(); }
  /// An object's field; absent where there is none.
  Json operator[](llvm::StringRef key) const;
  /// How many elements a list has; 0 where it is absent.
  size_t size() const;
  /// The elements of a list; none where it is absent.
  std::vector<Json> list() const;
  /// The fields of an object, sorted by key.
  std::vector<std::pair<std::string, Json>> fields() const;
  /// The only field of an object, as the file writes unions.
  std::pair<std::string, Json> only() const;

  /// A present value as it is written.
  llvm::StringRef written() const { return text->textOf(index); }
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
  Json(const JsonText *text, uint32_t index, std::string place, Report &report)
      : text(text), index(index), place(std::move(place)), report(&report) {}
  JsonText::Kind kind() const { return text->at(index).kind; }
  /// Calls `visit` with the index of each element; of objects with those of key
  /// and value.
  void forEach(JsonText::Kind wanted, const char *otherwise,
               llvm::function_ref<void(uint32_t, uint32_t)> visit) const;

  /// Null where the value is absent.
  const JsonText *text;
  uint32_t index;
  std::string place;
  Report *report;
};

} // namespace charonia::frontend

#endif
