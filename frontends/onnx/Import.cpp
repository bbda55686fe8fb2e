#include "frontends/onnx/Import.h"
#include "frontends/common/ModuleBuilder.h"
#include "frontends/onnx/DroppedAxes.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/PoolSizes.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Signature.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;

/// Versions of the default domain that are read.
constexpr int oldestOpset = 1;

namespace {
class ModelImporter {
public:
  ModelImporter(::onnx::ModelProto &model, llvm::StringRef file,
                llvm::StringRef folder, const ImportOptions &options,
                mlir::MLIRContext &context)
      : model(model), options(options), context(context), files(folder, file),
        builder(file, context),
        importer(builder.getEmitter(), files, builder.getFile(),
                 builder.getDiagnostics()) {}

  ImportResult run();

private:
  bool checkVersions();
  void importGraph();
  bool isAsInferred(mlir::Value value, const ::onnx::TypeProto &declared,
                    Scope &scope);
  void finish(Scope &scope);
  void fail(std::string what, std::string remedy = "") {
    builder.fail(std::move(what), std::move(remedy));
  }

  ::onnx::ModelProto &model;
  const ImportOptions &options;
  mlir::MLIRContext &context;
  ExternalFiles files;
  std::map<std::string, int> opsets;
  // The module goes before the importer, whose placeholders it may use.
  ModuleBuilder builder;
  GraphImporter importer;
};
} // namespace

bool ModelImporter::checkVersions() {
  if (model.ir_version() > newestIrVersion() || model.ir_version() < 3) {
    fail("IR version " + std::to_string(model.ir_version()) +
             " is not supported: 3 to " + std::to_string(newestIrVersion()) +
             " are",
         "export the model again, or convert it with onnx.version_converter");
    return false;
  }
  for (const auto &opset : model.opset_import()) {
    std::string domain = normalDomain(opset.domain());
    int newest = newestVersion(domain),
        oldest = domain.empty() ? oldestOpset : 1;
    // Of a custom domain only the functions in the model can be used.
    if (newest && (opset.version() < oldest || opset.version() > newest))
      fail("opset " + std::to_string(opset.version()) + " of domain '" +
               printable(opset.domain()) +
               "' is not supported: " + std::to_string(oldest) + " to " +
               std::to_string(newest) + " are",
           "convert the model: onnx.version_converter.convert_version(model, "
           "18)");
    int version =
        static_cast<int>(std::clamp<int64_t>(opset.version(), 1, 1 << 20));
    auto [it, isNew] = opsets.emplace(domain, version);
    if (!isNew && it->second != version)
      fail("domain '" + printable(opset.domain()) +
               "' is imported in two versions",
           "export the model again");
  }
  if (model.opset_import().empty())
    fail("the model names no opset", "export the model again");
  return !builder.hasErrors();
}

void ModelImporter::importGraph() {
  ::onnx::GraphProto &graph = *model.mutable_graph();
  importer.addFunctions(model.functions());
  importer.replacements = options.replacements;
  Scope scope;
  scope.opsets = opsets;
  scope.mayTake = true;
  importer.addInitializers(graph, scope);
  std::vector<Problem> problems;
  auto inputs = readInputs(inputsOf(graph, &context), options,
                           builder.getSymbols(), &context, problems);
  for (Problem &problem : problems)
    importer.report(std::move(problem));
  if (graph.output().empty())
    fail("the model has no outputs", "export the model again");
  std::vector<std::string> roots;
  llvm::StringSet<> names;
  for (const auto &output : graph.output()) {
    if (!names.insert(output.name()).second)
      fail("output '" + printable(output.name()) + "' is defined twice",
           "export the model again");
    roots.push_back(output.name());
  }
  builder.checkCounts(inputs.size(), graph.output_size());
  if (builder.hasErrors())
    return;
  for (auto [input, value] : llvm::zip_equal(inputs, builder.begin(inputs)))
    scope.values[input.name].value = value;
  for (const auto &info : graph.value_info())
    if (info.has_type())
      importer.declared[info.name()] = &info.type();
  importer.progress = options.progress;
  if (importer.importNodes(*graph.mutable_node(), roots, scope, nullptr))
    finish(scope);
}

/// Whether a value has the size that is declared for it by the rules of
/// onnx.shape_inference.
bool ModelImporter::isAsInferred(mlir::Value value,
                                 const ::onnx::TypeProto &declared,
                                 Scope &scope) {
  constexpr int mended = 22;
  auto opset = opsets.find("");
  if (opset == opsets.end() || opset->second >= mended)
    return false;
  std::vector<llvm::SmallVector<mlir::Value, 2>> nodes;
  for (const auto &node : model.graph().node()) {
    auto &results = nodes.emplace_back();
    for (const std::string &name : node.output())
      if (const Binding *binding = importer.lookup(name, scope, nullptr);
          binding && binding->value)
        results.push_back(binding->value);
  }
  Emitter &emitter = builder.getEmitter();
  PoolSizes sizes(*emitter.getBuilder().getInsertionBlock(), nodes);
  mlir::Type type = sizes.typeOf(value);
  return !type || !contradiction(declared, type, emitter);
}

/// Whether a value is as declared but for one axis.
static bool lacksDroppedAxis(mlir::Value value,
                             const ::onnx::TypeProto &declared,
                             Emitter &emitter) {
  ::onnx::TypeProto element = declared;
  element.mutable_tensor_type()->clear_shape();
  return !contradiction(element, value.getType(), emitter) &&
         declared.tensor_type().shape().dim_size() == rankOf(value) + 1;
}

void ModelImporter::finish(Scope &scope) {
  std::vector<Output> outputs;
  std::optional<DroppedAxes> dropped;
  for (const auto &output : model.graph().output()) {
    const Binding *binding = importer.lookup(output.name(), scope, nullptr);
    if (!binding)
      fail("output '" + printable(output.name()) +
               "' is not computed by any node",
           "export the model again");
    if (binding && !binding->tainted && (!binding->value || binding->narrow))
      fail("output '" + printable(output.name()) + "' is " +
               (binding->sequence ? "a sequence"
                : binding->narrow ? "of type " + dataTypeName(binding->narrow)
                                  : "an optional value that is not there") +
               ", which is not supported as an output",
           "give its tensors as outputs, or cast it");
    if (!binding || !binding->value || binding->tainted || binding->narrow)
      continue;
    auto wrong = contradiction(output.type(), binding->value.getType(),
                               builder.getEmitter());
    if (wrong && wrong.ofSize &&
        isAsInferred(binding->value, output.type(), scope))
      builder.add(Diagnostic::Severity::Warning,
                  "output '" + printable(output.name()) + "' " + wrong.text +
                      ": onnx.shape_inference counts a window of a pool that "
                      "would begin outside");
    else if (wrong &&
             lacksDroppedAxis(binding->value, output.type(),
                              builder.getEmitter()) &&
             (dropped ? *dropped : dropped.emplace(model)).reach(output.name()))
      builder.add(Diagnostic::Severity::Warning,
                  "output '" + printable(output.name()) + "' " + wrong.text +
                      ": onnx.shape_inference keeps the axis that "
                      "SplitToSequence drops here, as in ONNX Runtime");
    else if (wrong)
      fail("output '" + printable(output.name()) + "' " + wrong.text,
           "the file contradicts itself: run onnx.shape_inference on it, or "
           "export it again");
    outputs.push_back({output.name(), binding->value});
  }
  if (!builder.hasErrors())
    builder.end(outputs);
}

ImportResult ModelImporter::run() {
  if (checkVersions())
    importGraph();
  return builder.take();
}

ImportResult charonia::frontend::onnx::importProto(::onnx::ModelProto model,
                                                   llvm::StringRef file,
                                                   llvm::StringRef folder,
                                                   const ImportOptions &options,
                                                   mlir::MLIRContext &context) {
  return ModelImporter(model, file, folder, options, context).run();
}

ImportResult charonia::frontend::onnx::importFile(llvm::StringRef path,
                                                  const ImportOptions &options,
                                                  mlir::MLIRContext &context) {
  ::onnx::ModelProto model;
  if (auto problem = readModel(path, model))
    return failedImport(path, *problem);
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  return importProto(std::move(model), path, folder.empty() ? "." : folder,
                     options, context);
}

ImportResult charonia::frontend::importOnnxBytes(llvm::StringRef bytes,
                                                 llvm::StringRef name,
                                                 const ImportOptions &options,
                                                 mlir::MLIRContext &context) {
  ::onnx::ModelProto model;
  if (auto problem = parseModel(bytes, model))
    return failedImport(name, *problem);
  return importProto(std::move(model), name, "", options, context);
}

std::vector<OperatorInfo> charonia::frontend::listOnnxOperators() {
  std::vector<OperatorInfo> list;
  for (const Row &row : allRows())
    list.push_back({row.domain, row.op, row.first, row.last});
  return list;
}
