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

bool GraphImporter::importBody(Scope &scope,
                               llvm::ArrayRef<std::string> roots) {
  auto nodes = order(scope, roots);
  if (!nodes)
    return false;
  if (checked.insert(&scope.body).second)
    if (auto node = nodeInCycle(scope.body)) {
      report(scope.body.nodes[*node], scope, {},
             {"depends on itself, or waits for itself", againRemedy});
      return false;
    }
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
  if (item.openList)
    return "list of " + emitter.getSymbols().toString(item.openList->count) +
           " tensors";
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
  bool isCall = flow == FlowKind::Call;
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
  bool isKnown = findRow(proto.op()) || flow != FlowKind::None ||
                 model.function(proto.op());
  Node node(emitter, model, proto, std::move(items), std::move(names));
  // Behind a failed node only what its operands' absence cannot have caused is
  // reported: an operator that is not supported at all.
  bool ok = (complete || !isKnown) && succeeded(checkOperands(node)) &&
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
  if (is({"Unique", "NonMaxSuppression", "SetSize", "ListDiff"}) &&
      !is({"Combined"}))
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
  if (model.function(op))
    return importCall(node, proto, index, scope);
  switch (flowKindOf(op)) {
  case FlowKind::Call:
    return importCall(node, proto, index, scope);
  case FlowKind::If:
  case FlowKind::Case:
    return importBranches(node, proto, index, scope);
  case FlowKind::While:
    return importWhile(node, proto, scope);
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
  bool isOfParts =
      node.hasComplex() && row->complex == Row::OfComplex::EachPart;
  if (row->complex != Row::OfComplex::Itself)
    node.usePart(&Complex::real);
  bool ok = succeeded(row->import(node, emitter)) && !emitter.failed();
  if (ok && isOfParts) {
    Items real = std::exchange(node.getResults(), {});
    node.usePart(&Complex::imaginary);
    ok = succeeded(row->import(node, emitter)) && !emitter.failed();
    for (auto [result, part] : llvm::zip(node.getResults(), real))
      result.complex = std::make_shared<Complex>(
          Complex{part.value, std::exchange(result.value, {})});
  }
  if (!ok)
    return emitter.fail("cannot be imported");
  if (part)
    for (Item &result : node.getResults())
      result.part =
          std::make_shared<Part>(Part{std::exchange(result.value, {}),
                                      part->parts, part->number, part->count});
  return llvm::success();
}

LogicalResult GraphImporter::checkOperands(Node &node) {
  const auto &attributes = node.message().attributes();
  auto it = attributes.find("T");
  // With a definition results tell.
  if (it == attributes.end() || !it->second.has_type() || !node.numInputs() ||
      model.definition(node.op()))
    return llvm::success();
  mlir::Type type = elementType(it->second.type(), emitter.getContext());
  for (unsigned i = 0; i < node.numInputs(); ++i)
    if (!node.item(i).value || elementOf(node.item(i).value) == type)
      return llvm::success();
  return emitter.fail("attribute 'T' is " + dtypeName(it->second.type()) +
                          ", a type that none of its operands has",
                      againRemedy);
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
