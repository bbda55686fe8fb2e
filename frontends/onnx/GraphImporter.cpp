#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using ::onnx::NodeProto;
using ::onnx::TypeProto;

// Reports.

void GraphImporter::report(Problem problem) {
  Diagnostic diagnostic;
  diagnostic.file = file;
  diagnostic.what = std::move(problem.what);
  diagnostic.remedy = std::move(problem.remedy);
  diagnostics.push_back(std::move(diagnostic));
}

bool GraphImporter::hasErrors() const {
  return llvm::any_of(diagnostics, [](const Diagnostic &d) {
    return d.severity == Diagnostic::Severity::Error;
  });
}

mlir::Location GraphImporter::locate(const Frame &frame) {
  auto &builder = emitter.getBuilder();
  std::optional<mlir::Location> location;
  for (const Frame *f = &frame; f; f = f->parent) {
    auto op = builder.getStringAttr(f->node->op_type());
    auto name = builder.getStringAttr(displayName(*f->node));
    mlir::Location inner =
        location ? mlir::NameLoc::get(op, *location) : mlir::NameLoc::get(op);
    location = mlir::NameLoc::get(name, inner);
  }
  return *location;
}

// Names.

void GraphImporter::addInitializers(::onnx::GraphProto &graph, Scope &scope) {
  auto add = [&](const std::string &name, auto &map, auto *tensor) {
    bool isNew = !name.empty() && !scope.tensors.count(name) &&
                 !scope.sparse.count(name);
    if (isNew && replacements)
      replacements->know(name);
    if (isNew)
      map[name] = tensor;
    else
      report({name.empty()
                  ? "an initializer has no name"
                  : "initializer '" + printable(name) + "' is defined twice",
              "export the model again"});
  };
  for (auto &tensor : *graph.mutable_initializer())
    add(tensor.name(), scope.tensors, &tensor);
  for (auto &tensor : *graph.mutable_sparse_initializer())
    add(tensor.values().name(), scope.sparse, &tensor);
}

Binding GraphImporter::toBinding(const std::optional<TensorData> &data,
                                 const std::string &name,
                                 const Problem &problem) {
  Binding binding;
  if (data) {
    binding.value = materialize(*data, name, emitter);
  } else {
    report(
        {"tensor '" + printable(name) + "' " + problem.what, problem.remedy});
    binding.tainted = true;
  }
  return binding;
}

/// What another file has instead of a tensor of that type, whose own contents
/// need not be there then.
std::optional<TensorData> GraphImporter::replaced(const std::string &name,
                                                  mlir::RankedTensorType type) {
  return replacements && type ? replacements->find(name, type) : std::nullopt;
}

template <typename Tensor>
static llvm::SmallVector<int64_t> dimsOf(const Tensor &tensor) {
  return {tensor.dims().begin(), tensor.dims().end()};
}

const Binding *GraphImporter::lookup(const std::string &name, Scope &scope,
                                     const Frame *frame) {
  if (auto it = scope.values.find(name); it != scope.values.end())
    return &it->second;
  Problem problem;
  std::optional<TensorData> data;
  int narrow = 0;
  bool isSparse = scope.sparse.count(name);
  if (auto it = scope.tensors.find(name); it != scope.tensors.end()) {
    // The message may be moved from.
    narrow = narrowType(it->second->data_type());
    data =
        replaced(name, storedType(it->second->data_type(), dimsOf(*it->second),
                                  emitter.getContext()));
    if (!data)
      data = readTensor(*it->second, scope.mayTake, files, emitter.getContext(),
                        problem);
  } else if (isSparse) {
    narrow = narrowType(scope.sparse[name]->values().data_type());
    ::onnx::SparseTensorProto &sparse = *scope.sparse[name];
    data = replaced(name, storedType(sparse.values().data_type(),
                                     dimsOf(sparse), emitter.getContext()));
    if (!data)
      data = readSparse(sparse, files, emitter.getContext(), problem);
  } else {
    return scope.parent ? lookup(name, *scope.parent, frame) : nullptr;
  }
  auto &builder = emitter.getBuilder();
  emitter.begin(mlir::NameLoc::get(builder.getStringAttr(name)));
  Binding &binding = scope.values[name] = toBinding(data, name, problem);
  binding.narrow = narrow;
  return &binding;
}

void GraphImporter::addFunctions(
    const google::protobuf::RepeatedPtrField<::onnx::FunctionProto> &list) {
  for (const auto &function : list) {
    std::string key = normalDomain(function.domain()) + "::" + function.name() +
                      "::" + function.overload();
    if (!functions.emplace(key, &function).second)
      report({"function '" + printable(function.name()) + "' of domain '" +
                  printable(function.domain()) + "' is defined twice",
              "export the model again"});
  }
}

// Nodes.

bool GraphImporter::importNodes(Nodes &nodes,
                                const std::vector<std::string> &roots,
                                Scope &scope, const Frame *frame) {
  auto isOuter = [&](const std::string &name) {
    for (Scope *s = &scope; s; s = s->parent)
      if (s->values.count(name) || s->tensors.count(name) ||
          s->sparse.count(name))
        return true;
    return false;
  };
  Order order = orderNodes(nodes, roots, isOuter);
  if (!order.error.empty()) {
    Problem problem{order.error, "export the model again"};
    frame ? report(*frame, problem) : report(problem);
    return false;
  }
  if (frame)
    keepOrdered(nodes, order);
  for (int i : order.nodes) {
    if (frame && failed(emitter.writeOut(1)))
      return false;
    if (!frame && progress)
      progress(displayName(nodes[i]), nodes[i].op_type());
    importNode(nodes[i], order.used, scope, frame);
  }
  return true;
}

std::vector<TypeProto>
GraphImporter::typesOf(const std::vector<Binding> &inputs) {
  std::vector<TypeProto> types;
  for (const Binding &input : inputs) {
    types.push_back(input.value ? typeProto(input.value.getType(),
                                            emitter.getSymbols().list())
                                : input.type);
    if (input.narrow)
      types.back().mutable_tensor_type()->set_elem_type(input.narrow);
    if (input.sequence)
      types.back()
          .mutable_sequence_type()
          ->mutable_elem_type()
          ->mutable_tensor_type()
          ->set_elem_type(dataTypeOf(input.element));
  }
  return types;
}

static std::string describeType(const Binding &binding, Emitter &emitter) {
  if (binding.sequence && (binding.growsAs || !binding.stacked.empty()))
    return "a sequence of open length";
  if (binding.sequence)
    return "a sequence of " + std::to_string(binding.sequence->size()) +
           " tensors";
  if (binding.value) {
    std::string text = emitter.describe(binding.value.getType());
    return binding.narrow
               ? dataTypeName(binding.narrow) +
                     text.substr(std::min(text.find('['), text.size()))
               : text;
  }
  if (binding.type.has_tensor_type())
    return dataTypeName(binding.type.tensor_type().elem_type()) +
           " of unknown shape";
  return "unknown";
}

/// Whether an If takes its first branch, if that is known.
static std::optional<bool> branchOf(const NodeProto &node,
                                    llvm::ArrayRef<Binding> inputs,
                                    Emitter &emitter) {
  if (node.op_type() != "If" || inputs.empty() || !inputs[0].value)
    return std::nullopt;
  auto known = emitter.evaluate(inputs[0].value).constants();
  return known && known->size() == 1 ? std::optional(known->front() != 0)
                                     : std::nullopt;
}

void GraphImporter::importNode(NodeProto &node,
                               const std::set<std::string> &used, Scope &scope,
                               const Frame *parent) {
  Frame frame{parent, &node, 0, {}};
  auto domain = scope.opsets.find(normalDomain(node.domain()));
  frame.version = domain == scope.opsets.end() ? 0 : domain->second;
  std::vector<Binding> inputs;
  bool complete = true, tainted = false;
  for (const std::string &name : node.input()) {
    Binding binding;
    const Binding *known = name.empty() ? nullptr : lookup(name, scope, &frame);
    if (known)
      binding = *known;
    else if (name.empty())
      binding.absent = true;
    else {
      report(frame, {"input '" + printable(name) + "' is not defined anywhere",
                     "export the model again"});
      binding.tainted = true;
    }
    complete &= binding.isBuilt() || binding.absent;
    tainted |= binding.tainted;
    if (!binding.absent)
      frame.inputs.push_back(printable(name) + ": " +
                             describeType(binding, emitter));
    inputs.push_back(std::move(binding));
  }
  SmallVector<bool> wanted;
  for (const std::string &name : node.output())
    wanted.push_back(!name.empty() && used.count(name));
  emitter.begin(locate(frame));
  for (const Binding &input : inputs) {
    emitter.follow(input.value);
    for (mlir::Value part : input.sequence.value_or(std::vector<mlir::Value>()))
      emitter.follow(part);
    for (mlir::Value part : input.stacked)
      emitter.follow(part);
  }
  std::vector<Binding> results(node.output_size());
  // Behind a failed node only what its operands' absence cannot have caused is
  // reported: an operator that is not supported at all.
  Operator op = Operator::find(node.op_type(), frame.version, node.domain());
  bool isSupported = isKnown(node, op);
  bool ok = false;
  if (complete || !isSupported)
    ok = succeeded(importResults(node, inputs, wanted, scope, frame, results));
  if (!ok) {
    if (!tainted || !isSupported)
      if (auto &problem = emitter.getProblem())
        report(frame, *problem);
    if (isSupported && !parent)
      reportInside(frame, scope.opsets, branchOf(node, inputs, emitter));
    results = placeholders(node, parent);
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    results[i].tainted |= tainted || !ok;
    scope.values[node.output(i)] = std::move(results[i]);
  }
  if (ok && !tainted && !parent)
    checkDeclared(node, frame, scope);
}

LogicalResult GraphImporter::importResults(NodeProto &node,
                                           const std::vector<Binding> &inputs,
                                           const SmallVector<bool> &wanted,
                                           Scope &scope, const Frame &frame,
                                           std::vector<Binding> &results) {
  std::string domain = normalDomain(node.domain());
  std::string shown = (domain.empty() ? "" : printable(domain) + ".") +
                      printable(node.op_type());
  Operator op = frame.version
                    ? Operator::find(node.op_type(), frame.version, domain)
                    : Operator::find("", 0, "");
  const Row *row =
      op ? findRow(domain, node.op_type(), op.sinceVersion()) : nullptr;
  if (auto *function = calledFunction(node, scope.opsets)) {
    // What is too much is told before it is built.
    if (failed(emitter.checkWriteOut(leastNodes(*function, wanted))))
      return llvm::failure();
    return importFunction(*function, node, inputs, wanted, frame, results);
  }
  if (auto unknown = unknownOperator(node, op, frame.version))
    return emitter.fail(unknown->what, unknown->remedy);
  if (op.isDeprecated() && !row)
    return emitter.fail("operator " + shown + " is deprecated in opset " +
                            Twine(frame.version),
                        "export with a newer opset");
  if (std::string error = op.checkNode(node); !error.empty())
    return emitter.fail(printable(error, 400), "export the model again");
  llvm::StringRef name = node.op_type();
  // An optional value is what it holds, whose type is another.
  bool isOptional = domain.empty() && name.starts_with("Optional");
  std::vector<TypeProto> types = typesOf(inputs);
  if (std::string error = isOptional ? "" : op.checkTypes(node, types);
      !error.empty())
    return emitter.fail(printable(error, 400), "export the model again");
  if (failed(checkInputs(node, domain, inputs)))
    return llvm::failure();
  op.addDefaults(node);
  if (isOptional)
    return importOptional(node, inputs, results);
  if (name == "Identity" && inputs[0].sequence) {
    results[0] = inputs[0];
    return llvm::success();
  }
  if (row && !row->import)
    return name == "If"     ? importIf(node, inputs, scope, frame, results)
           : name == "Scan" ? importScan(node, inputs, scope, frame, results)
           : name == "Loop" ? importLoop(node, inputs, scope, frame, results)
           : name == "Constant" ? importConstant(node, scope, results)
                                : importSequence(node, inputs, results);
  bool expand = !row;
  if (row && succeeded(importRow(*row, op, node, inputs, wanted, frame, results,
                                 expand)))
    return llvm::success();
  if (!expand)
    return llvm::failure();
  std::string error;
  auto standard = scope.opsets.find("");
  int defaultVersion =
      standard == scope.opsets.end() ? newestVersion("") : standard->second;
  auto body =
      op.functionBody(node, frame.version, defaultVersion, types, error);
  if (!body) {
    Problem problem = unsupportedOperator(
        node, (row ? " with these attributes and inputs" : "") +
                  (error.empty() ? "" : " (" + printable(error) + ")"));
    return emitter.fail(problem.what, problem.remedy);
  }
  return importFunction(*body, node, inputs, wanted, frame, results);
}

/// Operators that give elements of less than 8 bits on as they are.
static bool movesElements(llvm::StringRef op) {
  return llvm::is_contained(
      {"Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"},
      op);
}

LogicalResult GraphImporter::checkInputs(const NodeProto &node,
                                         const std::string &domain,
                                         const std::vector<Binding> &inputs) {
  llvm::StringRef op = node.op_type();
  bool takesSequences =
      domain.empty() && (op.contains("Sequence") || op == "Identity" ||
                         op == "Loop" || op.starts_with("Optional"));
  // ONNX Runtime's own quantization differs in its versions alone.
  bool quantizes = op == "DequantizeLinear" || op == "QuantizeLinear" ||
                   op == "GatherBlockQuantized";
  bool takesNarrow =
      quantizes || (domain.empty() && (op == "Cast" || movesElements(op)));
  for (const Binding &input : inputs) {
    if (input.sequence && !takesSequences)
      return emitter.fail("a sequence is not supported here",
                          "export the model without sequences: as a Concat of "
                          "the tensors, or as separate values");
    if (input.narrow && !takesNarrow)
      return emitter.fail(
          "elements of type " + dataTypeName(input.narrow) +
              " are not supported here: constants of less than 8 bits may be "
              "dequantized (DequantizeLinear) or cast",
          "cast them to integers of 8 bits before");
  }
  return llvm::success();
}

LogicalResult
GraphImporter::importRow(const Row &row, const Operator &op, NodeProto &node,
                         const std::vector<Binding> &inputs,
                         const SmallVector<bool> &wanted, const Frame &frame,
                         std::vector<Binding> &results, bool &expand) {
  Values values;
  SmallVector<int> narrow;
  for (const Binding &input : inputs) {
    values.push_back(input.value);
    narrow.push_back(input.narrow);
  }
  Node view(emitter, node, op.sinceVersion(), std::move(values), wanted,
            std::move(narrow));
  LogicalResult result = row.import(view, emitter);
  expand = view.wantsExpansion() && !emitter.failed();
  if (failed(result) || emitter.failed()) {
    if (!expand)
      emitter.fail("cannot be imported");
    return llvm::failure();
  }
  for (auto [i, value] : llvm::enumerate(view.getResults()))
    results[i].value = value;
  if (auto note = emitter.takeNote()) {
    Diagnostic diagnostic;
    diagnostic.severity = Diagnostic::Severity::Note;
    diagnostic.file = file;
    diagnostic.node = displayName(node);
    diagnostic.op = node.op_type();
    diagnostic.domain = normalDomain(node.domain());
    diagnostic.version = frame.version;
    diagnostic.what = std::move(*note);
    diagnostics.push_back(std::move(diagnostic));
  }
  if (movesElements(node.op_type()) && !inputs.empty())
    results[0].narrow = inputs[0].narrow;
  else if (view.getNarrowResult())
    results[0].narrow = view.getNarrowResult();
  return llvm::success();
}

std::vector<Binding> GraphImporter::placeholders(const NodeProto &node,
                                                 const Frame *parent) {
  std::vector<Binding> results(node.output_size());
  for (int i = 0; i < node.output_size() && !parent; ++i) {
    auto it = declared.find(node.output(i));
    if (it == declared.end())
      continue;
    results[i].type = *it->second;
    if (!it->second->tensor_type().has_shape())
      continue;
    const auto &tensor = it->second->tensor_type();
    mlir::Type element = elementType(tensor.elem_type(), emitter.getContext());
    Exprs dims;
    for (const auto &dim : tensor.shape().dim()) {
      if (dim.has_dim_value() && dim.dim_value() >= 0)
        dims.push_back(emitter.number(dim.dim_value()));
      for (auto [s, symbol] : llvm::enumerate(emitter.getSymbols().list()))
        if (dim.has_dim_param() && symbol.name == dim.dim_param())
          dims.push_back(mlir::getAffineSymbolExpr(s, emitter.getContext()));
    }
    if (!element || static_cast<int>(dims.size()) != tensor.shape().dim_size())
      continue;
    auto unknown = emitter.getBuilder().getUnknownLoc();
    emitter.begin(unknown);
    if (auto type = emitter.type(dims, element))
      results[i].value = scratch.addArgument(type, unknown);
  }
  return results;
}

// Declared types.

Contradiction charonia::frontend::onnx::contradiction(const TypeProto &declared,
                                                      mlir::Type type,
                                                      Emitter &emitter) {
  if (!declared.has_tensor_type()) {
    if (declared.value_case() == TypeProto::VALUE_NOT_SET)
      return {};
    return {"is declared as no tensor"};
  }
  const auto &tensor = declared.tensor_type();
  std::string actual = emitter.describe(type);
  if (tensor.elem_type() &&
      tensor.elem_type() != dataTypeOf(mlir::getElementTypeOrSelf(type)))
    return {"is declared as " + dataTypeName(tensor.elem_type()) + ", but is " +
            actual};
  if (!tensor.has_shape())
    return {};
  Exprs shape = graph::getShape(type);
  if (tensor.shape().dim_size() != static_cast<int>(shape.size()))
    return {"is declared with " + std::to_string(tensor.shape().dim_size()) +
            " dimensions, but is " + actual};
  for (auto [i, dim] : llvm::enumerate(tensor.shape().dim())) {
    auto known = graph::constantOf(shape[i]);
    if (known && dim.has_dim_value() && dim.dim_value() >= 0 &&
        dim.dim_value() != *known)
      return {"is declared with size " + std::to_string(dim.dim_value()) +
                  " in dimension " + std::to_string(i) + ", but is " + actual,
              /*ofSize=*/true};
  }
  return {};
}

void GraphImporter::checkDeclared(const NodeProto &node, const Frame &frame,
                                  Scope &scope) {
  for (const std::string &name : node.output()) {
    auto it = declared.find(name);
    const Binding &binding = scope.values[name];
    if (name.empty() || it == declared.end() || !binding.value ||
        binding.narrow)
      continue;
    auto wrong = contradiction(*it->second, binding.value.getType(), emitter);
    if (!wrong)
      continue;
    Diagnostic diagnostic;
    diagnostic.severity = Diagnostic::Severity::Warning;
    diagnostic.file = file;
    diagnostic.node = displayName(node);
    diagnostic.op = node.op_type();
    diagnostic.domain = normalDomain(node.domain());
    diagnostic.version = frame.version;
    diagnostic.what = "output '" + printable(name) + "' " + wrong.text;
    diagnostics.push_back(std::move(diagnostic));
  }
}
