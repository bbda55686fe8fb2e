#include "frontends/pytorch/Trees.h"
#include "frontends/pytorch/GuardText.h"

using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::StringRef;

/// Containers in containers.
constexpr int maxDepth = 16;

/// A key as guards write it; empty where it is none
/// of Python's literals.
static std::string textOf(const Json &key, bool isInTuple = false) {
  if (key.isString())
    return isInTuple ? quotedKey(key.string()) : key.string();
  if (key.isNumber())
    return numberKey(key.written());
  if (key.isBoolean())
    return key.boolean() ? "True" : "False";
  if (!key.isPresent())
    return "None";
  std::vector<std::string> parts;
  for (const Json &part : key.isList() ? key.list() : std::vector<Json>())
    parts.push_back(textOf(part, true));
  return !key.isList() || llvm::is_contained(parts, "") ? "" : tupleOf(parts);
}

/// Whether the context of a container is a list of its children's keys. That of
/// a data class, whose type has any other name, has two lists: fields, and
/// fields that are None.
static bool isDictionary(StringRef type) {
  return type == "builtins.dict" || type == "collections.OrderedDict" ||
         type == "collections.defaultdict";
}

static std::vector<std::string> keysIn(const Json &list, StringRef type,
                                       bool all) {
  if (!list.isList())
    return {};
  std::vector<Json> parts = list.list();
  bool isOfFields = all && !isDictionary(type) && parts.size() == 2 &&
                    parts[0].isList() && parts[1].isList();
  std::vector<std::string> keys;
  for (const Json &key : isOfFields ? parts[0].list() : parts)
    keys.push_back(all || key.isString() ? textOf(key) : "");
  return keys;
}

/// What names the children of a container: keys of dictionaries and of classes
/// like them; empty for others. With `all` also keys that are no text, and
/// fields of data classes.
static std::vector<std::string> keysOf(const Json &tree, size_t children,
                                       bool all) {
  std::string type = tree["type"].string("");
  Json given = tree["context"];
  std::vector<std::string> keys;
  if (given.isObject()) {
    keys = keysIn(given["dict_context"], type, all);
  } else {
    // The context is a text of JSON itself.
    std::string problem, context = given.string("null");
    Json::Report ignored;
    if (auto text = JsonText::parse(context, problem))
      keys = keysIn(Json(*text, "", ignored), type, all);
  }
  return keys.size() == children ? keys : std::vector<std::string>();
}

/// Calls `visit` with the root of a tree that a text of the signature holds;
/// whether there is one. Another form of it only means that it says nothing.
static bool withTree(const Json &signature, const char *field,
                     llvm::function_ref<void(const Json &)> visit) {
  std::string problem, text = signature[field].string("null");
  auto tree = JsonText::parse(text, problem);
  Json::Report report;
  if (!tree || !Json(*tree, "", report).isList())
    return false;
  std::vector<Json> parts = Json(*tree, field, report).list();
  if (parts.size() != 2)
    return false;
  visit(parts[1]);
  return report.problem.empty();
}

static void nameLeaves(const Json &tree, const std::string &name,
                       std::vector<std::string> &names, int depth) {
  if (!tree["type"]) {
    names.push_back(name);
    return;
  }
  std::vector<Json> children = tree["children_spec"].list();
  std::vector<std::string> keys = keysOf(tree, children.size(), false);
  bool isNamed =
      llvm::any_of(keys, [](const std::string &key) { return !key.empty(); });
  for (size_t i = 0; i < children.size() && depth < maxDepth; ++i) {
    std::string key = isNamed ? keys[i] : name.empty() ? "" : std::to_string(i);
    nameLeaves(children[i],
               name.empty()  ? key
               : key.empty() ? name
                             : name + "_" + key,
               names, depth + 1);
  }
}

std::vector<std::string>
charonia::frontend::pytorch::readOutputNames(const Json &signature) {
  std::vector<std::string> names;
  bool good = withTree(signature, "out_spec", [&](const Json &tree) {
    nameLeaves(tree, "", names, 0);
  });
  return good ? names : std::vector<std::string>();
}

namespace {
/// Walks the arguments of a signature.
class PathReader {
public:
  explicit PathReader(std::vector<InputPaths> &paths) : paths(paths) {}
  void readPositional(const Json &tree, std::vector<std::string> names);
  void readNamed(const Json &tree);
  /// Whether the paths are of a size that files have.
  bool isGood() const { return size <= maxText; }

private:
  void read(const Json &tree, const InputPaths &start, int depth);

  static constexpr size_t maxText = size_t(1) << 22;
  std::vector<InputPaths> &paths;
  size_t size = 0;
};
} // namespace

/// Appends the paths of a tree's leaves, each behind `start`.
void PathReader::read(const Json &tree, const InputPaths &start, int depth) {
  if (!isGood())
    return;
  std::string type = tree["type"].string("");
  if (type.empty()) {
    for (const std::string &key : start.direct)
      size += key.size() + sizeof(key);
    paths.push_back(start);
    return;
  }
  std::vector<Json> children = tree["children_spec"].list();
  std::vector<std::string> keys = keysOf(tree, children.size(), true);
  bool isSequence = type == "builtins.list" || type == "builtins.tuple" ||
                    type == "collections.deque";
  for (size_t i = 0; i < children.size() && depth < maxDepth; ++i) {
    InputPaths next = start;
    next.direct.push_back(isSequence     ? std::to_string(i)
                          : keys.empty() ? ""
                                         : keys[i]);
    if (next.gathered)
      next.gathered->push_back(next.direct.back());
    read(children[i], next, depth + 1);
  }
}

/// What "*args" gathers has the names args_0, args_1 and so on, up to the last
/// argument.
static size_t countGathered(llvm::ArrayRef<std::string> names) {
  size_t last;
  if (names.empty() ||
      StringRef(names.back()).rsplit('_').second.getAsInteger(10, last))
    return 0;
  return last < names.size() ? last + 1 : 0;
}

void PathReader::readPositional(const Json &tree,
                                std::vector<std::string> names) {
  std::vector<Json> arguments = tree["children_spec"].list();
  names.resize(arguments.size());
  size_t gathered = countGathered(names);
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    InputPaths start;
    start.isPositional = true;
    start.direct = {names[i]};
    if (size_t first = names.size() - gathered; i >= first)
      start.gathered = {StringRef(names[i]).rsplit('_').first.str(),
                        std::to_string(i - first)};
    read(argument, start, 0);
  }
}

void PathReader::readNamed(const Json &tree) {
  std::vector<Json> arguments = tree["children_spec"].list();
  std::vector<std::string> keys = keysOf(tree, arguments.size(), true);
  keys.resize(arguments.size());
  for (auto [key, argument] : llvm::zip_equal(keys, arguments)) {
    InputPaths start;
    start.direct = {key};
    start.gathered = {"", key}; // The file does not have "kwargs".
    read(argument, start, 0);
  }
}

std::vector<InputPaths>
charonia::frontend::pytorch::readInputPaths(const Json &signature) {
  std::vector<InputPaths> paths;
  PathReader reader(paths);
  std::vector<std::string> names;
  for (const Json &name : signature["forward_arg_names"].list())
    names.push_back(name.string());
  bool good = withTree(signature, "in_spec", [&](const Json &tree) {
    std::vector<Json> parts = tree["children_spec"].list();
    if (parts.size() != 2)
      return;
    reader.readPositional(parts[0], std::move(names));
    reader.readNamed(parts[1]);
  });
  return good && reader.isGood() ? paths : std::vector<InputPaths>();
}
