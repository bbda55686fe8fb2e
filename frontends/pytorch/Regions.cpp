#include "frontends/pytorch/Regions.h"
#include <set>

using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::StringRef;

namespace {
class Inliner {
public:
  Inliner(Graph &graph, Decide decide, size_t maxNodes)
      : graph(graph), decide(decide), maxNodes(maxNodes) {}
  bool run();

private:
  using Names = std::map<std::string, Argument>;
  struct Region {
    std::vector<const Graph *> graphs;
    std::vector<Argument> operands;
  };
  /// Adds the node, or what it stands for.
  void add(Node node);
  bool addCondition(const Node &node, const Region &region);
  /// Adds the nodes of a graph; `results` are the names of its outputs.
  void addBody(const Node &place, const Graph &body,
               const std::vector<Argument> &operands,
               const std::vector<std::string> &results);
  void addCopy(const Node &place, const Argument &from, const std::string &to);
  std::string freshName(StringRef name);

  Graph &graph;
  Decide decide;
  size_t maxNodes;
  std::vector<Node> nodes;
  int64_t count = 0;
};
} // namespace

static std::vector<Argument> flatten(const std::vector<Argument> &list) {
  std::vector<Argument> result;
  for (const Argument &argument : list) {
    if (argument.kind != Kind::List) {
      result.push_back(argument);
      continue;
    }
    for (const Argument &item : flatten(argument.items))
      result.push_back(item);
  }
  return result;
}
static bool isName(const Argument &argument) {
  return argument.kind == Kind::Tensor || argument.kind == Kind::SymInt ||
         argument.kind == Kind::SymFloat || argument.kind == Kind::SymBool;
}

/// '@' is in no name of a file.
std::string Inliner::freshName(StringRef name) {
  return name.str() + "@" + std::to_string(count++);
}

static Argument tensorNamed(const std::string &name) {
  Argument argument;
  argument.kind = Kind::Tensor;
  argument.text = name;
  return argument;
}
static Node nodeAt(const Node &place, const char *target,
                   std::vector<NamedArgument> inputs, const std::string &to) {
  Node node;
  node.target = target;
  node.inputs = std::move(inputs);
  node.outputs = {tensorNamed(to)};
  node.module = place.module;
  node.line = place.line;
  return node;
}

void Inliner::addCopy(const Node &place, const Argument &from,
                      const std::string &to) {
  nodes.push_back(
      nodeAt(place, "torch.ops.aten.alias.default", {{"self", from}}, to));
}

void Inliner::addBody(const Node &place, const Graph &body,
                      const std::vector<Argument> &operands,
                      const std::vector<std::string> &results) {
  Names names;
  for (size_t i = 0; i < body.inputs.size() && i < operands.size(); ++i)
    if (isName(body.inputs[i]))
      names[body.inputs[i].text] = operands[i];
  std::vector<Argument> outputs = flatten(body.outputs);
  // What the body computes has the name of its result at once.
  std::set<std::string> given;
  for (const auto &input : names)
    given.insert(input.first);
  std::vector<std::pair<Argument, std::string>> copies;
  for (size_t i = 0; i < outputs.size() && i < results.size(); ++i) {
    if (outputs[i].kind != Kind::Tensor || results[i].empty())
      continue;
    if (given.insert(outputs[i].text).second)
      names[outputs[i].text] = tensorNamed(results[i]);
    else
      copies.push_back({outputs[i], results[i]});
  }
  auto rename = [&](Argument &argument, auto &self) -> void {
    for (Argument &item : argument.items)
      self(item, self);
    if (!isName(argument))
      return;
    auto [it, isNew] = names.try_emplace(argument.text, argument);
    if (isNew) {
      std::string fresh = freshName(argument.text);
      if (auto meta = body.tensors.find(argument.text);
          meta != body.tensors.end())
        graph.tensors.emplace(fresh, meta->second);
      if (auto size = body.integers.find(argument.text);
          size != body.integers.end())
        graph.integers.emplace(fresh, size->second);
      if (auto number = body.floats.find(argument.text);
          number != body.floats.end())
        graph.floats.emplace(fresh, number->second);
      if (auto condition = body.conditions.find(argument.text);
          condition != body.conditions.end())
        graph.conditions.emplace(fresh, condition->second);
      it->second.text = fresh;
    }
    argument = it->second;
  };
  for (const Node &inner : body.nodes) {
    if (nodes.size() > maxNodes)
      return;
    Node node = inner;
    for (NamedArgument &input : node.inputs)
      rename(input.value, rename);
    for (Argument &output : node.outputs)
      rename(output, rename);
    if (node.module.empty())
      node.module = place.module;
    add(std::move(node));
  }
  for (auto &[from, to] : copies) {
    rename(from, rename);
    addCopy(place, from, to);
  }
}

/// One branch, or both and a choice.
bool Inliner::addCondition(const Node &node, const Region &region) {
  const Argument &condition = node.inputs[0].value;
  std::vector<std::string> results;
  for (const Argument &output : flatten(node.outputs))
    results.push_back(output.kind == Kind::Tensor ? output.text : "");
  if (condition.kind != Kind::Tensor) {
    std::optional<bool> holds = decide(condition);
    if (!holds)
      return false;
    addBody(node, *region.graphs[*holds ? 0 : 1], region.operands, results);
    return true;
  }
  std::vector<std::string> sides[2];
  for (int side : {0, 1}) {
    for (const std::string &result : results) {
      sides[side].push_back(freshName(result));
      if (auto meta = graph.tensors.find(result); meta != graph.tensors.end())
        graph.tensors.emplace(sides[side].back(), meta->second);
    }
    addBody(node, *region.graphs[side], region.operands, sides[side]);
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].empty())
      nodes.push_back(nodeAt(node, "torch.ops.aten.where.self",
                             {{"condition", condition},
                              {"self", tensorNamed(sides[0][i])},
                              {"other", tensorNamed(sides[1][i])}},
                             results[i]));
  return true;
}

void Inliner::add(Node node) {
  StringRef op = node.target;
  Region region;
  bool isRegion = op.consume_front("torch.ops.higher_order.");
  for (const NamedArgument &input : node.inputs) {
    if (input.value.kind == Kind::Graph)
      region.graphs.push_back(input.value.graph.get());
    else if (!region.graphs.empty())
      for (const Argument &operand : flatten({input.value}))
        region.operands.push_back(operand);
  }
  bool isPlain =
      op == "wrap_with_set_grad_enabled" || op == "wrap_with_autocast";
  if (isRegion && isPlain && region.graphs.size() == 1) {
    std::vector<std::string> results;
    for (const Argument &output : flatten(node.outputs))
      results.push_back(output.kind == Kind::Tensor ? output.text : "");
    return addBody(node, *region.graphs[0], region.operands, results);
  }
  if (isRegion && op == "cond" && region.graphs.size() == 2 &&
      addCondition(node, region))
    return;
  nodes.push_back(std::move(node));
}

bool Inliner::run() {
  std::vector<Node> given = std::move(graph.nodes);
  for (Node &node : given) {
    if (nodes.size() > maxNodes)
      break;
    add(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return graph.nodes.size() <= maxNodes;
}

bool charonia::frontend::pytorch::inlineRegions(Graph &graph, Decide decide,
                                                size_t maxNodes) {
  auto isRegion = [](const Node &node) {
    return StringRef(node.target).starts_with("torch.ops.higher_order.");
  };
  return llvm::none_of(graph.nodes, isRegion) ||
         Inliner(graph, decide, maxNodes).run();
}
