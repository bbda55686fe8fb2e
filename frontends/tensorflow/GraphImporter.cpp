#include "frontends/tensorflow/GraphImporter.h"
#include "frontends/tensorflow/Stated.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

const char *const charonia::frontend::tensorflow::againRemedy =
    "the file is damaged: export the model again";

/// What to do where nothing better is known.
static const char *const contraryRemedy =
    "the node and its inputs contradict each other: check that TensorFlow runs "
    "the model on these shapes, and what --shape says of them";

// Reports.

void GraphImporter::report(Problem problem) {
  Diagnostic diagnostic;
  diagnostic.file = file;
  diagnostic.what = std::move(problem.what);
  diagnostic.remedy = std::move(problem.remedy);
  diagnostics.push_back(std::move(diagnostic));
}

std::string charonia::frontend::tensorflow::pathTo(const std::string &scope,
                                                   const std::string &node) {
  return scope.empty() ? node : scope + "/" + node;
}

void GraphImporter::report(const proto::Node &node, const Scope &scope,
                           const std::vector<std::string> &inputs,
                           const Problem &problem) {
  Diagnostic diagnostic;
  diagnostic.file = file;
  diagnostic.node = pathTo(scope.path, node.name());
  diagnostic.op = node.op().empty() ? "?" : node.op();
  diagnostic.inputs = inputs;
  diagnostic.what = problem.what;
  diagnostic.remedy = problem.remedy.empty() ? contraryRemedy : problem.remedy;
  // What several nodes read is looked for by each.
  if (reported.insert(diagnostic.toString()).second)
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
  if (reference.output.empty())
    return reference.index;
  SmallVector<StringRef> names;
  const Row *row = findRow(node.op());
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

static bool isCallOf(StringRef op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}
/// Operators whose results depend on which of them are needed.
static bool isControlFlow(StringRef op) {
  return isCallOf(op) || op == "If" || op == "StatelessIf" || op == "Case" ||
         op == "StatelessCase" || op == "While" || op == "StatelessWhile";
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
        !(isNew && isControlFlow(body.nodes[it->second].op())))
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

// Nodes.

std::optional<Item> GraphImporter::lookup(const Reference &reference,
                                          const Scope &scope) {
  if (const Item *argument = scope.argument(reference))
    return *argument;
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

void GraphImporter::noteWrites(const Scope &scope, llvm::ArrayRef<int> nodes) {
  if (!effects.need(scope.body, scope.isFunction, nodes) ||
      writers.count(&scope.body))
    return;
  Writer &writer = writers[&scope.body];
  writer.path = scope.path;
  for (const auto &argument : scope.arguments)
    if (argument.getValue().variable)
      writer.variables[argument.getKey().str()] =
          argument.getValue().variable->node;
}

/// Whether a node of the graph is on the side of a choice that is not taken.
bool GraphImporter::isUntaken(int node, const Scope &scope) {
  auto path = flowOf(scope.body).pathOf(node);
  return path && llvm::any_of(*path, [&](const auto &side) {
           auto decider = lookup(parseReference(side.first), scope);
           if (!decider || !decider->value || decider->tainted)
             return false;
           bool isTruth = elementOf(decider->value).isInteger(1);
           auto known =
               isTruth ? knownIndex(decider->value, true) : std::nullopt;
           return known && *known != side.second;
         });
}

void GraphImporter::checkWrites(const Scope &graph) {
  std::set<std::string> left;
  for (const auto &[body, writer] : writers) {
    auto isUntakenNode = [&](int node) {
      return body == &graph.body && isUntaken(node, graph);
    };
    auto variable = effects.findStale(*body, isUntakenNode);
    if (!variable) {
      for (const std::string &name : effects.findWritten(*body, isUntakenNode))
        if (auto it = writer.variables.find(name);
            it != writer.variables.end() || body == &graph.body)
          left.insert(it == writer.variables.end() ? name : it->second);
      continue;
    }
    auto it = writer.variables.find(*variable);
    report(
        {(writer.path.empty() ? "" : "'" + printable(writer.path) + "' ") +
             std::string("writes variable '") +
             printable(it == writer.variables.end() ? *variable : it->second) +
             "' before it is read, which is not supported",
         "export a function that leaves its variables as they are"});
  }
  noteWritten(left);
}

/// Notes that writes are left out.
void GraphImporter::noteWritten(const std::set<std::string> &names) {
  constexpr int shown = 4;
  if (names.empty())
    return;
  std::string list;
  int count = 0;
  for (const std::string &name : names)
    if (++count <= shown)
      list += (count > 1 ? ", '" : "'") + printable(name) + "'";
  if (count > shown)
    list += " and " + std::to_string(count - shown) + " others";
  Diagnostic note;
  note.severity = Diagnostic::Severity::Note;
  note.file = file;
  note.what = "writes to variables are left out, so that every run begins with "
              "what is stored: " +
              list;
  note.remedy = "where runs have to go on from each other, export a function "
                "that has its states as inputs and results";
  diagnostics.push_back(std::move(note));
}

bool GraphImporter::importBody(Scope &scope,
                               llvm::ArrayRef<std::string> roots) {
  auto nodes = order(scope, roots);
  if (!nodes)
    return false;
  noteWrites(scope, *nodes);
  for (int index : *nodes) {
    const proto::Node &node = scope.body.nodes[index];
    // Operands cost each time, too.
    constexpr int operandsPerNode = 8;
    if (scope.parent &&
        failed(emitter.writeOut(1 + node.inputs_size() / operandsPerNode))) {
      // Whatever comes next is too much, too.
      if (!std::exchange(isTooLarge, true))
        report(node, scope, {}, *emitter.getProblem());
      return false;
    }
    if (progress)
      progress(pathTo(scope.path, node.name()), node.op());
    if (node.op() == "PlaceholderWithDefault" && !scope.parent)
      noteDefault(node);
    importNode(node, index, scope);
  }
  return true;
}

void GraphImporter::noteDefault(const proto::Node &node) {
  Diagnostic note;
  note.severity = Diagnostic::Severity::Note;
  note.file = file;
  note.node = node.name();
  note.op = node.op();
  note.what = "has its default value, as it is no input";
  note.remedy =
      model.bundle() ? "" : "name all inputs with --inputs to have it as one";
  diagnostics.push_back(std::move(note));
}

static std::string describe(const Item &item, Emitter &emitter) {
  if (item.value)
    return emitter.describe(item.value.getType());
  if (item.complex && item.complex->real) // null behind what failed
    return "complex " + emitter.describe(item.complex->real.getType());
  if (item.variable)
    return "variable";
  if (item.unsupported)
    return dtypeName(item.unsupported->dtype);
  if (item.part)
    return "rows of part " + std::to_string(item.part->number);
  return item.list ? "list of " + std::to_string(item.list->size()) + " tensors"
                   : "unknown";
}

/// An operand is nothing that an engine has.
static void failWithoutOperand(Node &node, Emitter &emitter) {
  for (unsigned i = 0; i < node.numInputs(); ++i)
    if (const Port *port = node.item(i).unsupported) {
      emitter.fail("reads input '" + printable(port->name) + "', which is of " +
                       dtypeName(port->dtype) +
                       ", a type that is not supported",
                   elementTypeRemedy);
      return;
    }
  emitter.fail("needs a result that exists in training alone",
               "export the model for inference");
}

void GraphImporter::importNode(const proto::Node &proto, int index,
                               Scope &scope) {
  Items items;
  std::vector<std::string> names;
  bool complete = true, tainted = false;
  FlowKind flow = flowKindOf(proto.op());
  bool isCall = isCallOf(proto.op());
  bool needsOperands = flow != FlowKind::Merge && flow != FlowKind::Exit,
       isUntaken = false;
  for (const std::string &text : proto.inputs()) {
    Reference reference = parseReference(text);
    if (reference.isControl || !needsOperands)
      continue;
    auto item = lookup(reference, scope);
    if (!item) {
      report(proto, scope, {},
             {"input '" + printable(text) + "' is not defined anywhere",
              againRemedy});
      item.emplace().tainted = true;
    }
    items.push_back(*item);
    // What a function gets and does not use may be anything.
    complete &= !item->isNothing() || isCall;
    tainted |= item->tainted;
    isUntaken |= item->isUntaken;
    names.push_back(text);
  }
  emitter.begin(locate(proto, scope));
  for (const Item &item : items)
    emitter.follow(item.value);
  bool isKnown = isControlFlow(proto.op()) || findRow(proto.op()) ||
                 flow != FlowKind::None || model.function(proto.op());
  Node node(emitter, model, proto, std::move(items), std::move(names));
  // Behind a failed node only what its operands' absence cannot have caused is
  // reported: an operator that is not supported at all.
  bool ok = (complete || !isKnown) &&
            succeeded(importResults(node, proto, index, scope)) &&
            succeeded(checkResults(node, proto));
  if (isUntaken && !tainted)
    emitter.fail("is in a branch that is never taken",
                 "leave it out of the model's outputs");
  if (!complete && !tainted)
    failWithoutOperand(node, emitter);
  if (!ok && (!tainted || !isKnown))
    if (auto &problem = emitter.getProblem()) {
      std::vector<std::string> shown;
      for (unsigned i = 0; i < node.numInputs() && needsOperands; ++i)
        shown.push_back(printable(node.inputName(i)) + ": " +
                        describe(node.item(i), emitter));
      report(proto, scope, shown, *problem);
    }
  scope.results[index] = std::move(node.getResults());
  if (tainted || !ok)
    scope.tainted.insert(index);
}

/// Why an operator without a row has none.
static Problem unsupported(StringRef op) {
  auto is = [&](std::initializer_list<StringRef> parts) {
    return llvm::any_of(parts,
                        [&](StringRef part) { return op.contains(part); });
  };
  std::string name =
      "operator " + (op.empty() ? "''" : printable(op.str())) + " ";
  if (is({"Random", "TruncatedNormal", "StatefulStandardNormal",
          "StatefulUniform", "Multinomial", "RngBitGenerator",
          "StatelessSample"}))
    return {name + "draws random numbers, which is not supported",
            "export the model for inference (training=False), or give the "
            "numbers as an input"};
  if (op.starts_with("CTC"))
    return {name + "works on sparse tensors, which is not supported",
            "export the model without it, and compute it after the engine"};
  if (is({"String", "Regex", "Decode", "Encode", "Parse", "ReadFile",
          "AsString", "Unicode"}))
    return {name + "works on texts or files, which is not supported",
            "export the model from numbers on"};
  if (is({"Table", "Hash", "Vocab"}))
    return {name + "looks something up in a table, which is not supported",
            "export what is behind the lookup, and look up before the engine "
            "runs"};
  // Losses are named after what their labels are.
  if (!op.contains("CrossEntropy") && is({"Sparse", "Ragged"}))
    return {name + "works on sparse or ragged tensors, which is not supported",
            "export the model with dense tensors (tf.sparse.to_dense, "
            "to_tensor)"};
  // The combined form has as many results as its attributes say.
  if (op == "Where" ||
      (is({"Unique", "NonMaxSuppression", "SetSize", "ListDiff"}) &&
       !is({"Combined"})))
    return {name + "gives a result whose size depends on data, which is not "
                   "supported",
            "export the model without it, and compute it after the engine"};
  if (is({"Iterator", "Dataset", "Queue"}))
    return {name + "reads data by itself, which is not supported",
            "export the model with its inputs as arguments"};
  return {name + "is not supported",
          "replace it in the model by supported operators, which "
          "docs/operators.md lists"};
}

LogicalResult GraphImporter::importResults(Node &node, const proto::Node &proto,
                                           int index, Scope &scope) {
  StringRef op = proto.op();
  if (isCallOf(op) || model.function(op))
    return importCall(node, proto, index, scope);
  if (op == "If" || op == "StatelessIf" || op == "Case" ||
      op == "StatelessCase")
    return importBranches(node, proto, index, scope);
  if (op == "While" || op == "StatelessWhile")
    return importWhile(node, proto, scope);
  switch (flowKindOf(op)) {
  case FlowKind::Switch:
  case FlowKind::SwitchN:
    return importSwitch(node, flowKindOf(op) == FlowKind::Switch);
  case FlowKind::Merge:
    return importMerge(node, proto, index, scope);
  case FlowKind::Exit:
    return importExit(node, proto, index, scope);
  default:
    break;
  }
  const Row *row = findRow(op);
  if (!row) {
    Problem problem = unsupported(op);
    return emitter.fail(problem.what, problem.remedy);
  }
  for (unsigned i = 0; i < node.numInputs(); ++i)
    if (node.blocks(i) && !(row->takesBlocks && i == 0) && !node.layOut(i))
      return emitter.fail("cannot be imported");
  const Part *part = row->byRows < 0 ? nullptr : node.part(row->byRows);
  if (part)
    node.setInput(row->byRows, positionsOf(*part, emitter));
  if (failed(row->import(node, emitter)) || emitter.failed()) {
    emitter.fail("cannot be imported");
    return llvm::failure();
  }
  if (part)
    for (Item &result : node.getResults())
      result.part =
          std::make_shared<Part>(Part{std::exchange(result.value, {}),
                                      part->parts, part->number, part->count});
  return llvm::success();
}

LogicalResult GraphImporter::checkResults(Node &node,
                                          const proto::Node &proto) {
  Items &results = node.getResults();
  auto stated = statedResults(proto, results.size(), model);
  for (auto [i, result] : llvm::enumerate(results)) {
    std::string text =
        contradiction(result.value, stated[i], "the file", emitter);
    if (!text.empty())
      return emitter.fail("its result " + Twine(i) + " is " + text,
                          contradictionRemedy);
  }
  return llvm::success();
}

Item GraphImporter::settled(Item item) {
  if (item.blocks && !item.value)
    item.value = layOut(*item.blocks, emitter);
  return item;
}

Items GraphImporter::importGraph(llvm::ArrayRef<std::string> outputs,
                                 const llvm::StringMap<Item> &fed) {
  Scope scope(model.graph(), nullptr, "", false);
  scope.arguments = fed;
  Items results;
  bool ok = importBody(scope, outputs);
  // What is imported later sees what was written before it, too.
  checkWrites(scope);
  if (!ok)
    return results;
  for (const std::string &output : outputs) {
    auto item = lookup(parseReference(output), scope);
    emitter.begin(emitter.getBuilder().getUnknownLoc());
    if (!item)
      report({"output '" + printable(output) +
                  "' is not among the results of its node",
              model.isSaved() ? againRemedy : "name others with --outputs"});
    results.push_back(settled(item.value_or(Item())));
    if (auto &unsettled = emitter.getProblem())
      report(*unsettled);
  }
  return results;
}
