// Conditions on the sizes of inputs, as an exported program writes them: texts
// of Python.
#ifndef CHARONIA_FRONTENDS_PYTORCH_GUARDTEXT_H
#define CHARONIA_FRONTENDS_PYTORCH_GUARDTEXT_H

#include "frontends/pytorch/Expression.h"
#include <functional>

namespace charonia::frontend::pytorch {

/// Where a number comes from: "L['d']['a'].size()[1]" has the path d, a, the
/// property "size" and the index 1.
struct GuardSource {
  std::vector<std::string> path;
  std::string property;
  std::optional<int64_t> index;
};

/// Reads guards as expressions of the file's own kind: "x // 2 != 3 or y > 1"
/// is Or(Unequality(FloorDiv(x, 2), 3), StrictGreaterThan(y, 1)). Parts that
/// are equal are one object, as are those of several texts.
class GuardParser {
public:
  /// `sources` gives what a source stands for; null where it is unknown.
  using Sources = std::function<ExpressionPtr(const GuardSource &)>;
  explicit GuardParser(Sources sources) : sources(std::move(sources)) {}

  /// Null and what is wrong in `problem` where the text is no guard.
  ExpressionPtr parse(llvm::StringRef text, std::string &problem);

private:
  friend class GuardReader;
  ExpressionPtr unique(Expression expression);
  /// Nodes of an expression, shared ones counted for each of their readers.
  int64_t nodesOf(const ExpressionPtr &expression) const {
    auto it = nodes.find(expression.get());
    return it == nodes.end() ? 1 : it->second;
  }
  void setNodes(const ExpressionPtr &expression, int64_t count) {
    nodes[expression.get()] = count;
  }

  Sources sources;
  llvm::StringMap<ExpressionPtr> known;
  llvm::DenseMap<const Expression *, int64_t> nodes;
};

// What a source's path has for a key that is a number, for a text inside of a
// tuple, and for a tuple of such. A text alone is as it is.
/// Of an integer or a float, as Python or JSON writes it.
std::string numberKey(llvm::StringRef text);
std::string quotedKey(llvm::StringRef text);
std::string tupleOf(llvm::ArrayRef<std::string> keys);

/// A guard for messages: "x.size()[1] % 4 == 0", of bounded length.
std::string guardToString(llvm::StringRef guard);

} // namespace charonia::frontend::pytorch

#endif
