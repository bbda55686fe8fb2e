#include "frontends/pytorch/ProgramImporter.h"
#include "frontends/common/builders/Complex.h"
#include "frontends/pytorch/Numbers.h"
#include "frontends/pytorch/Regions.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::StringRef;

ProgramImporter::ProgramImporter(Program given, Weights &weights,
                                 const ImportOptions &options,
                                 ModuleBuilder &builder)
    : owned(std::make_unique<Program>(std::move(given))), program(*owned),
      graph(program.graph), weights(weights), options(options),
      builder(builder), emitter(builder.getEmitter()),
      ownedSizes(
          std::make_unique<Sizes>(builder.getSymbols(), builder.getContext())),
      sizes(*ownedSizes) {}

const Argument *pytorch::findArgument(const Node &node, StringRef name) {
  for (const NamedArgument &input : node.inputs)
    if (input.name == name)
      return &input.value;
  return nullptr;
}
void pytorch::forEachTensor(
    const Argument &argument,
    llvm::function_ref<void(const std::string &)> visit) {
  if (argument.kind == Kind::Tensor)
    visit(argument.text);
  for (const Argument &item : argument.items)
    forEachTensor(item, visit);
}
/// Whether a node computes tensors or numbers that others read; what computes
/// with sizes has no row.
static bool computes(const Node &node) {
  bool found = findTarget(node.target).row;
  for (const Argument &output : node.outputs)
    forEachTensor(output, [&](const std::string &) { found = true; });
  return found;
}

// Names.

ProgramImporter::Entry *ProgramImporter::find(StringRef name) {
  auto it = names.find(name);
  return it == names.end() ? nullptr : it->second;
}
ProgramImporter::Entry &ProgramImporter::addEntry(StringRef name) {
  Entry &entry = entries.emplace_back();
  entry.name = name.str();
  names[name] = &entry;
  return entry;
}
const TensorMeta *ProgramImporter::metaOf(StringRef name) const {
  auto it = graph.tensors.find(name);
  return it == graph.tensors.end() ? nullptr : &it->second;
}
/// What the file says of a number; null where it says nothing.
ExpressionPtr ProgramImporter::expressionOf(StringRef name) const {
  for (const auto *list : {&graph.integers, &graph.floats, &graph.conditions})
    if (auto it = list->find(name); it != list->end())
      return it->second;
  return nullptr;
}
void ProgramImporter::define(StringRef name, mlir::Value number) {
  ExpressionPtr symbol = expressionOf(name);
  if (!symbol || symbol->head != "Symbol" || sizes.isBound(symbol->name))
    return;
  sizes.bindNumber(symbol->name, number);
  if (!isFloat(number))
    if (auto known = emitter.evaluateSizes(number); known.isComplete())
      sizes.bind(symbol->name, known.elements->front());
}
mlir::AffineExpr ProgramImporter::sizeOf(StringRef name) {
  auto it = graph.integers.find(name);
  return it == graph.integers.end() ? mlir::AffineExpr()
                                    : sizes.convert(it->second);
}
mlir::Value ProgramImporter::numberOf(StringRef name) {
  for (const auto *list : {&graph.floats, &graph.integers})
    if (auto it = list->find(name); it != list->end())
      return buildNumber(it->second, sizes, emitter);
  return {};
}
Exprs ProgramImporter::convertSizes(llvm::ArrayRef<ExpressionPtr> list) {
  return sizes.convert(list);
}

/// Weights become values when they are first used.
void ProgramImporter::loadWeight(Entry &entry, const InputSpec &spec) {
  Problem problem;
  mlir::Value value = weights.load(spec.target, emitter, problem);
  if (!value) {
    if (!emitter.failed())
      emitter.fail("tensor '" + printable(spec.target) + "' " + problem.what,
                   problem.remedy);
    return;
  }
  const TensorMeta *stored = weights.metaOf(spec.target);
  Complex parts = stored && isComplex(stored->dtype)
                      ? splitComplex(value, emitter)
                      : Complex{value, {}};
  entry.value = parts.real;
  entry.imaginary = parts.imaginary;
  checkType("tensor '" + printable(spec.target) + "' is", entry.name,
            entry.value);
}

/// What is not complex has no imaginary part, whatever its row made.
void ProgramImporter::setValue(Entry &entry, const Part &part) {
  const TensorMeta *meta = metaOf(entry.name);
  entry.value = part.value;
  entry.imaginary =
      meta && isComplex(meta->dtype) ? part.imaginary : mlir::Value();
}

/// Computes a value again that was written to through another name, and those
/// of the other results of its node that were.
void ProgramImporter::refresh(Entry &entry) {
  Call call(emitter, *entry.node, *this);
  Values imaginary;
  if (entry.isTorn) {
    failUndecided(entry);
  } else if (succeeded(
                 importRow(call, findTarget(entry.node->target), imaginary))) {
    for (auto [i, name] : llvm::enumerate(call.getOutputs())) {
      Entry *result = find(name);
      if (!result || result->node != entry.node || !result->isStale ||
          i >= call.getResults().size())
        continue;
      checkType("computed again it is", name, call.getResults()[i]);
      setValue(*result, {call.getResults()[i],
                         i < imaginary.size() ? imaginary[i] : mlir::Value(),
                         {}});
      result->isStale = false;
    }
  }
  if (entry.isStale)
    entry.value = {};
  entry.isStale = false;
}

mlir::Value ProgramImporter::currentValue(Entry &entry) {
  if (!entry.value && !entry.node)
    if (auto it = stored.find(entry.name); it != stored.end())
      loadWeight(entry, *it->second);
  if (entry.isStale)
    refresh(entry);
  if (!entry.value && !emitter.failed())
    return emitter.fail("tensor '" + printable(entry.name) +
                            "' is used before it is computed",
                        "export the program again");
  return emitter.failed() ? mlir::Value() : entry.value;
}

mlir::Value ProgramImporter::valueOf(StringRef name, bool imaginary) {
  Entry *entry = find(name);
  if (!entry)
    return emitter.fail("tensor '" + printable(name.str()) +
                            "' is not defined before it is used",
                        "export the program again");
  mlir::Value value = currentValue(*entry);
  return imaginary && entry->imaginary ? entry->imaginary : value;
}

// Nodes.

/// The module that the node is in; the name of its result outside of any.
static std::string displayName(const Node &node) {
  std::string name = node.module.empty() ? node.name : node.module;
  if (name.empty() && !node.outputs.empty())
    name = node.outputs[0].kind == Kind::List && !node.outputs[0].items.empty()
               ? node.outputs[0].items[0].text
               : node.outputs[0].text;
  return name;
}

mlir::Location ProgramImporter::locate(const Node &node) {
  auto &b = emitter.getBuilder();
  StringRef op = node.target;
  op.consume_front("torch.ops.");
  return mlir::NameLoc::get(b.getStringAttr(displayName(node)),
                            mlir::NameLoc::get(b.getStringAttr(op)));
}

void ProgramImporter::report(const Node &node) {
  const std::optional<Problem> &problem = emitter.getProblem();
  Diagnostic diagnostic;
  diagnostic.file = builder.getFile();
  diagnostic.node = displayName(node);
  StringRef op = node.target;
  op.consume_front("torch.ops.");
  diagnostic.op = op.str();
  diagnostic.what = problem ? problem->what : "cannot be imported";
  if (!node.line.empty())
    diagnostic.what += "\n  line: " + printable(node.line, 400);
  diagnostic.remedy = problem ? problem->remedy : "";
  for (const NamedArgument &input : node.inputs)
    forEachTensor(input.value, [&](const std::string &name) {
      const TensorMeta *meta = metaOf(name);
      std::string text = printable(input.name) + ": ";
      if (!meta) {
        diagnostic.inputs.push_back(text + "unknown");
        return;
      }
      text += dtypeName(meta->dtype) + "[";
      for (auto [i, size] : llvm::enumerate(meta->sizes)) {
        mlir::AffineExpr known = sizes.convert(size);
        text += (i ? ", " : "") + (known ? emitter.getSymbols().toString(known)
                                         : size->toString());
      }
      diagnostic.inputs.push_back(text + "]");
    });
  builder.getDiagnostics().push_back(std::move(diagnostic));
}

/// Fails unless a value has the type that the file says of a tensor.
void ProgramImporter::checkType(const llvm::Twine &what, StringRef name,
                                mlir::Value value) {
  const TensorMeta *meta = metaOf(name);
  if (!meta || !value)
    return;
  mlir::Type element = partType(meta->dtype, emitter.getContext());
  Exprs actual = graph::getShape(value), stated = shapeOf(*meta);
  bool agrees = element == elementOf(value) && actual.size() == stated.size();
  // A size that the exporter could not tell, and that is told here.
  for (size_t d = 0; agrees && d < actual.size(); ++d)
    if (const ExpressionPtr &size = meta->sizes[d]; !stated[d] && size &&
                                                    size->head == "Symbol" &&
                                                    !sizes.isBound(size->name))
      sizes.bind(size->name, actual[d]);
  for (size_t d = 0; agrees && d < actual.size(); ++d)
    agrees = !stated[d] || areAlike(emitter.getSymbols().resolve(actual[d]),
                                    emitter.getSymbols().resolve(stated[d]));
  if (agrees)
    return;
  std::string text = dtypeName(meta->dtype) + "[";
  for (auto [d, size] : llvm::enumerate(stated))
    text += (d ? ", " : "") + (size ? emitter.getSymbols().toString(size)
                                    : meta->sizes[d]->toString());
  emitter.fail(what + " " + emitter.describe(value.getType()) +
                   ", but the file says " + text + "]",
               stored.count(name)
                   ? "the file is damaged: export the program again"
                   : "the file is damaged, or this is a fault of charonia's "
                     "row for the operator: please report it with the model");
}

/// Builds the results of a node, of complex numbers the imaginary parts too.
llvm::LogicalResult ProgramImporter::importRow(Call &call, const Target &target,
                                               Values &imaginary) {
  bool complex = false;
  auto visit = [&](const std::string &name) {
    const TensorMeta *meta = metaOf(name);
    complex |= meta && isComplex(meta->dtype);
  };
  const Node &node = call.getNode();
  for (const NamedArgument &input : node.inputs)
    forEachTensor(input.value, visit);
  for (const Argument &output : node.outputs)
    forEachTensor(output, visit);
  const Import &import = target.row->import;
  if (!complex)
    return import.real(call);
  auto result = importComplex(import, call);
  imaginary.assign(call.getImaginary().begin(), call.getImaginary().end());
  return result;
}

/// Of a node that is not in the table.
llvm::LogicalResult ProgramImporter::failUnsupported(const Node &node) {
  StringRef op = node.target;
  // What is called with a token that orders it.
  if (op == withEffects)
    for (const NamedArgument &input : node.inputs)
      if (input.value.kind == Kind::Unsupported)
        op = input.value.text;
  op.consume_front("torch.ops.");
  std::string what = "operator " + printable(op.str()) + " is not supported";
  if (op.starts_with("higher_order.cond"))
    return emitter.fail(what + ": which branch is taken depends on sizes",
                        "narrow the ranges with --shape, so that it does not");
  if (op.starts_with("higher_order."))
    return emitter.fail(
        what + ": it holds graphs, which it calls",
        "export the model without torch.scan, map and others of their kind: "
        "write their steps out in Python");
  if (op.starts_with("torch._functorch."))
    return emitter.fail(
        what + ": it is a part of torch.vmap",
        "export with program.run_decompositions(), which takes it apart");
  if (!op.starts_with("aten."))
    return emitter.fail(
        what + ": it is of namespace '" + printable(op.split('.').first.str()) +
            "'",
        "replace it by operators of PyTorch, or register a decomposition and "
        "export with run_decompositions()");
  return emitter.fail(what, !program.isDecomposed && isDecomposed(op)
                                ? "try program.run_decompositions() before "
                                  "saving, or replace it in the model"
                                : "replace it in the model");
}

llvm::LogicalResult ProgramImporter::setResults(Call &call,
                                                llvm::ArrayRef<Part> results) {
  for (auto [i, name] : llvm::enumerate(call.getOutputs())) {
    Entry *entry = find(name);
    if (!entry || !wanted.contains(name))
      continue;
    if (i >= results.size())
      return emitter.fail("result " + llvm::Twine(i) + " is not supported",
                          "export the model so that it does not use it");
    setValue(*entry, results[i]);
    entry->isStale = false;
    if (!entry->value)
      return emitter.fail("cannot be imported");
    checkType("result " + llvm::Twine(i) + " is", name, entry->value);
  }
  return llvm::failure(emitter.failed());
}

llvm::LogicalResult ProgramImporter::importResults(const Node &node,
                                                   const Target &target,
                                                   Call &call) {
  std::vector<Part> results;
  if (isLoop(node))
    return succeeded(importLoop(node, results)) ? setResults(call, results)
                                                : llvm::failure();
  if (!target.row)
    return failUnsupported(node);
  Values imaginary;
  if (failed(importRow(call, target, imaginary)) || emitter.failed()) {
    emitter.fail("cannot be imported");
    return llvm::failure();
  }
  for (auto [i, value] : llvm::enumerate(call.getResults()))
    results.push_back(
        {value, i < imaginary.size() ? imaginary[i] : mlir::Value(), {}});
  return target.inPlace || target.isOut ? writeResults(call, target, results)
                                        : setResults(call, results);
}

void ProgramImporter::importNode(const Node &node) {
  emitter.begin(locate(node));
  bool isTainted = false;
  for (const NamedArgument &input : node.inputs)
    forEachTensor(input.value, [&](const std::string &name) {
      Entry *entry = find(name);
      isTainted |= entry && entry->isTainted;
    });
  Target target = findTarget(node.target);
  Call call(emitter, node, *this, target.inPlace || target.isOut);
  for (size_t i = 0; target.isOut && i < node.outputs.size(); ++i)
    if (i < node.inputs.size())
      call.ignore({node.inputs.rbegin()[i].name});
  bool isKnown = target.row || isLoop(node);
  bool good =
      !(isTainted && isKnown) && succeeded(importResults(node, target, call));
  std::optional<std::string> note = emitter.takeNote();
  if (good && note)
    builder.add(Diagnostic::Severity::Note, "'" + printable(displayName(node)) +
                                                "' (" + printable(node.target) +
                                                "): " + *note);
  if (good)
    return;
  // Behind a failed node only what it cannot have caused is reported: an
  // operator that is not supported at all. Steps report what fails in them.
  if (!isKnown || (!isTainted && emitter.failed()))
    report(node);
  for (const std::string &name : call.getOutputs())
    if (Entry *entry = find(name); entry && entry->node == &node) {
      entry->value = {};
      entry->isTainted = true;
    }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (const Argument *written = findWritten(node, target, i))
      if (Entry *entry = rootOf(written->text))
        entry->isTainted = true;
}

// The program.

/// No_grad, autocast and branches become nodes of the graph.
bool ProgramImporter::resolveRegions() {
  constexpr size_t maxNodes = size_t(1) << 20;
  auto decide = [&](const Argument &condition) -> std::optional<bool> {
    if (condition.kind == Kind::Bool)
      return condition.integer != 0;
    auto it = graph.conditions.find(condition.text);
    return condition.kind == Kind::SymBool && it != graph.conditions.end()
               ? sizes.decide(it->second)
               : std::nullopt;
  };
  if (inlineRegions(graph, decide, std::max(maxNodes, graph.nodes.size())))
    return true;
  builder.fail("has over " + std::to_string(maxNodes) +
                   " nodes once the graphs inside of it are written out",
               "export a program with fewer of them");
  return false;
}

void ProgramImporter::run() {
  if (!checkSignature())
    return;
  importInputs();
  if (builder.hasErrors())
    return;
  if (!resolveRegions())
    return;
  findAliases();
  if (builder.hasErrors())
    return;
  auto needed = findNeeded();
  checkMutations();
  for (const Node &node : graph.nodes) {
    if (findTarget(node.target).isCheck)
      importAssertion(node);
    if (!needed.contains(&node) || !computes(node))
      continue;
    if (options.progress)
      options.progress(node.module.empty() ? node.target : node.module,
                       node.target);
    importNode(node);
  }
  std::vector<Output> outputs = readOutputs();
  if (!builder.hasErrors())
    builder.end(outputs);
}
