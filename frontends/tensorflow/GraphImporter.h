// Importing the nodes of a graph and of the functions that it calls.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_GRAPHIMPORTER_H
#define CHARONIA_FRONTENDS_TENSORFLOW_GRAPHIMPORTER_H

#include "frontends/common/Diagnostic.h"
#include "frontends/common/Steps.h"
#include "frontends/tensorflow/ControlFlow.h"
#include "frontends/tensorflow/Effects.h"
#include "frontends/tensorflow/Node.h"
#include "llvm/ADT/MapVector.h"
#include <set>
#include <unordered_map>

namespace charonia::frontend::tensorflow {

/// What to do about a file that contradicts itself.
extern const char *const againRemedy;
/// Where in the model a call is: its name says so, unless TensorFlow made it
/// up.
std::string scopeOf(const std::string &around, llvm::StringRef call);
/// A node's name behind that of what it is in.
std::string pathTo(const std::string &scope, const std::string &node);

/// Only what the outputs need is imported: control inputs order side effects,
/// of which an engine has none. A call of a function is its body in its place.
class GraphImporter {
public:
  GraphImporter(Model &model, Emitter &emitter, const std::string &file,
                std::vector<Diagnostic> &diagnostics)
      : model(model), emitter(emitter), file(file), diagnostics(diagnostics),
        effects(model) {}

  /// What the outputs, "node:0", of the graph are where what `fed` names, by
  /// Reference::key(), has values. Problems become diagnostics; what follows
  /// from one is tainted.
  Items importGraph(llvm::ArrayRef<std::string> outputs,
                    const llvm::StringMap<Item> &fed);

  /// As of ImportOptions.
  std::function<void(const std::string &node, const std::string &op)> progress;

private:
  /// A body that is being imported.
  struct Scope {
    Scope(const Body &body, const Scope *parent, std::string path,
          bool isFunction)
        : body(body), parent(parent), path(std::move(path)),
          isFunction(isFunction) {}
    const Body &body;
    /// Null for the graph. The call's name in it, for messages; empty where
    /// the name says nothing.
    const Scope *parent = nullptr;
    std::string path;
    /// Arguments of a function by name; what is fed to the graph, or enters a
    /// step of a loop, by Reference::key().
    llvm::StringMap<Item> arguments;
    /// The argument that a reference means; null where it means none.
    const Item *argument(const Reference &reference) const {
      auto it = isFunction ? arguments.find(reference.node)
                           : arguments.find(reference.key());
      return it == arguments.end() ? nullptr : &it->second;
    }
    bool isFunction = false;
    // By node, of those that are needed: a body may have far more.
    std::unordered_map<int, Items> results;
    /// Outputs that somebody needs.
    std::unordered_map<int, std::set<int>> wanted;
    /// Nodes that could not be imported, or follow from such.
    std::set<int> tainted;
    /// Results of loops, by their node LoopCond.
    std::unordered_map<int, Items> loops;
    unsigned depth() const { return parent ? parent->depth() + 1 : 0; }
  };

  /// Takes note of nodes whose body may change variables.
  void noteWrites(const Scope &scope, llvm::ArrayRef<int> nodes);
  /// Reports variables that nodes may not read as they are stored.
  void checkWrites(const Scope &graph);
  void noteWritten(const std::set<std::string> &names);
  bool isUntaken(int node, const Scope &scope);
  /// Imports what `roots` need. False where that cannot be ordered or is too
  /// much.
  bool importBody(Scope &scope, llvm::ArrayRef<std::string> roots);
  std::optional<std::vector<int>> order(Scope &scope,
                                        llvm::ArrayRef<std::string> roots);
  struct Ordering;
  bool visit(llvm::StringRef text, const proto::Node *user, Scope &scope,
             Ordering &ordering);
  std::optional<std::vector<std::string>>
  dependenciesOf(int index, Scope &scope, Problem &problem);
  void importNode(const proto::Node &node, int index, Scope &scope);
  llvm::LogicalResult importResults(Node &node, const proto::Node &proto,
                                    int index, Scope &scope);
  /// Fails where no operand is of the type that the node says they have.
  llvm::LogicalResult checkOperands(Node &node);
  /// Fails where a result is not what the file says of it.
  llvm::LogicalResult checkResults(Node &node, const proto::Node &proto);
  /// The item of a reference. Of what could not be imported it is a tainted
  /// one; none where the reference names nothing.
  std::optional<Item> lookup(const Reference &reference, const Scope &scope);
  /// Which of a node's outputs a reference means; none where it is not known.
  std::optional<int> outputOf(const proto::Node &node,
                              const Reference &reference);

  /// Imports what `wanted` results of the function need, on these arguments;
  /// the others are nothing.
  llvm::LogicalResult call(const proto::Function &function, Items arguments,
                           const std::set<int> &wanted,
                           const std::string &callName, const Scope &scope,
                           Items &results);
  llvm::LogicalResult importCall(Node &node, const proto::Node &proto,
                                 int index, Scope &scope);
  llvm::LogicalResult importBranches(Node &node, const proto::Node &proto,
                                     int index, Scope &scope);
  llvm::LogicalResult importWhile(Node &node, const proto::Node &proto,
                                  Scope &scope);
  /// The function that an attribute names; null and a failure where there is
  /// none.
  const proto::Function *functionOf(Node &node, llvm::StringRef attribute);
  const proto::Function *functionNamed(const std::string &name);
  std::optional<std::vector<const proto::Function *>> branchesOf(Node &node,
                                                                 bool isTruth);

  // Switch, Merge and loops that are made of them.
  ControlFlow &flowOf(const Body &body);
  llvm::LogicalResult importSwitch(Node &node, bool isTruth);
  llvm::LogicalResult importMerge(Node &node, const proto::Node &proto,
                                  int index, Scope &scope);
  Item chooseSide(mlir::Value predicate, const Choice &choice,
                  llvm::ArrayRef<Item> items);
  llvm::LogicalResult importExit(Node &node, const proto::Node &proto,
                                 int index, Scope &scope);
  std::optional<llvm::StringMap<Item>> enteredBy(const Loop &loop,
                                                 const Scope &scope);
  llvm::LogicalResult runLoop(const Loop &loop, const proto::Node &proto,
                              Scope &scope);

  /// The one integer, or truth value as 0 or 1, that is known now.
  std::optional<int64_t> knownIndex(mlir::Value value, bool isTruth);
  /// With its value, also where it was not laid out yet.
  Item settled(Item item);
  /// The first where the condition holds, else the second; nothing and a
  /// failure where they are different things, as "its branches" give.
  Item choose(mlir::Value condition, const Item &first, const Item &second,
              const char *givers = "its branches");
  /// Whether a choice gives what a reference means, or copies of it.
  static bool isChosen(const Body &body, llvm::StringRef reference);
  /// Takes note of what a loop's states were when data ended it, as
  /// StepLoop::keep.
  llvm::LogicalResult keepEnded(mlir::Value runs, const Items &states,
                                Items &results);
  /// A loop over functions, or of Switch and Merge.
  struct LoopSteps {
    /// The condition of these states.
    std::function<llvm::FailureOr<mlir::Value>(const Items &)> test;
    /// Makes of these states, which were tested before or not at all, the next
    /// ones; of these `wanted` are, if it is not null, and the others nothing.
    std::function<llvm::LogicalResult(Items &, const std::set<int> *wanted)>
        take;
    /// As of StepLoop.
    bool isChoice = false;
    /// States that every step gives on as they are.
    std::set<int> kept;
  };
  class RepeatedLoop;
  /// Makes `states` what they are behind a loop.
  llvm::LogicalResult runSteps(Items &states, const LoopSteps &steps);
  llvm::LogicalResult writeOutSteps(Items &states, const LoopSteps &steps,
                                    std::optional<StepCount> count);

  void report(const proto::Node &node, const Scope &scope,
              const std::vector<std::string> &inputs, const Problem &problem);
  void report(Problem problem);
  void noteDefault(const proto::Node &node);
  mlir::Location locate(const proto::Node &node, const Scope &scope);

  Model &model;
  Emitter &emitter;
  const std::string &file;
  std::vector<Diagnostic> &diagnostics;
  std::map<const Body *, std::unique_ptr<ControlFlow>> flows;
  /// Bodies that were looked at as a whole.
  std::set<const Body *> checked;
  Effects effects;
  /// Where a body that changes variables was first imported.
  struct Writer {
    std::string path;
    /// Nodes of the variables that are its arguments, by their names.
    std::map<std::string, std::string> variables;
  };
  llvm::MapVector<const Body *, Writer> writers;
  unsigned nestedMerges = 0;
  /// Errors of nodes, as text.
  std::set<std::string> reported;
  /// Whether so much was written out that it was reported.
  bool isTooLarge = false;
};

} // namespace charonia::frontend::tensorflow

#endif
