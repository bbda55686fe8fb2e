// What functions do to variables, which an engine cannot change.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_EFFECTS_H
#define CHARONIA_FRONTENDS_TENSORFLOW_EFFECTS_H

#include "frontends/tensorflow/Model.h"
#include <set>

namespace charonia::frontend::tensorflow {

/// Whether nodes see variables as they are stored. Bodies are looked at once.
class Effects {
public:
  explicit Effects(Model &model) : model(model) {}

  /// Takes note that these nodes of a body are needed, and what they depend on
  /// or wait for is run; of a function all nodes are run. Whether it has nodes
  /// that write variables, so that findStale() has something to look for.
  bool need(const Body &body, bool isFunction, llvm::ArrayRef<int> nodes);
  /// The name, in the body, of a variable that a needed node may read after
  /// another one has written it; none where all reads come first. For the end:
  /// each call looks at the whole body. `isUntaken` says of nodes that they are
  /// not run, whatever waits for them.
  using IsUntaken = llvm::function_ref<bool(int node)>;
  std::optional<std::string> findStale(const Body &body, IsUntaken isUntaken);
  /// The names, in the body, of variables that it writes itself, or by calls
  /// that are run and not needed.
  std::set<std::string> findWritten(const Body &body, IsUntaken isUntaken);
  /// Whether steps of a loop over the function see what others wrote: the
  /// number of such an argument.
  std::optional<int> findCarried(const proto::Function &condition,
                                 const proto::Function &body);

private:
  /// Numbers of arguments, or of a node's operands.
  struct Access {
    std::set<int> reads, writes;
    /// Of what lies too deep to be looked at all operands may be both.
    bool isUnknown = false;
  };
  /// By name, nodes or arguments of one body.
  struct Users {
    std::map<std::string, std::set<int>> readers, writers;
    /// Nodes that write a variable as one operand and read it as another.
    std::map<std::string, std::set<int>> both;
  };
  /// What is imported of a body, in parts.
  struct Seen {
    bool isFunction = false;
    std::set<int> needed, run;
  };
  const Access &accessOf(const proto::Function &function, int depth);
  Access accessOf(const proto::Node &node, const Body &body, int depth);
  const Users &usersOf(const Body &body, int depth);
  void merge(Access &into, const std::string &function, int shift, int depth);

  Model &model;
  std::map<const proto::Function *, Access> known;
  /// Functions that are being looked at.
  std::set<const proto::Function *> open;
  std::map<const Body *, Users> users;
  std::map<const Body *, Seen> seen;
};

} // namespace charonia::frontend::tensorflow

#endif
