// Importing the nodes of an exported program.
#ifndef CHARONIA_FRONTENDS_PYTORCH_PROGRAMIMPORTER_H
#define CHARONIA_FRONTENDS_PYTORCH_PROGRAMIMPORTER_H

#include "frontends/common/Inputs.h"
#include "frontends/pytorch/Registry.h"
#include "frontends/pytorch/Sizes.h"
#include "frontends/pytorch/Weights.h"
#include <deque>

namespace charonia::frontend::pytorch {

/// The argument of that name; null where it is left out.
const Argument *findArgument(const Node &node, llvm::StringRef name);
/// Calls `visit` with each name of a tensor in an argument.
void forEachTensor(const Argument &argument,
                   llvm::function_ref<void(const std::string &)> visit);

/// Programs write in place and keep views of what they write to. So each tensor
/// knows whose memory it is a view of: a write to a view goes back through the
/// views to that one, and tensors that see the memory compute their values from
/// it again when they are next read.
class ProgramImporter : public Names {
public:
  ProgramImporter(Program program, Weights &weights,
                  const ImportOptions &options, ModuleBuilder &builder);

  /// Imports what the outputs need.
  void run();

  mlir::Value valueOf(llvm::StringRef name, bool imaginary) override;
  const TensorMeta *metaOf(llvm::StringRef name) const override;
  mlir::AffineExpr sizeOf(llvm::StringRef name) override;
  mlir::Value numberOf(llvm::StringRef name) override;
  Exprs convertSizes(llvm::ArrayRef<ExpressionPtr> list) override;

private:
  /// A tensor. Operators in place give another name to the one that they write
  /// to.
  struct Entry {
    std::string name;
    mlir::Value value;
    /// Of complex numbers, whose real part is `value`.
    mlir::Value imaginary;
    /// The node that makes it, and which of its results it is; null for inputs.
    const Node *node = nullptr;
    unsigned result = 0;
    /// What it is a view of; null where it has memory of its own.
    Entry *base = nullptr;
    /// It may also be a copy: that depends on strides that are not known.
    bool isUndecided = false;
    /// Written through another name since `value` was computed.
    bool isStale = false;
    /// Stale or not, since it is undecided.
    bool isTorn = false;
    /// Follows from a node that failed: further failures are no news.
    bool isTainted = false;
    std::vector<Entry *> views;
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

  bool resolveRegions();

  // What shares memory, and what is needed.
  void findAliases();
  void addAliases(const Node &node);
  std::optional<bool> isShared(const Node &node, const TensorMeta *own,
                               const TensorMeta *base);
  llvm::DenseSet<const Node *> findNeeded();
  Entry *rootOf(llvm::StringRef name);
  llvm::LogicalResult write(Entry &written, mlir::Value value);
  void markStale(Entry &entry, const llvm::DenseSet<const Entry *> &fresh);
  Failed failUndecided(const Entry &entry);

  // Values.
  Entry *find(llvm::StringRef name);
  Entry &addEntry(llvm::StringRef name);
  mlir::Value currentValue(Entry &entry);
  void loadWeight(Entry &entry, const InputSpec &spec);
  void refresh(Entry &entry);
  void checkType(const llvm::Twine &what, llvm::StringRef name,
                 mlir::Value value);

  // Nodes.
  void importNode(const Node &node);
  llvm::LogicalResult importRow(Call &call, const Target &target,
                                Values &imaginary);
  llvm::LogicalResult importResults(const Node &node, const Target &target,
                                    Call &call);
  llvm::LogicalResult failUnsupported(const Node &node);
  void report(const Node &node);
  mlir::Location locate(const Node &node);

  Program program;
  Graph &graph;
  Weights &weights;
  const ImportOptions &options;
  ModuleBuilder &builder;
  Emitter &emitter;
  Sizes sizes;
  std::deque<Entry> entries;
  llvm::StringMap<Entry *> names;
  /// Input specs of weights by argument's name.
  llvm::StringMap<const InputSpec *> stored;
  /// Names of sizes by symbol: that of the first dimension that is the symbol.
  llvm::StringMap<std::string> dimNames;
  /// Names that outputs depend on.
  llvm::StringSet<> wanted;
};

} // namespace charonia::frontend::pytorch

#endif
