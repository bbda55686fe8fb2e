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

/// Nodes that are being looked at, and those that are done.
struct GraphImporter::Ordering {
  enum State : char { New, Open, Done };
  struct Visit {
    int node;
    size_t input;
    std::vector<std::string> inputs;
  };
  std::unordered_map<int, State> states;
  std::vector<Visit> stack;
};

/// Takes note of an operand of `user`, or of a root, and goes on with its node.
/// False, and a report, where that depends on itself or is not defined.
bool GraphImporter::visit(StringRef text, const proto::Node *user, Scope &scope,
                          Ordering &ordering) {
  const Body &body = scope.body;
  Reference reference = parseReference(text);
  if (reference.isControl || scope.argument(reference))
    return true;
  auto it = body.byName.find(reference.node);
  std::optional<int> output = it == body.byName.end()
                                  ? std::nullopt
                                  : outputOf(body.nodes[it->second], reference);
  if (!output) {
    Problem problem{"input '" + printable(text.str()) +
                        "' is not defined anywhere",
                    againRemedy};
    user ? report(*user, scope, {}, problem) : report(problem);
    return false;
  }
  int index = it->second;
  const proto::Node &node = body.nodes[index];
  bool isNew = scope.wanted[index].insert(*output).second;
  // What is imported already need not be again, but for another result of a
  // call.
  if (scope.results.count(index) &&
      !(isNew && callsFunctions(flowKindOf(node.op()))))
    return true;
  Ordering::State &state = ordering.states[index];
  if (state == Ordering::Open)
    report(node, scope, {}, {"depends on itself", againRemedy});
  if (state != Ordering::New)
    return state == Ordering::Done;
  Problem problem;
  auto inputs = dependenciesOf(index, scope, problem);
  if (!inputs) {
    report(node, scope, {}, problem);
    return false;
  }
  state = Ordering::Open;
  ordering.stack.push_back({index, 0, std::move(*inputs)});
  return true;
}

/// Operands come before their users. None, and a report, where there is a
/// cycle or a name is not defined.
std::optional<std::vector<int>>
GraphImporter::order(Scope &scope, llvm::ArrayRef<std::string> roots) {
  std::vector<int> result;
  Ordering ordering;
  for (const std::string &root : roots) {
    if (!visit(root, nullptr, scope, ordering))
      return std::nullopt;
    while (!ordering.stack.empty()) {
      Ordering::Visit &top = ordering.stack.back();
      if (top.input < top.inputs.size()) {
        // The stack may move.
        std::string input = std::move(top.inputs[top.input++]);
        if (!visit(input, &scope.body.nodes[top.node], scope, ordering))
          return std::nullopt;
        continue;
      }
      ordering.states[top.node] = Ordering::Done;
      result.push_back(top.node);
      ordering.stack.pop_back();
    }
  }
  return result;
}
