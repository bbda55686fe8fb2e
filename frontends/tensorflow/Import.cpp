#include "frontends/tensorflow/Import.h"
#include "frontends/common/Inputs.h"
#include "frontends/tensorflow/GraphImporter.h"
#include "frontends/tensorflow/Stated.h"
#include "frontends/tensorflow/Text.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;

bool charonia::frontend::tensorflow::isModel(StringRef path,
                                             StringRef beginning) {
  StringRef extension = llvm::sys::path::extension(path);
  // ONNX's models begin with field 1, a number: the version of its format. A
  // graph does not, and a SavedModel's version is 1, which ONNX's was in 2017.
  bool isOnnx = beginning.size() > 1 && beginning[0] == 8 && beginning[1] != 1;
  return llvm::sys::fs::is_directory(path) || (extension == ".pb" && !isOnnx) ||
         extension == ".pbtxt" || extension == ".h5" || extension == ".keras" ||
         extension == ".tflite" || isCheckpoint(path) ||
         beginning.starts_with("\x89HDF") ||
         beginning.substr(4).starts_with("TFL3");
}

/// Inputs as the signature, or a placeholder, has them, but for those whose
/// type no engine can have.
static std::vector<ModelInput> inputsOf(const Model &model,
                                        mlir::MLIRContext *context) {
  std::vector<ModelInput> inputs;
  for (const Port &port : model.inputs()) {
    ModelInput input;
    input.name = port.name;
    input.element = elementType(port.dtype, context);
    if (!input.element)
      continue;
    if (port.shape && !port.shape->unknown_rank()) {
      input.dims.emplace();
      for (const auto &dim : port.shape->dims()) {
        ModelDim size;
        if (dim.size() != -1)
          size.size = dim.size();
        input.dims->push_back(size);
      }
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// Results by the names that the signature gives them.
static void addOutputs(const Model &model, Items items,
                       ModuleBuilder &builder) {
  std::vector<Output> outputs;
  for (auto [port, item] : llvm::zip(model.outputs(), items)) {
    if (item.tainted)
      continue;
    std::string other = contradiction(item.value, {port.dtype, port.shape},
                                      "the signature", builder.getEmitter());
    if (!other.empty())
      builder.fail("output '" + printable(port.name) + "' is " + other,
                   contradictionRemedy);
    else if (item.value)
      outputs.push_back({port.name, item.value});
    else
      builder.fail("output '" + printable(port.name) + "' is not a tensor",
                   "export a function that returns tensors");
  }
  if (!builder.hasErrors())
    builder.end(outputs);
}

/// What the node behind an input says of it, of a SavedModel.
static Stated statedInput(const Model &model, const Port &port) {
  const Body &graph = model.graph();
  auto it = graph.byName.find(parseReference(port.reference).node);
  Stated stated;
  if (!model.isSaved() || it == graph.byName.end() ||
      graph.nodes[it->second].op() != "Placeholder")
    return stated;
  const auto &attributes = graph.nodes[it->second].attributes();
  if (auto dtype = attributes.find("dtype"); dtype != attributes.end())
    stated.dtype = dtype->second.type();
  // Without dimensions it may be of any shape.
  if (auto shape = attributes.find("shape");
      shape != attributes.end() && shape->second.shape().dims_size())
    stated.shape = &shape->second.shape();
  return stated;
}

/// What inputs are in the graph. Of those without a value nobody complains
/// unless a result needs them.
static llvm::StringMap<Item> feed(const Model &model, mlir::ValueRange values,
                                  ModuleBuilder &builder) {
  llvm::StringMap<Item> fed;
  for (const Port &port : model.inputs()) {
    Item item;
    if (elementType(port.dtype, builder.getContext())) {
      item.value = values.front();
      values = values.drop_front();
      std::string other =
          contradiction(item.value, statedInput(model, port), "its placeholder",
                        builder.getEmitter());
      if (!other.empty())
        builder.fail("input '" + printable(port.name) + "' is " + other,
                     "the file is damaged: export the model again");
    } else {
      item.unsupported = &port;
      builder.add(Diagnostic::Severity::Note,
                  "input '" + printable(port.name) + "' is of " +
                      dtypeName(port.dtype) +
                      ", which engines do not have: it is left out");
    }
    fed[parseReference(port.reference).key()] = std::move(item);
  }
  return fed;
}

static void importGraph(Model &model, const ImportOptions &options,
                        ModuleBuilder &builder) {
  std::vector<Problem> problems;
  auto inputs =
      readInputs(inputsOf(model, builder.getContext()), options,
                 builder.getSymbols(), builder.getContext(), problems);
  for (Problem &problem : problems)
    builder.fail(std::move(problem.what), std::move(problem.remedy));
  builder.checkCounts(inputs.size(), model.outputs().size());
  if (builder.hasErrors())
    return;
  llvm::StringMap<Item> fed = feed(model, builder.begin(inputs), builder);
  if (builder.hasErrors())
    return;
  std::vector<std::string> outputs;
  for (const Port &port : model.outputs())
    outputs.push_back(port.reference);
  GraphImporter importer(model, builder.getEmitter(), builder.getFile(),
                         builder.getDiagnostics());
  importer.progress = options.progress;
  Items items = importer.importGraph(outputs, fed);
  if (!builder.hasErrors())
    addOutputs(model, std::move(items), builder);
}

static ImportResult import(std::unique_ptr<Model> model, StringRef name,
                           const Problem &problem, const ImportOptions &options,
                           mlir::MLIRContext &context) {
  if (!model)
    return failedImport(name, problem);
  ModuleBuilder builder(name, context);
  importGraph(*model, options, builder);
  return builder.take();
}

ImportResult charonia::frontend::tensorflow::importPath(
    StringRef path, const ImportOptions &options, mlir::MLIRContext &context) {
  Problem problem;
  auto model = Model::read(path, options, problem);
  return import(std::move(model), path, problem, options, context);
}

ImportResult charonia::frontend::importTensorFlowFiles(
    const std::map<std::string, std::string> &files, StringRef name,
    const ImportOptions &options, mlir::MLIRContext &context) {
  Problem problem;
  auto owned = std::make_shared<std::map<std::string, std::string>>(files);
  auto open = [owned](const std::string &file,
                      Problem &problem) -> std::optional<FileBytes> {
    auto it = owned->find("variables/" + file);
    if (it != owned->end())
      return FileBytes{{it->second.data(), it->second.size()}, owned};
    problem = {"its file 'variables/" + printable(file) + "' is not there", ""};
    return std::nullopt;
  };
  std::unique_ptr<Model> model;
  if (auto it = owned->find("saved_model.pb"); it != owned->end())
    model = Model::readSavedModel(
        it->second,
        owned->count("variables/variables.index") ? OpenFile(open) : nullptr,
        options, problem);
  else if (it = owned->find("graph.pb"); it != owned->end())
    model = Model::readGraph(it->second, options, problem);
  else if (it = owned->find("graph.pbtxt"); it != owned->end()) {
    if (auto bytes = encodeText(it->second, TextMessage::Graph, problem))
      model = Model::readGraph(*bytes, options, problem);
  } else
    problem = {"has neither saved_model.pb nor graph.pb", ""};
  return import(std::move(model), name, problem, options, context);
}
