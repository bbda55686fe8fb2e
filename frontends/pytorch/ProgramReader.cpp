#include "frontends/common/Diagnostic.h"
#include "frontends/common/Json.h"
#include "frontends/pytorch/Program.h"
#include "llvm/ADT/StringSwitch.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::StringRef;

/// The version of the schema that is read; minor versions add fields.
constexpr int64_t schemaMajor = 8;
/// Graphs in graphs (regions).
constexpr int maxGraphDepth = 16;

namespace {
class ProgramReader {
public:
  Program read(Json root);

private:
  Graph readGraph(Json json, int depth);
  Node readNode(Json json, int depth);
  Argument readArgument(Json json, int depth);
  Argument readKind(StringRef kind, Json value, int depth);
  Argument readList(Json list, StringRef itemKind, int depth);
  /// A union of a name and a plain value.
  Argument readSymbolic(Json json, Kind symbolic);
  ExpressionPtr readSize(Json json);
  void readSignature(Json json, Program &program);
  void readNames(Json calls, Program &program);
  void readGuards(Json list, Program &program);

  ExpressionParser expressions;
};
} // namespace

static Argument text(Kind kind, std::string text) {
  Argument argument;
  argument.kind = kind;
  argument.text = std::move(text);
  return argument;
}
static Argument integer(Kind kind, int64_t value) {
  Argument argument;
  argument.kind = kind;
  argument.integer = value;
  return argument;
}

/// An integer, or an expression of symbols: what a program computes of sizes,
/// which may be negative.
static ExpressionPtr integerFrom(const Json &json,
                                 ExpressionParser &expressions) {
  auto [kind, value] = json.only();
  if (kind == "as_int")
    return makeInteger(value.integer());
  if (kind != "as_expr") {
    json.fail("is no size");
    return makeInteger(0);
  }
  Json text = value["expr_str"];
  std::string problem;
  ExpressionPtr expression = expressions.parse(text.string(), problem);
  if (expression)
    return expression;
  text.fail("cannot be read: the expression " + problem);
  return makeInteger(0);
}

/// The same of what a tensor has in memory.
static ExpressionPtr sizeFrom(const Json &json, ExpressionParser &expressions) {
  ExpressionPtr size = integerFrom(json, expressions);
  if (auto [kind, value] = json.only(); kind == "as_int" && size->value < 0)
    value.fail("is " + llvm::Twine(size->value) + ", which is no size");
  return size;
}

/// A number of an enumeration.
static int codeFrom(const Json &json) {
  int64_t code = json.integer();
  constexpr int64_t most = 1 << 16;
  if (code >= 0 && code <= most)
    return static_cast<int>(code);
  json.fail("is " + llvm::Twine(code) + ", which is no code");
  return 0;
}

TensorMeta
charonia::frontend::pytorch::readTensorMeta(const Json &json,
                                            ExpressionParser &expressions) {
  TensorMeta meta;
  // Dimensions are a list each of what takes far more than its text.
  constexpr size_t maxRank = 64;
  for (const char *list : {"sizes", "strides"})
    if (json[list].list().size() > maxRank) {
      json[list].fail("has over " + llvm::Twine(maxRank) + " entries");
      return meta;
    }
  meta.dtype = codeFrom(json["dtype"]);
  meta.layout = codeFrom(json["layout"]);
  for (const Json &size : json["sizes"].list())
    meta.sizes.push_back(sizeFrom(size, expressions));
  for (const Json &stride : json["strides"].list())
    meta.strides.push_back(sizeFrom(stride, expressions));
  meta.offset = json["storage_offset"]
                    ? sizeFrom(json["storage_offset"], expressions)
                    : makeInteger(0);
  return meta;
}

// Arguments.

Argument ProgramReader::readSymbolic(Json json, Kind symbolic) {
  auto [kind, value] = json.only();
  if (kind == "as_name")
    return text(symbolic, value.string());
  Argument argument;
  if (kind == "as_int" && symbolic == Kind::SymInt)
    return integer(Kind::Integer, value.integer());
  if (kind == "as_bool" && symbolic == Kind::SymBool)
    return integer(Kind::Bool, value.boolean());
  if (kind == "as_float" && symbolic == Kind::SymFloat) {
    argument.kind = Kind::Float;
    argument.number = value.number();
    return argument;
  }
  json.fail("is neither a name nor a value");
  return argument;
}

Argument ProgramReader::readList(Json list, StringRef itemKind, int depth) {
  Argument argument;
  argument.kind = Kind::List;
  for (const Json &item : list.list())
    argument.items.push_back(readKind(itemKind, item, depth));
  return argument;
}

Argument ProgramReader::readKind(StringRef kind, Json value, int depth) {
  StringRef items = llvm::StringSwitch<StringRef>(kind)
                        .Case("as_tensors", "as_tensor")
                        .Case("as_ints", "as_int")
                        .Case("as_sym_ints", "as_sym_int")
                        .Case("as_floats", "as_float")
                        .Case("as_sym_floats", "as_sym_float")
                        .Case("as_bools", "as_bool")
                        .Case("as_sym_bools", "as_sym_bool")
                        .Case("as_strings", "as_string")
                        .Case("as_optional_tensors", "as_optional_tensor")
                        .Case("as_nested_tensors", "as_tensors")
                        .Case("as_int_lists", "as_ints")
                        .Case("as_float_lists", "as_floats")
                        .Default("");
  if (!items.empty())
    return readList(value, items, depth);
  if (kind == "as_none")
    return {};
  if (kind == "as_tensor")
    return text(Kind::Tensor, value["name"].string());
  if (kind == "as_optional_tensor")
    return readArgument(value, depth);
  if (kind == "as_int")
    return integer(Kind::Integer, value.integer());
  if (kind == "as_bool")
    return integer(Kind::Bool, value.boolean());
  if (kind == "as_float") {
    Argument argument;
    argument.kind = Kind::Float;
    argument.number = value.number();
    return argument;
  }
  if (kind == "as_complex") {
    Argument argument;
    argument.kind = Kind::Complex;
    for (StringRef part : {"real", "imag"})
      argument.items.push_back(readKind("as_float", value[part], depth));
    return argument;
  }
  if (kind == "as_operator")
    return text(Kind::Unsupported, value.string());
  if (kind == "as_string")
    return text(Kind::String, value.string());
  if (kind == "as_sym_int")
    return readSymbolic(value, Kind::SymInt);
  if (kind == "as_sym_float")
    return readSymbolic(value, Kind::SymFloat);
  if (kind == "as_sym_bool")
    return readSymbolic(value, Kind::SymBool);
  if (kind == "as_scalar_type")
    return integer(Kind::ScalarType, value.integer());
  if (kind == "as_memory_format")
    return integer(Kind::MemoryFormat, value.integer());
  if (kind == "as_layout")
    return integer(Kind::Layout, value.integer());
  if (kind == "as_device")
    return text(Kind::Device, value["type"].string());
  if (kind == "as_graph") {
    Argument argument = text(Kind::Graph, value["name"].string());
    argument.graph =
        std::make_shared<Graph>(readGraph(value["graph"], depth + 1));
    return argument;
  }
  return text(Kind::Unsupported, kind.str());
}

Argument ProgramReader::readArgument(Json json, int depth) {
  auto [kind, value] = json.only();
  return readKind(kind, value, depth);
}

// Graphs.

/// "encoder.layer.3" of "L__self__,,pkg.Model;L__self___encoder,encoder,...".
static std::string innermostModule(StringRef stack) {
  StringRef last = stack.rsplit(';').second;
  if (!stack.contains(';'))
    last = stack;
  return last.split(',').second.rsplit(',').first.str();
}

/// "model.py:12: return self.fc(x)" of the last call in a stack trace.
static std::string innermostLine(StringRef trace) {
  size_t at = trace.rfind("File \"");
  if (at == StringRef::npos)
    return "";
  auto [path, rest] = trace.drop_front(at + 6).split('"');
  auto [where, code] = rest.split('\n');
  StringRef number = where.split("line ").second.take_while(
      [](char c) { return c >= '0' && c <= '9'; });
  std::string text = path.rsplit('/').second.empty()
                         ? path.str()
                         : path.rsplit('/').second.str();
  text += ":" + number.str();
  code = code.split('\n').first.trim();
  return code.empty() ? text : text + ": " + code.str();
}

Node ProgramReader::readNode(Json json, int depth) {
  Node node;
  node.target = json["target"].string();
  node.name = json["name"].string("");
  for (const Json &input : json["inputs"].list())
    node.inputs.push_back(
        {input["name"].string(""), readArgument(input["arg"], depth)});
  for (const Json &output : json["outputs"].list())
    node.outputs.push_back(readArgument(output, depth));
  Json metadata = json["metadata"];
  node.module = innermostModule(metadata["nn_module_stack"].string(""));
  node.line = innermostLine(metadata["stack_trace"].string(""));
  return node;
}

Graph ProgramReader::readGraph(Json json, int depth) {
  Graph graph;
  if (depth > maxGraphDepth) {
    json.fail("is a graph over " + llvm::Twine(maxGraphDepth) +
              " deep in others");
    return graph;
  }
  for (const Json &input : json["inputs"].list())
    graph.inputs.push_back(readArgument(input, depth));
  for (const Json &output : json["outputs"].list())
    graph.outputs.push_back(readArgument(output, depth));
  for (const Json &node : json["nodes"].list())
    graph.nodes.push_back(readNode(node, depth));
  for (const auto &[name, meta] : json["tensor_values"].fields())
    graph.tensors.emplace(name, readTensorMeta(meta, expressions));
  for (const auto &[name, value] : json["sym_int_values"].fields())
    graph.integers.emplace(name, integerFrom(value, expressions));
  for (const auto &[name, value] : json["sym_float_values"].fields())
    if (auto [kind, number] = value.only(); kind == "as_expr")
      graph.floats.emplace(name, integerFrom(value, expressions));
  for (const auto &[name, value] : json["sym_bool_values"].fields()) {
    auto [kind, condition] = value.only();
    graph.conditions.emplace(name, kind == "as_bool"
                                       ? makeInteger(condition.boolean())
                                       : integerFrom(value, expressions));
  }
  return graph;
}

// The signature.

static InputSpec readInputSpec(const Json &json) {
  auto [kind, value] = json.only();
  InputSpec spec;
  spec.name = "";
  auto read = [&](InputSpec::Kind as, StringRef target) {
    spec.kind = as;
    spec.name = value["arg"]["name"].string();
    spec.target = value[target].string();
  };
  if (kind == "parameter")
    read(InputSpec::Kind::Parameter, "parameter_name");
  else if (kind == "buffer")
    read(InputSpec::Kind::Buffer, "buffer_name");
  else if (kind == "tensor_constant")
    read(InputSpec::Kind::Constant, "tensor_constant_name");
  else if (kind == "custom_obj")
    read(InputSpec::Kind::Object, "custom_obj_name");
  else if (kind == "constant_input") {
    spec.kind = InputSpec::Kind::Fixed;
    spec.name = value["name"].string();
  } else if (kind == "token") { // it orders nodes, and is no value
    spec.kind = InputSpec::Kind::Fixed;
    spec.name = value["arg"]["name"].string();
  } else if (kind != "user_input") {
    json.fail("is an input of an unknown kind");
  }
  return spec;
}

void ProgramReader::readSignature(Json json, Program &program) {
  for (const Json &input : json["input_specs"].list())
    program.inputs.push_back(readInputSpec(input));
  for (const Json &output : json["output_specs"].list()) {
    auto [kind, value] = output.only();
    OutputSpec spec;
    if (kind == "user_output") {
      spec.value = readArgument(value["arg"], 0);
    } else if (kind == "buffer_mutation" || kind == "parameter_mutation" ||
               kind == "user_input_mutation") {
      spec.kind = OutputSpec::Kind::Mutation;
      spec.value = text(Kind::Tensor, value["arg"]["name"].string());
      spec.target = value[kind == "buffer_mutation"      ? "buffer_name"
                          : kind == "parameter_mutation" ? "parameter_name"
                                                         : "user_input_name"]
                        .string();
    } else {
      spec.kind = OutputSpec::Kind::Other;
    }
    program.outputs.push_back(std::move(spec));
  }
}

void ProgramReader::readNames(Json calls, Program &program) {
  for (const Json &call : calls.list()) {
    Json signature = call["signature"];
    if (!call["fqn"].string("").empty() || !signature)
      continue;
    program.outputNames = readOutputNames(signature);
    program.inputPaths = readInputPaths(signature);
    return;
  }
}

void ProgramReader::readGuards(Json list, Program &program) {
  constexpr size_t maxGuards = 4096, maxText = size_t(1) << 16,
                   maxAll = size_t(1) << 22;
  if (list.size() > maxGuards)
    list.fail("has over " + llvm::Twine(maxGuards) + " entries");
  size_t all = 0;
  for (const Json &guard : list.list()) {
    program.guards.push_back(guard.string());
    size_t size = program.guards.back().size();
    all += size;
    if (size > maxText || all > maxAll || list.failed())
      return list.failed() ? void() : guard.fail("is too long");
  }
}

Program ProgramReader::read(Json root) {
  Program program;
  Json version = root["schema_version"];
  int64_t major = version["major"].integer();
  for (const Json &verifier : root["verifiers"].list())
    program.isDecomposed |= verifier.string() == "ATEN";
  if (!root.failed() && major != schemaMajor) {
    version.fail("has major version " + llvm::Twine(major) + "; " +
                 llvm::Twine(schemaMajor) + " is supported");
    return program;
  }
  Json module = root["graph_module"];
  program.graph = readGraph(module["graph"], 0);
  readSignature(module["signature"], program);
  readNames(module["module_call_graph"], program);
  for (const auto &[name, range] : root["range_constraints"].fields()) {
    SymbolRange bounds;
    if (range["min_val"])
      bounds.min = range["min_val"].integer();
    if (range["max_val"])
      bounds.max = range["max_val"].integer();
    program.ranges.emplace(name, bounds);
  }
  readGuards(root["guards_code"], program);
  return program;
}

std::optional<Program>
charonia::frontend::pytorch::readProgram(StringRef text, Problem &problem) {
  constexpr const char *remedy = "export the program again with torch 2.9 or "
                                 "newer";
  std::string damage;
  std::optional<JsonText> value = JsonText::parse(text, damage);
  if (!value) {
    problem = {damage, remedy};
    return std::nullopt;
  }
  Json::Report report;
  Program program = ProgramReader().read(Json(*value, "", report));
  if (!report.problem.empty()) {
    problem = {report.problem, remedy};
    return std::nullopt;
  }
  return program;
}
