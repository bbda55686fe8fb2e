// Where the variables of a model are stored, and under which names.
#include "frontends/common/Diagnostic.h"
#include "frontends/tensorflow/Message.h"
#include "frontends/tensorflow/Node.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;

bool Model::holdsVariables() const {
  return llvm::any_of(main->nodes, isVariable);
}

std::optional<Problem> Model::findCaptured(const proto::ObjectGraph &objects) {
  std::vector<std::string> keys(objects.nodes_size());
  if (variables) {
    constexpr const char *graphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
    Problem problem;
    auto text = variables->loadText(graphKey, problem);
    if (!text)
      return problem;
    proto::TrackableGraph trackable;
    if (!parseMessage(trackable, *text))
      return Problem{"its variables have a description that cannot be read",
                     damagedRemedy};
    int count = std::min(trackable.nodes_size(), objects.nodes_size());
    for (int i = 0; i < count; ++i)
      for (const auto &attribute : trackable.nodes(i).attributes())
        if (attribute.name() == "VARIABLE_VALUE")
          keys[i] = attribute.key();
    nameVariables(objects, trackable);
  }
  for (const auto &[name, function] : objects.functions()) {
    std::vector<std::string> &list = capturedBy[name];
    for (int object : function.bound()) {
      if (object < 0 || object >= objects.nodes_size())
        return Problem{"function '" + printable(name) +
                           "' captures an object that is not there",
                       damagedRemedy};
      list.push_back(keys[object]);
    }
  }
  return std::nullopt;
}

/// Under names that users know: of those that the signatures' functions read,
/// where two have one, and of those without, the way to the object.
void Model::nameVariables(const proto::ObjectGraph &objects,
                          const proto::TrackableGraph &trackable) {
  if (!replacements)
    return;
  auto keyOf = [&](int object) -> const proto::TrackableGraph::Attribute * {
    if (object >= 0 && object < trackable.nodes_size())
      for (const auto &attribute : trackable.nodes(object).attributes())
        if (attribute.name() == "VARIABLE_VALUE")
          return &attribute;
    return nullptr;
  };
  llvm::StringMap<std::string> keys;
  llvm::StringSet<> ambiguous;
  for (const auto &[name, function] : objects.functions())
    for (int object : function.bound())
      if (auto *variable = keyOf(object)) {
        const std::string &full = variable->full_name();
        if (keys.try_emplace(full, variable->key()).first->second !=
            variable->key())
          ambiguous.insert(full);
      }
  for (int object = 0; object < trackable.nodes_size(); ++object)
    if (auto *variable = keyOf(object)) {
      StringRef path = variable->key(), full = variable->full_name();
      path.consume_back("/.ATTRIBUTES/VARIABLE_VALUE");
      bool isKnown = !full.empty() && !ambiguous.contains(full);
      std::string &name = weightNames[variable->key()];
      name = (isKnown ? full : path).str();
      replacements->know(name);
    }
}

std::optional<TensorData> Model::replace(StringRef key,
                                         mlir::RankedTensorType type) const {
  auto it = weightNames.find(key);
  return replacements && it != weightNames.end()
             ? replacements->find(it->second, type)
             : std::nullopt;
}
std::optional<TensorData> Model::replace(const proto::Node &constant,
                                         mlir::RankedTensorType type) const {
  // Nodes of functions are others, whatever their names.
  auto it = main->byName.find(constant.name());
  return replacements && it != main->byName.end() &&
                 &main->nodes[it->second] == &constant
             ? replacements->find(constant.name(), type)
             : std::nullopt;
}

/// The node of a name and all that it depends on or waits for; all nodes where
/// there is none.
static std::vector<bool> ancestorsOf(const Body &body, StringRef name) {
  auto root = body.byName.find(name);
  std::vector<bool> found(body.nodes.size(), root == body.byName.end());
  std::vector<int> todo;
  auto add = [&](StringRef reference) {
    auto it = body.byName.find(parseReference(reference).node);
    if (it == body.byName.end() || found[it->second])
      return;
    found[it->second] = true;
    todo.push_back(it->second);
  };
  add(name);
  while (!todo.empty()) {
    const proto::Node &node = body.nodes[todo.back()];
    todo.pop_back();
    for (const std::string &input : node.inputs())
      add(input);
  }
  return found;
}

/// TF1 has no objects: a node restores all variables by assigning what others
/// read from the bundle, under the keys that a constant lists. Another saver's
/// nodes may lie beside.
std::optional<Problem> Model::findRestored(StringRef restore) {
  std::vector<bool> runs = ancestorsOf(*main, restore);
  auto nodeOf = [&](StringRef text) -> const proto::Node * {
    auto it = main->byName.find(parseReference(text).node);
    return it == main->byName.end() ? nullptr : &main->nodes[it->second];
  };
  for (auto [i, node] : llvm::enumerate(main->nodes)) {
    if (!runs[i] ||
        (node.op() != "Assign" && node.op() != "AssignVariableOp") ||
        node.inputs_size() < 2)
      continue;
    const proto::Node *variable = nodeOf(node.inputs(0));
    StringRef source = node.inputs(1);
    const proto::Node *read = nodeOf(source);
    for (int hops = 0;
         read && read->op() == "Identity" && read->inputs_size() && hops < 4;
         ++hops) {
      source = read->inputs(0);
      read = nodeOf(source);
    }
    if (!variable || !read || read->op() != "RestoreV2" ||
        read->inputs_size() < 2)
      continue;
    const proto::Node *names = nodeOf(read->inputs(1));
    auto value = names ? names->attributes().find("value")
                       : decltype(names->attributes().end())();
    int index = parseReference(source).index;
    if (!names || value == names->attributes().end() || index < 0 ||
        index >= value->second.tensor().texts_size())
      continue;
    // What is read of a tensor: all of it where the text is empty.
    const proto::Node *slices =
        read->inputs_size() > 2 ? nodeOf(read->inputs(2)) : nullptr;
    std::string part;
    if (slices) {
      auto slice = slices->attributes().find("value");
      if (slice != slices->attributes().end() &&
          index < slice->second.tensor().texts_size())
        part = slice->second.tensor().texts(index);
    }
    const std::string &key = value->second.tensor().texts(index);
    Stored &stored = restored[variableNameOf(*variable)];
    if (!stored.key.empty() && (stored.key != key || stored.part != part))
      return Problem{"restores variable '" +
                         printable(variableNameOf(*variable)) + "' as '" +
                         printable(stored.key) + "' and as '" + printable(key) +
                         "'",
                     "export the model with one saver"};
    stored = {key, part};
    if (replacements) {
      weightNames[key] = key;
      replacements->know(key);
    }
  }
  return std::nullopt;
}
