// Importing the nodes of an exported program.
#ifndef CHARONIA_FRONTENDS_PYTORCH_PROGRAMIMPORTER_H
#define CHARONIA_FRONTENDS_PYTORCH_PROGRAMIMPORTER_H

#include "frontends/common/Inputs.h"
#include "frontends/common/Steps.h"
#include "frontends/pytorch/Registry.h"
#include "frontends/pytorch/Sizes.h"
#include "frontends/pytorch/Weights.h"
#include <deque>
#include <set>

namespace charonia::frontend::pytorch {

/// The argument of that name; null where it is left out.
const Argument *findArgument(const Node &node, llvm::StringRef name);
/// Calls `visit` with each name of a tensor in an argument.
void forEachTensor(const Argument &argument,
                   llvm::function_ref<void(const std::string &)> visit);
/// The tensor that a result of the node is written to; null where it is new.
const Argument *findWritten(const Node &node, const Target &target,
                            unsigned result);
/// Adds the names of an expression's symbols; null has none.
void collectSymbols(const ExpressionPtr &expression,
                    llvm::StringSet<> &symbols);
/// What to do about a condition on sizes that cannot be kept.
constexpr const char *conditionRemedy =
    "give sizes that decide it with --shape, or export the program with inputs "
    "of sizes like those that it is for";
/// Calls an operator that does something beside what it gives: an assertion, or
/// printing. It writes to none of its operands.
constexpr const char *withEffects = "torch.ops.higher_order.with_effects";
/// Whether a node is a loop.
bool isLoop(const Node &node);

/// Programs write in place and keep views of what they write to. So each tensor
/// knows whose memory it is a view of: a write to a view goes back through the
/// views to that one, and tensors that see the memory compute their values from
/// it again when they are next read. Steps of loops are programs of their own.
class ProgramImporter : public Names {
public:
  ProgramImporter(Program program, Weights &weights,
                  const ImportOptions &options, ModuleBuilder &builder);
  ProgramImporter(const ProgramImporter &) = delete;

  /// Imports what the outputs need.
  void run();

  mlir::Value valueOf(llvm::StringRef name, bool imaginary) override;
  const TensorMeta *metaOf(llvm::StringRef name) const override;
  mlir::AffineExpr sizeOf(llvm::StringRef name) override;
  mlir::Value numberOf(llvm::StringRef name) override;
  void define(llvm::StringRef name, mlir::Value number) override;
  ExpressionPtr expressionOf(llvm::StringRef name) const;
  Exprs convertSizes(llvm::ArrayRef<ExpressionPtr> list) override;

private:
  /// One step of a loop of `around`, which outlives it; `body` is its program.
  ProgramImporter(Program &body, ProgramImporter &around);

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

  /// A value, complex ones in two parts. Or a size.
  struct Part {
    mlir::Value value, imaginary;
    mlir::AffineExpr size;
  };

  // The interface.
  std::vector<ModelInput> userInputs(std::vector<unsigned> &positions);
  ModelDim dimOf(const ExpressionPtr &size, const std::string &name);
  void fixSymbols(llvm::MutableArrayRef<ModelInput> inputs,
                  llvm::ArrayRef<unsigned> positions);
  void failSize(const std::string &input, const std::string &given,
                const std::string &exported, const std::string &why);
  void bindSymbols(llvm::ArrayRef<Input> inputs,
                   llvm::ArrayRef<unsigned> positions);
  void readGuards();
  bool isLimited(const std::string &symbol, int64_t most);
  void assumeGuards();
  std::optional<std::string> assumeCondition(const ExpressionPtr &condition,
                                             const std::string &name);
  bool assumeGuard(const ExpressionPtr &guard, const std::string &text);
  bool assumeComparison(const ExpressionPtr &guard, const std::string &text);
  bool assumeDivisors(const ExpressionPtr &guard, const std::string &text);
  // Assertions.
  ExpressionPtr expressionOf(const Argument &argument) const;
  ExpressionPtr rangeAsserted(const Node &node, bool isSize) const;
  ExpressionPtr shapeAsserted(const Node &node) const;
  ExpressionPtr conditionAsserted(const Node &node) const;
  bool isOfSizes(const Expression &condition) const;
  std::string describeAssertion(const Node &node,
                                const Expression &condition) const;
  void importAssertion(const Node &node);
  void assumeAssertions();

  bool checkSignature();
  void checkMutations();
  void noteWritten(const std::string &input);
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
  bool reaches(const Entry *written,
               const llvm::DenseSet<const Entry *> &memory);
  mlir::Value fitted(mlir::Value value, mlir::Value over);
  llvm::LogicalResult write(Entry &written, mlir::Value value);
  llvm::LogicalResult writeResults(Call &call, const Target &target,
                                   llvm::ArrayRef<Part> results);
  void markStale(Entry &entry, const llvm::DenseSet<const Entry *> &fresh);
  Failed failUndecided(const Entry &entry);

  // Loops, whose steps are written out where their number is known.
  struct Loop;
  class RepeatedLoop;
  std::optional<Loop> readLoop(const Node &node);
  std::unique_ptr<Program> prepareBody(const Graph &body, const Node &node);
  llvm::LogicalResult importLoop(const Node &node, std::vector<Part> &results);
  llvm::LogicalResult writeOutLoop(const Node &node, Loop &loop,
                                   std::optional<StepCount> count,
                                   std::vector<Part> &results);
  llvm::LogicalResult importStep(Program &body, llvm::ArrayRef<Part> operands,
                                 std::vector<Part> &results);
  llvm::LogicalResult runStep(llvm::ArrayRef<Part> operands,
                              std::vector<Part> &results);

  // Values.
  Entry *find(llvm::StringRef name);
  Entry &addEntry(llvm::StringRef name);
  mlir::Value currentValue(Entry &entry);
  void setValue(Entry &entry, const Part &part);
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
  llvm::LogicalResult setResults(Call &call, llvm::ArrayRef<Part> results);
  llvm::LogicalResult failUnsupported(const Node &node);
  void report(const Node &node);
  mlir::Location locate(const Node &node);

  std::unique_ptr<Program> owned;
  Program &program;
  Graph &graph;
  bool isStep = false;
  Weights &weights;
  const ImportOptions &options;
  ModuleBuilder &builder;
  Emitter &emitter;
  std::unique_ptr<Sizes> ownedSizes;
  Sizes &sizes;
  std::deque<Entry> entries;
  llvm::StringMap<Entry *> names;
  /// Input specs of weights by argument's name.
  llvm::StringMap<const InputSpec *> stored;
  /// Names of sizes by symbol: that of the first dimension that is the symbol.
  llvm::StringMap<std::string> dimNames;
  /// Divisors that are known to be positive, of guards.
  llvm::DenseSet<const Expression *> divisors;
  /// A guard of the program.
  struct Guard {
    std::string text;
    ExpressionPtr condition;
    /// On how an input lies in memory.
    bool isOfMemory;
    /// Inputs of which it may be each; empty where that is clear.
    std::string ambiguous;
  };
  std::vector<Guard> guards;
  /// Guards by their symbol, where that is the only one.
  llvm::StringMap<std::vector<ExpressionPtr>> guardsOf;
  /// Conditions that were assumed of nodes.
  llvm::DenseSet<const Expression *> asserted;
  /// Conditions that stand for what others negate, and those that nodes state:
  /// what is looked at once stays where it is.
  std::vector<ExpressionPtr> kept;
  /// Inputs that a note says are written to.
  std::set<std::string> written;
  /// Names that outputs depend on.
  llvm::StringSet<> wanted;
};

} // namespace charonia::frontend::pytorch

#endif
