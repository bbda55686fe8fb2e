// Importing calls of functions and choices between them.
#include "frontends/common/Steps.h"
#include "frontends/tensorflow/GraphImporter.h"
#include "frontends/tensorflow/Remedy.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::StringRef;
using llvm::Twine;

std::string charonia::frontend::tensorflow::fixSize(const Model &model,
                                                    const std::string &symbol) {
  constexpr const char *example = "32";
  for (const Port &port : model.inputs()) {
    StringRef rest = symbol;
    int dim = 0;
    if (!port.shape || !rest.consume_front(port.name) ||
        !rest.consume_front("_dim") || rest.getAsInteger(10, dim) ||
        dim >= port.shape->dims_size())
      continue;
    std::string text = "fix it: --shape " + printable(port.name) + "=";
    for (int i = 0; i < port.shape->dims_size(); ++i) {
      int64_t size = port.shape->dims(i).size();
      text += (i ? "x" : "") + (i == dim     ? std::string(example)
                                : size == -1 ? std::string("?")
                                             : std::to_string(size));
    }
    return text;
  }
  return "fix it with --shape";
}

// Functions.

const proto::Function *GraphImporter::functionOf(Node &node,
                                                 StringRef attribute) {
  auto *found = node.find(attribute);
  return functionNamed(found ? found->function().name() : node.op());
}
const proto::Function *GraphImporter::functionNamed(const std::string &name) {
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
  Scope inner(body, &scope, callName, true);
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

std::string charonia::frontend::tensorflow::scopeOf(const std::string &around,
                                                    StringRef call) {
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
        argument.variable = std::make_shared<Variable>(Variable{
            argument.variable->node, key, {}, argument.variable->holder});
  return call(*function, std::move(arguments), scope.wanted[index],
              scopeOf(scope.path, proto.name()), scope, node.getResults());
}

std::optional<int64_t> GraphImporter::knownIndex(mlir::Value value,
                                                 bool isTruth) {
  auto index = knownInteger(value, emitter);
  return index && isTruth ? std::optional<int64_t>(*index != 0) : index;
}

Item GraphImporter::choose(mlir::Value condition, const Item &first,
                           const Item &second, const char *givers) {
  Item result, a = settled(first), b = settled(second);
  if ((a.value && a.value == b.value) || (a.list && a.list == b.list)) {
    result = a;
  } else if (a.value && b.value && a.value.getType() == b.value.getType() &&
             rankOf(condition) == 0) {
    result.value = emitter.select(condition, a.value, b.value);
  } else if (a.complex && b.complex) {
    result.complex = std::make_shared<Complex>(Complex{
        choose(condition, a.complex->real, b.complex->real, givers).value,
        choose(condition, a.complex->imaginary, b.complex->imaginary, givers)
            .value});
  } else if (a.list && b.list && a.list->size() == b.list->size()) {
    TensorList list(a.list->size());
    // An element that is not set reads as zeros.
    auto orZeros = [&](mlir::Value element, mlir::Value other) {
      return element ? element
                     : emitter.broadcast(
                           emitter.scalar(int64_t(0), elementOf(other)),
                           graph::getShape(other));
    };
    for (int64_t i = 0; i < list.size(); ++i)
      if (mlir::Value x = (*a.list)[i], y = (*b.list)[i]; x || y)
        list = list.with(
            i, choose(condition, orZeros(x, y), orZeros(y, x), givers).value);
    result.list = std::make_shared<TensorList>(std::move(list));
  } else if (a.variable && b.variable && a.variable->key == b.variable->key &&
             a.variable->part == b.variable->part) {
    result = a;
  } else {
    emitter.fail(Twine(givers) +
                     " give different things, and which one is taken is not "
                     "known before the model runs",
                 "export what is taken, or make all give tensors and lists "
                 "of the same types and shapes");
  }
  return result;
}

/// The functions of a choice, by operand 0: of a truth value that for false
/// comes first.
std::optional<std::vector<const proto::Function *>>
GraphImporter::branchesOf(Node &node, bool isTruth) {
  std::vector<const proto::Function *> branches;
  if (isTruth) {
    branches = {functionOf(node, "else_branch"),
                functionOf(node, "then_branch")};
  } else if (auto *list = node.find("branches")) {
    for (const auto &name : list->list().functions())
      branches.push_back(functionNamed(name.name()));
  }
  if (branches.empty())
    emitter.fail("has no branches", againRemedy);
  bool isComplete = !branches.empty() && !llvm::is_contained(branches, nullptr);
  return isComplete ? std::optional(std::move(branches)) : std::nullopt;
}

/// A condition that follows from sizes takes one branch. Else all are computed
/// and one is chosen.
LogicalResult GraphImporter::importBranches(Node &node,
                                            const proto::Node &proto, int index,
                                            Scope &scope) {
  bool isTruth = flowKindOf(proto.op()) == FlowKind::If;
  auto branches = branchesOf(node, isTruth);
  mlir::Value condition = node.numInputs() ? node.input(0) : mlir::Value();
  if (!branches || !condition)
    return emitter.fail("has no condition", againRemedy);
  if (isTruth && rankOf(condition) > 0)
    return emitter.fail("has a condition of rank " + Twine(rankOf(condition)) +
                            ", which is not supported",
                        "export the model with a condition that is one value");
  int64_t last = static_cast<int64_t>(branches->size()) - 1;
  Items arguments;
  for (unsigned i = 1; i < node.numInputs(); ++i)
    arguments.push_back(node.item(i));
  std::string path = scopeOf(scope.path, proto.name());
  auto take = [&](int64_t branch, Items &results) {
    return call(*(*branches)[branch], arguments, scope.wanted[index], path,
                scope, results);
  };
  if (auto known = knownIndex(condition, isTruth))
    return take(*known < 0 || *known > last ? last : *known, node.getResults());
  std::vector<Items> all(branches->size());
  bool wasInBranch = emitter.setInBranch(true), ok = true;
  for (int64_t i = 0; ok && i <= last; ++i)
    ok = succeeded(take(i, all[i]));
  emitter.setInBranch(wasInBranch);
  if (!ok)
    return llvm::failure();
  emitter.begin(locate(proto, scope));
  emitter.follow(condition);
  for (const Items &items : all)
    for (const Item &item : items)
      emitter.follow(item.value);
  mlir::Type type = elementOf(condition);
  for (int64_t i = 0; i < static_cast<int64_t>(all[last].size()); ++i) {
    Item result = all[last][i];
    bool isWanted = scope.wanted[index].count(static_cast<int>(i));
    // Any number but 0 is true.
    for (int64_t other = last - 1; isWanted && other >= 0; --other) {
      if (i >= static_cast<int64_t>(all[other].size()))
        return emitter.fail("its branches give different things", againRemedy);
      mlir::Value isOther = emitter.compare(graph::Predicate::eq, condition,
                                            emitter.scalar(other, type));
      result = choose(isOther, all[other][i], result);
    }
    node.getResults().push_back(std::move(result));
  }
  return llvm::failure(emitter.failed());
}
