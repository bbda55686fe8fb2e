#include "frontends/common/ModuleBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace charonia;
using namespace charonia::frontend;

static mlir::OwningOpRef<mlir::ModuleOp>
makeModule(mlir::MLIRContext &context) {
  context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
  return mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
}

ModuleBuilder::ModuleBuilder(llvm::StringRef file, mlir::MLIRContext &context)
    : file(file.str()), module(makeModule(context)), symbols(*module),
      emitter(mlir::OpBuilder(&context), symbols) {}

void ModuleBuilder::add(Diagnostic::Severity severity, std::string what,
                        std::string remedy) {
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.file = file;
  diagnostic.what = std::move(what);
  diagnostic.remedy = std::move(remedy);
  result.diagnostics.push_back(std::move(diagnostic));
}

bool ModuleBuilder::hasErrors() const {
  return llvm::any_of(result.diagnostics, [](const Diagnostic &diagnostic) {
    return diagnostic.severity == Diagnostic::Severity::Error;
  });
}

void ModuleBuilder::checkCounts(size_t inputs, size_t outputs) {
  for (auto [what, count] : {std::pair("inputs", inputs), {"outputs", outputs}})
    if (count > maxInputsAndOutputs)
      fail("the model has " + std::to_string(count) + " " + what + "; up to " +
               std::to_string(maxInputsAndOutputs) + " are supported",
           std::string("export it with fewer ") + what +
               ", for example joined by a Concat");
}

mlir::ValueRange ModuleBuilder::begin(llvm::ArrayRef<Input> inputs) {
  auto &builder = emitter.getBuilder();
  for (const Input &input : inputs)
    inputTypes.push_back(input.type);
  builder.setInsertionPointToEnd(module->getBody());
  main = mlir::func::FuncOp::create(
      builder, mlir::NameLoc::get(builder.getStringAttr(file)), "main",
      builder.getFunctionType(inputTypes, {}));
  mlir::Block *body = main.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  for (auto [i, input] : llvm::enumerate(inputs))
    main.setArgAttr(i, "graph.name", builder.getStringAttr(input.name));
  return body->getArguments();
}

/// What was assumed of sizes need not be proved any more once later nodes said
/// what the symbols are, and sizes meet in other forms: then it is assumed of
/// these, too.
void ModuleBuilder::settleSizes() {
  constexpr int mostRounds = 4;
  for (int round = 0; round < mostRounds; ++round) {
    symbols.resolveModule();
    int64_t before = symbols.replacements();
    // Without assumptions all was proved, of sizes that are what they were.
    if (hasErrors() || symbols.listAssumptions().empty())
      return;
    for (mlir::Operation &op : main.front())
      emitter.assumeAgain(&op);
    if (before == symbols.replacements())
      return;
  }
  symbols.resolveModule();
}

void ModuleBuilder::end(llvm::ArrayRef<Output> outputs) {
  auto &builder = emitter.getBuilder();
  Values results;
  for (const Output &output : outputs)
    results.push_back(output.value);
  mlir::func::ReturnOp::create(builder, main.getLoc(), results);
  // What nobody reads needs nothing of sizes, as steps that are not taken.
  removeUnused();
  settleSizes();
  auto types = llvm::to_vector(mlir::ValueRange(results).getTypes());
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(), types));
  // Callers bind the sizes that the model names, whatever they turned out to
  // be.
  for (auto [i, type] : llvm::enumerate(inputTypes))
    if (type != main.getArgument(i).getType())
      main.setArgAttr(i, "graph.shape",
                      llvm::cast<mlir::RankedTensorType>(type).getEncoding());
  for (auto [i, output] : llvm::enumerate(outputs))
    main.setResultAttr(i, "graph.name", builder.getStringAttr(output.name));
}

/// What only computed shapes, or weights that nobody uses.
void ModuleBuilder::removeUnused() {
  auto &weights =
      getContext()->getLoadedDialect<graph::GraphDialect>()->getWeights();
  bool keep = !hasErrors();
  for (auto function : module->getOps<mlir::func::FuncOp>())
    for (mlir::Operation &op :
         llvm::make_early_inc_range(llvm::reverse(function.front()))) {
      auto weight = llvm::dyn_cast<graph::WeightOp>(op);
      if (keep && !mlir::isOpTriviallyDead(&op))
        continue;
      if (weight)
        weights.erase(weight.getName());
      if (keep)
        op.erase();
    }
}

/// What the model can get wrong has been checked; this is about the importer.
void ModuleBuilder::verify() {
  mlir::ScopedDiagnosticHandler handler(
      getContext(), [&](mlir::Diagnostic &diagnostic) {
        fail("the imported module is not sound: " + diagnostic.str(),
             "this is a fault of charonia: please report it with the model");
        return mlir::success();
      });
  if (failed(graph::verifySizes(*module)) && !hasErrors())
    fail("the imported module is not sound");
}

void ModuleBuilder::finishSymbols() {
  std::string problem,
      remedy = "name such sizes with --shape, as MIN..OPT..MAX";
  if (!symbols.finish(problem))
    fail(problem + ":" + symbols.listAssumptions(), remedy);
  else if (!problem.empty())
    add(Diagnostic::Severity::Note, problem + ", which the engine is tuned for",
        remedy);
}

ImportResult ModuleBuilder::take() {
  removeUnused();
  if (!hasErrors())
    finishSymbols();
  if (!hasErrors())
    verify();
  if (hasErrors()) {
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

ImportResult charonia::frontend::failedImport(llvm::StringRef file,
                                              const Problem &problem) {
  ImportResult result;
  Diagnostic diagnostic;
  diagnostic.file = file.str();
  diagnostic.what = problem.what;
  diagnostic.remedy = problem.remedy;
  result.diagnostics.push_back(std::move(diagnostic));
  return result;
}
