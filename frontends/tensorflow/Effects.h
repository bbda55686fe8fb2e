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

  /// The name, in the body, of a variable that one of the nodes `needed` may
  /// read after another node has written it; none where all reads come first.
  /// A function runs all of its nodes, a graph what the needed ones depend on
  /// or wait for.
  /// Bodies are imported in parts: `needed` is what the last part adds to what
  /// `seen` has of those before.
  struct Seen {
    std::set<int> needed, run;
  };
  std::optional<std::string> findStale(const Body &body, bool isFunction,
                                       llvm::ArrayRef<int> needed, Seen &seen);
  /// Whether steps of a loop over the function see what others wrote: the
  /// number of such an argument.
  std::optional<int> findCarried(const proto::Function &condition,
                                 const proto::Function &body);

private:
  /// Numbers of arguments, or of a node's operands.
  struct Access {
    std::set<int> reads, writes;
  };
  /// By name, nodes or arguments of one body.
  struct Users {
    std::map<std::string, std::set<int>> readers, writers;
    /// Nodes that do either.
    std::set<int> all;
  };
  const Access &accessOf(const proto::Function &function, int depth);
  Access accessOf(const proto::Node &node, int depth);
  const Users &usersOf(const Body &body, int depth);
  void merge(Access &into, const std::string &function, int shift, int depth);

  Model &model;
  std::map<const proto::Function *, Access> known;
  std::map<const Body *, Users> users;
};

} // namespace charonia::frontend::tensorflow

#endif
