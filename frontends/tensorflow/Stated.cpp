#include "frontends/tensorflow/Stated.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;

const char *const charonia::frontend::tensorflow::contradictionRemedy =
    "the file is damaged, or this is a fault of charonia's row for the "
    "operator: please report it with the model";

/// The node's attribute, or what its operator's definition says that it is
/// without; null where that says nothing or the attribute is of another kind.
static const proto::Attribute *
attributeOf(const proto::Node &node, const std::string &name,
            const proto::FunctionSignature &definition,
            proto::Attribute::ValueCase kind) {
  const proto::Attribute *found = nullptr;
  if (auto it = node.attributes().find(name); it != node.attributes().end()) {
    found = &it->second;
  } else {
    for (const auto &attribute : definition.defaults())
      if (attribute.name() == name && attribute.has_value())
        found = &attribute.value();
  }
  return found && found->value_case() == kind ? found : nullptr;
}

/// Appends types of the results that one argument of a definition stands for,
/// `count` in all. False where their number is not known.
static bool addTypes(const proto::FunctionSignature::Argument &argument,
                     const proto::Node &node,
                     const proto::FunctionSignature &definition, size_t count,
                     std::vector<int> &types) {
  if (!argument.list_attribute().empty()) {
    auto *list = attributeOf(node, argument.list_attribute(), definition,
                             proto::Attribute::kList);
    if (list)
      types.insert(types.end(), list->list().types().begin(),
                   list->list().types().end());
    return list;
  }
  // As in the enum DataType.
  constexpr int reference = 100;
  int type = argument.type();
  if (!argument.type_attribute().empty()) {
    auto *attribute = attributeOf(node, argument.type_attribute(), definition,
                                  proto::Attribute::kType);
    type = attribute ? attribute->type() : 0;
  }
  if (argument.is_reference() && type > 0 && type < reference)
    type += reference;
  int64_t results = 1;
  if (!argument.number_attribute().empty()) {
    auto *number = attributeOf(node, argument.number_attribute(), definition,
                               proto::Attribute::kInteger);
    results = number ? number->integer() : -1;
  }
  if (results < 0)
    return false;
  size_t room = count - std::min(count, types.size());
  types.insert(types.end(), std::min<size_t>(results, room), type);
  return true;
}

std::optional<int> charonia::frontend::tensorflow::resultNumber(
    const proto::Node &node, const proto::FunctionSignature &definition,
    llvm::StringRef output, int index) {
  // Beyond that no operator has results.
  constexpr size_t most = 1 << 16;
  std::vector<int> types;
  for (const auto &argument : definition.outputs()) {
    size_t first = types.size(), number = first + static_cast<size_t>(index);
    bool isCounted = addTypes(argument, node, definition, most, types);
    if (argument.name() == output && index >= 0 &&
        (!isCounted || number < types.size()))
      return static_cast<int>(number);
    if (argument.name() == output || !isCounted)
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<int> charonia::frontend::tensorflow::operandTypes(
    const proto::Node &node, const proto::FunctionSignature &definition) {
  std::vector<int> types;
  for (const auto &argument : definition.inputs())
    if (!addTypes(argument, node, definition, node.inputs_size(), types))
      break;
  return types;
}

std::vector<Stated> charonia::frontend::tensorflow::statedResults(
    const proto::Node &node, size_t count, const Model &model) {
  std::vector<Stated> stated(count);
  if (!model.isSaved())
    return stated;
  std::vector<int> types;
  if (auto *definition = model.definition(node.op()))
    for (const auto &argument : definition->outputs())
      if (!addTypes(argument, node, *definition, count, types))
        break;
  for (size_t i = 0; i < std::min(count, types.size()); ++i)
    stated[i].dtype = types[i];
  auto it = node.attributes().find("_output_shapes");
  if (it == node.attributes().end() || !it->second.has_list())
    return stated;
  const auto &shapes = it->second.list().shapes();
  for (size_t i = 0; i < std::min<size_t>(count, shapes.size()); ++i)
    stated[i].shape = &shapes[static_cast<int>(i)];
  return stated;
}

/// "float32[?, 4]"; without what is not said.
static std::string describe(const Stated &stated, bool hasType) {
  std::string text = hasType ? dtypeName(stated.dtype) : "";
  if (!stated.shape)
    return text;
  text += "[";
  for (int d = 0; d < stated.shape->dims_size(); ++d) {
    int64_t size = stated.shape->dims(d).size();
    text += (d ? ", " : "") + (size < 0 ? "?" : std::to_string(size));
  }
  return text + "]";
}

std::string charonia::frontend::tensorflow::contradiction(mlir::Value value,
                                                          Stated stated,
                                                          const char *text,
                                                          Emitter &emitter) {
  if (!value)
    return "";
  if (stated.shape && stated.shape->unknown_rank())
    stated.shape = nullptr;
  mlir::Type element = elementType(stated.dtype, emitter.getContext());
  bool agrees = !element || element == elementOf(value);
  if (stated.shape) {
    Exprs actual = graph::getShape(value);
    const auto &sizes = stated.shape->dims();
    agrees = agrees && actual.size() == static_cast<size_t>(sizes.size());
    for (int d = 0; agrees && d < sizes.size(); ++d)
      agrees = sizes[d].size() < 0 ||
               graph::mayBeEqual(actual[d], emitter.number(sizes[d].size()));
  }
  return agrees ? ""
                : emitter.describe(value.getType()) + ", but " + text +
                      " says " + describe(stated, bool(element));
}
