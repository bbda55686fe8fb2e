#include "frontends/onnx/Schema.h"
#include "frontends/onnx/RuntimeSchemas.h"
#include "onnx/checker.h"
#include "onnx/defs/parser.h"
#include "onnx/defs/schema.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cerrno>
#include <cstdlib>
#include <set>

using namespace charonia;
using namespace charonia::frontend;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;
using ::onnx::OpSchema;
using ::onnx::TypeProto;

/// Runs `body`; what it throws becomes text.
template <typename Body> static std::string guarded(Body body) {
  try {
    body();
    return "";
  } catch (const std::exception &error) {
    return error.what();
  } catch (...) {
    return "unknown failure in the ONNX library";
  }
}

/// Nesting of brackets, which the recursive parser follows.
static bool nestsDeeply(std::string_view text) {
  constexpr int limit = 256;
  int depth = 0;
  for (char c : text) {
    depth += c == '(' || c == '{' || c == '[' || c == '<';
    depth -= (c == ')' || c == '}' || c == ']' || c == '>') && depth > 0;
    if (depth > limit)
      return true;
  }
  return false;
}

/// The first integer that no 64 bits hold; the parser does not say which. Of
/// floats it does, and those that are too close to 0 it takes for 0.
static std::string tooLargeInteger(std::string_view text) {
  auto isPart = [](char c) {
    return llvm::isAlnum(c) || llvm::is_contained("_.+-", c);
  };
  for (size_t at = 0, end; at < text.size(); at = std::max(end, at + 1)) {
    for (end = at; end < text.size() && isPart(text[end]);)
      ++end;
    std::string word(text.substr(at, end - at));
    size_t digit = word.find_first_not_of("+-");
    if (digit == std::string::npos || !llvm::isDigit(word[digit]) ||
        word.find_first_of(".eE") != std::string::npos)
      continue;
    errno = 0;
    (void)std::strtoll(word.c_str(), nullptr, 10);
    if (errno == ERANGE)
      return word;
  }
  return "";
}

std::string frontend::onnx::parseText(std::string_view text,
                                      ::onnx::ModelProto &model) {
  if (nestsDeeply(text))
    return "brackets nest too deeply";
  ::onnx::Common::Status status;
  std::string error =
      guarded([&] { status = ::onnx::OnnxParser::Parse(model, text); });
  // Of the standard library's conversion, which tells its own name.
  if (error == "stoll")
    if (std::string number = tooLargeInteger(text); !number.empty())
      return "the number " + number + " does not fit into 64 bits";
  if (error.empty() && !status.IsOK())
    error = status.ErrorMessage();
  return error;
}

int frontend::onnx::newestVersion(const std::string &domain) {
  guarded(registerRuntimeSchemas);
  auto &map = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  auto it = map.find(normalDomain(domain));
  return it == map.end() ? 0 : it->second.second;
}
int64_t frontend::onnx::newestIrVersion() {
  return ::onnx::Version::IR_VERSION;
}
std::string frontend::onnx::normalDomain(const std::string &domain) {
  return domain == "ai.onnx" ? "" : domain;
}
std::string frontend::onnx::attributeTypeName(int type) {
  return AttributeProto::AttributeType_IsValid(type)
             ? AttributeProto::AttributeType_Name(
                   AttributeProto::AttributeType(type))
             : "type " + std::to_string(type);
}
std::string frontend::onnx::dataTypeName(int type) {
  for (auto &[name, value] : ::onnx::PrimitiveTypeNameMap::Instance())
    if (value == type && value)
      return name;
  return "type " + std::to_string(type);
}

static const OpSchema &get(const void *schema) {
  return *static_cast<const OpSchema *>(schema);
}

frontend::onnx::Operator
frontend::onnx::Operator::find(const std::string &name, int version,
                               const std::string &domain) {
  const OpSchema *schema = nullptr;
  guarded([&] {
    registerRuntimeSchemas();
    schema =
        ::onnx::OpSchemaRegistry::Schema(name, version, normalDomain(domain));
  });
  return Operator(schema);
}

int frontend::onnx::Operator::sinceVersion() const {
  return get(schema).SinceVersion();
}
bool frontend::onnx::Operator::isDeprecated() const {
  return get(schema).Deprecated();
}

static std::string range(int low, int high, const char *what) {
  if (high == std::numeric_limits<int>::max())
    return std::to_string(low) + " or more " + what;
  if (low == high)
    return std::to_string(low) + " " + what;
  return std::to_string(low) + " to " + std::to_string(high) + " " + what;
}

/// The formal parameter of an actual one; null beyond the last.
static const OpSchema::FormalParameter *
formal(const std::vector<OpSchema::FormalParameter> &formals, int index) {
  if (index < int(formals.size()))
    return &formals[index];
  return formals.empty() || formals.back().GetOption() != OpSchema::Variadic
             ? nullptr
             : &formals.back();
}

static std::string checkAttributes(const OpSchema &schema,
                                   const NodeProto &node) {
  std::set<std::string> seen;
  for (const AttributeProto &attribute : node.attribute()) {
    const std::string &name = attribute.name();
    if (!seen.insert(name).second)
      return "attribute '" + name + "' appears twice";
    auto it = schema.attributes().find(name);
    if (it == schema.attributes().end()) {
      if (name.rfind("__", 0) == 0)
        continue;
      return "there is no attribute '" + name + "'";
    }
    AttributeProto::AttributeType expected = it->second.type;
    if (attribute.type() != expected)
      return "attribute '" + name + "' has to be of type " +
             frontend::onnx::attributeTypeName(expected) + ", not " +
             frontend::onnx::attributeTypeName(attribute.type());
    bool holds = expected == AttributeProto::TENSOR  ? attribute.has_t()
                 : expected == AttributeProto::GRAPH ? attribute.has_g()
                 : expected == AttributeProto::SPARSE_TENSOR
                     ? attribute.has_sparse_tensor()
                 : expected == AttributeProto::TYPE_PROTO ? attribute.has_tp()
                                                          : true;
    if (!holds)
      return "attribute '" + name + "' holds no value";
  }
  std::set<std::string> missing;
  for (auto &[name, attribute] : schema.attributes())
    if (attribute.required && !seen.count(name))
      missing.insert(name);
  return missing.empty() ? ""
                         : "attribute '" + *missing.begin() + "' is missing";
}

std::string frontend::onnx::Operator::checkNode(const NodeProto &node) const {
  const OpSchema &s = get(schema);
  if (node.input_size() < s.min_input() || node.input_size() > s.max_input())
    return "takes " + range(s.min_input(), s.max_input(), "inputs") + ", not " +
           std::to_string(node.input_size());
  if (node.output_size() < s.min_output() ||
      node.output_size() > s.max_output())
    return "has " + range(s.min_output(), s.max_output(), "outputs") +
           ", not " + std::to_string(node.output_size());
  for (int i = 0; i < node.input_size(); ++i) {
    auto *parameter = formal(s.inputs(), i);
    if (parameter && node.input(i).empty() &&
        parameter->GetOption() == OpSchema::Single)
      return "input " + std::to_string(i) + " (" + parameter->GetName() +
             ") is missing";
  }
  return checkAttributes(s, node);
}

static std::string typeText(const TypeProto &type) {
  if (type.has_tensor_type())
    return "tensor(" +
           frontend::onnx::dataTypeName(type.tensor_type().elem_type()) + ")";
  return "another kind of value";
}

std::string frontend::onnx::Operator::checkTypes(
    const NodeProto &node, const std::vector<TypeProto> &inputs) const {
  const OpSchema &s = get(schema);
  std::map<std::string, std::pair<int, std::string>> bound;
  for (int i = 0; i < int(inputs.size()); ++i) {
    auto *parameter = formal(s.inputs(), i);
    if (!parameter || !inputs[i].has_tensor_type())
      continue;
    std::string actual = typeText(inputs[i]);
    auto where = [&](int index) {
      return "input " + std::to_string(index) + " ('" + node.input(index) +
             "')";
    };
    bool allowed = parameter->GetTypes().empty();
    for (auto *type : parameter->GetTypes())
      allowed |= *type == actual;
    if (!allowed)
      return where(i) + " may not be " + actual;
    const std::string &variable = parameter->GetTypeStr();
    if (!s.typeConstraintMap().count(variable) ||
        !parameter->GetIsHomogeneous())
      continue;
    auto [it, isNew] = bound.try_emplace(variable, i, actual);
    if (!isNew && it->second.second != actual)
      return where(i) + " is " + actual + ", " + where(it->second.first) +
             " is " + it->second.second + "; they have to be of one type";
  }
  return "";
}

void frontend::onnx::Operator::addDefaults(NodeProto &node) const {
  std::set<std::string> given;
  for (const AttributeProto &attribute : node.attribute())
    given.insert(attribute.name());
  for (auto &[name, attribute] : get(schema).attributes())
    if (attribute.default_value.has_type() && !given.count(name))
      *node.add_attribute() = attribute.default_value;
}

bool frontend::onnx::Operator::hasFunctionBody() const {
  return get(schema).HasFunction() || get(schema).HasContextDependentFunction();
}

std::optional<::onnx::FunctionProto> frontend::onnx::Operator::functionBody(
    const NodeProto &node, int version, int defaultVersion,
    const std::vector<TypeProto> &inputs, std::string &error) const {
  const OpSchema &s = get(schema);
  std::optional<::onnx::FunctionProto> body;
  error = guarded([&] {
    // A builder knows the node, so it goes first where there are both.
    auto builders = s.context_dependent_function_opset_versions();
    if (!builders.empty() &&
        *std::min_element(builders.begin(), builders.end()) <= version) {
      ::onnx::FunctionBodyBuildContextImpl context(node, inputs);
      ::onnx::FunctionProto built;
      if (s.BuildContextDependentFunction(context, built, version)) {
        body = std::move(built);
        return;
      }
    }
    if (const ::onnx::FunctionProto *fixed =
            s.GetFunction(version, /*validate=*/false)) {
      body = *fixed;
      // Bodies are kept per version that changed one of their operators.
      for (auto &opset : *body->mutable_opset_import())
        if (normalDomain(opset.domain()) == s.domain())
          opset.set_version(version);
    }
  });
  if (!error.empty())
    body.reset();
  if (body) {
    bool hasDefault = false;
    for (auto &opset : body->opset_import())
      hasDefault |= normalDomain(opset.domain()).empty();
    if (!hasDefault)
      body->add_opset_import()->set_version(defaultVersion);
  }
  return body;
}
