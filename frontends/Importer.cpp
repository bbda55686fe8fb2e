#include "frontends/Importer.h"
#include "frontends/common/ModuleBuilder.h"
#include "frontends/common/Replacements.h"
#include "frontends/onnx/Import.h"
#include "frontends/pytorch/Import.h"
#include "frontends/tensorflow/Import.h"
#include "llvm/Support/FileSystem.h"

using namespace charonia::frontend;

/// The first bytes of a file; none where it cannot be read. A pipe would be
/// waited for, and give its bytes once.
static std::string beginningOf(llvm::StringRef path) {
  constexpr size_t length = 16;
  if (!llvm::sys::fs::is_regular_file(path))
    return "";
  std::string bytes(length, 0);
  auto file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return "";
  }
  auto count = llvm::sys::fs::readNativeFile(
      *file, llvm::MutableArrayRef<char>(bytes.data(), length));
  llvm::sys::fs::closeFile(*file);
  if (!count) {
    llvm::consumeError(count.takeError());
    return "";
  }
  bytes.resize(*count);
  return bytes;
}

/// Over weights of another file.
static ImportResult importWithWeights(llvm::StringRef path,
                                      const ImportOptions &options,
                                      mlir::MLIRContext &context) {
  Problem problem;
  auto tensors = SafeTensors::open(options.weights, problem);
  if (!tensors)
    return failedImport(options.weights, problem);
  Replacements replacements(std::move(*tensors), options.weights);
  ImportOptions rest = options;
  rest.weights.clear();
  rest.replacements = &replacements;
  ImportResult result = importModel(path, rest, context);
  replacements.finish(result);
  return result;
}

ImportResult charonia::frontend::importModel(llvm::StringRef path,
                                             const ImportOptions &options,
                                             mlir::MLIRContext &context) {
  if (!options.weights.empty())
    return importWithWeights(path, options, context);
  // Whatever was said of it, a file that is not there is that.
  if (!llvm::sys::fs::exists(path))
    return onnx::importFile(path, options, context);
  std::string beginning = beginningOf(path);
  if (!options.program.empty() && !pytorch::isFile(beginning))
    return failedImport(path,
                        {"holds one model, so '" + printable(options.program) +
                             "' cannot be chosen from it",
                         "leave --program out: it is for .pt2 files, "
                         "which may hold several"});
  if (beginning.starts_with("version https://"))
    return failedImport(path, {"is a pointer of Git LFS, not the file itself",
                               "fetch it: git lfs pull"});
  if (path.ends_with(".safetensors"))
    return failedImport(path, {"holds weights alone, without a model",
                               "give the model's file, and this one with "
                               "--weights"});
  // Zip files are exported programs, whatever they are called; Keras archives
  // are zip files, too.
  bool isZip = llvm::StringRef(beginning).starts_with("PK");
  if (tensorflow::isModel(path, beginning) &&
      (!isZip || path.ends_with(".keras")))
    return tensorflow::importPath(path, options, context);
  if (!options.signature.empty() || !options.inputs.empty() ||
      !options.outputs.empty())
    return failedImport(path,
                        {"has no signatures and takes no names of inputs and "
                         "outputs: it is no model of TensorFlow",
                         "leave out --signature, --inputs and --outputs"});
  if (pytorch::isFile(beginning) || path.ends_with(".pt2"))
    return pytorch::importFile(path, options, context);
  return onnx::importFile(path, options, context);
}

std::string ImportResult::toString() const {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics)
    text += diagnostic.toString() + "\n";
  return text;
}
