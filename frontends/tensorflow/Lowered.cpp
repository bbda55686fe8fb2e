// Importing Switch, Merge and loops that are made of them.
#include "frontends/tensorflow/GraphImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::Twine;
using mlir::Value;

ControlFlow &GraphImporter::flowOf(const Body &body) {
  auto &flow = flows[&body];
  if (!flow)
    flow = std::make_unique<ControlFlow>(body);
  return *flow;
}

/// Of a choice that is known now only one output has a value.
LogicalResult GraphImporter::importSwitch(Node &node, bool isTruth) {
  constexpr int64_t maxOutputs = 1024;
  int64_t outputs = isTruth ? 2 : node.integer("num_outs", 0);
  if (node.numInputs() != 2 || outputs < 1 || outputs > maxOutputs)
    return emitter.fail("has " + Twine(node.numInputs()) + " inputs and " +
                            Twine(outputs) + " outputs",
                        "export the model again");
  auto known = knownIndex(node.input(1), isTruth);
  Item untaken;
  untaken.isUntaken = true;
  for (int64_t i = 0; i < outputs; ++i) {
    bool isTaken =
        !known || i == *known ||
        (!isTruth && i == outputs - 1 && (*known < 0 || *known >= outputs));
    node.getResults().push_back(isTaken ? node.item(0) : untaken);
  }
  return llvm::success();
}

/// Imports what a choice that is known now takes; else all of it, and chooses.
LogicalResult GraphImporter::importMerge(Node &node, const proto::Node &proto,
                                         int index, Scope &scope) {
  // Each Merge behind another is one more on the stack.
  constexpr unsigned maxNested = 512;
  Problem problem;
  const Choice *choice = flowOf(scope.body).choiceOf(index, problem);
  if (!choice)
    return emitter.fail(problem.what, problem.remedy);
  if (nestedMerges >= maxNested)
    return emitter.fail("over " + Twine(maxNested) +
                            " choices depend on each other",
                        "export the model for inference");
  auto decider = lookup(parseReference(choice->predicate), scope);
  if (!decider || !decider->value)
    return llvm::failure();
  Value predicate = emitter.follow(decider->value);
  bool isTruth = elementOf(predicate).isInteger(1);
  auto known = knownIndex(predicate, isTruth);
  std::vector<std::string> inputs, needed;
  for (const std::string &input : proto.inputs())
    if (!parseReference(input).isControl)
      inputs.push_back(input);
  for (auto [input, side] : llvm::zip(inputs, choice->sides))
    if (!known || side == *known)
      needed.push_back(input);
  // An index beyond all of them means the last one.
  if (needed.empty())
    needed.push_back(
        inputs[llvm::max_element(choice->sides) - choice->sides.begin()]);
  ++nestedMerges;
  bool wasInBranch = emitter.setInBranch(true);
  if (known)
    emitter.setInBranch(wasInBranch);
  bool ok = importBody(scope, needed);
  emitter.setInBranch(wasInBranch);
  --nestedMerges;
  emitter.begin(locate(proto, scope));
  if (!ok)
    return llvm::failure();
  Items items;
  for (const std::string &input : needed) {
    auto item = lookup(parseReference(input), scope);
    if (!item || item->tainted)
      return llvm::failure();
    emitter.follow(item->value);
    items.push_back(*item);
  }
  emitter.follow(predicate);
  return node.yieldItem(chooseSide(predicate, *choice, items));
}

/// The item of the side that the predicate says, of all of them or of one.
Item GraphImporter::chooseSide(Value predicate, const Choice &choice,
                               llvm::ArrayRef<Item> items) {
  bool isTruth = elementOf(predicate).isInteger(1);
  Item result = items.back();
  for (size_t i = 0; i + 1 < items.size(); ++i) {
    // Of a truth value the inputs are in any order.
    Value isThis =
        isTruth ? predicate
                : emitter.compare(graph::Predicate::eq, predicate,
                                  emitter.scalar(int64_t(choice.sides[i]),
                                                 elementOf(predicate)));
    bool swap = isTruth && choice.sides[i] == 0;
    result = choose(isThis, swap ? result : items[i], swap ? items[i] : result);
  }
  return result;
}

/// Written out step by step, all of its variables at once.
LogicalResult GraphImporter::importExit(Node &node, const proto::Node &proto,
                                        int index, Scope &scope) {
  Problem problem;
  ControlFlow &flow = flowOf(scope.body);
  const Loop *loop = flow.loopOf(index, problem);
  if (!loop)
    return emitter.fail(problem.what, problem.remedy);
  if (!scope.loops.count(loop->condition) &&
      failed(runLoop(*loop, proto, scope)))
    return llvm::failure();
  emitter.begin(locate(proto, scope));
  return node.yieldItem(
      scope.loops[loop->condition][*flow.variableOf(*loop, index)]);
}

/// What enters the loop, by the nodes that it does so through.
std::optional<llvm::StringMap<Item>>
GraphImporter::enteredBy(const Loop &loop, const Scope &scope) {
  llvm::StringMap<Item> entered;
  for (int enter : loop.enters) {
    const std::string &name = scope.body.nodes[enter].name();
    auto item = lookup(parseReference(name), scope);
    if (!item || item->isNothing())
      return std::nullopt;
    entered[name] = *item;
  }
  return entered;
}

LogicalResult GraphImporter::runLoop(const Loop &loop, const proto::Node &proto,
                                     Scope &scope) {
  const auto &nodes = scope.body.nodes;
  constexpr unsigned maxDepth = 64;
  if (scope.depth() >= maxDepth)
    return emitter.fail("loops lie over " + Twine(maxDepth) +
                        " deep inside of one another");
  auto entered = enteredBy(loop, scope);
  if (!entered)
    return llvm::failure();
  Items states;
  std::vector<std::string> next;
  for (const Loop::Variable &variable : loop.variables) {
    states.push_back((*entered)[nodes[variable.enter].name()]);
    if (!nodes[variable.next].inputs_size())
      return emitter.fail("has a variable without a next value");
    next.push_back(nodes[variable.next].inputs(0));
  }
  if (!nodes[loop.condition].inputs_size())
    return emitter.fail("has no condition");
  const std::string &condition = nodes[loop.condition].inputs(0);
  // A step is a scope: its condition is computed in it, if that is asked for,
  // and then the rest.
  std::optional<Scope> inner;
  auto enter = [&](const Items &states) {
    inner.emplace(scope.body, &scope, scope.path, scope.isFunction);
    inner->arguments = scope.arguments;
    for (const auto &entry : *entered)
      inner->arguments[entry.getKey()] = entry.getValue();
    for (auto [variable, state] : llvm::zip(loop.variables, states))
      inner->arguments[nodes[variable.merge].name()] = state;
  };
  auto import = [&](llvm::ArrayRef<std::string> roots) {
    size_t before = diagnostics.size();
    bool ok = importBody(*inner, roots) && diagnostics.size() == before;
    emitter.begin(locate(proto, scope));
    return ok;
  };
  LoopSteps steps;
  steps.isChoice = isChosen(scope.body, condition);
  steps.test = [&](const Items &states) -> llvm::FailureOr<Value> {
    enter(states);
    auto found = import({condition}) ? lookup(parseReference(condition), *inner)
                                     : std::nullopt;
    if (!found) {
      inner.reset();
      return llvm::failure();
    }
    return found->value;
  };
  steps.take = [&](Items &states,
                   const std::set<int> *wanted) -> LogicalResult {
    auto isWanted = [&](size_t i) {
      return !wanted || wanted->count(static_cast<int>(i));
    };
    std::vector<std::string> roots;
    for (auto [i, reference] : llvm::enumerate(next))
      if (isWanted(i))
        roots.push_back(reference);
    // The condition is not asked of steps of which it is known how many there
    // are.
    if (!inner)
      enter(states);
    if (!import(roots)) {
      inner.reset();
      return llvm::failure();
    }
    Scope step = std::move(*inner);
    inner.reset();
    for (auto [i, reference] : llvm::enumerate(next)) {
      auto item = isWanted(i) ? lookup(parseReference(reference), step)
                              : std::optional<Item>(Item());
      if (!item)
        return emitter.fail("has a variable that nothing computes");
      states[i] = *item;
    }
    return llvm::success();
  };
  if (failed(runSteps(states, steps)))
    return llvm::failure();
  scope.loops[loop.condition] = std::move(states);
  return llvm::success();
}
