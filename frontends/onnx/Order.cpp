#include "frontends/onnx/Order.h"
#include "frontends/common/Diagnostic.h"
#include <algorithm>
#include <unordered_set>
#include <utility>

using namespace charonia;
using namespace charonia::frontend;
using ::onnx::NodeProto;

std::string frontend::onnx::displayName(const NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return output;
  return "unnamed";
}

static void collectInputs(const NodeProto &node,
                          std::vector<std::string> &names);

/// Names that a subgraph reads and does not define. What it defines may have
/// the name of something outside: that is no use of it.
static void collectOuterNames(const ::onnx::GraphProto &graph,
                              std::vector<std::string> &names) {
  std::vector<std::string> read;
  std::unordered_set<std::string> own;
  for (const auto &input : graph.input())
    own.insert(input.name());
  for (const auto &initializer : graph.initializer())
    own.insert(initializer.name());
  for (const auto &initializer : graph.sparse_initializer())
    own.insert(initializer.values().name());
  for (const NodeProto &inner : graph.node()) {
    collectInputs(inner, read);
    own.insert(inner.output().begin(), inner.output().end());
  }
  // A branch may pass an outer value on.
  for (const auto &output : graph.output())
    read.push_back(output.name());
  for (std::string &name : read)
    if (!own.count(name))
      names.push_back(std::move(name));
}

/// Names that a node reads, also from inside of its subgraphs. The nesting is
/// bounded where the model is parsed.
static void collectInputs(const NodeProto &node,
                          std::vector<std::string> &names) {
  for (const std::string &input : node.input())
    if (!input.empty())
      names.push_back(input);
  for (const auto &attribute : node.attribute())
    if (attribute.has_g())
      collectOuterNames(attribute.g(), names);
}

namespace {
class Orderer {
public:
  Orderer(const frontend::onnx::Nodes &nodes)
      : nodes(nodes), state(nodes.size(), State::Unseen) {}

  frontend::onnx::Order
  run(const std::vector<std::string> &roots,
      const std::function<bool(const std::string &)> &isOuter) {
    for (int i = 0; i < nodes.size(); ++i)
      for (const std::string &output : nodes[i].output())
        if (!output.empty() && !define(output, i, isOuter))
          return std::move(order);
    for (const std::string &root : roots) {
      order.used.insert(root);
      auto it = definedBy.find(root);
      if (it != definedBy.end() && !visit(it->second))
        return std::move(order);
    }
    // The model's own order is the better one to read where it is sound.
    std::vector<int> sorted = order.nodes;
    std::sort(sorted.begin(), sorted.end());
    if (isSound(sorted))
      order.nodes = std::move(sorted);
    return std::move(order);
  }

private:
  enum class State { Unseen, Open, Done };

  bool define(const std::string &name, int node,
              const std::function<bool(const std::string &)> &isOuter) {
    auto [it, isNew] = definedBy.try_emplace(name, node);
    auto shown = [&](int i) {
      return "node '" + printable(frontend::onnx::displayName(nodes[i])) +
             "' (" + printable(nodes[i].op_type()) + ")";
    };
    if (!isNew)
      order.error = "value '" + printable(name) + "' is defined twice: by " +
                    shown(it->second) + " and by " + shown(node);
    else if (isOuter(name))
      order.error = "value '" + printable(name) + "' is defined by " +
                    shown(node) +
                    " and is an input, an initializer or a value outside too";
    return order.error.empty();
  }

  struct Visit {
    int node;
    std::vector<std::string> inputs;
    size_t next = 0;
  };

  /// Depth first over an explicit stack: models chain any number of nodes.
  bool visit(int first) {
    std::vector<Visit> stack;
    auto open = [&](int node) {
      state[node] = State::Open;
      Visit visit{node, {}};
      collectInputs(nodes[node], visit.inputs);
      stack.push_back(std::move(visit));
    };
    if (state[first] == State::Unseen)
      open(first);
    while (!stack.empty()) {
      Visit &top = stack.back();
      if (top.next == top.inputs.size()) {
        state[top.node] = State::Done;
        order.nodes.push_back(top.node);
        stack.pop_back();
        continue;
      }
      const std::string &input = top.inputs[top.next++];
      order.used.insert(input);
      auto it = definedBy.find(input);
      if (it == definedBy.end() || state[it->second] == State::Done)
        continue;
      if (state[it->second] == State::Open) {
        describeCycle(stack, it->second);
        return false;
      }
      open(it->second);
    }
    return true;
  }

  void describeCycle(const std::vector<Visit> &stack, int node) {
    auto begin =
        std::find_if(stack.begin(), stack.end(),
                     [&](const Visit &visit) { return visit.node == node; });
    std::string path;
    // Each node on the stack needs the next one.
    for (auto it = stack.rbegin(); it != std::make_reverse_iterator(begin);
         ++it) {
      if (it - stack.rbegin() == 8) {
        path += "... -> ";
        break;
      }
      path += "'" + printable(frontend::onnx::displayName(nodes[it->node])) +
              "' -> ";
    }
    order.error =
        "the graph has a cycle: " + path + "'" +
        printable(frontend::onnx::displayName(nodes[stack.back().node])) + "'";
  }

  bool isSound(const std::vector<int> &sequence) {
    std::vector<bool> done(nodes.size());
    for (int node : sequence) {
      std::vector<std::string> inputs;
      collectInputs(nodes[node], inputs);
      for (const std::string &input : inputs)
        if (auto it = definedBy.find(input);
            it != definedBy.end() && !done[it->second])
          return false;
      done[node] = true;
    }
    return true;
  }

  const frontend::onnx::Nodes &nodes;
  std::vector<State> state;
  std::unordered_map<std::string, int> definedBy;
  frontend::onnx::Order order;
};
} // namespace

frontend::onnx::Order frontend::onnx::orderNodes(
    const Nodes &nodes, const std::vector<std::string> &roots,
    const std::function<bool(const std::string &)> &isOuter) {
  return Orderer(nodes).run(roots, isOuter);
}

void frontend::onnx::keepOrdered(Nodes &nodes, Order &order) {
  int count = nodes.size();
  std::vector<NodeProto *> all(count);
  nodes.ExtractSubrange(0, count, all.data());
  for (int &i : order.nodes) {
    nodes.AddAllocated(std::exchange(all[i], nullptr));
    i = nodes.size() - 1;
  }
  for (NodeProto *unneeded : all)
    delete unneeded;
}
