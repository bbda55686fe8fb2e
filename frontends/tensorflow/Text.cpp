#include "frontends/tensorflow/Text.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include <cmath>

using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;

namespace {
enum Kind { Int, Bool, Float, Double, Bytes, Enum, Message };
/// Field `name` of messages of type `in`; of type `to` where it is one.
struct Field {
  const char *in, *name;
  int number;
  Kind kind;
  const char *to = "";
};
} // namespace

// TensorFlow's names of what model.proto reads. Entries of maps are messages
// of a key and a value.
static const Field fields[] = {
    {"SavedModel", "saved_model_schema_version", 1, Int},
    {"SavedModel", "meta_graphs", 2, Message, "MetaGraph"},
    {"MetaGraph", "meta_info_def", 1, Message, "Info"},
    {"MetaGraph", "graph_def", 2, Message, "Graph"},
    {"MetaGraph", "saver_def", 3, Message, "Saver"},
    {"MetaGraph", "signature_def", 5, Message, "SignatureEntry"},
    {"MetaGraph", "object_graph_def", 7, Message, "ObjectGraph"},
    {"Info", "stripped_op_list", 2, Message, "Definitions"},
    {"Info", "tags", 4, Bytes},
    {"Definitions", "op", 1, Message, "FunctionSignature"},
    {"Saver", "restore_op_name", 3, Bytes},
    {"SignatureEntry", "key", 1, Bytes},
    {"SignatureEntry", "value", 2, Message, "Signature"},
    {"Signature", "inputs", 1, Message, "TensorEntry"},
    {"Signature", "outputs", 2, Message, "TensorEntry"},
    {"TensorEntry", "key", 1, Bytes},
    {"TensorEntry", "value", 2, Message, "TensorInfo"},
    {"TensorInfo", "name", 1, Bytes},
    {"TensorInfo", "dtype", 2, Enum},
    {"TensorInfo", "tensor_shape", 3, Message, "Shape"},
    {"TensorInfo", "coo_sparse", 4, Message, "Sparse"},
    {"TensorInfo", "composite_tensor", 5, Message, "Composite"},
    {"Graph", "node", 1, Message, "Node"},
    {"Graph", "library", 2, Message, "Library"},
    {"Graph", "versions", 4, Message, "Versions"},
    {"Versions", "producer", 1, Int},
    {"Library", "function", 1, Message, "Function"},
    {"Function", "signature", 1, Message, "FunctionSignature"},
    {"Function", "node_def", 3, Message, "Node"},
    {"Function", "ret", 4, Message, "TextEntry"},
    {"TextEntry", "key", 1, Bytes},
    {"TextEntry", "value", 2, Bytes},
    {"FunctionSignature", "name", 1, Bytes},
    {"FunctionSignature", "input_arg", 2, Message, "Argument"},
    {"FunctionSignature", "output_arg", 3, Message, "Argument"},
    {"FunctionSignature", "attr", 4, Message, "Default"},
    {"Argument", "name", 1, Bytes},
    {"Argument", "type", 3, Enum},
    {"Argument", "type_attr", 4, Bytes},
    {"Argument", "number_attr", 5, Bytes},
    {"Argument", "type_list_attr", 6, Bytes},
    {"Argument", "is_ref", 16, Bool},
    {"Default", "name", 1, Bytes},
    {"Default", "default_value", 3, Message, "Attribute"},
    {"Node", "name", 1, Bytes},
    {"Node", "op", 2, Bytes},
    {"Node", "input", 3, Bytes},
    {"Node", "attr", 5, Message, "AttributeEntry"},
    {"AttributeEntry", "key", 1, Bytes},
    {"AttributeEntry", "value", 2, Message, "Attribute"},
    {"Attribute", "list", 1, Message, "List"},
    {"Attribute", "s", 2, Bytes},
    {"Attribute", "i", 3, Int},
    {"Attribute", "f", 4, Float},
    {"Attribute", "b", 5, Bool},
    {"Attribute", "type", 6, Enum},
    {"Attribute", "shape", 7, Message, "Shape"},
    {"Attribute", "tensor", 8, Message, "Tensor"},
    {"Attribute", "placeholder", 9, Bytes},
    {"Attribute", "func", 10, Message, "FunctionName"},
    {"List", "s", 2, Bytes},
    {"List", "i", 3, Int},
    {"List", "f", 4, Float},
    {"List", "b", 5, Bool},
    {"List", "type", 6, Enum},
    {"List", "shape", 7, Message, "Shape"},
    {"List", "func", 9, Message, "FunctionName"},
    {"FunctionName", "name", 1, Bytes},
    {"Shape", "dim", 2, Message, "Dim"},
    {"Shape", "unknown_rank", 3, Bool},
    {"Dim", "size", 1, Int},
    {"Tensor", "dtype", 1, Enum},
    {"Tensor", "tensor_shape", 2, Message, "Shape"},
    {"Tensor", "tensor_content", 4, Bytes},
    {"Tensor", "float_val", 5, Float},
    {"Tensor", "double_val", 6, Double},
    {"Tensor", "int_val", 7, Int},
    {"Tensor", "string_val", 8, Bytes},
    {"Tensor", "scomplex_val", 9, Float},
    {"Tensor", "dcomplex_val", 12, Double},
    {"Tensor", "int64_val", 10, Int},
    {"Tensor", "bool_val", 11, Bool},
    {"Tensor", "half_val", 13, Int},
    {"Tensor", "uint32_val", 16, Int},
    {"Tensor", "uint64_val", 17, Int},
    {"ObjectGraph", "nodes", 1, Message, "Object"},
    {"ObjectGraph", "concrete_functions", 2, Message, "ConcreteEntry"},
    {"ConcreteEntry", "key", 1, Bytes},
    {"ConcreteEntry", "value", 2, Message, "Concrete"},
    {"Concrete", "bound_inputs", 2, Int},
    {"Object", "asset", 5, Message, "Asset"},
    {"Object", "resource", 10, Message, "Resource"},
};

/// TensorFlow's DataType, in its order.
static const char *const dataTypes[] = {
    "DT_INVALID",     "DT_FLOAT",        "DT_DOUBLE",     "DT_INT32",
    "DT_UINT8",       "DT_INT16",        "DT_INT8",       "DT_STRING",
    "DT_COMPLEX64",   "DT_INT64",        "DT_BOOL",       "DT_QINT8",
    "DT_QUINT8",      "DT_QINT32",       "DT_BFLOAT16",   "DT_QINT16",
    "DT_QUINT16",     "DT_UINT16",       "DT_COMPLEX128", "DT_HALF",
    "DT_RESOURCE",    "DT_VARIANT",      "DT_UINT32",     "DT_UINT64",
    "DT_FLOAT8_E5M2", "DT_FLOAT8_E4M3FN"};

static void putVarint(std::string &bytes, uint64_t value) {
  for (; value >= 128; value >>= 7)
    bytes.push_back(static_cast<char>(value | 128));
  bytes.push_back(static_cast<char>(value));
}
template <typename T> static void putFixed(std::string &bytes, T value) {
  char word[sizeof(T)];
  llvm::support::endian::write<T>(word, value, llvm::endianness::little);
  bytes.append(word, sizeof word);
}

namespace {
class TextEncoder {
public:
  TextEncoder(StringRef text, Problem &problem)
      : rest(text), all(text), problem(problem) {}

  /// Fields up to the closing bracket `end`, or the end of the text (0). In a
  /// message that is not read they are skipped.
  bool message(StringRef type, char end, int depth, std::string &bytes);

private:
  bool fail(const llvm::Twine &what) {
    size_t line = all.drop_back(rest.size()).count('\n') + 1;
    problem = {"is not TensorFlow's text syntax: line " + std::to_string(line) +
                   ": " + what.str(),
               "fetch or export the model again"};
    return false;
  }
  /// Skips blanks and comments.
  void skip();
  bool accept(char c) {
    skip();
    return rest.consume_front(StringRef(&c, 1));
  }
  StringRef word();
  bool text(std::string &value);
  bool field(StringRef type, int depth, std::string &bytes);
  bool value(const Field *field, int depth, std::string &bytes);
  bool scalar(const Field &field, StringRef token, std::string &bytes);

  StringRef rest, all;
  Problem &problem;
};
} // namespace

void TextEncoder::skip() {
  for (;;) {
    rest = rest.ltrim();
    if (!rest.starts_with("#"))
      return;
    rest = rest.drop_front(std::min(rest.find('\n'), rest.size()));
  }
}

/// A name or a number.
StringRef TextEncoder::word() {
  skip();
  size_t size = 0;
  while (size < rest.size() &&
         (llvm::isAlnum(rest[size]) || StringRef("_.+-").contains(rest[size])))
    ++size;
  StringRef found = rest.take_front(size);
  rest = rest.drop_front(size);
  return found;
}

/// Texts that follow each other are one.
bool TextEncoder::text(std::string &value) {
  for (skip(); !rest.empty() && (rest[0] == '"' || rest[0] == '\''); skip()) {
    char quote = rest[0];
    for (rest = rest.drop_front(); !rest.consume_front(StringRef(&quote, 1));) {
      if (rest.empty() || rest[0] == '\n')
        return fail("a text does not end");
      char c = rest[0];
      rest = rest.drop_front();
      if (c != '\\') {
        value.push_back(c);
        continue;
      }
      if (rest.empty())
        return fail("a text does not end");
      c = rest[0];
      bool isHex = c == 'x' || c == 'X';
      if (isHex)
        rest = rest.drop_front();
      StringRef digits = rest.take_while([&](char d) {
        return isHex ? llvm::isHexDigit(d) : d >= '0' && d <= '7';
      });
      digits = digits.take_front(isHex ? 2 : 3);
      unsigned code = 0;
      if (!digits.empty() && !digits.getAsInteger(isHex ? 16 : 8, code)) {
        value.push_back(static_cast<char>(code));
        rest = rest.drop_front(digits.size());
        continue;
      }
      static const StringRef names = "abfnrtv", codes = "\a\b\f\n\r\t\v";
      if (isHex || c == 'u' || c == 'U')
        return fail("an escape is not supported");
      size_t at = names.find(c);
      value.push_back(at == StringRef::npos ? c : codes[at]);
      rest = rest.drop_front();
    }
  }
  return true;
}

bool TextEncoder::scalar(const Field &field, StringRef token,
                         std::string &bytes) {
  auto bad = [&] {
    return fail("'" + printable(token.str()) + "' is no value of field '" +
                field.name + "'");
  };
  if (field.kind == Float || field.kind == Double) {
    StringRef digits = token;
    bool isNegative = digits.consume_front("-");
    double number = 0;
    if (digits.equals_insensitive("inf") ||
        digits.equals_insensitive("infinity"))
      number = std::numeric_limits<double>::infinity();
    else if (digits.equals_insensitive("nan"))
      number = std::numeric_limits<double>::quiet_NaN();
    else if ((digits.ends_with_insensitive("f") ? digits.drop_back() : digits)
                 .getAsDouble(number))
      return bad();
    number = isNegative ? -number : number;
    if (field.kind == Double)
      putFixed(bytes, number);
    else
      putFixed(bytes, static_cast<float>(number));
    return true;
  }
  uint64_t number = 0;
  int64_t negative = 0;
  if (field.kind == Bool && (token == "true" || token == "t"))
    number = 1;
  else if (field.kind == Bool && (token == "false" || token == "f"))
    number = 0;
  else if (field.kind == Enum && token.starts_with("DT_")) {
    constexpr uint64_t reference = 100;
    bool isReference = token.consume_back("_REF");
    auto it = llvm::find(dataTypes, token);
    // A type that has no name here is none that is supported.
    number = it - std::begin(dataTypes) + (isReference ? reference : 0);
  } else if (token.getAsInteger(0, number)) {
    if (token.getAsInteger(0, negative))
      return bad();
    number = static_cast<uint64_t>(negative);
  }
  putVarint(bytes, number);
  return true;
}

/// One value of a field; without a field it is skipped.
bool TextEncoder::value(const Field *field, int depth, std::string &bytes) {
  enum Wire { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };
  skip();
  std::string own;
  bool isMessage = rest.starts_with("{") || rest.starts_with("<"),
       isText = rest.starts_with("\"") || rest.starts_with("'");
  if (field && (isMessage != (field->kind == Message) ||
                isText != (field->kind == Bytes)))
    return fail("field '" + llvm::Twine(field->name) +
                "' has a value of another kind");
  if (isMessage) {
    char end = rest[0] == '{' ? '}' : '>';
    rest = rest.drop_front();
    if (!message(field ? field->to : "", end, depth + 1, own))
      return false;
  } else if (isText) {
    if (!text(own))
      return false;
  } else {
    // Blanks may stand behind a sign.
    bool isNegative = accept('-');
    StringRef token = word();
    if (token.empty())
      return fail("a value is missing");
    if (field &&
        !scalar(*field, isNegative ? ("-" + token).str() : token.str(), own))
      return false;
  }
  if (!field)
    return true;
  Wire wire = field->kind == Float    ? Fixed32
              : field->kind == Double ? Fixed64
              : isMessage || isText   ? Length
                                      : Varint;
  putVarint(bytes, static_cast<uint64_t>(field->number) << 3 | wire);
  if (wire == Length)
    putVarint(bytes, own.size());
  bytes += own;
  return true;
}

bool TextEncoder::field(StringRef type, int depth, std::string &bytes) {
  // Extensions and messages of any type have names in brackets.
  StringRef name;
  if (accept('[')) {
    size_t end = rest.find(']');
    if (end == StringRef::npos)
      return fail("a bracket is not closed");
    rest = rest.drop_front(end + 1);
  } else if (name = word(); name.empty()) {
    return fail(rest.empty() ? "it ends early"
                             : "the name of a field is missing");
  }
  const Field *known = nullptr;
  for (const Field &field : fields)
    if (name == field.name && type == field.in)
      known = &field;
  bool hasColon = accept(':');
  skip();
  if (!hasColon && !rest.starts_with("{") && !rest.starts_with("<"))
    return fail("field '" + printable(name.str()) + "' has no value");
  if (!accept('['))
    return value(known, depth, bytes);
  if (accept(']'))
    return true;
  do {
    if (!value(known, depth, bytes))
      return false;
  } while (accept(','));
  return accept(']') || fail("a list is not closed");
}

bool TextEncoder::message(StringRef type, char end, int depth,
                          std::string &bytes) {
  constexpr int maxDepth = 64;
  if (depth > maxDepth)
    return fail("messages lie over " + llvm::Twine(maxDepth) +
                " deep inside of one another");
  for (;;) {
    skip();
    if (rest.empty())
      return end == 0 || fail("it ends early");
    if (end && accept(end))
      return true;
    if (!field(type, depth, bytes))
      return false;
    if (!accept(','))
      accept(';');
  }
}

std::optional<std::string>
charonia::frontend::tensorflow::encodeText(StringRef text, TextMessage message,
                                           Problem &problem) {
  std::string bytes;
  const char *type = message == TextMessage::Graph ? "Graph" : "SavedModel";
  if (!TextEncoder(text, problem).message(type, 0, 0, bytes))
    return std::nullopt;
  return bytes;
}
