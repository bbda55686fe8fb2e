// Importing trained models into the graph dialect.
//
// An importer gives a module with one function, `main`, whose arguments and
// results carry the model's names (attribute `graph.name`) and whose shape
// symbols are in `graph.symbols`. Weights are in the WeightStore of the
// context's graph dialect. A model is hostile input: whatever is wrong with it
// becomes a diagnostic.
#ifndef CHARONIA_FRONTENDS_IMPORTER_H
#define CHARONIA_FRONTENDS_IMPORTER_H

#include "frontends/common/Diagnostic.h"
#include "frontends/common/ShapeOption.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <map>

namespace charonia::frontend {

/// Inputs and outputs that a model may have, each.
constexpr int maxInputsAndOutputs = 4096;

class Replacements;

struct ImportOptions {
  /// Shapes of inputs; what is not given is as the model has it. An unnamed
  /// dimension i of input x becomes the symbol x_dim<i>; a symbol without a
  /// declared range gets defaultRange().
  ShapeOptions shapes;
  /// Of a file of several programs (`.pt2`) the one to import; empty: the only
  /// one.
  std::string program;
  /// Of a SavedModel: the signature; empty for "serving_default", or the only
  /// one that there is.
  std::string signature;
  /// Of a graph of TensorFlow: placeholders and outputs ("node" or "node:1"),
  /// in the engine's order; empty for those that are read, and for what nobody
  /// reads.
  std::vector<std::string> inputs, outputs;
  /// Weights to take over those of the model's file, by name: a file of the
  /// safetensors format, an index of several, or a folder with either. Each of
  /// its tensors has to be a weight of the model, in its type and shape.
  std::string weights;
  /// The same, read already.
  Replacements *replacements = nullptr;
  /// Called with the name and the operator of each of the model's own nodes
  /// before it is imported; may be empty.
  std::function<void(const std::string &node, const std::string &op)> progress;
};

struct ImportResult {
  /// Null where there is an error. Verified otherwise.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Errors: all unsupported nodes of the model, or what else is wrong. With a
  /// module: warnings and notes.
  std::vector<Diagnostic> diagnostics;

  /// The diagnostics as text, one after another.
  std::string toString() const;
};

/// Imports the model at `path`: a SavedModel of TensorFlow (a folder, or its
/// `saved_model.pb`) or a frozen graph (`.pb`; `.pbtxt` for text), an exported
/// program of PyTorch
/// (`.pt2`, which its content tells), or ONNX (`.onnx`, or `.onnxtxt` for its
/// text syntax). Not thread-safe on one context.
ImportResult importModel(llvm::StringRef path, const ImportOptions &options,
                         mlir::MLIRContext &context);

/// Imports an ONNX model in memory, which `name` stands for in messages. It may
/// not refer to external data.
ImportResult importOnnxBytes(llvm::StringRef bytes, llvm::StringRef name,
                             const ImportOptions &options,
                             mlir::MLIRContext &context);

/// Imports an exported program of PyTorch in memory, which `name` stands for in
/// messages. The bytes are copied.
ImportResult importPyTorchBytes(llvm::StringRef bytes, llvm::StringRef name,
                                const ImportOptions &options,
                                mlir::MLIRContext &context);

/// Imports a model of TensorFlow in memory, which `name` stands for in
/// messages: files by name, a SavedModel's ("saved_model.pb", "variables/...")
/// or a frozen graph ("graph.pb", "graph.pbtxt"). The bytes are copied.
ImportResult
importTensorFlowFiles(const std::map<std::string, std::string> &files,
                      llvm::StringRef name, const ImportOptions &options,
                      mlir::MLIRContext &context);

/// One ONNX operator that has a row of its own, for documentation.
struct OperatorInfo {
  std::string domain, name;
  int firstVersion, lastVersion;
};
std::vector<OperatorInfo> listOnnxOperators();

} // namespace charonia::frontend

#endif
