// The module that an import gives, while it is built.
#ifndef CHARONIA_FRONTENDS_COMMON_MODULEBUILDER_H
#define CHARONIA_FRONTENDS_COMMON_MODULEBUILDER_H

#include "frontends/Importer.h"
#include "frontends/common/Emitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::frontend {

/// A name of the model's interface and its type.
struct Input {
  std::string name;
  mlir::RankedTensorType type;
};
struct Output {
  std::string name;
  mlir::Value value;
};

/// Begins and ends function `main`, and collects what there is to say.
class ModuleBuilder {
public:
  ModuleBuilder(llvm::StringRef file, mlir::MLIRContext &context);

  const std::string &getFile() const { return file; }
  mlir::MLIRContext *getContext() { return module->getContext(); }
  Symbols &getSymbols() { return symbols; }
  Emitter &getEmitter() { return emitter; }
  std::vector<Diagnostic> &getDiagnostics() { return result.diagnostics; }

  /// A message about the model as a whole.
  void add(Diagnostic::Severity severity, std::string what,
           std::string remedy = "");
  void fail(std::string what, std::string remedy = "") {
    add(Diagnostic::Severity::Error, std::move(what), std::move(remedy));
  }
  bool hasErrors() const;

  /// Fails where no engine could hold so many.
  void checkCounts(size_t inputs, size_t outputs);
  /// Makes `main`; its arguments are the inputs in order. The emitter builds in
  /// it from now on.
  mlir::ValueRange begin(llvm::ArrayRef<Input> inputs);
  /// Ends it with the results.
  void end(llvm::ArrayRef<Output> outputs);
  /// The module, verified, without what nobody uses; or the errors.
  ImportResult take();

private:
  void settleSizes();
  void removeUnused();
  void finishSymbols();
  void verify();

  std::string file;
  ImportResult result;
  /// The inputs' types as the model and the user have them.
  llvm::SmallVector<mlir::Type> inputTypes;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp main;
  Symbols symbols;
  Emitter emitter;
};

/// A result of nothing but one error about `file`.
ImportResult failedImport(llvm::StringRef file, const Problem &problem);

} // namespace charonia::frontend

#endif
