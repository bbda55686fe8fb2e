#include "frontends/onnx/DroppedAxes.h"
#include "llvm/ADT/STLExtras.h"
#include <unordered_map>
#include <unordered_set>
#include <vector>

using namespace charonia::frontend::onnx;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Calls back with each graph of a node's attributes.
template <typename Function>
static bool anyGraph(const NodeProto &node, Function &&check) {
  return llvm::any_of(node.attribute(), [&](const auto &attribute) {
    return (attribute.has_g() && check(attribute.g())) ||
           llvm::any_of(attribute.graphs(), check);
  });
}

template <typename Nodes> bool DroppedAxes::anyDrops(const Nodes &nodes) const {
  return llvm::any_of(nodes,
                      [&](const NodeProto &node) { return isDropping(node); });
}

bool DroppedAxes::isDropping(const NodeProto &node) const {
  bool isSplit = node.op_type() == "SplitToSequence" && node.domain().empty() &&
                 node.input_size() > 1 && !node.input(1).empty();
  bool drops =
      isSplit && llvm::any_of(node.attribute(), [](const auto &attribute) {
        return attribute.name() == "keepdims" && attribute.i() == 0;
      });
  return drops || functions.count({node.domain(), node.op_type()}) ||
         anyGraph(node,
                  [&](const GraphProto &g) { return anyDrops(g.node()); });
}

DroppedAxes::DroppedAxes(const ::onnx::ModelProto &model) : model(model) {
  // Functions may call others that stand behind them, as deep as calls are
  // followed.
  constexpr int maxDepth = 64;
  size_t before = functions.size() + 1;
  for (int depth = 0; depth < maxDepth && before != functions.size(); ++depth) {
    before = functions.size();
    for (const auto &function : model.functions())
      if (anyDrops(function.node()))
        functions.insert({function.domain(), function.name()});
  }
}

/// Adds the names that a node reads, its graphs too.
static void addReads(const NodeProto &node, std::vector<std::string> &names) {
  names.insert(names.end(), node.input().begin(), node.input().end());
  anyGraph(node, [&](const GraphProto &graph) {
    for (const NodeProto &inner : graph.node())
      addReads(inner, names);
    for (const auto &output : graph.output())
      names.push_back(output.name());
    return false;
  });
}

bool DroppedAxes::reach(const std::string &output) const {
  std::unordered_map<std::string, const NodeProto *> makers;
  for (const NodeProto &node : model.graph().node())
    for (const std::string &name : node.output())
      makers[name] = &node;
  std::vector<std::string> names = {output};
  std::unordered_set<const NodeProto *> seen;
  while (!names.empty()) {
    auto maker = makers.find(names.back());
    names.pop_back();
    if (maker == makers.end() || !seen.insert(maker->second).second)
      continue;
    if (isDropping(*maker->second))
      return true;
    addReads(*maker->second, names);
  }
  return false;
}
