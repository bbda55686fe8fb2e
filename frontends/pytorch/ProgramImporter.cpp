#include "frontends/pytorch/ProgramImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::StringRef;

/// Views of views: deeper chains no program has.
constexpr int maxViewDepth = 256;

ProgramImporter::ProgramImporter(const Program &program, Weights &weights,
                                 const ImportOptions &options,
                                 ModuleBuilder &builder)
    : program(program), graph(program.graph), weights(weights),
      options(options), builder(builder), emitter(builder.getEmitter()),
      sizes(builder.getSymbols(), builder.getContext()) {}

static const Argument *findArgument(const Node &node, StringRef name) {
  for (const NamedArgument &input : node.inputs)
    if (input.name == name)
      return &input.value;
  return nullptr;
}

/// Calls `visit` with each name of a tensor in an argument.
static void forEachTensor(const Argument &argument,
                          llvm::function_ref<void(const std::string &)> visit) {
  if (argument.kind == Kind::Tensor)
    visit(argument.text);
  for (const Argument &item : argument.items)
    forEachTensor(item, visit);
}
static bool computesTensors(const Node &node) {
  bool found = false;
  for (const Argument &output : node.outputs)
    forEachTensor(output, [&](const std::string &) { found = true; });
  return found;
}

// Names.

ProgramImporter::Entry *ProgramImporter::find(StringRef name) {
  auto it = entries.find(name);
  return it == entries.end() ? nullptr : &it->second;
}
const TensorMeta *ProgramImporter::metaOf(StringRef name) const {
  auto it = graph.tensors.find(name);
  return it == graph.tensors.end() ? nullptr : &it->second;
}
mlir::AffineExpr ProgramImporter::sizeOf(StringRef name) {
  auto it = graph.integers.find(name);
  return it == graph.integers.end() ? mlir::AffineExpr()
                                    : sizes.convert(it->second);
}
Exprs ProgramImporter::shapeOf(const TensorMeta &meta) {
  return sizes.convert(meta.sizes);
}

mlir::Value ProgramImporter::valueOf(StringRef name) {
  Entry *entry = find(name);
  if (!entry)
    return emitter.fail("tensor '" + printable(name.str()) +
                            "' is not defined before it is used",
                        "export the program again");
  if (!entry->value && !entry->node && stored.count(name)) {
    // Weights become values when they are first used.
    const InputSpec &spec = *stored[name];
    Problem problem;
    entry->value = weights.load(spec.target, emitter, problem);
    if (!entry->value && !emitter.failed())
      return emitter.fail("tensor '" + printable(spec.target) + "' " +
                              problem.what,
                          problem.remedy);
  }
  if (entry->isStale) {
    Target target = findTarget(entry->node->target);
    if (target.inPlace) {
      entry->value = valueOf(entry->base);
    } else {
      Call call(emitter, *entry->node, *this);
      entry->value = succeeded(target.row->import(call))
                         ? call.getResults()[entry->result]
                         : mlir::Value();
    }
    entry->isStale = false;
  }
  if (!entry->value && !emitter.failed())
    return emitter.fail("tensor '" + printable(name.str()) +
                            "' is used before it is computed",
                        "export the program again");
  return entry->value;
}

// What shares memory, and what is needed.

void ProgramImporter::addAliases(const Node &node) {
  Target target = findTarget(node.target);
  const Argument *self = findArgument(node, "self");
  if (!self)
    self = findArgument(node, "input");
  bool shares = target.row && self && self->kind == Kind::Tensor &&
                (target.inPlace || target.row->alias != Alias::No);
  unsigned result = 0;
  for (const Argument &output : node.outputs)
    forEachTensor(output, [&](const std::string &name) {
      Entry entry;
      entry.node = &node;
      entry.result = result++;
      if (shares && self->text != name && find(self->text)) {
        entry.base = self->text;
        entry.depth = find(self->text)->depth + 1;
        if (entry.depth == maxViewDepth)
          builder.fail("tensor '" + printable(name) + "' is the last of " +
                           std::to_string(maxViewDepth) + " views of views",
                       "export a program with fewer of them, or with "
                       "run_decompositions()");
        entry.maybe = !target.inPlace && target.row->alias == Alias::Maybe;
        find(self->text)->views.push_back(name);
      }
      if (!entries.try_emplace(name, std::move(entry)).second) {
        builder.fail("tensor '" + printable(name) + "' is defined twice",
                     "export the program again");
      }
    });
}

void ProgramImporter::findAliases() {
  for (const Node &node : graph.nodes)
    addAliases(node);
}

std::string ProgramImporter::rootOf(StringRef name) const {
  std::string root = name.str();
  for (auto it = entries.find(root);
       it != entries.end() && !it->second.base.empty(); it = entries.find(root))
    root = it->second.base;
  return root;
}

/// Nodes that outputs depend on: those that compute what is read, and those
/// that write to memory that is read later.
llvm::DenseSet<const Node *> ProgramImporter::findNeeded() {
  llvm::DenseSet<const Node *> needed;
  llvm::StringSet<> memory;
  auto need = [&](const std::string &name) {
    wanted.insert(name);
    memory.insert(rootOf(name));
  };
  for (const OutputSpec &output : program.outputs)
    if (output.kind == OutputSpec::Kind::User)
      forEachTensor(output.value, need);
  for (const Node &node : llvm::reverse(graph.nodes)) {
    bool isNeeded = false;
    for (const Argument &output : node.outputs)
      forEachTensor(output, [&](const std::string &name) {
        isNeeded |= wanted.contains(name);
      });
    if (const Argument *self = findArgument(node, "self");
        self && self->kind == Kind::Tensor && findTarget(node.target).inPlace)
      isNeeded |= memory.contains(rootOf(self->text));
    if (!isNeeded)
      continue;
    needed.insert(&node);
    for (const NamedArgument &input : node.inputs)
      forEachTensor(input.value, need);
  }
  return needed;
}

// Nodes.

/// The module that the node is in; the name of its result outside of any.
static std::string displayName(const Node &node) {
  std::string name = node.module;
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

/// Whether the file's type of a result is that of its value.
void ProgramImporter::checkResult(const Node &node, unsigned i, StringRef name,
                                  mlir::Value value) {
  const TensorMeta *meta = metaOf(name);
  if (!meta || !value)
    return;
  mlir::Type element = elementType(meta->dtype, emitter.getContext());
  Exprs actual = graph::getShape(value), stated = shapeOf(*meta);
  bool agrees = element == elementOf(value) && actual.size() == stated.size();
  for (size_t d = 0; agrees && d < actual.size(); ++d)
    agrees = !stated[d] || graph::mayBeEqual(actual[d], stated[d]);
  if (agrees)
    return;
  std::string text = dtypeName(meta->dtype) + "[";
  for (auto [d, size] : llvm::enumerate(stated))
    text += (d ? ", " : "") + (size ? emitter.getSymbols().toString(size)
                                    : meta->sizes[d]->toString());
  emitter.fail("gives " + emitter.describe(value.getType()) + " for result " +
                   llvm::Twine(i) + ", but the file says " + text + "]",
               "the file is damaged, or this is a fault of charonia's row for "
               "the operator: please report it with the model");
}

llvm::LogicalResult ProgramImporter::importResults(const Node &node,
                                                   const Target &target,
                                                   Call &call) {
  if (!target.row) {
    StringRef op = node.target;
    op.consume_front("torch.ops.");
    bool isCustom =
        node.target.find("torch.ops.") == 0 && !op.starts_with("aten.");
    return emitter.fail(
        "operator " + printable(op.str()) + " is not supported" +
            (isCustom ? ": it is of namespace '" +
                            printable(op.split('.').first.str()) + "'"
                      : std::string()),
        isCustom ? "replace it by operators of PyTorch, or register a "
                   "decomposition and export with run_decompositions()"
                 : "try program.run_decompositions() before saving, or replace "
                   "it in the model");
  }
  if (failed(target.row->import(call)) || emitter.failed()) {
    emitter.fail("cannot be imported");
    return llvm::failure();
  }
  for (auto [i, name] : llvm::enumerate(call.getOutputs())) {
    Entry *entry = find(name);
    if (!entry || !wanted.contains(name))
      continue;
    if (i >= call.getResults().size())
      return emitter.fail("result " + llvm::Twine(i) + " is not supported",
                          "export the model so that it does not use it");
    entry->value = call.getResults()[i];
    entry->isStale = false;
    if (!entry->value)
      return emitter.fail("cannot be imported");
    if (metaOf(name))
      checkResult(node, i, name, entry->value);
  }
  if (!emitter.failed() && target.inPlace)
    return write(node, call.getResults().front());
  return llvm::failure(emitter.failed());
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
  Call call(emitter, node, *this);
  bool good = !(isTainted && target.row) &&
              succeeded(importResults(node, target, call));
  if (good)
    return;
  // Behind a failed node only what it cannot have caused is reported: an
  // operator that is not supported at all.
  if (!isTainted || !target.row)
    report(node);
  for (const std::string &name : call.getOutputs())
    if (Entry *entry = find(name)) {
      entry->value = {};
      entry->isTainted = true;
    }
  if (target.inPlace)
    if (const Argument *self = findArgument(node, "self"))
      if (Entry *entry = find(rootOf(self->text)))
        entry->isTainted = true;
}

// Writes.

/// Whether the strides are those of row-major order, as far as can be told.
bool ProgramImporter::isContiguous(const TensorMeta &meta) {
  Exprs shape = shapeOf(meta), strides = sizes.convert(meta.strides);
  if (shape.size() != strides.size())
    return false;
  mlir::AffineExpr expected = emitter.number(1);
  for (auto [size, stride] : llvm::reverse(llvm::zip_equal(shape, strides))) {
    if (!size || !stride)
      return false;
    if (graph::constantOf(size) == 1)
      continue;
    if (graph::simplify(stride - expected) != 0)
      return false;
    expected = graph::simplify(expected * size);
  }
  return true;
}

/// Whether the entry shares memory with its base; none where one cannot tell.
std::optional<bool> ProgramImporter::isView(const Entry &entry,
                                            StringRef name) {
  if (!entry.maybe)
    return true;
  const TensorMeta *meta = metaOf(name), *base = metaOf(entry.base);
  if (meta && base && meta->dtype != base->dtype)
    return false;
  if (meta && base && isContiguous(*meta) && isContiguous(*base))
    return true;
  return std::nullopt;
}

/// Fails where a write may be seen through a name that only may be a view.
Failed ProgramImporter::failMaybe(StringRef name) {
  return emitter.fail("writes in place to memory of which '" +
                          printable(name.str()) +
                          "' is a view or a copy, depending on strides",
                      "write without in-place operators there, or export with "
                      "run_decompositions()");
}

void ProgramImporter::markStale(const Entry &entry, const Entry *except) {
  for (const std::string &name : entry.views) {
    Entry *view = find(name);
    // A name that is not computed yet will see what is written.
    if (!view || view == except || !view->value)
      continue;
    std::optional<bool> shares = isView(*view, name);
    if (!shares)
      failMaybe(name);
    if (!shares || !*shares)
      continue;
    view->isStale = true;
    markStale(*view, except);
  }
}

/// Replaces the value of an entry and, through the views that lead to it, of
/// the memory that it shares. Gives that memory's owner's value.
mlir::Value ProgramImporter::writeThrough(Entry &entry, mlir::Value value) {
  entry.value = value;
  entry.isStale = false;
  if (entry.base.empty())
    return value;
  Entry &base = *find(entry.base);
  Target target = findTarget(entry.node->target);
  if (target.inPlace)
    return writeThrough(base, value);
  if (entry.maybe && !isView(base, entry.base).value_or(false) && base.maybe)
    return failMaybe(entry.base);
  mlir::Value before = valueOf(entry.base);
  if (!target.row->write)
    return emitter.fail("writes in place to a view made by " +
                            printable(entry.node->target) +
                            ", which is not supported",
                        "write without in-place operators there, or export "
                        "with run_decompositions()");
  Call call(emitter, *entry.node, *this);
  mlir::Value after = target.row->write(call, before, value);
  return after ? writeThrough(base, after) : mlir::Value();
}

llvm::LogicalResult ProgramImporter::write(const Node &node,
                                           mlir::Value value) {
  const Argument *self = findArgument(node, "self");
  Entry *entry = self ? find(self->text) : nullptr;
  if (!entry || !value)
    return emitter.fail("writes to no tensor", "export the program again");
  std::string rootName = rootOf(self->text);
  if (auto it = stored.find(rootName); it != stored.end())
    return emitter.fail(
        "changes '" + printable(it->second->target) +
            "' of the model, which an engine keeps as it is",
        "make it an input of the exported function, and its new value an "
        "output");
  std::optional<bool> shares =
      entry->base.empty() ? true : isView(*entry, self->text);
  if (!shares)
    return failMaybe(self->text);
  if (!*shares)
    entry->base.clear();
  Entry &root = *find(rootOf(self->text));
  if (!writeThrough(*entry, value))
    return llvm::failure();
  markStale(root, entry);
  entry->isStale = false;
  return llvm::failure(emitter.failed());
}

// The interface.

bool ProgramImporter::checkSignature() {
  if (program.inputs.size() != graph.inputs.size()) {
    builder.fail("the signature has " + std::to_string(program.inputs.size()) +
                     " inputs, the graph " +
                     std::to_string(graph.inputs.size()),
                 "the file is damaged: export the program again");
    return false;
  }
  for (auto [spec, argument] : llvm::zip_equal(program.inputs, graph.inputs)) {
    if (spec.kind == InputSpec::Kind::Fixed)
      continue;
    std::string name = argument.text;
    if (spec.kind == InputSpec::Kind::Object)
      builder.fail("input '" + printable(spec.target) +
                       "' is an object of a class of its own, which is not "
                       "supported",
                   "export the model with plain tensors");
    else if (argument.kind != Kind::Tensor)
      builder.fail("input '" + printable(name) +
                       "' is a number that may change, only tensors are "
                       "supported",
                   "fix it when exporting, or give it as a tensor");
    else if (!entries.try_emplace(name).second)
      builder.fail("tensor '" + printable(name) + "' is defined twice",
                   "export the program again");
    else if (spec.kind != InputSpec::Kind::User)
      stored[name] = &spec;
  }
  return !builder.hasErrors();
}

ModelDim ProgramImporter::dimOf(const ExpressionPtr &size,
                                const std::string &name) {
  ModelDim dim;
  if (auto fixed = integerOf(size)) {
    dim.size = fixed;
    return dim;
  }
  dim.name = name;
  if (size->head != "Symbol")
    return dim;
  dim.name = dimNames.try_emplace(size->name, name).first->second;
  auto it = program.ranges.find(size->name);
  if (it == program.ranges.end())
    return dim;
  // Sizes of 0 are not optimized for.
  int64_t low = std::max<int64_t>(it->second.min.value_or(1), 1);
  DimRange range = defaultRange(StringRef(name).ends_with("_dim0"));
  range.max =
      std::min(std::max(low, it->second.max.value_or(std::max(range.max, low))),
               maxDimension);
  range.min = std::min(low, range.max);
  range.opt = std::clamp(range.opt, range.min, range.max);
  (it->second.max ? dim.range : dim.assumed) = range;
  return dim;
}

std::vector<ModelInput>
ProgramImporter::userInputs(std::vector<unsigned> &positions) {
  std::vector<ModelInput> inputs;
  for (auto [i, argument] : llvm::enumerate(graph.inputs)) {
    if (program.inputs[i].kind != InputSpec::Kind::User)
      continue;
    ModelInput input;
    input.name = argument.text;
    positions.push_back(i);
    const TensorMeta *meta = metaOf(argument.text);
    if (!meta) {
      input.problem = {"the file does not say what it is",
                       "export the program again"};
    } else {
      input.element = elementType(meta->dtype, builder.getContext());
      if (!input.element)
        input.problem = {"element type " + dtypeName(meta->dtype) +
                             " is not supported",
                         "float32, float64, float16, bfloat16, bool and "
                         "integers of 8 to 64 bits are"};
      input.dims.emplace();
      for (auto [d, size] : llvm::enumerate(meta->sizes))
        input.dims->push_back(
            dimOf(size, input.name + "_dim" + std::to_string(d)));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// The value of `size` as slope * symbol + offset of its only symbol, which
/// nothing is known of yet.
static std::optional<std::pair<int64_t, int64_t>>
linearIn(const ExpressionPtr &size, StringRef symbol, Symbols &symbols,
         mlir::MLIRContext *context) {
  int64_t values[3];
  for (int64_t at : {0, 1, 2}) {
    Sizes trial(symbols, context);
    trial.bind(symbol, mlir::getAffineConstantExpr(at, context));
    mlir::AffineExpr value = trial.convert(size);
    auto known = value ? graph::constantOf(value) : std::nullopt;
    if (!known)
      return std::nullopt;
    values[at] = *known;
  }
  int64_t slope = values[1] - values[0];
  if (slope <= 0 || values[2] - values[1] != slope)
    return std::nullopt;
  return std::pair(slope, values[0]);
}

static void collectSymbols(const Expression &size, llvm::StringSet<> &names) {
  if (size.head == "Symbol")
    names.insert(size.name);
  for (const ExpressionPtr &operand : size.operands)
    collectSymbols(*operand, names);
}

/// Binds the symbols of the file to sizes of inputs. A dimension that is an
/// expression of others has to have its value; where it is all that is known of
/// a symbol, it gives the symbol.
void ProgramImporter::bindSymbols(llvm::ArrayRef<Input> inputs,
                                  llvm::ArrayRef<unsigned> positions) {
  auto forEachDim = [&](auto visit) {
    for (auto [input, position] : llvm::zip_equal(inputs, positions)) {
      const TensorMeta &meta = *metaOf(graph.inputs[position].text);
      auto &b = emitter.getBuilder();
      emitter.begin(
          mlir::NameLoc::get(b.getStringAttr(input.name),
                             mlir::NameLoc::get(b.getStringAttr("input"))));
      for (auto [size, expr] :
           llvm::zip_equal(meta.sizes, graph::getShape(input.type)))
        visit(input, size, builder.getSymbols().resolve(expr));
    }
  };
  forEachDim(
      [&](const Input &, const ExpressionPtr &size, mlir::AffineExpr expr) {
        if (size->head == "Symbol" && !sizes.isBound(size->name))
          sizes.bind(size->name, expr);
      });
  forEachDim([&](const Input &input, const ExpressionPtr &size,
                 mlir::AffineExpr expr) {
    if (size->head == "Symbol" || integerOf(size))
      return;
    llvm::StringSet<> names;
    collectSymbols(*size, names);
    StringRef only = names.size() == 1 ? names.begin()->first() : "";
    if (!only.empty() && !sizes.isBound(only))
      if (auto linear =
              linearIn(size, only, builder.getSymbols(), builder.getContext()))
        sizes.bind(only, graph::simplify(
                             (expr - linear->second).floorDiv(linear->first)));
    mlir::AffineExpr value = sizes.convert(size);
    if (!value || !emitter.agree(expr, value, "is exported"))
      builder.fail("input '" + printable(input.name) + "': size " +
                       size->toString() + " is not supported",
                   "export the model with sizes of inputs that are fixed or "
                   "dynamic on their own");
  });
}

void ProgramImporter::importInputs() {
  std::vector<unsigned> positions;
  std::vector<Problem> problems;
  auto inputs = readInputs(userInputs(positions), options, builder.getSymbols(),
                           builder.getContext(), problems);
  for (Problem &problem : problems)
    builder.fail(std::move(problem.what), std::move(problem.remedy));
  builder.checkCounts(inputs.size(), program.outputs.size());
  if (builder.hasErrors())
    return;
  mlir::ValueRange arguments = builder.begin(inputs);
  bindSymbols(inputs, positions);
  for (auto [position, value] : llvm::zip_equal(positions, arguments))
    entries[graph.inputs[position].text].value = value;
}

std::vector<Output> ProgramImporter::readOutputs() {
  std::vector<Output> outputs;
  size_t count = llvm::count_if(program.outputs, [](const OutputSpec &spec) {
    return spec.kind == OutputSpec::Kind::User;
  });
  bool isNamed = program.outputNames.size() == count;
  llvm::StringSet<> names;
  if (isNamed)
    for (const std::string &name : program.outputNames)
      isNamed &= name.empty() || names.insert(name).second;
  size_t position = 0;
  for (const OutputSpec &spec : program.outputs) {
    if (spec.kind != OutputSpec::Kind::User)
      continue;
    std::string name = isNamed ? program.outputNames[position] : "";
    if (name.empty())
      name = "output_" + std::to_string(position);
    ++position;
    auto &b = emitter.getBuilder();
    emitter.begin(mlir::NameLoc::get(
        b.getStringAttr(name), mlir::NameLoc::get(b.getStringAttr("output"))));
    mlir::Value value;
    if (spec.value.kind == Kind::Tensor) {
      Entry *entry = find(spec.value.text);
      if (entry && entry->isTainted)
        continue;
      value = valueOf(spec.value.text);
    } else if (spec.value.kind == Kind::SymInt) {
      value = emitter.size(sizeOf(spec.value.text), b.getI64Type());
      if (!value)
        emitter.fail("is the size '" + printable(spec.value.text) +
                     "', which depends on data");
    } else {
      continue; // known when it was exported
    }
    if (value)
      outputs.push_back({name, value});
    else if (auto &problem = emitter.getProblem())
      builder.fail("output '" + printable(name) + "': " + problem->what,
                   problem->remedy);
  }
  if (outputs.empty() && !builder.hasErrors())
    builder.fail("the program has no outputs that are tensors",
                 "export a function that gives tensors");
  return outputs;
}

// The program.

void ProgramImporter::run() {
  if (!checkSignature())
    return;
  importInputs();
  if (builder.hasErrors())
    return;
  findAliases();
  if (builder.hasErrors())
    return;
  auto needed = findNeeded();
  for (const Node &node : graph.nodes) {
    if (!needed.contains(&node) || !computesTensors(node))
      continue;
    if (options.progress)
      options.progress(node.module.empty() ? node.target : node.module);
    importNode(node);
  }
  std::vector<Output> outputs = readOutputs();
  if (!builder.hasErrors())
    builder.end(outputs);
}
