#include "frontends/tensorflow/ControlFlow.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/ADT/StringSwitch.h"
#include <set>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;

/// Of steps that look at a node or at an element of a path.
constexpr int64_t maxEffort = int64_t(1) << 26;

FlowKind charonia::frontend::tensorflow::flowKindOf(StringRef op) {
  op.consume_front("Ref");
  return llvm::StringSwitch<FlowKind>(op)
      .Case("Switch", FlowKind::Switch)
      .Case("_SwitchN", FlowKind::SwitchN)
      .Case("Merge", FlowKind::Merge)
      .Case("Enter", FlowKind::Enter)
      .Case("Exit", FlowKind::Exit)
      .Case("NextIteration", FlowKind::Next)
      .Case("LoopCond", FlowKind::LoopCond)
      .Cases("PartitionedCall", "StatefulPartitionedCall", FlowKind::Call)
      .Cases("If", "StatelessIf", FlowKind::If)
      .Cases("Case", "StatelessCase", FlowKind::Case)
      .Cases("While", "StatelessWhile", FlowKind::While)
      .Default(FlowKind::None);
}

ControlFlow::ControlFlow(const Body &body) : body(body) {
  for (int i = 0; i < body.nodes.size(); ++i)
    if (kindOf(i) == FlowKind::Switch)
      if (int condition = inputOf(i, 1);
          condition >= 0 && kindOf(condition) == FlowKind::LoopCond)
        switches[condition].push_back(i);
}

std::optional<int> ControlFlow::find(StringRef reference) const {
  auto it = body.byName.find(parseReference(reference).node);
  return it == body.byName.end() ? std::nullopt : std::optional(it->second);
}
/// The node that an input is of; -1 where there is none.
int ControlFlow::inputOf(int node, int input) const {
  const proto::Node &proto = body.nodes[node];
  return input < proto.inputs_size() ? find(proto.inputs(input)).value_or(-1)
                                     : -1;
}
FlowKind ControlFlow::kindOf(int node) const {
  return flowKindOf(body.nodes[node].op());
}
/// Whether one of its inputs is of the step before.
bool ControlFlow::isLoopMerge(int node) const {
  for (int i = 0; i < body.nodes[node].inputs_size(); ++i)
    if (int input = inputOf(node, i);
        input >= 0 && kindOf(input) == FlowKind::Next)
      return true;
  return false;
}

/// What a Switch is decided by, "node:0"; one name for all copies of it.
std::string ControlFlow::predicateOf(int switchNode) const {
  const proto::Node &node = body.nodes[switchNode];
  if (node.inputs_size() < 2)
    return "";
  std::string reference = node.inputs(1);
  constexpr int maxCopies = 64;
  for (int copies = 0; copies < maxCopies; ++copies) {
    auto source = find(reference);
    if (!source || body.nodes[*source].op() != "Identity" ||
        !body.nodes[*source].inputs_size())
      break;
    reference = body.nodes[*source].inputs(0);
  }
  Reference parsed = parseReference(reference);
  std::string output =
      parsed.output.empty() ? "" : ":" + std::string(parsed.output);
  return parsed.node.str() + output + ":" + std::to_string(parsed.index);
}

// Paths: by which sides of which predicates a node is computed at all.

/// What a node's path follows from, control inputs too: a constant of a branch
/// has no other.
std::vector<std::string> ControlFlow::inputsOf(int node) const {
  std::vector<std::string> result;
  bool inLoop = kindOf(node) == FlowKind::Merge && isLoopMerge(node);
  for (const std::string &input : body.nodes[node].inputs()) {
    auto source = find(input);
    if (source && !(inLoop && kindOf(*source) == FlowKind::Next))
      result.push_back(input);
  }
  return result;
}

ControlFlow::Path ControlFlow::pathBehind(StringRef reference) {
  int node = *find(reference);
  Path path = paths[node];
  Reference parsed = parseReference(reference);
  FlowKind kind = kindOf(node);
  int condition = inputOf(node, 1);
  if ((kind != FlowKind::Switch && kind != FlowKind::SwitchN) ||
      parsed.isControl || parsed.index < 0 ||
      (condition >= 0 && kindOf(condition) == FlowKind::LoopCond))
    return path;
  auto [it, isNew] = predicateNumbers.try_emplace(
      predicateOf(node), static_cast<int>(predicates.size()));
  if (isNew)
    predicates.push_back(it->first);
  // Functions call the sides by name.
  int side = parsed.output == "output_true" ? 1 : parsed.index;
  std::pair<int, int> element(it->second, side);
  auto at = llvm::lower_bound(path, element);
  if (at == path.end() || *at != element)
    path.insert(at, element);
  return path;
}

/// A Merge is on what all of its inputs are on, others on what any is.
ControlFlow::Path ControlFlow::combine(int node) {
  Path result;
  bool isFirst = true, isMerge = kindOf(node) == FlowKind::Merge;
  for (const std::string &input : inputsOf(node)) {
    if (isMerge && parseReference(input).isControl)
      continue;
    Path path = pathBehind(input), both;
    effort += static_cast<int64_t>(path.size() + result.size());
    if (isFirst)
      both = std::move(path);
    else if (isMerge)
      std::set_intersection(result.begin(), result.end(), path.begin(),
                            path.end(), std::back_inserter(both));
    else
      std::set_union(result.begin(), result.end(), path.begin(), path.end(),
                     std::back_inserter(both));
    result = std::move(both);
    isFirst = false;
  }
  return result;
}

/// Paths of a node and of all that it depends on. False where that is too much.
bool ControlFlow::findPaths(int root) {
  struct Visit {
    int node;
    std::vector<std::string> inputs;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  std::set<int> open;
  auto push = [&](int node) {
    if (!paths.count(node) && open.insert(node).second)
      stack.push_back({node, inputsOf(node)});
  };
  push(root);
  while (!stack.empty()) {
    Visit &top = stack.back();
    if (++effort > maxEffort)
      return false;
    if (top.next < top.inputs.size()) {
      push(*find(top.inputs[top.next++]));
      continue;
    }
    int node = top.node;
    stack.pop_back();
    Path path = combine(node);
    paths[node] = std::move(path);
    open.erase(node);
  }
  return true;
}

std::optional<std::vector<std::pair<std::string, int>>>
ControlFlow::pathOf(int node) {
  if (!findPaths(node))
    return std::nullopt;
  std::vector<std::pair<std::string, int>> result;
  for (auto [predicate, side] : paths[node])
    result.push_back({predicates[predicate], side});
  return result;
}

const Choice *ControlFlow::choiceOf(int merge, Problem &problem) {
  if (auto it = choices.find(merge); it != choices.end())
    return &it->second;
  std::vector<Path> behind;
  bool ok = findPaths(merge);
  for (const std::string &input : body.nodes[merge].inputs())
    if (!parseReference(input).isControl) {
      ok = ok && find(input);
      behind.push_back(ok ? pathBehind(input) : Path());
    }
  for (size_t i = 0; ok && !behind.empty() && i < behind[0].size(); ++i) {
    int predicate = behind[0][i].first;
    std::set<int> seen;
    Choice choice{predicates[predicate], {}};
    for (const Path &path : behind)
      for (auto [other, side] : path)
        if (other == predicate && seen.insert(side).second)
          choice.sides.push_back(side);
    // One side each, and no side twice.
    bool isOne = choice.sides.size() == behind.size() && behind.size() > 1;
    for (auto [path, side] : llvm::zip(behind, choice.sides))
      isOne = isOne &&
              llvm::count_if(path,
                             [&](auto &element) {
                               return element.first == predicate;
                             }) == 1 &&
              llvm::is_contained(path, std::pair(predicate, side));
    if (isOne)
      return &(choices[merge] = std::move(choice));
  }
  problem = {"merges values, and nothing in the graph says which of them there "
             "is",
             "export the model as a SavedModel"};
  return nullptr;
}

// Loops.

std::optional<size_t> ControlFlow::variableOf(const Loop &loop,
                                              int exit) const {
  int source = inputOf(exit, 0), merge = source < 0 ? -1 : inputOf(source, 0);
  for (auto [i, variable] : llvm::enumerate(loop.variables))
    if (variable.merge == merge)
      return i;
  return std::nullopt;
}

static std::string frameOf(const proto::Node &enter) {
  auto it = enter.attributes().find("frame_name");
  return it == enter.attributes().end() ? "" : it->second.text();
}

/// Adds what enters the loop's frame on the way to `todo`, but behind `seen`.
/// False where that takes too long to tell.
bool ControlFlow::findEntered(Loop &loop, std::vector<int> todo,
                              std::set<int> seen, const std::string &frame) {
  for (const Loop::Variable &variable : loop.variables)
    if (seen.insert(variable.enter).second)
      loop.enters.push_back(variable.enter);
  while (!todo.empty()) {
    int node = todo.back();
    todo.pop_back();
    if (node < 0 || !seen.insert(node).second)
      continue;
    if (++effort > maxEffort)
      return false;
    if (kindOf(node) == FlowKind::Enter && frameOf(body.nodes[node]) == frame) {
      loop.enters.push_back(node);
      continue;
    }
    for (int i = 0; i < body.nodes[node].inputs_size(); ++i)
      if (!parseReference(body.nodes[node].inputs(i)).isControl)
        todo.push_back(inputOf(node, i));
  }
  return true;
}

const Loop *ControlFlow::loopOf(int exit, Problem &problem) {
  int source = inputOf(exit, 0),
      condition = source < 0 ? -1 : inputOf(source, 1);
  auto fail = [&] {
    problem = {"ends a loop whose parts do not fit together",
               "export the model as a SavedModel, or freeze it with "
               "convert_variables_to_constants_v2(f, "
               "lower_control_flow=False)"};
    return nullptr;
  };
  if (auto it = loops.find(condition); it != loops.end())
    return variableOf(it->second, exit) ? &it->second : fail();
  auto members = switches.find(condition);
  if (members == switches.end())
    return fail();
  Loop loop;
  loop.condition = condition;
  std::string frame;
  std::set<int> seen = {condition};
  std::vector<int> todo = {inputOf(condition, 0)};
  for (int member : members->second) {
    Loop::Variable variable{inputOf(member, 0), -1, -1};
    if (variable.merge < 0 || kindOf(variable.merge) != FlowKind::Merge)
      return fail();
    for (int i : {0, 1})
      if (int input = inputOf(variable.merge, i); input >= 0)
        (kindOf(input) == FlowKind::Next ? variable.next : variable.enter) =
            input;
    if (variable.next < 0 || variable.enter < 0 ||
        kindOf(variable.enter) != FlowKind::Enter)
      return fail();
    frame = frameOf(body.nodes[variable.enter]);
    if (!seen.insert(variable.merge).second)
      continue; // several read one variable
    loop.variables.push_back(variable);
    todo.push_back(inputOf(variable.next, 0));
  }
  if (!findEntered(loop, std::move(todo), std::move(seen), frame))
    return fail();
  const Loop *found = &(loops[condition] = std::move(loop));
  return variableOf(*found, exit) ? found : fail();
}

std::optional<int>
charonia::frontend::tensorflow::nodeInCycle(const Body &body) {
  // Each node is taken away when all that it needs are.
  std::vector<int> missing(body.nodes.size()), todo;
  std::vector<std::vector<int>> readers(body.nodes.size());
  auto forNeeded = [&](int node, auto take) {
    bool isMerge = flowKindOf(body.nodes[node].op()) == FlowKind::Merge;
    for (const std::string &input : body.nodes[node].inputs())
      if (auto it = body.byName.find(parseReference(input).node);
          it != body.byName.end() &&
          !(isMerge &&
            flowKindOf(body.nodes[it->second].op()) == FlowKind::Next))
        take(it->second);
  };
  for (int i = 0; i < body.nodes.size(); ++i)
    forNeeded(i, [&](int needed) {
      readers[needed].push_back(i);
      ++missing[i];
    });
  for (int i = 0; i < body.nodes.size(); ++i)
    if (!missing[i])
      todo.push_back(i);
  for (size_t i = 0; i < todo.size(); ++i)
    for (int reader : readers[todo[i]])
      if (--missing[reader] == 0)
        todo.push_back(reader);
  if (todo.size() == missing.size())
    return std::nullopt;
  // What is left needs something that is left: that way leads into a cycle.
  int node = static_cast<int>(
      llvm::find_if(missing, [](int count) { return count > 0; }) -
      missing.begin());
  for (size_t steps = 0; steps < missing.size(); ++steps) {
    int next = node;
    forNeeded(node,
              [&](int needed) { next = missing[needed] ? needed : next; });
    node = next;
  }
  return node;
}
