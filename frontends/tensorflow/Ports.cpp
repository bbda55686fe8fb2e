// Inputs and outputs of a model.
#include "frontends/common/Diagnostic.h"
#include "frontends/tensorflow/ControlFlow.h"
#include "frontends/tensorflow/Node.h"
#include "llvm/ADT/StringSet.h"
#include <set>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;

// Signatures.

/// Those that compute something, sorted.
static std::vector<std::string> signaturesOf(const proto::MetaGraph &graph) {
  std::vector<std::string> names;
  for (const auto &[name, signature] : graph.signatures())
    if (signature.outputs_size() && name != "__saved_model_init_op" &&
        name != "__saved_model_train_op")
      names.push_back(name);
  llvm::sort(names);
  return names;
}

/// The signature's name: the given one, the one that is served by default, or
/// the only one.
static std::string chooseSignature(const proto::MetaGraph &graph,
                                   const std::string &given, Problem &problem) {
  constexpr const char *byDefault = "serving_default";
  std::vector<std::string> names = signaturesOf(graph);
  std::string wanted = given.empty() ? byDefault : given;
  if (llvm::is_contained(names, wanted))
    return wanted;
  if (given.empty() && names.size() == 1)
    return names[0];
  constexpr size_t maxListed = 32;
  std::string list;
  for (const std::string &name :
       llvm::ArrayRef(names).take_front(std::min(names.size(), maxListed)))
    list += (list.empty() ? "" : ", ") + printable(name);
  if (names.size() > maxListed)
    list += ", ... (" + std::to_string(names.size()) + " in all)";
  problem.what = "has no signature '" + printable(wanted) + "'" +
                 (list.empty() ? ", and no other" : "; it has " + list);
  problem.remedy = list.empty() ? "save it with one: tf.saved_model.save("
                                  "module, folder, signatures=function)"
                                : "name one with --signature";
  return "";
}

std::optional<Problem> Model::useSignature(const proto::MetaGraph &graph,
                                           const ImportOptions &options) {
  if (!options.inputs.empty() || !options.outputs.empty())
    return Problem{"is a SavedModel, whose inputs and outputs are those of a "
                   "signature",
                   "use --signature instead of --inputs and --outputs"};
  std::optional<Problem> problem;
  Problem missing;
  std::string name = chooseSignature(graph, options.signature, missing);
  if (name.empty())
    return missing;
  const proto::Signature &signature = graph.signatures().at(name);
  auto read = [&](const auto &from, std::vector<Port> &to, const char *what) {
    for (const auto &[name, info] : from) {
      if (info.has_sparse() || info.has_composite())
        problem = Problem{std::string(what) + " '" + printable(name) +
                              "' is not a dense tensor",
                          "export a function of dense tensors"};
      to.push_back({name, info.name(), info.dtype(),
                    info.has_shape() ? &info.shape() : nullptr});
    }
    // The map has no order, and an engine's interface needs one.
    llvm::sort(to,
               [](const Port &a, const Port &b) { return a.name < b.name; });
  };
  read(signature.inputs(), inputPorts, "input");
  read(signature.outputs(), outputPorts, "output");
  return problem;
}

// Graphs without a signature.

static const proto::Attribute *attributeOf(const proto::Node &node,
                                           const char *name) {
  auto it = node.attributes().find(name);
  return it == node.attributes().end() ? nullptr : &it->second;
}

std::optional<Problem> Model::addInput(const proto::Node &node) {
  if (node.op() != "Placeholder" && node.op() != "PlaceholderWithDefault")
    return Problem{"input '" + printable(node.name()) + "' is a node " +
                       printable(node.op()) + ", not a placeholder",
                   "name placeholders with --inputs"};
  auto *dtype = attributeOf(node, "dtype"), *shape = attributeOf(node, "shape");
  // Before that number a shape without dimensions meant any.
  constexpr int firstWithScalars = 24;
  const proto::Graph &graph = message->meta_graphs(0).graph();
  bool isAny = shape && shape->shape().dims_size() == 0 &&
               node.op() == "Placeholder" &&
               graph.versions().producer() < firstWithScalars;
  inputPorts.push_back({node.name(), node.name() + ":0",
                        dtype ? dtype->type() : 0,
                        shape && !isAny ? &shape->shape() : nullptr});
  return std::nullopt;
}

static Problem noNode(const std::string &name, const char *what,
                      const char *option) {
  return {std::string(what) + " '" + printable(name) +
              "' is not a node of the graph",
          std::string("name nodes of the graph with ") + option};
}

std::optional<Problem> Model::addOutput(const std::string &name) {
  Reference reference = parseReference(name);
  if (!main->byName.count(reference.node) || reference.isControl ||
      reference.index < 0)
    return noNode(name, "output", "--outputs");
  StringRef shown = name;
  shown.consume_back(":0");
  outputPorts.push_back(
      {shown.str(),
       reference.node.str() + ":" + std::to_string(reference.index), 0,
       nullptr});
  return std::nullopt;
}

/// Whether a node is, or copies, a value of one branch of a choice: others may
/// wait for it, but it is no output.
static bool isOfBranch(const Body &body, const proto::Node &node) {
  auto isSwitch = [](const proto::Node &node) {
    FlowKind kind = flowKindOf(node.op());
    return kind == FlowKind::Switch || kind == FlowKind::SwitchN;
  };
  if (node.op() != "Identity" || !node.inputs_size())
    return isSwitch(node);
  auto it = body.byName.find(parseReference(node.inputs(0)).node);
  return it != body.byName.end() && isSwitch(body.nodes[it->second]);
}

/// How many results a node has that are all of use.
static int64_t resultsOf(const proto::Node &node) {
  // Beyond that nobody means them as outputs.
  constexpr int64_t most = 64;
  const Row *row = findRow(node.op());
  auto *attribute =
      row && *row->counted ? attributeOf(node, row->counted) : nullptr;
  if (!attribute)
    return row ? row->outputs : 1;
  int64_t count = attribute->has_list() ? attribute->list().types_size()
                                        : attribute->integer();
  return std::clamp<int64_t>(count, 1, most);
}

/// What nobody reads or waits for; without such what others wait for, and
/// without such what comes out of loops, which all of their variables do.
static std::vector<std::string> unreadNodes(const Body &body) {
  constexpr int tiers = 3;
  std::vector<std::string> names[tiers];
  llvm::StringSet<> isRead, isAwaited;
  for (const proto::Node &node : body.nodes)
    for (const std::string &input : node.inputs()) {
      Reference reference = parseReference(input);
      (reference.isControl ? isAwaited : isRead).insert(reference.node);
    }
  for (const proto::Node &node : body.nodes) {
    StringRef op = node.op();
    if (isRead.contains(node.name()) || op == "Const" || op == "NoOp" ||
        op == "Assert" || op == "Placeholder" || isOfBranch(body, node))
      continue;
    int tier = flowKindOf(op) == FlowKind::Exit  ? 2
               : isAwaited.contains(node.name()) ? 1
                                                 : 0;
    names[tier].push_back(node.name());
    for (int64_t i = 1; i < resultsOf(node); ++i)
      names[tier].push_back(node.name() + ":" + std::to_string(i));
  }
  for (auto &tier : names)
    if (!tier.empty())
      return tier;
  return {};
}

/// Placeholders that a node depends on.
static std::vector<int> placeholdersOf(const Body &body,
                                       const std::vector<Port> &outputs) {
  std::vector<int> todo;
  std::set<int> seen;
  auto need = [&](StringRef reference) {
    Reference parsed = parseReference(reference);
    auto it = body.byName.find(parsed.node);
    if (!parsed.isControl && it != body.byName.end() &&
        seen.insert(it->second).second)
      todo.push_back(it->second);
  };
  for (const Port &port : outputs)
    need(port.reference);
  std::vector<int> found;
  while (!todo.empty()) {
    int node = todo.back();
    todo.pop_back();
    if (body.nodes[node].op() == "Placeholder")
      found.push_back(node);
    for (const std::string &input : body.nodes[node].inputs())
      need(input);
  }
  llvm::sort(found);
  return found;
}

/// What is fed, and what nobody reads, unless they are named.
std::optional<Problem> Model::findPorts(const ImportOptions &options) {
  if (!options.signature.empty())
    return Problem{"is a graph, which has no signatures",
                   "name its outputs with --outputs instead of --signature"};
  auto outputs = options.outputs.empty() ? unreadNodes(*main) : options.outputs;
  for (const std::string &name : outputs)
    if (auto problem = addOutput(name))
      return problem;
  for (const std::string &name : options.inputs) {
    Reference reference = parseReference(name);
    auto it = main->byName.find(reference.node);
    if (it == main->byName.end() || reference.index != 0)
      return noNode(name, "input", "--inputs");
    if (auto problem = addInput(main->nodes[it->second]))
      return problem;
  }
  if (options.inputs.empty())
    for (int node : placeholdersOf(*main, outputPorts))
      addInput(main->nodes[node]);
  if (outputPorts.empty())
    return Problem{"has no outputs: every node is read by another",
                   "name the outputs with --outputs"};
  for (auto *ports : {&inputPorts, &outputPorts}) {
    llvm::StringMap<bool> seen;
    for (const Port &port : *ports)
      if (!seen.try_emplace(port.name, true).second)
        return Problem{"'" + printable(port.name) + "' is named twice",
                       "name each input and output once"};
  }
  return std::nullopt;
}
