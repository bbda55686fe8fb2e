#include "frontends/tensorflow/GraphImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

static const char *const againRemedy =
    "the file is damaged: export the model again";

// Reports.

void GraphImporter::report(Problem problem) {
  Diagnostic diagnostic;
  diagnostic.file = file;
  diagnostic.what = std::move(problem.what);
  diagnostic.remedy = std::move(problem.remedy);
  diagnostics.push_back(std::move(diagnostic));
}

static std::string pathTo(const std::string &scope, const std::string &node) {
  return scope.empty() ? node : scope + "/" + node;
}

void GraphImporter::report(const proto::Node &node, const Scope &scope,
                           const std::vector<std::string> &inputs,
                           const Problem &problem) {
  Diagnostic diagnostic;
  diagnostic.file = file;
  diagnostic.node = pathTo(scope.path, node.name());
  diagnostic.op = node.op();
  diagnostic.inputs = inputs;
  diagnostic.what = problem.what;
  diagnostic.remedy = problem.remedy;
  diagnostics.push_back(std::move(diagnostic));
}

mlir::Location GraphImporter::locate(const proto::Node &node,
                                     const Scope &scope) {
  auto &builder = emitter.getBuilder();
  return mlir::NameLoc::get(
      builder.getStringAttr(pathTo(scope.path, node.name())),
      mlir::NameLoc::get(builder.getStringAttr(node.op())));
}

// Order.

std::optional<int> GraphImporter::outputOf(const proto::Node &node,
                                           const Reference &reference) {
  if (reference.index < 0)
    return std::nullopt;
  const Row *row = findRow(node.op());
  if (reference.output.empty() || !row || !*row->results)
    return reference.index;
  SmallVector<StringRef> names;
  StringRef(row->results).split(names, ' ');
  auto it = llvm::find(names, reference.output);
  if (it == names.end() || reference.index != 0)
    return std::nullopt;
  return static_cast<int>(it - names.begin());
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
    int input;
  };
  std::vector<Visit> stack;
  bool ok = true;
  auto need = [&](StringRef text, const proto::Node *user) {
    Reference reference = parseReference(text);
    if (reference.isControl || (scope.arguments.count(reference.node) &&
                                (scope.isFunction || reference.index == 0)))
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
    scope.wanted[it->second].insert(*output);
    if (states[it->second] == Open) {
      report(body.nodes[it->second], scope, {},
             {"depends on itself: loops of Switch, Merge and NextIteration are "
              "not supported",
              "freeze the model with "
              "convert_variables_to_constants_v2(f, "
              "lower_control_flow=False), or export a SavedModel"});
      ok = false;
    } else if (states[it->second] == New) {
      states[it->second] = Open;
      stack.push_back({it->second, 0});
    }
  };
  for (const std::string &root : roots) {
    need(root, nullptr);
    while (!stack.empty() && ok) {
      Visit &top = stack.back();
      const proto::Node &node = body.nodes[top.node];
      if (top.input < node.inputs_size()) {
        need(node.inputs(top.input++), &node);
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

// Nodes.

std::optional<Item> GraphImporter::lookup(const Reference &reference,
                                          const Scope &scope) {
  if (auto it = scope.arguments.find(reference.node);
      it != scope.arguments.end() && (scope.isFunction || reference.index == 0))
    return it->second;
  auto node = scope.body.byName.find(reference.node);
  if (node == scope.body.byName.end())
    return std::nullopt;
  auto output = outputOf(scope.body.nodes[node->second], reference);
  auto it = scope.results.find(node->second);
  bool isTainted = scope.tainted.count(node->second);
  if (output && it != scope.results.end() &&
      *output < static_cast<int>(it->second.size())) {
    Item item = it->second[*output];
    item.tainted |= isTainted;
    return item;
  }
  if (!isTainted)
    return std::nullopt;
  Item item;
  item.tainted = true;
  return item;
}

bool GraphImporter::importBody(Scope &scope,
                               llvm::ArrayRef<std::string> roots) {
  auto nodes = order(scope, roots);
  if (!nodes)
    return false;
  for (int index : *nodes) {
    const proto::Node &node = scope.body.nodes[index];
    if (scope.isFunction && failed(emitter.writeOut(1))) {
      report(node, scope, {}, *emitter.getProblem());
      return false;
    }
    if (progress)
      progress(pathTo(scope.path, node.name()));
    importNode(node, index, scope);
  }
  return true;
}

static std::string describe(const Item &item, Emitter &emitter) {
  if (item.value)
    return emitter.describe(item.value.getType());
  if (item.variable)
    return "variable";
  return item.list ? "list of " + std::to_string(item.list->size()) + " tensors"
                   : "unknown";
}

static bool isControlFlow(StringRef op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall" ||
         op == "If" || op == "StatelessIf" || op == "While" ||
         op == "StatelessWhile";
}

void GraphImporter::importNode(const proto::Node &proto, int index,
                               Scope &scope) {
  Items items;
  std::vector<std::string> names, shown;
  bool complete = true, tainted = false;
  for (const std::string &text : proto.inputs()) {
    Reference reference = parseReference(text);
    if (reference.isControl)
      continue;
    auto item = lookup(reference, scope);
    if (!item) {
      report(proto, scope, {},
             {"input '" + printable(text) + "' is not defined anywhere",
              againRemedy});
      item.emplace().tainted = true;
    }
    items.push_back(*item);
    complete &= !item->isNothing();
    tainted |= item->tainted;
    names.push_back(text);
    shown.push_back(printable(text) + ": " + describe(items.back(), emitter));
  }
  emitter.begin(locate(proto, scope));
  for (const Item &item : items)
    emitter.follow(item.value);
  bool isKnown = isControlFlow(proto.op()) || findRow(proto.op()) ||
                 model.function(proto.op());
  Node node(emitter, model, proto, std::move(items), std::move(names));
  // Behind a failed node only what its operands' absence cannot have caused is
  // reported: an operator that is not supported at all.
  bool ok = (complete || !isKnown) &&
            succeeded(importResults(node, proto, index, scope));
  if (!complete && !tainted)
    emitter.fail("needs a result that exists in training alone",
                 "export the model for inference");
  if (!ok && (!tainted || !isKnown))
    if (auto &problem = emitter.getProblem())
      report(proto, scope, shown, *problem);
  scope.results[index] = std::move(node.getResults());
  if (tainted || !ok)
    scope.tainted.insert(index);
}

LogicalResult GraphImporter::importResults(Node &node, const proto::Node &proto,
                                           int index, Scope &scope) {
  StringRef op = proto.op();
  if (op == "StatefulPartitionedCall" || op == "PartitionedCall" ||
      model.function(op))
    return importCall(node, proto, index, scope);
  if (op == "If" || op == "StatelessIf")
    return importIf(node, proto, index, scope);
  if (op == "While" || op == "StatelessWhile")
    return importWhile(node, proto, scope);
  const Row *row = findRow(op);
  if (!row)
    return emitter.fail("operator " + printable(proto.op()) +
                            " is not supported",
                        "replace it in the model by supported operators (see "
                        "the operator table in the documentation)");
  if (failed(row->import(node, emitter)) || emitter.failed()) {
    emitter.fail("cannot be imported");
    return llvm::failure();
  }
  return llvm::success();
}

// Functions.

const proto::Function *GraphImporter::functionOf(Node &node,
                                                 StringRef attribute) {
  auto *found = node.find(attribute);
  const std::string &name = found ? found->function().name() : node.op();
  const proto::Function *function = model.function(name);
  if (!function)
    emitter.fail("calls function '" + printable(name) +
                     "', which is not in the model",
                 againRemedy);
  return function;
}

LogicalResult GraphImporter::call(const proto::Function &function,
                                  Items arguments, const std::set<int> &wanted,
                                  const std::string &callName,
                                  const Scope &scope, Items &results) {
  constexpr unsigned maxDepth = 64;
  const auto &signature = function.signature();
  if (scope.depth() >= maxDepth)
    return emitter.fail("functions call each other over " + Twine(maxDepth) +
                            " deep",
                        "export the model without recursion");
  if (signature.inputs_size() != static_cast<int>(arguments.size()))
    return emitter.fail("gives " + Twine(arguments.size()) +
                            " arguments to function '" +
                            printable(signature.name()) + "', which has " +
                            Twine(signature.inputs_size()),
                        againRemedy);
  const Body &body = model.bodyOf(function);
  if (!body.twice.empty())
    return emitter.fail("function '" + printable(signature.name()) +
                            "' has two nodes of the name '" +
                            printable(body.twice) + "'",
                        againRemedy);
  Scope inner{body, &scope, callName, {}, true, {}, {}, {}};
  for (auto [i, argument] : llvm::enumerate(arguments))
    inner.arguments[signature.inputs(i).name()] = std::move(argument);
  std::vector<std::string> roots, all;
  for (auto [i, output] : llvm::enumerate(signature.outputs())) {
    auto it = function.results().find(output.name());
    if (it == function.results().end())
      return emitter.fail("function '" + printable(signature.name()) +
                              "' does not compute its result '" +
                              printable(output.name()) + "'",
                          againRemedy);
    all.push_back(it->second);
    if (wanted.count(static_cast<int>(i)))
      roots.push_back(it->second);
  }
  size_t before = diagnostics.size();
  bool ok = importBody(inner, roots);
  for (auto [i, root] : llvm::enumerate(all)) {
    bool isWanted = ok && wanted.count(static_cast<int>(i));
    auto item = isWanted ? lookup(parseReference(root), inner)
                         : std::optional<Item>(Item());
    if (!item)
      report({"function '" + printable(signature.name()) +
                  "' gives what it does not compute, '" + printable(root) + "'",
              againRemedy});
    results.push_back(item.value_or(Item()));
  }
  if (ok && diagnostics.size() == before)
    return llvm::success();
  // They are reported: the call itself has nothing to add.
  emitter.begin(emitter.getBuilder().getUnknownLoc());
  return llvm::failure();
}

/// The call's name says where in the model it is, unless TensorFlow made it up.
static std::string scopeOf(const std::string &around, StringRef call) {
  StringRef last = call.rsplit('/').second;
  bool isMadeUp = (last.empty() ? call : last).contains("PartitionedCall");
  StringRef front =
      isMadeUp ? call.drop_back(last.empty() ? call.size() : last.size() + 1)
               : call;
  return front.empty() ? around : pathTo(around, front.str());
}

LogicalResult GraphImporter::importCall(Node &node, const proto::Node &proto,
                                        int index, Scope &scope) {
  const proto::Function *function = functionOf(node, "f");
  if (!function)
    return llvm::failure();
  Items arguments;
  for (unsigned i = 0; i < node.numInputs(); ++i)
    arguments.push_back(node.item(i));
  // What the graph passes behind the function's own arguments are its
  // variables.
  auto *keys =
      scope.isFunction ? nullptr : model.captured(function->signature().name());
  if (keys && keys->size() <= arguments.size())
    for (auto [argument, key] : llvm::zip(
             llvm::MutableArrayRef<Item>(arguments).take_back(keys->size()),
             *keys))
      if (argument.variable && !key.empty())
        argument.variable =
            std::make_shared<Variable>(Variable{argument.variable->node, key});
  return call(*function, std::move(arguments), scope.wanted[index],
              scopeOf(scope.path, proto.name()), scope, node.getResults());
}

/// The one truth value that is known now.
static std::optional<bool> constantCondition(mlir::Value value, Emitter &e) {
  if (!value)
    return std::nullopt;
  if (auto known = e.evaluate(value).constants(); known && known->size() == 1)
    return known->front() != 0;
  auto constant = e.constantOf(value);
  if (!constant || constant.getNumElements() != 1 ||
      !constant.getElementType().isInteger())
    return std::nullopt;
  return !(*constant.value_begin<llvm::APInt>()).isZero();
}

/// A condition that follows from sizes takes one branch. Else both are computed
/// and one is chosen.
LogicalResult GraphImporter::importIf(Node &node, const proto::Node &proto,
                                      int index, Scope &scope) {
  Items arguments;
  for (unsigned i = 1; i < node.numInputs(); ++i)
    arguments.push_back(node.item(i));
  std::string path = scopeOf(scope.path, proto.name());
  auto take = [&](StringRef name, Items &results) {
    const proto::Function *branch = functionOf(node, name);
    return llvm::success(branch &&
                         succeeded(call(*branch, arguments, scope.wanted[index],
                                        path, scope, results)));
  };
  mlir::Value condition = node.numInputs() ? node.input(0) : mlir::Value();
  if (auto known = constantCondition(condition, emitter))
    return take(*known ? "then_branch" : "else_branch", node.getResults());
  Items others;
  bool wasInBranch = emitter.setInBranch(true);
  bool ok = succeeded(take("then_branch", node.getResults())) &&
            succeeded(take("else_branch", others));
  emitter.setInBranch(wasInBranch);
  if (!ok)
    return llvm::failure();
  emitter.begin(locate(proto, scope));
  for (auto [i, pair] : llvm::enumerate(llvm::zip(node.getResults(), others))) {
    auto &[result, other] = pair;
    if (!scope.wanted[index].count(static_cast<int>(i)))
      continue;
    emitter.follow(result.value);
    emitter.follow(other.value);
    bool fit = result.value && other.value &&
               result.value.getType() == other.value.getType() &&
               rankOf(condition) == 0;
    if (!fit)
      return emitter.fail("its branches give different things, and which one "
                          "is taken is not known before the model runs",
                          "export the branch that is taken");
    result.value = emitter.select(condition, result.value, other.value);
  }
  return llvm::success();
}

/// Written out step by step: what the condition compares has to be known.
LogicalResult GraphImporter::importWhile(Node &node, const proto::Node &proto,
                                         Scope &scope) {
  const proto::Function *condition = functionOf(node, "cond");
  const proto::Function *body = condition ? functionOf(node, "body") : nullptr;
  if (!body)
    return llvm::failure();
  Items states;
  for (unsigned i = 0; i < node.numInputs(); ++i)
    states.push_back(node.item(i));
  std::string path = scopeOf(scope.path, proto.name());
  std::set<int> all;
  for (unsigned i = 0; i < node.numInputs(); ++i)
    all.insert(static_cast<int>(i));
  for (int64_t step = 0;; ++step) {
    Items test;
    if (failed(call(*condition, states, {0}, path, scope, test)))
      return llvm::failure();
    emitter.begin(locate(proto, scope));
    auto goesOn =
        test.empty() ? std::nullopt : constantCondition(test[0].value, emitter);
    if (!goesOn)
      return emitter.fail(
          "the number of steps is not known before the model runs",
          "fix the length of the sequence with --shape, or export the model "
          "with an input of fixed length");
    if (!*goesOn)
      break;
    if (step == maxSteps)
      return emitter.fail("takes over " + Twine(maxSteps) + " steps",
                          "export the model for shorter sequences");
    Items next;
    if (failed(call(*body, std::move(states), all, path, scope, next)))
      return llvm::failure();
    states = std::move(next);
    if (states.size() != all.size())
      return emitter.fail("its body gives " + Twine(states.size()) +
                              " results for " + Twine(all.size()) + " states",
                          againRemedy);
  }
  node.getResults() = std::move(states);
  return llvm::success();
}

Items GraphImporter::importGraph(llvm::ArrayRef<std::string> outputs,
                                 const llvm::StringMap<Item> &fed) {
  Scope scope{model.graph(), nullptr, "", fed, false, {}, {}, {}};
  Items results;
  if (!importBody(scope, outputs))
    return results;
  for (const std::string &output : outputs) {
    auto item = lookup(parseReference(output), scope);
    if (!item)
      report({"output '" + printable(output) + "' is not defined anywhere",
              againRemedy});
    results.push_back(item.value_or(Item()));
  }
  return results;
}
