#include "frontends/onnx/Import.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;

/// Versions of the default domain that are read.
constexpr int oldestOpset = 7;

namespace {
class ModelImporter {
public:
  ModelImporter(::onnx::ModelProto &model, llvm::StringRef file,
                llvm::StringRef folder, const ImportOptions &options,
                mlir::MLIRContext &context)
      : model(model), file(file.str()), options(options), context(context),
        files(folder, file),
        module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))),
        symbols(*module), emitter(mlir::OpBuilder(&context), symbols),
        importer(emitter, files, this->file, result.diagnostics) {}

  ImportResult run();

private:
  bool checkVersions();
  void importGraph();
  void finish(mlir::func::FuncOp main, Scope &scope);
  void checkCount(const char *what, size_t count);
  void removeUnused();
  void finishSymbols();
  void add(Diagnostic::Severity severity, std::string what,
           std::string remedy = "");
  void fail(std::string what, std::string remedy = "") {
    add(Diagnostic::Severity::Error, std::move(what), std::move(remedy));
  }

  ::onnx::ModelProto &model;
  std::string file;
  const ImportOptions &options;
  mlir::MLIRContext &context;
  ExternalFiles files;
  ImportResult result;
  std::map<std::string, int> opsets;
  /// The inputs' types as the model and the user have them.
  llvm::SmallVector<mlir::Type> inputTypes;
  // The module goes before the importer, whose placeholders it may use.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Symbols symbols;
  Emitter emitter;
  GraphImporter importer;
};
} // namespace

void ModelImporter::add(Diagnostic::Severity severity, std::string what,
                        std::string remedy) {
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.file = file;
  diagnostic.what = std::move(what);
  diagnostic.remedy = std::move(remedy);
  result.diagnostics.push_back(std::move(diagnostic));
}

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
  return !importer.hasErrors();
}

/// What no engine could hold is said before the work.
void ModelImporter::checkCount(const char *what, size_t count) {
  if (count > maxInputsAndOutputs)
    fail("the model has " + std::to_string(count) + " " + what + "; up to " +
             std::to_string(maxInputsAndOutputs) + " are supported",
         std::string("export it with fewer ") + what +
             ", for example joined by a Concat");
}

void ModelImporter::importGraph() {
  ::onnx::GraphProto &graph = *model.mutable_graph();
  importer.addFunctions(model.functions());
  Scope scope;
  scope.opsets = opsets;
  scope.mayTake = true;
  importer.addInitializers(graph, scope);
  std::vector<Problem> problems;
  auto inputs = readInputs(graph, options, symbols, &context, problems);
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
  checkCount("inputs", inputs.size());
  checkCount("outputs", graph.output_size());
  if (importer.hasErrors())
    return;
  auto &builder = emitter.getBuilder();
  for (const Input &input : inputs)
    inputTypes.push_back(input.type);
  builder.setInsertionPointToEnd(module->getBody());
  auto main = mlir::func::FuncOp::create(
      builder, mlir::NameLoc::get(builder.getStringAttr(file)), "main",
      builder.getFunctionType(inputTypes, {}));
  mlir::Block *body = main.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  for (auto [i, input] : llvm::enumerate(inputs)) {
    main.setArgAttr(i, "graph.name", builder.getStringAttr(input.name));
    scope.values[input.name].value = body->getArgument(i);
  }
  for (const auto &info : graph.value_info())
    if (info.has_type())
      importer.declared[info.name()] = &info.type();
  importer.progress = options.progress;
  if (importer.importNodes(*graph.mutable_node(), roots, scope, nullptr))
    finish(main, scope);
}

void ModelImporter::finish(mlir::func::FuncOp main, Scope &scope) {
  auto &builder = emitter.getBuilder();
  Values results;
  for (const auto &output : model.graph().output()) {
    const Binding *binding = importer.lookup(output.name(), scope, nullptr);
    if (!binding)
      fail("output '" + printable(output.name()) +
               "' is not computed by any node",
           "export the model again");
    if (!binding || !binding->value || binding->tainted)
      continue;
    std::string text = contradiction(output.type(), binding->value, emitter);
    if (!text.empty())
      fail("output '" + printable(output.name()) + "' " + text,
           "the file contradicts itself: run onnx.shape_inference on it, or "
           "export it again");
    results.push_back(binding->value);
  }
  if (importer.hasErrors())
    return;
  mlir::func::ReturnOp::create(builder, main.getLoc(), results);
  symbols.resolveModule();
  auto types = llvm::to_vector(mlir::ValueRange(results).getTypes());
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(), types));
  // Callers bind the sizes that the model names, whatever they turned out to
  // be.
  for (auto [i, type] : llvm::enumerate(inputTypes))
    if (type != main.getArgument(i).getType())
      main.setArgAttr(i, "graph.shape",
                      llvm::cast<mlir::RankedTensorType>(type).getEncoding());
  for (auto [i, output] : llvm::enumerate(model.graph().output()))
    main.setResultAttr(i, "graph.name", builder.getStringAttr(output.name()));
}

/// What only computed shapes, or weights that nobody uses.
void ModelImporter::removeUnused() {
  auto &weights = context.getLoadedDialect<graph::GraphDialect>()->getWeights();
  bool keep = !importer.hasErrors();
  for (auto main : module->getOps<mlir::func::FuncOp>())
    for (mlir::Operation &op :
         llvm::make_early_inc_range(llvm::reverse(main.front()))) {
      auto weight = llvm::dyn_cast<graph::WeightOp>(op);
      if (keep && !mlir::isOpTriviallyDead(&op))
        continue;
      if (weight)
        weights.erase(weight.getName());
      if (keep)
        op.erase();
    }
}

void ModelImporter::finishSymbols() {
  std::string problem,
      remedy = "name such sizes with --shape, as MIN..OPT..MAX";
  if (!symbols.finish(problem))
    fail(problem + ":" + symbols.listAssumptions(), remedy);
  else if (!problem.empty())
    add(Diagnostic::Severity::Note, problem + ", which the engine is tuned for",
        remedy);
}

ImportResult ModelImporter::run() {
  if (checkVersions())
    importGraph();
  removeUnused();
  if (!importer.hasErrors())
    finishSymbols();
  if (!importer.hasErrors()) {
    // What the model can get wrong has been checked; this is about the
    // importer.
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          fail("the imported module is not sound: " + diagnostic.str(),
               "this is a fault of charonia: please report it with the model");
          return mlir::success();
        });
    if (failed(graph::verifySizes(*module)) && !importer.hasErrors())
      fail("the imported module is not sound");
  }
  if (importer.hasErrors()) {
    module.release().erase();
    llvm::erase_if(result.diagnostics, [](const Diagnostic &diagnostic) {
      return diagnostic.severity != Diagnostic::Severity::Error;
    });
    return std::move(result);
  }
  if (std::string list = symbols.listAssumptions(); !list.empty())
    add(Diagnostic::Severity::Note,
        "the model needs this of its sizes, which is checked when shapes are "
        "bound:" +
            list,
        "to say it yourself, name equal sizes alike and declare ranges with "
        "--shape");
  result.module = std::move(module);
  return std::move(result);
}

ImportResult charonia::frontend::onnx::importProto(::onnx::ModelProto model,
                                                   llvm::StringRef file,
                                                   llvm::StringRef folder,
                                                   const ImportOptions &options,
                                                   mlir::MLIRContext &context) {
  context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
  return ModelImporter(model, file, folder, options, context).run();
}

static ImportResult failedWith(llvm::StringRef file, const Problem &problem) {
  ImportResult result;
  Diagnostic diagnostic;
  diagnostic.file = file.str();
  diagnostic.what = problem.what;
  diagnostic.remedy = problem.remedy;
  result.diagnostics.push_back(std::move(diagnostic));
  return result;
}

ImportResult charonia::frontend::importModel(llvm::StringRef path,
                                             const ImportOptions &options,
                                             mlir::MLIRContext &context) {
  ::onnx::ModelProto model;
  if (auto problem = readModel(path, model))
    return failedWith(path, *problem);
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
    return failedWith(name, *problem);
  return importProto(std::move(model), name, "", options, context);
}

std::string ImportResult::toString() const {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics)
    text += diagnostic.toString() + "\n";
  return text;
}

std::vector<OperatorInfo> charonia::frontend::listOnnxOperators() {
  std::vector<OperatorInfo> list;
  for (const Row &row : allRows())
    list.push_back({row.domain, row.op, row.first, row.last});
  return list;
}
