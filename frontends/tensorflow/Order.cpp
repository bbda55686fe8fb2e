// Which nodes are needed, and in which order they are imported.
#include "frontends/tensorflow/GraphImporter.h"
#include "frontends/tensorflow/Stated.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::SmallVector;
using llvm::StringRef;

std::optional<int> GraphImporter::outputOf(const proto::Node &node,
                                           const Reference &reference) {
  if (reference.index < 0)
    return std::nullopt;
  SmallVector<StringRef> names;
  const Row *row = findRow(node.op());
  if (reference.output.empty()) {
    if (row && *row->results)
      StringRef(row->results).split(names, ' ');
    bool isThere =
        names.empty() || reference.index < static_cast<int>(names.size());
    return isThere ? std::optional(reference.index) : std::nullopt;
  }
  FlowKind flow = flowKindOf(node.op());
  if (const proto::Function *function = model.function(node.op())) {
    for (const auto &output : function->signature().outputs())
      names.push_back(output.name());
  } else if (auto *definition = model.definition(node.op())) {
    return resultNumber(node, *definition, reference.output, reference.index);
  } else if (flow == FlowKind::Switch || flow == FlowKind::Merge) {
    flow == FlowKind::Switch ? names.append({"output_false", "output_true"})
                             : names.append({"output", "value_index"});
  } else if (row && *row->results) {
    StringRef(row->results).split(names, ' ');
  } else {
    // One result, or one list of them.
    return reference.index;
  }
  auto it = llvm::find(names, reference.output);
  if (it == names.end() || reference.index != 0)
    return std::nullopt;
  return static_cast<int>(it - names.begin());
}

/// Names of what has to be imported before a node: of a choice what decides it,
/// of a loop what enters it, and else the operands.
std::optional<std::vector<std::string>>
GraphImporter::dependenciesOf(int index, Scope &scope, Problem &problem) {
  const auto &nodes = scope.body.nodes;
  FlowKind kind = flowKindOf(nodes[index].op());
  if (kind == FlowKind::Merge) {
    const Choice *choice = flowOf(scope.body).choiceOf(index, problem);
    return choice ? std::optional(std::vector{choice->predicate})
                  : std::nullopt;
  }
  std::vector<std::string> names;
  if (kind == FlowKind::Exit) {
    const Loop *loop = flowOf(scope.body).loopOf(index, problem);
    if (!loop)
      return std::nullopt;
    for (int enter : loop->enters)
      names.push_back(nodes[enter].name());
    return names;
  }
  const auto &inputs = nodes[index].inputs();
  names.assign(inputs.begin(), inputs.end());
  return names;
}

/// Operands come before their users. None, and a report, where there is a
/// cycle or a name is not defined.
std::optional<std::vector<int>>
GraphImporter::order(Scope &scope, llvm::ArrayRef<std::string> roots) {
  const Body &body = scope.body;
  std::vector<int> result;
  enum State : char { New, Open, Done };
  std::unordered_map<int, State> states;
  struct Visit {
    int node;
    size_t input;
    std::vector<std::string> inputs;
  };
  std::vector<Visit> stack;
  bool ok = true;
  auto need = [&](StringRef text, const proto::Node *user) {
    Reference reference = parseReference(text);
    if (reference.isControl || scope.argument(reference))
      return;
    auto it = body.byName.find(reference.node);
    std::optional<int> output =
        it == body.byName.end() ? std::nullopt
                                : outputOf(body.nodes[it->second], reference);
    if (!output) {
      Problem problem{"input '" + printable(text.str()) +
                          "' is not defined anywhere",
                      againRemedy};
      user ? report(*user, scope, {}, problem) : report(problem);
      ok = false;
      return;
    }
    bool isNew = scope.wanted[it->second].insert(*output).second;
    // What is imported already need not be again, but for another result of a
    // call.
    if (scope.results.count(it->second) &&
        !(isNew && callsFunctions(flowKindOf(body.nodes[it->second].op()))))
      return;
    if (states[it->second] == Open) {
      report(body.nodes[it->second], scope, {},
             {"depends on itself", againRemedy});
      ok = false;
    } else if (states[it->second] == New) {
      Problem problem;
      auto inputs = dependenciesOf(it->second, scope, problem);
      if (!inputs) {
        report(body.nodes[it->second], scope, {}, problem);
        ok = false;
        return;
      }
      states[it->second] = Open;
      stack.push_back({it->second, 0, std::move(*inputs)});
    }
  };
  for (const std::string &root : roots) {
    need(root, nullptr);
    while (!stack.empty() && ok) {
      Visit &top = stack.back();
      if (top.input < top.inputs.size()) {
        // The stack may move.
        std::string input = std::move(top.inputs[top.input++]);
        need(input, &body.nodes[top.node]);
        continue;
      }
      states[top.node] = Done;
      result.push_back(top.node);
      stack.pop_back();
    }
    if (!ok)
      return std::nullopt;
  }
  return result;
}
