// Importing the nodes of an exported program.
#ifndef CHARONIA_FRONTENDS_PYTORCH_PROGRAMIMPORTER_H
#define CHARONIA_FRONTENDS_PYTORCH_PROGRAMIMPORTER_H

#include "frontends/common/Inputs.h"
#include "frontends/pytorch/Registry.h"
#include "frontends/pytorch/Sizes.h"
#include "frontends/pytorch/Weights.h"

namespace charonia::frontend::pytorch {

/// Programs write in place and keep views of what they write to. So each name
/// knows which name's memory it is a view of: a write to a view goes back
/// through the views to that one, and names that see the memory compute their
/// values from it again when they are next read.
class ProgramImporter : public Names {
public:
  ProgramImporter(const Program &program, Weights &weights,
                  const ImportOptions &options, ModuleBuilder &builder);

  /// Imports what the outputs need.
  void run();

  mlir::Value valueOf(llvm::StringRef name) override;
  const TensorMeta *metaOf(llvm::StringRef name) const override;
  mlir::AffineExpr sizeOf(llvm::StringRef name) override;
  Exprs shapeOf(const TensorMeta &meta) override;

private:
  /// What a name stands for.
  struct Entry {
    mlir::Value value;
    /// The node that makes it, and which of its results it is; null for inputs.
    const Node *node = nullptr;
    unsigned result = 0;
    /// The name whose memory it shares; empty where it has its own.
    std::string base;
    /// Whether it only may share it, depending on strides.
    bool maybe = false;
    /// Written through another name since `value` was computed.
    bool isStale = false;
    /// Follows from a node that failed: further failures are no news.
    bool isTainted = false;
    std::vector<std::string> views;
    /// Views between it and the memory's owner.
    int depth = 0;
  };

  // The interface.
  std::vector<ModelInput> userInputs(std::vector<unsigned> &positions);
  ModelDim dimOf(const ExpressionPtr &size, const std::string &name);
  void bindSymbols(llvm::ArrayRef<Input> inputs,
                   llvm::ArrayRef<unsigned> positions);
  bool checkSignature();
  void importInputs();
  std::vector<Output> readOutputs();

  // What is needed.
  void findAliases();
  void addAliases(const Node &node);
  llvm::DenseSet<const Node *> findNeeded();
  std::string rootOf(llvm::StringRef name) const;

  // Nodes.
  void importNode(const Node &node);
  llvm::LogicalResult importResults(const Node &node, const Target &target,
                                    Call &call);
  llvm::LogicalResult write(const Node &node, mlir::Value value);
  mlir::Value writeThrough(Entry &entry, mlir::Value value);
  void markStale(const Entry &entry, const Entry *except);
  bool isContiguous(const TensorMeta &meta);
  std::optional<bool> isView(const Entry &entry, llvm::StringRef name);
  Failed failMaybe(llvm::StringRef name);
  void checkResult(const Node &node, unsigned i, llvm::StringRef name,
                   mlir::Value value);
  void report(const Node &node);
  mlir::Location locate(const Node &node);
  Entry *find(llvm::StringRef name);

  const Program &program;
  const Graph &graph;
  Weights &weights;
  const ImportOptions &options;
  ModuleBuilder &builder;
  Emitter &emitter;
  Sizes sizes;
  llvm::StringMap<Entry> entries;
  /// Input specs of weights by argument's name.
  llvm::StringMap<const InputSpec *> stored;
  /// Names of sizes by symbol: that of the first dimension that is the symbol.
  llvm::StringMap<std::string> dimNames;
  /// Names that outputs depend on.
  llvm::StringSet<> wanted;
};

} // namespace charonia::frontend::pytorch

#endif
