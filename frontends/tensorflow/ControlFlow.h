// Switch, Merge, Enter, Exit and NextIteration: choices and loops as graphs of
// TF1 have them, and those that were frozen with control flow lowered.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_CONTROLFLOW_H
#define CHARONIA_FRONTENDS_TENSORFLOW_CONTROLFLOW_H

#include "frontends/tensorflow/Model.h"
#include <set>

namespace charonia::frontend::tensorflow {

enum class FlowKind {
  None,
  Switch,
  SwitchN,
  Merge,
  Enter,
  Exit,
  Next,
  LoopCond,
  // Of functions.
  Call,
  If,
  Case,
  While
};
/// Whether it calls functions, so that results depend on which are needed.
inline bool callsFunctions(FlowKind kind) { return kind >= FlowKind::Call; }
/// Also of the forms for references, "RefSwitch".
FlowKind flowKindOf(llvm::StringRef op);

/// What a Merge chooses by.
struct Choice {
  /// "node:0": a truth value or, of SwitchN, an index.
  std::string predicate;
  /// Of each of the Merge's inputs: the output of a Switch that it is behind.
  std::vector<int> sides;
};

/// A loop; nodes are indices.
struct Loop {
  int condition = 0; // LoopCond
  struct Variable {
    int merge, enter, next;
  };
  std::vector<Variable> variables;
  /// What enters the loop, from outside of it.
  std::vector<int> enters;
};

/// A node that depends on itself, or waits for itself, but by the next value of
/// a loop; none where there is none.
std::optional<int> nodeInCycle(const Body &body);

/// Choices and loops of one body. What it says follows from names alone, so it
/// is found before anything is imported. Its effort is bounded by a multiple of
/// the body's size.
class ControlFlow {
public:
  explicit ControlFlow(const Body &body);

  /// Null and a problem where nothing tells the Merge's inputs apart.
  const Choice *choiceOf(int merge, Problem &problem);
  /// The predicates, as references, on one side of which a node is computed at
  /// all, and the sides; none where that is too much to tell.
  std::optional<std::vector<std::pair<std::string, int>>> pathOf(int node);
  /// The loop that a node Exit ends; null and a problem where it is none.
  const Loop *loopOf(int exit, Problem &problem);
  /// Which of the loop's variables a node Exit has.
  std::optional<size_t> variableOf(const Loop &loop, int exit) const;

private:
  bool findEntered(Loop &loop, std::vector<int> todo, std::set<int> seen,
                   const std::string &frame);
  /// Predicates, by number, and the side of each; sorted.
  using Path = std::vector<std::pair<int, int>>;
  std::optional<int> find(llvm::StringRef reference) const;
  int inputOf(int node, int input) const;
  FlowKind kindOf(int node) const;
  bool isLoopMerge(int node) const;
  std::string predicateOf(int switchNode) const;
  std::vector<std::string> inputsOf(int node) const;
  bool findPaths(int root);
  Path pathBehind(llvm::StringRef reference);
  Path combine(int node);

  const Body &body;
  std::map<int, Path> paths;
  std::map<std::string, int> predicateNumbers;
  std::vector<std::string> predicates;
  std::map<int, Choice> choices;
  std::map<int, Loop> loops;
  /// Switches by the LoopCond that they have as predicate.
  std::map<int, std::vector<int>> switches;
  int64_t effort = 0;
};

} // namespace charonia::frontend::tensorflow

#endif
